//! Dark-matter particles of a part of the box.

use crate::error::AnalysisError;
use crate::region::{Region, RegionOptions};
use comove_sim::kernels::point::particle::unmarked;
use comove_sim::{Snapshot, Units};
use serde::{Deserialize, Serialize};

/// Which particles: those of a region.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ParticleOptions {
    /// Particles at most; of more a random sample by identity, of the whole box the same one in all snapshots.
    pub most: usize,
}

impl Default for ParticleOptions {
    fn default() -> Self {
        Self { most: 10_000 }
    }
}

/// A particle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Particle {
    /// Identity, with the mass class in bits 60 to 62.
    pub id: u64,
    /// Position: comoving Mpc/h, in non-comoving coordinates code length.
    pub position: [f64; 3],
    /// Peculiar velocity in km/s, in non-comoving coordinates in code units.
    pub velocity: [f64; 3],
    /// Mass in Msun/h, in non-comoving coordinates in code units.
    pub mass: f64,
}

/// A number that looks random (the finaliser of splitmix64: Steele, Lea & Flood 2014, OOPSLA).
fn mixed(id: u64) -> u64 {
    let id = (id ^ id >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let id = (id ^ id >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    id ^ id >> 31
}

/// The particles of a region, in the order of their identities.
///
/// # Errors
/// [`AnalysisError::Option`] for an incomplete region; [`AnalysisError::MissingField`] without dark matter.
pub fn particles(
    snapshot: &Snapshot,
    region: &RegionOptions,
    options: &ParticleOptions,
) -> Result<Vec<Particle>, AnalysisError> {
    let region = Region::new(region, snapshot)?;
    let Some(particles) = &snapshot.state.particles else {
        return Err(AnalysisError::MissingField {
            name: "particles",
            reason: "it holds no dark matter; use an output of a run with dark_matter: true",
        });
    };
    let (header, lengths) = (&snapshot.header, snapshot.box_lengths());
    let position = |n: usize| [0, 1, 2].map(|axis| particles.coordinate(n, axis, lengths[axis]));
    // whether refinement follows a particle makes no difference
    let id = |n: usize| unmarked(particles.id[n]);
    let mut found: Vec<usize> = (0..particles.len()).filter(|&n| region.holds(snapshot, position(n))).collect();
    if found.len() > options.most {
        found.select_nth_unstable_by_key(options.most, |&n| mixed(id(n)));
        found.truncate(options.most);
    }
    found.sort_unstable_by_key(|&n| id(n));
    let units = Units::new(header.cosmology);
    let unit = units.velocity_km_s(header.a);
    let particle = |n: usize| Particle {
        id: id(n),
        position: position(n),
        velocity: [0, 1, 2].map(|axis| unit * f64::from(particles.velocity[axis][n])),
        mass: particles.mass(n) * units.mass_msun_h(),
    };
    Ok(found.into_iter().map(particle).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, random_particles, with_particles};
    use comove_sim::kernels::point::particle::marked;

    /// All of a ball about a corner of the box; of too many the same ones whatever order the snapshot has them in.
    #[test]
    fn of_a_region_and_not_too_many() {
        let snapshot = with_particles(Fixture::uniform(1.0).build(), random_particles(5000, [1.0; 3], 3));
        let ball = RegionOptions { center: Some([0.0; 3]), radius: Some(0.2), ..RegionOptions::default() };
        let all = particles(&snapshot, &ball, &ParticleOptions::default()).unwrap();
        let distance = |p: &Particle| p.position.map(|x| x.min(1.0 - x).powi(2)).iter().sum::<f64>().sqrt();
        assert!(all.iter().all(|p| distance(p) <= 0.2) && (100..250).contains(&all.len()), "{}", all.len());
        let mut shuffled = snapshot.clone();
        let columns = shuffled.state.particles.as_mut().unwrap();
        columns.id.reverse();
        columns.position.iter_mut().for_each(|column| column.reverse());
        columns.velocity.iter_mut().for_each(|column| column.reverse());
        let few = ParticleOptions { most: 50 };
        let some = particles(&snapshot, &ball, &few).unwrap();
        columns.id.iter_mut().step_by(2).for_each(|id| *id = marked(*id));
        assert_eq!(particles(&shuffled, &ball, &few).unwrap(), some);
        assert!(some.len() == 50 && some.iter().all(|p| all.contains(p)));
        // from all over the box, in the order of their identities
        let some = particles(&snapshot, &RegionOptions::default(), &few).unwrap();
        assert!(some.is_sorted_by_key(|p| p.id) && some[0].id < 500 && some[49].id > 4500);
        let error = particles(&Fixture::uniform(1.0).build(), &ball, &few).unwrap_err();
        assert!(error.to_string().contains("no dark matter"), "{error}");
    }
}

//! The region that particles come from: their places on the lattice at the start of a run, from their identities.
//!
//! `ic_gaussian` numbers the particles of a lattice by their places, x fastest, and those of each lattice of a zoom by themselves;
//! the mass class says which lattice it is.

use crate::error::AnalysisError;
use crate::particle_grid::{position_of, separation};
use comove_sim::kernels::point::particle::{CLASSES, class_of, number_of};
use comove_sim::{DarkMatterHeader, HostParticles, Snapshot};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// How the region is widened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LagrangianOptions {
    /// Comoving Mpc/h that the region reaches further on every side.
    pub margin_mpc_h: f64,
}

/// A box that holds the places of particles at the start; through periodic faces if that makes it smaller.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LagrangianRegion {
    /// Its centre in comoving Mpc/h, within the simulated box.
    pub center: [f64; 3],
    /// Its lengths along x, y, z in comoving Mpc/h.
    pub extent: [f64; 3],
}

/// Largest mean displacement, as a fraction of the box, with which identities count as numbers of a lattice.
const FARTHEST: f64 = 0.25;

/// The smallest box around the cells of the lattice that particles with these identities began in.
///
/// # Errors
/// [`AnalysisError::Option`] for no particles, an identity that no particle has, a negative margin, or identities that are not
/// numbers of a lattice; [`AnalysisError::MissingField`] without dark matter.
pub fn lagrangian_region(
    snapshot: &Snapshot,
    ids: &[u64],
    options: &LagrangianOptions,
) -> Result<LagrangianRegion, AnalysisError> {
    let (Some(particles), Some(stated)) = (&snapshot.state.particles, snapshot.header.dark_matter) else {
        return Err(AnalysisError::MissingField {
            name: "particles",
            reason: "it holds no dark matter; use an output of a run with dark_matter: true",
        });
    };
    let margin = options.margin_mpc_h;
    if !(margin >= 0.0 && margin.is_finite()) {
        return Err(AnalysisError::option("margin_mpc_h", margin, "must not be negative, in Mpc/h"));
    }
    if ids.is_empty() {
        let reason = "the list is empty; give entries of snapshot.particles(#{ center, radius, most }), with a larger radius if there \
                      are none";
        return Err(AnalysisError::option("particles", "[]", reason));
    }
    let lattice = Lattice::of(snapshot, stated, particles)?;
    let finest = lattice.cells;
    let mut occupied = finest.map(|n| vec![false; n]);
    for &id in ids {
        let Some((class, at)) = lattice.place(id) else {
            let reason =
                "no particle of the snapshot has this identity; give entries of snapshot.particles(…) or their ids";
            return Err(AnalysisError::option("particles", id, reason));
        };
        for axis in 0..3 {
            occupied[axis][at[axis] << class..(at[axis] + 1) << class].fill(true);
        }
    }
    let lengths = snapshot.box_lengths();
    let (mut center, mut extent) = ([0.0; 3], [0.0; 3]);
    for axis in 0..3 {
        let (first, count) = smallest_span(&occupied[axis]);
        let (n, length) = (finest[axis] as f64, lengths[axis]);
        let width = length / n;
        extent[axis] = (count as f64 * width + 2.0 * margin).min(length);
        center[axis] = ((first as f64 + 0.5 * count as f64) * width - lattice.offset(width)).rem_euclid(length);
    }
    Ok(LagrangianRegion { center, extent })
}

/// First index and number of indices of the smallest range, around the end, that holds all that are set.
fn smallest_span(set: &[bool]) -> (usize, usize) {
    let n = set.len();
    let places: Vec<usize> = (0..n).filter(|&i| set[i]).collect();
    let next = |m: usize| places.get(m + 1).copied().unwrap_or(places[0] + n);
    let before_gap = (0..places.len()).max_by_key(|&m| (next(m) - places[m], m)).expect("one is set");
    (next(before_gap) % n, n + 1 - (next(before_gap) - places[before_gap]))
}

/// The lattices of a run's particles.
struct Lattice {
    /// Cells of that of class 0 if it filled the box.
    cells: [usize; 3],
    heaviest: usize,
}

impl Lattice {
    /// # Errors
    /// [`AnalysisError::Option`] for particles that are numbered in another way.
    fn of(snapshot: &Snapshot, stated: DarkMatterHeader, particles: &HostParticles) -> Result<Self, AnalysisError> {
        let refuse = |value: String| {
            let reason = "particles are not numbered by a lattice; only runs from ic_gaussian have identities that give places at the \
                          start";
            AnalysisError::option("particles", value, reason)
        };
        let lengths = snapshot.box_lengths();
        let number = stated.mass_in_class_0();
        let width = (lengths.iter().product::<f64>() / number as f64).cbrt();
        let lattice =
            Self { cells: lengths.map(|length| (length / width).round() as usize), heaviest: stated.heaviest_class() };
        let is_whole = lattice.cells.iter().all(|n| n.is_multiple_of(1 << lattice.heaviest));
        if lattice.cells.iter().map(|&n| n as u64).product::<u64>() != number || !is_whole {
            return Err(refuse(format!("{} of {number} lightest masses", stated.particles)));
        }
        let away = |n: usize| {
            let (class, at) = lattice.place(particles.id[n])?;
            let fraction = |axis: usize| {
                let width = 1.0 / lattice.cells[axis] as f64;
                (at[axis] as f64 + 0.5) * width * f64::from(1 << class) - lattice.offset(width)
            };
            let place = [0, 1, 2].map(|axis| HostParticles::fraction(fraction(axis).rem_euclid(1.0), 1.0).unwrap_or(0));
            Some(separation(place, position_of(particles, n), [1.0; 3]).iter().map(|d| d * d).sum::<f64>().sqrt())
        };
        let away: Option<f64> = (0..particles.len()).into_par_iter().map(away).sum();
        match away.map(|sum| sum / particles.len() as f64) {
            Some(mean) if mean <= FARTHEST => Ok(lattice),
            Some(mean) => Err(refuse(format!("on average {mean:.2} box lengths from these places"))),
            None => Err(refuse("identities beyond the lattice".into())),
        }
    }

    /// Class of a particle and its cell on that class's lattice.
    fn place(&self, id: u64) -> Option<(usize, [usize; 3])> {
        let class = class_of(id);
        let [nx, ny, nz] = self.cells.map(|n| n >> class);
        let number = number_of(id) as usize;
        let is_one = class <= self.heaviest && class < CLASSES && id >> 63 == 0 && number < nx * ny * nz;
        is_one.then(|| (class, [number % nx, number / nx % ny, number / (nx * ny)]))
    }

    /// By how much the lattices begin below the corner of the box: half a cell of the heaviest class.
    ///
    /// * `width`: of a cell of class 0
    fn offset(&self, width: f64) -> f64 {
        0.5 * width * f64::from(1 << self.heaviest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, with_particles};
    use comove_sim::kernels::point::particle::id_of_class;

    /// Particles of a lattice of 8³ in a box of length 1, one of them replaced by its children; class 0 has 1/16.
    fn lattice(order: [usize; 3], is_zoom: bool) -> Snapshot {
        let mut particles = HostParticles {
            particle_mass: if is_zoom { 1.0 / 4096.0 } else { 1.0 / 512.0 },
            ..HostParticles::default()
        };
        let mut add = |id: u64, x: [f64; 3]| {
            for axis in 0..3 {
                particles.position[axis].push(HostParticles::fraction(x[axis].rem_euclid(1.0), 1.0).unwrap());
                particles.velocity[axis].push(0.0);
            }
            particles.id.push(id);
        };
        for n in 0..512 {
            let at = [n % 8, n / 8 % 8, n / 64];
            if n == 0 && is_zoom {
                for child in 0..8u64 {
                    let at = [child % 2, child / 2 % 2, child / 4];
                    add((at[2] * 16 + at[1]) * 16 + at[0], at.map(|i| (i as f64 - 0.5) / 16.0));
                }
                continue;
            }
            let id = id_of_class(usize::from(is_zoom), n as u64).unwrap();
            add(id, [0, 1, 2].map(|axis| at[order[axis]] as f64 / 8.0));
        }
        with_particles(Fixture::uniform(1.0).build(), particles)
    }

    /// Across a face, with a margin, of one lattice and of two.
    #[test]
    fn regions_hold_the_cells_of_particles() {
        let of = |snapshot: &Snapshot, ids: &[u64], margin_mpc_h| {
            lagrangian_region(snapshot, ids, &LagrangianOptions { margin_mpc_h }).unwrap()
        };
        let one = lattice([0, 1, 2], false);
        // 7, 0 and 1 along x
        let LagrangianRegion { center, extent } = of(&one, &[7, 0, 1], 0.0);
        assert_eq!((center, extent), ([0.0; 3], [0.375, 0.125, 0.125]));
        let LagrangianRegion { center, extent } = of(&one, &[2 + 8, 4 + 8], 0.25);
        assert_eq!((center, extent), ([0.375, 0.125, 0.0], [0.875, 0.625, 0.625]));
        let all: Vec<u64> = (0..512).collect();
        assert_eq!(of(&one, &all, 1.0).extent, [1.0; 3]);
        let zoom = lattice([0, 1, 2], true);
        let heavy = id_of_class(1, 1).unwrap();
        // the second cells of both; lattices begin 1/16 below the corner
        let LagrangianRegion { center, extent } = of(&zoom, &[1, heavy], 0.0);
        assert_eq!((center, extent), ([0.09375, 0.0, 0.0], [0.1875, 0.125, 0.125]));
    }

    #[test]
    fn what_is_no_lattice_is_refused() {
        let said = |snapshot: &Snapshot, ids: &[u64], margin_mpc_h: f64| {
            lagrangian_region(snapshot, ids, &LagrangianOptions { margin_mpc_h }).unwrap_err().to_string()
        };
        let one = lattice([0, 1, 2], false);
        assert!(said(&one, &[], 0.0).contains("larger radius"));
        assert!(said(&one, &[512], 0.0).contains("no particle of the snapshot"));
        assert!(said(&one, &[1], -1.0).contains("margin_mpc_h = -1"));
        assert!(said(&lattice([2, 0, 1], false), &[1], 0.0).contains("only runs from ic_gaussian"));
        let mut fewer = one.clone();
        fewer.header.dark_matter.as_mut().unwrap().particles = 500;
        assert!(said(&fewer, &[1], 0.0).contains("only runs from ic_gaussian"));
        assert!(said(&Fixture::uniform(1.0).build(), &[1], 0.0).contains("no dark matter"));
    }
}

//! All matter of a snapshot: its sums, and gas and dark matter as one fluid, in which halos and their profiles are found.

use crate::cells::sum_over_leaves;
use crate::error::AnalysisError;
use crate::part::Part;
use comove_sim::kernels::layout::{DENSITY, ENTROPY, FIELDS, GROUP_CELLS, GROUP_VALUES};
use comove_sim::kernels::point::particle::mass_of;
use comove_sim::parallel::Communicator;
use comove_sim::records::Sums;
use comove_sim::{HostParticles, HostState, Snapshot, SnapshotHeader};
use rayon::prelude::*;
use std::ops::Add;

/// All matter of a snapshot: the snapshot with the density of all matter in place of the gas's, and the gas's velocity and
/// temperature (zeros where there is no gas). Nothing of its own where there is no dark matter.
#[derive(Clone, Debug)]
pub struct OneFluid(Option<Snapshot>);

impl OneFluid {
    /// Of a whole snapshot.
    pub fn new(snapshot: &Snapshot) -> Self {
        Self::by(&Communicator::alone(), &snapshot.into())
    }

    /// Of a snapshot in parts; each rank has its own groups. Collective.
    pub fn by(communicator: &Communicator, part: &Part) -> Self {
        Self(as_one_fluid(communicator, part))
    }

    /// What stands for the part that it was made of.
    pub(crate) fn part<'a>(&'a self, part: &Part<'a>) -> Part<'a> {
        self.0.as_ref().map_or_else(|| part.clone(), |matter| part.of(matter))
    }
}

/// # Errors
/// [`AnalysisError::MissingField`] where there is dark matter alone.
pub(crate) fn require_gas(part: &Part, reason: &'static str) -> Result<(), AnalysisError> {
    match part.header().fields.has_gas() {
        true => Ok(()),
        false => Err(AnalysisError::MissingField { name: "density", reason }),
    }
}

/// Conserved sums over the box, code units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// All matter.
    pub matter: Sums,
    /// Gas, over the leaf cells.
    pub gas: Option<Sums>,
    /// Dark matter, over the particles; its energy is the kinetic one.
    pub dark_matter: Option<Sums>,
}

/// The conserved sums of a snapshot that holds all of its particles.
pub fn totals(snapshot: &Snapshot) -> Totals {
    let gas = snapshot.header.fields.has_gas().then(|| of_gas(snapshot));
    let dark_matter = snapshot.state.particles.as_ref().map(of_particles);
    let matter = [gas, dark_matter].into_iter().flatten().fold(Sums::default(), Add::add);
    Totals { matter, gas, dark_matter }
}

fn of_gas(snapshot: &Snapshot) -> Sums {
    let [mass, x, y, z, kinetic, energy] = sum_over_leaves(snapshot, |cell| {
        let [density, x, y, z, energy, _] = cell.fluid;
        let kinetic = if density > 0.0 { 0.5 * (x * x + y * y + z * z) / density } else { 0.0 };
        [density, x, y, z, kinetic, energy].map(|value| value * cell.volume())
    });
    Sums { mass, momentum: [x, y, z], kinetic, energy }
}

/// Particles whose velocities one thread adds up: a number of its own, so that sums do not depend on the number of threads.
const PARTICLES: usize = 1 << 16;

fn of_particles(particles: &HostParticles) -> Sums {
    // Σmv and Σmv² along each axis, m in units of class 0
    let sums = particles.velocity.each_ref().map(|column| {
        let of_some = |(velocities, ids): (&[f32], &[u64])| {
            velocities.iter().zip(ids).fold([0.0; 2], |[sum, squares], (&v, &id)| {
                let (m, v) = (f64::from(mass_of(id)), f64::from(v));
                [sum + m * v, squares + m * (v * v)]
            })
        };
        let chunks = column.par_chunks(PARTICLES).zip(particles.id.par_chunks(PARTICLES));
        let parts: Vec<[f64; 2]> = chunks.map(of_some).collect();
        parts.into_iter().fold([0.0; 2], |all, part| [all[0] + part[0], all[1] + part[1]])
    });
    let mass = particles.particle_mass;
    let kinetic = 0.5 * mass * sums.iter().map(|[_, squares]| squares).sum::<f64>();
    let momentum = sums.map(|[sum, _]| mass * sum);
    Sums { mass: particles.header().mass(), momentum, kinetic, energy: kinetic }
}

fn as_one_fluid(communicator: &Communicator, part: &Part) -> Option<Snapshot> {
    if !communicator.any(!part.snapshot.state.dark_matter.is_empty()) {
        return None;
    }
    let HostState { tree, fluid, dark_matter, .. } = &part.snapshot.state;
    let has_gas = part.header().fields.has_gas();
    let fluid = if has_gas { fluid.clone() } else { vec![0.0; tree.group_count() * GROUP_VALUES] };
    let dark_matter = dark_matter.clone();
    let mut state = HostState { fluid, dark_matter, ..HostState::without_fields(tree.clone()) };
    let header = SnapshotHeader { dark_matter: None, ..part.header().clone() };
    // P/ρ stays: S = P/ρ^(γ−1)
    let exponent = 2.0 - header.gamma;
    let groups = state.fluid.par_chunks_exact_mut(GROUP_VALUES).zip(state.dark_matter.par_chunks_exact(GROUP_CELLS));
    groups.for_each(|(fluid, dark_matter)| {
        if !has_gas {
            fluid[DENSITY * GROUP_CELLS..][..GROUP_CELLS].copy_from_slice(dark_matter);
            return;
        }
        for (c, dark_matter) in dark_matter.iter().enumerate() {
            let factor = 1.0 + dark_matter / fluid[DENSITY * GROUP_CELLS + c];
            for field in 0..FIELDS {
                let factor = if field == ENTROPY { factor.powf(exponent) } else { factor };
                fluid[field * GROUP_CELLS + c] *= factor;
            }
        }
    });
    Some(Snapshot { header, state })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell_fields::{Gas, field_by_name};
    use crate::cells::densest;
    use crate::fixture::{Fixture, gas, heavy_and_light, particles_at, with_particles};
    use crate::region::{HistogramOptions, RegionOptions, histogram, statistics};
    use comove_sim::fields::FieldSet;
    use comove_sim::kernels::layout::{cell, octant_origin};

    #[test]
    fn only_the_density_is_another() {
        let mut snapshot = Fixture::blob().build();
        assert!(as_one_fluid(&Communicator::alone(), &(&snapshot).into()).is_none());
        let cells = snapshot.state.fluid.len() / FIELDS;
        snapshot.state.dark_matter = (0..cells).map(|n| (n % 7) as f64).collect();
        let both = as_one_fluid(&Communicator::alone(), &(&snapshot).into()).unwrap();
        let at = |snapshot: &Snapshot, name: &str, position| {
            let cell = crate::cells::leaf_at(snapshot, position);
            field_by_name(name, &FieldSet::default()).unwrap().value(&Gas::new(snapshot), &cell)
        };
        for position in [[0.3, 0.4, 0.55], [0.1, 0.9, 0.2], [0.77, 0.31, 0.42]] {
            for name in ["temperature", "velocity_x", "mach"] {
                let [one, other] = [at(&snapshot, name, position), at(&both, name, position)];
                assert!((one - other).abs() <= 1e-12 * one.abs(), "{name}: {one} {other}");
            }
            let matter = at(&snapshot, "matter_density", position);
            assert!((at(&both, "density", position) / matter - 1.0).abs() < 1e-14);
        }
    }

    /// Gas of two phases at rest and in motion, and two particles: sums in closed form, without gas those of the particles.
    #[test]
    fn totals_are_of_all_matter() {
        let fixture =
            Fixture::new(|x| if x[0] < 0.5 { gas(3.0, [2.0, 0.0, 0.0], 1.0) } else { gas(1.0, [0.0; 3], 1.0) });
        let two = [([0.1; 3], [1.0, 0.0, -2.0]), ([0.6; 3], [0.5, 1.0, 0.0])];
        let mut snapshot = with_particles(fixture.build(), particles_at(two, [1.0; 3], 4.0));
        let of_particles = Sums { mass: 8.0, momentum: [6.0, 4.0, -8.0], kinetic: 12.5, energy: 12.5 };
        let of_gas = Sums { mass: 2.0, momentum: [3.0, 0.0, 0.0], kinetic: 3.0, energy: 4.5 };
        let Totals { matter, gas, dark_matter } = totals(&snapshot);
        assert_eq!((dark_matter, matter), (Some(of_particles), gas.expect("gas") + of_particles));
        let numbers = |sums: Sums| [sums.mass, sums.momentum[0], sums.kinetic, sums.energy];
        for (found, expected) in numbers(gas.unwrap()).into_iter().zip(numbers(of_gas)) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        snapshot.header.fields = FieldSet::without_gas();
        snapshot.state.fluid.clear();
        assert_eq!(totals(&snapshot), Totals { matter: of_particles, gas: None, dark_matter: Some(of_particles) });
    }

    /// A particle of class 1 counts as eight of class 0.
    #[test]
    fn totals_have_the_masses_of_classes() {
        let mut random = crate::fixture::Random::new(3);
        let some = (0..50).map(|_| (random.direction(), random.direction())).collect::<Vec<_>>();
        let [heavy, light] = heavy_and_light(particles_at(some, [1.0; 3], 0.25));
        assert!(heavy.len() < light.len());
        let [heavy, light] = [heavy, light].map(|particles| of_particles(&particles));
        assert_eq!(heavy.mass, light.mass);
        let numbers = |sums: Sums| [sums.momentum[0], sums.momentum[2], sums.kinetic];
        for (heavy, light) in numbers(heavy).into_iter().zip(numbers(light)) {
            assert!((heavy / light - 1.0).abs() < 1e-12, "{heavy} {light}");
        }
    }

    /// Dark matter decides on the densest cell, beside gas and alone, and on the mass of regions.
    #[test]
    fn the_densest_cell_and_the_mass_are_those_of_all_matter() {
        let mut snapshot = Fixture::blob().build();
        let of_gas = totals(&snapshot).matter.mass;
        let cells = snapshot.state.fluid.len() / FIELDS;
        snapshot.state.dark_matter = vec![2.0; cells];
        let leaf = snapshot.state.tree.leaf_patches().last().expect("a patch");
        let [i, j, k] = octant_origin(leaf.octant);
        snapshot.state.dark_matter[leaf.group * GROUP_CELLS + cell(i, j, k)] = 1e6;
        let found = densest(&snapshot);
        assert_eq!((found.dark_matter, found.matter_density()), (1e6, 1e6 + found.fluid[DENSITY]));
        let added = 2.0 + (1e6 - 2.0) * found.volume();
        let mass = |snapshot: &Snapshot, field: &str| {
            let all = statistics(snapshot, field, &RegionOptions::default()).unwrap();
            let bins = histogram(snapshot, field, &RegionOptions::default(), &HistogramOptions::default()).unwrap();
            let binned: f64 = bins.iter().map(|bin| bin.mass).sum();
            assert!((binned / all.mass - 1.0).abs() < 1e-12, "{field}: {binned} {all:?}");
            all.mass
        };
        for (field, expected) in [
            ("density", of_gas),
            ("temperature", of_gas),
            ("dark_matter_density", added),
            ("matter_density", of_gas + added),
        ] {
            let found = mass(&snapshot, field);
            assert!((found / expected - 1.0).abs() < 1e-12, "{field}: {found} {expected}");
        }
        snapshot.header.fields = FieldSet::without_gas();
        snapshot.state.fluid.clear();
        assert_eq!((densest(&snapshot).position, densest(&snapshot).matter_density()), (found.position, 1e6));
        assert!((mass(&snapshot, "matter_density") / added - 1.0).abs() < 1e-12);
    }
}

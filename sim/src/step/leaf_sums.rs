//! Conserved sums and extreme densities over the leaves, the same bits on any number of ranks and threads.

use crate::parallel::Communicator;
use crate::parallel::exact_sum::ExactSum;
use crate::records::Sums;
use crate::state::State;
use comove_kernels::totals::GroupTotals;
use comove_kernels::{Deferred, Real, density_range};
use rayon::prelude::*;

/// Groups whose sums one thread adds up.
const GROUPS_AT_ONCE: usize = 1024;

/// The range of no densities.
const NO_DENSITY: [f64; 2] = [f64::INFINITY, 0.0];

fn wider(one: [f64; 2], other: [f64; 2]) -> [f64; 2] {
    [one[0].min(other[0]), one[1].max(other[1])]
}

/// Conserved sums and density range of the gas over the leaves; zeros without gas.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LeafSums {
    /// Mass, momentum, energies.
    pub sums: Sums,
    /// Smallest and largest density.
    pub density: [f64; 2],
}

/// Smallest and largest density of all matter over the leaves of all levels, which are at one time, and ranks: collective.
///
/// * `gas`: the range of the gas, which is all matter where there is no dark matter
pub(crate) fn matter_range<T: Real>(state: &mut State<T>, gas: [f64; 2]) -> [f64; 2] {
    let levels = state.level_count();
    if state.find_matter_density(0..levels).is_none() {
        return gas;
    }
    let State { device, mesh, dark_matter: Some(dark_matter), exchange, .. } = state else { return gas };
    // all levels are at work before the first is waited for
    let of_level = |tables| density_range(device, tables, dark_matter.density());
    let of_levels: Vec<_> = mesh.tables.iter().map(of_level).collect();
    let range = of_levels.into_iter().flat_map(Deferred::wait).fold(NO_DENSITY, wider);
    reduced(range, &exchange.communicator)
}

/// The range of all ranks: collective.
fn reduced([least, most]: [f64; 2], communicator: &Communicator) -> [f64; 2] {
    [-communicator.max(-least), communicator.max(most)]
}

/// Sums over the leaves of all levels and ranks, the same bits in any order of groups: collective.
pub fn leaf_sums<T: Real>(state: &State<T>) -> LeafSums {
    leaf_sums_from(state, 0)
}

/// The same over the leaves of level `from` and finer ones.
pub(crate) fn leaf_sums_from<T: Real>(state: &State<T>, from: usize) -> LeafSums {
    let mut exact: [ExactSum; 6] = Default::default();
    let mut density = NO_DENSITY;
    for level in from..state.level_count() {
        let volume = state.cell_width(level).powi(3);
        let Some(gas) = &state.gas else { break };
        let groups = gas.totals(&state.device, &state.mesh.tables[level]);
        // exact sums, and extremes, are the same in any order
        let of_some = |groups: &[GroupTotals]| {
            let mut exact: [ExactSum; 6] = Default::default();
            let mut density = NO_DENSITY;
            for g in groups.iter().filter(|g| g.cells > 0) {
                let [x, y, z] = g.momentum;
                for (sum, value) in exact.iter_mut().zip([g.mass, x, y, z, g.kinetic, g.energy]) {
                    sum.add(value * volume);
                }
                density = wider(density, [g.density_min, g.density_max]);
            }
            (exact, density)
        };
        for (sums, range) in groups.par_chunks(GROUPS_AT_ONCE).map(of_some).collect::<Vec<_>>() {
            exact.iter_mut().zip(sums).for_each(|(sum, part)| *sum += part);
            density = wider(density, range);
        }
    }
    ExactSum::reduce(exact.iter_mut(), &state.exchange.communicator);
    if state.gas.is_none() {
        density[0] = 0.0;
    }
    let density = reduced(density, &state.exchange.communicator);
    let [mass, x, y, z, kinetic, energy] = exact.map(ExactSum::value);
    LeafSums { sums: Sums { mass, momentum: [x, y, z], kinetic, energy }, density }
}

//! A passive scalar of a starting state from a formula for its mass fraction.

use crate::error::IcError;
use comove_sim::HostState;
use comove_sim::Key;
use comove_sim::kernels::layout::{DENSITY, GROUP, GROUP_CELLS, GROUP_VALUES, cell, cell_coordinate};
use comove_sim::kernels::point::symmetric_sum;
use rayon::prelude::*;

/// The density ρX of a scalar on the octree of a state, `[groups, 16, 16, 16]`: X by the formula at the centres of leaf
/// cells, means of these in patches that have children. Of several groups that fail, the first in key order is named.
///
/// * `cell_width`: of the root level, code length
///
/// # Errors
/// What the formula says; [`IcError::Gas`] where it gives what no mass fraction can be.
pub fn scalar_state<E: From<IcError> + Send>(
    state: &HostState,
    cell_width: f64,
    fraction: &(dyn Fn([f64; 3]) -> Result<f64, E> + Sync),
) -> Result<Vec<f64>, E> {
    let tree = &state.tree;
    let keys: Vec<Key> = tree.keys().collect();
    let group = |(group, key): (usize, &Key)| -> Result<Vec<f64>, E> {
        let width = cell_width / f64::from(1u32 << key.level);
        let leaves = tree.leaves(*key);
        let density = &state.fluid[group * GROUP_VALUES + DENSITY * GROUP_CELLS..][..GROUP_CELLS];
        let value = |c: usize| {
            let at = cell_coordinate(c);
            let octant = (0..3).map(|a| (at[a] / (GROUP / 2)) << a).sum::<usize>();
            if leaves >> octant & 1 == 0 {
                return Ok(0.0);
            }
            let x = [0, 1, 2].map(|a| (f64::from(key.coordinate[a]) * GROUP as f64 + at[a] as f64 + 0.5) * width);
            match fraction(x)? {
                value if (0.0..=1.0).contains(&value) => Ok(value * density[c]),
                value => Err(IcError::Gas { field: "mass fraction", value, position: x, width }.into()),
            }
        };
        (0..GROUP_CELLS).map(value).collect()
    };
    let groups: Vec<Result<Vec<f64>, E>> = keys.par_iter().enumerate().map(group).collect();
    let mut scalar = groups.into_iter().collect::<Result<Vec<_>, E>>()?.concat();
    // finest first: keys are in order of levels
    for (group, key) in keys.iter().enumerate().rev() {
        let Some(parent) = key.parent().and_then(|parent| tree.index(parent)) else { break };
        let first = key.coordinate.map(|c| (c as usize & 1) * GROUP / 2);
        for c in 0..GROUP_CELLS / 8 {
            let [i, j, k] = [c % 8, c / 8 % 8, c / 64];
            let fine = std::array::from_fn(|o| {
                scalar[group * GROUP_CELLS + cell(2 * i + (o & 1), 2 * j + (o >> 1 & 1), 2 * k + (o >> 2))]
            });
            let to = parent * GROUP_CELLS + cell(first[0] + i, first[1] + j, first[2] + k);
            scalar[to] = 0.125 * symmetric_sum::of_cube(fine);
        }
    }
    Ok(scalar)
}

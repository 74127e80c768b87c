//! From flags to the tree they ask for.

use crate::octree::{Key, Octree, nest};
use crate::parameters::{Criterion, RunParameters};
use crate::state::State;
use comove_kernels::Real;
use comove_kernels::flag::{FlagCriteria, flag};
use comove_kernels::layout::{OCTANTS, offset};
use std::collections::BTreeSet;

/// The criteria of one level; `None` where nothing can flag there.
pub fn level_criteria<T: Real>(criteria: &[Criterion], level: usize) -> Option<FlagCriteria<T>> {
    let lowest = criteria
        .iter()
        .filter_map(|Criterion::DensityAbove { thresholds }| thresholds.get(level).copied())
        .reduce(f64::min)?;
    Some(FlagCriteria { density_above: T::of(lowest) })
}

/// Flags all levels of a state and derives the tree they ask for.
pub fn wanted<T: Real>(state: &State<T>, parameters: &RunParameters) -> Octree {
    let max_level = usize::from(parameters.max_level);
    let masks: Vec<Vec<u32>> = (0..state.level_count().min(max_level))
        .map(|level| {
            let tables = &state.tables[level];
            let mut masks = vec![0; tables.len() * OCTANTS];
            if let Some(criteria) = level_criteria::<T>(&parameters.refine, level) {
                flag(&state.device, tables, &state.fluid, &criteria, parameters.flag_buffer as usize, &mut masks);
            }
            masks
        })
        .collect();
    wanted_tree(&state.tree, &masks, max_level)
}

/// The tree that flags ask for: the children of flagged and buffer patches, and what proper nesting needs around them.
/// Flagged fine data is never dropped, because nesting adds coarse groups instead of removing fine ones.
///
/// * `masks`: per level, per group and octant, as [`comove_kernels::flag::flag`] gives them; levels from `max_level` on
///   are ignored.
pub fn wanted_tree(tree: &Octree, masks: &[Vec<u32>], max_level: usize) -> Octree {
    let mut wanted: Vec<BTreeSet<Key>> = vec![BTreeSet::new(); max_level + 1];
    for level in 0..max_level.min(masks.len()) {
        let mut positions = Vec::new();
        for (g, &key) in tree.level(level).iter().enumerate() {
            for o in 0..OCTANTS {
                insert_flagged(tree, key.child(o), masks[level][g * OCTANTS + o], &mut positions);
            }
        }
        // a patch is asked for by up to 27 patches: sorted as numbers before they become keys
        positions.sort_unstable();
        positions.dedup();
        wanted[level + 1].extend(positions.into_iter().map(|m| Key::from_morton(level as u8 + 1, m)));
    }
    let wanted = nest(tree.root_groups(), tree.boundary(), wanted);
    Octree::with_groups(tree.root_groups(), tree.boundary(), wanted.into_iter().skip(1).flatten())
}

/// Adds the Morton positions of the group that refines a flagged patch and of those its buffer reaches.
fn insert_flagged(tree: &Octree, child: Key, mask: u32, positions: &mut Vec<u64>) {
    let mut rest = mask;
    while rest != 0 {
        let direction = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        positions.extend(tree.neighbour(child, offset(direction)).map(|key| key.morton()));
    }
}

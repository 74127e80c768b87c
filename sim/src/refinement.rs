//! From flags to the tree they ask for, and to it.

use crate::book::{Book, leaf_sums_from};
use crate::error::SimError;
use crate::octree::{Key, Octree, clip, nest};
use crate::parameters::{Criterion, RunParameters};
use crate::state::State;
use crate::step::Physics;
use comove_kernels::Real;
use comove_kernels::flag::{self, FlagCriteria};
use comove_kernels::layout::{OCTANTS, offset};
use std::collections::BTreeSet;
use std::time::Instant;

/// The coarsest level from `from` on that has taken `regrid_every` steps since the levels finer than it were decided.
pub fn due<T: Real>(state: &State<T>, parameters: &RunParameters, from: usize) -> Option<usize> {
    let refined = state.level_count().min(usize::from(parameters.max_level));
    (from..refined).find(|&level| state.steps_since_regrid[level] >= parameters.regrid_every)
}

/// Decides anew on the levels finer than `level`, which must be at the time of all of them; whether the tree changed.
///
/// # Errors
/// As [`State::adopt_tree`].
pub fn regrid<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    level: usize,
    book: &mut Book,
) -> Result<bool, SimError> {
    let started = Instant::now();
    state.steps_since_regrid[level..].fill(0);
    let tree = wanted(state, &physics.parameters, level);
    let changed = tree != state.tree;
    if changed {
        let before = leaf_sums_from(state, level).sums.energy;
        state.adopt_tree(tree, &physics.eos)?;
        book.add_regrid(leaf_sums_from(state, level).sums.energy - before);
    }
    book.timing.regrid += started.elapsed().as_secs_f64();
    Ok(changed)
}

/// Flags `from` and all finer levels and derives the tree they ask for.
pub fn wanted<T: Real>(state: &State<T>, parameters: &RunParameters, from: usize) -> Octree {
    let max_level = usize::from(parameters.max_level);
    let masks: Vec<Vec<u32>> = (0..state.level_count().min(max_level))
        .map(|level| {
            let tables = &state.tables[level];
            let mut masks = vec![0; tables.len() * OCTANTS];
            if let Some(criteria) = level_criteria::<T>(&parameters.refine, level).filter(|_| level >= from) {
                let buffer = parameters.flag_buffer as usize;
                flag::flag(&state.device, tables, &state.fluid, &criteria, buffer, &mut masks);
            }
            masks
        })
        .collect();
    wanted_tree(&state.tree, &masks, max_level, from)
}

/// The criteria of one level; `None` where nothing can flag there.
pub fn level_criteria<T: Real>(criteria: &[Criterion], level: usize) -> Option<FlagCriteria<T>> {
    let lowest = criteria
        .iter()
        .filter_map(|Criterion::DensityAbove { thresholds }| thresholds.get(level).copied())
        .reduce(f64::min)?;
    Some(FlagCriteria { density_above: T::of(lowest) })
}

/// The tree that flags ask for: the children of flagged and buffer patches, and what proper nesting needs around them.
/// Flagged fine data is never dropped, because nesting adds coarse groups instead of removing fine ones; but the levels
/// up to `kept` stay as they are, and what does not nest in them has to wait for their own turn.
///
/// * `masks`: per level, per group and octant, as [`comove_kernels::flag::flag`] gives them; levels below `kept` and
///   from `max_level` on are ignored.
pub fn wanted_tree(tree: &Octree, masks: &[Vec<u32>], max_level: usize, kept: usize) -> Octree {
    let mut wanted: Vec<BTreeSet<Key>> = vec![BTreeSet::new(); max_level + 1];
    for level in kept..max_level.min(masks.len()) {
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
    let mut wanted = nest(tree.root_groups(), tree.periodic(), wanted);
    clip(tree, kept, &mut wanted);
    Octree::with_groups(tree.root_groups(), tree.periodic(), wanted.into_iter().skip(1).flatten())
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

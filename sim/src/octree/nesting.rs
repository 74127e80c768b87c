//! Proper nesting: which groups must exist so that the wanted ones may.

use super::key::Key;
use super::tree::Octree;
use comove_kernels::layout::{DIRECTIONS, offset};
use std::collections::BTreeSet;

/// Adds to the wanted groups those that proper nesting asks for, from fine to coarse.
///
/// `wanted[ℓ]` holds groups of level ℓ; entry 0 may be empty, since the root level is complete anyway. For every wanted
/// group of level ℓ+1, the groups of level ℓ that hold its parent patch and the 26 neighbours of that patch are wanted
/// too, so no two leaf patches that touch, even at a corner, are more than one level apart. Nothing is ever taken away.
///
/// The result has the same number of levels; its levels 1 and finer make an [`Octree`] through
/// [`Octree::with_groups`].
pub fn nest(root: [u32; 3], periodic: [bool; 3], mut wanted: Vec<BTreeSet<Key>>) -> Vec<BTreeSet<Key>> {
    let lattice = Octree::new(root, periodic);
    for level in (2..wanted.len()).rev() {
        // A group's coordinate is that of its parent patch, counted in patches of the coarser level, so the neighbours of
        // the parent patch are the parents of the group's own neighbours. They are many and mostly the same: sorted as
        // numbers first.
        let parent = |key: &Key, offset| lattice.neighbour(*key, offset).and_then(|patch| patch.parent());
        let mut needed: Vec<u64> = wanted[level]
            .iter()
            .flat_map(|key| surrounding().filter_map(move |offset| parent(key, offset)))
            .map(|key| key.morton())
            .collect();
        needed.sort_unstable();
        needed.dedup();
        wanted[level - 1].extend(needed.into_iter().map(|m| Key::from_morton(level as u8 - 1, m)));
    }
    wanted
}

/// Takes away the wanted groups that do not nest in a tree whose levels up to `kept` stay as they are: from coarse to
/// fine, every group whose parent patch or one of its 26 neighbours would be missing. Wanted groups of level `kept` and
/// coarser ones are replaced by those of the tree.
pub fn clip(tree: &Octree, kept: usize, wanted: &mut [BTreeSet<Key>]) {
    for level in 1..wanted.len() {
        let (coarser, finer) = wanted.split_at_mut(level);
        if level <= kept {
            finer[0] = tree.level(level).iter().copied().collect();
        } else if level > 1 {
            let exists = |patch: Key| patch.parent().is_some_and(|group| coarser[level - 1].contains(&group));
            finer[0].retain(|&key| surrounding().filter_map(|offset| tree.neighbour(key, offset)).all(exists));
        }
    }
}

/// The 27 offsets (dx, dy, dz) of −1, 0, 1.
fn surrounding() -> impl Iterator<Item = [i32; 3]> {
    (0..DIRECTIONS).map(offset)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::octree::{CLOSED, PERIODIC};
    use proptest::prelude::*;

    fn keys(level: u8, coordinates: &[[u32; 3]]) -> BTreeSet<Key> {
        coordinates.iter().map(|&c| Key::new(level, c)).collect()
    }

    /// A patch in the middle of its group asks for one group only where its neighbours stay inside; at a corner of the
    /// box the neighbours wrap around or do not exist.
    #[test]
    fn a_corner_group_wraps_around_periodic_boundaries_only() {
        let wanted = vec![BTreeSet::new(), BTreeSet::new(), keys(2, &[[0, 0, 0]])];
        let closed = nest([2, 2, 2], CLOSED, wanted.clone());
        assert_eq!(closed[1], keys(1, &[[0, 0, 0]]));
        let around = nest([2, 2, 2], PERIODIC, wanted);
        let corners: Vec<[u32; 3]> =
            (0..8).map(|o| [0, 1, 2].map(|axis| if o >> axis & 1 == 1 { 3 } else { 0 })).collect();
        assert_eq!(around[1], keys(1, &corners));
    }

    proptest! {
        /// What is left nests in the levels that stay, nothing is added, and what nested before stays.
        #[test]
        fn clipped_sets_nest_in_what_stays(
            coarse in prop::collection::vec([0u32..8, 0u32..8, 0u32..8], 1..8),
            fine in prop::collection::vec([0u32..16, 0u32..16, 0u32..16], 1..24),
            finest in prop::collection::vec([8u32..24, 8u32..24, 8u32..24], 1..24),
        ) {
            for boundary in [PERIODIC, CLOSED] {
                // a tree of levels 0–2 that stays to level 2 or to level 1
                let sets = vec![BTreeSet::new(), BTreeSet::new(), keys(2, &coarse)];
                let sets = nest([2, 2, 2], boundary, sets);
                let tree = Octree::with_groups([2, 2, 2], boundary, sets.into_iter().flatten());
                for kept in [1, 2] {
                    let refined = [keys(2, &coarse), keys(3, &fine), keys(4, &finest)];
                    let wanted = [BTreeSet::new(), BTreeSet::new()].into_iter().chain(refined).collect();
                    let nested = nest([2, 2, 2], boundary, wanted);
                    let mut clipped = nested.clone();
                    clip(&tree, kept, &mut clipped);
                    for level in 1..=kept {
                        prop_assert!(clipped[level].iter().eq(tree.level(level)));
                    }
                    let after = Octree::with_groups([2, 2, 2], boundary, clipped.iter().flatten().copied());
                    for level in kept + 1..=4 {
                        for &key in &nested[level] {
                            let nests = |key: Key| surrounding()
                                .filter_map(|offset| after.neighbour(key, offset))
                                .all(|patch| after.find(patch.parent().unwrap()).is_some());
                            prop_assert_eq!(clipped[level].contains(&key), nests(key), "{:?}", key);
                        }
                        prop_assert!(clipped[level].is_subset(&nested[level]));
                    }
                }
            }
        }

        /// Every wanted group stays, has its parent, and every neighbour of its parent patch exists as a patch.
        #[test]
        fn nested_sets_are_closed(coordinates in prop::collection::vec([0u32..16, 0u32..16, 0u32..16], 1..12)) {
            for periodic in [PERIODIC, CLOSED, [true, false, false]] {
                let mut wanted = vec![BTreeSet::new(); 4];
                wanted[3] = keys(3, &coordinates);
                let nested = nest([2, 2, 2], periodic, wanted.clone());
                prop_assert!(nested[3] == wanted[3]);
                let tree = Octree::with_groups([2, 2, 2], periodic, nested.iter().flatten().copied());
                for key in tree.keys().filter(|key| key.level > 0) {
                    for offset in surrounding() {
                        let patch = tree.neighbour(key, offset);
                        prop_assert!(patch.is_none_or(|p| tree.find(p.parent().unwrap()).is_some()));
                    }
                }
                prop_assert!(nest([2, 2, 2], periodic, nested.clone()) == nested);
            }
        }
    }
}

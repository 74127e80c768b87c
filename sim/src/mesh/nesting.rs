//! Proper nesting: which groups must exist so that the wanted ones may.

use crate::mesh::key::Key;
use crate::mesh::tree::Octree;
use comove_kernels::layout::{DIRECTIONS, OCTANTS, direction, offset};
use rayon::prelude::*;

/// Adds to the wanted groups those that proper nesting needs, from fine to coarse.
///
/// `wanted[ℓ]` holds groups of level ℓ in any order; entry 0 may be empty, since the root level is complete anyway. For
/// every wanted group of level ℓ+1, the groups of level ℓ that hold its parent patch and the 26 neighbours of that patch
/// are wanted too, so no two leaf patches that touch, even at a corner, are more than one level apart. Nothing is ever
/// taken away.
///
/// The result has the same number of levels, each in key order without duplicates; its levels 1 and finer make an
/// [`Octree`] through [`Octree::with_groups`].
pub fn nest(root: [u32; 3], periodic: [bool; 3], wanted: Vec<Vec<Key>>) -> Vec<Vec<Key>> {
    nest_above(0, root, periodic, wanted)
}

/// The same for the levels finer than `kept` alone: nothing is added to that level and coarser ones.
pub fn nest_above(kept: usize, root: [u32; 3], periodic: [bool; 3], mut wanted: Vec<Vec<Key>>) -> Vec<Vec<Key>> {
    let lattice = Octree::share(root, periodic, Vec::new());
    for level in (kept + 1..wanted.len()).rev() {
        wanted[level] = Key::sorted(level as u8, &wanted[level]);
        let (coarser, finer) = wanted.split_at_mut(level);
        if level > kept + 1 {
            let around = |family: &Family| family.groups_around(&lattice).map(|(_, group)| group).collect::<Vec<_>>();
            coarser[level - 1].par_extend(families(&finer[0]).par_iter().flat_map_iter(around));
        }
    }
    wanted
}

/// Takes away the wanted groups that do not nest in a tree whose levels up to `kept` stay as they are: from coarse to
/// fine, every group whose parent patch or one of its 26 neighbours would be missing. Wanted groups of level `kept` and
/// coarser ones are replaced by those of the tree. Every level is in key order without duplicates, and nests in the next
/// coarser one but for that.
pub fn clip(tree: &Octree, kept: usize, wanted: &mut [Vec<Key>]) {
    // in a complete root everything nests
    for level in 1..if kept == 0 { 0 } else { wanted.len() } {
        let (coarser, finer) = wanted.split_at_mut(level);
        let (coarser, finer) = (&coarser[level - 1], &mut finer[0]);
        if level <= kept {
            *finer = tree.level(level).to_vec();
        } else if level > 1 {
            let nested = |family: &Family| {
                let missing = |(_, group): &(usize, Key)| coarser.binary_search(group).is_err();
                let missing = family.groups_around(tree).filter(missing).fold(0, |bits, (d, _)| bits | 1 << d);
                family.nested(finer, missing).collect::<Vec<Key>>()
            };
            *finer = families(finer).par_iter().flat_map_iter(nested).collect();
        }
    }
}

/// By octant, the groups in and around which its patch and the patch's 26 neighbours are: bits by
/// [`comove_kernels::layout::direction`].
pub(crate) const AROUND: [u32; OCTANTS] = {
    let mut masks = [0; OCTANTS];
    let mut n = 0;
    while n < OCTANTS * OCTANTS {
        let (octant, towards) = (n / OCTANTS, n % OCTANTS);
        let mut step = [0; 3];
        let mut axis = 0;
        while axis < 3 {
            let side = if octant >> axis & 1 == 1 { 1 } else { -1 };
            step[axis] = if towards >> axis & 1 == 1 { side } else { 0 };
            axis += 1;
        }
        masks[octant] |= 1 << direction(step[0], step[1], step[2]);
        n += 1;
    }
    masks
};

/// Groups that refine patches of one group of the coarser level.
pub(crate) struct Family {
    parent: Key,
    /// Where they stand in their list.
    members: std::ops::Range<usize>,
    /// The groups that they need around their parent, itself included: bits by direction.
    needs: u32,
}

impl Family {
    /// The groups that they need, with their directions from the parent; none beyond a boundary that is not periodic.
    pub(crate) fn groups_around<'a>(&'a self, lattice: &'a Octree) -> impl Iterator<Item = (usize, Key)> + 'a {
        let needed = (0..DIRECTIONS).filter(|d| self.needs >> d & 1 == 1);
        needed.filter_map(|d| lattice.neighbour(self.parent, offset(d)).map(|group| (d, group)))
    }

    /// Those of its members, in their list, that nest although groups around their parent are missing (bits by direction).
    pub(crate) fn nested(&self, keys: &[Key], missing: u32) -> impl Iterator<Item = Key> {
        keys[self.members.clone()].iter().copied().filter(move |key| AROUND[key.octant()] & missing == 0)
    }
}

/// The families of a level's groups, which are in key order.
pub(crate) fn families(keys: &[Key]) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for (n, key) in keys.iter().enumerate() {
        let parent = key.parent().expect("a refined level has parents");
        match families.last_mut().filter(|last| last.parent == parent) {
            Some(last) => {
                last.members.end = n + 1;
                last.needs |= AROUND[key.octant()];
            }
            None => families.push(Family { parent, members: n..n + 1, needs: AROUND[key.octant()] }),
        }
    }
    families
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{CLOSED, PERIODIC};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn keys(level: u8, coordinates: &[[u32; 3]]) -> Vec<Key> {
        coordinates.iter().map(|&c| Key::new(level, c)).collect::<BTreeSet<Key>>().into_iter().collect()
    }

    fn surrounding() -> impl Iterator<Item = [i32; 3]> {
        (0..DIRECTIONS).map(offset)
    }

    /// A patch in the middle of its group needs one group only where its neighbours stay inside; at a corner of the
    /// box the neighbours wrap around or do not exist.
    #[test]
    fn a_corner_group_wraps_around_periodic_boundaries_only() {
        let wanted = vec![Vec::new(), Vec::new(), keys(2, &[[0, 0, 0]])];
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
                let sets = vec![Vec::new(), Vec::new(), keys(2, &coarse)];
                let sets = nest([2, 2, 2], boundary, sets);
                let tree = Octree::with_groups([2, 2, 2], boundary, sets.into_iter().flatten());
                for kept in [1, 2] {
                    let refined = [keys(2, &coarse), keys(3, &fine), keys(4, &finest)];
                    let wanted = [Vec::new(), Vec::new()].into_iter().chain(refined).collect();
                    let nested = nest([2, 2, 2], boundary, wanted);
                    let mut clipped = nested.clone();
                    clip(&tree, kept, &mut clipped);
                    for level in 1..=kept {
                        prop_assert!(clipped[level] == tree.level(level));
                    }
                    let after = Octree::with_groups([2, 2, 2], boundary, clipped.iter().flatten().copied());
                    for level in kept + 1..=4 {
                        for &key in &nested[level] {
                            let nests = |key: Key| surrounding()
                                .filter_map(|offset| after.neighbour(key, offset))
                                .all(|patch| after.find(patch.parent().unwrap()).is_some());
                            prop_assert_eq!(clipped[level].contains(&key), nests(key), "{:?}", key);
                        }
                        prop_assert!(clipped[level].iter().all(|key| nested[level].contains(key)));
                    }
                }
            }
        }

        /// Every wanted group stays, has its parent, and every neighbour of its parent patch exists as a patch.
        #[test]
        fn nested_sets_are_closed(coordinates in prop::collection::vec([0u32..16, 0u32..16, 0u32..16], 1..12)) {
            for periodic in [PERIODIC, CLOSED, [true, false, false]] {
                let mut wanted = vec![Vec::new(); 4];
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

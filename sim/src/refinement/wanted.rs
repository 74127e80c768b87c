//! The tree that flags ask for, decided by all ranks together, each for what it owns.

use crate::mesh::nesting::{Family, families};
use crate::mesh::{Key, Octree};
use crate::parallel::communicator::Communicator;
use crate::parallel::keys::{exchange_keys, route};
use crate::parallel::owners::Owners;
use comove_kernels::layout::{DIRECTIONS, OCTANTS};
use rayon::prelude::*;

/// Groups whose flags one thread collects.
const GROUPS_AT_ONCE: usize = 256;

/// The own part of what [`crate::refinement::wanted_tree`] gives for the whole tree: collective. Levels that no rank has
/// groups of are dropped.
///
/// * `own`, `masks`: as there, of own groups
pub(super) fn wanted_share(
    communicator: &Communicator,
    owners: &Owners,
    own: &Octree,
    masks: &[Vec<u32>],
    max_level: usize,
    kept: usize,
) -> Octree {
    let flagged = (kept..max_level.min(masks.len())).flat_map(|level| flagged_children(own, level, &masks[level]));
    let mut wanted = vec![Vec::new(); max_level + 1];
    wanted[..=kept.min(max_level)].iter_mut().enumerate().for_each(|(level, keys)| *keys = own.level(level).to_vec());
    let take = |wanted: &mut [Vec<Key>], keys: Vec<Key>| {
        for key in route(communicator, owners, keys) {
            wanted[usize::from(key.level)].push(key);
        }
    };
    take(&mut wanted, flagged.collect());
    for level in (kept + 1..=max_level).rev() {
        wanted[level] = Key::sorted(level as u8, &wanted[level]);
        if level > kept + 1 {
            let around = |family: &Family| family.groups_around(own).map(|(_, key)| key).collect::<Vec<_>>();
            let around: Vec<Key> = families(&wanted[level]).par_iter().flat_map_iter(around).collect();
            take(&mut wanted, Key::sorted(level as u8 - 1, &around));
        }
    }
    // in a complete root everything nests
    for level in kept + 1..if kept == 0 { 0 } else { max_level + 1 } {
        let (coarser, finer) = wanted.split_at_mut(level);
        let families = families(&finer[0]);
        let present = present(communicator, owners, own, &coarser[level - 1], &families);
        let nested = |(family, missing): (&Family, u32)| family.nested(&finer[0], missing).collect::<Vec<Key>>();
        finer[0] = families.iter().zip(present).flat_map(nested).collect();
    }
    let mut groups: Vec<u64> = wanted.iter().map(|keys| keys.len() as u64).collect();
    communicator.sum(&mut groups);
    let levels = groups.iter().take_while(|&&groups| groups > 0).count();
    wanted.truncate(levels);
    Octree::share(own.root_groups(), own.periodic(), wanted)
}

/// For each family, the groups that it needs and that do not exist, by direction from its parent.
///
/// * `coarser`: the own groups of the coarser level, in key order
fn present(
    communicator: &Communicator,
    owners: &Owners,
    lattice: &Octree,
    coarser: &[Key],
    families: &[Family],
) -> Vec<u32> {
    let mut asked = vec![Vec::new(); communicator.size()];
    let mut whom = Vec::new();
    let not_own = |(n, family): (usize, &Family)| {
        let absent = family.groups_around(lattice).filter(|(_, key)| coarser.binary_search(key).is_err());
        absent.map(|(direction, key)| (n, direction, key, owners.of(key))).collect::<Vec<_>>()
    };
    let not_own: Vec<_> = families.par_iter().enumerate().flat_map_iter(not_own).collect();
    for (n, direction, key, owner) in not_own {
        whom.push((n, direction, owner, asked[owner].len()));
        asked[owner].push(key);
    }
    let answer = |keys: &Vec<Key>| keys.iter().map(|key| u8::from(coarser.binary_search(key).is_ok())).collect();
    let answers = exchange_keys(communicator, &asked).iter().map(answer).collect();
    let answers = communicator.exchange(answers);
    let mut missing = vec![0; families.len()];
    for (n, direction, owner, at) in whom {
        if answers[owner][at] == 0 {
            missing[n] |= 1 << direction;
        }
    }
    missing
}

/// The groups that refine the flagged patches of a level and those that their buffers reach, in key order.
pub fn flagged_children(tree: &Octree, level: usize, masks: &[u32]) -> Vec<Key> {
    let of_group = |(&key, masks): (&Key, &[u32])| {
        let children = children_around(masks.try_into().expect("a group has eight patches"));
        let first = key.child(0);
        let flagged = (0..64).filter(move |n| children >> n & 1 == 1);
        flagged.filter_map(move |n| tree.neighbour(first, [n & 3, n >> 2 & 3, n >> 4].map(|c| c - 1)))
    };
    let groups = tree.level(level).par_iter().zip(masks.par_chunks_exact(OCTANTS)).with_min_len(GROUPS_AT_ONCE);
    // a patch is asked for by the groups around it
    Key::sorted(level as u8 + 1, &groups.flat_map_iter(of_group).collect::<Vec<Key>>())
}

/// The patches that a group's eight masks ask for, in and around the group: bit x + 4 y + 16 z for the patch at
/// (x − 1, y − 1, z − 1), counted from the group's first one.
fn children_around(masks: &[u32; OCTANTS]) -> u64 {
    let mut asked = 0;
    for (octant, &mask) in masks.iter().enumerate().filter(|(_, mask)| **mask != 0) {
        for row in 0..DIRECTIONS / 3 {
            let (y, z) = (row % 3 + (octant >> 1 & 1), row / 3 + (octant >> 2));
            asked |= u64::from(mask >> (3 * row) & 7) << (octant & 1) << (4 * y + 16 * z);
        }
    }
    asked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::{CLOSED, PERIODIC, nest};
    use crate::parallel::on_ranks;
    use crate::refinement::wanted_tree;
    use comove_kernels::layout::OCTANTS;
    use proptest::prelude::*;

    /// What a rank owns of a tree.
    fn share(tree: &Octree, owners: &Owners, rank: usize) -> Octree {
        let own = |level: usize| tree.level(level).iter().copied().filter(|&key| owners.of(key) == rank).collect();
        Octree::share(tree.root_groups(), tree.periodic(), (0..tree.level_count()).map(own).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Ranks together want what one wants, whoever owns what, also where coarse levels stay.
        #[test]
        fn shares_make_the_whole(
            coarse in prop::collection::vec([0u32..12, 0u32..8, 0u32..8], 1..6),
            fine in prop::collection::vec([0u32..24, 0u32..16, 0u32..16], 0..6),
            flags in prop::collection::vec((0usize..3, 0usize..400, any::<u32>()), 0..12),
            (ranks, seed) in (2usize..5, 0u64..3),
        ) {
            for periodic in [PERIODIC, CLOSED] {
                let sets = [
                    vec![Vec::new(), Vec::new()],
                    vec![coarse.iter().map(|&c| Key::new(2, c)).collect()],
                    vec![fine.iter().map(|&c| Key::new(3, c)).collect()],
                ];
                let nested = nest([3, 2, 2], periodic, sets.concat());
                let tree = Octree::with_groups([3, 2, 2], periodic, nested.into_iter().skip(1).flatten());
                let mut masks: Vec<Vec<u32>> =
                    (0..tree.level_count().min(3)).map(|level| vec![0; tree.level(level).len() * OCTANTS]).collect();
                for &(level, patch, mask) in &flags {
                    if let Some(masks) = masks.get_mut(level) {
                        let patches = masks.len();
                        masks[patch % patches] |= mask >> 5;
                    }
                }
                let owners = match seed {
                    0 => Owners::even(ranks, [3, 2, 2]),
                    seed => Owners::scattered(ranks, [3, 2, 2], seed),
                };
                for kept in 0..2 {
                    let expected = wanted_tree(&tree, &masks, 3, kept);
                    let wanted = on_ranks(ranks, |communicator| {
                        let own = share(&tree, &owners, communicator.rank());
                        let masks_of = |level: usize| {
                            let places = own.level(level).iter().map(|key| tree.find(*key).unwrap());
                            places.flat_map(|g| masks[level][g * OCTANTS..][..OCTANTS].to_vec()).collect()
                        };
                        let masks: Vec<Vec<u32>> = (0..masks.len()).map(masks_of).collect();
                        wanted_share(&communicator, &owners, &own, &masks, 3, kept)
                    });
                    for (rank, wanted) in wanted.iter().enumerate() {
                        prop_assert_eq!(wanted, &share(&expected, &owners, rank), "rank {} of {}", rank, ranks);
                    }
                }
            }
        }
    }
}

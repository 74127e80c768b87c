//! The groups of a whole tree, block by block between the first rank and their owners.
//!
//! A file holds one field after the other, each in key order. The first rank has it open; for each block of so many groups
//! it receives, or sends, what their owners have, or are to have. So it knows whose each group is, and never has more of
//! others' cells than a few blocks.

use super::agree::agree;
use super::communicator::Communicator;
use super::owners::Owners;
use super::scatter::FIRST;
use super::wanted::{packed, unpacked};
use crate::error::SimError;
use crate::octree::{Key, Octree};
use bytemuck::Pod;
use comove_kernels::layout::GROUP_CELLS;
use std::ops::Range;

/// Groups of a block: 16 MiB of a field in single precision. Chunks of a file do not cross blocks.
pub const GROUPS: usize = 1024;

/// Of messages of blocks.
const TAG: u32 = 2;

/// Who has which groups of each block.
pub struct Blocks {
    /// This rank's own groups of each block, as places among its own in key order.
    own: Vec<Range<usize>>,
    /// The owner of each group of the whole tree in key order, block by block; empty but on the first rank.
    owners: Vec<Vec<u32>>,
}

/// A field of a block's groups, `[groups, 4096]` in key order, by the rank that owns them.
type Parts<T> = Vec<Vec<T>>;

impl Blocks {
    /// Blocks of `length` groups of the tree that ranks share, and on the first rank the whole tree. Collective.
    ///
    /// * `own`: this rank's groups
    pub fn of_shares(communicator: &Communicator, own: &Octree, length: usize) -> (Self, Option<Octree>) {
        let keys: Vec<[u32; 4]> = own.keys().map(packed).collect();
        let of_ranks = communicator.gather(FIRST, bytemuck::cast_slice(&keys).to_vec());
        let whole = of_ranks.map(|of_ranks| {
            let keys_of = |(rank, keys): (usize, &Vec<u8>)| {
                let keys: Vec<[u32; 4]> = bytemuck::pod_collect_to_vec(keys);
                keys.into_iter().map(move |key| (unpacked(key), rank as u32))
            };
            let mut all: Vec<(Key, u32)> = of_ranks.iter().enumerate().flat_map(keys_of).collect();
            all.sort_unstable();
            let levels = all.chunk_by(|(x, _), (y, _)| x.level == y.level);
            let levels = levels.map(|groups| groups.iter().map(|(key, _)| *key).collect()).collect();
            let tree = Octree::share(own.root_groups(), own.periodic(), levels);
            (tree, all.into_iter().map(|(_, rank)| rank).collect())
        });
        let (tree, owners) = whole.unzip();
        (Self::cut(communicator, own, tree.as_ref(), owners.unwrap_or_default(), length), tree)
    }

    /// Blocks of `length` groups of a tree that the first rank has and these ranks own. Collective.
    ///
    /// * `own`: this rank's groups of it; `whole`: the tree, on the first rank
    pub fn of_whole(
        communicator: &Communicator,
        own: &Octree,
        whole: Option<&Octree>,
        owners: &Owners,
        length: usize,
    ) -> Self {
        let ranks = whole.iter().flat_map(|tree| tree.keys()).map(|key| owners.of(key) as u32).collect();
        Self::cut(communicator, own, whole, ranks, length)
    }

    fn cut(communicator: &Communicator, own: &Octree, whole: Option<&Octree>, owners: Vec<u32>, length: usize) -> Self {
        let begins: Vec<[u32; 4]> = whole.iter().flat_map(|tree| tree.keys().step_by(length)).map(packed).collect();
        let begins = communicator.broadcast(FIRST, bytemuck::cast_slice(&begins).to_vec());
        let keys: Vec<Key> = own.keys().collect();
        let place = |begin: [u32; 4]| keys.partition_point(|key| *key < unpacked(begin));
        let mut places: Vec<usize> = bytemuck::pod_collect_to_vec(&begins).into_iter().map(place).collect();
        places.push(keys.len());
        Self {
            own: places.windows(2).map(|ends| ends[0]..ends[1]).collect(),
            owners: owners.chunks(length).map(<[u32]>::to_vec).collect(),
        }
    }

    /// Brings so many fields of all groups to the first rank. Collective.
    ///
    /// * `pack`: fills an array, `[groups, 4096]`, with a field of some of the own groups, which the range names
    /// * `take`: on the first rank, is given each block of a field, `[groups, 4096]` in key order, one field after the
    ///   other, while the next block is on its way
    ///
    /// # Errors
    /// What `take` said, on all ranks; then nothing more is sent.
    pub fn collect<T: Pod>(
        &self,
        communicator: &Communicator,
        fields: usize,
        pack: impl Fn(usize, Range<usize>, &mut [T]),
        mut take: impl FnMut(usize, &[T]) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        let pack = |unit: usize, values: &mut Vec<T>| {
            values.clear();
            if let Some((field, block)) = self.unit(unit, fields) {
                values.resize(self.own[block].len() * GROUP_CELLS, T::zeroed());
                pack(field, self.own[block].clone(), values);
            }
        };
        let [mut own, mut next, mut whole] = [const { Vec::new() }; 3];
        let mut parts = vec![Vec::new(); communicator.size()];
        pack(0, &mut own);
        for unit in 0..=fields * self.own.len() {
            let now = self.unit(unit, fields);
            for (rank, part) in parts.iter_mut().enumerate() {
                let groups = now.map_or(0, |(_, block)| self.owned_by_other(communicator, rank, block));
                part.resize(groups * GROUP_CELLS, T::zeroed());
            }
            let sends: &[(usize, &[u8])] = match communicator.rank() {
                FIRST => &[],
                _ if own.is_empty() => &[],
                _ => &[(FIRST, bytemuck::cast_slice(&own))],
            };
            let receives = parts.iter_mut().enumerate().filter(|(_, part)| !part.is_empty());
            let mut receives: Vec<(usize, &mut [u8])> =
                receives.map(|(rank, part)| (rank, bytemuck::cast_slice_mut(part))).collect();
            let taken = communicator.communicate(TAG, sends, &mut receives, || {
                pack(unit + 1, &mut next);
                match unit.checked_sub(1).and_then(|before| self.unit(before, fields)) {
                    Some((field, _)) if communicator.rank() == FIRST => take(field, &whole),
                    _ => Ok(()),
                }
            });
            agree(communicator, taken)?;
            if let (FIRST, Some((_, block))) = (communicator.rank(), now) {
                std::mem::swap(&mut parts[FIRST], &mut own);
                unite(&self.owners[block], &mut parts, &mut whole);
            }
            std::mem::swap(&mut own, &mut next);
        }
        Ok(())
    }

    /// Brings so many fields of all groups from the first rank to their owners. Collective.
    ///
    /// * `give`: on the first rank, is asked for each block of a field, `[groups, 4096]` in key order, one field after the
    ///   other, while the one before is on its way
    /// * `put`: is given a field of some of the own groups, which the range names
    ///
    /// # Errors
    /// What `give` said, on all ranks; then nothing more is sent.
    pub fn deal<T: Pod>(
        &self,
        communicator: &Communicator,
        fields: usize,
        mut give: impl FnMut(usize, usize) -> Result<Vec<T>, SimError>,
        mut put: impl FnMut(usize, Range<usize>, &[T]),
    ) -> Result<(), SimError> {
        let mut give = |unit: usize| match self.unit(unit, fields) {
            Some((field, block)) if communicator.rank() == FIRST => {
                let values = give(field, self.owners[block].len())?;
                Ok(divide(&self.owners[block], values, communicator.size()))
            }
            _ => Ok(Vec::new()),
        };
        let mut parts = agree(communicator, give(0))?;
        // what has come, to be put where it belongs while the next is on its way
        let mut here: Vec<T> = Vec::new();
        for unit in 0..=fields * self.own.len() {
            let now = self.unit(unit, fields);
            let mut own = parts.get_mut(FIRST).map(std::mem::take).unwrap_or_default();
            let sends = parts.iter().enumerate().filter(|(_, part)| !part.is_empty());
            let sends: Vec<(usize, &[u8])> = sends.map(|(rank, part)| (rank, bytemuck::cast_slice(part))).collect();
            let mut receives: Vec<(usize, &mut [u8])> = Vec::new();
            if let Some((_, block)) =
                now.filter(|(_, block)| communicator.rank() != FIRST && !self.own[*block].is_empty())
            {
                own.resize(self.own[block].len() * GROUP_CELLS, T::zeroed());
                receives.push((FIRST, bytemuck::cast_slice_mut(&mut own)));
            }
            let given = communicator.communicate(TAG, &sends, &mut receives, || {
                if let Some((field, block)) = unit.checked_sub(1).and_then(|before| self.unit(before, fields)) {
                    put(field, self.own[block].clone(), &here);
                }
                give(unit + 1)
            });
            parts = agree(communicator, given)?;
            here = own;
        }
        Ok(())
    }

    /// Field and block of the messages that come at this place, if there are any.
    fn unit(&self, place: usize, fields: usize) -> Option<(usize, usize)> {
        let blocks = self.own.len();
        (place < fields * blocks).then(|| (place / blocks, place % blocks))
    }

    /// On the first rank, the groups of a block that another rank owns.
    fn owned_by_other(&self, communicator: &Communicator, rank: usize, block: usize) -> usize {
        match communicator.rank() {
            FIRST if rank != FIRST => self.owners[block].iter().filter(|&&owner| owner as usize == rank).count(),
            _ => 0,
        }
    }
}

/// The groups of a block, `[groups, 4096]`, from what ranks have of them; these may be others afterwards.
fn unite<T: Pod>(owners: &[u32], parts: &mut Parts<T>, whole: &mut Vec<T>) {
    if let Some(part) = parts.iter_mut().find(|part| part.len() == owners.len() * GROUP_CELLS) {
        std::mem::swap(part, whole);
        return;
    }
    let mut groups: Vec<_> = parts.iter().map(|part| part.chunks_exact(GROUP_CELLS)).collect();
    whole.clear();
    for &owner in owners {
        whole.extend_from_slice(groups[owner as usize].next().expect("as many groups as the rank owns"));
    }
}

/// What ranks get of the groups of a block, `[groups, 4096]`.
fn divide<T: Pod>(owners: &[u32], whole: Vec<T>, ranks: usize) -> Parts<T> {
    let mut parts = vec![Vec::new(); ranks];
    if let Some(&only) = owners.first().filter(|first| owners.iter().all(|owner| owner == *first)) {
        parts[only as usize] = whole;
        return parts;
    }
    for (&owner, group) in owners.iter().zip(whole.chunks_exact(GROUP_CELLS)) {
        parts[owner as usize].extend_from_slice(group);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::octree::PERIODIC;
    use crate::parallel::on_ranks;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Three levels of 12, 9 and 8 groups.
    fn tree() -> Octree {
        let finer = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [5, 3, 3], [4, 3, 3], [3, 2, 1], [2, 2, 2]];
        let finest = (0..8).map(|o| Key::new(1, [1, 1, 0]).child(o));
        Octree::with_groups([3, 2, 2], PERIODIC, finer.map(|c| Key::new(1, c)).into_iter().chain(finest))
    }

    /// A field of a group: no two cells have the same.
    fn value(field: usize, key: Key, cell: usize) -> f64 {
        let group = key.morton() << 5 | u64::from(key.level);
        ((group as usize * 8 + field) * GROUP_CELLS + cell) as f64
    }

    fn values(field: usize, keys: &[Key]) -> Vec<f64> {
        keys.iter().flat_map(|&key| (0..GROUP_CELLS).map(move |cell| value(field, key, cell))).collect()
    }

    fn share(tree: &Octree, owners: &Owners, rank: usize) -> Octree {
        let own = |level: usize| tree.level(level).iter().copied().filter(|&key| owners.of(key) == rank).collect();
        Octree::share(tree.root_groups(), tree.periodic(), (0..tree.level_count()).map(own).collect())
    }

    /// Owners along the curve, at random, and where most ranks own nothing.
    fn owners(tree: &Octree) -> Vec<Owners> {
        let root = tree.root_groups();
        vec![
            Owners::even(1, root),
            Owners::even(2, root),
            Owners::scattered(3, root, 1),
            Owners::scattered(5, root, 2),
            Owners::even(17, root),
        ]
    }

    const FIELDS: usize = 3;

    #[test]
    fn blocks_come_in_file_order_whoever_has_their_groups() {
        let tree = tree();
        let keys: Vec<Key> = tree.keys().collect();
        for owners in owners(&tree) {
            for length in [1, 4, 29, 100] {
                let expected: Vec<(usize, Vec<f64>)> = (0..FIELDS)
                    .flat_map(|field| keys.chunks(length).map(move |keys| (field, values(field, keys))))
                    .collect();
                let all = on_ranks(owners.ranks(), |communicator| {
                    let own = share(&tree, &owners, communicator.rank());
                    let (blocks, whole) = Blocks::of_shares(&communicator, &own, length);
                    assert_eq!(whole, (communicator.rank() == FIRST).then(|| tree.clone()));
                    let own: Vec<Key> = own.keys().collect();
                    let pack = |field: usize, groups: Range<usize>, to: &mut [f64]| {
                        to.copy_from_slice(&values(field, &own[groups]));
                    };
                    let mut taken = Vec::new();
                    let collected = blocks.collect(&communicator, FIELDS, pack, |field, block: &[f64]| {
                        taken.push((field, block.to_vec()));
                        Ok(())
                    });
                    collected.expect("no rank fails");
                    taken
                });
                assert!(all[FIRST] == expected, "{owners:?} in blocks of {length}");
                assert!(all[1..].iter().all(Vec::is_empty));
            }
        }
    }

    #[test]
    fn owners_get_their_groups_from_blocks_in_file_order() {
        let tree = tree();
        let keys: Vec<Key> = tree.keys().collect();
        for owners in owners(&tree) {
            for length in [1, 4, 29, 100] {
                on_ranks(owners.ranks(), |communicator| {
                    let rank = communicator.rank();
                    let own = share(&tree, &owners, rank);
                    let whole = (rank == FIRST).then_some(&tree);
                    let blocks = Blocks::of_whole(&communicator, &own, whole, &owners, length);
                    let mut given = 0;
                    let give = |field: usize, groups: usize| {
                        let first = given % keys.len();
                        given += groups;
                        Ok(values(field, &keys[first..first + groups]))
                    };
                    let own: Vec<Key> = own.keys().collect();
                    let mut here = vec![vec![0.0; own.len() * GROUP_CELLS]; FIELDS];
                    let dealt =
                        blocks.deal(&communicator, FIELDS, give, |field, groups: Range<usize>, part: &[f64]| {
                            here[field][groups.start * GROUP_CELLS..groups.end * GROUP_CELLS].copy_from_slice(part);
                        });
                    dealt.expect("no rank fails");
                    assert!(
                        (0..FIELDS).all(|field| here[field] == values(field, &own)),
                        "{owners:?}, {length}, {rank}"
                    );
                });
            }
        }
    }

    /// Wherever the first rank fails, all stop there and say so, and nothing more is made or sent.
    #[test]
    fn what_goes_wrong_on_the_first_rank_stops_all() {
        let tree = tree();
        let owners = Owners::scattered(3, tree.root_groups(), 1);
        let blocks_of = |communicator: &Communicator, own: &Octree| {
            let whole = (communicator.rank() == FIRST).then_some(&tree);
            Blocks::of_whole(communicator, own, whole, &owners, 10)
        };
        let failure = || SimError::Mpi("the disk is full".into());
        for good in 0..9 {
            let packed = AtomicUsize::new(0);
            let ends = on_ranks(3, |communicator| {
                let own = share(&tree, &owners, communicator.rank());
                let pack = |_: usize, groups: Range<usize>, _: &mut [f32]| {
                    packed.fetch_add(groups.len(), Ordering::Relaxed);
                };
                let mut taken = 0;
                let take = |_: usize, _: &[f32]| {
                    taken += 1;
                    if taken > good { Err(failure()) } else { Ok(()) }
                };
                let collected = blocks_of(&communicator, &own).collect(&communicator, FIELDS, pack, take);
                let mut given = 0;
                let give = |_: usize, groups: usize| {
                    given += 1;
                    if given > good { Err(failure()) } else { Ok(vec![0f32; groups * GROUP_CELLS]) }
                };
                let dealt = blocks_of(&communicator, &own).deal(&communicator, FIELDS, give, |_, _, _| ());
                [collected, dealt].map(|end| end.expect_err("the first rank fails").to_string())
            });
            let told = |text: &String| text.contains("the disk is full");
            assert!(ends.iter().flatten().all(told), "{good} blocks are good");
            // two blocks ahead of what was taken
            assert!(packed.into_inner() <= 10 * (good + 3), "{good} blocks are good");
        }
    }
}

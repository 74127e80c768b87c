//! The groups of a whole tree, block by block between their owners and the ranks that write them to a file or read them.
//!
//! A file holds one field after the other, each in key order. Every rank writes, or reads, a range of its blocks of so many
//! groups, the same of each field: it receives, or sends, what their owners have, or are to have. So it knows whose each of
//! these groups is, and never has more of others' cells than a few blocks.

use crate::error::SimError;
use crate::mesh::{Key, Octree};
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::Communicator;
use crate::parallel::communicator::FIRST;
use crate::parallel::keys::{packed, unpacked};
use crate::parallel::owners::Owners;
use bytemuck::Pod;
use comove_kernels::layout::GROUP_CELLS;
use std::ops::Range;

/// Groups of a block: 16 MiB of a field in single precision. A power of two, so that a block has a digest of its own.
pub(crate) const GROUPS: usize = 1024;

/// Of messages of blocks.
const TAG: u32 = 2;

/// Who has which groups of each block.
pub(crate) struct Blocks {
    rank: usize,
    ranks: usize,
    groups: usize,
    /// This rank's own groups of each block, as places among its own in key order.
    own: Vec<Range<usize>>,
    /// The owners of the groups of each block that this rank writes or reads, in key order.
    owners: Vec<Vec<u32>>,
}

/// A field of some groups, `[groups, 4096]` in key order, by the rank that has them, or is to have them.
type Parts<T> = Vec<Vec<T>>;

impl Blocks {
    /// Blocks of `length` groups of the tree that ranks share, and on the first rank the whole tree. Collective.
    ///
    /// * `own`: this rank's groups
    pub(crate) fn of_shares(communicator: &Communicator, own: &Octree, length: usize) -> (Self, Option<Octree>) {
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
            (tree, all.into_iter().map(|(_, rank)| rank).collect::<Vec<_>>())
        });
        let (tree, owners) = whole.unzip();
        let owners = owners.unwrap_or_default();
        (Self::cut(communicator, own, tree.as_ref(), &owners, owners.len(), length), tree)
    }

    /// Blocks of `length` groups of a file of which the first rank has the tree, and these ranks own it. Collective.
    ///
    /// * `own`: this rank's groups of it
    /// * `whole`: on the first rank, the tree and how many groups the file has: more where its finest levels are left out,
    ///   which make blocks that nobody owns anything of
    pub(crate) fn of_whole(
        communicator: &Communicator,
        own: &Octree,
        whole: Option<(&Octree, usize)>,
        owners: &Owners,
        length: usize,
    ) -> Self {
        let (tree, groups) = whole.unzip();
        let ranks: Vec<u32> = tree.iter().flat_map(|tree| tree.keys()).map(|key| owners.of(key) as u32).collect();
        Self::cut(communicator, own, tree, &ranks, groups.unwrap_or(0), length)
    }

    fn cut(
        communicator: &Communicator,
        own: &Octree,
        whole: Option<&Octree>,
        owners: &[u32],
        groups: usize,
        length: usize,
    ) -> Self {
        let (rank, ranks) = (communicator.rank(), communicator.size());
        let begins: Vec<[u32; 4]> = whole.iter().flat_map(|tree| tree.keys().step_by(length)).map(packed).collect();
        let begins = communicator.broadcast(FIRST, bytemuck::cast_slice(&begins).to_vec());
        let groups = communicator.max(groups as f64) as usize;
        let count = groups.div_ceil(length);
        let keys: Vec<Key> = own.keys().collect();
        let place = |begin: [u32; 4]| keys.partition_point(|key| *key < unpacked(begin));
        let mut places: Vec<usize> = bytemuck::pod_collect_to_vec(&begins).into_iter().map(place).collect();
        places.resize(count + 1, keys.len());
        let own = places.windows(2).map(|ends| ends[0]..ends[1]).collect();

        let piece = |rank: usize| piece(count, ranks, rank);
        let groups_of = |blocks: Range<usize>| {
            let [begin, end] = [blocks.start, blocks.end].map(|block| owners.len().min(block * length));
            bytemuck::cast_slice(&owners[begin..end]).to_vec()
        };
        let here = communicator.exchange((0..ranks).map(|rank| groups_of(piece(rank))).collect());
        let here: Vec<u32> = bytemuck::pod_collect_to_vec(&here[FIRST]);
        let mut owners: Vec<Vec<u32>> = here.chunks(length).map(<[u32]>::to_vec).collect();
        owners.resize(piece(rank).len(), Vec::new());
        Self { rank, ranks, groups, own, owners }
    }

    /// Groups of the file.
    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// The blocks that this rank writes or reads.
    pub(crate) fn here(&self) -> Range<usize> {
        piece(self.own.len(), self.ranks, self.rank)
    }

    /// Brings so many fields of all groups to the ranks that write them. Collective.
    ///
    /// * `pack`: fills an array, `[groups, 4096]`, with a field of some of the own groups, which the range names
    /// * `take`: is given each of [`Self::here`] of a field, `[groups, 4096]` in key order, one field after the other, while
    ///   the next block is on its way
    ///
    /// # Errors
    /// What `take` said on some rank, on all of them; then nothing more is sent.
    pub(crate) fn collect<T: Pod>(
        &self,
        communicator: &Communicator,
        fields: usize,
        pack: impl Fn(usize, Range<usize>, &mut [T]),
        mut take: impl FnMut(usize, usize, &[T]) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        let pack = |round: usize, parts: &mut Parts<T>| {
            for (rank, part) in parts.iter_mut().enumerate() {
                match self.unit(round, fields, rank) {
                    Some((field, block)) => {
                        resize(part, self.own[block].len());
                        pack(field, self.own[block].clone(), part);
                    }
                    None => resize(part, 0),
                }
            }
        };
        let [mut own, mut next, mut come] = [const { Parts::new() }; 3].map(|parts| self.resized(parts));
        let mut whole = Vec::new();
        pack(0, &mut own);
        for round in 0..=fields * self.rounds() {
            let now = self.unit(round, fields, self.rank);
            let groups = now.map_or_else(|| vec![0; self.ranks], |(_, block)| self.groups_of_owners(block));
            for (rank, part) in come.iter_mut().enumerate() {
                resize(part, if rank == self.rank { 0 } else { groups[rank] });
            }
            let taken = communicator.communicate(TAG, &self.sends(&own), &mut self.receives(&mut come), || {
                pack(round + 1, &mut next);
                match round.checked_sub(1).and_then(|before| self.unit(before, fields, self.rank)) {
                    Some((field, block)) => take(field, block, &whole),
                    None => Ok(()),
                }
            });
            collective_result(communicator, taken)?;
            if let Some((_, block)) = now {
                std::mem::swap(&mut come[self.rank], &mut own[self.rank]);
                unite(self.owners(block), &mut come, &mut whole);
            }
            std::mem::swap(&mut own, &mut next);
        }
        Ok(())
    }

    /// Brings so many fields of all groups from the ranks that read them to their owners. Collective.
    ///
    /// * `give`: is asked for each of [`Self::here`] of a field, `[groups, 4096]` in key order, one field after the other,
    ///   while the one before is on its way; with the groups that are left out or without them
    /// * `put`: is given a field of some of the own groups, which the range names
    ///
    /// # Errors
    /// What `give` said on some rank, on all of them; then nothing more is sent.
    pub(crate) fn distribute<T: Pod>(
        &self,
        communicator: &Communicator,
        fields: usize,
        mut give: impl FnMut(usize, usize) -> Result<Vec<T>, SimError>,
        mut put: impl FnMut(usize, Range<usize>, &[T]),
    ) -> Result<(), SimError> {
        let mut give = |round: usize| match self.unit(round, fields, self.rank) {
            Some((field, block)) => Ok::<_, SimError>(divide(self.owners(block), give(field, block)?, self.ranks)),
            None => Ok(self.resized(Parts::new())),
        };
        let mut parts = collective_result(communicator, give(0))?;
        // what has come, to be put where it belongs while the next is on its way
        let mut here = Parts::new();
        for round in 0..=fields * self.rounds() {
            let mut come = self.resized(Parts::new());
            for (rank, part) in come.iter_mut().enumerate().filter(|(rank, _)| *rank != self.rank) {
                let groups = self.unit(round, fields, rank).map_or(0, |(_, block)| self.own[block].len());
                part.resize(groups * GROUP_CELLS, T::zeroed());
            }
            let own = std::mem::take(&mut parts[self.rank]);
            let given = communicator.communicate(TAG, &self.sends(&parts), &mut self.receives(&mut come), || {
                for (rank, part) in here.iter().enumerate().filter(|(_, part)| !part.is_empty()) {
                    let (field, block) = self.unit(round - 1, fields, rank).expect("a block that was sent");
                    put(field, self.own[block].clone(), part);
                }
                give(round + 1)
            });
            come[self.rank] = own;
            parts = collective_result(communicator, given)?;
            here = come;
        }
        Ok(())
    }

    /// Blocks of a field that a rank has, or one more than it has.
    fn rounds(&self) -> usize {
        self.own.len().div_ceil(self.ranks)
    }

    /// Field and block that a rank writes or reads in a round, if there is one.
    fn unit(&self, round: usize, fields: usize, rank: usize) -> Option<(usize, usize)> {
        let (field, place) = (round / self.rounds(), round % self.rounds());
        let block = piece(self.own.len(), self.ranks, rank).nth(place)?;
        (field < fields).then_some((field, block))
    }

    /// The owners of the groups of a block of this rank.
    fn owners(&self, block: usize) -> &[u32] {
        &self.owners[block - self.here().start]
    }

    /// How many groups of a block of this rank each rank owns.
    fn groups_of_owners(&self, block: usize) -> Vec<usize> {
        let mut groups = vec![0; self.ranks];
        self.owners(block).iter().for_each(|&owner| groups[owner as usize] += 1);
        groups
    }

    /// Parts for all ranks, or from them.
    fn resized<T: Clone>(&self, mut parts: Parts<T>) -> Parts<T> {
        parts.resize(self.ranks, Vec::new());
        parts
    }

    /// The messages to others.
    fn sends<'a, T: Pod>(&self, parts: &'a Parts<T>) -> Vec<(usize, &'a [u8])> {
        let others = parts.iter().enumerate().filter(|(rank, part)| *rank != self.rank && !part.is_empty());
        others.map(|(rank, part)| (rank, bytemuck::cast_slice(part))).collect()
    }

    /// The messages from others.
    fn receives<'a, T: Pod>(&self, parts: &'a mut Parts<T>) -> Vec<(usize, &'a mut [u8])> {
        let others = parts.iter_mut().enumerate().filter(|(rank, part)| *rank != self.rank && !part.is_empty());
        others.map(|(rank, part)| (rank, bytemuck::cast_slice_mut(part))).collect()
    }
}

/// Makes room for so many groups, and keeps no more than twice as much.
fn resize<T: Pod>(part: &mut Vec<T>, groups: usize) {
    let length = groups * GROUP_CELLS;
    if part.capacity() > 2 * length {
        *part = Vec::new();
    }
    part.resize(length, T::zeroed());
}

/// The blocks of so many that a rank writes or reads.
fn piece(blocks: usize, ranks: usize, rank: usize) -> Range<usize> {
    blocks * rank / ranks..blocks * (rank + 1) / ranks
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

/// What ranks get of the groups of a block, `[groups, 4096]`; the last of these may be nobody's.
fn divide<T: Pod>(owners: &[u32], mut whole: Vec<T>, ranks: usize) -> Parts<T> {
    let mut parts = vec![Vec::new(); ranks];
    whole.truncate(owners.len() * GROUP_CELLS);
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
    use crate::mesh::PERIODIC;
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

    /// A rank's blocks are as many as another's, or one more.
    fn expected(tree: &Octree, blocks: &Blocks, length: usize) -> Vec<(usize, usize, Vec<f64>)> {
        let keys: Vec<Key> = tree.keys().collect();
        let even = blocks.own.len() / blocks.ranks;
        assert!([even, even + 1].contains(&blocks.here().len()));
        let of_field = |field: usize| {
            let here = keys.chunks(length).enumerate().skip(blocks.here().start).take(blocks.here().len());
            here.map(move |(block, keys)| (field, block, values(field, keys))).collect::<Vec<_>>()
        };
        (0..FIELDS).flat_map(of_field).collect()
    }

    #[test]
    fn blocks_come_in_file_order_whoever_has_their_groups() {
        let tree = tree();
        for owners in owners(&tree) {
            for length in [1, 4, 29, 100] {
                let written = on_ranks(owners.ranks(), |communicator| {
                    let own = share(&tree, &owners, communicator.rank());
                    let (blocks, whole) = Blocks::of_shares(&communicator, &own, length);
                    assert_eq!(whole, (communicator.rank() == FIRST).then(|| tree.clone()));
                    let own: Vec<Key> = own.keys().collect();
                    let pack = |field: usize, groups: Range<usize>, to: &mut [f64]| {
                        to.copy_from_slice(&values(field, &own[groups]));
                    };
                    let mut taken = Vec::new();
                    let collected = blocks.collect(&communicator, FIELDS, pack, |field, block, values: &[f64]| {
                        taken.push((field, block, values.to_vec()));
                        Ok(())
                    });
                    collected.expect("no rank fails");
                    assert!(taken == expected(&tree, &blocks, length), "{owners:?} in blocks of {length}");
                    blocks.here()
                });
                assert_eq!(written.into_iter().flatten().count(), tree.group_count().div_ceil(length));
            }
        }
    }

    /// Also where a file has more groups than its tree: their blocks are read, and go nowhere.
    #[test]
    fn owners_get_their_groups_from_blocks_in_file_order() {
        let tree = tree();
        for (owners, left_out) in owners(&tree).into_iter().zip([0, 3, 0, 50, 100]) {
            for length in [1, 4, 29, 100] {
                let read = on_ranks(owners.ranks(), |communicator| {
                    let rank = communicator.rank();
                    let own = share(&tree, &owners, rank);
                    let whole = (rank == FIRST).then_some((&tree, tree.group_count() + left_out));
                    let blocks = Blocks::of_whole(&communicator, &own, whole, &owners, length);
                    let keys: Vec<Key> = tree.keys().collect();
                    let mut given = 0;
                    let give = |field: usize, block: usize| {
                        given += 1;
                        let [begin, end] = [block, block + 1].map(|block| keys.len().min(block * length));
                        Ok(values(field, &keys[begin..end]))
                    };
                    let own: Vec<Key> = own.keys().collect();
                    let mut here = vec![vec![0.0; own.len() * GROUP_CELLS]; FIELDS];
                    let distributed =
                        blocks.distribute(&communicator, FIELDS, give, |field, groups: Range<usize>, part: &[f64]| {
                            here[field][groups.start * GROUP_CELLS..groups.end * GROUP_CELLS].copy_from_slice(part);
                        });
                    distributed.expect("no rank fails");
                    assert!(
                        (0..FIELDS).all(|field| here[field] == values(field, &own)),
                        "{owners:?}, {length}, {rank}"
                    );
                    given
                });
                let blocks = (tree.group_count() + left_out).div_ceil(length);
                assert_eq!(read.into_iter().sum::<usize>(), FIELDS * blocks);
            }
        }
    }

    /// Wherever a rank fails, all stop there and say so, and nothing more is made or sent.
    #[test]
    fn what_goes_wrong_on_a_rank_stops_all() {
        let tree = tree();
        let owners = Owners::scattered(3, tree.root_groups(), 1);
        let failure = || SimError::Mpi("the disk is full".into());
        // five blocks of 6 groups: one, two and two of each field
        for (bad, good) in [(0, 0), (0, 2), (1, 0), (1, 3), (2, 4), (2, 5)] {
            let packed = AtomicUsize::new(0);
            let ends = on_ranks(3, |communicator| {
                let own = share(&tree, &owners, communicator.rank());
                let whole = (communicator.rank() == FIRST).then_some((&tree, tree.group_count()));
                let blocks = Blocks::of_whole(&communicator, &own, whole, &owners, 6);
                let pack = |_: usize, groups: Range<usize>, _: &mut [f32]| {
                    packed.fetch_add(groups.len(), Ordering::Relaxed);
                };
                let fails = |done: &mut usize| {
                    *done += 1;
                    if communicator.rank() == bad && *done > good { Err(failure()) } else { Ok(()) }
                };
                let [mut taken, mut given] = [0; 2];
                let collected = blocks.collect(&communicator, FIELDS, pack, |_, _, _: &[f32]| fails(&mut taken));
                let give = |_: usize, block: usize| {
                    fails(&mut given).map(|()| vec![0f32; blocks.owners(block).len() * GROUP_CELLS])
                };
                let distributed = blocks.distribute(&communicator, FIELDS, give, |_, _, _| ());
                let most = if bad == 0 { 2 * (good + 1) } else { good + 1 };
                assert!(taken <= most && given <= most, "rank {bad} fails after {good}: {taken}, {given}");
                [collected, distributed].map(|end| end.expect_err("a rank fails").to_string())
            });
            let told = |text: &String| text.contains("the disk is full");
            assert!(ends.iter().flatten().all(told), "rank {bad} fails after {good}");
            // two rounds ahead of what was taken
            let rounds = 2 + if bad == 0 { 2 * good + 1 } else { good + 1 };
            assert!(packed.into_inner() <= 18 * rounds, "rank {bad} fails after {good}");
        }
    }
}

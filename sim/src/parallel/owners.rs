//! Which rank owns a group: the groups of a level lie on a Hilbert curve that is cut into one piece a rank.
//!
//! The rule covers every place where a group could be, so any rank can name the owner of any group without knowing whether
//! it exists.

use crate::mesh::{Key, Octree};
use crate::parallel::communicator::Communicator;
use crate::parallel::hilbert;
use rayon::prelude::*;

/// More levels than there can be.
const LEVELS: usize = 32;

/// The owner of every group that there could be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owners {
    ranks: usize,
    /// Bits of a root coordinate.
    root_bits: u32,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// By level: where the pieces of ranks 1, 2, … begin. A level without an entry is cut where the one before is.
    Curve(Vec<Vec<u64>>),
    /// At random, by a number for each level: for tests, as no two neighbours then need have one owner.
    Scattered(Vec<u64>),
}

impl Owners {
    /// One rank owns everything.
    pub fn alone() -> Self {
        Self { ranks: 1, root_bits: 0, rule: Rule::Curve(Vec::new()) }
    }

    /// The root level in pieces of equal length, finer levels with it.
    pub fn even(ranks: usize, root: [u32; 3]) -> Self {
        let root_bits = root.into_iter().max().map_or(0, |n| n.next_power_of_two().trailing_zeros());
        let owners = Self { ranks, root_bits, rule: Rule::Curve(Vec::new()) };
        let mut positions: Vec<u64> = Octree::new(root, [true; 3]).keys().map(|key| owners.position(key)).collect();
        positions.sort_unstable();
        let cuts = (1..ranks).map(|rank| positions.get(positions.len() * rank / ranks).copied().unwrap_or(u64::MAX));
        Self { rule: Rule::Curve(vec![cuts.collect()]), ..owners }
    }

    /// Every group at random.
    pub fn scattered(ranks: usize, root: [u32; 3], seed: u64) -> Self {
        Self { rule: Rule::Scattered(vec![seed; LEVELS]), ..Self::even(ranks, root) }
    }

    /// Ranks that there are.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// The rank that owns a group.
    pub fn of(&self, key: Key) -> usize {
        match &self.rule {
            _ if self.ranks == 1 => 0,
            Rule::Curve(cuts) => {
                let level = usize::from(key.level).min(cuts.len() - 1);
                let position = self.position(key) >> (3 * (usize::from(key.level) - level));
                cuts[level].partition_point(|&first| first <= position)
            }
            Rule::Scattered(seeds) => scatter(seeds[usize::from(key.level)], key, self.ranks),
        }
    }

    /// Calls `each` with the ranks that own a group or would, and, if they are asked for, its children; with some of them
    /// more than once.
    pub fn of_group_and_children(&self, key: Key, children: bool, mut each: impl FnMut(usize)) {
        let level = usize::from(key.level);
        match &self.rule {
            Rule::Curve(cuts) if self.ranks > 1 && cuts.len() > level + 1 => {
                let position = self.position(key);
                each(cuts[level].partition_point(|&cut| cut <= position));
                if children {
                    let ends = [8 * position, 8 * position + 7];
                    let [first, last] = ends.map(|p| cuts[level + 1].partition_point(|&cut| cut <= p));
                    (first..=last).for_each(each);
                }
            }
            // children for which there are no cuts live with their parent
            Rule::Curve(_) => each(self.of(key)),
            Rule::Scattered(_) => {
                each(self.of(key));
                if children {
                    (0..8).for_each(|o| each(self.of(key.child(o))));
                }
            }
        }
    }

    /// Whether a rank owns a group, its children and theirs, or would; with owners at random this says no.
    pub fn owns_with_children(&self, rank: usize, key: Key) -> bool {
        let Rule::Curve(cuts) = &self.rule else { return self.ranks == 1 };
        let (level, position) = (usize::from(key.level), self.position(key));
        let finest = cuts.len() - 1;
        // descendants follow each other along the curve; where there are no cuts, they live with their ancestors
        (0..3).all(|generation| {
            let (cuts, ends) = match level + generation {
                cut if cut <= finest => (&cuts[cut], [position, position + 1].map(|end| end << (3 * generation))),
                _ if level > finest => (&cuts[finest], [0, 1].map(|n| (position >> (3 * (level - finest))) + n)),
                _ => return true,
            };
            [ends[0], ends[1] - 1].map(|position| cuts.partition_point(|&cut| cut <= position)) == [rank; 2]
        })
    }

    fn position(&self, key: Key) -> u64 {
        hilbert::position(key.coordinate, self.root_bits + u32::from(key.level))
    }

    /// The same owners of the levels up to `kept`, and finer ones cut anew: collective.
    ///
    /// * `own`: the groups that this rank owns
    /// * `parts`: what part of a level's work each rank is to have
    /// * `weight`: the work of a group
    #[must_use]
    pub fn balanced(
        &self,
        communicator: &Communicator,
        own: &Octree,
        kept: usize,
        parts: &[f64],
        weight: &(impl Fn(Key) -> u64 + Sync),
    ) -> Self {
        let Rule::Curve(old) = &self.rule else { return self.rescattered(kept) };
        let first = kept + 1;
        let levels = first..own.level_count();
        // with their work
        let positions: Vec<Vec<(u64, u64)>> = levels
            .clone()
            .map(|level| {
                let keys = own.level(level).par_iter();
                let mut positions: Vec<(u64, u64)> = keys.map(|&key| (self.position(key), weight(key))).collect();
                positions.par_sort_unstable();
                positions
            })
            .collect();
        let work = work(communicator, own, kept, weight);
        let ends: Vec<f64> = parts
            .iter()
            .scan(0.0, |end, part| {
                *end += part;
                Some(*end)
            })
            .collect();
        // the first group of every rank's piece: the smallest of what the ranks find among their own
        let mut cuts = Vec::new();
        for n in 0..positions.len() {
            let mut before: u64 = work[..communicator.rank()].iter().map(|of_rank| of_rank[n][0]).sum();
            let all: u64 = work.iter().map(|of_rank| of_rank[n][0]).sum();
            // a group belongs to the piece in which its middle is
            let rank_of = |&(_, weight): &(u64, u64)| {
                let middle = (before as f64 + 0.5 * weight as f64) / all as f64;
                before += weight;
                ends[..self.ranks - 1].partition_point(|&end| end <= middle)
            };
            let ranks: Vec<usize> = positions[n].iter().map(rank_of).collect();
            let begins = |rank: usize| positions[n].get(ranks.partition_point(|&r| r < rank));
            cuts.extend((1..self.ranks).map(|rank| begins(rank).map_or(u64::MAX, |&(position, _)| position)));
        }
        let found = communicator.gather_all(bytemuck::cast_slice(&cuts));
        for found in found {
            let found: Vec<u64> = bytemuck::pod_collect_to_vec(&found);
            cuts.iter_mut().zip(found).for_each(|(cut, found)| *cut = found.min(*cut));
        }
        let mut rule = old[..old.len().min(first)].to_vec();
        while rule.len() < first {
            let finer = rule.last().expect("the root is cut").iter().map(|cut| cut.saturating_mul(8)).collect();
            rule.push(finer);
        }
        rule.extend(cuts.chunks(self.ranks - 1).map(<[u64]>::to_vec));
        Self { rule: Rule::Curve(rule), ..self.clone() }
    }

    /// The finest level, from `kept` on, up to which no rank has more than `tolerance` times its part of a level, nor a
    /// group more than it need have: collective.
    ///
    /// * `own`, `parts`, `weight`: as for [`Owners::balanced`]
    pub fn even_to(
        &self,
        communicator: &Communicator,
        own: &Octree,
        kept: usize,
        parts: &[f64],
        weight: &(impl Fn(Key) -> u64 + Sync),
        tolerance: f64,
    ) -> usize {
        if matches!(self.rule, Rule::Scattered(_)) {
            return kept;
        }
        let work = work(communicator, own, kept, weight);
        let is_even = |n: &usize| {
            let all: u64 = work.iter().map(|of_rank| of_rank[*n][0]).sum();
            let group = work.iter().map(|of_rank| of_rank[*n][1]).max().unwrap_or(0).max(1) as f64;
            work.iter().zip(parts).all(|(of_rank, part)| {
                let (work, due) = (of_rank[*n][0] as f64, part * all as f64);
                work <= ((due / group).ceil() * group).max(tolerance * due)
            })
        };
        kept + (0..work[0].len()).take_while(is_even).count()
    }

    fn rescattered(&self, kept: usize) -> Self {
        let Rule::Scattered(mut seeds) = self.rule.clone() else { return self.clone() };
        seeds[kept + 1..].iter_mut().for_each(|seed| *seed = seed.wrapping_add(1));
        Self { rule: Rule::Scattered(seeds), ..self.clone() }
    }
}

/// The work of the groups of each rank on each level finer than `kept`, and that of the one with most: collective.
fn work(
    communicator: &Communicator,
    own: &Octree,
    kept: usize,
    weight: &(impl Fn(Key) -> u64 + Sync),
) -> Vec<Vec<[u64; 2]>> {
    let of_level = |level: usize| {
        let weights = || own.level(level).par_iter().map(|&key| weight(key));
        [weights().sum(), weights().max().unwrap_or(0)]
    };
    let own: Vec<[u64; 2]> = (kept + 1..own.level_count()).map(of_level).collect();
    let of_ranks = communicator.gather_all(bytemuck::cast_slice(&own));
    of_ranks.iter().map(|work| bytemuck::pod_collect_to_vec(work)).collect()
}

/// A rank by a hash of seed and key.
fn scatter(seed: u64, key: Key, ranks: usize) -> usize {
    let mut hash = (key.morton() << 5 | u64::from(key.level)) ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2 {
        hash = (hash ^ hash >> 31).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    ((hash ^ hash >> 32) % ranks as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::PERIODIC;
    use crate::parallel::on_ranks;

    /// Owners of a tree whose finer levels lie in one corner, balanced from what ranks have that are each to have such a
    /// part; all ranks' word.
    fn balanced(parts: &[f64], tree: &Octree, kept: usize) -> Vec<Owners> {
        balanced_by(|_| 1, parts, tree, kept)
    }

    /// The same where groups have different work.
    fn balanced_by(weight: impl Fn(Key) -> u64 + Sync, parts: &[f64], tree: &Octree, kept: usize) -> Vec<Owners> {
        let even = Owners::even(parts.len(), tree.root_groups());
        on_ranks(parts.len(), |communicator| {
            let own = |level: usize| {
                let keys = tree.level(level).iter().copied();
                keys.filter(|&key| even.of(key) == communicator.rank()).collect()
            };
            let levels = (0..tree.level_count()).map(own).collect();
            let own = Octree::share(tree.root_groups(), tree.periodic(), levels);
            assert_eq!(even.even_to(&communicator, &own, kept, parts, &weight, 1.05), kept);
            even.balanced(&communicator, &own, kept, parts, &weight)
        })
    }

    #[test]
    fn levels_are_cut_as_ranks_are_to_have_them_and_those_that_stay_are_not() {
        let finer = (0..512).map(|c| Key::new(1, [c % 8, c / 8 % 8, c / 64]));
        let finest = (0..64).map(|c| Key::new(2, [c % 4, c / 4 % 4, c / 16]));
        let tree = Octree::with_groups([8; 3], PERIODIC, finer.chain(finest));
        let parts: [&[f64]; 5] = [&[0.5; 2], &[1.0 / 3.0; 3], &[0.2; 5], &[0.75, 0.25], &[0.3, 0.1, 0.6]];
        for parts in parts {
            let ranks = parts.len();
            for kept in [0, 1] {
                let of_all = balanced(parts, &tree, kept);
                let even = Owners::even(ranks, [8; 3]);
                assert!(of_all.iter().all(|owners| *owners == of_all[0]), "all ranks find the same");
                for level in 0..tree.level_count() {
                    let mut counts = vec![0; ranks];
                    tree.level(level).iter().for_each(|&key| counts[of_all[0].of(key)] += 1);
                    let n = tree.level(level).len() as f64;
                    let off = |(&count, part): (&i32, &f64)| (f64::from(count) - part * n).abs();
                    match level <= kept {
                        true => assert!(tree.level(level).iter().all(|&key| of_all[0].of(key) == even.of(key))),
                        false => {
                            let off = counts.iter().zip(parts).map(off).fold(0.0, f64::max);
                            assert!(off <= 1.0, "level {level} as {parts:?}: {counts:?}");
                        }
                    }
                }
            }
        }
    }

    /// Ranks have parts of the work, as far as whole groups allow.
    #[test]
    fn groups_with_more_work_count_for_more() {
        let finer = (0..512).map(|c| Key::new(1, [c % 8, c / 8 % 8, c / 64]));
        let tree = Octree::with_groups([8; 3], PERIODIC, finer);
        let weight = |key: Key| if key.coordinate[0] < 2 { 50 } else { 3 + u64::from(key.coordinate[1]) };
        let parts = [0.25, 0.5, 0.25];
        let owners = &balanced_by(weight, &parts, &tree, 0)[0];
        let mut work = [0; 3];
        tree.level(1).iter().for_each(|&key| work[owners.of(key)] += weight(key));
        let all = work.iter().sum::<u64>() as f64;
        for (work, part) in work.iter().zip(parts) {
            assert!((*work as f64 - part * all).abs() <= 50.0, "{work} of {all}, {part}");
        }
    }

    /// Against the owners of all of them, with levels that are cut and levels that are not.
    #[test]
    fn who_owns_a_group_with_all_that_it_may_have() {
        let finer = (0..512).map(|c| Key::new(1, [c % 8, c / 8 % 8, c / 64]));
        let finest = (0..64).map(|c| Key::new(2, [c % 4, c / 4 % 4, c / 16]));
        let tree = Octree::with_groups([8; 3], PERIODIC, finer.chain(finest));
        let owners = &balanced(&[1.0 / 3.0; 3], &tree, 0)[0];
        let mut own_all = 0;
        for key in tree.keys().chain((0..64).map(|c| Key::new(3, [c % 4, c / 4 % 4, c / 16]))) {
            let children = (0..8).map(|o| key.child(o));
            let all: Vec<Key> =
                children.flat_map(|c| (0..8).map(move |o| c.child(o)).chain([c])).chain([key]).collect();
            for rank in 0..3 {
                let owns = all.iter().all(|&key| owners.of(key) == rank);
                assert_eq!(owners.owns_with_children(rank, key), owns, "{key:?} of rank {rank}");
                own_all += u32::from(owns);
            }
        }
        assert!(own_all > 100);
    }

    #[test]
    fn children_that_nobody_has_cut_belong_to_the_owners_of_their_parents() {
        let owners = Owners::even(3, [4, 2, 6]);
        for key in Octree::new([4, 2, 6], PERIODIC).keys() {
            let mut of_children = Vec::new();
            owners.of_group_and_children(key, true, |rank| of_children.push(rank));
            assert!(of_children.iter().all(|&rank| rank == owners.of(key)));
            assert!((0..8).all(|o| owners.of(key.child(o).child(7 - o)) == owners.of(key)));
        }
    }
}

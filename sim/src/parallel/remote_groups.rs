//! What a rank knows of other ranks' groups: those near its own.
//!
//! Every rank tells the owners of the places around a group that it is there: the 26 around it on its level, the 27 around
//! its parent, and the children of the 27 around it. What reads a group, and what a group reads, is among them.

use crate::mesh::{Key, Octree};
use crate::parallel::communicator::Communicator;
use crate::parallel::owners::Owners;
use comove_kernels::layout::{DIRECTIONS, offset};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// A group of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteGroup {
    /// Which.
    pub key: Key,
    /// Its owner.
    pub rank: u32,
}

/// Groups of other ranks near a rank's own, and the own ones near them: level by level in key order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteGroups {
    levels: Vec<Vec<RemoteGroup>>,
    near: Vec<Vec<Key>>,
    /// Who owns each of both.
    owners: Vec<FxHashMap<Key, u32>>,
}

/// What stands for this rank in [`RemoteGroups::owners`].
const OWN: u32 = u32::MAX;

impl RemoteGroups {
    /// Groups of others on a level.
    pub fn level(&self, level: usize) -> &[RemoteGroup] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// Own groups of a level that others know of: all that read others' groups or are read by others are among them.
    pub fn near(&self, level: usize) -> &[Key] {
        self.near.get(level).map_or(&[], Vec::as_slice)
    }

    /// The owner of a group that is known to exist, and another rank's.
    pub fn find(&self, key: Key) -> Option<u32> {
        self.owner(key).filter(|&owner| owner != OWN)
    }

    /// Whether it is an own group that others know of.
    pub fn is_near(&self, key: Key) -> bool {
        self.owner(key) == Some(OWN)
    }

    fn owner(&self, key: Key) -> Option<u32> {
        self.owners.get(usize::from(key.level)).and_then(|owners| owners.get(&key)).copied()
    }

    /// The same for the levels coarser than `from`, and what the ranks now tell each other of the finer ones: collective.
    #[must_use]
    pub fn told(&self, communicator: &Communicator, owners: &Owners, own: &Octree, from: usize) -> Self {
        let (levels, rank) = (own.level_count(), communicator.rank() as u32);
        let mut messages = vec![Vec::<u64>::new(); communicator.size()];
        let mut told = Self {
            levels: self.levels.iter().take(from).cloned().collect(),
            near: self.near.iter().take(from).cloned().collect(),
            owners: self.owners.iter().take(from).cloned().collect(),
        };
        told.levels.resize(levels, Vec::new());
        told.near.resize(levels, Vec::new());
        told.owners.resize(levels, FxHashMap::default());
        for level in from..levels {
            let families: Vec<&[Key]> =
                own.level(level).chunk_by(|a, b| level > 0 && a.parent() == b.parent()).collect();
            let telling = |family: &&[Key]| tell_of(owners, own, family, levels, rank);
            let said: Vec<(Key, Vec<u32>)> = families.par_iter().flat_map_iter(telling).collect();
            for message in &mut messages {
                message.push(0);
            }
            let counts: Vec<usize> = messages.iter().map(|message| message.len() - 1).collect();
            for (key, ranks) in said {
                told.near[level].push(key);
                for rank in ranks.into_iter().map(|rank| rank as usize) {
                    messages[rank][counts[rank]] += 1;
                    messages[rank].push(key.morton());
                }
            }
        }
        let messages = messages.into_iter().map(|message| bytemuck::cast_slice(&message).to_vec()).collect();
        for (rank, message) in communicator.exchange(messages).into_iter().enumerate() {
            let mut numbers: &[u64] = &bytemuck::pod_collect_to_vec::<u8, u64>(&message);
            for level in from..if numbers.is_empty() { from } else { levels } {
                let (positions, rest) = numbers[1..].split_at(numbers[0] as usize);
                numbers = rest;
                let group =
                    |&position: &u64| RemoteGroup { key: Key::from_morton(level as u8, position), rank: rank as u32 };
                told.levels[level].extend(positions.iter().map(group));
            }
        }
        let Self { levels: theirs, near, owners } = &mut told;
        let new = theirs.iter_mut().zip(near).zip(owners).skip(from).collect::<Vec<_>>();
        new.into_par_iter().for_each(|((theirs, near), owners)| {
            theirs.sort_by_cached_key(|group| group.key.morton());
            let theirs = theirs.iter().map(|group| (group.key, group.rank));
            *owners = theirs.chain(near.iter().map(|&key| (key, OWN))).collect();
        });
        told
    }
}

/// The groups of a family, or a root group, that other ranks are told of, and which ranks.
fn tell_of(owners: &Owners, lattice: &Octree, family: &[Key], levels: usize, own: u32) -> Vec<(Key, Vec<u32>)> {
    let level = usize::from(family[0].level);
    // most lie inside
    let is_inside = |parent: Key| {
        let around = (0..DIRECTIONS).filter_map(|d| lattice.neighbour(parent, offset(d)));
        around.into_iter().all(|key| owners.owns_with_children(own as usize, key))
    };
    if family[0].parent().is_some_and(is_inside) {
        return Vec::new();
    }
    // the places around a family and its own, four along each axis; of a root group three, it being the first
    let first = family[0].parent().map_or(family[0], |parent| parent.child(0));
    let place = |n: usize| lattice.neighbour(first, [n & 3, n >> 2 & 3, n >> 4].map(|c| c as i32 - 1));
    let (mut ranks, mut ends) = (Vec::new(), [0; 65]);
    for n in 0..64 {
        if let Some(key) = place(n) {
            owners.of_group_and_children(key, level + 1 < levels, |rank| ranks.push(rank as u32));
        }
        ends[n + 1] = ranks.len();
    }
    let around_parent = family[0].parent().into_iter().flat_map(|parent| {
        let around = (0..DIRECTIONS).filter_map(move |d| lattice.neighbour(parent, offset(d)));
        around.map(|key| owners.of(key) as u32)
    });
    let mut of_parent: Vec<u32> = around_parent.filter(|&rank| rank != own).collect();
    of_parent.sort_unstable();
    of_parent.dedup();
    if of_parent.is_empty() && ranks.iter().all(|&rank| rank == own) {
        return Vec::new();
    }
    let told = |&key: &Key| {
        let octant = if level > 0 { key.octant() } else { 0 };
        let [x, y, z] = [octant & 1, octant >> 1 & 1, octant >> 2];
        let mut all = of_parent.clone();
        for n in (0..27).map(|n| (x + n % 3) + 4 * (y + n / 3 % 3) + 16 * (z + n / 9)) {
            for &rank in &ranks[ends[n]..ends[n + 1]] {
                if rank != own && !all.contains(&rank) {
                    all.push(rank);
                }
            }
        }
        (!all.is_empty()).then_some((key, all))
    };
    family.iter().filter_map(told).collect()
}

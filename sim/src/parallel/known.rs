//! What a rank knows of other ranks' groups: those near its own.
//!
//! Every rank tells the owners of the places around a group that it is there: the 26 around it on its level, the 27 around
//! its parent, and the children of the 27 around it. What reads a group, and what a group reads, is among them.

use super::communicator::Communicator;
use super::owners::Owners;
use crate::octree::{Key, Octree};
use comove_kernels::layout::{CENTRE, DIRECTIONS, offset};
use rayon::prelude::*;

/// A group of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteGroup {
    /// Which.
    pub key: Key,
    /// Its owner.
    pub rank: u32,
}

/// Groups of other ranks near a rank's own: level by level in key order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    levels: Vec<Vec<RemoteGroup>>,
}

impl Known {
    /// Those of a level.
    pub fn level(&self, level: usize) -> &[RemoteGroup] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// The owner of a group that is known to exist.
    pub fn find(&self, key: Key) -> Option<u32> {
        let level = self.level(usize::from(key.level));
        level.binary_search_by_key(&key, |group| group.key).ok().map(|at| level[at].rank)
    }

    /// The same for the levels coarser than `from`, and what the ranks now tell each other of the finer ones: collective.
    #[must_use]
    pub fn told(&self, communicator: &Communicator, owners: &Owners, own: &Octree, from: usize) -> Self {
        let levels = own.level_count();
        let mut messages = vec![Vec::<u64>::new(); communicator.size()];
        for level in from..levels {
            let told: Vec<(u32, u64)> = own
                .level(level)
                .par_iter()
                .flat_map_iter(|&key| {
                    let mut ranks = Vec::new();
                    near(owners, own, key, levels, |rank| {
                        if rank != communicator.rank() && !ranks.contains(&(rank as u32)) {
                            ranks.push(rank as u32);
                        }
                    });
                    let position = key.morton();
                    ranks.into_iter().map(move |rank| (rank, position))
                })
                .collect();
            for message in &mut messages {
                message.push(0);
            }
            let counts: Vec<usize> = messages.iter().map(|message| message.len() - 1).collect();
            for (rank, position) in told {
                messages[rank as usize][counts[rank as usize]] += 1;
                messages[rank as usize].push(position);
            }
        }
        let messages = messages.into_iter().map(|message| bytemuck::cast_slice(&message).to_vec()).collect();
        let mut told = Self { levels: self.levels.iter().take(from).cloned().collect() };
        told.levels.resize(levels, Vec::new());
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
        told.levels[from.min(levels)..]
            .par_iter_mut()
            .for_each(|groups| groups.sort_unstable_by_key(|group| group.key));
        told
    }
}

/// Calls `each` with the owners of the places around a group, some of them more than once.
fn near(owners: &Owners, lattice: &Octree, key: Key, levels: usize, mut each: impl FnMut(usize)) {
    for d in 0..DIRECTIONS {
        let Some(beside) = lattice.neighbour(key, offset(d)) else { continue };
        if d != CENTRE {
            each(owners.of(beside));
        }
        if usize::from(key.level) + 1 < levels {
            owners.of_children(beside, &mut each);
        }
    }
    let Some(parent) = key.parent() else { return };
    for around in (0..DIRECTIONS).filter_map(|d| lattice.neighbour(parent, offset(d))) {
        each(owners.of(around));
    }
}

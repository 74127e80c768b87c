//! Groups and messages of the coarse correction of a level's potential: ranks know more groups than they read elsewhere, so
//! that few messages suffice.

use crate::mesh::morton_map::MortonMap;
use crate::mesh::sites::Sites;
use crate::mesh::stencil::{face_entry, face_offset, outside, row_of};
use crate::mesh::{Key, Octree};
use crate::parallel::communicator::Communicator;
use crate::parallel::link_lists::{SlotLinks, links_of_slots};
use comove_kernels::LevelTopology;
use comove_kernels::layout::{CENTRE, DIRECTIONS, FACES};
use comove_kernels::level_topology::NONE;
use rayon::prelude::*;
use std::sync::Arc;

/// Groups whose rows one thread makes.
const GROUPS_AT_ONCE: usize = 512;

/// The groups of refined levels: by level and rank, in key order. Those of the root are not here.
#[derive(Clone, Debug, Default)]
pub struct AllGroups {
    /// Which rank this one is.
    rank: usize,
    levels: Vec<Arc<Vec<Vec<Key>>>>,
}

impl AllGroups {
    /// Keeps the levels coarser than `from` and gathers the others from all ranks: collective.
    #[must_use]
    pub fn gathered(&self, communicator: &Communicator, own: &Octree, from: usize) -> Self {
        let from = from.max(1);
        let mut message = Vec::<u64>::new();
        for level in from..own.level_count() {
            message.push(own.level(level).len() as u64);
            message.extend(own.level(level).iter().map(Key::morton));
        }
        let messages = communicator.gather_all(bytemuck::cast_slice(&message));
        let numbers: Vec<Vec<u64>> = messages.iter().map(|bytes| bytemuck::pod_collect_to_vec(bytes)).collect();
        let mut rest: Vec<&[u64]> = numbers.iter().map(Vec::as_slice).collect();
        let mut levels: Vec<_> = self.levels.iter().take(from).cloned().collect();
        levels.resize(from.min(own.level_count()), Arc::default());
        for level in from..own.level_count() {
            let positions: Vec<&[u64]> = rest
                .iter_mut()
                .map(|numbers| {
                    let (positions, others) = numbers[1..].split_at(numbers[0] as usize);
                    *numbers = others;
                    positions
                })
                .collect();
            let key = |&position: &u64| Key::from_morton(level as u8, position);
            let of_rank = |positions: &[u64]| positions.par_iter().with_min_len(GROUPS_AT_ONCE).map(key).collect();
            levels.push(Arc::new(positions.into_iter().map(of_rank).collect()));
        }
        Self { rank: communicator.rank(), levels }
    }

    /// Groups of each level on all ranks, with a root of so many along x, y, z.
    pub(crate) fn counts(&self, root: [u32; 3]) -> Vec<usize> {
        let of_level = |ranks: &Arc<Vec<Vec<Key>>>| ranks.iter().map(Vec::len).sum();
        let mut counts: Vec<usize> = self.levels.iter().map(of_level).collect();
        counts[0] = root.into_iter().map(|n| n as usize).product();
        counts
    }
}

/// The tables and links of a refined level that other ranks share.
#[derive(Clone, Debug, Default)]
pub struct CoarseLinks {
    /// The ghosts beside own groups. Rows name a group wherever there is one: of one that has no slot here the slot of the
    /// ghost itself.
    pub ghosts: LevelTopology,
    /// Own groups, and these behind them.
    pub with_ghosts: LevelTopology,
    /// All groups, as far as their faces go: those without a slot in the pools in slots behind, which only the coarsest grid
    /// has.
    pub whole: LevelTopology,
    /// From each rank's groups to all others.
    pub gather: SlotLinks,
    /// Slots of the coarsest grid.
    pub slots: usize,
}

impl CoarseLinks {
    /// * `tables`: of own groups
    /// * `beside`: ghosts that these read, each once
    /// * `sites`: of the groups that have a slot
    pub(crate) fn of(
        lattice: &Octree,
        level: usize,
        tables: &LevelTopology,
        beside: &[Key],
        sites: &Sites,
        all: &AllGroups,
    ) -> Self {
        let AllGroups { rank, levels } = all;
        let all = &*levels[level];
        let mut places = MortonMap::default();
        let mut slots = 0;
        for (&key, site) in sites.iter().filter(|(_, site)| site.slot != NONE) {
            *places.entry(key.morton()) = site.slot;
            slots = slots.max(site.slot + 1);
        }
        let mut slots_of = |keys: &Vec<Key>| {
            let slot = |key: &Key| {
                let slot = places.entry(key.morton());
                if *slot == NONE {
                    *slot = slots;
                    slots += 1;
                }
                *slot
            };
            keys.iter().map(slot).collect::<Vec<u32>>()
        };
        let by_rank: Vec<Vec<u32>> = all.iter().map(&mut slots_of).collect();
        let others = || (0..).zip(&by_rank).filter(|(other, slots)| *other != *rank as u32 && !slots.is_empty());
        let own = &by_rank[*rank];
        let send: Vec<(u32, u32)> =
            others().flat_map(|(other, _)| own.iter().map(move |&slot| (other, slot))).collect();
        let receive: Vec<(u32, u32)> = match own.is_empty() {
            true => Vec::new(),
            false => others().flat_map(|(other, slots)| slots.iter().map(move |&slot| (other, slot))).collect(),
        };
        let ghosts = ghosts(lattice, beside, &places, sites);
        Self {
            with_ghosts: with(tables, &ghosts),
            ghosts,
            whole: whole(lattice, all.concat(), by_rank.concat(), &places),
            gather: links_of_slots(&send, &receive),
            slots: slots as usize,
        }
    }

    /// Bytes of the tables on a device.
    pub(crate) fn bytes(&self) -> usize {
        [&self.ghosts, &self.with_ghosts, &self.whole].map(LevelTopology::bytes).iter().sum()
    }
}

/// The ghosts beside own groups.
fn ghosts(lattice: &Octree, ghosts: &[Key], places: &MortonMap, sites: &Sites) -> LevelTopology {
    let slot = |key: Key| sites.get(&key).map_or(NONE, |site| site.slot);
    let row = |&ghost: &Key| {
        row_of(lattice, ghost, |neighbour| match slot(neighbour) {
            NONE if places.find(neighbour) != NONE => slot(ghost),
            slot => slot,
        })
    };
    let rows: Vec<[u32; DIRECTIONS]> = ghosts.par_iter().map(row).collect();
    LevelTopology {
        slots: ghosts.iter().map(|&key| slot(key)).collect(),
        neighbours: rows.into_flattened().into(),
        outside: ghosts.iter().map(|&key| outside(lattice, key)).collect(),
        ..LevelTopology::default()
    }
}

/// Groups and others behind them.
fn with(own: &LevelTopology, ghosts: &LevelTopology) -> LevelTopology {
    LevelTopology {
        slots: [&*own.slots, &*ghosts.slots].concat().into(),
        neighbours: [&*own.neighbours, &*ghosts.neighbours].concat().into(),
        outside: [&*own.outside, &*ghosts.outside].concat().into(),
        ..LevelTopology::default()
    }
}

/// Groups with their neighbours across faces.
fn whole(lattice: &Octree, keys: Vec<Key>, slots: Vec<u32>, places: &MortonMap) -> LevelTopology {
    let row = |(&key, &slot): (&Key, &u32)| {
        let mut row = [NONE; DIRECTIONS];
        row[CENTRE] = slot;
        for face in 0..FACES {
            // beyond a closed face of the box there is none, which `outside` says
            row[face_entry(face)] = lattice.neighbour(key, face_offset(face)).map_or(slot, |there| places.find(there));
        }
        row
    };
    let rows: Vec<[u32; DIRECTIONS]> = keys.par_iter().zip(&slots).with_min_len(GROUPS_AT_ONCE).map(row).collect();
    LevelTopology {
        neighbours: rows.into_flattened().into(),
        outside: keys
            .par_iter()
            .with_min_len(GROUPS_AT_ONCE)
            .map(|&key| outside(lattice, key))
            .collect::<Vec<u8>>()
            .into(),
        slots: slots.into(),
        ..LevelTopology::default()
    }
}

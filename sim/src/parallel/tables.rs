//! Neighbour tables of a rank's own groups, by look-ups: rows name slots of own groups and of ghosts alike.

use super::known::Known;
use super::reads::face_offset;
use crate::octree::neighbours::{directions, outside};
use crate::octree::{Key, Octree};
use comove_kernels::layout::{DIRECTIONS, FACES, OCTANTS};
use comove_kernels::tables::NONE;
use comove_kernels::{FaceBoundary, LevelTables};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

/// By level: the slots of own groups and ghosts.
pub type Slots = Vec<FxHashMap<Key, u32>>;

/// The tables of one level.
///
/// Entries of groups without a slot are missing where nothing reads them: in rows of parents, and all children of other
/// ranks.
pub fn level_tables(
    own: &Octree,
    known: &Known,
    level: usize,
    slots: &Slots,
    faces: [FaceBoundary; FACES],
) -> LevelTables {
    let keys = own.level(level);
    let slot = |key: Key| slots.get(usize::from(key.level)).and_then(|slots| slots.get(&key)).copied().unwrap_or(NONE);
    let row = |key: Key, outside: u8| {
        let mut row = [NONE; DIRECTIONS];
        for (entry, inside) in directions(outside) {
            row[entry] = slot(own.neighbour(key, inside).expect("inside the domain"));
        }
        row
    };
    let exists = |key: Key| own.find(key).is_some() || known.find(key).is_some();
    let child = |key: Key| if own.find(key).is_some() { slot(key) } else { NONE };
    let beyond = |key: Key| {
        let entry = |n: usize| {
            let (octant, face) = (n / FACES, n % FACES);
            own.neighbour(key.child(octant), face_offset(face)).map_or(NONE, slot)
        };
        std::array::from_fn(entry)
    };
    let each = |of: &(dyn Fn(Key) -> [u32; DIRECTIONS] + Sync)| -> Vec<u32> {
        keys.par_iter().map(|&key| of(key)).collect::<Vec<_>>().into_flattened()
    };
    let parent_row = |key: Key| match key.parent() {
        None => [NONE; DIRECTIONS],
        Some(parent) => row(parent, outside(own, parent)),
    };
    let leaves = |key: Key| (0..OCTANTS).filter(|&o| !exists(key.child(o))).fold(0, |mask, o| mask | 1 << o);
    let children = |key: Key| std::array::from_fn(|o| child(key.child(o)));
    let tables = LevelTables {
        slots: keys.iter().map(|&key| slot(key)).collect(),
        neighbours: each(&|key| row(key, outside(own, key))).into(),
        parents: each(&parent_row).into(),
        octants: keys.iter().map(|key| key.octant() as u8).collect(),
        outside: keys.iter().map(|&key| outside(own, key)).collect(),
        faces,
        leaves: keys.par_iter().map(|&key| leaves(key)).collect::<Vec<u8>>().into(),
        children: keys.par_iter().map(|&key| children(key)).collect::<Vec<[u32; OCTANTS]>>().into_flattened().into(),
        beyond: keys
            .par_iter()
            .map(|&key| beyond(key))
            .collect::<Vec<[u32; OCTANTS * FACES]>>()
            .into_flattened()
            .into(),
        ..LevelTables::default()
    };
    tables.check();
    tables
}

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
    let finer = own.level(level + 1);
    // which children are own, one bit each: they follow each other in the list
    let own_children = |key: Key| {
        let first = finer.partition_point(|child| *child < key.child(0));
        let those = finer[first..].iter().take_while(|child| child.parent() == Some(key));
        those.fold(0u8, |mask, child| mask | 1 << child.octant())
    };
    let refined: Vec<u8> = keys.par_iter().map(|&key| own_children(key)).collect();
    let leaves = |(&key, own): (&Key, &u8)| {
        let exists = |o: &usize| own >> o & 1 == 1 || known.find(key.child(*o)).is_some();
        (0..OCTANTS).filter(|o| !exists(o)).fold(0, |mask, o| mask | 1 << o)
    };
    let children = |(&key, own): (&Key, &u8)| -> [u32; OCTANTS] {
        std::array::from_fn(|o| if own >> o & 1 == 1 { slot(key.child(o)) } else { NONE })
    };
    let beyond = |key: Key| {
        let entry = |n: usize| {
            let (octant, face) = (n / FACES, n % FACES);
            own.neighbour(key.child(octant), face_offset(face)).map_or(NONE, slot)
        };
        std::array::from_fn(entry)
    };
    let rows = |key: &Key| row(*key, outside(own, *key));
    let families: Vec<&[Key]> = keys.chunk_by(|a, b| level > 0 && a.parent() == b.parent()).collect();
    let parent_rows = |family: &&[Key]| {
        let row = family[0].parent().map_or([NONE; DIRECTIONS], |parent| rows(&parent));
        std::iter::repeat_n(row, family.len())
    };
    let tables = LevelTables {
        slots: keys.iter().map(|&key| slot(key)).collect(),
        neighbours: keys.par_iter().map(rows).collect::<Vec<_>>().into_flattened().into(),
        parents: families.par_iter().flat_map_iter(parent_rows).collect::<Vec<_>>().into_flattened().into(),
        octants: keys.iter().map(|key| key.octant() as u8).collect(),
        outside: keys.iter().map(|&key| outside(own, key)).collect(),
        faces,
        leaves: keys.par_iter().zip(&refined).map(leaves).collect::<Vec<u8>>().into(),
        children: keys.par_iter().zip(&refined).map(children).collect::<Vec<_>>().into_flattened().into(),
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

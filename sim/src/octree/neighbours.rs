//! Neighbour tables: the octree as the kernels see it. Derived data, rebuilt at a regrid.
//!
//! A group's neighbours are children of its parent's neighbours, so the rows of a level follow from those of the
//! coarser one by arithmetic, without a search. A regrid of finer levels leaves the tables of coarser ones alone.

use super::{Key, Octree};
use crate::parallel::reads::face_entry;
use comove_kernels::layout::{DIRECTIONS, FACES, OCTANTS, PATCH, direction, octant_origin, offset};
use comove_kernels::tables::NONE;
use comove_kernels::{FaceBoundary, LevelTables, Table};
use rayon::prelude::*;

/// A neighbour row: places in the level's key list, [`NONE`] where there is no group.
type Row = [u32; DIRECTIONS];

/// The groups of a level and what surrounds them, as places in key lists.
struct LevelIndex {
    rows: Vec<Row>,
    /// Place of each group's parent on the coarser level; empty where nobody asks.
    parents: Vec<u32>,
    /// Places of the groups that refine each group's patches on the finer level.
    children: Vec<[u32; OCTANTS]>,
    outside: Vec<u8>,
}

/// The kernels' tables of every level. `slots[ℓ][n]` is the slot of the n-th group of level ℓ in key order; `faces`
/// says what lies beyond −x, +x, −y, +y, −z, +z where the box is not periodic.
///
/// # Panics
/// If `slots` and the octree disagree in shape, or two groups of a level share a slot.
pub fn build_tables(tree: &Octree, slots: &[Vec<u32>], faces: [FaceBoundary; FACES]) -> Vec<LevelTables> {
    build_finer_tables(&[], tree, slots, faces)
}

/// The same where the groups and slots of the first levels are those of the tables `kept`, one for each of these levels:
/// only what finer levels have to do with is made anew.
///
/// # Panics
/// As [`build_tables`].
pub fn build_finer_tables(
    kept: &[LevelTables],
    tree: &Octree,
    slots: &[Vec<u32>],
    faces: [FaceBoundary; FACES],
) -> Vec<LevelTables> {
    check(tree, slots);
    // the finest of them may have other children now
    let (finest, coarser) = kept.split_last().map_or((None, &[][..]), |(finest, coarser)| (Some(finest), coarser));
    let levels = index(tree, coarser.len(), finest);
    let mut tables = coarser.to_vec();
    for (n, index) in levels.iter().enumerate() {
        let level = coarser.len() + n;
        let own = match finest.filter(|_| n == 0) {
            Some(finest) => finest.clone(),
            None => {
                LevelTables { faces, ..own_tables(tree, level, index, n.checked_sub(1).map(|n| &levels[n]), slots) }
            }
        };
        tables.push(with_children(own, index, slots.get(level + 1).map_or(&[], Vec::as_slice)));
    }
    tables
}

/// Slot of each root group, `[groups z, y, x]`, as [`comove_kernels::RootPoisson`] wants it.
pub fn root_slots(tree: &Octree, slots: &[Vec<u32>]) -> Table<u32> {
    let [nx, ny, nz] = tree.root_groups();
    let mut mesh = vec![NONE; (nx * ny * nz) as usize];
    for (key, &slot) in tree.level(0).iter().zip(&slots[0]) {
        let [x, y, z] = key.coordinate;
        mesh[((z * ny + y) * nx + x) as usize] = slot;
    }
    mesh.into()
}

fn check(tree: &Octree, slots: &[Vec<u32>]) {
    assert!(slots.len() >= tree.level_count(), "{} levels have slots", slots.len());
    for level in 0..tree.level_count() {
        assert_eq!(slots[level].len(), tree.level(level).len(), "one slot for each group of level {level}");
    }
}

fn slot_of(place: u32, slots: &[u32]) -> u32 {
    if place == NONE { NONE } else { slots[place as usize] }
}

/// A level's tables without its children.
fn own_tables(
    tree: &Octree,
    level: usize,
    index: &LevelIndex,
    coarser: Option<&LevelIndex>,
    slots: &[Vec<u32>],
) -> LevelTables {
    let row_slots = |row: &Row, level: usize| row.map(|place| slot_of(place, &slots[level]));
    let parents = match coarser {
        None => vec![NONE; index.rows.len() * DIRECTIONS].into(),
        Some(coarser) => index
            .parents
            .par_iter()
            .map(|&parent| row_slots(&coarser.rows[parent as usize], level - 1))
            .collect::<Vec<Row>>()
            .into_flattened()
            .into(),
    };
    LevelTables {
        slots: slots[level].clone().into(),
        neighbours: index
            .rows
            .par_iter()
            .map(|row| row_slots(row, level))
            .collect::<Vec<Row>>()
            .into_flattened()
            .into(),
        parents,
        octants: tree.level(level).iter().map(|key| key.octant() as u8).collect(),
        outside: index.outside.clone().into(),
        ..Default::default()
    }
}

/// The same with its children, which lie in these slots.
fn with_children(own: LevelTables, index: &LevelIndex, finer: &[u32]) -> LevelTables {
    let leaves =
        |children: &[u32; OCTANTS]| (0..OCTANTS).filter(|&o| children[o] == NONE).fold(0, |mask, o| mask | 1 << o);
    let tables = LevelTables {
        leaves: index.children.iter().map(leaves).collect(),
        children: index.children.iter().flatten().map(|&child| slot_of(child, finer)).collect(),
        beyond: (0..index.rows.len())
            .into_par_iter()
            .map(|g| beyond(index, g).map(|child| slot_of(child, finer)))
            .collect::<Vec<[u32; OCTANTS * FACES]>>()
            .into_flattened()
            .into(),
        ..own
    };
    tables.check();
    tables
}

/// Walks the levels from coarse to fine: from level `first` on, whose tables may be known, which is the root level if not.
fn index(tree: &Octree, first: usize, known: Option<&LevelTables>) -> Vec<LevelIndex> {
    let mut levels: Vec<LevelIndex> = known.map(index_of).into_iter().collect();
    for level in first + levels.len()..tree.level_count() {
        let outside: Vec<u8> = tree.level(level).par_iter().map(|&key| outside(tree, key)).collect();
        let parents = parents(tree, level);
        let rows = match levels.last_mut() {
            None => root_rows(tree, &outside),
            Some(coarser) => {
                for (g, &parent) in parents.iter().enumerate() {
                    coarser.children[parent as usize][tree.level(level)[g].octant()] = g as u32;
                }
                let row =
                    |g: usize| refined_row(coarser, parents[g] as usize, tree.level(level)[g].octant(), outside[g]);
                (0..parents.len()).into_par_iter().map(row).collect()
            }
        };
        let children = vec![[NONE; OCTANTS]; rows.len()];
        levels.push(LevelIndex { rows, parents, children, outside });
    }
    levels
}

/// The index of a level whose children are still to be found, by its tables.
fn index_of(tables: &LevelTables) -> LevelIndex {
    let mut places = vec![NONE; tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1)];
    for (place, &slot) in tables.slots.iter().enumerate() {
        places[slot as usize] = place as u32;
    }
    LevelIndex {
        rows: (0..tables.len()).into_par_iter().map(|g| tables.row(g).map(|slot| slot_of(slot, &places))).collect(),
        parents: Vec::new(),
        children: vec![[NONE; OCTANTS]; tables.len()],
        outside: tables.outside.to_vec(),
    }
}

/// Place of each group's parent: both lists follow the Morton curve, so one walk finds them all.
fn parents(tree: &Octree, level: usize) -> Vec<u32> {
    if level == 0 {
        return vec![NONE; tree.level(0).len()];
    }
    let coarser = tree.level(level - 1);
    let mut place = 0;
    let find = |key: &Key| {
        let parent = key.parent().expect("a refined level has parents");
        while coarser[place] != parent {
            place += 1;
        }
        place as u32
    };
    tree.level(level).iter().map(find).collect()
}

/// Bits of the faces of the box that a group touches and that are not periodic: −x, +x, −y, +y, −z, +z.
pub(crate) fn outside(tree: &Octree, key: Key) -> u8 {
    (0..3).filter(|&axis| !tree.periodic()[axis]).fold(0, |bits, axis| {
        let last = (tree.root_groups()[axis] << key.level) - 1;
        let [lower, upper] = [0, last].map(|edge| u8::from(key.coordinate[axis] == edge));
        bits | lower << (2 * axis) | upper << (2 * axis + 1)
    })
}

/// Every direction with its row entry; components that leave the box through a closed face are dropped.
pub(crate) fn directions(outside: u8) -> impl Iterator<Item = (usize, [i32; 3])> {
    let range = -1..=1;
    range
        .clone()
        .flat_map(move |z| {
            let range = range.clone();
            range.clone().flat_map(move |y| range.clone().map(move |x| [x, y, z]))
        })
        .map(move |offset: [i32; 3]| {
            let entry = direction(offset[0], offset[1], offset[2]);
            let inside = std::array::from_fn(|axis| {
                let bit = 2 * axis + usize::from(offset[axis] > 0);
                if offset[axis] != 0 && outside >> bit & 1 == 1 { 0 } else { offset[axis] }
            });
            (entry, inside)
        })
}

fn root_rows(tree: &Octree, outside: &[u8]) -> Vec<Row> {
    let places: Vec<u32> = (0..tree.level(0).len() as u32).collect();
    let mesh = root_slots(tree, &[places]);
    let groups = tree.root_groups().map(|n| n as i32);
    let row = |g: usize| {
        let mut row = [NONE; DIRECTIONS];
        for (entry, offset) in directions(outside[g]) {
            let [x, y, z] = std::array::from_fn(|axis| {
                (tree.level(0)[g].coordinate[axis] as i32 + offset[axis]).rem_euclid(groups[axis])
            });
            row[entry] = mesh[((z * groups[1] + y) * groups[0] + x) as usize];
        }
        row
    };
    (0..outside.len()).into_par_iter().map(row).collect()
}

/// The row of the group at `octant` of `parent`.
fn refined_row(coarser: &LevelIndex, parent: usize, octant: usize, outside: u8) -> Row {
    if outside == 0 {
        return std::array::from_fn(|entry| patch_beyond(coarser, parent, octant, entry));
    }
    let mut row = [NONE; DIRECTIONS];
    for (entry, [dx, dy, dz]) in directions(outside) {
        row[entry] = patch_beyond(coarser, parent, octant, direction(dx, dy, dz));
    }
    row
}

/// By octant and direction of a neighbour of a patch: the direction of the group that holds it, and its octant there.
const NEIGHBOUR: [[(u8, u8); DIRECTIONS]; OCTANTS] = {
    let mut all = [[(0, 0); DIRECTIONS]; OCTANTS];
    let mut n = 0;
    while n < OCTANTS * DIRECTIONS {
        let (octant, towards) = (n / DIRECTIONS, n % DIRECTIONS);
        let (step, mut group, mut other, mut axis) = (offset(towards), [0; 3], 0, 0);
        while axis < 3 {
            let at = (octant >> axis & 1) as i32 + step[axis];
            group[axis] = at.div_euclid(2);
            other |= (at.rem_euclid(2) as u8) << axis;
            axis += 1;
        }
        all[octant][towards] = (direction(group[0], group[1], group[2]) as u8, other);
        n += 1;
    }
    all
};

/// The group that refines the neighbour, in a direction, of the patch at `octant` of group `g`; [`NONE`] for a leaf.
fn patch_beyond(level: &LevelIndex, g: usize, octant: usize, towards: usize) -> u32 {
    let (group, other) = NEIGHBOUR[octant][towards];
    match level.rows[g][usize::from(group)] {
        NONE => NONE,
        group => level.children[group as usize][usize::from(other)],
    }
}

/// The groups that refine the patches across the faces of group `g`'s patches, `[8, 6]`.
fn beyond(level: &LevelIndex, g: usize) -> [u32; OCTANTS * FACES] {
    std::array::from_fn(|n| {
        let (octant, face) = (n / FACES, n % FACES);
        let at_edge = (octant_origin(octant)[face / 2] >= PATCH) == (face & 1 == 1);
        if at_edge && level.outside[g] >> face & 1 == 1 {
            return NONE;
        }
        patch_beyond(level, g, octant, face_entry(face))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::octree::{CLOSED, PERIODIC};
    use comove_kernels::layout::CENTRE;

    /// A box whose root octants are refined in a pattern, three levels deep.
    fn tree(root: [u32; 3], periodic: [bool; 3]) -> Octree {
        let mut refined = Vec::new();
        for key in Octree::new(root, periodic).level(0) {
            for o in (0..OCTANTS).filter(|o| !(key.coordinate[0] as usize + o).is_multiple_of(3)) {
                refined.push(key.child(o));
                refined.extend((0..OCTANTS).filter(|p| (o + p).is_multiple_of(2)).map(|p| key.child(o).child(p)));
            }
        }
        Octree::with_groups(root, periodic, refined)
    }

    fn slots(tree: &Octree) -> Vec<Vec<u32>> {
        // any distinct numbers, to see that slots and places are not confused
        (0..tree.level_count())
            .map(|l| (0..tree.level(l).len()).map(|n| 7 + 3 * (tree.first_of_level(l) + n) as u32).collect())
            .collect()
    }

    /// Against look-ups of coordinates, group by group.
    #[test]
    fn rows_agree_with_look_ups() {
        for periodic in [PERIODIC, CLOSED, [true, false, true], [false, true, true]] {
            let tree = tree([3, 1, 2], periodic);
            let slots = slots(&tree);
            let tables = build_tables(&tree, &slots, Default::default());
            let slot = |key: Key| tree.find(key).map_or(NONE, |n| slots[usize::from(key.level)][n]);
            for level in 0..tree.level_count() {
                let cells = tree.root_groups().map(|n| n << level);
                for (g, &key) in tree.level(level).iter().enumerate() {
                    let expected = |key: Key| {
                        let mut row = [NONE; DIRECTIONS];
                        for d in 0..27i32 {
                            let mut offset = [d % 3 - 1, d / 3 % 3 - 1, d / 9 - 1];
                            for axis in 0..3 {
                                let single = [
                                    offset[axis] * i32::from(axis == 0),
                                    offset[axis] * i32::from(axis == 1),
                                    offset[axis] * i32::from(axis == 2),
                                ];
                                if tree.neighbour(key, single).is_none() {
                                    offset[axis] = 0;
                                }
                            }
                            row[d as usize] = slot(tree.neighbour(key, offset).expect("inside by now"));
                        }
                        row
                    };
                    assert_eq!(*tables[level].row(g), expected(key), "{key:?}");
                    if let Some(parent) = key.parent() {
                        assert_eq!(*tables[level].parent_row(g), expected(parent));
                    }
                    assert_eq!(tables[level].leaves[g], tree.leaves(key));
                    assert_eq!(usize::from(tables[level].octants[g]), key.octant());
                    for face in 0..6 {
                        let edge = if face & 1 == 0 { 0 } else { cells[face / 2] - 1 };
                        let touches = !periodic[face / 2] && key.coordinate[face / 2] == edge;
                        assert_eq!(tables[level].outside[g] >> face & 1 == 1, touches);
                    }
                    for o in 0..OCTANTS {
                        assert_eq!(tables[level].children_of(g)[o], slot(key.child(o)));
                        for face in 0..FACES {
                            let mut offset = [0; 3];
                            offset[face / 2] = if face & 1 == 0 { -1 } else { 1 };
                            let beyond = tree.neighbour(key.child(o), offset).map_or(NONE, slot);
                            assert_eq!(tables[level].beyond_of(g, o)[face], beyond);
                        }
                    }
                }
            }
            assert_eq!(tables[0].row(0)[CENTRE], slots[0][0]);
            assert_eq!(root_slots(&tree, &slots)[5], slot(Key::new(0, [2, 0, 1])));
        }
    }
}

//! What a group reads of other groups: the cells that a ghost copy must hold.

use crate::mesh::{Key, Octree};
use comove_kernels::layout::{CENTRE, DIRECTIONS, FACES, GROUP, HYDRO_GHOSTS, PATCH, direction, octant_origin, offset};

/// Coarse cells around a refined patch that its ghost cells are interpolated from: those that cover three fine ones, and one
/// more for the slopes.
const MARGIN: usize = HYDRO_GHOSTS.div_ceil(2) + 1;

/// Cells of groups beside a particle's own one that its kick reads: two around the cells of its cloud, the outer of which is up to
/// two cells outside the group where the particle has moved by less than 1.5 cells. Between sorts it moves by 0.75 at most.
pub(crate) const KICK_GHOSTS: usize = 4;

/// A box of a group's cells: from `first` to before `end` along x, y, z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellBox {
    /// The lowest cell.
    pub first: [u8; 3],
    /// Behind the highest cell.
    pub end: [u8; 3],
}

impl CellBox {
    /// The patch at an octant.
    pub(crate) fn patch(octant: usize) -> Self {
        let first = octant_origin(octant).map(|c| c as u8);
        Self { first, end: first.map(|c| c + PATCH as u8) }
    }

    /// Cells in it.
    pub(crate) fn cells(&self) -> usize {
        (0..3).map(|a| usize::from(self.end[a] - self.first[a])).product()
    }

    /// Whether another is within it.
    fn contains(&self, other: &Self) -> bool {
        (0..3).all(|a| self.first[a] <= other.first[a] && other.end[a] <= self.end[a])
    }

    /// The parts of the box outside another, at most six.
    fn without(mut self, other: &Self) -> Vec<Self> {
        let mut parts = Vec::new();
        let overlaps = |own: &Self| (0..3).all(|a| own.first[a] < other.end[a] && other.first[a] < own.end[a]);
        if !overlaps(&self) {
            return vec![self];
        }
        // what sticks out along one axis after the other; the rest is within
        for a in 0..3 {
            if self.first[a] < other.first[a] {
                let mut end = self.end;
                end[a] = other.first[a];
                parts.push(Self { end, ..self });
                self.first[a] = other.first[a];
            }
            if self.end[a] > other.end[a] {
                let mut first = self.first;
                first[a] = other.end[a];
                parts.push(Self { first, ..self });
                self.end[a] = other.end[a];
            }
        }
        parts
    }

    /// Boxes with the same cells as these, each cell in one of them; large ones come first. The result does not depend on
    /// the order of boxes.
    pub(crate) fn apart(mut boxes: Vec<Self>) -> Vec<Self> {
        boxes.sort_unstable_by_key(|b| (std::cmp::Reverse(b.cells()), b.first, b.end));
        let mut apart: Vec<Self> = Vec::new();
        for new in boxes {
            if apart.iter().any(|there| there.contains(&new)) {
                continue;
            }
            let mut parts = vec![new];
            for there in &apart {
                parts = parts.into_iter().flat_map(|part| part.without(there)).collect();
            }
            apart.extend(parts);
        }
        apart
    }

    /// The cells of a neighbour in this direction within `depth` cells.
    pub(crate) fn facing(offset: [i32; 3], depth: usize) -> Self {
        let [depth, group] = [depth as u8, GROUP as u8];
        Self {
            first: offset.map(|step| if step < 0 { group - depth } else { 0 }),
            end: offset.map(|step| if step > 0 { depth } else { group }),
        }
    }

    /// The cells at a face where a slot begins with those of all faces: one plane of it.
    fn face(face: usize) -> Self {
        let [plane, group] = [face as u8, GROUP as u8];
        Self { first: [0, 0, plane], end: [group, group, plane + 1] }
    }

    /// In one number, 30 bits, that orders by the lowest cell, then by the end.
    pub(crate) fn code(&self) -> u32 {
        self.first.iter().chain(&self.end).fold(0, |code, &c| code << 5 | u32::from(c))
    }

    /// The box of a number that [`CellBox::code`] gave.
    pub(crate) fn of_code(code: u32) -> Self {
        let at = |n: usize| (code >> (25 - 5 * n) & 31) as u8;
        Self { first: [at(0), at(1), at(2)], end: [at(3), at(4), at(5)] }
    }
}

/// Calls `each` with the groups of a group's own level that it reads, if they exist, and where they are from it: it reads the
/// cells [facing](CellBox::facing) it, and for the relaxation of its potential their faces, which then lie where
/// [`CellBox::face`] says.
pub(crate) fn same_level_stencil(lattice: &Octree, key: Key, mut each: impl FnMut(Key, [i32; 3], Option<CellBox>)) {
    for (entry, inside) in directions(outside(lattice, key)) {
        // cells beyond the domain are made from the group that is named instead, along the same axes
        if entry != CENTRE && inside != [0; 3] {
            let neighbour = lattice.neighbour(key, inside).expect("inside the domain");
            let across = (0..FACES).find(|&face| face_offset(face) == inside).map(|face| CellBox::face(face ^ 1));
            each(neighbour, inside, across);
        }
    }
}

/// The groups of the coarser level that a group reads, and their cells: the patch that it refines, and what is around.
pub(crate) fn coarse_stencil(lattice: &Octree, key: Key, mut each: impl FnMut(Key, CellBox)) {
    let Some(parent) = key.parent() else { return };
    let ends = outside(lattice, key);
    // along each axis the cells are in the parent and in its neighbour on the patch's side
    let runs: [[(i32, usize, usize); 2]; 3] = std::array::from_fn(|axis| match key.octant() >> axis & 1 {
        0 => [(0, 0, PATCH + MARGIN), (-1, GROUP - MARGIN, GROUP)],
        _ => [(0, PATCH - MARGIN, GROUP), (1, 0, MARGIN)],
    });
    for n in 0..8 {
        let [x, y, z] = std::array::from_fn(|axis| runs[axis][n >> axis & 1]);
        let step = [x.0, y.0, z.0];
        let leaves = |axis: usize| step[axis] != 0 && ends >> (2 * axis + usize::from(step[axis] > 0)) & 1 == 1;
        if !(0..3).any(leaves) {
            let group = lattice.neighbour(parent, step).expect("inside the domain");
            let [first, end] = [[x.1, y.1, z.1], [x.2, y.2, z.2]].map(|corner| corner.map(|c| c as u8));
            each(group, CellBox { first, end });
        }
    }
}

/// The groups of the coarser level that hold the patches across the faces of the patch that a group refines, itself
/// included: their mass sheets take the group's gradients.
pub(crate) fn patches_beside(lattice: &Octree, key: Key, mut each: impl FnMut(Key)) {
    for face in 0..FACES {
        if let Some(patch) = lattice.neighbour(key, face_offset(face)) {
            each(patch.parent().expect("a refined level has parents"));
        }
    }
}

/// From a group to the one across a face.
pub(crate) fn face_offset(face: usize) -> [i32; 3] {
    let mut offset = [0; 3];
    offset[face / 2] = if face & 1 == 0 { -1 } else { 1 };
    offset
}

/// The entry of a neighbour row towards a face.
pub(crate) fn face_entry(face: usize) -> usize {
    let [x, y, z] = face_offset(face);
    direction(x, y, z)
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
    (0..DIRECTIONS).map(move |entry| (entry, inside(entry, outside)))
}

/// The row of neighbours of a group.
///
/// * `slot`: of a group in the domain, which need not exist
pub(crate) fn row_of(lattice: &Octree, key: Key, slot: impl Fn(Key) -> u32) -> [u32; DIRECTIONS] {
    let outside = outside(lattice, key);
    let neighbour = |entry| lattice.neighbour(key, inside(entry, outside)).expect("inside the domain");
    std::array::from_fn(|entry| slot(neighbour(entry)))
}

/// The direction of a row entry without the components that leave the box through a closed face.
pub(super) fn inside(entry: usize, outside: u8) -> [i32; 3] {
    let step = offset(entry);
    std::array::from_fn(|axis| {
        let bit = 2 * axis + usize::from(step[axis] > 0);
        if step[axis] != 0 && outside >> bit & 1 == 1 { 0 } else { step[axis] }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn boxes_apart_have_each_cell_once(
            corners in prop::collection::vec(([0u8..16, 0u8..16, 0u8..16], [1u8..9, 1u8..9, 1u8..9]), 1..6),
            turned in 0usize..6,
        ) {
            let boxes: Vec<CellBox> = corners
                .iter()
                .map(|(first, extent)| CellBox { first: *first, end: [0, 1, 2].map(|a| (first[a] + extent[a]).min(16)) })
                .collect();
            let cells = |boxes: &[CellBox]| -> Vec<[u8; 3]> {
                let of = |b: &CellBox| {
                    let [x, y, z] = [0, 1, 2].map(|a| b.first[a]..b.end[a]);
                    z.flat_map(|k| {
                        let x = x.clone();
                        y.clone().flat_map(move |j| x.clone().map(move |i| [i, j, k])).collect::<Vec<_>>()
                    })
                        .collect::<Vec<_>>()
                };
                boxes.iter().flat_map(of).collect()
            };
            prop_assert!(boxes.iter().all(|one| CellBox::of_code(one.code()) == *one));
            let apart = CellBox::apart(boxes.clone());
            let (once, all) = (cells(&apart), cells(&boxes).into_iter().collect::<BTreeSet<_>>());
            prop_assert_eq!(once.len(), all.len());
            prop_assert_eq!(once.into_iter().collect::<BTreeSet<_>>(), all);
            let mut others = boxes.clone();
            others.rotate_left(turned % boxes.len());
            prop_assert_eq!(CellBox::apart(others), apart);
        }
    }
}

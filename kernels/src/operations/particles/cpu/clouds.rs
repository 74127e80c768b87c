//! The clouds of particles, many at a time, and where they are in the tile of a group.

use super::super::Particles;
use super::drift_axis;
use crate::layout::GROUP;
use crate::point::particle::{Cloud, drifted};
use std::ops::Range;

/// Particles whose clouds are found together: they stay in the first cache.
pub(super) const BATCH: usize = 256;

/// A tile, a group with one cell around it, along one axis.
pub(super) const TILE: usize = GROUP + 2;
/// Cells of a tile.
pub(super) const TILE_CELLS: usize = TILE * TILE * TILE;
/// From the lower corner of a cloud to the last of its eight cells, counted in a tile.
pub(super) const TILE_CORNER: usize = (TILE + 1) * TILE + 1;

/// Particles in succession that are worth a tile of their group.
const LONG: usize = 96;

/// Where particles are at another time.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    columns: [&'a [u32]; 6],
    factors: [f64; 3],
}

impl<'a> At<'a> {
    pub(super) fn new(particles: &'a Particles, factors: [f64; 3]) -> Self {
        Self { columns: std::array::from_fn(|c| particles.columns[c].host()), factors }
    }

    /// At these positions.
    pub(super) fn here(positions: [&'a [u32]; 3]) -> Self {
        Self { columns: std::array::from_fn(|c| positions.get(c).copied().unwrap_or_default()), factors: [0.0; 3] }
    }

    fn is_now(&self) -> bool {
        self.factors == [0.0; 3]
    }

    pub(super) fn position(&self, n: usize) -> [u32; 3] {
        [0, 1, 2].map(|axis| match self.is_now() {
            true => self.columns[axis][n],
            false => drifted(self.columns[axis][n], f32::from_bits(self.columns[3 + axis][n]), self.factors[axis]),
        })
    }

    /// The group of a level of so many cells that most of the particles from number `n` on are in; none if they are in
    /// many, or few.
    pub(super) fn common_group(&self, range: Range<usize>, cells: [u32; 3]) -> Option<[u32; 3]> {
        if range.len() < LONG {
            return None;
        }
        let group = group_at(self.position(range.start), cells);
        let mut others = range.take(LONG).filter(|&n| group_at(self.position(n), cells) != group);
        others.nth(LONG / 8).is_none().then_some(group)
    }
}

/// Cell that contains a coordinate, on an axis of `cells` cells.
#[inline(always)]
pub(super) fn cell_at(x: u32, cells: u32) -> u32 {
    ((u64::from(x) * u64::from(cells)) >> 32) as u32
}

/// The group of a level of so many cells that a position is in.
#[inline(always)]
pub(super) fn group_at(position: [u32; 3], cells: [u32; 3]) -> [u32; 3] {
    [0, 1, 2].map(|axis| cell_at(position[axis], cells[axis]) / GROUP as u32)
}

/// The clouds of a batch along each axis.
pub(super) struct Clouds {
    /// The lower of the two cells on the level; −1 wraps around.
    lower: [[u32; BATCH]; 3],
    /// The weight of the upper one.
    upper: [[u32; BATCH]; 3],
}

impl Clouds {
    pub(super) const NONE: Self = Self { lower: [[0; BATCH]; 3], upper: [[0; BATCH]; 3] };

    /// Finds those of some particles, at most [`BATCH`], on a level of so many cells.
    ///
    /// * `bits`: of the weights
    #[inline(always)]
    pub(super) fn find(&mut self, at: &At<'_>, range: Range<usize>, cells: [u32; 3], bits: u32) {
        for axis in 0..3 {
            let (lower, upper) = (&mut self.lower[axis][..range.len()], &mut self.upper[axis][..range.len()]);
            lower.copy_from_slice(&at.columns[axis][range.clone()]);
            if !at.is_now() {
                drift_axis(lower, &at.columns[3 + axis][range.clone()], at.factors[axis]);
            }
            let both = lower.iter_mut().zip(upper);
            let lower_and_upper = |cloud: Cloud| (cloud.cell.wrapping_add_signed(cloud.lower), cloud.weights[1]);
            both.for_each(|(x, upper)| (*x, *upper) = lower_and_upper(Cloud::with_bits(*x, cells[axis], bits)));
        }
    }

    #[inline(always)]
    pub(super) fn lower(&self, n: usize) -> [u32; 3] {
        [self.lower[0][n], self.lower[1][n], self.lower[2][n]]
    }

    #[inline(always)]
    pub(super) fn upper(&self, n: usize) -> [u32; 3] {
        [self.upper[0][n], self.upper[1][n], self.upper[2][n]]
    }
}

/// The tile of a group of a level; by default that of none.
#[derive(Clone, Copy, Default)]
pub(super) struct Tile {
    /// Cells of the level along each axis.
    cells: [u32; 3],
    pub(super) group: [u32; 3],
    /// The tile's first cell; −1 wraps around.
    first: [u32; 3],
    /// Where clouds begin that are in the tile.
    width: u32,
}

impl Tile {
    pub(super) fn new(cells: [u32; 3], group: [u32; 3]) -> Self {
        let first = group.map(|group| (group * GROUP as u32).wrapping_sub(1));
        Self { cells, group, first, width: TILE as u32 - 1 }
    }

    /// Whether it is of a group.
    pub(super) fn is_some(&self) -> bool {
        self.width > 0
    }

    /// Where in the tile the lower corner of a cloud is; none if one of its cells is outside.
    #[inline(always)]
    pub(super) fn find(&self, lower: [u32; 3]) -> Option<usize> {
        let [x, y, z] = self.first;
        self.index([lower[0].wrapping_sub(x), lower[1].wrapping_sub(y), lower[2].wrapping_sub(z)])
    }

    /// The same across the ends of the box.
    #[cold]
    pub(super) fn find_across(&self, lower: [u32; 3]) -> Option<usize> {
        self.index([0, 1, 2].map(|axis| {
            let (step, cells) = (lower[axis].wrapping_sub(self.first[axis]) as i32, self.cells[axis] as i32);
            (if step < 0 {
                step + cells
            } else if step < cells {
                step
            } else {
                step - cells
            }) as u32
        }))
    }

    #[inline(always)]
    fn index(&self, at: [u32; 3]) -> Option<usize> {
        let is_inside = at[0] < self.width && at[1] < self.width && at[2] < self.width;
        is_inside.then_some((at[2] as usize * TILE + at[1] as usize) * TILE + at[0] as usize)
    }
}

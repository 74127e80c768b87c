//! A group with the ghost cells around it, gathered from its neighbours.
//!
//! Each of the 26 regions around a group is filled in one way. Where a group of the same level lies there, its cells are
//! copied. Else they are interpolated from the coarser level with Min-Mod slopes (paper, sections 2.1 and 2.2): a fine cell
//! centre lies a quarter of a coarse cell from the coarse centre on each axis, so its value is c ± s_x/4 ± s_y/4 ± s_z/4,
//! and the eight fine cells of a coarse one have its value as their mean. Beyond a boundary that is not periodic the
//! outermost cell is repeated, whichever way it is filled itself.
//!
//! A ghost value depends on the pool's cells and its place alone, so two groups that see one cell see the same bits.

use crate::layout::{CENTRE, FIELDS, GROUP, GROUP_CELLS, HYDRO_BLOCK, HYDRO_GHOSTS, PATCH, direction};
use crate::point::minmod::minmod;
use crate::real::Real;
use crate::tables::{LevelTables, NONE};

/// Values of a block: `[field, k, j, i]`, each index from −3 to 18, i fastest.
pub const BLOCK_VALUES: usize = FIELDS * BLOCK_CELLS;
const BLOCK_CELLS: usize = HYDRO_BLOCK * HYDRO_BLOCK * HYDRO_BLOCK;

/// Coarse cells that cover the fine ghost cells on one side.
const COARSE_GHOSTS: usize = HYDRO_GHOSTS.div_ceil(2);
/// Coarse cells, along one axis, that cover a fine group and its ghost cells.
const COVER: usize = PATCH + 2 * COARSE_GHOSTS;
/// The same with one more cell on each side for the slopes.
const COARSE: usize = COVER + 2;
/// Fine cells of a row of coarse ones that precede the first ghost cell.
const SURPLUS: usize = 2 * COARSE_GHOSTS - HYDRO_GHOSTS;

/// Offset of cell (i, j, k) of `field` in a block, counted from the outermost ghost cell.
#[inline(always)]
pub const fn block_cell(field: usize, i: usize, j: usize, k: usize) -> usize {
    ((field * HYDRO_BLOCK + k) * HYDRO_BLOCK + j) * HYDRO_BLOCK + i
}

/// Where a coordinate of a block (or of the coarse cells under it) is found along one axis.
#[derive(Clone, Copy, Default)]
struct Place {
    /// −1, 0 or 1: in which group.
    step: i32,
    /// Which cell of that group.
    cell: usize,
    /// The coordinate with those outside the domain moved to the outermost cell inside.
    clamped: usize,
}

/// Places of `N` cells along one axis, the first of which is cell `first` of the group; `low`/`high`: the group there is
/// outside the domain.
#[inline(always)]
fn places<const N: usize>(first: i32, low: bool, high: bool) -> [Place; N] {
    const WIDTH: i32 = GROUP as i32;
    let mut places = [Place::default(); N];
    for (n, place) in places.iter_mut().enumerate() {
        let mut cell = first + n as i32;
        if low {
            cell = cell.max(0);
        }
        if high {
            cell = cell.min(WIDTH - 1);
        }
        let step = cell.div_euclid(WIDTH);
        *place = Place { step, cell: cell.rem_euclid(WIDTH) as usize, clamped: (cell - first) as usize };
    }
    places
}

/// Room for the coarse cells under one group: one field at a time.
pub struct CoarseCells<T> {
    cells: Vec<T>,
}

impl<T: Real> CoarseCells<T> {
    /// Room for one group.
    pub fn new() -> Self {
        Self { cells: vec![T::zero(); COARSE * COARSE * COARSE] }
    }
}

impl<T: Real> Default for CoarseCells<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Gathers group `g` of a level and three cells around it.
///
/// * `fluid`: the pool, all levels, `[slot, 6, 16, 16, 16]`
/// * `coarse`: work space
/// * `block`: the result, `[6, 22, 22, 22]`
///
/// # Panics
/// If a coarse group that the interpolation needs is missing: the octree is not properly nested.
#[inline(always)]
pub fn gather<T: Real>(
    tables: &LevelTables,
    g: usize,
    fluid: &[T],
    coarse: &mut CoarseCells<T>,
    block: &mut [T; BLOCK_VALUES],
) {
    let row = tables.row(g);
    let outside = |bit: usize| tables.outside[g] >> bit & 1 == 1;
    let ghosts = -(HYDRO_GHOSTS as i32);
    let axis = |a: usize| places::<HYDRO_BLOCK>(ghosts, outside(2 * a), outside(2 * a + 1));
    let (x, y, z) = (axis(0), axis(1), axis(2));
    let interpolates = tables.has_coarse_neighbour(g);
    let mut fine_row = [T::zero(); 2 * COVER];
    for field in 0..FIELDS {
        if interpolates {
            gather_coarse(tables, g, fluid, field, &mut coarse.cells);
        }
        for k in 0..HYDRO_BLOCK {
            for j in 0..HYDRO_BLOCK {
                let to = &mut block[block_cell(field, 0, j, k)..][..HYDRO_BLOCK];
                // the three groups that this row runs through; beyond the domain the middle one stands in
                let slots = [x[0].step, 0, x[HYDRO_BLOCK - 1].step].map(|dx| row[direction(dx, y[j].step, z[k].step)]);
                if slots.contains(&NONE) {
                    interpolate_row(&coarse.cells, y[j].clamped, z[k].clamped, &mut fine_row);
                }
                let from = |slot: u32| {
                    let start =
                        (slot as usize * FIELDS + field) * GROUP_CELLS + (z[k].cell * GROUP + y[j].cell) * GROUP;
                    &fluid[start..][..GROUP]
                };
                let (west, rest) = to.split_at_mut(HYDRO_GHOSTS);
                let (middle, east) = rest.split_at_mut(GROUP);
                match slots[1] {
                    NONE => middle.copy_from_slice(&fine_row[SURPLUS + HYDRO_GHOSTS..][..GROUP]),
                    slot => middle.copy_from_slice(from(slot)),
                }
                match slots[0] {
                    _ if x[0].step == 0 => west.fill(middle[0]),
                    NONE => west.copy_from_slice(&fine_row[SURPLUS..][..HYDRO_GHOSTS]),
                    slot => west.copy_from_slice(&from(slot)[GROUP - HYDRO_GHOSTS..]),
                }
                match slots[2] {
                    _ if x[HYDRO_BLOCK - 1].step == 0 => east.fill(middle[GROUP - 1]),
                    NONE => east.copy_from_slice(&fine_row[SURPLUS + HYDRO_GHOSTS + GROUP..][..HYDRO_GHOSTS]),
                    slot => east.copy_from_slice(&from(slot)[..HYDRO_GHOSTS]),
                }
            }
        }
    }
}

/// Copies one field of the coarse cells under a group's block, `[14, 14, 14]`.
#[inline(always)]
fn gather_coarse<T: Real>(tables: &LevelTables, g: usize, fluid: &[T], field: usize, cells: &mut [T]) {
    let row = tables.parent_row(g);
    let outside = |bit: usize| tables.outside[g] >> bit & 1 == 1;
    let axis = |a: usize| {
        let first = (usize::from(tables.octants[g]) >> a & 1) * PATCH;
        places::<COARSE>(first as i32 - COARSE_GHOSTS as i32 - 1, outside(2 * a), outside(2 * a + 1))
    };
    let (x, y, z) = (axis(0), axis(1), axis(2));
    for k in 0..COARSE {
        for j in 0..COARSE {
            let to = &mut cells[(k * COARSE + j) * COARSE..][..COARSE];
            for i in 0..COARSE {
                let slot = row[direction(x[i].step, y[j].step, z[k].step)];
                assert!(slot != NONE, "group {g} of this level has no coarse group beside its parent {}", row[CENTRE]);
                let cell = (z[k].cell * GROUP + y[j].cell) * GROUP + x[i].cell;
                to[i] = fluid[(slot as usize * FIELDS + field) * GROUP_CELLS + cell];
            }
        }
    }
}

/// Interpolates the fine row at block coordinates (j, k), from a cell before its first ghost cell on.
#[inline(always)]
fn interpolate_row<T: Real>(coarse: &[T], j: usize, k: usize, fine: &mut [T; 2 * COVER]) {
    let quarter = T::of(0.25);
    let (j, k) = (j + SURPLUS, k + SURPLUS);
    let sign = |odd: usize| if odd == 1 { quarter } else { -quarter };
    let (to_y, to_z) = (sign(j & 1), sign(k & 1));
    let row = |dj: usize, dk: usize| -> &[T; COARSE] {
        coarse[((k / 2 + dk) * COARSE + j / 2 + dj) * COARSE..][..COARSE].try_into().expect("a row of coarse cells")
    };
    let (centre, south, north, below, above) = (row(1, 1), row(0, 1), row(2, 1), row(1, 0), row(1, 2));
    for m in 0..COVER {
        let i = m + 1;
        let c = centre[i];
        let slope_x = minmod(c - centre[i - 1], centre[i + 1] - c);
        let slope_y = minmod(c - south[i], north[i] - c);
        let slope_z = minmod(c - below[i], above[i] - c);
        let across = to_y * slope_y + to_z * slope_z;
        let along = quarter * slope_x;
        fine[2 * m] = c + (across - along);
        fine[2 * m + 1] = c + (across + along);
    }
}

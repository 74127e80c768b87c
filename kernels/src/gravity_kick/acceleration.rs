//! g = −∇φ along a row of cells.

use crate::layout::{FACE_CELLS, GROUP, PATCH, cell};
use crate::real::Real;

/// Values of one row of 16 cells along x.
pub(super) type Row<T> = [T; GROUP];

/// g along x, y, z in the cells of row (j, k): `scale`·(φ₊ − φ₋) with `scale` = −1/(2h).
///
/// `potential` is the group's `[16, 16, 16]`, `ghosts` its `[6, 16, 16]`.
#[inline(always)]
pub(super) fn acceleration<T: Real>(potential: &[T], ghosts: &[T], j: usize, k: usize, scale: T) -> [Row<T>; 3] {
    let row =
        |j: usize, k: usize| -> &Row<T> { potential[cell(0, j, k)..][..GROUP].try_into().expect("a row has 16 cells") };
    let ghost_row = |face: usize, n: usize| -> &Row<T> {
        ghosts[face * FACE_CELLS + n * GROUP..][..GROUP].try_into().expect("a row has 16 cells")
    };
    let own = row(j, k);
    let (mut west, mut east) = (*own, *own);
    west[1..].copy_from_slice(&own[..GROUP - 1]);
    east[..GROUP - 1].copy_from_slice(&own[1..]);
    west[0] = ghosts[k * GROUP + j];
    east[GROUP - 1] = ghosts[FACE_CELLS + k * GROUP + j];
    let south = if j > 0 { row(j - 1, k) } else { ghost_row(2, k) };
    let north = if j < GROUP - 1 { row(j + 1, k) } else { ghost_row(3, k) };
    let below = if k > 0 { row(j, k - 1) } else { ghost_row(4, j) };
    let above = if k < GROUP - 1 { row(j, k + 1) } else { ghost_row(5, j) };
    let difference = |plus: &Row<T>, minus: &Row<T>| std::array::from_fn(|i| scale * (plus[i] - minus[i]));
    [difference(&east, &west), difference(north, south), difference(above, below)]
}

/// Which cells of row (j, k) belong to leaf patches: left and right half.
#[inline(always)]
pub(super) fn leaf_halves(leaves: u8, j: usize, k: usize) -> [bool; 2] {
    let octant = (j / PATCH) << 1 | (k / PATCH) << 2;
    [0, 1].map(|x| leaves >> (octant | x) & 1 == 1)
}

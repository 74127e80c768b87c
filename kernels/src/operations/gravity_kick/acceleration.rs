//! g = −∇φ along a row of cells.

use crate::layout::{FACE_CELLS, GROUP, cell};
use crate::real::Real;

/// Values of one row of 16 cells along x.
pub(super) type Row<T> = [T; GROUP];

/// g along x, y, z in the cells of row (j, k): `scale`·(φ₊ − φ₋) with `scale` = −1/(2h).
///
/// `potential` is the group's `[16, 16, 16]`, `ghosts` its `[6, 16, 16]`.
#[inline(always)]
pub(super) fn acceleration<T: Real>(potential: &[T], ghosts: &[T], j: usize, k: usize, scale: T) -> [Row<T>; 3] {
    // the row with the ghost cells at its ends
    let mut along = [T::zero(); GROUP + 2];
    along[0] = ghosts[k * GROUP + j];
    along[1..=GROUP].copy_from_slice(row(potential, cell(0, j, k)));
    along[GROUP + 1] = ghosts[FACE_CELLS + k * GROUP + j];
    let ghost_row = |face: usize, n: usize| row(ghosts, face * FACE_CELLS + n * GROUP);
    let south = if j > 0 { row(potential, cell(0, j - 1, k)) } else { ghost_row(2, k) };
    let north = if j < GROUP - 1 { row(potential, cell(0, j + 1, k)) } else { ghost_row(3, k) };
    let below = if k > 0 { row(potential, cell(0, j, k - 1)) } else { ghost_row(4, j) };
    let above = if k < GROUP - 1 { row(potential, cell(0, j, k + 1)) } else { ghost_row(5, j) };
    let mut g = [[T::zero(); GROUP]; 3];
    for i in 0..GROUP {
        g[0][i] = scale * (along[i + 2] - along[i]);
        g[1][i] = scale * (north[i] - south[i]);
        g[2][i] = scale * (above[i] - below[i]);
    }
    g
}

/// The 16 values from `first` on.
#[inline(always)]
fn row<T>(values: &[T], first: usize) -> &Row<T> {
    values[first..first + GROUP].try_into().expect("a row has 16 cells")
}

//! The equation of one group, and its boundary values on the right-hand side.

use crate::layout::{FACE_CELLS, FACES, GROUP, PATCH};
use crate::operations::poisson_source::PoissonSource;
use crate::operations::potential_ghosts::{face_axes, strides};
use crate::real::Real;

/// One group's equation: right-hand side, boundary values and where the solution goes.
pub(super) struct Problem<'a, T> {
    pub(super) source: &'a PoissonSource<'a, T>,
    /// The group's first value in the source.
    pub(super) slot: u32,
    /// `[6, 16, 16]`
    pub(super) ghosts: &'a [T],
    /// Cell width.
    pub(super) h: f64,
    /// `[16, 16, 16]`
    pub(super) potential: &'a mut [T],
    /// `[6, 8, 8]`
    pub(super) gradients: Option<&'a mut [T]>,
}

/// Mean of the boundary values, summed in 16 fixed columns.
#[inline(always)]
pub(in crate::operations) fn boundary_mean<T: Real>(ghosts: &[T]) -> T {
    let mut columns = [T::zero(); GROUP];
    for row in ghosts.chunks_exact(GROUP) {
        for n in 0..GROUP {
            columns[n] += row[n];
        }
    }
    columns.iter().copied().sum::<T>() / T::from_f64(ghosts.len() as f64)
}

/// Moves boundary values less `mean` to the right-hand side: subtracts each from the cell it touches.
#[inline(always)]
pub(super) fn subtract_boundary<T: Real>(ghosts: &[T], mean: T, right_hand_side: &mut [T]) {
    for face in 0..FACES {
        let axis = face / 2;
        let [a, b] = face_axes(axis).map(|other| strides(GROUP)[other]);
        let first = if face & 1 == 0 { 0 } else { (GROUP - 1) * strides(GROUP)[axis] };
        let ghosts = &ghosts[face * FACE_CELLS..][..FACE_CELLS];
        for n in 0..GROUP {
            for m in 0..GROUP {
                let cell = first + n * b + m * a;
                right_hand_side[cell] -= ghosts[n * GROUP + m] - mean;
            }
        }
    }
}

/// Outward normal derivatives on coarse faces (paper, fine-grid side of ξ), the potential being given less `mean`.
#[inline(always)]
pub(super) fn face_gradients<T: Real>(ghosts: &[T], mean: T, h: f64, potential: &[T], gradients: &mut [T]) {
    let scale = T::from_f64(0.25 / h);
    for face in 0..FACES {
        let axis = face / 2;
        let [a, b] = face_axes(axis).map(|other| strides(GROUP)[other]);
        let first = if face & 1 == 0 { 0 } else { (GROUP - 1) * strides(GROUP)[axis] };
        let jump =
            |m: usize, n: usize| ghosts[face * FACE_CELLS + n * GROUP + m] - mean - potential[first + n * b + m * a];
        for n in 0..PATCH {
            for m in 0..PATCH {
                let (left, right) = (2 * m, 2 * m + 1);
                let lower = jump(left, 2 * n) + jump(right, 2 * n);
                let upper = jump(left, 2 * n + 1) + jump(right, 2 * n + 1);
                gradients[(face * PATCH + n) * PATCH + m] = scale * (lower + upper);
            }
        }
    }
}

//! The exact solution of a group's equation by sine transforms.
//!
//! The vectors sin(π(n+1)(k+1)/17) diagonalise the second difference in 16 cells with zero boundary values; scaled by
//! √(2/17) they form a matrix that is symmetric and its own inverse. So: transform along z, y and x, divide by the
//! eigenvalue −Σ(2 − 2cos(π(k+1)/17)), transform back. Mirroring a line multiplies its even-numbered coefficients by
//! 1 and the odd ones by −1, so a dense product splits into two of half the size.

use super::problem::{Problem, boundary_mean, face_gradients, subtract_boundary};
use crate::device::device_table::DeviceTable;
use crate::device::isa::{Kernel, compiled_here};
use crate::layout::{FACE_CELLS, GROUP, GROUP_CELLS};
use crate::real::Real;
use std::f64::consts::PI;

/// Half of a line.
const HALF: usize = GROUP / 2;

/// Different entries of the matrix: entry (k, n) is the one at (k + 1)(n + 1) modulo their number.
const SINES: usize = 2 * (GROUP + 1);

/// Matrices and eigenvalues.
#[derive(Clone, Debug)]
pub struct SineTables<T> {
    /// √(2/17) sin(π m/17).
    #[cfg(feature = "cuda")]
    pub(in crate::operations) sines: [T; SINES],
    /// Even-numbered rows of the matrix, left half: `[k/2, n]`.
    even: [[T; HALF]; HALF],
    /// Odd-numbered rows.
    odd: [[T; HALF]; HALF],
    /// The matrix; the first row has the modes' values in an outermost cell.
    pub(in crate::operations) full: [[T; GROUP]; GROUP],
    /// One over the eigenvalues, `[kz, ky, kx]`.
    pub(in crate::operations) inverse: DeviceTable<T>,
}

impl<T: Real> SineTables<T> {
    /// The tables for 16 cells, whatever their width.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let angle = PI / (GROUP + 1) as f64;
        let norm = (2.0 / (GROUP + 1) as f64).sqrt();
        let sines: [T; SINES] = std::array::from_fn(|m| T::from_f64(norm * (m as f64 * angle).sin()));
        let entry = |k: usize, n: usize| sines[(k + 1) * (n + 1) % SINES];
        let eigenvalue = |k: usize| -4.0 * (0.5 * (k + 1) as f64 * angle).sin().powi(2);
        let inverse = |c: usize| {
            let [x, y, z] = [c % GROUP, c / GROUP % GROUP, c / FACE_CELLS].map(eigenvalue);
            T::from_f64(1.0 / (x + y + z))
        };
        Self {
            #[cfg(feature = "cuda")]
            sines,
            even: std::array::from_fn(|k| std::array::from_fn(|n| entry(2 * k, n))),
            odd: std::array::from_fn(|k| std::array::from_fn(|n| entry(2 * k + 1, n))),
            full: std::array::from_fn(|k| std::array::from_fn(|n| entry(k, n))),
            inverse: (0..GROUP_CELLS).map(inverse).collect(),
        }
    }
}

/// The exact solution of one group.
pub(super) struct Solve<'a, T> {
    pub(super) tables: &'a SineTables<T>,
    pub(super) problem: Problem<'a, T>,
}

compiled_here!(Solve<'static, f32>, Solve<'static, f64>);

impl<T: Real> Kernel for Solve<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // so many lines at once fill the widest registers; narrower ones take them in parts, to the same bits
        if T::BYTES == 4 { solve::<T, 16>(self.tables, self.problem) } else { solve::<T, 8>(self.tables, self.problem) }
    }
}

#[inline(always)]
fn solve<T: Real, const LANES: usize>(tables: &SineTables<T>, problem: Problem<T>) {
    let Problem { source, slot, ghosts, h, potential, gradients } = problem;
    let mean = boundary_mean(ghosts);
    source.fill(slot, 0, h * h, potential);
    subtract_boundary(ghosts, mean, potential);
    transform::<T, LANES>(tables, potential, FACE_CELLS);
    for (plane, inverse) in potential.chunks_exact_mut(FACE_CELLS).zip(tables.inverse.chunks_exact(FACE_CELLS)) {
        transform::<T, LANES>(tables, plane, GROUP);
        for (line, inverse) in plane.chunks_exact_mut(GROUP).zip(inverse.chunks_exact(GROUP)) {
            divide_along_x(tables, inverse, line);
        }
        transform::<T, LANES>(tables, plane, GROUP);
    }
    transform::<T, LANES>(tables, potential, FACE_CELLS);
    if let Some(gradients) = gradients {
        face_gradients(ghosts, mean, h, potential, gradients);
    }
    for value in potential {
        *value += mean;
    }
}

/// Transforms across rows of `row` values: 16 of them make the array. The lines are the columns.
#[inline(always)]
pub(in crate::operations) fn transform<T: Real, const LANES: usize>(
    tables: &SineTables<T>,
    values: &mut [T],
    row: usize,
) {
    let values = &mut values[..GROUP * row];
    for column in (0..row).step_by(LANES) {
        let mut sums = [[T::zero(); LANES]; HALF];
        let mut differences = [[T::zero(); LANES]; HALF];
        for n in 0..HALF {
            let left = &values[n * row + column..][..LANES];
            let right = &values[(GROUP - 1 - n) * row + column..][..LANES];
            for lane in 0..LANES {
                sums[n][lane] = left[lane] + right[lane];
                differences[n][lane] = left[lane] - right[lane];
            }
        }
        for k in 0..HALF {
            let out = &mut values[2 * k * row + column..][..LANES];
            out.copy_from_slice(&product(&tables.even[k], &sums));
            let out = &mut values[(2 * k + 1) * row + column..][..LANES];
            out.copy_from_slice(&product(&tables.odd[k], &differences));
        }
    }
}

/// One output of a half-size product, for several lines at once.
#[inline(always)]
fn product<T: Real, const LANES: usize>(weights: &[T; HALF], lines: &[[T; LANES]; HALF]) -> [T; LANES] {
    let mut sum: [T; LANES] = std::array::from_fn(|lane| weights[0] * lines[0][lane]);
    for n in 1..HALF {
        for lane in 0..LANES {
            sum[lane] += weights[n] * lines[n][lane];
        }
    }
    sum
}

/// Transforms one line along x, divides by the eigenvalues and transforms back.
///
/// Here the lanes of a register are the coefficients, so the matrix is applied column by column.
#[inline(always)]
fn divide_along_x<T: Real>(tables: &SineTables<T>, inverse: &[T], line: &mut [T]) {
    let line: &mut [T; GROUP] = line.try_into().expect("a line has 16 cells");
    let mut coefficients = apply(&tables.full, line);
    for k in 0..GROUP {
        coefficients[k] *= inverse[k];
    }
    *line = apply(&tables.full, &coefficients);
}

/// matrix · line, the matrix being symmetric.
#[inline(always)]
pub(in crate::operations) fn apply<T: Real>(matrix: &[[T; GROUP]; GROUP], line: &[T; GROUP]) -> [T; GROUP] {
    let mut sum: [T; GROUP] = std::array::from_fn(|k| matrix[0][k] * line[0]);
    for n in 1..GROUP {
        for k in 0..GROUP {
            sum[k] += matrix[n][k] * line[n];
        }
    }
    sum
}

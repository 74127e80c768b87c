//! The three-dimensional transform from modes to cells, in f64, with bits that do not depend on the number of threads:
//! each one-dimensional transform is one task's own.

use rayon::prelude::*;
use realfft::RealFftPlanner;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

/// Modes n_x = 0 … N_x/2 of a row.
pub(super) fn row_length(cells: [usize; 3]) -> usize {
    cells[0] / 2 + 1
}

/// Modes that describe a real field on a mesh.
pub(super) fn mode_count(cells: [usize; 3]) -> usize {
    row_length(cells) * cells[1] * cells[2]
}

/// f(i, j, k) = Σ_n modes_n e^(2πi (n_x i/N_x + n_y j/N_y + n_z k/N_z)) for Hermitian modes.
///
/// * `modes`: `[ny, nz, nx]`, n_x = 0 … N_x/2 fastest; N_x even
/// * returns `[z, y, x]`, x fastest
pub(super) fn to_cells(cells: [usize; 3], mut modes: Vec<Complex<f64>>) -> Vec<f64> {
    let [nx, ny, nz] = cells;
    let row = row_length(cells);
    assert_eq!(modes.len(), mode_count(cells));
    let mut planner = FftPlanner::new();
    let along_y = planner.plan_fft_inverse(ny);
    let along_z = planner.plan_fft_inverse(nz);
    let along_x = RealFftPlanner::new().plan_fft_inverse(nx);

    // Along z: a plane of fixed n_y is contiguous; its columns are gathered, transformed and put back.
    modes.par_chunks_mut(nz * row).for_each(|plane| {
        let mut columns = transposed(nz, row, |z, x| plane[z * row + x]);
        along_z.process(&mut columns);
        for z in 0..nz {
            for x in 0..row {
                plane[z * row + x] = columns[x * nz + z];
            }
        }
    });

    // Along y and x: each plane of fixed z gathers its modes from all planes of n_y.
    let mut field = vec![0.0; nx * ny * nz];
    field.par_chunks_mut(nx * ny).enumerate().for_each(|(z, plane)| {
        let mut columns = transposed(ny, row, |y, x| modes[(y * nz + z) * row + x]);
        along_y.process(&mut columns);
        let mut line = vec![Complex::ZERO; row];
        let mut scratch = along_x.make_scratch_vec();
        for (y, output) in plane.chunks_mut(nx).enumerate() {
            for (x, value) in line.iter_mut().enumerate() {
                *value = columns[x * ny + y];
            }
            // Real by symmetry; what is left is round-off, which the real transform refuses to see.
            line[0].im = 0.0;
            line[row - 1].im = 0.0;
            along_x.process_with_scratch(&mut line, output, &mut scratch).expect("lengths of the plan");
        }
    });
    field
}

/// `[columns, rows]`, rows fastest, from a function of (row, column).
fn transposed(rows: usize, columns: usize, value: impl Fn(usize, usize) -> Complex<f64>) -> Vec<Complex<f64>> {
    let mut out = vec![Complex::ZERO; rows * columns];
    for r in 0..rows {
        for c in 0..columns {
            out[c * rows + r] = value(r, c);
        }
    }
    out
}

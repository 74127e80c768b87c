//! The real-to-complex Fourier transform of a mesh, one line of cells at a time.

use crate::covering_grid::planes;
use crate::messages::exchange;
use comove_sim::parallel::Communicator;
use ndarray::{Array3, Axis, Zip};
use realfft::RealFftPlanner;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;
use std::ops::Range;

/// Modes that a rank has of others' planes at once: 16 MiB.
const AT_ONCE: usize = 1 << 20;

/// Σ f exp(−i k·x) over a mesh `[k, j, i]` of `nz` planes, of which each rank has its [`planes`]: the half with k_x ≥ 0,
/// not normalised, this rank's planes of k_z `[planes, ny, nx/2 + 1]`. Collective.
///
/// Every line is transformed on its own, so the bits depend on the number neither of threads nor of ranks.
pub(crate) fn forward_by(communicator: &Communicator, mesh: Array3<f64>, nz: usize) -> Array3<Complex<f64>> {
    let (own, ny, nx) = mesh.dim();
    let along_x = RealFftPlanner::new().plan_fft_forward(nx);
    let mut modes = Array3::zeros([own, ny, nx / 2 + 1]);
    Zip::from(modes.lanes_mut(Axis(2))).and(mesh.lanes(Axis(2))).par_for_each(|mut out, line| {
        let target = out.as_slice_mut().expect("x is contiguous");
        along_x.process(&mut line.to_vec(), target).expect("lengths of the plan");
    });
    drop(mesh);
    transform(&mut modes, 1);
    if communicator.size() == 1 {
        transform(&mut modes, 0);
        return modes;
    }
    // some rows of all planes at a time change places, are transformed along z, and go back
    let ranks = communicator.size();
    let rows = (AT_ONCE / (nz * (nx / 2 + 1))).clamp(1, ny.div_ceil(ranks));
    for start in (0..ny).step_by(rows * ranks) {
        let of = |rank: usize| ny.min(start + rank * rows)..ny.min(start + (rank + 1) * rows);
        let received = exchange(communicator, (0..ranks).map(|rank| numbers(&modes, of(rank))).collect());
        // by rank, so by plane
        let lines: Vec<Complex<f64>> = received.iter().flatten().map(|&[re, im]| Complex::new(re, im)).collect();
        let shape = [nz, of(communicator.rank()).len(), nx / 2 + 1];
        let mut lines = Array3::from_shape_vec(shape, lines).expect("the rows of all planes");
        transform(&mut lines, 0);
        let of_planes = |rank: usize| lines.slice_axis(Axis(0), planes(nz, rank, ranks).into());
        let to = (0..ranks).map(|rank| of_planes(rank).iter().map(|mode| [mode.re, mode.im]).collect());
        for (rank, values) in exchange(communicator, to.collect()).into_iter().enumerate() {
            let mut target = modes.slice_axis_mut(Axis(1), of(rank).into());
            target.iter_mut().zip(values).for_each(|(mode, [re, im])| *mode = Complex::new(re, im));
        }
    }
    modes
}

/// Transforms every line along an axis.
fn transform(modes: &mut Array3<Complex<f64>>, axis: usize) {
    let plan = FftPlanner::new().plan_fft_forward(modes.len_of(Axis(axis)));
    Zip::from(modes.lanes_mut(Axis(axis))).par_for_each(|mut line| {
        let mut values = line.to_vec();
        plan.process(&mut values);
        line.iter_mut().zip(values).for_each(|(out, value)| *out = value);
    });
}

/// Some rows of all planes, `[planes, rows, modes]`.
fn numbers(modes: &Array3<Complex<f64>>, rows: Range<usize>) -> Vec<[f64; 2]> {
    modes.slice_axis(Axis(1), rows.into()).iter().map(|mode| [mode.re, mode.im]).collect()
}

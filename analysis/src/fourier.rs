//! The real-to-complex Fourier transform of a mesh, one line of cells at a time.

use ndarray::{Array3, Axis, Zip};
use realfft::RealFftPlanner;
use rustfft::FftPlanner;
use rustfft::num_complex::Complex;

/// Σ f exp(−i k·x) over a mesh `[k, j, i]`: the half with k_x ≥ 0, `[nz, ny, nx/2 + 1]`, not normalised.
///
/// Every line is transformed on its own, so the bits do not depend on the number of threads.
pub(crate) fn forward(mesh: &Array3<f64>) -> Array3<Complex<f64>> {
    let (nz, ny, nx) = mesh.dim();
    let along_x = RealFftPlanner::new().plan_fft_forward(nx);
    let mut modes = Array3::zeros([nz, ny, nx / 2 + 1]);
    Zip::from(modes.lanes_mut(Axis(2))).and(mesh.lanes(Axis(2))).par_for_each(|mut out, line| {
        let target = out.as_slice_mut().expect("x is contiguous");
        along_x.process(&mut line.to_vec(), target).expect("lengths of the plan");
    });
    for (axis, length) in [(1, ny), (0, nz)] {
        let plan = FftPlanner::new().plan_fft_forward(length);
        Zip::from(modes.lanes_mut(Axis(axis))).par_for_each(|mut line| {
            let mut values = line.to_vec();
            plan.process(&mut values);
            line.iter_mut().zip(values).for_each(|(out, value)| *out = value);
        });
    }
    modes
}

//! Root transforms on the host processor: real along x, complex along y and z, a plane at a time.

use super::lattice_green::LatticeGreen;
use crate::buffer::SlotWriter;
use crate::layout::{GROUP, GROUP_CELLS};
use crate::poisson_source::PoissonSource;
use crate::real::Real;
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};
use std::f64::consts::PI;
use std::sync::Arc;

type Mode = Complex<f64>;

/// Columns of modes that are transformed together: a cache line's worth and more, so that strided reads pay off.
const COLUMNS: usize = 8;

/// What divides by the Laplacian in Fourier space.
enum Green {
    /// The eigenvalues for each axis.
    Periodic([Vec<f64>; 3]),
    /// The transform of the lattice's Green's function, for lines padded to twice their length.
    Isolated(LatticeGreen),
}

/// Plans, Green's function and the mesh of modes.
pub(super) struct Work {
    /// Cells along x, y, z.
    cells: [usize; 3],
    /// Lengths of the transforms: the cells, or twice as many, the second half zero.
    lengths: [usize; 3],
    /// Modes along x: the others follow by symmetry.
    modes: usize,
    x_forward: Arc<dyn RealToComplex<f64>>,
    x_backward: Arc<dyn ComplexToReal<f64>>,
    /// Along y and z.
    forward: [Arc<dyn Fft<f64>>; 2],
    backward: [Arc<dyn Fft<f64>>; 2],
    green: Green,
    /// `[z, ky, kx]`: as many planes as cells along z, since the padding of a line along z is made where it is
    /// transformed.
    mesh: Vec<Mode>,
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Work({:?} cells)", self.cells)
    }
}

impl Work {
    pub(super) fn periodic(cells: [usize; 3]) -> Self {
        Self::new(cells, cells, Green::Periodic(cells.map(eigenvalues)))
    }

    pub(super) fn isolated(cells: [usize; 3]) -> Self {
        Self::new(cells, cells.map(|n| 2 * n), Green::Isolated(LatticeGreen::new(cells)))
    }

    fn new(cells: [usize; 3], lengths: [usize; 3], green: Green) -> Self {
        let mut real = RealFftPlanner::new();
        let mut complex = FftPlanner::new();
        let modes = lengths[0] / 2 + 1;
        Self {
            cells,
            lengths,
            modes,
            x_forward: real.plan_fft_forward(lengths[0]),
            x_backward: real.plan_fft_inverse(lengths[0]),
            forward: [1, 2].map(|axis| complex.plan_fft_forward(lengths[axis])),
            backward: [1, 2].map(|axis| complex.plan_fft_inverse(lengths[axis])),
            green,
            mesh: vec![Mode::default(); modes * lengths[1] * cells[2]],
        }
    }

    /// [`Work::bytes`] of a mesh of so many cells.
    pub(super) fn bytes_for(cells: [usize; 3], isolated: bool) -> usize {
        let [nx, ny, nz] = cells;
        let modes = |length: [usize; 2]| (length[0] / 2 + 1) * length[1] * nz * size_of::<Mode>();
        match isolated {
            false => modes([nx, ny]),
            true => modes([2 * nx, 2 * ny]) + LatticeGreen::bytes_for(cells),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let green = match &self.green {
            Green::Periodic(_) => 0,
            Green::Isolated(green) => green.bytes(),
        };
        self.mesh.len() * size_of::<Mode>() + green
    }

    pub(super) fn solve<T: Real>(&mut self, slots: &[u32], source: &PoissonSource<T>, h: f64, potential: &mut [T]) {
        let (cells, length) = (self.cells[1], self.lengths[1]);
        self.along_x_forward(slots, source);
        self.along_y(&*self.forward[0].clone(), cells, length);
        self.along_z(h);
        self.along_y(&*self.backward[0].clone(), length, cells);
        self.along_x_backward(slots, potential);
    }

    fn along_x_forward<T: Real>(&mut self, slots: &[u32], source: &PoissonSource<T>) {
        let Self { cells, lengths, modes, x_forward, mesh, .. } = self;
        let [nx, ny, _] = *cells;
        let scratch = || (x_forward.make_input_vec(), x_forward.make_scratch_vec());
        let rows = mesh.par_chunks_mut(*modes).enumerate().filter(|(row, _)| row % lengths[1] < ny);
        rows.for_each_init(scratch, |(line, scratch), (row, modes)| {
            let (groups, first) = groups_of_row(*cells, row % lengths[1], row / lengths[1]);
            for (n, part) in line[..nx].chunks_exact_mut(GROUP).enumerate() {
                source.fill(slots[groups + n], first, 1.0, part);
            }
            line[nx..].fill(0.0);
            x_forward.process_with_scratch(line, modes, scratch).expect("lengths are the plan's");
        });
    }

    /// Transforms along y, in place, one plane of constant z a task. The first `given` values of a line are read, the
    /// others are zero; the first `wanted` are written.
    fn along_y(&mut self, plan: &dyn Fft<f64>, given: usize, wanted: usize) {
        let (modes, ny) = (self.modes, self.lengths[1]);
        let scratch = || line_scratch(plan, ny);
        self.mesh.par_chunks_mut(modes * ny).for_each_init(scratch, |(lines, scratch), plane| {
            for first in (0..modes).step_by(COLUMNS) {
                let columns = COLUMNS.min(modes - first);
                let lines = &mut lines[..columns * ny];
                for c in 0..columns {
                    lines[c * ny + given..(c + 1) * ny].fill(Mode::default());
                }
                for y in 0..given {
                    for c in 0..columns {
                        lines[c * ny + y] = plane[y * modes + first + c];
                    }
                }
                plan.process_with_scratch(lines, scratch);
                for y in 0..wanted {
                    for c in 0..columns {
                        plane[y * modes + first + c] = lines[c * ny + y];
                    }
                }
            }
        });
    }

    /// Transforms along z, multiplies by the Green's function and transforms back, one plane of constant ky a task.
    fn along_z(&mut self, h: f64) {
        let (modes, given, [_, ny, nz]) = (self.modes, self.cells[2], self.lengths);
        let (forward, backward) = (&*self.forward[1], &*self.backward[1]);
        let multiply = Multiply::new(&self.green, h, self.lengths);
        let mut planes: Vec<Vec<&mut [Mode]>> = (0..ny).map(|_| Vec::with_capacity(given)).collect();
        for (row, line) in self.mesh.chunks_exact_mut(modes).enumerate() {
            planes[row % ny].push(line);
        }
        let scratch = || line_scratch(forward, nz);
        planes.into_par_iter().enumerate().for_each_init(scratch, |(lines, scratch), (ky, mut rows)| {
            for first in (0..modes).step_by(COLUMNS) {
                let columns = COLUMNS.min(modes - first);
                let lines = &mut lines[..columns * nz];
                for c in 0..columns {
                    lines[c * nz + given..(c + 1) * nz].fill(Mode::default());
                }
                for (z, row) in rows.iter().enumerate() {
                    for c in 0..columns {
                        lines[c * nz + z] = row[first + c];
                    }
                }
                forward.process_with_scratch(lines, scratch);
                multiply.lines(lines, first, ky, nz);
                backward.process_with_scratch(lines, scratch);
                for (z, row) in rows.iter_mut().enumerate() {
                    for c in 0..columns {
                        row[first + c] = lines[c * nz + z];
                    }
                }
            }
        });
    }

    /// Transforms back along x and rounds into the pool; a row of groups along x a task.
    fn along_x_backward<T: Real>(&self, slots: &[u32], potential: &mut [T]) {
        let Self { cells: [nx, ny, _], lengths, modes, x_backward, mesh, .. } = self;
        let potential = SlotWriter::new(potential, GROUP_CELLS);
        let scratch = || (x_backward.make_input_vec(), x_backward.make_output_vec(), x_backward.make_scratch_vec());
        slots.par_chunks(nx / GROUP).enumerate().for_each_init(scratch, |(input, line, scratch), (bar, slots)| {
            let (group_y, group_z) = (bar % (ny / GROUP), bar / (ny / GROUP));
            for (k, j) in (0..GROUP).flat_map(|k| (0..GROUP).map(move |j| (k, j))) {
                let row = (group_z * GROUP + k) * lengths[1] + group_y * GROUP + j;
                input.copy_from_slice(&mesh[row * modes..][..*modes]);
                // real by symmetry; the plan refuses the round-off that is left
                input[0].im = 0.0;
                input[modes - 1].im = 0.0;
                x_backward.process_with_scratch(input, line, scratch).expect("lengths are the plan's");
                for (part, &slot) in line[..*nx].chunks_exact(GROUP).zip(slots) {
                    // SAFETY: the slots are distinct, and each belongs to one bar.
                    let group = unsafe { potential.slot(slot) };
                    for (to, &from) in group[(k * GROUP + j) * GROUP..][..GROUP].iter_mut().zip(part) {
                        *to = T::of(from);
                    }
                }
            }
        });
    }
}

/// The eigenvalues 2 − 2cos(2π k/n) of the negative second difference.
pub(super) fn eigenvalues(n: usize) -> Vec<f64> {
    // 2 − 2cos 2x = 4 sin² x, without the cancellation
    (0..n).map(|k| 4.0 * (PI * k as f64 / n as f64).sin().powi(2)).collect()
}

/// The multiplication by the Green's function; the transforms' norm is in it.
struct Multiply<'a> {
    green: &'a Green,
    factor: f64,
}

impl<'a> Multiply<'a> {
    fn new(green: &'a Green, h: f64, [nx, ny, nz]: [usize; 3]) -> Self {
        let factor = match green {
            Green::Periodic(_) => -h * h / (nx * ny * nz) as f64,
            Green::Isolated(_) => h * h,
        };
        Self { green, factor }
    }

    /// Multiplies lines along z of `nz` modes, the first of which has wave number `first` along x, and all `ky`.
    #[inline(always)]
    fn lines(&self, lines: &mut [Mode], first: usize, ky: usize, nz: usize) {
        match self.green {
            Green::Periodic([ex, ey, ez]) => {
                for (c, line) in lines.chunks_exact_mut(nz).enumerate() {
                    for kz in 0..nz {
                        let sum = ex[first + c] + ey[ky] + ez[kz];
                        // zero for the mean alone, which neither source nor potential keeps
                        line[kz] *= if sum > 0.0 { self.factor / sum } else { 0.0 };
                    }
                }
            }
            Green::Isolated(green) => {
                for kz in 0..nz {
                    let row = &green.row(ky, kz)[first..];
                    for (c, line) in lines.chunks_exact_mut(nz).enumerate() {
                        line[kz] *= self.factor * row[c];
                    }
                }
            }
        }
    }
}

/// Lines and scratch space for a plan of length `n`.
fn line_scratch(plan: &dyn Fft<f64>, n: usize) -> (Vec<Mode>, Vec<Mode>) {
    (vec![Mode::default(); COLUMNS * n], vec![Mode::default(); plan.get_inplace_scratch_len()])
}

/// The first of the groups that the row at (y, z) crosses, and its first cell in each of them.
fn groups_of_row(cells: [usize; 3], y: usize, z: usize) -> (usize, usize) {
    let groups = (z / GROUP * (cells[1] / GROUP) + y / GROUP) * (cells[0] / GROUP);
    (groups, (z % GROUP * GROUP + y % GROUP) * GROUP)
}

//! Root transforms on the host processor: real along x, complex along y and z, each of one line by a plan of its
//! length, so that bits depend neither on threads nor on ranks.

use super::lattice_green::LatticeGreen;
use super::periodic_green::PeriodicGreen;
use super::shape::Shape;
use crate::device::buffer::SlotWriter;
use crate::layout::{GROUP, GROUP_CELLS};
use crate::operations::poisson_source::PoissonSource;
use crate::real::Real;
use rayon::prelude::*;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftPlanner};
use std::sync::Arc;

type Mode = Complex<f64>;

/// Columns of modes that are transformed together: a cache line's worth and more, so that strided reads pay off.
const COLUMNS: usize = 8;

/// What divides by the Laplacian in Fourier space.
enum Green {
    /// Of a periodic mesh.
    Periodic(PeriodicGreen),
    /// The transform of the lattice's Green's function, for lines padded to twice their length.
    Isolated(LatticeGreen),
}

/// Plans and Green's function. Modes are transformed in place, in blocks.
pub(super) struct Transforms {
    shape: Shape,
    x_forward: Arc<dyn RealToComplex<f64>>,
    x_backward: Arc<dyn ComplexToReal<f64>>,
    /// Along y and z.
    forward: [Arc<dyn Fft<f64>>; 2],
    backward: [Arc<dyn Fft<f64>>; 2],
    green: Green,
}

impl std::fmt::Debug for Transforms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transforms({:?})", self.shape)
    }
}

impl Transforms {
    pub(super) fn new(shape: Shape) -> Self {
        let mut real = RealFftPlanner::new();
        let mut complex = FftPlanner::new();
        let lengths = shape.lengths();
        Self {
            shape,
            x_forward: real.plan_fft_forward(lengths[0]),
            x_backward: real.plan_fft_inverse(lengths[0]),
            forward: [1, 2].map(|axis| complex.plan_fft_forward(lengths[axis])),
            backward: [1, 2].map(|axis| complex.plan_fft_inverse(lengths[axis])),
            green: match shape.isolated {
                false => Green::Periodic(PeriodicGreen::of_seven_points(lengths)),
                true => Green::Isolated(LatticeGreen::new(shape.cells(), shape.wave_numbers())),
            },
        }
    }

    /// Takes another Green's function of a periodic mesh.
    pub(super) fn take(&mut self, green: PeriodicGreen) {
        self.green = Green::Periodic(green);
    }

    pub(super) fn bytes_for(shape: Shape) -> usize {
        if shape.isolated { LatticeGreen::bytes_for(shape.cells(), shape.wave_numbers()) } else { 0 }
    }

    pub(super) fn bytes(&self) -> usize {
        match &self.green {
            Green::Periodic(_) => 0,
            Green::Isolated(green) => green.bytes(),
        }
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    pub(super) fn forward<T: Real>(&self, slots: &[u32], source: &PoissonSource<T>, blocks: &mut [f64]) {
        let modes = modes_of(&mut blocks[..self.shape.sent_values()]);
        self.along_x_forward(slots, source, modes);
        self.along_y(&*self.forward[0], self.shape.cells()[1], self.shape.lengths()[1], modes);
    }

    pub(super) fn solve_columns(&self, blocks: &mut [f64], h: f64) {
        self.along_z(h, modes_of(&mut blocks[..self.shape.received_values()]));
    }

    pub(super) fn backward<T: Real>(&self, slots: &[u32], blocks: &mut [f64], potential: &mut [T]) {
        let modes = modes_of(&mut blocks[..self.shape.sent_values()]);
        self.along_y(&*self.backward[0], self.shape.lengths()[1], self.shape.cells()[1], modes);
        self.along_x_backward(slots, modes, potential);
    }

    fn along_x_forward<T: Real>(&self, slots: &[u32], source: &PoissonSource<T>, blocks: &mut [Mode]) {
        let (x_forward, modes, [nx, ny, _]) = (&self.x_forward, self.shape.modes(), self.shape.cells());
        let planes = self.shape.planes(self.shape.rank).len();
        let scratch = || (x_forward.make_input_vec(), x_forward.make_scratch_vec());
        // [bands, planes, 16]
        let place = |row: usize| (row / (planes * GROUP) * GROUP + row % GROUP, row / GROUP % planes);
        let rows = blocks.par_chunks_mut(modes).enumerate().filter(|(row, _)| place(*row).0 < ny);
        rows.for_each_init(scratch, |(line, scratch), (row, modes)| {
            let (y, z) = place(row);
            let groups = (z / GROUP * (ny / GROUP) + y / GROUP) * (nx / GROUP);
            let first = (z % GROUP * GROUP + y % GROUP) * GROUP;
            for (n, part) in line[..nx].chunks_exact_mut(GROUP).enumerate() {
                source.fill(slots[groups + n], first, 1.0, part);
            }
            line[nx..].fill(0.0);
            x_forward.process_with_scratch(line, modes, scratch).expect("lengths are the plan's");
        });
    }

    /// Transforms along y, in place, one plane a task. The first `given` values of a line are read, the others are zero;
    /// the first `wanted` are written.
    fn along_y(&self, plan: &dyn Fft<f64>, given: usize, wanted: usize, blocks: &mut [Mode]) {
        let mut planes: Vec<Vec<&mut [Mode]>> = Vec::new();
        planes.resize_with(self.shape.planes(self.shape.rank).len(), Vec::new);
        for (slab, [_, plane]) in blocks.chunks_exact_mut(self.shape.slab()).zip(self.shape.sent_slabs()) {
            planes[plane].extend(slab.chunks_exact_mut(self.shape.modes()));
        }
        let scratch = || Lines::new(plan);
        planes.into_par_iter().for_each_init(scratch, |lines, mut rows| {
            lines.across(&mut rows, given, wanted, |_, lines, scratch| plan.process_with_scratch(lines, scratch));
        });
    }

    /// Transforms along z, multiplies by the Green's function and transforms back, one ky a task.
    fn along_z(&self, h: f64, blocks: &mut [Mode]) {
        let mut planes: Vec<Vec<&mut [Mode]>> = Vec::new();
        planes.resize_with(self.shape.wave_numbers().len(), Vec::new);
        for (slab, [band, _]) in blocks.chunks_exact_mut(self.shape.slab()).zip(self.shape.received_slabs()) {
            for (row, plane) in slab.chunks_exact_mut(self.shape.modes()).zip(&mut planes[band * GROUP..]) {
                plane.push(row);
            }
        }
        let ([forward, backward], lengths) = ([&*self.forward[1], &*self.backward[1]], self.shape.lengths());
        let (given, first_ky) = (self.shape.cells()[2], self.shape.wave_numbers().start);
        let multiply = Multiply::new(&self.green, h, lengths);
        let scratch = || Lines::new(forward);
        planes.into_par_iter().enumerate().for_each_init(scratch, |lines, (n, mut rows)| {
            lines.across(&mut rows, given, given, |first, lines, scratch| {
                forward.process_with_scratch(lines, scratch);
                multiply.lines(lines, first, first_ky + n, lengths[2]);
                backward.process_with_scratch(lines, scratch);
            });
        });
    }

    /// Transforms back along x and rounds into the pool; a row of groups along x a task.
    fn along_x_backward<T: Real>(&self, slots: &[u32], blocks: &[Mode], potential: &mut [T]) {
        let (x_backward, modes, [nx, ny, _]) = (&self.x_backward, self.shape.modes(), self.shape.cells());
        let planes = self.shape.planes(self.shape.rank).len();
        let potential = SlotWriter::new(potential, GROUP_CELLS);
        let scratch = || (x_backward.make_input_vec(), x_backward.make_output_vec(), x_backward.make_scratch_vec());
        slots.par_chunks(nx / GROUP).enumerate().for_each_init(scratch, |(input, line, scratch), (bar, slots)| {
            let (group_y, group_z) = (bar % (ny / GROUP), bar / (ny / GROUP));
            for (k, j) in (0..GROUP).flat_map(|k| (0..GROUP).map(move |j| (k, j))) {
                let row = (group_y * planes + group_z * GROUP + k) * GROUP + j;
                input.copy_from_slice(&blocks[row * modes..][..modes]);
                // real by symmetry; the plan refuses the round-off that is left
                input[0].im = 0.0;
                input[modes - 1].im = 0.0;
                x_backward.process_with_scratch(input, line, scratch).expect("lengths are the plan's");
                for (part, &slot) in line[..nx].chunks_exact(GROUP).zip(slots) {
                    // SAFETY: the slots are distinct, and each belongs to one bar.
                    let group = unsafe { potential.slot(slot) };
                    for (to, &from) in group[(k * GROUP + j) * GROUP..][..GROUP].iter_mut().zip(part) {
                        *to = T::from_f64(from);
                    }
                }
            }
        });
    }
}

/// Pairs of values as the modes that they are.
fn modes_of(values: &mut [f64]) -> &mut [Mode] {
    // SAFETY: a complex number is two values one after the other, aligned as one; the slice has half as many of them.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast::<Mode>(), values.len() / 2) }
}

/// Lines in hand, and scratch space for a plan.
struct Lines {
    length: usize,
    lines: Vec<Mode>,
    scratch: Vec<Mode>,
}

impl Lines {
    fn new(plan: &dyn Fft<f64>) -> Self {
        let length = plan.len();
        Self {
            length,
            lines: vec![Mode::default(); COLUMNS * length],
            scratch: vec![Mode::default(); plan.get_inplace_scratch_len()],
        }
    }

    /// Transforms lines across rows, a few at a time: `transform` gets the place of their first in a row, the lines one
    /// after the other, and scratch space. The first `given` rows are read, the rest of each line is zero; the first
    /// `wanted` are written.
    #[inline(always)]
    fn across(
        &mut self,
        rows: &mut [&mut [Mode]],
        given: usize,
        wanted: usize,
        mut transform: impl FnMut(usize, &mut [Mode], &mut [Mode]),
    ) {
        let Self { length, lines, scratch } = self;
        let modes = rows[0].len();
        for first in (0..modes).step_by(COLUMNS) {
            let columns = COLUMNS.min(modes - first);
            let lines = &mut lines[..columns * *length];
            for line in lines.chunks_exact_mut(*length) {
                line[given..].fill(Mode::default());
            }
            for (n, row) in rows[..given].iter().enumerate() {
                for (c, &mode) in row[first..][..columns].iter().enumerate() {
                    lines[c * *length + n] = mode;
                }
            }
            transform(first, lines, scratch);
            for (n, row) in rows[..wanted].iter_mut().enumerate() {
                for (c, mode) in row[first..][..columns].iter_mut().enumerate() {
                    *mode = lines[c * *length + n];
                }
            }
        }
    }
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
            Green::Periodic(PeriodicGreen { sums: [ex, ey, ez], factors: [fx, fy, fz] }) => {
                for (c, line) in lines.chunks_exact_mut(nz).enumerate() {
                    for kz in 0..nz {
                        let sum = ex[first + c] + ey[ky] + ez[kz];
                        // zero for the mean alone, which neither source nor potential keeps
                        let factor = self.factor * (fx[first + c] * fy[ky] * fz[kz]);
                        line[kz] *= if sum > 0.0 { factor / sum } else { 0.0 };
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

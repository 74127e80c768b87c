//! Solutions at faces on the host processor: one task a group.
//!
//! Planes of an axis: fields of the lower and the upper face combine to a sum and a difference, which belong to
//! even-numbered and to odd-numbered modes along the axis, as these are symmetric and antisymmetric.

use super::Relaxation;
use crate::device::buffer::SlotWriter;
use crate::device::device_table::DeviceTable;
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::layout::{FACE_CELLS, FACES, GROUP, GROUP_CELLS};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::operations::coarse_correction::padded::GhostErrors;
use crate::operations::group_poisson::problem::boundary_mean;
use crate::operations::group_poisson::sine::{SineTables, apply, transform};
use crate::operations::poisson_source::PoissonSource;
use crate::operations::potential_ghosts::{GHOST_CELLS, face_direction};
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn start_faces<T: Real>(
    isa: Isa,
    tables: &LevelTopology,
    sine: &SineTables<T>,
    source: &PoissonSource<T>,
    h: f64,
    ghosts: &[T],
    own: &mut [T],
    potential: &mut [T],
) {
    let (own, potential) = (SlotWriter::new(own, GHOST_CELLS), SlotWriter::new(potential, GROUP_CELLS));
    tables.places(None).for_each(|g| {
        let slot = tables.slots[g];
        // SAFETY: places and slots of a level are distinct.
        let (own, potential) = unsafe { (own.slot(g as u32), potential.slot(slot)) };
        isa.run(OwnFaces { sine, source, slot, h, own });
        isa.run(Faces { sine, own, ghosts: &ghosts[g * GHOST_CELLS..][..GHOST_CELLS], faces: potential });
    });
}

pub(super) fn relax_faces<T: Real>(
    isa: Isa,
    tables: &LevelTopology,
    groups: &DeviceTable<u32>,
    relaxation: &Relaxation<T>,
    sine: &SineTables<T>,
    own: &[T],
    ghosts: &mut [T],
    potential: &mut [T],
) {
    let ghosts_of = SlotWriter::new(ghosts, GHOST_CELLS);
    tables.places(Some(&groups[..])).for_each(|g| {
        // SAFETY: no group is listed twice (checked by the caller).
        let ghosts = unsafe { ghosts_of.slot(g as u32) };
        isa.run(Relax { tables, g, relaxation, potential, ghosts });
    });
    let potential = SlotWriter::new(potential, GROUP_CELLS);
    tables.places(Some(&groups[..])).for_each(|g| {
        // SAFETY: as above, and the slots of a level are distinct.
        let faces = unsafe { potential.slot(tables.slots[g]) };
        let [own, ghosts] = [own, &*ghosts].map(|array| &array[g * GHOST_CELLS..][..GHOST_CELLS]);
        isa.run(Faces { sine, own, ghosts, faces });
    });
}

/// The ghosts of one group relaxed.
struct Relax<'a, T> {
    tables: &'a LevelTopology,
    g: usize,
    relaxation: &'a Relaxation<'a, T>,
    potential: &'a [T],
    ghosts: &'a mut [T],
}

/// Contribution of one group's own matter at its faces.
struct OwnFaces<'a, T> {
    sine: &'a SineTables<T>,
    source: &'a PoissonSource<'a, T>,
    slot: u32,
    h: f64,
    own: &'a mut [T],
}

/// One group's faces.
struct Faces<'a, T> {
    sine: &'a SineTables<T>,
    own: &'a [T],
    ghosts: &'a [T],
    /// The group's slot, which begins with them.
    faces: &'a mut [T],
}

compiled_here!(
    Relax<'static, f32>,
    Relax<'static, f64>,
    OwnFaces<'static, f32>,
    OwnFaces<'static, f64>,
    Faces<'static, f32>,
    Faces<'static, f64>
);

impl<T: Real> Kernel for Relax<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { tables, g, relaxation, potential, ghosts } = self;
        let factor = T::from_f64(relaxation.factor);
        let neighbours_corrected = if relaxation.neighbours_corrected { T::one() } else { T::zero() };
        let errors = GhostErrors::load(tables, g, relaxation.error.host());
        for face in (0..FACES).filter(|face| tables.outside[g] >> face & 1 == 0) {
            let neighbour = tables.row(g)[face_direction(face)];
            if neighbour == NONE {
                continue;
            }
            let cells = &potential[neighbour as usize * GROUP_CELLS + (face ^ 1) * FACE_CELLS..][..FACE_CELLS];
            let ghosts = &mut ghosts[face * FACE_CELLS..][..FACE_CELLS];
            for ((ghost, cell), error) in ghosts.iter_mut().zip(cells).zip(errors.face(face)) {
                *ghost = (*ghost + error) + factor * ((*cell - *ghost) - neighbours_corrected * error);
            }
        }
    }
}

impl<T: Real> Kernel for OwnFaces<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if T::BYTES == 4 { self.find::<16>() } else { self.find::<8>() }
    }
}

impl<T: Real> OwnFaces<'_, T> {
    #[inline(always)]
    fn find<const LANES: usize>(self) {
        let Self { sine, source, slot, h, own } = self;
        let mut values = [T::zero(); GROUP_CELLS];
        source.fill(slot, 0, h * h, &mut values);
        transform::<T, LANES>(sine, &mut values, FACE_CELLS);
        for (plane, inverse) in values.chunks_exact_mut(FACE_CELLS).zip(sine.inverse.chunks_exact(FACE_CELLS)) {
            transform_plane::<T, LANES>(sine, plane);
            for (value, inverse) in plane.iter_mut().zip(inverse) {
                *value *= *inverse;
            }
        }
        sum_modes::<T, LANES>(sine, &values, own);
    }
}

impl<T: Real> Kernel for Faces<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if T::BYTES == 4 { self.solve::<16>() } else { self.solve::<8>() }
    }
}

impl<T: Real> Faces<'_, T> {
    #[inline(always)]
    fn solve<const LANES: usize>(self) {
        let Self { sine, own, ghosts, faces } = self;
        let mean = boundary_mean(ghosts);
        let mut planes = [T::zero(); GHOST_CELLS];
        for (planes, ghosts) in planes.chunks_exact_mut(2 * FACE_CELLS).zip(ghosts.chunks_exact(2 * FACE_CELLS)) {
            for c in 0..FACE_CELLS {
                let [lower, upper] = [c, FACE_CELLS + c].map(|at| ghosts[at] - mean);
                planes[c] = lower + upper;
                planes[FACE_CELLS + c] = lower - upper;
            }
        }
        planes.chunks_exact_mut(FACE_CELLS).for_each(|plane| transform_plane::<T, LANES>(sine, plane));
        let mut values = [T::zero(); GROUP_CELLS];
        boundary_modes(sine, &planes, &mut values);
        sum_modes::<T, LANES>(sine, &values, &mut planes);
        for (plane, own) in planes.iter_mut().zip(own) {
            *plane += *own;
        }
        planes.chunks_exact_mut(FACE_CELLS).for_each(|plane| transform_plane::<T, LANES>(sine, plane));
        for (faces, planes) in faces.chunks_exact_mut(2 * FACE_CELLS).zip(planes.chunks_exact(2 * FACE_CELLS)) {
            for c in 0..FACE_CELLS {
                let [even, odd] = [planes[c], planes[FACE_CELLS + c]];
                faces[c] = (even + odd) + mean;
                faces[FACE_CELLS + c] = (even - odd) + mean;
            }
        }
    }
}

/// Transforms a plane along both axes; its own inverse.
#[inline(always)]
fn transform_plane<T: Real, const LANES: usize>(sine: &SineTables<T>, plane: &mut [T]) {
    transform::<T, LANES>(sine, plane, GROUP);
    for line in plane.as_chunks_mut::<GROUP>().0 {
        *line = apply(&sine.full, line);
    }
}

/// The modes of the solution with boundary values and no matter, `[kz, ky, kx]`, from transformed planes.
#[inline(always)]
fn boundary_modes<T: Real>(sine: &SineTables<T>, planes: &[T; GHOST_CELLS], values: &mut [T; GROUP_CELLS]) {
    let outermost = &sine.full[0];
    let row = |plane: usize, row: usize| -> &[T; GROUP] {
        planes[plane * FACE_CELLS + row * GROUP..].first_chunk().expect("a row of a plane")
    };
    let rows = values.as_chunks_mut::<GROUP>().0.iter_mut().zip(sine.inverse.as_chunks::<GROUP>().0);
    for (n, (values, inverse)) in rows.enumerate() {
        let (ky, kz) = (n % GROUP, n / GROUP);
        let [even, odd] = [row(0, kz)[ky], row(1, kz)[ky]];
        let (across_y, across_z) = (row(2 + ky % 2, kz), row(4 + kz % 2, ky));
        for kx in 0..GROUP {
            let across_x = if kx % 2 == 0 { even } else { odd };
            let sum = (outermost[kx] * across_x + outermost[ky] * across_y[kx]) + outermost[kz] * across_z[kx];
            values[kx] = -(inverse[kx] * sum);
        }
    }
}

/// Sums modes along each axis to values at its faces: even-numbered modes, then odd-numbered ones, `[6, 16, 16]`.
#[inline(always)]
fn sum_modes<T: Real, const LANES: usize>(sine: &SineTables<T>, values: &[T; GROUP_CELLS], planes: &mut [T]) {
    let outermost = &sine.full[0];
    let (along_x, rest) = planes.split_at_mut(2 * FACE_CELLS);
    let (along_y, along_z) = rest.split_at_mut(2 * FACE_CELLS);
    for (n, line) in values.as_chunks::<GROUP>().0.iter().enumerate() {
        let [even, odd] = sum_of_halves(std::array::from_fn(|k| [outermost[k] * line[k]]));
        (along_x[n], along_x[FACE_CELLS + n]) = (even[0], odd[0]);
    }
    let across = |values: &[T], stride: usize, planes: &mut [T], at: usize| {
        let terms = std::array::from_fn(|k| std::array::from_fn(|lane| outermost[k] * values[k * stride + lane]));
        let [even, odd]: [[T; LANES]; 2] = sum_of_halves(terms);
        planes[at..][..LANES].copy_from_slice(&even);
        planes[FACE_CELLS + at..][..LANES].copy_from_slice(&odd);
    };
    for (kz, plane) in values.chunks_exact(FACE_CELLS).enumerate() {
        for kx in (0..GROUP).step_by(LANES) {
            across(&plane[kx..], GROUP, along_y, kz * GROUP + kx);
        }
    }
    for n in (0..FACE_CELLS).step_by(LANES) {
        across(&values[n..], FACE_CELLS, along_z, n);
    }
}

/// Sums of the terms with even and with odd numbers, of several lines: the two halves, then the halves of what is left.
#[inline(always)]
fn sum_of_halves<T: Real, const LANES: usize>(mut terms: [[T; LANES]; GROUP]) -> [[T; LANES]; 2] {
    for half in [8, 4, 2] {
        for n in 0..half {
            for lane in 0..LANES {
                terms[n][lane] += terms[n + half][lane];
            }
        }
    }
    [terms[0], terms[1]]
}

//! Coarse grids on the host processor: one task a group.

use super::padded::{Around, laplacian, quarter_towards};
use super::{CoarseGrid, Factors};
use crate::device::buffer::{Buffer, SlotWriter};
use crate::layout::{FACE_CELLS, FACES, GROUP, GROUP_CELLS, PATCH};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::operations::potential_ghosts::{GHOST_CELLS, face_axes, face_direction, strides};
use crate::real::Real;
use rayon::prelude::*;

/// Cells of the largest block: 8³ with a layer around.
const LARGEST: usize = 1000;

/// Groups that a task works on: their coarse cells are few.
const GROUPS_AT_ONCE: usize = 8;

/// Calls `work` with every place of the level, in parallel.
fn each_group(tables: &LevelTopology, work: impl Fn(usize) + Send + Sync) {
    (0..tables.len()).into_par_iter().with_min_len(GROUPS_AT_ONCE).for_each(work);
}

/// Cell coordinates of `n`³, x fastest.
#[inline(always)]
fn cells(n: usize) -> impl Iterator<Item = [usize; 3]> {
    (0..n).flat_map(move |z| (0..n).flat_map(move |y| (0..n).map(move |x| [x, y, z])))
}

/// The place of a cell in a block with a layer around.
#[inline(always)]
fn place(n: usize, [x, y, z]: [usize; 3]) -> usize {
    ((z + 1) * (n + 2) + y + 1) * (n + 2) + x + 1
}

pub(super) fn face_residual<T: Real>(
    tables: &LevelTopology,
    ghosts: &[T],
    potential: &[T],
    factors: &Factors<T>,
    [source, error, _]: &mut [Buffer<T>; 3],
) {
    const N: usize = PATCH;
    let [source, error] = [source, error].map(|array| SlotWriter::new(array.host_mut(), N * N * N));
    each_group(tables, |g| {
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let [source, error] = [&source, &error].map(|pool| unsafe { pool.slot(tables.slots[g]) });
        let around = Around::<T>::of(tables, g, N);
        source.fill(T::zero());
        for face in (0..FACES).filter(|face| tables.outside[g] >> face & 1 == 0) {
            let neighbour = tables.row(g)[face_direction(face)];
            if neighbour != NONE {
                let cells = &potential[neighbour as usize * GROUP_CELLS + (face ^ 1) * FACE_CELLS..][..FACE_CELLS];
                let ghosts = &ghosts[g * GHOST_CELLS + face * FACE_CELLS..][..FACE_CELLS];
                add_jumps(face, ghosts, cells, source);
            }
        }
        start(N, &around, factors, source, error);
    });
}

/// The first sweep of a group from zero.
fn start<T: Real>(n: usize, around: &Around<T>, factors: &Factors<T>, source: &[T], error: &mut [T]) {
    for (c, at) in cells(n).enumerate() {
        error[c] = -factors.0[around.missing(n, at)] * source[c];
    }
}

pub(super) fn start_sweep<T: Real>(
    tables: &LevelTopology,
    n: usize,
    factors: &Factors<T>,
    [source, error, _]: &mut [Buffer<T>; 3],
) {
    let source = source.host();
    let error = SlotWriter::new(error.host_mut(), n * n * n);
    each_group(tables, |g| {
        let slot = tables.slots[g];
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let error = unsafe { error.slot(slot) };
        let source = &source[slot as usize * n * n * n..][..n * n * n];
        start(n, &Around::of(tables, g, n), factors, source, error);
    });
}

/// Adds half the sum of the four differences ghost − cell to each coarse cell at a face.
fn add_jumps<T: Real>(face: usize, ghosts: &[T], cells: &[T], source: &mut [T]) {
    let axis = face / 2;
    let [a, b] = face_axes(axis);
    let coarse = strides(PATCH);
    let layer = if face & 1 == 0 { 0 } else { PATCH - 1 };
    let jump = |m: usize, n: usize| ghosts[n * GROUP + m] - cells[n * GROUP + m];
    for n in 0..PATCH {
        for m in 0..PATCH {
            let lower = jump(2 * m, 2 * n) + jump(2 * m + 1, 2 * n);
            let upper = jump(2 * m, 2 * n + 1) + jump(2 * m + 1, 2 * n + 1);
            source[layer * coarse[axis] + n * coarse[b] + m * coarse[a]] += T::from_f64(0.5) * (lower + upper);
        }
    }
}

pub(super) fn smooth<T: Real>(
    tables: &LevelTopology,
    n: usize,
    factors: &Factors<T>,
    [source, error, next]: &mut [Buffer<T>; 3],
) {
    let (source, error) = (source.host(), error.host());
    let next = SlotWriter::new(next.host_mut(), n * n * n);
    each_group(tables, |g| {
        let slot = tables.slots[g];
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let next = unsafe { next.slot(slot) };
        let source = &source[slot as usize * n * n * n..][..n * n * n];
        let around = Around::of(tables, g, n);
        let mut block = [T::zero(); LARGEST];
        around.fill(n, error, &mut block);
        for (c, at) in cells(n).enumerate() {
            let p = place(n, at);
            let residual = laplacian(&block, n + 2, p) - source[c];
            next[c] = block[p] + factors.0[around.missing(n, at)] * residual;
        }
    });
}

pub(super) fn restrict_residual<T: Real>(
    tables: &LevelTopology,
    n: usize,
    factors: &Factors<T>,
    fine: &mut [Buffer<T>; 3],
    [source, error, _]: &mut [Buffer<T>; 3],
) {
    let [fine_source, fine_error] = [CoarseGrid::<T>::SOURCE, CoarseGrid::<T>::ERROR].map(|which| fine[which].host());
    let [source, error] = [source, error].map(|array| SlotWriter::new(array.host_mut(), n * n * n));
    let fine_n = 2 * n;
    each_group(tables, |g| {
        let slot = tables.slots[g];
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let [source, error] = [&source, &error].map(|pool| unsafe { pool.slot(slot) });
        let fine_source = &fine_source[slot as usize * fine_n.pow(3)..][..fine_n.pow(3)];
        let around = Around::of(tables, g, fine_n);
        let mut block = [T::zero(); LARGEST];
        around.fill(fine_n, fine_error, &mut block);
        let residual = |[x, y, z]: [usize; 3]| {
            let from = fine_source[(z * fine_n + y) * fine_n + x];
            from - laplacian(&block, fine_n + 2, place(fine_n, [x, y, z]))
        };
        for (c, at) in cells(n).enumerate() {
            let [x, y, z] = at.map(|coordinate| 2 * coordinate);
            let pair = |y: usize, z: usize| residual([x, y, z]) + residual([x + 1, y, z]);
            let sum = (pair(y, z) + pair(y + 1, z)) + (pair(y, z + 1) + pair(y + 1, z + 1));
            source[c] = T::from_f64(0.5) * sum;
        }
        start(n, &Around::of(tables, g, n), factors, source, error);
    });
}

pub(super) fn prolong_error<T: Real>(
    tables: &LevelTopology,
    n: usize,
    coarse: &mut [Buffer<T>; 3],
    fine: &mut [Buffer<T>; 3],
) {
    let coarse = coarse[CoarseGrid::<T>::ERROR].host();
    let fine_n = 2 * n;
    let fine = SlotWriter::new(fine[CoarseGrid::<T>::ERROR].host_mut(), fine_n.pow(3));
    each_group(tables, |g| {
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let fine = unsafe { fine.slot(tables.slots[g]) };
        let mut block = [T::zero(); LARGEST];
        Around::of(tables, g, n).fill(n, coarse, &mut block);
        for (c, at) in cells(fine_n).enumerate() {
            let centre = place(n, at.map(|coordinate| coordinate / 2));
            fine[c] += interpolate(&block, n + 2, centre, at);
        }
    });
}

/// The value a quarter of a cell from a centre along each axis, on the side of the fine cell with these coordinates.
#[inline(always)]
fn interpolate<T: Real>(block: &[T], side: usize, centre: usize, fine: [usize; 3]) -> T {
    let [x, y, z]: [isize; 3] = std::array::from_fn(|axis| {
        let stride = strides(side)[axis] as isize;
        if fine[axis].is_multiple_of(2) { -stride } else { stride }
    });
    let at = |offset: isize| block[centre.wrapping_add_signed(offset)];
    let along_x = |offset: isize| quarter_towards(at(offset), at(offset + x));
    let along_y = |offset: isize| quarter_towards(along_x(offset), along_x(offset + y));
    quarter_towards(along_y(0), along_y(z))
}

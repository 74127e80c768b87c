//! Coarse grids on a GPU: a block a group where the grid of 8³ cells takes part, else a thread a cell.

use super::v_cycle::{AFTER, BEFORE, COARSEST};
use super::{CoarseGrid, Factors, GRID_WIDTHS};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Pointer;
use crate::device::cuda::{CudaDevice, launch};
use crate::layout::PATCH;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

/// Threads of a block.
const THREADS: u32 = 128;

/// Blocks of a kernel of which each thread has a cell of a grid.
fn blocks_of_cells(tables: &LevelTopology, width: usize) -> usize {
    (tables.len() * width.pow(3)).div_ceil(THREADS as usize)
}

/// Blocks of a kernel that works on the cells of a grid.
fn blocks(tables: &LevelTopology, width: usize) -> usize {
    if width == PATCH { tables.len() } else { blocks_of_cells(tables, width) }
}

pub(super) fn face_residual<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    ghosts: &Buffer<T>,
    potential: &Buffer<T>,
    factors: Factors<T>,
    [source, error, _]: &mut [Buffer<T>; 3],
) {
    // SAFETY: the parameters are the kernel's; the arrays have every slot and the ghosts every group, checked by the caller.
    unsafe {
        launch!(device, T, "face_residual", blocks_of_cells(tables, PATCH), THREADS, 0;
            Level::of(device, tables), ghosts.pointer(), potential.pointer(), factors, source.pointer(), error.pointer());
    }
}

pub(super) fn smooth<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    width: usize,
    factors: Factors<T>,
    [source, error, next]: &mut [Buffer<T>; 3],
) {
    // SAFETY: as above.
    unsafe {
        launch!(device, T, &format!("smooth_{width}"), blocks(tables, width), THREADS, 0;
            Level::of(device, tables), factors, source.pointer(), error.pointer(), next.pointer());
    }
}

pub(super) fn restrict_residual<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    width: usize,
    factors: Factors<T>,
    fine: &mut [Buffer<T>; 3],
    [source, error, _]: &mut [Buffer<T>; 3],
) {
    let [fine_source, fine_error] =
        [CoarseGrid::<T>::SOURCE, CoarseGrid::<T>::ERROR].map(|which| fine[which].pointer());
    let blocks = if 2 * width == PATCH { tables.len() } else { blocks_of_cells(tables, width) };
    // SAFETY: as above.
    unsafe {
        launch!(device, T, &format!("restrict_residual_{width}"), blocks, THREADS, 0;
            Level::of(device, tables), factors, fine_source, fine_error, source.pointer(), error.pointer());
    }
}

pub(super) fn prolong_error<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    width: usize,
    coarse: &mut [Buffer<T>; 3],
    fine: &mut [Buffer<T>; 3],
) {
    let [coarse, fine] = [coarse, fine].map(|arrays| arrays[CoarseGrid::<T>::ERROR].pointer());
    // SAFETY: as above.
    unsafe {
        launch!(device, T, &format!("prolong_error_{width}"), blocks(tables, 2 * width), THREADS, 0;
            Level::of(device, tables), coarse, fine);
    }
}

/// Groups up to which one block takes less time for the two coarsest grids than a launch a sweep (docs/notes-gravity.md).
const GROUPS_OF_ONE_BLOCK: usize = 1024;

/// The arrays of a grid: the `Grid` of `coarse_correction.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct DeviceGrid<T> {
    source: Pointer<T>,
    error: Pointer<T>,
    next: Pointer<T>,
}

/// Factors of the sweeps on the two coarsest grids: the `CoarsestFactors` of `coarse_correction.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct CoarsestFactors<T> {
    before: [Factors<T>; 2],
    after: Factors<T>,
    coarsest: [Factors<T>; 8],
}

/// The part of a V-cycle on the two coarsest grids in one launch, unless groups are many: whether it is done.
pub(super) fn solve_coarsest<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    four: &[Buffer<T>; 3],
    two: &mut [Buffer<T>; 3],
    one: &mut [Buffer<T>; 3],
) -> bool {
    if tables.len() > GROUPS_OF_ONE_BLOCK {
        return false;
    }
    let [width_of_two, width_of_one] = [GRID_WIDTHS[2], GRID_WIDTHS[3]];
    let factors = CoarsestFactors::<T> {
        before: BEFORE.map(|weight| Factors::new(width_of_two, weight)),
        after: Factors::new(width_of_two, AFTER),
        coarsest: COARSEST.map(|weight| Factors::new(width_of_one, weight)),
    };
    let [two, one] = [two, one].map(|[source, error, next]| DeviceGrid {
        source: source.pointer(),
        error: error.pointer(),
        next: next.pointer(),
    });
    let [fine_source, fine_error] =
        [CoarseGrid::<T>::SOURCE, CoarseGrid::<T>::ERROR].map(|which| four[which].pointer());
    // SAFETY: the parameters are the kernel's; the arrays have every slot, checked by the caller.
    unsafe {
        launch!(device, T, "solve_coarsest", 1, 1024, 0;
            Level::of(device, tables), factors, fine_source, fine_error, two, one);
    }
    true
}

//! Coarse grids on a GPU: a block a group where the grid of 8³ cells takes part, else a thread a cell; the coarsest grid of
//! small levels in one block.

use super::{CoarseGrid, Factors};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Pointer;
use crate::device::cuda::{Blocks, CudaDevice, launch};
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
        launch!(device, T, "face_residual", tables.len(), THREADS, 0;
            Level::of(device, tables), ghosts.pointer(), potential.pointer(), factors, source.pointer(), error.pointer());
    }
}

pub(super) fn start_sweep<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    width: usize,
    factors: Factors<T>,
    [source, error, _]: &mut [Buffer<T>; 3],
) {
    // SAFETY: as above.
    unsafe {
        launch!(device, T, &format!("start_sweep_{width}"), blocks_of_cells(tables, width), THREADS, 0;
            Level::of(device, tables), factors, source.pointer(), error.pointer());
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

/// Threads of the block that has the coarsest grid, and groups of each, as in `coarse_correction.cu`.
const COARSEST_THREADS: u32 = 1024;
const GROUPS_OF_A_THREAD: usize = 4;

/// Factors of the sweeps on the coarsest grid: the `CoarsestFactors` of `coarse_correction.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct CoarsestFactors<T>([Factors<T>; 8]);

/// The `GridArrays` of `coarse_correction.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct GridArrays<T>([Pointer<T>; 3]);

/// The `SmallGridFactors` of `coarse_correction.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct SmallGridFactors<T> {
    before_four: Factors<T>,
    start_two: Factors<T>,
    before_two: Factors<T>,
    after_two: Factors<T>,
    after_four: Factors<T>,
    coarsest: CoarsestFactors<T>,
}

/// Threads of a block of `solve_small_grids`, which has the coarsest grid in one of them.
const SMALL_GRID_THREADS: u32 = COARSEST_THREADS;

/// Largest level, in groups, whose grids of 4³ cells and fewer are solved in one launch (docs/notes/gravity.md).
const MOST_GROUPS_AT_ONCE: usize = 4096;

/// The same without cooperative launches, on one block: not measured.
const MOST_GROUPS_OF_A_BLOCK: usize = 64;

/// True for levels whose grids of 4³ cells and fewer are solved in one launch.
pub(super) fn are_for_one_launch(device: &CudaDevice, tables: &LevelTopology) -> bool {
    let most = if device.launches_together() { MOST_GROUPS_AT_ONCE } else { MOST_GROUPS_OF_A_BLOCK };
    is_for_one_block(tables) && tables.len() <= most
}

/// The V-cycle from the grid of 4³ cells on, whose first sweep is done, in one launch.
pub(super) fn solve_small_grids<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    (before, after, coarsest): ([f64; 2], f64, [f64; 8]),
    [four, two, one]: [&mut [Buffer<T>; 3]; 3],
) {
    let factors = SmallGridFactors {
        before_four: Factors::new(4, before[1]),
        start_two: Factors::new(2, before[0]),
        before_two: Factors::new(2, before[1]),
        after_two: Factors::new(2, after),
        after_four: Factors::new(4, after),
        coarsest: CoarsestFactors(coarsest.map(|weight| Factors::<T>::new(1, weight))),
    };
    let blocks = (tables.len() * 64).div_ceil(SMALL_GRID_THREADS as usize);
    let grids = [&mut *four, two, &mut *one].map(|arrays| GridArrays(arrays.each_mut().map(|array| array.pointer())));
    // SAFETY: the parameters are the kernel's, which is made for blocks of so many threads; the arrays have every slot, checked
    // by the caller.
    unsafe {
        launch!(device, T, "solve_small_grids", Blocks::Together(blocks), SMALL_GRID_THREADS, 0;
            Level::of(device, tables), grids, factors);
    }
    one.swap(CoarseGrid::<T>::ERROR, CoarseGrid::<T>::NEXT);
}

/// True where one block solves the coarsest grid of a level in less time than a launch for each sweep.
pub(super) fn is_for_one_block(tables: &LevelTopology) -> bool {
    tables.len() <= GROUPS_OF_A_THREAD * COARSEST_THREADS as usize
}

/// All sweeps on the coarsest grid, of these weights, in one launch.
///
/// * `fine`: the grid whose residual is the source, where that is not there yet
pub(super) fn solve_coarsest<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    weights: [f64; 8],
    fine: Option<&[Buffer<T>; 3]>,
    coarsest: &mut [Buffer<T>; 3],
) {
    let factors = CoarsestFactors(weights.map(|weight| Factors::<T>::new(1, weight)));
    let [fine_source, fine_error] = match fine {
        Some([source, error, _]) => [source.pointer(), error.pointer()],
        None => [Pointer::NULL; 2],
    };
    let [source, error, next] = coarsest.each_mut().map(|array| array.pointer());
    // SAFETY: the parameters are the kernel's; the arrays have every slot, checked by the caller.
    unsafe {
        launch!(device, T, "solve_coarsest", 1, COARSEST_THREADS, 0;
            Level::of(device, tables), factors, fine_source, fine_error, source, error, next);
    }
    coarsest.swap(CoarseGrid::<T>::ERROR, CoarseGrid::<T>::NEXT);
}

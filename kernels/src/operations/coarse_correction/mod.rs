//! Coarse correction of a level's potential: an approximate error on grids of 8³, 4³, 2³ and 1 cells a group, which
//! joins groups that relaxation alone joins one by one (two-level Schwarz method).
//!
//! A group's solution obeys the level's equation but at faces: there the ghost value that it was solved with is not
//! the neighbour's cell. The residual, (ghost − cell)/h² in the cells at faces, is averaged to 8³ cells a group
//! ([`face_residual`]); [`smooth`], [`restrict_residual`] and [`prolong_error`] make a V-cycle ([`find_error`]) for
//!
//! ∇²e = residual, e = 0 at the centres of ghost cells that have no neighbour,
//!
//! and the error counts where the next relaxation gathers ghosts ([`crate::face_relaxation::Relaxation`]).
//!
//! Each grid has its equation in units of its own cells: Σ e(neighbours) − 6e = source. A cell beyond a face without
//! neighbour is −r times the cell inside, r = (H − 1)/(H + 1) for cells H fine cells wide.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(all(test, feature = "cuda"))]
mod gpu_tests;
pub(crate) mod padded;
#[cfg(test)]
mod tests;
mod v_cycle;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::layout::{FACES, GROUP, GROUP_CELLS};
use crate::level::level_topology::LevelTopology;
use crate::operations::potential_ghosts::GHOST_CELLS;
use crate::real::Real;

pub use v_cycle::{OtherRanks, find_error};

/// Cells of a group along an axis of each grid, from fine to coarse.
pub const GRID_WIDTHS: [usize; 4] = [8, 4, 2, 1];

/// The arrays of one grid, each `[slots, width, width, width]`.
#[derive(Debug)]
pub struct CoarseGrid<'a, T> {
    /// Cells of a group along an axis: one of [`GRID_WIDTHS`].
    pub width: usize,
    /// Right-hand side, error, and the error of the next sweep.
    pub arrays: &'a mut [Buffer<T>; 3],
}

impl<T: Real> CoarseGrid<'_, T> {
    /// The right-hand side.
    pub const SOURCE: usize = 0;
    /// The error.
    pub const ERROR: usize = 1;
    /// Where the next sweep writes.
    const NEXT: usize = 2;

    /// Values of a slot.
    fn values(&self) -> usize {
        self.width.pow(3)
    }

    fn check(&self, tables: &LevelTopology) {
        assert!(GRID_WIDTHS.contains(&self.width), "no grid has {} cells", self.width);
        let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
        let fits = |array: &Buffer<T>| array.len() >= slots * self.values();
        assert!(self.arrays.iter().all(fits), "a grid of {}³ cells has no slot {slots}", self.width);
    }

    fn assert_twice_as_fine_as(&self, coarse: &CoarseGrid<T>) {
        assert_eq!(self.width, 2 * coarse.width, "grids of {} and {} cells", self.width, coarse.width);
    }
}

/// r on a grid of so many cells a group along an axis.
fn beyond_ratio(width: usize) -> f64 {
    let h = (GROUP / width) as f64;
    (h - 1.0) / (h + 1.0)
}

/// Step of a sweep per residual, by number of faces without neighbour: weight/(6 + n r) for n such faces.
#[derive(Clone, Copy)]
#[repr(C)]
struct Factors<T>([T; FACES + 1]);

impl<T: Real> Factors<T> {
    fn new(width: usize, weight: f64) -> Self {
        Self(std::array::from_fn(|missing| T::from_f64(weight / (6.0 + beyond_ratio(width) * missing as f64))))
    }
}

/// Averages the residual at the faces of groups to the grid of 8³ cells, and begins a sweep of `weight` there from zero.
///
/// - `ghosts`: with which the groups were solved, `[groups, 6, 16, 16]` in key order.
/// - `potential`: `[slots, 16, 16, 16]`, beginning with the groups' faces ([`mod@crate::operations::face_relaxation`]).
///
/// # Panics
/// If an array is too short.
pub fn face_residual<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    ghosts: &Buffer<T>,
    potential: &Buffer<T>,
    weight: f64,
    grid: CoarseGrid<T>,
) {
    grid.check(tables);
    assert_eq!(grid.width, GRID_WIDTHS[0], "residuals come to the finest grid");
    assert!(ghosts.len() >= tables.len() * GHOST_CELLS, "ghosts of {} groups are missing", tables.len());
    assert!(potential.len().is_multiple_of(GROUP_CELLS));
    let factors = Factors::new(grid.width, weight);
    match device {
        Device::Cpu(device) => {
            device.install(|| cpu::face_residual(tables, ghosts.host(), potential.host(), &factors, grid.arrays));
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::face_residual(device, tables, ghosts, potential, factors, grid.arrays),
    }
}

/// Begins a sweep of `weight` from zero: of groups whose source other ranks have found.
///
/// # Panics
/// If an array is too short.
fn start_sweep<T: Real>(device: &Device, tables: &LevelTopology, weight: f64, grid: CoarseGrid<T>) {
    grid.check(tables);
    let factors = Factors::new(grid.width, weight);
    match device {
        Device::Cpu(device) => device.install(|| cpu::start_sweep(tables, grid.width, &factors, grid.arrays)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::start_sweep(device, tables, grid.width, factors, grid.arrays),
    }
}

/// One sweep over all cells at once: e += `weight` (Σ e(neighbours) − 6e − source)/(6 + n r).
///
/// # Panics
/// If an array is too short.
pub fn smooth<T: Real>(device: &Device, tables: &LevelTopology, weight: f64, grid: CoarseGrid<T>) {
    grid.check(tables);
    let factors = Factors::new(grid.width, weight);
    match device {
        Device::Cpu(device) => device.install(|| cpu::smooth(tables, grid.width, &factors, grid.arrays)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::smooth(device, tables, grid.width, factors, grid.arrays),
    }
    grid.arrays.swap(CoarseGrid::<T>::ERROR, CoarseGrid::<T>::NEXT);
}

/// Averages what the error leaves of the source of `fine` to `coarse`, and begins a sweep of `weight` there from zero.
///
/// # Panics
/// If an array is too short, or `coarse` has not half as many cells along an axis.
pub fn restrict_residual<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    weight: f64,
    fine: CoarseGrid<T>,
    coarse: CoarseGrid<T>,
) {
    fine.check(tables);
    coarse.check(tables);
    fine.assert_twice_as_fine_as(&coarse);
    let factors = Factors::new(coarse.width, weight);
    match device {
        Device::Cpu(device) => {
            device.install(|| cpu::restrict_residual(tables, coarse.width, &factors, fine.arrays, coarse.arrays));
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            cuda::restrict_residual(device, tables, coarse.width, factors, fine.arrays, coarse.arrays);
        }
    }
}

/// Adds the error of `coarse` to that of `fine`, interpolated linearly along each axis.
///
/// # Panics
/// If an array is too short, or `coarse` has not half as many cells along an axis.
pub fn prolong_error<T: Real>(device: &Device, tables: &LevelTopology, coarse: CoarseGrid<T>, fine: CoarseGrid<T>) {
    fine.check(tables);
    coarse.check(tables);
    fine.assert_twice_as_fine_as(&coarse);
    match device {
        Device::Cpu(device) => {
            device.install(|| cpu::prolong_error(tables, coarse.width, coarse.arrays, fine.arrays));
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::prolong_error(device, tables, coarse.width, coarse.arrays, fine.arrays),
    }
}

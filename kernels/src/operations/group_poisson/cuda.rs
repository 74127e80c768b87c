//! Group solves on a GPU: one block a group, its working set in shared memory.

use super::sine::SineTables;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Pointer;
use crate::device::cuda::{CudaDevice, launch};
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::operations::poisson_source::{DeviceSource, PoissonSource};
use crate::operations::potential_ghosts::{GhostRequest, THREADS};
use crate::real::Real;

/// Where the solution goes: the `Solution` of `group.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Solution<T> {
    potential: Pointer<T>,
    gradients: Pointer<T>,
    h: f64,
}

/// Gathers the ghosts that `request` asks for, or takes those that are there, and solves the same groups, so many.
pub(super) fn group_poisson<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    (request, groups): (GhostRequest<T>, usize),
    sine: &SineTables<T>,
    source: &PoissonSource<T>,
    h: f64,
    potential: &Buffer<T>,
    gradients: Option<&Buffer<T>>,
) {
    let level = Level::of(device, tables);
    let source = DeviceSource::new(source);
    let gradients = gradients.map_or(Pointer::NULL, Buffer::pointer);
    let solution = Solution { potential: potential.pointer(), gradients, h };
    let (inverse, sines) = (sine.inverse.on(device), sine.sines);
    let kernel = if device.exact() { "group_poisson_sine_exact" } else { "group_poisson_sine" };
    // SAFETY: the parameters are the kernel's; the pools hold every slot that the tables name and the ghosts every group,
    // checked by the caller.
    unsafe {
        launch!(device, T, kernel, groups, THREADS, 0;
            level, request, source, solution, inverse, sines);
    }
}

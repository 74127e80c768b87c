//! Group solves on a GPU: one block a group, its working set in shared memory.

use super::sine::SineTables;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Pointer;
use crate::device::cuda::{CudaDevice, launch};
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::operations::poisson_source::{DeviceSource, PoissonSource};
use crate::operations::potential_ghosts::THREADS;
use crate::real::Real;

/// Where the solution goes: the `Solution` of `group_poisson.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Solution<T> {
    potential: Pointer<T>,
    gradients: Pointer<T>,
    h: f64,
}

pub(super) fn group_poisson<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    sine: &SineTables<T>,
    source: &PoissonSource<T>,
    ghosts: &Buffer<T>,
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
        launch!(device, T, kernel, tables.len(), THREADS, 0;
            level, ghosts.pointer(), source, solution, inverse, sines);
    }
}

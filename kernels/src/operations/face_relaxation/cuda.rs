//! Solutions at faces on a GPU: one block a group.

use super::Relaxation;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Pointer;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::device_table::DeviceTable;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::operations::group_poisson::sine::SineTables;
use crate::operations::poisson_source::{DeviceSource, PoissonSource};
use crate::operations::potential_ghosts::{GhostOrigin, GhostRequest, THREADS, TimedPotential};
use crate::real::Real;

/// The `Relaxation` of `face_relaxation.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct DeviceRelaxation<T> {
    error: Pointer<T>,
    groups: Pointer<u32>,
    factor: T,
    neighbours_corrected: T,
}

/// With ghosts from `origin`, or those that are there if there is none.
pub(super) fn start_faces<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    origin: Option<GhostOrigin>,
    coarse: Option<&TimedPotential<T>>,
    sine: &SineTables<T>,
    source: &PoissonSource<T>,
    h: f64,
    ghosts: &Buffer<T>,
    own: &Buffer<T>,
    potential: &Buffer<T>,
) {
    let request = GhostRequest::new(device, origin, potential, coarse, Some(ghosts));
    let (source, inverse, sines) = (DeviceSource::new(source), sine.inverse.on(device), sine.sines);
    let kernel = if device.exact() { "start_faces_exact" } else { "start_faces" };
    // SAFETY: the parameters are the kernel's; the pools hold every slot that the tables name, ghosts and `own` every
    // group, checked by the caller. Blocks write their own slots and read slots of the coarser level.
    unsafe {
        launch!(device, T, kernel, tables.len(), THREADS, 0;
            Level::of(device, tables), request, source, h, own.pointer(), potential.pointer(), inverse, sines);
    }
}

pub(super) fn relax_faces<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    groups: &DeviceTable<u32>,
    relaxation: &Relaxation<T>,
    sine: &SineTables<T>,
    own: &Buffer<T>,
    ghosts: &Buffer<T>,
    potential: &Buffer<T>,
) {
    let relaxation = DeviceRelaxation {
        error: relaxation.error.pointer(),
        groups: groups.on(device),
        factor: T::from_f64(relaxation.factor),
        neighbours_corrected: T::from_f64(f64::from(relaxation.neighbours_corrected)),
    };
    let (inverse, sines) = (sine.inverse.on(device), sine.sines);
    let kernel = if device.exact() { "relax_faces_exact" } else { "relax_faces" };
    // SAFETY: as above; no block writes faces that another one reads, as the groups share none.
    unsafe {
        launch!(device, T, kernel, groups.len(), THREADS, 0;
            Level::of(device, tables), relaxation, own.pointer(), ghosts.pointer(), potential.pointer(), inverse, sines);
    }
}

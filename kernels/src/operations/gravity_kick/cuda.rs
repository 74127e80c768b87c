//! The kick on a GPU: one block a group.

use super::{KickReport, Peak};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::deferred::Deferred;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::operations::potential_ghosts::{GhostOrigin, GhostRequest, THREADS, TimedPotential};
use crate::point::eos::Eos;
use crate::real::Real;

pub(super) fn gravity_kick<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    fluid: &Buffer<T>,
    h: f64,
    dt: f64,
    eos: &Eos<T>,
) -> Deferred<KickReport> {
    let request = GhostRequest::new(device, Some(GhostOrigin::Sibling), potential, coarse, None);
    let reports = Array::<KickReport>::work_space(device, tables.len());
    // SAFETY: the parameters are the kernel's; the tables name slots of the pools, checked by the caller.
    unsafe {
        launch!(device, T, "gravity_kick", tables.len(), THREADS, 0;
            Level::of(device, tables), request, fluid.pointer(), scale::<T>(h), dt, *eos, reports.pointer());
    }
    reports.read_later(<[_]>::to_vec)
}

pub(super) fn max_acceleration<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    h: f64,
) -> Deferred<Peak> {
    let request = GhostRequest::new(device, Some(GhostOrigin::Sibling), potential, coarse, None);
    let found = Array::<Peak>::work_space(device, tables.len());
    // SAFETY: as above.
    unsafe {
        launch!(device, T, "max_acceleration", tables.len(), THREADS, 0;
            Level::of(device, tables), request, scale::<T>(h), found.pointer());
    }
    found.read_later(<[_]>::to_vec)
}

/// The factor of a difference of neighbours' potentials.
fn scale<T: Real>(h: f64) -> T {
    T::from_f64(-0.5 / h)
}

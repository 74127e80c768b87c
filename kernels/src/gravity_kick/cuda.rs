//! The kick on a GPU: one block a group.

use super::{KickReport, Peak};
use crate::buffer::Buffer;
use crate::cuda::array::Array;
use crate::cuda::level::Level;
use crate::cuda::{CudaDevice, launch};
use crate::point::eos::Eos;
use crate::potential_ghosts::{GhostOrigin, GhostRequest, Parity, THREADS, TimedPotential};
use crate::real::Real;
use crate::report::GroupReport;
use crate::tables::LevelTables;

/// What a kick says of a group: the `KickReport` of `gravity_kick.cu`, read back at once.
#[derive(Clone, Copy)]
#[repr(C)]
struct Reports {
    report: GroupReport,
    kick: KickReport,
}

pub(super) fn gravity_kick<T: Real>(
    device: &CudaDevice,
    tables: &LevelTables,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    fluid: &Buffer<T>,
    h: f64,
    dt: f64,
    eos: &Eos<T>,
    reports: &mut [GroupReport],
    kicks: &mut [KickReport],
) {
    let (request, _) =
        GhostRequest::new(device, tables, Parity::All, Some(GhostOrigin::Sibling), potential, coarse, None);
    let both = Array::<Reports>::room(device, tables.len()).expect("room for a report a group");
    // SAFETY: the parameters are the kernel's; the tables name slots of the pools, checked by the caller.
    unsafe {
        launch!(device, T, "gravity_kick", tables.len(), THREADS, 0;
            Level::of(device, tables), request, fluid.pointer(), scale::<T>(h), dt, *eos, both.pointer());
    }
    for ((report, kick), both) in reports.iter_mut().zip(kicks).zip(both.to_host()) {
        (*report, *kick) = (both.report, both.kick);
    }
}

pub(super) fn max_acceleration<T: Real>(
    device: &CudaDevice,
    tables: &LevelTables,
    potential: &Buffer<T>,
    h: f64,
    peaks: &mut [Peak],
) {
    let (request, _) =
        GhostRequest::new(device, tables, Parity::All, Some(GhostOrigin::Sibling), potential, None, None);
    let found = Array::<Peak>::room(device, tables.len()).expect("room for a peak a group");
    // SAFETY: as above.
    unsafe {
        launch!(device, T, "max_acceleration", tables.len(), THREADS, 0;
            Level::of(device, tables), request, scale::<T>(h), found.pointer());
    }
    peaks.copy_from_slice(&found.to_host());
}

/// The factor of a difference of neighbours' potentials.
fn scale<T: Real>(h: f64) -> T {
    T::of(-0.5 / h)
}

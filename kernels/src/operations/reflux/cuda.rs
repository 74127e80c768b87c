//! Flux correction on a GPU.

use super::RefluxTables;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::deferred::Deferred;
use crate::level::report::GroupReport;
use crate::point::eos::Eos;
use crate::real::Real;

const THREADS: u32 = 256;

/// Corrects all groups of the tables; a report for each of them, with its index in the level.
pub(super) fn reflux<T: Real>(
    device: &CudaDevice,
    tables: &RefluxTables,
    fluid: &Buffer<T>,
    fluxes: &Buffer<T>,
    dt_over_dx: T,
    fine_share: T,
    eos: &Eos<T>,
) -> Deferred<(u32, GroupReport)> {
    let reports = Array::<GroupReport>::work_space(device, tables.groups.len());
    let (faces, groups) = (tables.faces.on(device), tables.groups.on(device));
    // SAFETY: the parameters are the kernel's; slots and planes of the tables are in their pools, each group occurs once
    // and there is a report for each.
    unsafe {
        launch!(device, T, "reflux", tables.groups.len(), THREADS, 0;
            faces, groups, fluid.pointer(), fluxes.pointer(), dt_over_dx, fine_share, *eos, reports.pointer());
    }
    let indices: Vec<u32> = tables.groups.iter().map(|group| group.index).collect();
    reports.read_later(move |reports| indices.into_iter().zip(reports.iter().copied()).collect())
}

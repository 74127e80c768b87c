//! Scalars on a GPU.

use super::ScalarSweep;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::{Array, Pointer};
use crate::device::cuda::{CudaDevice, launch};
use crate::layout::OCTANTS;
use crate::level::cuda::Level;
use crate::level::level_topology::{LevelTopology, NONE};
use crate::operations::reflux::RefluxTables;
use crate::real::Real;

/// Threads of a block.
const THREADS: u32 = 256;
/// Blocks that share a new group.
const BLOCKS: usize = 4;

/// `ScalarPools` of `sweep.cuh`.
#[repr(C)]
pub(crate) struct ScalarPools<T> {
    before: Pointer<T>,
    earlier: Pointer<T>,
    after: Pointer<T>,
    fluxes: Pointer<T>,
    mass_fluxes: Pointer<T>,
    count: i32,
}

impl<T: Real> ScalarPools<T> {
    /// With room for the mass fluxes of the blocks of a sweep.
    pub(crate) fn of(scalars: &ScalarSweep<'_, T>, mass_fluxes: &Array<T>) -> Self {
        Self {
            before: scalars.before.pointer(),
            earlier: scalars.earlier.pointer(),
            after: scalars.after.pointer(),
            fluxes: scalars.fluxes.pointer(),
            mass_fluxes: mass_fluxes.pointer(),
            count: scalars.count as i32,
        }
    }
}

pub(super) fn restrict<T: Real>(device: &CudaDevice, coarse: &LevelTopology, count: usize, scalars: &Buffer<T>) {
    if coarse.children.iter().all(|&child| child == NONE) {
        return;
    }
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pool, each patch has a child of its own.
    unsafe {
        launch!(device, T, "restrict_scalars", coarse.len() * OCTANTS, THREADS, 0;
            Level::of(device, coarse), count as i32, scalars.pointer());
    }
}

pub(super) fn prolong<T: Real>(
    device: &CudaDevice,
    fine: &LevelTopology,
    new: &[usize],
    fluid: &Buffer<T>,
    count: usize,
    scalars: &Buffer<T>,
) {
    let groups: Vec<u32> = new.iter().map(|&g| g as u32).collect();
    let groups = Array::work_space_of(device, &groups);
    // SAFETY: the parameters are the kernel's; the groups are the level's, as the caller checked, and slots of the tables
    // are in the pools.
    unsafe {
        launch!(device, T, "prolong_scalars", new.len() * BLOCKS, THREADS / 2, 0;
            Level::of(device, fine), BLOCKS as i32, groups.pointer(), fluid.pointer(), count as i32, scalars.pointer());
    }
}

pub(super) fn reflux<T: Real>(
    device: &CudaDevice,
    tables: &RefluxTables,
    count: usize,
    scalars: &Buffer<T>,
    fluxes: &Buffer<T>,
    dt_over_dx: T,
    fine_share: T,
) {
    let (faces, groups) = (tables.faces.on(device), tables.groups.on(device));
    // SAFETY: the parameters are the kernel's; slots and planes of the tables are in their pools, each group occurs once.
    unsafe {
        launch!(device, T, "reflux_scalars", tables.groups.len(), THREADS, 0;
            faces, groups, scalars.pointer(), fluxes.pointer(), count as i32, dt_over_dx, fine_share);
    }
}

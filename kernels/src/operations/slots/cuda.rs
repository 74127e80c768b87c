//! Slots of pools on a GPU: one block a slot.

use crate::device::buffer::Buffer;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::device_table::DeviceTable;
use crate::real::Real;

/// Threads of a block.
const THREADS: u32 = 256;

pub(super) fn copy_slots<T: Real>(
    device: &CudaDevice,
    values: usize,
    from: &Buffer<T>,
    from_slots: &DeviceTable<u32>,
    to: &Buffer<T>,
    to_slots: &DeviceTable<u32>,
) {
    let lists = (from_slots.on(device), to_slots.on(device));
    // SAFETY: the parameters are the kernel's; the lists name slots of the pools, checked by the caller.
    unsafe {
        launch!(device, T, "copy_slots", from_slots.len(), THREADS, 0;
            values as i32, from.pointer(), lists.0, to.pointer(), lists.1);
    }
}

pub(super) fn add_slots<T: Real>(
    device: &CudaDevice,
    values: usize,
    from: &Buffer<T>,
    to: &Buffer<T>,
    slots: &DeviceTable<u32>,
) {
    // SAFETY: as above.
    unsafe {
        launch!(device, T, "add_slots", slots.len(), THREADS, 0;
            values as i32, from.pointer(), to.pointer(), slots.on(device));
    }
}

pub(super) fn clear_slots<T: Real>(device: &CudaDevice, values: usize, pool: &Buffer<T>, slots: &DeviceTable<u32>) {
    // SAFETY: as above.
    unsafe {
        launch!(device, T, "clear_slots", slots.len(), THREADS, 0; values as i32, pool.pointer(), slots.on(device));
    }
}

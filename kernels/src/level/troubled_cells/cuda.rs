//! Marks of single slots on a GPU: one block a slot.

use super::MARK_ROWS;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::device_table::DeviceTable;

pub(super) fn found_of(device: &CudaDevice, found: &Buffer<u16>, slots: &DeviceTable<u32>) -> Vec<u16> {
    let rows = Array::<u16>::work_space(device, slots.len() * MARK_ROWS);
    // SAFETY: the parameters are the kernel's; the slots are in the pool, checked by the caller, and have rows each.
    unsafe {
        launch!(device, f32, "read_found", slots.len(), MARK_ROWS as u32, 0;
            found.pointer(), slots.on(device), rows.pointer());
    }
    rows.to_host()
}

pub(super) fn set_found(device: &CudaDevice, found: &Buffer<u16>, slots: &DeviceTable<u32>, rows: &[u16]) {
    let rows = Array::work_space_of(device, rows);
    // SAFETY: as above.
    unsafe {
        launch!(device, f32, "write_found", slots.len(), MARK_ROWS as u32, 0;
            rows.pointer(), slots.on(device), found.pointer());
    }
}

pub(super) fn clear_found(device: &CudaDevice, found: &Buffer<u16>, slots: &DeviceTable<u32>) {
    // SAFETY: as above.
    unsafe {
        launch!(device, f32, "clear_found", slots.len(), MARK_ROWS as u32, 0;
            slots.on(device), found.pointer());
    }
}

//! Exchanges of particles on a GPU.

use super::super::cuda::{Columns, Locator, THREADS};
use super::super::{COLUMNS, Particles};
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::device_table::DeviceTable;
use crate::level::group_locator::GroupLocator;
use std::ops::Range;

/// Blocks of threads for so many particles.
fn blocks(count: usize) -> usize {
    count.div_ceil(THREADS as usize)
}

pub(super) fn foreign(
    device: &CudaDevice,
    locator: &GroupLocator,
    particles: &Particles,
    range: Range<usize>,
    from: usize,
) -> Vec<u32> {
    let columns = Columns::of(particles, &range);
    let found = Array::<u32>::work_space(device, 1);
    found.clear(0);
    // the sort that follows has no use yet for this array, which has as many values as there are particles
    let list = particles.spare.pointer_to(range.start);
    // SAFETY: the parameters are the kernel's; there is room for every particle of the range.
    unsafe {
        launch!(device, f32, "list_foreign", columns.blocks(), THREADS, 0;
            Locator::of(device, locator), locator.levels() as i32 - 1, columns, from as i32, list, found.pointer());
    }
    let found = found.to_host()[0] as usize;
    let listed = Array::<u32>::work_space(device, found);
    let in_order: DeviceTable<u32> = (0..found as u32).collect();
    // SAFETY: as above.
    unsafe {
        launch!(device, f32, "gather_column", blocks(found), THREADS, 0;
            found as u64, in_order.on(device), list, listed.pointer());
    }
    let mut listed: Vec<u32> = listed.to_host().into_iter().map(|n| n + range.start as u32).collect();
    listed.sort_unstable();
    listed
}

pub(super) fn count_in_groups(device: &CudaDevice, locator: &GroupLocator, particles: &Particles) -> Vec<u32> {
    let columns = Columns::of(particles, &(0..particles.len()));
    let lowest = locator.first[0];
    let counts = Array::<u32>::work_space(device, locator.groups() - lowest as usize);
    counts.clear(0);
    // SAFETY: the parameters are the kernel's; groups have numbers below that of all.
    unsafe {
        launch!(device, f32, "count_in_groups", columns.blocks(), THREADS, 0;
            Locator::of(device, locator), locator.levels() as i32 - 1, columns, lowest, counts.pointer());
    }
    counts.to_host()
}

pub(super) fn take(device: &CudaDevice, particles: &Particles, list: &[u32]) -> [Vec<u32>; COLUMNS] {
    let numbers = Array::work_space_of(device, list);
    particles.columns.each_ref().map(|column| {
        let values = Array::<u32>::work_space(device, list.len());
        // SAFETY: the parameters are the kernel's; the list names particles that there are, checked by the caller.
        unsafe {
            launch!(device, f32, "gather_column", blocks(list.len()), THREADS, 0;
                list.len() as u64, numbers.pointer(), column.pointer(), values.pointer());
        }
        values.to_host()
    })
}

pub(super) fn put(device: &CudaDevice, particles: &mut Particles, list: &[u32], columns: [&[u32]; COLUMNS]) {
    let numbers = Array::work_space_of(device, list);
    for (column, values) in particles.columns.iter_mut().zip(columns) {
        let values = Array::work_space_of(device, values);
        // SAFETY: as above.
        unsafe {
            launch!(device, f32, "put_column", blocks(list.len()), THREADS, 0;
                list.len() as u64, numbers.pointer(), values.pointer(), column.pointer());
        }
    }
}

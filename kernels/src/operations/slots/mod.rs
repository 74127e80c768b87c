//! Whole slots of pools: copied, added, cleared.

#[cfg(feature = "cuda")]
mod cuda;

use crate::device::buffer::{Buffer, SlotWriter};
use crate::device::device_table::DeviceTable;
use crate::device::{CpuDevice, Device};
use crate::real::Real;
use rayon::prelude::*;

/// Copies slots of `values` values each: `from_slots[n]` of `from` to `to_slots[n]` of `to`.
///
/// # Panics
/// If the lists differ in length, a slot is beyond its pool, or two entries of `to_slots` are equal.
pub fn copy_slots<T: Real>(
    device: &Device,
    values: usize,
    from: &Buffer<T>,
    from_slots: &DeviceTable<u32>,
    to: &mut Buffer<T>,
    to_slots: &DeviceTable<u32>,
) {
    assert_eq!(from_slots.len(), to_slots.len(), "as many slots to copy as to fill");
    assert_in_pool(from, values, from_slots);
    assert_in_pool(to, values, to_slots);
    match device {
        Device::Cpu(cpu) => {
            let from = from.host();
            each_slot(cpu, values, to, to_slots, |n, to| to.copy_from_slice(slot(from, from_slots[n], values)));
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::copy_slots(device, values, from, from_slots, to, to_slots),
    }
}

/// Adds the slots that `slots` names of one pool to those of another.
///
/// # Panics
/// If a slot is beyond a pool or is named twice.
pub fn add_slots<T: Real>(
    device: &Device,
    values: usize,
    from: &Buffer<T>,
    to: &mut Buffer<T>,
    slots: &DeviceTable<u32>,
) {
    assert_in_pool(from, values, slots);
    assert_in_pool(to, values, slots);
    match device {
        Device::Cpu(cpu) => {
            let from = from.host();
            each_slot(cpu, values, to, slots, |n, to| {
                for (sum, &value) in to.iter_mut().zip(slot(from, slots[n], values)) {
                    *sum += value;
                }
            });
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::add_slots(device, values, from, to, slots),
    }
}

/// Fills slots with zeros.
///
/// # Panics
/// If a slot is beyond the pool or is named twice.
pub fn clear_slots<T: Real>(device: &Device, values: usize, pool: &mut Buffer<T>, slots: &DeviceTable<u32>) {
    assert_in_pool(pool, values, slots);
    match device {
        Device::Cpu(cpu) => each_slot(cpu, values, pool, slots, |_, slot| slot.fill(T::zero())),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::clear_slots(device, values, pool, slots),
    }
}

fn assert_in_pool<T: Real>(pool: &Buffer<T>, values: usize, slots: &DeviceTable<u32>) {
    let last = slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(last * values <= pool.len(), "slot {last} is beyond the pool");
}

fn slot<T>(pool: &[T], slot: u32, values: usize) -> &[T] {
    &pool[slot as usize * values..][..values]
}

/// Hands every named slot to `write`, in parallel.
fn each_slot<T: Real>(
    cpu: &CpuDevice,
    values: usize,
    pool: &mut Buffer<T>,
    slots: &DeviceTable<u32>,
    write: impl Fn(usize, &mut [T]) + Sync,
) {
    let mut named = vec![false; pool.len() / values];
    for &slot in slots {
        assert!(!std::mem::replace(&mut named[slot as usize], true), "slot {slot} is named twice");
    }
    cpu.install(|| {
        let pool = SlotWriter::new(pool.host_mut(), values);
        slots.par_iter().enumerate().for_each(|(n, &slot)| {
            // SAFETY: the slots are distinct, as just checked.
            write(n, unsafe { pool.slot(slot) });
        });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_slots_change_and_no_others() {
        let device = Device::cpu(2).unwrap();
        let pool = |values: &[f64]| Buffer::from_host(&device, values.to_vec()).unwrap();
        let from = pool(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let mut to = pool(&[0.5; 8]);
        copy_slots(&device, 2, &from, &vec![2, 0].into(), &mut to, &vec![1, 3].into());
        assert_eq!(to.host(), [0.5, 0.5, 5.0, 6.0, 0.5, 0.5, 1.0, 2.0]);
        add_slots(&device, 2, &from, &mut to, &vec![1].into());
        assert_eq!(to.host(), [0.5, 0.5, 8.0, 10.0, 0.5, 0.5, 1.0, 2.0]);
        clear_slots(&device, 2, &mut to, &vec![3, 0].into());
        assert_eq!(to.host(), [0.0, 0.0, 8.0, 10.0, 0.5, 0.5, 0.0, 0.0]);
    }
}

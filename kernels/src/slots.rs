//! Whole slots of pools: copied, added, cleared.

use crate::buffer::{Buffer, SlotWriter};
use crate::device::Device;
use crate::real::Real;
use rayon::prelude::*;

/// Copies slots of `values` values each: `from_slots[n]` of `from` to `to_slots[n]` of `to`.
///
/// # Panics
/// If the lists differ in length, a slot lies beyond its pool, or two entries of `to_slots` are equal.
pub fn copy_slots<T: Real>(
    device: &Device,
    values: usize,
    from: &Buffer<T>,
    from_slots: &[u32],
    to: &mut Buffer<T>,
    to_slots: &[u32],
) {
    assert_eq!(from_slots.len(), to_slots.len(), "as many slots to copy as to fill");
    let from = from.host();
    each_slot(device, values, to, to_slots, |n, to| to.copy_from_slice(slot(from, from_slots[n], values)));
}

/// Adds the slots that `slots` names of one pool to those of another.
///
/// # Panics
/// If a slot lies beyond a pool or is named twice.
pub fn add_slots<T: Real>(device: &Device, values: usize, from: &Buffer<T>, to: &mut Buffer<T>, slots: &[u32]) {
    let from = from.host();
    each_slot(device, values, to, slots, |n, to| {
        for (sum, &value) in to.iter_mut().zip(slot(from, slots[n], values)) {
            *sum += value;
        }
    });
}

/// Fills slots with zeros.
///
/// # Panics
/// If a slot lies beyond the pool or is named twice.
pub fn clear_slots<T: Real>(device: &Device, values: usize, pool: &mut Buffer<T>, slots: &[u32]) {
    each_slot(device, values, pool, slots, |_, slot| slot.fill(T::zero()));
}

fn slot<T>(pool: &[T], slot: u32, values: usize) -> &[T] {
    &pool[slot as usize * values..][..values]
}

/// Hands every named slot to `write`, in parallel.
fn each_slot<T: Real>(
    device: &Device,
    values: usize,
    pool: &mut Buffer<T>,
    slots: &[u32],
    write: impl Fn(usize, &mut [T]) + Sync,
) {
    let mut named = vec![false; pool.len() / values];
    for &slot in slots {
        assert!(!std::mem::replace(&mut named[slot as usize], true), "slot {slot} is named twice");
    }
    match device {
        Device::Cpu(cpu) => cpu.install(|| {
            let pool = SlotWriter::new(pool.host_mut(), values);
            slots.par_iter().enumerate().for_each(|(n, &slot)| {
                // SAFETY: the slots are distinct, as just checked.
                write(n, unsafe { pool.slot(slot) });
            });
        }),
    }
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
        copy_slots(&device, 2, &from, &[2, 0], &mut to, &[1, 3]);
        assert_eq!(to.host(), [0.5, 0.5, 5.0, 6.0, 0.5, 0.5, 1.0, 2.0]);
        add_slots(&device, 2, &from, &mut to, &[1]);
        assert_eq!(to.host(), [0.5, 0.5, 8.0, 10.0, 0.5, 0.5, 1.0, 2.0]);
        clear_slots(&device, 2, &mut to, &[3, 0]);
        assert_eq!(to.host(), [0.0, 0.0, 8.0, 10.0, 0.5, 0.5, 0.0, 0.0]);
    }
}

//! Particles that change hands between ranks.
//!
//! Lists and columns pass through the host: particles that leave are few.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
mod tests;

use super::{COLUMNS, Particles};
use crate::device::Device;
use crate::level::group_locator::GroupLocator;
use std::ops::Range;

/// The particles of a range whose home groups are other ranks', of levels from `from` on: their numbers, rising.
///
/// # Panics
/// If there are not so many particles.
pub fn foreign(
    device: &Device,
    locator: &GroupLocator,
    particles: &Particles,
    range: Range<usize>,
    from: usize,
) -> Vec<u32> {
    particles.check(&range);
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::foreign(locator, particles, range, from)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::foreign(device, locator, particles, range, from),
    }
}

/// How many particles are at home in each group, in the order of the groups' numbers.
pub fn count_in_groups(device: &Device, locator: &GroupLocator, particles: &Particles) -> Vec<u32> {
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::count_in_groups(locator, particles)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::count_in_groups(device, locator, particles),
    }
}

/// Copies the particles with these numbers to the host.
///
/// # Panics
/// If there are not so many particles.
pub fn take(device: &Device, particles: &Particles, list: &[u32]) -> [Vec<u32>; COLUMNS] {
    check_list(particles, list);
    match device {
        Device::Cpu(_) => cpu::take(particles, list),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::take(device, particles, list),
    }
}

/// Overwrites the particles with these numbers, no two of which are the same.
///
/// # Panics
/// If there are not so many particles, or another number in the columns than in the list.
pub fn put(device: &Device, particles: &mut Particles, list: &[u32], columns: [&[u32]; COLUMNS]) {
    check_list(particles, list);
    assert!(columns.iter().all(|column| column.len() == list.len()), "a value for each particle");
    match device {
        Device::Cpu(_) => cpu::put(particles, list, columns),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::put(device, particles, list, columns),
    }
}

fn check_list(particles: &Particles, list: &[u32]) {
    assert!(list.iter().all(|&n| (n as usize) < particles.len()), "particles of {}", particles.len());
}

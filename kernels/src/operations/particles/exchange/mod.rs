//! Particles that change hands between ranks, and mass that they leave in cells of other ranks' groups.
//!
//! Lists and columns pass through the host: particles that leave are few.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
mod tests;

use super::{COLUMNS, Overflow, Particles};
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::device_table::DeviceTable;
use crate::layout::GROUP_CELLS;
use crate::level::group_locator::GroupLocator;
use crate::messages::Piece;
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

/// The weights in boxes of cells of a pool, `[slots, 16, 16, 16]`, one box after the other, each `[k, j, i]`.
///
/// # Panics
/// If a box is beyond the pool.
pub fn gather_weights(device: &Device, pieces: &DeviceTable<Piece>, mass: &Buffer<u64>) -> Vec<u64> {
    let cells = check_pieces(pieces, mass);
    match device {
        Device::Cpu(_) => cpu::gather_weights(pieces, mass.host(), cells),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::gather_weights(device, pieces, mass, cells),
    }
}

/// Adds what [`gather_weights`] has given to boxes of cells; a cell may be in several of them.
///
/// * `overflow`: set where the sum of a cell exceeds 64 bits
///
/// # Panics
/// If a box is beyond the pool, or there are not as many weights as cells.
pub fn add_weights(
    device: &Device,
    pieces: &DeviceTable<Piece>,
    weights: &[u64],
    (mass, overflow): (&mut Buffer<u64>, &mut Overflow),
) {
    assert_eq!(check_pieces(pieces, mass), weights.len(), "a weight for each cell");
    match device {
        Device::Cpu(_) => cpu::add_weights(pieces, weights, mass.host_mut(), &mut overflow.0.host_mut()[0]),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::add_weights(device, pieces, weights, mass, &overflow.0),
    }
}

fn check_list(particles: &Particles, list: &[u32]) {
    assert!(list.iter().all(|&n| (n as usize) < particles.len()), "particles of {}", particles.len());
}

/// Cells of all pieces.
fn check_pieces(pieces: &[Piece], mass: &Buffer<u64>) -> usize {
    let slots = mass.len() / GROUP_CELLS;
    assert!(pieces.iter().all(|piece| (piece.slot as usize) < slots), "pieces of a pool of {slots} slots");
    pieces.last().map_or(0, Piece::end)
}

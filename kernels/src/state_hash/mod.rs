//! A 64-bit hash of each group's bits: cheap evidence, step by step, that two runs are the same.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use crate::buffer::Buffer;
use crate::device::Device;
use crate::layout::GROUP_VALUES;
use crate::real::Real;
use crate::tables::LevelTables;

/// Hashes the fluid of each group of a level: Σ bits(i)·(2i+1)·0x9E3779B97F4A7C15 modulo 2⁶⁴ over its values i in
/// layout order. One changed value always changes the sum, because every factor is odd. It guards against accidents,
/// not against intent. The host combines the groups' hashes in key order.
///
/// * `fluid`: conserved, comoving, `[slot, 6, 16, 16, 16]`
/// * `hashes`: one per group, overwritten
///
/// # Panics
/// If shapes disagree.
pub fn state_hash<T: Real>(device: &Device, tables: &LevelTables, fluid: &Buffer<T>, hashes: &mut [u64]) {
    assert_eq!(fluid.len() % GROUP_VALUES, 0, "the pool is not a whole number of groups");
    assert_eq!(hashes.len(), tables.len(), "hashes for another number of groups");
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::state_hash(crate::isa::Isa::best(), tables, fluid.host(), hashes)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => hashes.copy_from_slice(&cuda::state_hash(device, tables, fluid)),
    }
}

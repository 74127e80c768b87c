//! Prolongation: conservative interpolation into new groups with limited central slopes.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::layout::GROUP_VALUES;
use crate::level::level_topology::LevelTopology;
use crate::point::eos::Eos;
use crate::real::Real;

/// Fills new groups of a refined level from the patches they refine; the mean of eight new cells is the coarse cell.
/// Energy and entropy scalar agree in every new cell. The mean of energies is the coarse cell's where that is warm
/// ([`crate::point::dual_energy::heat_factor`]).
///
/// * `new`: indices of the new groups in `fine`.
/// * `fluid`: conserved, comoving, `[slots, 6, 16, 16, 16]`; the coarser level is read, the new groups are written.
///
/// # Panics
/// If the pool is not whole groups or an index is out of range.
pub fn prolong<T: Real>(device: &Device, fine: &LevelTopology, new: &[usize], fluid: &mut Buffer<T>, eos: &Eos<T>) {
    assert_eq!(fluid.len() % GROUP_VALUES, 0, "a fluid pool holds whole groups");
    assert!(new.iter().all(|&g| g < fine.len()), "a new group is not in its level's table");
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::prolong(fine, new, fluid.host_mut(), eos)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::prolong(device, fine, new, fluid, eos),
    }
}

//! Restriction: a patch that has children holds the mean of its eight-cell blocks (paper, section 2.1).

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::isa::Isa;
use crate::layout::GROUP_VALUES;
use crate::level::level_topology::LevelTopology;
use crate::point::eos::Eos;
use crate::real::Real;

/// Replaces the refined patches of the level of `coarse` by the means of their children, and raises what is below a
/// floor. The motion that is lost in the mean stays in the energy as heat, unless it is most of the heat there
/// ([`crate::point::dual_energy::energy_of_mean`]). Patches that a group of another rank refines stay as they are.
///
/// * `coarse`: only `slots` and `children` are read, and any others may be empty. The groups may be ghosts: a rank makes
///   the means of its groups for their parents' owners in this way.
/// * `fluid`: conserved, comoving, `[slots, 6, 16, 16, 16]`; children are read, `coarse` groups written.
///
/// # Panics
/// If the pool is not whole groups.
pub fn restrict<T: Real>(device: &Device, coarse: &LevelTopology, fluid: &mut Buffer<T>, eos: &Eos<T>) {
    assert_eq!(fluid.len() % GROUP_VALUES, 0, "a fluid pool holds whole groups");
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::restrict(Isa::best(), coarse, fluid.host_mut(), eos)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::restrict(device, coarse, fluid, eos),
    }
}

//! The fastest signal of each group: what limits the time step (paper, section 3.4).

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::deferred::Deferred;
use crate::layout::GROUP_VALUES;
use crate::level::level_topology::LevelTopology;
use crate::point::eos::Eos;
use crate::real::Real;

/// A group's fastest signal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct SignalSpeed {
    /// max over cells and axes of |v| + c_s, code velocity; +∞ if a cell's is not finite.
    pub speed: f64,
    /// The first cell that has it: offset in the group ([`crate::layout::cell`]).
    pub cell: u32,
}

/// max(|v_x|, |v_y|, |v_z|) + c_s over all cells of each group of a level, leaf or not (paper, section 3.4). Δt̃ of a
/// sweep times this over h is the Courant number; the scheme damps sound waves up to 0.8 and amplifies them from 0.9
/// on, although the paper's condition allows 1.
///
/// * `fluid`: conserved, comoving, `[slot, 6, 16, 16, 16]`
///
/// One per group, in order.
///
/// # Panics
/// If the pool is not whole groups.
pub fn signal_speed<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    fluid: &Buffer<T>,
    eos: &Eos<T>,
) -> Deferred<SignalSpeed> {
    assert_eq!(fluid.len() % GROUP_VALUES, 0, "the pool is not a whole number of groups");
    match device {
        Device::Cpu(cpu) => Deferred::ready(
            cpu.install(|| cpu::signal_speed(crate::device::isa::Isa::best(), tables, fluid.host(), eos)),
        ),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::signal_speed(device, tables, fluid, eos),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Mesh, Noise, motley_gas, with_gpu};

    fn devices_agree<T: Real>(gpu: &Device) {
        let cpu = Device::cpu(2).unwrap();
        let mut noise = Noise::new(8);
        let mesh = Mesh::random(&mut noise, 2);
        for broken in [false, true] {
            let fluid: Vec<T> = motley_gas(&mesh, &mut noise, broken);
            for level in 0..mesh.levels.len() {
                let tables = mesh.tables(level);
                let [expected, found] = [&cpu, gpu].map(|device| {
                    let pool = Buffer::from_host(device, fluid.clone()).unwrap();
                    signal_speed(device, &tables, &pool, &Eos::new(5.0 / 3.0)).wait()
                });
                assert_eq!(found, expected, "level {level}, broken cells: {broken}");
            }
        }
    }

    #[test]
    fn a_gpu_finds_the_same_cells() {
        with_gpu(|gpu| {
            devices_agree::<f32>(gpu);
            devices_agree::<f64>(gpu);
        });
    }
}

//! A 64-bit hash of each group's bits: cheap evidence, step by step, that two runs are the same.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

/// Hashes the values of each group of a level in a pool: Σ bits(i)·(2i+1)·0x9E3779B97F4A7C15 modulo 2⁶⁴ over its values i in
/// layout order. One changed value always changes the sum, because every factor is odd. It guards against accidents,
/// not against intent. The host combines the groups' hashes in key order.
///
/// * `values`: of a group
/// * `pool`: `[slot, values]`
/// * `hashes`: one per group, overwritten
///
/// # Panics
/// If shapes disagree.
pub fn state_hash<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    values: usize,
    pool: &Buffer<T>,
    hashes: &mut [u64],
) {
    assert_eq!(pool.len() % values, 0, "the pool is not a whole number of groups");
    assert_eq!(hashes.len(), tables.len(), "hashes for another number of groups");
    match device {
        Device::Cpu(cpu) => {
            cpu.install(|| cpu::state_hash(crate::device::isa::Isa::best(), tables, values, pool.host(), hashes))
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => hashes.copy_from_slice(&cuda::state_hash(device, tables, values, pool)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::GROUP_VALUES;
    use crate::testing::{Mesh, Noise, motley_gas, with_gpu};

    fn devices_agree<T: Real>(gpu: &Device) {
        let cpu = Device::cpu(2).unwrap();
        let mut noise = Noise::new(12);
        let mesh = Mesh::random(&mut noise, 2);
        let fluid: Vec<T> = motley_gas(&mesh, &mut noise, true);
        for level in 0..mesh.levels.len() {
            let tables = mesh.tables(level);
            let [expected, found] = [&cpu, gpu].map(|device| {
                let pool = Buffer::from_host(device, fluid.clone()).unwrap();
                let mut hashes = vec![0; tables.len()];
                state_hash(device, &tables, GROUP_VALUES, &pool, &mut hashes);
                hashes
            });
            assert_eq!(found, expected, "level {level}");
        }
    }

    #[test]
    fn a_gpu_gives_the_same_hashes() {
        with_gpu(|gpu| {
            devices_agree::<f32>(gpu);
            devices_agree::<f64>(gpu);
        });
    }
}

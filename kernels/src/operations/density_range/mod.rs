//! The least and the largest density over the leaf cells of each group.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::deferred::Deferred;
use crate::layout::GROUP_CELLS;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

/// The least and the largest density over the leaf cells of each group of a level; +∞ and −∞ in a group without leaves.
///
/// * `density`: `[slots, 16, 16, 16]`
///
/// # Panics
/// If shapes disagree.
pub fn density_range<T: Real>(device: &Device, tables: &LevelTopology, density: &Buffer<T>) -> Deferred<[f64; 2]> {
    assert_eq!(density.len() % GROUP_CELLS, 0, "the pool is not a whole number of groups");
    match device {
        Device::Cpu(cpu) => Deferred::ready(cpu.install(|| cpu::density_range(tables, density.host()))),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::density_range(device, tables, density),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{OCTANTS, cell_coordinate, octant_origin};
    use crate::testing::{Mesh, Noise, with_gpu};

    fn case<T: Real>() -> (Mesh, Vec<T>) {
        let mut noise = Noise::new(13);
        let mesh = Mesh::random(&mut noise, 3);
        let density = (0..mesh.group_count() * GROUP_CELLS).map(|_| T::from_f64(noise.next())).collect();
        (mesh, density)
    }

    fn ranges<T: Real>(device: &Device, mesh: &Mesh, level: usize, density: &[T]) -> Vec<[f64; 2]> {
        let pool = Buffer::from_host(device, density.to_vec()).unwrap();
        density_range(device, &mesh.tables(level), &pool).wait()
    }

    #[test]
    fn leaf_cells_alone_count() {
        let (mesh, density) = case::<f64>();
        let device = Device::cpu(2).unwrap();
        for level in 0..mesh.levels.len() {
            let tables = mesh.tables(level);
            for (g, found) in ranges(&device, &mesh, level, &density).into_iter().enumerate() {
                let group = &density[tables.slots[g] as usize * GROUP_CELLS..][..GROUP_CELLS];
                let is_leaf = |c: usize| {
                    let patch = cell_coordinate(c).map(|x| x / 8 * 8);
                    let octant = (0..OCTANTS).find(|&o| octant_origin(o) == patch).unwrap();
                    tables.leaves[g] >> octant & 1 == 1
                };
                let leaves = (0..GROUP_CELLS).filter(|&c| is_leaf(c)).map(|c| group[c]);
                let start = [f64::INFINITY, f64::NEG_INFINITY];
                let expected = leaves.fold(start, |[least, most], rho| [least.min(rho), most.max(rho)]);
                assert_eq!(found, expected, "level {level}, group {g}");
            }
        }
    }

    fn devices_agree<T: Real>(gpu: &Device) {
        let (mesh, density) = case::<T>();
        let cpu = Device::cpu(2).unwrap();
        for level in 0..mesh.levels.len() {
            let [expected, found] = [&cpu, gpu].map(|device| ranges(device, &mesh, level, &density));
            assert_eq!(found, expected, "level {level}");
        }
    }

    #[test]
    fn a_gpu_finds_the_same() {
        with_gpu(|gpu| {
            devices_agree::<f32>(gpu);
            devices_agree::<f64>(gpu);
        });
    }
}

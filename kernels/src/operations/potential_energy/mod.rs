//! The potential energy of matter: what the Layzer–Irvine equation needs besides the kinetic one.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::deferred::Deferred;
use crate::layout::GROUP_CELLS;
use crate::level::level_topology::LevelTopology;
use crate::operations::poisson_source::DensitySource;
use crate::real::Real;

/// Σ 4πG (ρ − ⟨ρ⟩) φ over the leaf cells of each group of a level, in double precision and in an order that depends on the
/// layout alone: times h³/(8πG), their potential energy.
///
/// * `potential`: `[slots, 16, 16, 16]`
///
/// # Panics
/// If shapes disagree.
pub fn potential_energy<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    density: DensitySource<T>,
    potential: &Buffer<T>,
) -> Deferred<f64> {
    assert!(density.slots() >= potential.len() / GROUP_CELLS, "a potential without density");
    match device {
        Device::Cpu(cpu) => Deferred::ready(cpu.install(|| cpu::potential_energy(tables, density, potential.host()))),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::potential_energy(device, tables, density, potential),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{GROUP_VALUES, OCTANTS, octant_origin};
    use crate::testing::{Mesh, Noise, with_gpu};

    fn sums<T: Real>(device: &Device, mesh: &Mesh, level: usize, fluid: &[T], potential: &[T]) -> Vec<f64> {
        let [fluid, potential] = [fluid, potential].map(|values| Buffer::from_host(device, values.to_vec()).unwrap());
        let density = DensitySource::of_fluid(&fluid, 3.0, 0.5);
        potential_energy(device, &mesh.tables(level), density, &potential).wait()
    }

    fn case<T: Real>() -> (Mesh, Vec<T>, Vec<T>) {
        let mut noise = Noise::new(12);
        let mesh = Mesh::random(&mut noise, 3);
        let groups = mesh.group_count();
        let mut random = |count: usize| (0..count).map(|_| T::from_f64(noise.next())).collect();
        let fluid = random(groups * GROUP_VALUES);
        let potential = random(groups * GROUP_CELLS);
        (mesh, fluid, potential)
    }

    #[test]
    fn sums_leaf_cells_only() {
        let (mesh, fluid, potential) = case::<f64>();
        let device = Device::cpu(2).unwrap();
        for level in 0..mesh.levels.len() {
            let tables = mesh.tables(level);
            for (g, found) in sums(&device, &mesh, level, &fluid, &potential).into_iter().enumerate() {
                let slot = tables.slots[g] as usize;
                let leaf = |c: &usize| {
                    let at = crate::layout::cell_coordinate(*c);
                    let origin = |o: usize| octant_origin(o).map(|x| x / 8);
                    let octant = (0..OCTANTS).find(|&o| origin(o) == at.map(|x| x / 8)).unwrap();
                    tables.leaves[g] >> octant & 1 == 1
                };
                let cells = (0..GROUP_CELLS).filter(leaf);
                let expected: f64 = cells
                    .map(|c| 3.0 * (fluid[slot * GROUP_VALUES + c] - 0.5) * potential[slot * GROUP_CELLS + c])
                    .sum();
                assert!((found - expected).abs() < 1e-10, "level {level}, group {g}: {found} {expected}");
            }
        }
    }

    fn devices_agree<T: Real>(gpu: &Device) {
        let (mesh, fluid, potential) = case::<T>();
        let cpu = Device::cpu(2).unwrap();
        for level in 0..mesh.levels.len() {
            let [expected, found] = [&cpu, gpu].map(|device| sums(device, &mesh, level, &fluid, &potential));
            for (found, expected) in found.iter().zip(expected) {
                // another order of 4096 additions of numbers below 5
                assert!((found - expected).abs() < 1e-10, "level {level}: {found} {expected}");
            }
        }
    }

    #[test]
    fn a_gpu_sums_the_same() {
        with_gpu(|gpu| {
            devices_agree::<f32>(gpu);
            devices_agree::<f64>(gpu);
        });
    }
}

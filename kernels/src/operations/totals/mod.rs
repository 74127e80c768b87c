//! Sums over the leaf cells of each group: the conserved quantities of the records.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::layout::GROUP_VALUES;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

/// Sums of densities over a group's leaf cells: times the cell volume h³, the contents of these cells.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct GroupTotals {
    /// Leaf cells: the volume in units of h³.
    pub cells: u32,
    /// Σρ.
    pub mass: f64,
    /// Σρv, along each axis.
    pub momentum: [f64; 3],
    /// Σ½ρv².
    pub kinetic: f64,
    /// Σ(E − ½ρv²).
    pub thermal: f64,
    /// ΣE.
    pub energy: f64,
    /// The smallest density; +∞ in a group without leaves.
    pub density_min: f64,
    /// The largest density; −∞ in a group without leaves.
    pub density_max: f64,
}

impl Default for GroupTotals {
    fn default() -> Self {
        Self {
            cells: 0,
            mass: 0.0,
            momentum: [0.0; 3],
            kinetic: 0.0,
            thermal: 0.0,
            energy: 0.0,
            density_min: f64::INFINITY,
            density_max: f64::NEG_INFINITY,
        }
    }
}

/// The totals of each group of a level, in double precision and in an order that depends on the layout alone.
///
/// * `fluid`: conserved, comoving, `[slot, 6, 16, 16, 16]`
/// * `totals`: one per group, overwritten
///
/// # Panics
/// If shapes disagree.
pub fn totals<T: Real>(device: &Device, tables: &LevelTopology, fluid: &Buffer<T>, totals: &mut [GroupTotals]) {
    assert_eq!(fluid.len() % GROUP_VALUES, 0, "the pool is not a whole number of groups");
    assert_eq!(totals.len(), tables.len(), "totals for another number of groups");
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::totals(crate::device::isa::Isa::best(), tables, fluid.host(), totals)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => totals.copy_from_slice(&cuda::totals(device, tables, fluid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Mesh, Noise, conserved, with_gpu};

    fn devices_agree<T: Real>(gpu: &Device) {
        let cpu = Device::cpu(2).unwrap();
        let mut noise = Noise::new(10);
        let mesh = Mesh::random(&mut noise, 3);
        let fluid: Vec<T> = mesh.fill(|_| {
            let velocity = [0, 1, 2].map(|_| 30.0 * noise.next());
            conserved(10f64.powf(2.0 * noise.next()), velocity, 1.0, 5.0 / 3.0)
        });
        for level in 0..mesh.levels.len() {
            let tables = mesh.tables(level);
            let [expected, found] = [&cpu, gpu].map(|device| {
                let pool = Buffer::from_host(device, fluid.clone()).unwrap();
                let mut all = vec![GroupTotals::default(); tables.len()];
                totals(device, &tables, &pool, &mut all);
                all
            });
            for (g, (found, expected)) in found.iter().zip(&expected).enumerate() {
                // another order of a few thousand additions; Σ|ρv| ≤ √(Σρ Σρv²)
                let momentum = (2.0 * expected.mass * expected.kinetic).sqrt();
                let sums = |t: &GroupTotals| [t.mass, t.kinetic, t.energy, t.thermal].into_iter().chain(t.momentum);
                let scales = [expected.mass, expected.kinetic, expected.energy, expected.energy];
                let scales = scales.into_iter().chain([momentum; 3]);
                let mut pairs = sums(found).zip(sums(expected)).zip(scales);
                let same = pairs.all(|((found, expected), scale)| (found - expected).abs() <= 1e-12 * scale)
                    && (found.cells, found.density_min, found.density_max)
                        == (expected.cells, expected.density_min, expected.density_max);
                assert!(same, "level {level}, group {g}: GPU {found:?}, CPU {expected:?}");
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

//! Sums over the leaf cells of each group: the conserved quantities of the records.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use crate::buffer::Buffer;
use crate::device::Device;
use crate::layout::GROUP_VALUES;
use crate::real::Real;
use crate::tables::LevelTables;

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
pub fn totals<T: Real>(device: &Device, tables: &LevelTables, fluid: &Buffer<T>, totals: &mut [GroupTotals]) {
    assert_eq!(fluid.len() % GROUP_VALUES, 0, "the pool is not a whole number of groups");
    assert_eq!(totals.len(), tables.len(), "totals for another number of groups");
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::totals(crate::isa::Isa::best(), tables, fluid.host(), totals)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => totals.copy_from_slice(&cuda::totals(device, tables, fluid)),
    }
}

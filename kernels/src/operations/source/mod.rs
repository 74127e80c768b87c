//! A source of internal energy acts on the gas of a level, cell by cell ([`mod@crate::point::source`]).

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::deferred::Deferred;
use crate::device::isa::Isa;
use crate::layout::GROUP_VALUES;
use crate::level::level_topology::LevelTopology;
use crate::level::report::GroupReport;
use crate::point::eos::Eos;
pub use crate::point::relaxation::Relaxation;
pub use crate::point::source::PointSource;
use crate::real::Real;

/// The effect of a source on a group's leaf cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct SourceReport {
    /// Floors and cells that are not valid.
    pub report: GroupReport,
    /// Energy per volume that the source brought, summed over the cells.
    pub energy: f64,
    /// The largest relative change of a cell's internal energy, of the larger of its values before and after.
    pub relative_change: f64,
    /// The cell with that change, the first of equal ones: offset in the group ([`crate::layout::cell`]).
    pub cell: u32,
}

/// Applies a source to every group of a level in place. What falls below a floor is raised to it.
///
/// - `fluid`: conserved, comoving, `[slots, 6, 16, 16, 16]`.
///
/// A report a group, in key order.
///
/// # Panics
/// If the pool is too short for the level.
pub fn apply_source<T: Real, S: PointSource<T>>(
    device: &Device,
    tables: &LevelTopology,
    fluid: &mut Buffer<T>,
    source: &S,
    eos: &Eos<T>,
) -> Deferred<SourceReport> {
    let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(fluid.len() >= slots * GROUP_VALUES, "the fluid has no slot {slots}");
    match device {
        Device::Cpu(device) => {
            Deferred::ready(device.install(|| cpu::apply_source(Isa::best(), tables, fluid.host_mut(), source, eos)))
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::apply_source(device, tables, fluid, source, eos),
    }
}

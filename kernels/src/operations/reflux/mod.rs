//! Flux correction: a coarse leaf cell beside a finer region receives the finer region's fluxes (paper, section 2.1;
//! Berger & Colella 1989).

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
pub(crate) mod faces;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::deferred::Deferred;
use crate::device::device_table::DeviceTable;
use crate::device::isa::Isa;
use crate::layout::{FLUX_PLANE_VALUES, GROUP_VALUES};
use crate::level::report::GroupReport;
use crate::point::eos::Eos;
use crate::real::Real;

/// One face (8×8 coarse cells) between a coarse leaf patch and a refined one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct CoarseFineFace {
    /// Axis of the face's normal.
    pub axis: u8,
    /// Whether the finer region lies on the high side of the coarse patch.
    pub high: bool,
    /// Octant of the coarse patch in its group.
    pub octant: u8,
    /// Flux plane of the coarse group, `[6, 16, 16]`.
    pub coarse_plane: u32,
    /// Flux plane of the fine group, `[6, 16, 16]`.
    pub fine_plane: u32,
}

/// A group that has such faces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct RefluxGroup {
    /// Its index in the level.
    pub index: u32,
    /// Its slot.
    pub slot: u32,
    /// The end of its faces; they begin where those of the group before end.
    pub end: u32,
}

/// The faces of one level's groups towards the next finer level.
#[derive(Clone, Debug, Default)]
pub struct RefluxTables {
    /// Faces, those of a group together, in a fixed order; a patch's face occurs once.
    pub faces: DeviceTable<CoarseFineFace>,
    /// The groups that have faces, each once.
    pub groups: DeviceTable<RefluxGroup>,
}

impl RefluxTables {
    /// Bytes that they take on a device.
    pub fn bytes(&self) -> usize {
        self.faces.bytes() + self.groups.bytes()
    }
}

/// Replaces the coarse fluxes through all faces by the means of the fine ones, then raises what fell below a floor.
/// Energy and entropy scalar are both corrected; the next sweep makes them agree.
///
/// * `fluid`: conserved, comoving, `[slots, 6, 16, 16, 16]`, after one sweep of both levels over Δt, or after several.
/// * `fluxes`: raw fluxes of those sweeps, summed over them, `[planes, 6, 16, 16]`.
/// * `dt_over_dx`: Δt/h of a sweep of the coarse level.
/// * `fine_share`: Δt of a sweep of the fine level in that of a coarse one: 1, or 1/2 where it takes two for one.
///
/// A report, of corrected cells only, for each of `tables.groups`, with the group's index in the level.
///
/// # Panics
/// If a pool is not whole groups or planes.
pub fn reflux<T: Real>(
    device: &Device,
    tables: &RefluxTables,
    fluid: &mut Buffer<T>,
    fluxes: &Buffer<T>,
    dt_over_dx: T,
    fine_share: T,
    eos: &Eos<T>,
) -> Deferred<(u32, GroupReport)> {
    assert_eq!(fluid.len() % GROUP_VALUES, 0, "a fluid pool holds whole groups");
    assert_eq!(fluxes.len() % FLUX_PLANE_VALUES, 0, "a flux pool holds whole planes");
    match device {
        Device::Cpu(cpu) => Deferred::ready(cpu.install(|| {
            let (fluid, fluxes) = (fluid.host_mut(), fluxes.host());
            cpu::reflux(Isa::best(), tables, fluid, fluxes, dt_over_dx, fine_share, eos)
        })),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::reflux(device, tables, fluid, fluxes, dt_over_dx, fine_share, eos),
    }
}

//! Passive scalars: densities ρX beside the gas, which move with its mass ([`crate::point::passive_scalar`]).
//!
//! They have pools of their own, `[slot, scalar, 16, 16, 16]` and fluxes `[plane, scalar, 16, 16]`, for any number of
//! scalars, so arrays and kernels of the gas do not know of them. A sweep advances them after the gas, group by group, by
//! the mass fluxes of its three passes ([`ScalarSweep`]); here are their other operations.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | restriction, prolongation, flux correction: shapes, dispatch |
//! | `cells.rs` | a group's scalars with its ghost cells |
//! | `sweep.rs` | the three passes of one group on the processor |
//! | `cpu.rs`; `cuda.rs`, `scalars.cu` | the other operations |
//! | `cells.cuh`, `sweep.cuh` | the twins of `cells.rs` and `sweep.rs` |

pub(crate) mod cells;
mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub(crate) mod sweep;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::layout::{FACE_CELLS, FLUX_PLANE_VALUES, GROUP_CELLS, GROUP_VALUES};
use crate::level::level_topology::LevelTopology;
use crate::operations::reflux::RefluxTables;
use crate::real::Real;

/// The scalars that a hydro sweep carries along.
#[derive(Debug)]
pub struct ScalarSweep<'a, T> {
    /// How many.
    pub count: usize,
    /// The state before, all levels, `[slot, count, 16, 16, 16]`.
    pub before: &'a Buffer<T>,
    /// The earlier state of the coarser level, `[place, count, 16, 16, 16]`, where that of the fluid is given.
    pub earlier: &'a Buffer<T>,
    /// As `before`; the slots of the groups are overwritten.
    pub after: &'a mut Buffer<T>,
    /// Fluxes of the directional passes, `[plane, count, 16, 16]`; the planes of the groups are overwritten.
    pub fluxes: &'a mut Buffer<T>,
}

impl<T: Real> ScalarSweep<'_, T> {
    /// Checks shapes against those of the fluid.
    ///
    /// # Panics
    /// If they disagree.
    pub(crate) fn check(&self, fluid: &Buffer<T>, fluxes: &Buffer<T>) {
        let slots = fluid.len() / GROUP_VALUES;
        assert!(self.count > 0, "a sweep without scalars");
        assert_eq!(self.before.len(), slots * self.count * GROUP_CELLS, "scalars of another number of slots");
        assert_eq!(self.after.len(), self.before.len(), "scalars before and after differ in length");
        let planes = fluxes.len() / FLUX_PLANE_VALUES;
        assert_eq!(self.fluxes.len(), planes * self.count * FACE_CELLS, "scalar fluxes of another number of planes");
    }
}

/// Replaces the scalars of refined patches by the means of their children, as [`mod@crate::restrict`] does for the gas.
///
/// * `count`: how many scalars
/// * `scalars`: `[slots, count, 16, 16, 16]`
///
/// # Panics
/// If the pool is not whole groups.
pub fn restrict_scalars<T: Real>(device: &Device, coarse: &LevelTopology, count: usize, scalars: &mut Buffer<T>) {
    assert_eq!(scalars.len() % (count * GROUP_CELLS), 0, "a pool of scalars holds whole groups");
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::restrict(coarse, count, scalars.host_mut())),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::restrict(device, coarse, count, scalars),
    }
}

/// Fills the scalars of new groups of a refined level from the patches they refine; the mean of eight new cells is the
/// coarse cell.
///
/// * `new`: indices of the new groups in `fine`
/// * `fluid`: `[slots, 6, 16, 16, 16]`, of which the coarser level is read
/// * `scalars`: `[slots, count, 16, 16, 16]`
///
/// # Panics
/// If the pools disagree or an index is out of range.
pub fn prolong_scalars<T: Real>(
    device: &Device,
    fine: &LevelTopology,
    new: &[usize],
    fluid: &Buffer<T>,
    count: usize,
    scalars: &mut Buffer<T>,
) {
    assert_eq!(fluid.len() / GROUP_VALUES * count * GROUP_CELLS, scalars.len(), "scalars of another number of slots");
    assert!(new.iter().all(|&g| g < fine.len()), "a new group is not in its level's table");
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::prolong(fine, new, fluid.host(), count, scalars.host_mut())),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::prolong(device, fine, new, fluid, count, scalars),
    }
}

/// Replaces the coarse fluxes of scalars through all faces by the means of the fine ones, as [`mod@crate::reflux`] does
/// for the gas, with the same arguments.
///
/// # Panics
/// If a pool is not whole groups or planes.
pub fn reflux_scalars<T: Real>(
    device: &Device,
    tables: &RefluxTables,
    count: usize,
    scalars: &mut Buffer<T>,
    fluxes: &Buffer<T>,
    dt_over_dx: T,
    fine_share: T,
) {
    assert_eq!(scalars.len() % (count * GROUP_CELLS), 0, "a pool of scalars holds whole groups");
    assert_eq!(fluxes.len() % (count * FACE_CELLS), 0, "a flux pool holds whole planes");
    match device {
        Device::Cpu(cpu) => cpu.install(|| {
            cpu::reflux(tables, count, scalars.host_mut(), fluxes.host(), dt_over_dx, fine_share);
        }),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::reflux(device, tables, count, scalars, fluxes, dt_over_dx, fine_share),
    }
}

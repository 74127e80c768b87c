//! Potential values just outside a group: the boundary values of its Poisson equation, and what its outermost cells
//! need for their acceleration.
//!
//! Face values are `[6, b, a]`: a and b are the other two axes in the order x, y, z, a fastest.

mod coarse;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(all(test, feature = "cuda"))]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::device_table::DeviceTable;
use crate::device::isa::Isa;
use crate::layout::{FACE_CELLS, FACES, GROUP_CELLS};
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

pub(crate) use cpu::{face_direction, gather};
#[cfg(feature = "cuda")]
pub(crate) use cuda::{GhostRequest, THREADS};

/// Ghost values of a group: one layer on each face.
pub const GHOST_CELLS: usize = FACES * FACE_CELLS;

/// Where ghost values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GhostOrigin {
    /// All six faces interpolated from the coarser level.
    Coarse,
    /// Cells of the neighbours at the same level where there are any, else interpolated from the coarser level.
    Sibling,
}

/// The potential of the coarser level at a time between two at which it was solved, both kept apart: each value is from
/// + `weight` (to − from).
#[derive(Clone, Copy, Debug)]
pub struct TimedPotential<'a, T> {
    /// At the earlier time, `[places, 16, 16, 16]`.
    pub from: &'a Buffer<T>,
    /// At the later time, the same shape.
    pub to: &'a Buffer<T>,
    /// Place in both of the group in each slot of the pool, [`crate::level::level_topology::NONE`] where there is none.
    pub places: &'a DeviceTable<u32>,
    /// 0 at the earlier time, 1 at the later.
    pub weight: T,
}

/// Fills `ghosts`, `[groups, 6, 16, 16]` in key order, of a level from `potential`, `[slots, 16, 16, 16]` of all levels.
///
/// * `coarse`: given where the coarser level's values in `potential` are of another time.
///
/// Coarse values are interpolated by the unlimited parabola through three cells along each axis: a pure function of
/// coarse cells and position. Beyond a face of the domain that is not periodic, the potential goes on along the
/// parabola through the three outermost cells: of the root group itself, of the coarser level around a refined group.
/// It is then of third order, the acceleration of the outermost cells of second, as elsewhere.
///
/// # Panics
/// If an array is too short, or if a coarse group that the interpolation needs is missing (the octree is not properly
/// nested).
pub fn potential_ghosts<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    origin: GhostOrigin,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    ghosts: &mut Buffer<T>,
) {
    assert!(ghosts.len() >= tables.len() * GHOST_CELLS, "ghosts of {} groups do not fit", tables.len());
    assert!(potential.len().is_multiple_of(GROUP_CELLS));
    match device {
        Device::Cpu(device) => {
            let (potential, ghosts) = (potential.host(), ghosts.host_mut());
            device.install(|| cpu::potential_ghosts(Isa::best(), tables, origin, potential, coarse, ghosts));
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::potential_ghosts(device, tables, origin, potential, coarse, ghosts),
    }
}

/// Distance in memory between cells one apart along x, y, z, in an array with `n` cells a side.
pub(crate) const fn strides(n: usize) -> [usize; 3] {
    [1, n, n * n]
}

/// The two axes of a face across `axis`, in the order x, y, z.
pub(crate) const fn face_axes(axis: usize) -> [usize; 2] {
    match axis {
        0 => [1, 2],
        1 => [0, 2],
        _ => [0, 1],
    }
}

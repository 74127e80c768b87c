//! Potential values just outside a group: the boundary values of its Poisson equation, and what its outermost cells
//! need for their acceleration.
//!
//! Face values are `[6, b, a]`: a and b are the other two axes in the
//! order x, y, z, a fastest.

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
use crate::layout::{FACE_CELLS, FACES, GROUP_CELLS, PATCH};
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

pub(crate) use cpu::{face_direction, gather};
#[cfg(feature = "cuda")]
pub(crate) use cuda::{GhostRequest, THREADS};

/// Ghost values of a group: one layer on each face.
pub const GHOST_CELLS: usize = FACES * FACE_CELLS;

/// Where ghost values come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GhostOrigin {
    /// All six faces interpolated from the coarser level.
    Coarse,
    /// Cells of the neighbours at the same level where there are any, else interpolated from the coarser level.
    Sibling,
    /// Where there are neighbours at the same level, over-relaxation by this factor ω of what `ghosts` holds:
    /// ghost += ω (cell − ghost). Elsewhere it keeps what it holds.
    Relaxed(f64),
}

/// The error of a level's potential, which relaxed ghosts take: c at a ghost's place. The neighbour's cell has it where
/// the neighbour was solved with it; else it is added there too: ghost += c + ω (cell [+ c] − ghost − c).
#[derive(Clone, Copy, Debug)]
pub struct GhostCorrection<'a, T> {
    /// On the finest grid of [`mod@crate::operations::coarse_correction`], `[slots, 8, 8, 8]`.
    pub error: &'a Buffer<T>,
    /// Whether the neighbours were solved with it.
    pub neighbours_have_it: bool,
}

impl<T: Real> GhostCorrection<'_, T> {
    pub(crate) fn check(&self, tables: &LevelTopology) {
        let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
        assert!(self.error.len() >= slots * PATCH.pow(3), "no error of slot {slots}");
    }
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

/// Fills `ghosts`, `[groups, 6, 16, 16]` in key order, of some groups from `potential`, `[slots, 16, 16, 16]` of all
/// levels.
///
/// * `groups`: which, as rising places in the level's list; all if there is none.
/// * `coarse`: given where the coarser level's values in `potential` are of another time.
/// * `correction`: of relaxed ghosts; not read for other origins.
///
/// Coarse values are interpolated by the unlimited parabola through three cells along each axis: a pure function of
/// coarse cells and position. Beyond a face of the domain that is not periodic, the potential goes on along the
/// parabola through the three outermost cells: of the root group itself, of the coarser level around a refined group.
/// It is then of third order, the acceleration of the outermost cells of second, as elsewhere.
///
/// # Panics
/// If an array is too short, `groups` is no list of the level's groups, or if a coarse group that the interpolation needs is missing (the octree is not properly
/// nested).
pub fn potential_ghosts<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    groups: Option<&DeviceTable<u32>>,
    origin: GhostOrigin,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    correction: Option<&GhostCorrection<T>>,
    ghosts: &mut Buffer<T>,
) {
    assert!(ghosts.len() >= tables.len() * GHOST_CELLS, "ghosts of {} groups do not fit", tables.len());
    assert!(potential.len().is_multiple_of(GROUP_CELLS));
    correction.inspect(|correction| correction.check(tables));
    tables.check_list(groups.map(|list| &list[..]));
    match device {
        Device::Cpu(device) => {
            let (potential, ghosts) = (potential.host(), ghosts.host_mut());
            device.install(|| {
                cpu::potential_ghosts(Isa::best(), tables, groups, origin, potential, coarse, correction, ghosts);
            });
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            cuda::potential_ghosts(device, tables, groups, origin, potential, coarse, correction, ghosts);
        }
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

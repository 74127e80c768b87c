//! Solutions of groups at their faces alone: relaxation between groups reads nothing else of them.
//!
//! A group's solution is the sum of two: that of its matter with zero boundary values, which is found at the faces once
//! ([`start_faces`]), and a linear function of its boundary values, which takes transforms of six faces in place of 16³ cells
//! ([`relax_faces`]). [`fn@crate::group_poisson`] gives all cells in the end.
//!
//! Until then a slot of the potential begins with the cells at the group's faces, `[6, 16, 16]`, in the order of ghosts.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(all(test, feature = "cuda"))]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::device_table::DeviceTable;
use crate::device::isa::Isa;
use crate::layout::{GROUP_CELLS, PATCH};
use crate::level::level_topology::LevelTopology;
use crate::operations::group_poisson::sine::SineTables;
use crate::operations::poisson_source::PoissonSource;
use crate::operations::potential_ghosts::{GHOST_CELLS, GhostOrigin, TimedPotential, potential_ghosts};
use crate::real::Real;

/// How ghosts at faces with a neighbour change, c being the error at a ghost's place: ghost += c + ω (cell − ghost − c),
/// where the neighbour's cell has c if the neighbour was solved with it.
#[derive(Clone, Copy, Debug)]
pub struct Relaxation<'a, T> {
    /// ω.
    pub factor: f64,
    /// On the finest grid of [`mod@crate::operations::coarse_correction`], `[slots, 8, 8, 8]`.
    pub error: &'a Buffer<T>,
    /// The neighbours' solutions contain the error.
    pub neighbours_corrected: bool,
}

/// Gathers the ghosts of all groups of a level, `[groups, 6, 16, 16]` in key order, and solves ∇²φ = source at the groups'
/// faces.
///
/// - `own`: contribution of the source at the faces, `[groups, 6, 16, 16]`: sine spectra along both axes of a face, along the
///   third one the sum of even-numbered modes and that of odd ones.
/// - `h`: cell width.
/// - `potential`: `[slots, 16, 16, 16]`; the groups' slots then begin with their faces. Ghosts come from it, as
///   [`fn@potential_ghosts`] says.
///
/// # Panics
/// If an array is too short for the level's slots.
pub fn start_faces<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    origin: GhostOrigin,
    coarse: Option<&TimedPotential<T>>,
    sine: &SineTables<T>,
    source: &PoissonSource<T>,
    h: f64,
    ghosts: &mut Buffer<T>,
    own: &mut Buffer<T>,
    potential: &mut Buffer<T>,
) {
    check(tables, ghosts, own, potential);
    let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(source.slots() >= slots, "the source has no slot {slots}");
    #[cfg(feature = "cuda")]
    if let (Device::Cuda(device), GhostOrigin::Coarse) = (device, origin) {
        // in one launch, as no group reads what another one writes
        return cuda::start_faces(device, tables, Some(origin), coarse, sine, source, h, ghosts, own, potential);
    }
    potential_ghosts(device, tables, origin, potential, coarse, ghosts);
    match device {
        Device::Cpu(device) => {
            let (ghosts, own, potential) = (ghosts.host(), own.host_mut(), potential.host_mut());
            device.install(|| cpu::start_faces(Isa::best(), tables, sine, source, h, ghosts, own, potential));
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            cuda::start_faces(device, tables, None, coarse, sine, source, h, ghosts, own, potential);
        }
    }
}

/// Relaxes the ghosts of some groups with the faces of their neighbours, and solves for the groups' own faces.
///
/// - `groups`: which, as rising places in the level's list; no two of them may share a face, as those of one
///   [`crate::Parity`] do not.
/// - `own`: from [`start_faces`].
///
/// # Panics
/// If an array is too short for the level's slots, or `groups` is no list of its groups.
pub fn relax_faces<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    groups: &DeviceTable<u32>,
    relaxation: &Relaxation<T>,
    sine: &SineTables<T>,
    own: &Buffer<T>,
    ghosts: &mut Buffer<T>,
    potential: &mut Buffer<T>,
) {
    check(tables, ghosts, own, potential);
    tables.check_list(Some(&groups[..]));
    let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(relaxation.error.len() >= slots * PATCH.pow(3), "no error of slot {slots}");
    match device {
        Device::Cpu(device) => {
            let (own, ghosts, potential) = (own.host(), ghosts.host_mut(), potential.host_mut());
            device.install(|| {
                cpu::relax_faces(Isa::best(), tables, groups, relaxation, sine, own, ghosts, potential);
            });
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            cuda::relax_faces(device, tables, groups, relaxation, sine, own, ghosts, potential);
        }
    }
}

fn check<T: Real>(tables: &LevelTopology, ghosts: &Buffer<T>, own: &Buffer<T>, potential: &Buffer<T>) {
    let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(potential.len() >= slots * GROUP_CELLS, "the potential has no slot {slots}");
    let fits = |array: &Buffer<T>| array.len() >= tables.len() * GHOST_CELLS;
    assert!(fits(ghosts) && fits(own), "faces of {} groups are missing", tables.len());
}

//! ∇²φ = source in every group of a refined level, with given boundary values (paper, section 2.3).
//! The solution is exact, by sine transforms along the three axes ([`sine`]).

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod problem;
pub mod sine;
#[cfg(all(test, feature = "cuda"))]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::device_table::DeviceTable;
use crate::device::isa::Isa;
use crate::layout::{FACES, GROUP_CELLS, PATCH};
use crate::level::level_topology::LevelTopology;
use crate::operations::poisson_source::PoissonSource;
#[cfg(feature = "cuda")]
use crate::operations::potential_ghosts::GhostRequest;
use crate::operations::potential_ghosts::{
    GHOST_CELLS, GhostCorrection, GhostOrigin, TimedPotential, potential_ghosts,
};
use crate::real::Real;
use sine::SineTables;

/// Normal derivatives on the faces of a group, averaged to coarse faces: `[6, 8, 8]`, laid out as its ghost values are.
pub const FACE_GRADIENTS: usize = FACES * PATCH * PATCH;

/// Solves the discrete 7-point equation ∇²φ = source in the 16³ cells of width `h` of some groups.
///
/// - `groups`: which, as rising places in the level's list; all if there is none.
/// - `ghosts`: boundary values, `[groups, 6, 16, 16]` in key order, see [`mod@crate::operations::potential_ghosts`].
/// - `potential`: `[slots, 16, 16, 16]`; those groups' slots are overwritten.
/// - `gradients`: `[slots, 6, 8, 8]`, outward normal derivative on each face from this solution and these boundary
///   values, averaged over the four fine faces of a coarse face (paper, the fine-grid side of ξ).
///
/// # Panics
/// If an array is too short for the level's slots, or `groups` is no list of its groups.
pub fn group_poisson<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    groups: Option<&DeviceTable<u32>>,
    sine: &SineTables<T>,
    source: &PoissonSource<T>,
    ghosts: &Buffer<T>,
    h: f64,
    potential: &mut Buffer<T>,
    gradients: Option<&mut Buffer<T>>,
) {
    check(tables, groups, source, ghosts, potential, gradients.as_deref());
    match device {
        Device::Cpu(device) => {
            let gradients = gradients.map(Buffer::host_mut);
            let (ghosts, potential) = (ghosts.host(), potential.host_mut());
            device.install(|| {
                let isa = Isa::best();
                cpu::group_poisson(isa, tables, groups, sine, source, ghosts, h, potential, gradients)
            })
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            let request = GhostRequest::new(device, tables, groups, None, potential, None, None, Some(ghosts));
            let gradients = gradients.as_deref();
            cuda::group_poisson(device, tables, request, sine, source, h, potential, gradients)
        }
    }
}

/// [`fn@potential_ghosts`] and then [`group_poisson`], of the same groups: a half-step of a relaxation between groups,
/// in one launch where no group reads what another one writes: of listed groups no two may share a face, as those of one
/// [`crate::Parity`] do not.
///
/// # Panics
/// As these two.
pub fn relax_groups<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    groups: Option<&DeviceTable<u32>>,
    origin: GhostOrigin,
    coarse: Option<&TimedPotential<T>>,
    correction: Option<&GhostCorrection<T>>,
    sine: &SineTables<T>,
    source: &PoissonSource<T>,
    ghosts: &mut Buffer<T>,
    h: f64,
    potential: &mut Buffer<T>,
    gradients: Option<&mut Buffer<T>>,
) {
    #[cfg(feature = "cuda")]
    if let Device::Cuda(device) = device
        && (groups.is_some() || origin == GhostOrigin::Coarse)
    {
        check(tables, groups, source, ghosts, potential, gradients.as_deref());
        correction.inspect(|correction| correction.check(tables));
        let request =
            GhostRequest::new(device, tables, groups, Some(origin), potential, coarse, correction, Some(ghosts));
        let gradients = gradients.as_deref();
        return cuda::group_poisson(device, tables, request, sine, source, h, potential, gradients);
    }
    potential_ghosts(device, tables, groups, origin, potential, coarse, correction, ghosts);
    group_poisson(device, tables, groups, sine, source, ghosts, h, potential, gradients)
}

fn check<T: Real>(
    tables: &LevelTopology,
    groups: Option<&DeviceTable<u32>>,
    source: &PoissonSource<T>,
    ghosts: &Buffer<T>,
    potential: &Buffer<T>,
    gradients: Option<&Buffer<T>>,
) {
    tables.check_list(groups.map(|list| &list[..]));
    let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(source.slots() >= slots && potential.len() >= slots * GROUP_CELLS, "the pools have no slot {slots}");
    assert!(ghosts.len() >= tables.len() * GHOST_CELLS, "ghosts of {} groups are missing", tables.len());
    assert!(
        gradients.is_none_or(|gradients| gradients.len() >= slots * FACE_GRADIENTS),
        "no gradients of slot {slots}"
    );
}

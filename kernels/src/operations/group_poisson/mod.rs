//! ∇²φ = source in every group of a refined level, with given boundary values (paper, section 2.3).
//! The solution is exact, by sine transforms along the three axes ([`sine`]).

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
pub(super) mod problem;
pub mod sine;
#[cfg(all(test, feature = "cuda"))]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::isa::Isa;
use crate::layout::{FACES, GROUP_CELLS, PATCH};
use crate::level::level_topology::LevelTopology;
use crate::operations::poisson_source::PoissonSource;
use crate::operations::potential_ghosts::GHOST_CELLS;
use crate::real::Real;
use sine::SineTables;

/// Normal derivatives on the faces of a group, averaged to coarse faces: `[6, 8, 8]`, laid out as its ghost values are.
pub const FACE_GRADIENTS: usize = FACES * PATCH * PATCH;

/// Solves the discrete 7-point equation ∇²φ = source in the 16³ cells of width `h` of every group of a level.
///
/// - `ghosts`: boundary values, `[groups, 6, 16, 16]` in key order, see [`mod@crate::operations::potential_ghosts`].
/// - `potential`: `[slots, 16, 16, 16]`; the groups' slots are overwritten.
/// - `gradients`: `[slots, 6, 8, 8]`, outward normal derivative on each face from this solution and these boundary
///   values, averaged over the four fine faces of a coarse face (paper, the fine-grid side of ξ).
///
/// # Panics
/// If an array is too short for the level's slots.
pub fn group_poisson<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    sine: &SineTables<T>,
    source: &PoissonSource<T>,
    ghosts: &Buffer<T>,
    h: f64,
    potential: &mut Buffer<T>,
    gradients: Option<&mut Buffer<T>>,
) {
    check(tables, source, ghosts, potential, gradients.as_deref());
    match device {
        Device::Cpu(device) => {
            let gradients = gradients.map(Buffer::host_mut);
            let (ghosts, potential) = (ghosts.host(), potential.host_mut());
            device.install(|| {
                cpu::group_poisson(Isa::best(), tables, sine, source, ghosts, h, potential, gradients);
            });
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            let gradients = gradients.as_deref();
            cuda::group_poisson(device, tables, sine, source, ghosts, h, potential, gradients);
        }
    }
}

fn check<T: Real>(
    tables: &LevelTopology,
    source: &PoissonSource<T>,
    ghosts: &Buffer<T>,
    potential: &Buffer<T>,
    gradients: Option<&Buffer<T>>,
) {
    let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(source.slots() >= slots && potential.len() >= slots * GROUP_CELLS, "the pools have no slot {slots}");
    assert!(ghosts.len() >= tables.len() * GHOST_CELLS, "ghosts of {} groups are missing", tables.len());
    assert!(
        gradients.is_none_or(|gradients| gradients.len() >= slots * FACE_GRADIENTS),
        "no gradients of slot {slots}"
    );
}

//! The pseudo mass sheet: what the jump of ∂φ/∂n between two levels amounts to (paper, section 2.3).

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(all(test, feature = "cuda"))]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::layout::GROUP_CELLS;
use crate::level::level_topology::LevelTopology;
use crate::operations::group_poisson::FACE_GRADIENTS;
use crate::real::Real;

/// Computes −4πGξ of one level, the term of the mass sheets in the source of its potential (paper, eqs.
/// PseudoRho–PotCorrection).
///
/// Each cell just outside a face of a refined patch gets −(∂φ/∂n|coarse − ∂φ/∂n|fine)/h, n pointing away from the
/// patch; all six faces of every refined patch count, also where two of them touch. Cells of refined patches get the
/// mean of the finer level's right-hand side on top, so levels go from fine to coarse. Of a patch that a group of another
/// rank refines, `sheet` must hold that mean already.
///
/// A rank makes these means for others from tables of the parents of its groups, wherever they are owned, with `slots`,
/// the `children` that it owns, `leaves` without any bit, and `beyond` all [`crate::level::level_topology::NONE`]; the other tables are
/// not read then, nor are patches without such a child changed.
///
/// - `tables`: `slots`, `children`, `leaves` and `beyond` are read, and `neighbours` where `beyond` names a group.
/// - `potential`: `[slots, 16, 16, 16]`.
/// - `gradients`: `[slots, 6, 8, 8]` of the finer level, from [`crate::operations::group_poisson::group_poisson`]; there may be more
///   slots than in the other pools, for groups of other ranks.
/// - `sheet`: `[slots, 16, 16, 16]`; the level's slots are overwritten, the finer level's are read.
/// - `h`: cell width of this level.
///
/// # Panics
/// If shapes disagree or a pool is too short.
pub fn mass_sheet<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    h: f64,
    potential: &Buffer<T>,
    gradients: &Buffer<T>,
    sheet: &mut Buffer<T>,
) {
    let slots = potential.len() / GROUP_CELLS;
    assert!(gradients.len() >= slots * FACE_GRADIENTS && sheet.len() >= slots * GROUP_CELLS);
    match device {
        Device::Cpu(device) => device.install(|| {
            cpu::mass_sheet(tables, h, potential.host(), gradients.host(), sheet.host_mut());
        }),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::mass_sheet(device, tables, h, potential, gradients, sheet),
    }
}

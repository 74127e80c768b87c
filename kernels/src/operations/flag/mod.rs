//! Refinement flags with their buffer (paper, section 2.1).
//!
//! | module | what it holds |
//! |---|---|
//! | `cpu`, `cuda` | from criteria to masks, group by group |
//! | [`combination`] | criteria joined by all, any and not |
//! | `stencil` | gradient and Löhner's estimator, which read neighbours |
//! | [`region`] | static regions |
//! | [`program`] | expressions over a cell's fields, compiled |

pub mod combination;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
pub mod program;
pub mod region;
mod stencil;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::isa::Isa;
use crate::layout::{GROUP_VALUES, OCTANTS};
use crate::level::level_topology::LevelTopology;
use crate::point::eos::Eos;
#[cfg(doc)]
use crate::point::particle::WeightUnit;
use crate::real::Real;
pub use combination::{Combination, Step};
use cpu::Pools;
use program::Op;
pub use program::Program;
pub use region::Region;

/// What a criterion on neighbours looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Mass density.
    Density,
    /// Thermal pressure.
    Pressure,
    /// Each component of the velocity; its changes are compared to |v| + c_s.
    Velocity,
}

/// One reason to flag a cell. A value that is not a number meets no criterion.
#[derive(Clone, Debug, PartialEq)]
pub enum FlagCriterion<T> {
    /// Density of gas and dark matter above this.
    DensityAbove(T),
    /// Density of dark matter above this: of all matter less the gas. Met nowhere without dark matter.
    DarkMatterAbove(T),
    /// Weights of followed particles above this ([`WeightUnit::whole`] is one particle).
    FollowedAbove(T),
    /// Relative change across the cell, |u₊ − u₋|/(2u), on any axis at least this (paper, section 4.2).
    GradientAbove {
        /// Of which quantity.
        of: Quantity,
        /// The threshold.
        threshold: T,
    },
    /// Löhner's estimator above this (Löhner 1987, in FLASH's form).
    LohnerAbove {
        /// Of which quantity; of the velocity's components the roughest.
        of: Quantity,
        /// The threshold, between 0 and 1.
        threshold: T,
        /// Weight ε of the filter against ripples.
        filter: T,
    },
    /// The Jeans length c_s √(π/(Gρ)) = 2π c_s/√(4πG ρ) shorter than this many cells. Supercomoving variables keep the
    /// formula, with their 4πG.
    JeansCellsBelow(f64),
    /// The cell has volume in this region.
    Inside(Region),
    /// The program's result is true.
    Where(Program),
}

impl<T> FlagCriterion<T> {
    /// The same with a threshold harder to meet by a factor of at least 1; what has no threshold stays.
    #[must_use]
    pub fn raised(self, factor: f64) -> Self
    where
        T: Real,
    {
        let raise = |threshold: T| T::from_f64(threshold.as_f64() * factor);
        match self {
            Self::DensityAbove(threshold) => Self::DensityAbove(raise(threshold)),
            Self::DarkMatterAbove(threshold) => Self::DarkMatterAbove(raise(threshold)),
            Self::FollowedAbove(threshold) => Self::FollowedAbove(raise(threshold)),
            Self::GradientAbove { of, threshold } => Self::GradientAbove { of, threshold: raise(threshold) },
            Self::LohnerAbove { of, threshold, filter } => {
                Self::LohnerAbove { of, threshold: raise(threshold), filter }
            }
            Self::JeansCellsBelow(cells) => Self::JeansCellsBelow(cells / factor),
            Self::Inside(_) | Self::Where(_) => self,
        }
    }

    /// Whether it looks at gas, where the density of all matter is known or not.
    fn is_on_gas(&self, with_matter: bool) -> bool {
        match self {
            Self::DensityAbove(_) => !with_matter,
            Self::DarkMatterAbove(_) | Self::FollowedAbove(_) | Self::Inside(_) => false,
            Self::GradientAbove { .. } | Self::LohnerAbove { .. } | Self::JeansCellsBelow(_) => true,
            Self::Where(program) => program.reads(Op::is_of_gas) || !with_matter && program.reads(Op::is_of_matter),
        }
    }

    /// Whether it reads the cells beside a cell.
    fn reads_neighbours(&self) -> bool {
        match self {
            Self::GradientAbove { .. } | Self::LohnerAbove { .. } => true,
            Self::Where(program) => program.reads(|op| op == Op::DivergenceOfVelocity),
            Self::DensityAbove(_)
            | Self::DarkMatterAbove(_)
            | Self::FollowedAbove(_)
            | Self::JeansCellsBelow(_)
            | Self::Inside(_) => false,
        }
    }
}

/// The level that is looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlagLevel<T> {
    /// Its number ℓ.
    pub level: usize,
    /// Cells of the whole box at this level along x, y, z.
    pub cells: [usize; 3],
    /// Whether the box ends at itself along x, y, z.
    pub periodic: [bool; 3],
    /// Width of a cell, code length.
    pub cell_width: f64,
    /// Scale factor; 1 in non-comoving coordinates.
    pub a: f64,
    /// 4πG in code units, now.
    pub four_pi_g: f64,
    /// Box mean of the density of all matter, code units.
    pub mean_density: f64,
    /// Box mean of the gas's density, code units.
    pub mean_gas_density: f64,
    /// The gas.
    pub eos: Eos<T>,
}

impl<T: Real> FlagLevel<T> {
    /// The factor of ρ² below which the pressure is where the Jeans length is shorter than so many cells:
    /// 2π c_s/√(4πG ρ) < n h ⟺ P < (n h)² 4πG/(4π² γ) ρ².
    fn jeans_factor(&self, cells: f64) -> T {
        let length = cells * self.cell_width / std::f64::consts::TAU;
        T::from_f64(length * length * self.four_pi_g / self.eos.gamma.as_f64())
    }
}

/// Condition that flags a cell of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct FlagCriteria<T> {
    /// The criteria and how they are joined.
    pub met: Combination<T>,
    /// The level.
    pub level: FlagLevel<T>,
}

/// Flags the patches of a level.
///
/// * `coordinates`: of the level's groups, each in groups of this level along x, y, z; `[groups]`.
/// * `fluid`: conserved, comoving, `[slots, 6, 16, 16, 16]`; none where no criterion is on gas.
/// * `matter`: density of gas and dark matter, `[slots, 16, 16, 16]`, in place of the gas's for [`FlagCriterion::DensityAbove`]; what it has
///   beyond the gas is dark matter.
/// * `followed`: deposits of the particles that refinement follows ([`WeightUnit::followed_alone`]), `[slots, 16, 16, 16]`; needed for
///   [`FlagCriterion::FollowedAbove`].
/// * `buffer`: cells around a flagged cell that are flagged with it; at most a patch (8).
/// * `masks`: `[groups, 8]`; bit [`crate::layout::direction`] of a patch's mask says that the patch in that direction
///   contains a flagged or buffer cell because of this patch (the centre bit: the patch itself).
///
/// Criteria that read neighbours see ghost cells as a sweep does ([`crate::level::ghosts`]).
///
/// # Panics
/// If a shape is wrong or the buffer exceeds a patch.
pub fn flag<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    coordinates: &[[u32; 3]],
    fluid: Option<&Buffer<T>>,
    matter: Option<&Buffer<T>>,
    followed: Option<&Buffer<u64>>,
    criteria: &FlagCriteria<T>,
    buffer: usize,
    masks: &mut [u32],
) {
    let counts = |criterion: &FlagCriterion<T>| matches!(criterion, FlagCriterion::FollowedAbove(_));
    assert!(
        followed.is_some() || !criteria.met.criteria().any(counts),
        "a criterion on particles without their number"
    );
    assert!(fluid.is_none_or(|fluid| fluid.len() % GROUP_VALUES == 0), "a fluid pool holds whole groups");
    let on_gas = criteria.met.criteria().any(|criterion| criterion.is_on_gas(matter.is_some()));
    assert!(fluid.is_some() || !on_gas, "a criterion on gas without gas");
    assert!(criteria.met.depth() <= combination::STACK, "a combination needs {} sets at a time", criteria.met.depth());
    assert_eq!(coordinates.len(), tables.len(), "one coordinate per group");
    assert_eq!(masks.len(), tables.len() * OCTANTS, "one mask per patch");
    assert!(buffer <= crate::layout::PATCH, "a flag buffer of {buffer} cells is wider than a patch");
    match device {
        Device::Cpu(cpu) => cpu.install(|| {
            let [fluid, matter] = [fluid, matter].map(|pool| pool.map(Buffer::host));
            let pools = Pools { fluid, matter, followed: followed.map(Buffer::host) };
            cpu::flag(Isa::best(), tables, coordinates, pools, criteria, buffer, masks);
        }),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            let pools = [fluid, matter];
            masks.copy_from_slice(&cuda::flag(device, tables, coordinates, pools, followed, criteria, buffer));
        }
    }
}

#[cfg(test)]
mod gpu_tests;
#[cfg(test)]
mod tests;

//! Gravity acts on the gas: momentum and energy gain what g = −∇φ gives in a time (paper, section 2.3).

mod acceleration;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(all(test, feature = "cuda"))]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::deferred::Deferred;
use crate::device::isa::Isa;
use crate::layout::{GROUP_CELLS, GROUP_VALUES};
use crate::level::level_topology::LevelTopology;
use crate::level::report::GroupReport;
use crate::operations::potential_ghosts::TimedPotential;
use crate::point::eos::Eos;
use crate::real::Real;

/// The largest acceleration of a group's leaf cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Peak {
    /// |g|.
    pub acceleration: f64,
    /// Offset in the group ([`crate::layout::cell`]).
    pub cell: u32,
}

/// What a kick did to a group's leaf cells.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct KickReport {
    /// Floors and cells that are not valid.
    pub report: GroupReport,
    /// Σ ½(m + m')·g·Δt, the work per volume from the kick's own inputs, m and m' being the momentum before and after.
    pub work: f64,
    /// Where g is largest.
    pub peak: Peak,
}

/// Kicks every group of a level by `dt` in place: m += ρ g dt, and the energy gains exactly the change of ½ρv².
///
/// g = −(φ₊ − φ₋)/(2h); ghost values of φ come from neighbours at the same level, else interpolated from the coarser
/// one. What falls below a floor is raised to it.
///
/// - `potential`: `[slots, 16, 16, 16]`, comoving: φ̃.
/// - `coarse`: the coarser level's potential at the level's time, where `potential` holds another.
/// - `fluid`: conserved, comoving, `[slots, 6, 16, 16, 16]`.
///
/// A report a group, in key order.
///
/// # Panics
/// If shapes disagree or a coarse group that the interpolation needs is missing.
pub fn gravity_kick<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    fluid: &mut Buffer<T>,
    h: f64,
    dt: f64,
    eos: &Eos<T>,
) -> Deferred<KickReport> {
    check(tables, potential);
    assert!(fluid.len() / GROUP_VALUES >= potential.len() / GROUP_CELLS);
    match device {
        Device::Cpu(device) => Deferred::ready(device.install(|| {
            let (potential, fluid) = (potential.host(), fluid.host_mut());
            cpu::gravity_kick(Isa::best(), tables, potential, coarse, fluid, h, dt, eos)
        })),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::gravity_kick(device, tables, potential, coarse, fluid, h, dt, eos),
    }
}

/// The largest |g| of each group's leaf cells and where it is, in key order.
///
/// - `coarse`: as of [`gravity_kick`]
///
/// # Panics
/// As [`gravity_kick`].
pub fn max_acceleration<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    h: f64,
) -> Deferred<Peak> {
    check(tables, potential);
    match device {
        Device::Cpu(device) => {
            Deferred::ready(device.install(|| cpu::max_acceleration(Isa::best(), tables, potential.host(), coarse, h)))
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::max_acceleration(device, tables, potential, coarse, h),
    }
}

fn check<T: Real>(tables: &LevelTopology, potential: &Buffer<T>) {
    let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(potential.len() >= slots * GROUP_CELLS, "the potential has no slot {slots}");
}

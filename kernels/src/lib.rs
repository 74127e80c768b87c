//! The equations on groups of cells: arrays in, arrays out.
//!
//! | module | what it holds |
//! |---|---|
//! | [`layout`] | the one place where array layouts are written down |
//! | [`real`] | [`Real`], the two precisions |
//! | `device` | where arrays live and operations run: the processor or a GPU; messages between ranks |
//! | `scheme` | [`Scheme`], the hydrodynamic schemes that a sweep knows |
//! | [`point`] | pointwise physics, by value, without loops |
//! | `level` | a level of groups: neighbours, ghost zones, boundaries, reports |
//! | `operations` | one folder per operation |
//!
//! | operations on | modules |
//! |---|---|
//! | the gas of a level | [`mod@hydro_sweep`], [`mod@gravity_kick`] |
//! | two levels | [`mod@restrict`], [`mod@prolong`], [`mod@reflux`] |
//! | passive scalars | [`scalars`] |
//! | dark matter | [`particles`] |
//! | the potential | [`root_poisson`], [`mod@group_poisson`], [`face_relaxation`], [`coarse_correction`], [`mod@potential_ghosts`], [`mod@mass_sheet`] |
//! | nothing: they read | [`mod@flag`], [`timestep`], [`mod@totals`], [`mod@potential_energy`], [`mod@density_range`], [`mod@state_hash`] |
//!
//! Nothing here knows an octree, a clock, a file or a recipe. An operation logs nothing and hides no floor: it counts
//! unusual cells and its caller decides. On a GPU it takes its work space (reports, lists of groups, ghost zones of the
//! blocks that run at once) from memory that the caller has reserved: [`Device::working_bytes`] in
//! [`Device::keep_ready`], which reports a lack of memory before any operation starts.

mod device;
pub mod layout;
mod level;
mod operations;
pub mod point;
#[cfg(test)]
mod rank_tests;
pub mod real;
mod scheme;
#[cfg(test)]
pub(crate) mod testing;

#[cfg(feature = "cuda")]
pub use device::cuda;
pub use device::{
    CpuDevice, Device, buffer, buffer::Buffer, deferred, deferred::Deferred, device_event::DeviceEvent,
    device_table::DeviceTable, error::KernelError, gpus, isa, kernel_times::KernelTime, memory, messages, overflow,
};
pub use level::{
    face_boundary,
    face_boundary::FaceBoundary,
    ghosts,
    group_locator::{GroupLocator, buffer_sides},
    level_topology,
    level_topology::{LevelTopology, Parity},
    report::GroupReport,
    troubled_cells,
    troubled_cells::TroubledCells,
};
pub use operations::{
    coarse_correction, density_range, face_relaxation, flag, gravity_kick, group_poisson, hydro_sweep, mass_sheet,
    particles, poisson_source, potential_energy, potential_ghosts, prolong, reflux, restrict, root_poisson, scalars,
    slots, source, state_hash, timestep, totals,
};
pub use operations::{
    density_range::density_range,
    gravity_kick::{KickReport, Peak, gravity_kick, max_acceleration},
    group_poisson::{group_poisson, sine::SineTables},
    mass_sheet::mass_sheet,
    poisson_source::{DensitySource, PoissonSource},
    potential_energy::potential_energy,
    potential_ghosts::{GhostOrigin, TimedPotential, potential_ghosts},
    root_poisson::{RootPoisson, RootShare, root_source},
};
pub use point::eos::Eos;
pub use real::Real;
pub use scheme::Scheme;

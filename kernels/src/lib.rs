//! The equations on groups of cells: arrays in, arrays out.
//!
//! | module | what it holds |
//! |---|---|
//! | [`layout`] | the one place where array layouts are written down |
//! | [`real`] | [`Real`], the two precisions |
//! | [`device`], [`buffer`], [`error`] | where arrays live, how they move, what can go wrong |
//! | [`memory`] | how much of it is free |
//! | [`isa`] | a kernel, compiled for every instruction set of the processor |
//! | `cuda` | GPUs, with the feature of that name |
//! | [`gpus`] | which of them this machine has |
//! | [`kernel_times`] | where the time of one goes |
//! | [`reading`] | what an operation tells the host, read when it is needed |
//! | [`table`], [`tables`] | numbers that kernels read; which slots are neighbours, parents and children: derived from the octree by `comove-sim` |
//! | [`scheme`] | the schemes that a sweep knows |
//! | [`point`] | pointwise physics, by value, without loops |
//! | [`ghosts`], [`face_boundary`] | a group with the cells around it; what lies beyond the domain |
//! | [`marks`] | cells that need the first-order flux, and the faces around them |
//! | `synchronised_row`, [`report`] | energy and entropy scalar made to agree row by row, and how that is booked |
//! | [`slots`] | whole slots of pools copied, added, cleared |
//! | [`mail`] | messages between ranks: boxes of cells, or rows of arrays, packed and unpacked |
//! | [`poisson_source`] | right-hand sides, computed where they are read |
//! | the rest | one folder per operation: `mod.rs` checks shapes and dispatches, `cpu.rs` computes |
//!
//! | operations on | modules |
//! |---|---|
//! | the gas of a level | [`mod@hydro_sweep`], [`mod@gravity_kick`] |
//! | two levels | [`mod@restrict`], [`mod@prolong`], [`mod@reflux`] |
//! | the potential | [`root_poisson`], [`mod@group_poisson`], [`mod@potential_ghosts`], [`mod@mass_sheet`] |
//! | nothing, they look | [`mod@flag`], [`timestep`], [`mod@totals`], [`mod@state_hash`] |
//!
//! Nothing here knows an octree, a clock, a file or a recipe. An operation allocates nothing on the device,
//! logs nothing and hides no floor: it counts unusual cells and its caller decides.

pub mod buffer;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod device;
pub mod error;
pub mod face_boundary;
pub mod flag;
pub mod ghosts;
pub mod gpus;
pub mod gravity_kick;
pub mod group_poisson;
pub mod hydro_sweep;
pub mod isa;
pub mod kernel_times;
pub mod layout;
pub mod mail;
pub mod marks;
pub mod mass_sheet;
pub mod memory;
pub mod point;
pub mod poisson_source;
pub mod potential_ghosts;
pub mod prolong;
#[cfg(test)]
mod rank_tests;
pub mod reading;
pub mod real;
pub mod reflux;
pub mod report;
pub mod restrict;
pub mod root_poisson;
pub mod scheme;
mod scratch;
pub mod slots;
pub mod state_hash;
mod synchronised_row;
pub mod table;
pub mod tables;
#[cfg(test)]
pub(crate) mod testing;
pub mod timestep;
pub mod totals;

pub use buffer::Buffer;
pub use device::Device;
pub use error::KernelError;
pub use face_boundary::FaceBoundary;
pub use gravity_kick::{KickReport, Peak, gravity_kick, max_acceleration};
pub use group_poisson::{GroupSolver, Guess, Iterations, group_poisson, relax_groups};
pub use kernel_times::KernelTime;
pub use marks::Marks;
pub use mass_sheet::{add_correction, mass_sheet};
pub use point::eos::Eos;
pub use poisson_source::{DensitySource, PoissonSource};
pub use potential_ghosts::{GhostOrigin, Parity, TimedPotential, potential_ghosts};
pub use real::Real;
pub use report::GroupReport;
pub use root_poisson::{RootPoisson, RootShare, root_source};
pub use scheme::Scheme;
pub use table::Table;
pub use tables::LevelTables;

//! The equations on groups of cells: arrays in, arrays out.
//!
//! | module | what it holds |
//! |---|---|
//! | [`layout`] | the one place where array layouts are written down |
//! | [`real`] | [`Real`], the two precisions |
//! | [`device`], [`buffer`] | where arrays live and how they move |
//! | [`tables`] | which slots are neighbours: derived from the octree by `comove-sim` |
//! | [`point`] | pointwise physics, by value, without loops |
//! | [`ghosts`] | a group with the cells around it |
//! | the rest | one folder per operation: `mod.rs` checks shapes and dispatches, `cpu.rs` computes |
//!
//! Nothing here knows an octree, a clock, a file or a recipe. An operation allocates nothing on the device,
//! logs nothing and hides no floor: it counts unusual cells and its caller decides.

pub mod buffer;
pub mod device;
pub mod error;
pub mod ghosts;
pub mod hydro_sweep;
pub mod isa;
pub mod layout;
pub mod point;
pub mod real;
pub mod report;
mod scratch;
pub mod state_hash;
pub mod tables;
#[cfg(test)]
pub(crate) mod testing;
pub mod timestep;
pub mod totals;

pub use buffer::Buffer;
pub use device::Device;
pub use error::KernelError;
pub use point::eos::Eos;
pub use real::Real;
pub use report::GroupReport;
pub use tables::LevelTables;

//! A comoving adaptive-mesh run of gas under self-gravity: octree, state, time step, clock, snapshots.
//!
//! | module | what it holds |
//! |---|---|
//! | [`octree`] | keys, the sorted-key octree, neighbour tables, regrid |
//! | [`cosmology`], [`units`], [`clock`] | the background, conversions, the time variable |
//! | [`boundary`] | what lies beyond the faces of the box |
//! | [`step_plan`], [`step`], [`individual_step`] | the time step: its operations by scheme; all levels at once, or each with its own |
//! | [`level_history`] | past states of levels, for finer ones to interpolate between |
//! | [`criterion`], [`refinement`] | what asks for finer cells, and the tree that follows |
//! | [`gravity`] | the multi-level Poisson solve |
//! | [`memory`], [`saved_state`] | what the arrays will take, before they do; the state to come back to |
//! | [`steering`] | what a run may be told from step to step |
//! | [`fields`] | the table of fields: names, units, meaning |
//! | [`host_state`] | octree and fields on the host: what an initial condition ends as and a snapshot holds |
//! | [`snapshot`] | the HDF5 file of checkpoints and outputs |
//! | [`complete_file`], [`shared_file`] | files that are complete or absent; an HDF5 file that all ranks write |
//! | [`parallel`] | ranks that compute one run together, and the messages between them |
//!
//! Nothing here prints, exits or reads a recipe.

pub mod book;
pub mod boundary;
pub mod clock;
pub mod complete_file;
pub mod cosmology;
pub mod criterion;
pub mod diagnosis;
pub mod error;
pub mod exact_sum;
pub mod fields;
pub mod gravity;
pub mod host_state;
pub mod individual_step;
pub mod level_history;
pub mod level_sweep;
pub mod memory;
pub mod octree;
pub mod parallel;
pub mod parameters;
pub mod records;
pub mod refinement;
mod retry;
mod run;
pub mod saved_state;
pub mod shared_file;
pub mod simulation;
pub mod snapshot;
pub mod state;
pub mod steering;
pub mod step;
pub mod step_plan;
pub mod time_step;
pub mod units;

/// The target of `tracing` spans that mark phases of the work in which a process may be killed; nobody listens but tests.
pub const PHASE: &str = "comove::phase";

pub use boundary::{Boundaries, Boundary, FixedGas, GravityBoundary};
pub use comove_kernels as kernels;
pub use cosmology::Cosmology;
pub use criterion::Criterion;
pub use error::SimError;
pub use host_state::HostState;
pub use octree::{Key, Octree};
pub use parameters::{Coordinates, Precision, RunParameters};
pub use simulation::Simulation;
pub use snapshot::{Role, Snapshot, SnapshotHeader, StartFrom, StoredSnapshot};
pub use steering::Steering;
pub use units::Units;

//! A comoving adaptive-mesh run of gas under self-gravity: octree, state, time step, clock, snapshots.
//!
//! | module | what it holds |
//! |---|---|
//! | [`octree`] | keys, the sorted-key octree, neighbour tables, regrid |
//! | [`cosmology`], [`units`], [`clock`] | the background, conversions, the time variable |
//! | [`criterion`], [`refinement`] | what asks for finer cells, and the tree that follows |
//! | [`gravity`] | the multi-level Poisson solve |
//! | [`fields`] | the table of fields: names, units, meaning |
//! | [`host_state`] | octree and fields on the host: what an initial condition ends as and a snapshot holds |
//! | [`snapshot`] | the HDF5 file of checkpoints and outputs |
//! | [`complete_file`] | files that are complete or absent |
//!
//! Nothing here prints, exits or reads a recipe.

pub mod book;
pub mod clock;
pub mod complete_file;
pub mod cosmology;
pub mod criterion;
pub mod error;
pub mod exact_sum;
pub mod fields;
pub mod gravity;
pub mod host_state;
pub mod octree;
pub mod parameters;
pub mod records;
pub mod refinement;
mod run;
pub mod simulation;
pub mod snapshot;
pub mod state;
pub mod step;
pub mod time_step;
pub mod units;

pub use comove_kernels as kernels;
pub use cosmology::Cosmology;
pub use criterion::Criterion;
pub use error::SimError;
pub use host_state::HostState;
pub use octree::{Key, Octree};
pub use parameters::{Boundary, Coordinates, Precision, RunParameters};
pub use simulation::Simulation;
pub use snapshot::{Role, Snapshot, SnapshotHeader};
pub use units::Units;

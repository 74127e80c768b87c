//! A comoving adaptive-mesh run of gas under self-gravity: octree, state, time step, clock, snapshots.
//!
//! | folder | what it holds |
//! |---|---|
//! | [`error`], [`cosmology`], [`units`], [`clock`], [`parameters`], [`boundary`], [`steering`], [`records`] | the background, conversions, what a run is told and what it tells |
//! | [`mesh`] | keys, the sorted-key octree, neighbour tables; the octree with its fields on the host |
//! | [`parallel`] | ranks that compute one run together: owners, ghost exchange, load balance |
//! | [`gas`], [`gravity`] | fields and their past states; the multi-level Poisson solve |
//! | [`state`] | all arrays of a run on its device, and their memory |
//! | [`refinement`] | criteria, and the tree that follows |
//! | [`step`] | the time step |
//! | [`io`] | snapshots, and files that are complete or absent |
//! | [`run`] | a run from outside |
//!
//! Nothing here prints, exits or reads a recipe.

pub mod boundary;
pub mod clock;
mod constants;
pub mod cosmology;
mod device_arrays;
pub mod error;
pub mod gas;
pub mod gravity;
pub mod io;
pub mod mesh;
pub mod parallel;
pub mod parameters;
pub mod records;
pub mod refinement;
pub mod run;
pub mod state;
pub mod steering;
pub mod step;
pub mod units;

/// The target of `tracing` spans that mark phases of the work in which a process may be killed; nobody listens but tests.
pub const PHASE: &str = "comove::phase";

pub use boundary::{Boundaries, Boundary, FixedGas, GravityBoundary};
pub use comove_kernels as kernels;
pub use cosmology::Cosmology;
pub use error::SimError;
pub use gas::fields;
pub use io::snapshot::{Role, Snapshot, SnapshotHeader, StartFrom, StoredSnapshot};
pub use io::{complete_file, shared_file, snapshot};
pub use mesh::{HostState, Key, Octree};
pub use parameters::{Coordinates, Precision, RunParameters};
pub use refinement::criterion;
pub use refinement::criterion::Criterion;
pub use run::rank_group::RankGroup;
pub use run::simulation::Simulation;
pub use state::memory;
pub use steering::Steering;
pub use units::Units;

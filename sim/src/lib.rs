//! A comoving adaptive-mesh run of gas under self-gravity: octree, state, time step, clock, snapshots.
//!
//! | folder | what it holds |
//! |---|---|
//! | `mesh` | keys, the sorted-key octree, the tables that kernels read; the octree with its fields on the host |
//! | `gas`, `dark_matter`, `gravity` | the arrays of each and their operations; the multi-level Poisson solve |
//! | `parallel` | ranks that compute one run together: owners, ghost exchange, load balance |
//! | `state` | mesh, gas, gravity and exchange together; memory, moves to another tree, copies to go back to |
//! | `refinement` | criteria, and the tree that follows |
//! | `source` | pointwise sources of internal energy, one file each |
//! | `step` | the time step: plan, sweeps, kicks, choice of Δt, diagnostics |
//! | `io` | snapshots, and files that are complete or absent |
//! | `run` | start, step, side branches, checkpoints; the calls that ranks make together |
//! | `error`, `cosmology`, `neutrinos`, `units`, `clock`, `parameters`, `boundary`, `steering`, `records` | the background, conversions, options and reports of a run |
//!
//! Nothing here prints, exits or reads a recipe.

mod boundary;
mod clock;
mod constants;
mod cosmology;
pub mod dark_matter;
mod device_arrays;
pub mod error;
mod gas;
pub mod gravity;
mod io;
pub mod mesh;
mod neutrinos;
pub mod parallel;
mod parameters;
pub mod records;
pub mod refinement;
mod run;
pub mod source;
mod state;
mod steering;
pub mod step;
mod units;

/// The target of `tracing` spans that mark phases of the work in which a process may be killed; nobody listens but tests.
pub const PHASE: &str = "comove::phase";

pub use boundary::{Boundaries, Boundary, FixedGas, GravityBoundary};
pub use clock::Clock;
pub use comove_kernels as kernels;
pub use cosmology::Cosmology;
pub use dark_matter::{DarkMatterHeader, HostParticles};
pub use error::SimError;
pub use gas::{Gas, fields};
pub use io::snapshot::{Role, Snapshot, SnapshotHeader, StartFrom, StoredSnapshot};
pub use io::{complete_file, filters, shared_file, snapshot};
pub use mesh::{HostState, Key, Octree};
pub use parameters::{Coordinates, Precision, RunParameters, ScalarParameters, StartFacts, SweepOrder, TimeSteps};
pub use refinement::criterion;
pub use refinement::criterion::Criterion;
pub use run::rank_group::RankGroup;
pub use run::simulation::Simulation;
pub use state::{RegridMemory, State, memory};
pub use steering::Steering;
pub use units::{Units, VELOCITY_KM_S};

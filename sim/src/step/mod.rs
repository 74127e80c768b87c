//! The time step.
//!
//! | module | what it holds |
//! |---|---|
//! | `plan` | the operations of a step, by scheme |
//! | `uniform_step`, `individual_step` | a step of all levels at once, or of each on its own (subcycling) |
//! | `level_sweep` | a hydro sweep of a level, with the first-order redo |
//! | `particles` | drifts and sorts of particles |
//! | `sources` | sources of internal energy |
//! | `time_step` | the choice of Δt |
//! | `diagnostics`, `leaf_sums` | what a step reports: counts, ledger, times; sums over the leaves |
//! | `retry` | when a step is retried in smaller parts |

pub(crate) mod diagnostics;
pub(crate) mod individual_step;
pub(crate) mod leaf_sums;
pub(crate) mod level_sweep;
mod particles;
pub(crate) mod physics;
pub(crate) mod plan;
pub(crate) mod retry;
pub(crate) mod sources;
pub(crate) mod time_step;
pub(crate) mod uniform_step;

pub use diagnostics::{Acceleration, StepDiagnostics};
pub use leaf_sums::{LeafSums, leaf_sums};
pub use physics::Physics;

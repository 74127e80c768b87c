//! What all processes of MPI do together besides computing runs: each its part of an initial condition or an analysis.
//!
//! The first process does it in a stage, by [`comove_sim::parallel::Crew::together`]; the others are told which it is and
//! do the same in [`Task::follow`]. They read the campaign's files, which they see under the same paths, and write none.

use crate::stage::ic_task::IcTask;
use comove_sim::HostState;
use comove_sim::parallel::Communicator;
use serde::{Deserialize, Serialize};

/// What the others are told.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    /// Of an initial condition.
    Ic(IcTask),
}

impl Task {
    /// Does this process's part: collective. What it gives are groups that the next run starts from.
    pub fn follow(self, communicator: &Communicator) -> Option<HostState> {
        match self {
            Self::Ic(task) => task.follow(communicator),
        }
    }
}

//! What all processes of MPI do together besides computing runs: each its part of an initial condition or an analysis.
//!
//! The first process does it in a stage, by [`comove_sim::RankGroup::run_collective`]; the others are told which it is and
//! do the same in [`Task::follow`]. They read the campaign's files, which they see under the same paths, and write none.

use crate::snapshots::Snapshots;
use crate::stage::analysis::AnalysisTask;
use crate::stage::ic_task::IcTask;
use comove_sim::HostState;
use comove_sim::parallel::Communicator;
use serde::{Deserialize, Serialize};

/// What the others are told.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    /// Of an initial condition.
    Ic(IcTask),
    /// Of an analysis.
    Analysis(AnalysisTask),
}

impl Task {
    /// Does this process's part: collective. What it gives are groups that the next run starts from.
    ///
    /// * `snapshots`: what this process has of snapshots
    pub fn follow(self, communicator: &Communicator, snapshots: &Snapshots) -> Option<HostState> {
        match self {
            Self::Ic(task) => task.follow(communicator),
            Self::Analysis(task) => {
                task.follow(communicator, snapshots);
                None
            }
        }
    }
}

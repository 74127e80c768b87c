//! What all processes of MPI do together besides computing runs: each its part of an initial condition or an analysis.
//!
//! The first process does it in a stage, by [`comove_sim::RankGroup::run_collective`]; the others receive the task and do the
//! same in [`Task::follow`]. They read the campaign's files, which they see under the same paths, and write none.

use crate::error::PipelineError;
use crate::stage::analysis::Analysis;
use crate::stage::density_pdf::PdfOptions;
use crate::stage::halos::HalosAndProfiles;
use crate::stage::ic_task::{examine, make, place};
use crate::stage::initial::{InitialCondition, InitialFacts};
use crate::stage::maps::MapWithTable;
use crate::stage::result::Input;
use crate::stage::work::Work;
use crate::storage::snapshots::Snapshots;
use comove_analysis::power_spectrum::PowerOptions;
use comove_ic::silent;
use comove_sim::parallel::Communicator;
use comove_sim::{HostState, RunParameters, SimError};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What the first process sends the others.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    Ic(Box<IcTask>),
    Analysis(AnalysisTask),
}

impl Task {
    /// Does this process's part: collective. What it gives are groups that the next run starts from.
    ///
    /// * `snapshots`: what this process has of snapshots
    pub(crate) fn follow(self, communicator: &Communicator, snapshots: &Snapshots) -> Option<HostState> {
        match self {
            Self::Ic(task) => task.follow(communicator),
            Self::Analysis(task) => {
                task.follow(communicator, snapshots);
                None
            }
        }
    }
}

/// A part of making an initial condition.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum IcTask {
    /// [`make`].
    Make(InitialCondition),
    /// [`examine`].
    Examine { mesh: PathBuf, ic: InitialCondition },
    /// [`place`].
    Place {
        mesh: PathBuf,
        /// What it is.
        facts: InitialFacts,
        /// The run's.
        parameters: Box<RunParameters>,
    },
}

impl IcTask {
    /// Does this process's part, and keeps what a run is to start from: collective. What goes wrong goes wrong on the first
    /// process too, which says so.
    pub(crate) fn follow(self, communicator: &Communicator) -> Option<HostState> {
        match self {
            Self::Make(ic) => {
                // the file is the first process's matter
                _ = make(&ic, communicator, Path::new(""), &silent);
                None
            }
            Self::Examine { mesh, ic } => {
                _ = examine(communicator, &mesh, &ic);
                None
            }
            Self::Place { mesh, facts, parameters } => {
                place(communicator, &mesh, &facts, &parameters, &silent).ok().map(|(state, ..)| state)
            }
        }
    }
}

/// The analyses that all processes do together, in one list: how the first process sends each to the others, and how they
/// follow.
macro_rules! analyses {
    ($($name:ident($analysis:ty),)*) => {
        /// An analysis, as the first process sends it to the others.
        #[derive(Debug, Serialize, Deserialize)]
        pub(crate) enum AnalysisRequest {
            $($name($analysis),)*
        }

        $(impl From<$analysis> for AnalysisRequest {
            fn from(analysis: $analysis) -> Self {
                Self::$name(analysis)
            }
        })*

        impl AnalysisTask {
            /// Does this process's part: collective. What goes wrong goes wrong on the first process too, which says so.
            pub(crate) fn follow(&self, communicator: &Communicator, snapshots: &Snapshots) {
                match &self.analysis {
                    $(AnalysisRequest::$name(analysis) => self.find(analysis, communicator, snapshots),)*
                }
            }
        }
    };
}

analyses! {
    PowerSpectrum(PowerOptions),
    DensityPdf(PdfOptions),
    Map(MapWithTable),
    Halos(HalosAndProfiles),
}

/// An analysis of a snapshot in a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AnalysisTask {
    path: PathBuf,
    digest: String,
    analysis: AnalysisRequest,
}

impl AnalysisTask {
    fn find(&self, analysis: &impl Analysis, communicator: &Communicator, snapshots: &Snapshots) {
        let part = snapshots.part(communicator, &self.path, &self.digest);
        let _ = part.map(|part| analysis.find(communicator, &(&*part).into()).map(drop));
    }
}

/// Here, above the stages that call it, because a message names every analysis.
impl Work<'_> {
    /// What an analysis finds in a snapshot, by all processes together.
    pub(crate) fn find<A>(&self, input: &Input, analysis: &A) -> Result<A::Found, PipelineError>
    where
        A: Analysis + Clone + Into<AnalysisRequest>,
    {
        let path = std::path::absolute(&input.path).map_err(PipelineError::io(&input.path))?;
        let task = AnalysisTask { path, digest: input.digest.clone(), analysis: analysis.clone().into() };
        let found = self.crew.run_collective(&Task::Analysis(task), |communicator| -> Result<_, SimError> {
            if communicator.size() == 1 {
                return Ok(analysis.find(communicator, &(&*self.snapshots.read(input)?).into()));
            }
            let part = self.snapshots.part(communicator, &input.path, &input.digest)?;
            Ok(analysis.find(communicator, &(&*part).into()))
        });
        Ok(found??.expect("the first process has what is found"))
    }
}

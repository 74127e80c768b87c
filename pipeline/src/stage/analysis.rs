//! Analyses of snapshots by all processes: each reads its part of the file, and the first has what is found.

use super::density_pdf::PdfOptions;
use super::halos::HalosAndProfiles;
use super::maps::MapWithTable;
use super::{Input, Work};
use crate::error::PipelineError;
use crate::snapshots::Snapshots;
use crate::task::Task;
use comove_analysis::power_spectrum::PowerOptions;
use comove_analysis::{AnalysisError, Part};
use comove_sim::SimError;
use comove_sim::parallel::Communicator;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is found in a snapshot, by all processes together.
pub trait Analysis {
    /// What it finds.
    type Found;

    /// What the other processes are told.
    fn told(&self) -> Told;

    /// Finds it, on the first process: collective.
    ///
    /// # Errors
    /// [`AnalysisError`], on the first process at least; the others then have nothing more to do either.
    fn find(&self, communicator: &Communicator, part: &Part) -> Result<Option<Self::Found>, AnalysisError>;
}

/// An analysis as the other processes are told of it.
#[derive(Debug, Serialize, Deserialize)]
pub enum Told {
    /// P(k).
    PowerSpectrum(PowerOptions),
    /// Volume and mass by density.
    DensityPdf(PdfOptions),
    /// A slice or a projection.
    Map(MapWithTable),
    /// Halos, and profiles of the heaviest.
    Halos(HalosAndProfiles),
}

/// An analysis of a snapshot in a file.
#[derive(Debug, Serialize, Deserialize)]
pub struct AnalysisTask {
    path: PathBuf,
    digest: String,
    analysis: Told,
}

impl AnalysisTask {
    /// Does this process's part: collective. What goes wrong goes wrong on the first process too, which says so.
    pub fn follow(&self, communicator: &Communicator, snapshots: &Snapshots) {
        match &self.analysis {
            Told::PowerSpectrum(analysis) => self.find(analysis, communicator, snapshots),
            Told::DensityPdf(analysis) => self.find(analysis, communicator, snapshots),
            Told::Map(analysis) => self.find(analysis, communicator, snapshots),
            Told::Halos(analysis) => self.find(analysis, communicator, snapshots),
        }
    }

    fn find(&self, analysis: &impl Analysis, communicator: &Communicator, snapshots: &Snapshots) {
        let part = snapshots.part(communicator, &self.path, &self.digest);
        let _ = part.map(|part| analysis.find(communicator, &(&*part).into()).map(drop));
    }
}

impl Work<'_> {
    /// What an analysis finds in a snapshot, by all processes together.
    ///
    /// # Errors
    /// As [`Snapshots::read`] and the analysis.
    pub fn find<A: Analysis>(&self, input: &Input, analysis: &A) -> Result<A::Found, PipelineError> {
        let path = std::path::absolute(&input.path).map_err(PipelineError::io(&input.path))?;
        let task = AnalysisTask { path, digest: input.digest.clone(), analysis: analysis.told() };
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

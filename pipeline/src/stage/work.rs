//! What a stage is given to work with.

use super::result::Input;
use super::section::{self, Section};
use crate::error::PipelineError;
use crate::ledger::{Artefact, Event, Ledger, StageHistory};
use crate::moment::Moment;
use crate::processes::control::Control;
use crate::recipe::Program;
use crate::storage::snapshots::Snapshots;
use crate::terminal::progress::Progress;
use crate::terminal::time_left::Estimator;
use comove_analysis::{AnalysisError, Figure, Record};
use comove_kernels::Device;
use comove_sim::{RankGroup, RunParameters, SimError, Simulation, StartFrom, complete_file};
use rayon::prelude::*;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest that a rehearsal takes.
pub(crate) const REHEARSAL: Duration = Duration::from_secs(30);

/// Seconds that a call of a closure may compute in a rehearsal.
pub(super) const REHEARSED_CALL_S: f64 = 5.0;

/// A stage's surroundings while it runs.
pub(crate) struct Work<'a> {
    pub campaign: &'a Path,
    /// The stage's own folder, which exists.
    pub folder: PathBuf,
    pub fingerprint: &'a str,
    /// What it reads, input by input.
    pub inputs: Vec<Vec<Input>>,
    /// What the stages are called that its inputs are of.
    pub input_names: &'a [String],
    /// The files from outside that it reads, with their digests.
    pub files: &'a [Artefact],
    pub snapshots: &'a Snapshots,
    pub device: &'a Device,
    /// The processes that compute a run with it.
    pub crew: &'a RankGroup,
    /// Where it says what has happened.
    pub ledger: &'a Ledger,
    /// Where it shows how far it is.
    pub progress: &'a Progress,
    /// What is asked of it from outside.
    pub control: &'a Control,
    pub program: Option<&'a Program>,
    /// The recipe's text, for snapshots.
    pub recipe: &'a str,
    /// Whether this is a rehearsal: files go to a temporary folder, and nothing is drawn.
    pub is_rehearsal: bool,
    /// Estimates the time that a run has left.
    pub estimator: Option<Box<dyn Estimator + 'a>>,
}

impl Work<'_> {
    /// Starts a run on the device, together with the other processes.
    pub(crate) fn simulation<'s>(
        &self,
        from: impl Into<StartFrom<'s>>,
        parameters: &RunParameters,
    ) -> Result<Simulation, SimError> {
        Simulation::start_on(self.device.clone(), self.crew.ranks(), from, parameters.clone())
    }

    /// Whether this process has all of a run that it computes, and not only its share.
    pub(crate) fn is_alone(&self) -> bool {
        self.crew.communicator().size() == 1
    }

    /// Whether a rehearsal may go on.
    pub(crate) fn in_time(&self) -> Result<(), PipelineError> {
        let over = self.is_rehearsal.then(|| self.control.stop(Duration::ZERO)).flatten();
        over.map_or(Ok(()), |by| Err(PipelineError::Interrupted { folder: self.campaign.into(), by }))
    }

    pub(crate) fn record(&self, event: Event) -> Result<(), PipelineError> {
        self.ledger.append(event)
    }

    /// What the ledger knows of this stage.
    pub(crate) fn history(&self) -> StageHistory {
        self.ledger.history().stage(self.fingerprint).cloned().unwrap_or_default()
    }

    /// The path of a file in the stage's folder.
    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.join(file)
    }

    /// Every file it reads, of all inputs; its line says which one is looked at.
    pub(crate) fn all_inputs(&self) -> impl Iterator<Item = &Input> {
        self.looking_at(self.inputs.iter().flatten().collect::<Vec<_>>())
    }

    /// These inputs one after the other; its line says which one is looked at.
    pub(crate) fn looking_at<'i>(
        &self,
        inputs: impl IntoIterator<Item = &'i Input, IntoIter: ExactSizeIterator>,
    ) -> impl Iterator<Item = &'i Input> {
        let name = |input: &Input| input.moment.map_or_else(|| input.name(), |_| self.shown(input).to_string());
        self.progress.stage().through(inputs, name)
    }

    /// The moment of a snapshot that the stage reads, as [`Input::shown_among`] gives it.
    pub(crate) fn shown(&self, input: &Input) -> Moment {
        input.shown_among(self.inputs.iter().flatten())
    }

    /// Writes a file of the stage: under a temporary name, on disk, then renamed.
    pub(crate) fn write(&self, file: &str, content: &[u8]) -> Result<String, PipelineError> {
        let path = self.path(file);
        if self.is_rehearsal {
            // nobody reads it after a crash
            std::fs::write(&path, content).map_err(PipelineError::io(&path))?;
        } else {
            write_file(&path, content)?;
        }
        Ok(file.to_owned())
    }

    pub(crate) fn write_json(&self, file: &str, value: &impl Serialize) -> Result<String, PipelineError> {
        let text = serde_json::to_vec_pretty(value).expect("results are plain data");
        self.write(file, &text)
    }

    /// Writes a result as `name.csv` (its table) and `name.json` (all of it).
    pub(crate) fn write_record(&self, name: &str, record: &impl Record) -> Result<[String; 2], PipelineError> {
        let csv = self.write(&format!("{name}.csv"), record.table().to_csv().as_bytes())?;
        Ok([csv, self.write_json(&format!("{name}.json"), record)?])
    }

    /// Writes a figure as PNG, SVG and PDF and shows it in the section.
    pub(crate) fn write_figure(
        &self,
        name: &str,
        figure: &Figure,
        section: &mut Section,
    ) -> Result<[String; 3], PipelineError> {
        self.draw(figure, name)?;
        let files = Figure::files(name);
        section.image(&files[0], figure.title());
        Ok(files)
    }

    fn draw(&self, figure: &Figure, name: &str) -> Result<(), AnalysisError> {
        if self.is_rehearsal { Ok(()) } else { figure.write(&self.folder, name) }
    }

    /// Writes figures as PNG, SVG and PDF, drawn at the same time, and shows them in the section in this order.
    pub(crate) fn write_figures(
        &self,
        figures: &[(String, Figure)],
        section: &mut Section,
    ) -> Result<Vec<String>, PipelineError> {
        let written: Result<Vec<()>, AnalysisError> =
            figures.par_iter().map(|(name, figure)| self.draw(figure, name)).collect();
        written?;
        let shown = figures.iter().flat_map(|(name, figure)| {
            let files = Figure::files(name);
            section.image(&files[0], figure.title());
            files
        });
        Ok(shown.collect())
    }

    /// Writes the stage's part of the report.
    pub(crate) fn write_section(&self, section: &Section) -> Result<String, PipelineError> {
        self.write_json(section::FILE, section)
    }
}

/// Writes a file that is complete or absent.
///
/// # Errors
/// [`PipelineError::Io`]; an older file of that name is then untouched.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<(), PipelineError> {
    complete_file::write(path, content).map_err(PipelineError::io(path))
}

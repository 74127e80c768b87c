//! `from_snapshot`: a checkpoint or output from elsewhere, to continue or to analyse.

use super::initial::SpeciesPresent;
use super::result::{StageResult, digest_of_input};
use super::{Stage, Work};
use crate::error::PipelineError;
use crate::ledger::{History, SnapshotFile};
use crate::moment::Moment;
use crate::processes::isolated_read;
use crate::terminal::progress::Progress;
use comove_sim::Snapshot;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

pub(crate) const KIND: &str = "from_snapshot";

/// A snapshot file that is there already.
#[derive(Debug)]
pub(crate) struct Saved {
    pub path: PathBuf,
    /// The digest of what was validated in a child process last, and why it could not be.
    trial: Mutex<Option<(String, Option<String>)>>,
    /// Its species; `None` if there was no such file when the recipe was evaluated.
    species: Option<SpeciesPresent>,
}

impl Saved {
    /// The snapshot in a file, which need not be there yet.
    ///
    /// # Errors
    /// If the file is there and its header cannot be read.
    pub(crate) fn new(path: PathBuf) -> Result<Self, PipelineError> {
        let species = isolated_read::snapshot_species(&path)?;
        Ok(Self { path, trial: Mutex::default(), species })
    }

    /// Reads the file, whose digest this is, on trial; once in the life of a process.
    fn tried(&self, digest: &str) -> Result<(), PipelineError> {
        let mut trial = self.trial.lock().unwrap_or_else(PoisonError::into_inner);
        match &*trial {
            Some((tried, None)) if tried == digest => return Ok(()),
            Some((tried, Some(reason))) if tried == digest => return Err(PipelineError::input(&self.path, reason)),
            _ => {}
        }
        let outcome = isolated_read::snapshot(&self.path);
        let refusal = match &outcome {
            Ok(()) => None,
            Err(PipelineError::Input { reason, .. }) => Some(reason.clone()),
            // it may pass
            Err(_) => return outcome,
        };
        *trial = Some((digest.to_owned(), refusal));
        outcome
    }
}

impl Stage for Saved {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn title(&self) -> String {
        "Snapshot".into()
    }

    fn describe(&self) -> String {
        self.path.display().to_string()
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn files(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }

    fn species(&self) -> Option<SpeciesPresent> {
        self.species
    }

    fn given(&self, history: &History, progress: &Progress) -> Option<Result<StageResult, PipelineError>> {
        let result = || {
            let digest = digest_of_input(&self.path, progress)?;
            if !history.vouches_for(&digest) {
                self.tried(&digest)?;
            }
            let header = Snapshot::read_header(&self.path)?;
            let folder = self.path.parent().map(PathBuf::from).unwrap_or_default();
            let file = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let snapshot = SnapshotFile::new(file, &header, Moment::of(&header), true);
            let content = Some(Snapshot::content_digest(&self.path)?);
            let snapshot = SnapshotFile { digest, content, ..snapshot };
            Ok(StageResult { folder, artefacts: Vec::new(), snapshots: vec![snapshot] })
        };
        Some(result())
    }

    fn execute(&self, _: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        Ok(Vec::new())
    }
}

//! `from_snapshot`: a checkpoint or output from elsewhere, to continue or to analyse.

use super::result::{StageResult, digest_of_input};
use super::{Stage, Work};
use crate::error::PipelineError;
use crate::ledger::SnapshotFile;
use crate::moment::Moment;
use crate::progress::Progress;
use comove_sim::Snapshot;
use serde_json::{Value, json};
use std::path::PathBuf;

/// A snapshot file that is there already.
#[derive(Clone, Debug)]
pub struct Saved {
    /// The file.
    pub path: PathBuf,
}

impl Stage for Saved {
    fn kind(&self) -> &'static str {
        "from_snapshot"
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

    fn given(&self, progress: &Progress) -> Option<Result<StageResult, PipelineError>> {
        let result = || {
            let digest = digest_of_input(&self.path, progress)?;
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

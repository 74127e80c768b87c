//! Writing checkpoints and outputs beside the next steps, and deleting checkpoints that newer ones replace.

use super::Work;
use crate::error::PipelineError;
use crate::ledger::{Event, SnapshotFile};
use crate::lock;
use crate::moment::Moment;
use comove_sim::{Role, SimError, Snapshot};
use serde_json::{Value, json};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Writes snapshots one at a time, each in the background of the steps that follow.
///
/// Outputs stay in memory for the analyses that follow, where there is room.
#[derive(Debug)]
pub struct SnapshotWriter {
    /// How many checkpoints stay besides lasting ones.
    keep: usize,
    pending: Option<(SnapshotFile, JoinHandle<Result<Written, SimError>>)>,
}

/// The digest of a file that is verified on disk, and its content if that is an output.
type Written = (String, Option<Arc<Snapshot>>);

impl SnapshotWriter {
    /// A writer that keeps `keep` checkpoints.
    pub fn new(keep: usize) -> Self {
        Self { keep, pending: None }
    }

    /// Writes a checkpoint; a `lasting` one is never deleted.
    ///
    /// # Errors
    /// What the previous snapshot's writing says: [`PipelineError::Sim`], [`PipelineError::Io`].
    pub fn checkpoint(&mut self, work: &mut Work<'_>, snapshot: Snapshot, lasting: bool) -> Result<(), PipelineError> {
        let header = &snapshot.header;
        let name = checkpoint_name(header.step);
        let file = SnapshotFile::new(name, header, Moment::of(header), lasting);
        self.begin(work, snapshot, file)
    }

    /// Writes the output that the recipe asked for at `moment`.
    ///
    /// # Errors
    /// As [`SnapshotWriter::checkpoint`].
    pub fn output(&mut self, work: &mut Work<'_>, snapshot: Snapshot, moment: Moment) -> Result<(), PipelineError> {
        let file = SnapshotFile::new(format!("output_{}.h5", moment.tag()), &snapshot.header, moment, true);
        self.begin(work, snapshot, file)
    }

    /// Enters the last snapshot into the ledger if it is verified on disk by now; waits for nothing.
    ///
    /// # Errors
    /// As [`SnapshotWriter::checkpoint`].
    pub fn collect(&mut self, work: &mut Work<'_>) -> Result<(), PipelineError> {
        if self.pending.as_ref().is_some_and(|(_, writing)| writing.is_finished()) { self.finish(work) } else { Ok(()) }
    }

    /// Whether a snapshot is on its way to disk or to the ledger.
    pub fn is_writing(&self) -> bool {
        self.pending.is_some()
    }

    /// Waits until the last snapshot is verified on disk and in the ledger.
    ///
    /// # Errors
    /// As [`SnapshotWriter::checkpoint`].
    pub fn finish(&mut self, work: &mut Work<'_>) -> Result<(), PipelineError> {
        let Some((mut snapshot, writing)) = self.pending.take() else { return Ok(()) };
        let (digest, content) = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        if let Some(content) = content {
            work.snapshots.hold(&digest, &content);
        }
        snapshot.digest = digest;
        tracing::info!("wrote {} ({}, step {})", snapshot.file, snapshot.moment().rounded(), snapshot.step);
        let is_checkpoint = snapshot.role == Role::Checkpoint;
        work.record(Event::SnapshotWritten { fingerprint: work.fingerprint.into(), snapshot })?;
        if is_checkpoint { self.remove_old(work) } else { Ok(()) }
    }

    fn begin(&mut self, work: &mut Work<'_>, mut snapshot: Snapshot, file: SnapshotFile) -> Result<(), PipelineError> {
        self.finish(work)?;
        snapshot.header.recipe = work.recipe.to_owned();
        snapshot.header.provenance = provenance(work);
        let path = work.path(&file.file);
        let writing = std::thread::Builder::new()
            .name("snapshot".into())
            .spawn(move || {
                let digest = snapshot.write(&path)?;
                let is_output = snapshot.header.role == Role::Output;
                Ok((digest, is_output.then(|| Arc::new(snapshot))))
            })
            .map_err(PipelineError::io(&work.folder))?;
        self.pending = Some((file, writing));
        Ok(())
    }

    /// Deletes checkpoints beyond the newest `keep`. The event comes first: a file that is still there is harmless, one
    /// that the ledger promises and that is gone is not.
    fn remove_old(&self, work: &mut Work<'_>) -> Result<(), PipelineError> {
        let history = work.history();
        let old = history.snapshots.iter().filter(|s| s.role == Role::Checkpoint && !s.lasting);
        for snapshot in old.rev().skip(self.keep) {
            let file = snapshot.file.clone();
            work.record(Event::SnapshotRemoved { fingerprint: work.fingerprint.into(), file })?;
            let path = work.path(&snapshot.file);
            std::fs::remove_file(&path).map_err(PipelineError::io(&path))?;
        }
        Ok(())
    }
}

/// Where a snapshot comes from, for its header. Without times, so that the same run writes the same file.
pub fn provenance(work: &Work<'_>) -> Value {
    json!({
        "program": concat!("comove ", env!("CARGO_PKG_VERSION")),
        "device": work.device.name(),
        "device_class": work.device.class(),
        "host": lock::host(),
        "stage": work.fingerprint,
    })
}

/// The file of the checkpoint at the end of a root step.
pub fn checkpoint_name(step: u64) -> String {
    format!("checkpoint_{step:06}.h5")
}

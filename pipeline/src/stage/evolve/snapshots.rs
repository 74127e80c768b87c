//! Writing checkpoints and outputs beside the next steps, and deleting checkpoints that newer ones replace.

use crate::error::PipelineError;
use crate::ledger::{Event, SnapshotFile};
use crate::moment::Moment;
use crate::stage::work::Work;
use crate::storage::files::remove_if_there;
use crate::storage::lock;
use comove_sim::snapshot::Unverified;
use comove_sim::{Role, SimError, Simulation, Snapshot};
use serde_json::{Value, json};
use std::sync::Arc;
use std::thread::JoinHandle;

/// Writes snapshots one at a time, each in the background of the steps that follow; where processes share a run, what they
/// have of it is sent and written before the next step, and brought to disk and verified in the background.
///
/// Outputs of a process that is alone stay in memory for the analyses that follow, where there is room.
pub(crate) struct SnapshotWriter {
    /// How many checkpoints stay besides lasting ones, of those behind the run and of all.
    keep: usize,
    pending: Option<(SnapshotFile, Writing)>,
}

/// A file on its way.
enum Writing {
    Begun(JoinHandle<Result<Written, SimError>>),
    /// What there is to be entered into the ledger.
    Done(Written),
}

impl Writing {
    fn is_done(&self) -> bool {
        match self {
            Self::Begun(thread) => thread.is_finished(),
            Self::Done(_) => true,
        }
    }

    /// Waits for it.
    fn done(self) -> Result<Written, SimError> {
        match self {
            Self::Begun(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Self::Done(written) => Ok(written),
        }
    }
}

/// What is left to do in the background.
enum Rest {
    /// All of it, from a snapshot in memory.
    Write(Box<Snapshot>),
    /// To bring a file to disk and to verify it.
    Complete(Unverified),
}

/// A file that is verified on disk.
struct Written {
    digest: String,
    /// Digest of what it shows.
    content: String,
    /// The snapshot, if it is an output and in memory.
    output: Option<Arc<Snapshot>>,
}

impl SnapshotWriter {
    pub(crate) fn new(keep: usize) -> Self {
        Self { keep, pending: None }
    }

    /// Writes a checkpoint; a `lasting` one is never deleted.
    pub(crate) fn checkpoint(
        &mut self,
        work: &mut Work<'_>,
        simulation: &Simulation,
        snapshot: Snapshot,
        lasting: bool,
    ) -> Result<(), PipelineError> {
        let header = &snapshot.header;
        let name = checkpoint_name(header.step);
        let file = SnapshotFile::new(name, header, Moment::of(header), lasting);
        self.begin(work, simulation, snapshot, file)
    }

    /// Writes an output that shows the run at `moment`.
    pub(crate) fn output(
        &mut self,
        work: &mut Work<'_>,
        simulation: &Simulation,
        snapshot: Snapshot,
        moment: Moment,
        name: String,
    ) -> Result<(), PipelineError> {
        let file = SnapshotFile::new(name, &snapshot.header, moment, true);
        self.begin(work, simulation, snapshot, file)
    }

    /// Waits until the last snapshot is verified on disk; the ledger does not have it yet.
    pub(crate) fn complete(&mut self) -> Result<(), PipelineError> {
        if let Some((snapshot, writing)) = self.pending.take() {
            self.pending = Some((snapshot, Writing::Done(writing.done()?)));
        }
        Ok(())
    }

    /// Enters the last snapshot into the ledger if it is verified on disk by now; waits for nothing.
    pub(crate) fn collect(&mut self, work: &mut Work<'_>) -> Result<(), PipelineError> {
        if self.pending.as_ref().is_some_and(|(_, writing)| writing.is_done()) { self.finish(work) } else { Ok(()) }
    }

    /// Whether a snapshot is on its way to disk or to the ledger.
    pub(crate) fn is_writing(&self) -> bool {
        self.pending.is_some()
    }

    /// Waits until the last snapshot is verified on disk and in the ledger.
    pub(crate) fn finish(&mut self, work: &mut Work<'_>) -> Result<(), PipelineError> {
        let Some((mut snapshot, writing)) = self.pending.take() else { return Ok(()) };
        let written = writing.done()?;
        if let Some(output) = written.output {
            work.snapshots.hold(&written.digest, &output);
        }
        (snapshot.digest, snapshot.content) = (written.digest, Some(written.content));
        tracing::info!("wrote {} ({}, step {})", snapshot.file, snapshot.moment().rounded(), snapshot.step);
        let (role, step) = (snapshot.role, snapshot.step);
        work.record(Event::SnapshotWritten { fingerprint: work.fingerprint.into(), snapshot })?;
        if role == Role::Checkpoint { self.remove_old(work, step) } else { Ok(()) }
    }

    fn begin(
        &mut self,
        work: &mut Work<'_>,
        simulation: &Simulation,
        mut snapshot: Snapshot,
        file: SnapshotFile,
    ) -> Result<(), PipelineError> {
        self.finish(work)?;
        snapshot.header.recipe = work.recipe.to_owned();
        snapshot.header.provenance = provenance(work);
        let path = work.path(&file.file);
        let rest = match work.is_alone() {
            true => Rest::Write(Box::new(snapshot)),
            // only between steps do the other processes listen
            false => Rest::Complete(simulation.write(&snapshot, &path)?.expect("the first process has the file")),
        };
        let writing = std::thread::Builder::new()
            .name("snapshot".into())
            .spawn(move || {
                let (digest, output) = match rest {
                    Rest::Write(snapshot) => (snapshot.write(&path)?, Some(snapshot)),
                    Rest::Complete(file) => (file.complete()?, None),
                };
                let output = output.filter(|snapshot| snapshot.header.role == Role::Output).map(Arc::from);
                Ok(Written { digest, content: Snapshot::content_digest(&path)?, output })
            })
            .map_err(PipelineError::io(&work.folder))?;
        self.pending = Some((file, Writing::Begun(writing)));
        Ok(())
    }

    /// Deletes the checkpoints that a run at `step` no longer needs. The event comes first: a file that is still there is
    /// harmless, one that the ledger promises and that is gone is not.
    fn remove_old(&self, work: &mut Work<'_>, step: u64) -> Result<(), PipelineError> {
        for file in superseded(&work.history().snapshots, self.keep, step) {
            let path = work.path(&file);
            work.record(Event::SnapshotRemoved { fingerprint: work.fingerprint.into(), file })?;
            remove_if_there(&path)?;
        }
        Ok(())
    }
}

/// The checkpoints among `snapshots` (oldest first) that newer ones replace: all but lasting ones, the newest `keep`, and
/// the newest `keep` up to `step`. A run that went back for an output thus keeps what it has reached and what it continues
/// from if it is killed on its way.
fn superseded(snapshots: &[SnapshotFile], keep: usize, step: u64) -> Vec<String> {
    let passing = || snapshots.iter().rev().filter(|s| s.role == Role::Checkpoint && !s.lasting);
    let kept: Vec<&str> =
        passing().take(keep).chain(passing().filter(|s| s.step <= step).take(keep)).map(|s| s.file.as_str()).collect();
    passing().map(|s| &s.file).filter(|file| !kept.contains(&file.as_str())).cloned().collect()
}

/// Where a snapshot comes from, for its header. Without times, so that the same run writes the same file.
pub(crate) fn provenance(work: &Work<'_>) -> Value {
    json!({
        "program": concat!("comove ", env!("CARGO_PKG_VERSION")),
        "device": work.device.name(),
        "device_class": work.device.class(),
        "host": lock::host(),
        "stage": work.fingerprint,
    })
}

/// The file of the output that a recipe asks for at a moment.
pub(crate) fn output_name(moment: Moment) -> String {
    format!("output_{}.h5", moment.tag())
}

/// The file of the checkpoint at the end of a root step.
pub(crate) fn checkpoint_name(step: u64) -> String {
    format!("checkpoint_{step:06}.h5")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run that was at step 9 steps again from 1 to 4.
    #[test]
    fn checkpoints_stay_on_both_ways() {
        let snapshot = |step: u64, role: Role, lasting: bool| {
            let (a, z) = (0.1 * step as f64, 10.0 / step as f64 - 1.0);
            let (file, digest) = (checkpoint_name(step), String::new());
            SnapshotFile { file, digest, content: None, role, a, z, time: None, step, lasting }
        };
        let passing = |step| snapshot(step, Role::Checkpoint, false);
        let output = snapshot(5, Role::Output, true);
        let there =
            [passing(1), snapshot(2, Role::Checkpoint, true), passing(3), passing(4), output, passing(8), passing(9)];
        let gone = |keep, step| superseded(&there, keep, step);
        assert_eq!(gone(2, 4), [checkpoint_name(1)]);
        assert_eq!(gone(1, 4), [8, 3, 1].map(checkpoint_name));
        assert_eq!(gone(2, 9), [4, 3, 1].map(checkpoint_name));
        assert_eq!(gone(9, 9), [""; 0]);
    }
}

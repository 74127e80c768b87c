//! One stage being done, on a thread of its own.

use super::Executor;
use crate::campaign::{Node, Resolved};
use crate::cost::remaining::RunEstimator;
use crate::error::{CHANGED_FILE, PipelineError};
use crate::ledger::{Artefact, Event};
use crate::stage::evolve::{Evolve, observed, section, steps};
use crate::stage::result::digest_of;
use crate::stage::{Stage, Work};
use crate::storage::files::remove_if_there;
use crate::terminal::time_left::Estimator;
use comove_kernels::Device;
use comove_sim::complete_file;
use std::path::Path;

/// A stage that is about to be done.
pub(super) struct Job {
    /// What is to be done.
    pub(super) node: Node,
    pub(super) name: String,
    /// What the stages are called that it reads.
    pub(super) input_names: Vec<String>,
    /// Where, and with which inputs.
    pub(super) resolved: Resolved,
    /// Where a run computes.
    pub(super) device: Device,
}

impl Job {
    /// Does it; when this returns without an error, what was made is in the ledger.
    pub(super) fn execute(&self, executor: &Executor<'_>) -> Result<(), PipelineError> {
        self.attempt(executor).map_err(PipelineError::with_file_size_limit)
    }

    fn attempt(&self, executor: &Executor<'_>) -> Result<(), PipelineError> {
        let resolved = &self.resolved;
        let _span = tracing::info_span!("stage", name = %self.name).entered();
        let _phase = match self.node.stage().kind() {
            "evolve" => tracing::Span::none(),
            kind if kind.starts_with("ic_") => tracing::trace_span!(target: comove_sim::PHASE, "initial"),
            _ => tracing::trace_span!(target: comove_sim::PHASE, "analysis"),
        }
        .entered();
        let folder = executor.folder.path().join(&resolved.folder);
        let progress = executor.progress.job(&self.name);
        let mut work = Work {
            campaign: executor.folder.path(),
            folder: folder.clone(),
            fingerprint: &resolved.fingerprint,
            inputs: resolved.inputs.clone(),
            input_names: &self.input_names,
            files: &resolved.files,
            snapshots: &executor.snapshots,
            device: &self.device,
            crew: executor.crew,
            ledger: executor.ledger,
            progress: &progress,
            control: executor.control,
            program: executor.campaign.program.as_deref(),
            recipe: executor.recipe,
            is_rehearsal: false,
            estimator: self.node.stage().as_run().map(|run| self.estimator(run, &folder, executor)),
        };
        let files = self.node.stage().execute(&mut work)?;
        let artefact = |file: String| Ok(Artefact { digest: digest_of(&folder.join(&file), executor.progress)?, file });
        let artefacts = files.into_iter().map(artefact).collect::<Result<Vec<_>, PipelineError>>()?;
        executor.ledger.append(Event::StageFinished { fingerprint: resolved.fingerprint.clone(), artefacts })
    }

    fn estimator<'a>(
        &'a self,
        run: &'a Evolve,
        folder: &'a Path,
        executor: &'a Executor<'_>,
    ) -> Box<dyn Estimator + 'a> {
        let (campaign, history) = (executor.folder.path(), executor.ledger.history());
        Box::new(RunEstimator { run, device: &self.device, folder, campaign, history, remaining: None, last: None })
    }

    /// Makes its folder, and enters into the ledger that it begins.
    pub(super) fn begin(&self, executor: &Executor<'_>) -> Result<(), PipelineError> {
        let (stage, resolved) = (self.node.stage(), &self.resolved);
        let folder = executor.folder.path().join(&resolved.folder);
        tracing::info!("{} ({}): {}", self.name, resolved.folder, stage.describe());
        if let Some(older) = &resolved.older {
            tracing::warn!("{} ({}): {}; this one does not", self.name, resolved.folder, older.advice(stage));
        }
        std::fs::create_dir_all(&folder)
            .and_then(|()| complete_file::remove_leftovers(&folder))
            .map_err(PipelineError::io(&folder))?;
        executor.ledger.append(Event::StageStarted {
            fingerprint: resolved.fingerprint.clone(),
            folder: resolved.folder.clone(),
            kind: stage.kind().into(),
            name: self.name.clone(),
            identity: Some(resolved.identity(stage, executor.folder.path())),
        })
    }
}

/// Checks the results of a stage against the ledger; what does not match is refused by name, and the stage that made it is
/// then no longer done. Checkpoints are checked when they are used.
pub(super) fn verify(stage: &dyn Stage, resolved: &Resolved, executor: &Executor<'_>) -> Result<(), PipelineError> {
    let (fingerprint, folder) = (&resolved.fingerprint, executor.folder.path().join(&resolved.folder));
    let history = executor.ledger.history().stage(fingerprint).cloned().unwrap_or_default();
    let snapshots = stage.snapshots(&history);
    let snapshots = snapshots.iter().map(|s| (&s.file, &s.digest));
    let artefacts = history.artefacts.iter().flatten().map(|a| (&a.file, &a.digest));
    for (file, digest) in snapshots.chain(artefacts) {
        let reason = match digest_of(&folder.join(file), executor.progress) {
            Ok(found) if found == *digest => continue,
            Ok(_) => CHANGED_FILE.to_owned(),
            Err(PipelineError::Io { source, .. }) => source.to_string(),
            Err(error) => error.to_string(),
        };
        tracing::warn!("{}: {reason}; the stage is computed again", folder.join(file).display());
        executor.ledger.append(Event::FileRefused { fingerprint: fingerprint.clone(), file: file.clone(), reason })?;
    }
    Ok(())
}

/// Forgets what a stage has done, so that it is done again. Its files stay until new ones take their names; the records of a
/// run's steps go, which new ones would only be added to.
pub(super) fn forget(resolved: &Resolved, executor: &Executor<'_>) -> Result<(), PipelineError> {
    if executor.ledger.history().stage(&resolved.fingerprint).is_none() {
        return Ok(());
    }
    executor.ledger.append(Event::StageForced { fingerprint: resolved.fingerprint.clone() })?;
    for file in [steps::FILE, section::SUMMARY, observed::FILE] {
        remove_if_there(&executor.folder.path().join(&resolved.folder).join(file))?;
    }
    Ok(())
}

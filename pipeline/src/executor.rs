//! Runs a campaign: stage by stage, what is done is verified and not redone.

use crate::campaign::{Campaign, Resolved, Standing, Walk};
use crate::control::Control;
use crate::error::PipelineError;
use crate::folder::CampaignFolder;
use crate::ledger::{Artefact, Event, Identity, Ledger, StageHistory};
use crate::progress::Progress;
use crate::snapshots::Snapshots;
use crate::stage::result::digest_of;
use crate::stage::{Memory, Stage, StageResult, Work};
use comove_kernels::{Device, memory};
use comove_sim::complete_file;
use std::path::Path;
use std::time::Duration;

/// What running a campaign needs.
pub struct Executor<'a> {
    /// The campaign.
    pub campaign: &'a Campaign,
    /// Its folder, which this process has locked.
    pub folder: &'a CampaignFolder,
    /// The ledger of that folder.
    pub ledger: &'a Ledger,
    /// The snapshots in memory, of stages that are done and for those to come.
    pub snapshots: Snapshots,
    /// Where to compute.
    pub device: &'a Device,
    /// Where to show how far it is.
    pub progress: &'a Progress,
    /// What is asked for from outside.
    pub control: &'a Control,
    /// The recipe's text.
    pub recipe: &'a str,
}

impl Executor<'_> {
    /// Runs every stage that is not done, in order; returns their results.
    ///
    /// # Errors
    /// The first [`PipelineError`], after it entered the ledger.
    pub fn run(&mut self) -> Result<Vec<StageResult>, PipelineError> {
        let mut walk = Walk::new(self.campaign, self.folder.path());
        for n in walk.positions() {
            walk.look(n, &self.ledger.history())?;
            let Some(resolved) = walk.resolved(n).cloned() else { continue };
            self.verify(walk.stage(n), &resolved)?;
            match walk.look_again(n, &self.ledger.history())? {
                Standing::Done => tracing::info!("{}: done before", resolved.folder),
                _ => {
                    self.stage(walk.stage(n), &resolved)?;
                    walk.look(n, &self.ledger.history())?;
                }
            }
        }
        self.ledger.append(Event::CampaignFinished {})?;
        Ok(walk.results().cloned().collect())
    }

    fn stage(&mut self, stage: &dyn Stage, resolved: &Resolved) -> Result<(), PipelineError> {
        self.control.wait();
        if let Some(by) = self.control.stop(Duration::ZERO) {
            return self.interrupted(by);
        }
        tracing::info!("{}: {}", resolved.folder, stage.describe());
        let folder = self.folder.path().join(&resolved.folder);
        std::fs::create_dir_all(&folder)
            .and_then(|()| complete_file::remove_leftovers(&folder))
            .map_err(PipelineError::io(&folder))?;
        self.ledger.append(Event::StageStarted {
            fingerprint: resolved.fingerprint.clone(),
            folder: resolved.folder.clone(),
            kind: stage.kind().into(),
            identity: Some(self.identity(stage, resolved)),
        })?;
        match self.execute(stage, resolved, &folder) {
            Ok(()) => Ok(()),
            Err(PipelineError::Interrupted { by, .. }) => self.interrupted(by),
            Err(error) => {
                let (fingerprint, reason) = (resolved.fingerprint.clone(), error.to_string());
                self.ledger.append(Event::StageFailed { fingerprint, reason })?;
                Err(PipelineError::Stage { stage: resolved.folder.clone(), source: Box::new(error) })
            }
        }
    }

    fn execute(&mut self, stage: &dyn Stage, resolved: &Resolved, folder: &Path) -> Result<(), PipelineError> {
        let Memory { host, device } = stage.memory(self.device, None);
        // a run sees for itself what it takes of a GPU
        let needed = host + if matches!(self.device, Device::Cpu(_)) { device } else { 0.0 };
        let lacking = || memory::available().filter(|available| needed > *available);
        if lacking().is_some() {
            self.snapshots.clear();
        }
        if let Some(available) = lacking() {
            return Err(PipelineError::Memory { needed, available });
        }
        let mut work = Work {
            campaign: self.folder.path(),
            folder: folder.into(),
            fingerprint: &resolved.fingerprint,
            inputs: resolved.inputs.clone(),
            snapshots: &self.snapshots,
            device: self.device,
            ledger: self.ledger,
            progress: self.progress,
            control: self.control,
            program: self.campaign.program.as_deref(),
            recipe: self.recipe,
        };
        let files = stage.execute(&mut work)?;
        let artefact = |file: String| Ok(Artefact { digest: digest_of(&folder.join(&file))?, file });
        let artefacts = files.into_iter().map(artefact).collect::<Result<Vec<_>, PipelineError>>()?;
        self.ledger.append(Event::StageFinished { fingerprint: resolved.fingerprint.clone(), artefacts })
    }

    /// Checks the results of a stage against the ledger; what does not match is refused by name, and the stage that made
    /// it is then no longer done. Checkpoints are checked when they are used.
    fn verify(&self, stage: &dyn Stage, resolved: &Resolved) -> Result<(), PipelineError> {
        let (fingerprint, folder) = (&resolved.fingerprint, self.folder.path().join(&resolved.folder));
        let history = self.history(fingerprint);
        let snapshots = stage.snapshots(&history);
        let snapshots = snapshots.iter().map(|s| (&s.file, &s.digest));
        let artefacts = history.artefacts.iter().flatten().map(|a| (&a.file, &a.digest));
        for (file, digest) in snapshots.chain(artefacts) {
            let reason = match digest_of(&folder.join(file)) {
                Ok(found) if found == *digest => continue,
                Ok(_) => "it is not the file that was written: damaged or changed".to_owned(),
                Err(PipelineError::Io { source, .. }) => source.to_string(),
                Err(error) => error.to_string(),
            };
            tracing::warn!("{}: {reason}; what is missing is made again", folder.join(file).display());
            self.ledger.append(Event::FileRefused { fingerprint: fingerprint.clone(), file: file.clone(), reason })?;
        }
        Ok(())
    }

    /// What a stage is as it begins.
    fn identity(&self, stage: &dyn Stage, resolved: &Resolved) -> Identity {
        let name = |path: &Path| path.strip_prefix(self.folder.path()).unwrap_or(path).display().to_string();
        let made = resolved.inputs.iter().flatten();
        let made = made.map(|input| Artefact { file: name(&input.path), digest: input.content.clone() });
        Identity {
            label: stage.label(),
            describes: stage.describe(),
            results_version: stage.results_version(),
            parameters: stage.parameters(),
            extent: stage.extent(),
            inputs: resolved.files.iter().cloned().chain(made).collect(),
        }
    }

    fn history(&self, fingerprint: &str) -> StageHistory {
        self.ledger.history().stage(fingerprint).cloned().unwrap_or_default()
    }

    fn interrupted<T>(&mut self, by: String) -> Result<T, PipelineError> {
        self.ledger.append(Event::CampaignInterrupted { by: by.clone() })?;
        Err(PipelineError::Interrupted { folder: self.folder.path().into(), by })
    }
}

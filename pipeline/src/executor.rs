//! Runs a campaign: stage by stage, what is done is verified and not redone.

use crate::campaign::fingerprint::fingerprint;
use crate::campaign::{Campaign, Node};
use crate::control::Control;
use crate::error::PipelineError;
use crate::folder::CampaignFolder;
use crate::ledger::{Artefact, Event, History, Identity, Ledger, StageHistory};
use crate::progress::Progress;
use crate::snapshots::Snapshots;
use crate::stage::result::{digest_of, digest_of_input};
use crate::stage::{Input, Memory, Stage, StageResult, Work};
use comove_kernels::{Device, memory};
use comove_sim::complete_file;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A stage whose inputs are there: its fingerprint follows, and with it its folder and history.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// Its fingerprint.
    pub fingerprint: String,
    /// The name of its folder.
    pub folder: String,
    /// What it reads, input by input.
    pub inputs: Vec<Vec<Input>>,
    /// What it reads from outside.
    pub files: Vec<Artefact>,
}

/// Finds what a stage reads among the results of those before it, and its folder in a campaign with this history.
///
/// # Errors
/// [`PipelineError::Input`] if an input lacks something, [`PipelineError::Io`] if a file cannot be read.
pub fn resolve(node: &Node, results: &[&StageResult], history: &History) -> Result<Resolved, PipelineError> {
    let stage = node.stage();
    let inputs = results.iter().map(|result| stage.reads(result)).collect::<Result<Vec<_>, _>>()?;
    let file = |path: PathBuf| Ok(Artefact { digest: digest_of_input(&path)?, file: path.display().to_string() });
    let files = stage.files().into_iter().map(file).collect::<Result<Vec<_>, PipelineError>>()?;
    let digests = files
        .iter()
        .map(|file| file.digest.as_str())
        .chain(inputs.iter().flatten().map(|input| input.content.as_str()));
    let fingerprint = fingerprint(stage, digests);
    let folder = history.folder_of(&stage.label(), &fingerprint);
    Ok(Resolved { fingerprint, folder, inputs, files })
}

/// What a stage that is done has left in the folder `name`, as the ledger says.
pub fn result_of(stage: &dyn Stage, folder: &CampaignFolder, name: &str, history: &StageHistory) -> StageResult {
    StageResult {
        folder: folder.path().join(name),
        artefacts: history.artefacts.clone().unwrap_or_default(),
        snapshots: stage.snapshots(history),
    }
}

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
        let mut results: Vec<StageResult> = Vec::new();
        for node in &self.campaign.stages {
            let inputs: Vec<&StageResult> = self.campaign.inputs_of(node).into_iter().map(|n| &results[n]).collect();
            let result = match node.stage().given() {
                Some(given) => given?,
                None => self.stage(node, &inputs)?,
            };
            results.push(result);
        }
        self.ledger.append(Event::CampaignFinished {})?;
        Ok(results)
    }

    fn stage(&mut self, node: &Node, inputs: &[&StageResult]) -> Result<StageResult, PipelineError> {
        let (stage, resolved) = (node.stage(), resolve(node, inputs, &self.ledger.history())?);
        let folder = self.folder.path().join(&resolved.folder);
        self.verify(stage, &resolved.fingerprint, &folder)?;
        let history = self.history(&resolved.fingerprint);
        if stage.is_done(&history) {
            tracing::info!("{}: done before", resolved.folder);
            return Ok(result_of(stage, self.folder, &resolved.folder, &history));
        }
        self.control.wait();
        if let Some(by) = self.control.stop(Duration::ZERO) {
            return self.interrupted(by);
        }
        tracing::info!("{}: {}", resolved.folder, stage.describe());
        std::fs::create_dir_all(&folder)
            .and_then(|()| complete_file::remove_leftovers(&folder))
            .map_err(PipelineError::io(&folder))?;
        self.ledger.append(Event::StageStarted {
            fingerprint: resolved.fingerprint.clone(),
            folder: resolved.folder.clone(),
            kind: stage.kind().into(),
            identity: Some(self.identity(node, &resolved)),
        })?;
        match self.execute(node, &resolved, &folder) {
            Ok(()) => Ok(result_of(stage, self.folder, &resolved.folder, &self.history(&resolved.fingerprint))),
            Err(PipelineError::Interrupted { by, .. }) => self.interrupted(by),
            Err(error) => {
                let (fingerprint, reason) = (resolved.fingerprint, error.to_string());
                self.ledger.append(Event::StageFailed { fingerprint, reason })?;
                Err(PipelineError::Stage { stage: resolved.folder, source: Box::new(error) })
            }
        }
    }

    fn execute(&mut self, node: &Node, resolved: &Resolved, folder: &Path) -> Result<(), PipelineError> {
        let Memory { host, device } = node.stage().memory(self.device, None);
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
        let files = node.stage().execute(&mut work)?;
        let artefact = |file: String| Ok(Artefact { digest: digest_of(&folder.join(&file))?, file });
        let artefacts = files.into_iter().map(artefact).collect::<Result<Vec<_>, PipelineError>>()?;
        self.ledger.append(Event::StageFinished { fingerprint: resolved.fingerprint.clone(), artefacts })
    }

    /// Checks the results of a stage against the ledger; what does not match is refused by name, and the stage that made
    /// it is then no longer done. Checkpoints are checked when they are used.
    fn verify(&mut self, stage: &dyn Stage, fingerprint: &str, folder: &Path) -> Result<(), PipelineError> {
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
            self.ledger.append(Event::FileRefused { fingerprint: fingerprint.into(), file: file.clone(), reason })?;
        }
        Ok(())
    }

    /// What a stage is as it begins.
    fn identity(&self, node: &Node, resolved: &Resolved) -> Identity {
        let stage = node.stage();
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

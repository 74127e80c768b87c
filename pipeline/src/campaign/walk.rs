//! One walk over a campaign, stage by stage: what each reads, its fingerprint, its history, and what it has left. Whatever
//! asks how far a campaign is, or takes it further, goes this way.

use super::Campaign;
use super::fingerprint::fingerprint;
use super::names::names;
use crate::error::PipelineError;
use crate::ledger::{Artefact, History, Identity};
use crate::progress::Progress;
use crate::stage::result::digest_of_input;
use crate::stage::{Input, Stage, StageResult};
use std::path::{Path, PathBuf};

/// Where a stage stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its result is there without any work.
    Given,
    /// Something that it reads is not there yet.
    Waiting,
    /// Everything that it reads is there, and something of it is left to do.
    ToDo,
    /// There is nothing left to do.
    Done,
}

/// A stage whose inputs are there: its fingerprint follows, and with it its folder.
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

impl Resolved {
    /// What `stage` is, in the campaign folder `campaign`: for the ledger.
    pub fn identity(&self, stage: &dyn Stage, campaign: &Path) -> Identity {
        let name = |path: &Path| path.strip_prefix(campaign).unwrap_or(path).display().to_string();
        let made = self.inputs.iter().flatten();
        let made = made.map(|input| Artefact { file: name(&input.path), digest: input.content.clone() });
        Identity {
            label: stage.label(),
            describes: stage.describe(),
            results_version: stage.results_version(),
            parameters: stage.parameters(),
            extent: stage.extent(),
            inputs: self.files.iter().cloned().chain(made).collect(),
        }
    }
}

/// What is known of the stages of a campaign, by their positions in it.
#[derive(Debug)]
pub struct Walk<'a> {
    campaign: &'a Campaign,
    folder: PathBuf,
    names: Vec<String>,
    progress: Progress,
    inputs: Vec<Vec<usize>>,
    resolved: Vec<Option<Resolved>>,
    results: Vec<Option<StageResult>>,
}

impl<'a> Walk<'a> {
    /// A walk over `campaign` in its folder, which need not be there.
    pub fn new(campaign: &'a Campaign, folder: &Path) -> Self {
        let inputs: Vec<_> = campaign.stages.iter().map(|node| campaign.inputs_of(node)).collect();
        let nothing = inputs.len();
        let (names, folder, progress) = (names(campaign), folder.into(), Progress::default());
        Self { campaign, folder, names, progress, inputs, resolved: vec![None; nothing], results: vec![None; nothing] }
    }

    /// The same, which shows at `progress` what it reads.
    #[must_use]
    pub fn shown(self, progress: &Progress) -> Self {
        Self { progress: progress.clone(), ..self }
    }

    /// A walk that has looked at every stage.
    ///
    /// # Errors
    /// As [`Walk::look`].
    pub fn through(campaign: &'a Campaign, folder: &Path, history: &History) -> Result<Self, PipelineError> {
        let mut walk = Self::new(campaign, folder).shown(&Progress::on_terminal());
        for n in walk.positions() {
            walk.look(n, history)?;
        }
        Ok(walk)
    }

    /// A walk that has looked at every stage that can be looked at: what hinders others is for those who need them.
    pub fn where_possible(campaign: &'a Campaign, folder: &Path, history: &History) -> Self {
        let mut walk = Self::new(campaign, folder).shown(&Progress::on_terminal());
        for n in walk.positions() {
            // the error is met again where the stage is to be done
            let _ = walk.look(n, history);
        }
        walk
    }

    /// Takes stage `n`, which has been looked at, out of what is done until it is looked at again: its files may have been
    /// refused, or are to be made again.
    pub fn set_aside(&mut self, n: usize) {
        self.results[n] = None;
    }

    /// The campaign's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Every stage's position.
    pub fn positions(&self) -> std::ops::Range<usize> {
        0..self.inputs.len()
    }

    /// The stage at position `n`.
    pub fn stage(&self, n: usize) -> &'a dyn Stage {
        self.campaign.stages[n].stage()
    }

    /// What it is called for a reader.
    pub fn name(&self, n: usize) -> &str {
        &self.names[n]
    }

    /// The positions of what it needs.
    pub fn inputs(&self, n: usize) -> &[usize] {
        &self.inputs[n]
    }

    /// What it reads and where it lies, once it has been looked at with its inputs there.
    pub fn resolved(&self, n: usize) -> Option<&Resolved> {
        self.resolved[n].as_ref()
    }

    /// What it has left, once it has been seen to be done.
    pub fn result(&self, n: usize) -> Option<&StageResult> {
        self.results[n].as_ref()
    }

    /// Where it stood when it was looked at.
    pub fn standing(&self, n: usize) -> Standing {
        match (&self.results[n], &self.resolved[n]) {
            (Some(_), None) => Standing::Given,
            (Some(_), Some(_)) => Standing::Done,
            (None, Some(_)) => Standing::ToDo,
            (None, None) => Standing::Waiting,
        }
    }

    /// What all stages have left that were seen to be done.
    pub fn results(&self) -> impl Iterator<Item = &StageResult> {
        self.results.iter().flatten()
    }

    /// Where stage `n` stands with this history. Files are read once, for their digests; what is done stays done.
    ///
    /// # Errors
    /// [`PipelineError::Input`] if an input lacks something, [`PipelineError::Io`] if a file cannot be read.
    pub fn look(&mut self, n: usize, history: &History) -> Result<Standing, PipelineError> {
        let stage = self.stage(n);
        if self.results[n].is_none()
            && let Some(given) = stage.given(&self.progress)
        {
            self.results[n] = Some(given?);
        }
        if self.results[n].is_some() {
            return Ok(self.standing(n));
        }
        if self.resolved[n].is_none() {
            let Some(resolved) = self.resolve(n)? else { return Ok(Standing::Waiting) };
            self.resolved[n] = Some(resolved);
        }
        let resolved = self.resolved[n].as_mut().expect("just made");
        // another stage may have taken the name since
        resolved.folder = history.folder_of(&stage.label(), &resolved.fingerprint);
        let Some(done) = history.stage(&resolved.fingerprint).filter(|history| stage.is_done(history)) else {
            return Ok(Standing::ToDo);
        };
        self.results[n] = Some(StageResult {
            folder: self.folder.join(&resolved.folder),
            artefacts: done.artefacts.clone().unwrap_or_default(),
            snapshots: stage.snapshots(done),
        });
        Ok(Standing::Done)
    }

    /// What stage `n` reads among the results of those before it; `None` if not all of them are there.
    fn resolve(&self, n: usize) -> Result<Option<Resolved>, PipelineError> {
        let stage = self.stage(n);
        let results: Option<Vec<&StageResult>> = self.inputs[n].iter().map(|&input| self.result(input)).collect();
        let Some(results) = results else { return Ok(None) };
        let inputs = results.into_iter().map(|result| stage.reads(result)).collect::<Result<Vec<_>, _>>()?;
        let file = |path: PathBuf| {
            Ok(Artefact { digest: digest_of_input(&path, &self.progress)?, file: path.display().to_string() })
        };
        let files = stage.files().into_iter().map(file).collect::<Result<Vec<_>, PipelineError>>()?;
        let read = inputs.iter().flatten().map(|input| input.content.as_str());
        let fingerprint = fingerprint(stage, files.iter().map(|file| file.digest.as_str()).chain(read));
        Ok(Some(Resolved { fingerprint, folder: String::new(), inputs, files }))
    }
}

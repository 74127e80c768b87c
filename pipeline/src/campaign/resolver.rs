//! One walk over a campaign, stage by stage: what each reads, its fingerprint, its history, and what it has left. Whatever
//! asks how far a campaign is, or takes it further, goes this way.

use super::deferred::{Deferred, own_name};
use super::fingerprint::fingerprint;
use super::names::{Marks, folder_words, names};
use super::{Campaign, Node, visit};
use crate::error::PipelineError;
use crate::ledger::{Artefact, History, Identity, StageHistory};
use crate::recipe::RecipeError;
use crate::stage::result::digest_of_input;
use crate::stage::{Input, Stage, StageResult};
use crate::terminal::progress::Progress;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};

/// Where a stage comes from: its place in the campaign; of one that is decided on later the path of that decision and its
/// place there. The same in every resolver.
pub(crate) type Path = Vec<usize>;

/// Stages that a campaign may have, and decisions one after another.
const MOST: usize = 20_000;
const DEEPEST: usize = 64;

/// How far a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StageStatus {
    /// Its result is there without any work.
    Given,
    /// Something that it reads is not there yet.
    Waiting,
    /// It has said which further stages there are: `then`.
    Decided,
    /// Everything that it reads is there, and something of it is left to do.
    ToDo,
    /// There is nothing left to do.
    Done,
}

/// A stage whose inputs are there: its fingerprint follows, and with it its folder.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub fingerprint: String,
    /// The version of its results: the program's, or an earlier one that it continues.
    pub version: u32,
    /// What an earlier version of a run has made, further than this one, and may be continued on request.
    pub older: Option<Older>,
    /// The name of its folder.
    pub folder: String,
    /// What it reads, input by input.
    pub inputs: Vec<Vec<Input>>,
    /// What it reads from outside.
    pub files: Vec<Artefact>,
}

/// A run that an earlier version of its stage has made.
#[derive(Clone, Debug)]
pub(crate) struct Older {
    /// That version.
    pub version: u32,
    pub folder: String,
}

impl Older {
    /// What may be done with it.
    pub(crate) fn advice(&self, stage: &dyn Stage) -> String {
        let Self { version, folder } = self;
        format!("{folder} has results of version {version} of {}; --accept-version continues it", stage.kind())
    }
}

impl Resolved {
    /// What `stage` is, in the campaign folder `campaign`: for the ledger.
    pub(crate) fn identity(&self, stage: &dyn Stage, campaign: &FilePath) -> Identity {
        let name = |path: &FilePath| path.strip_prefix(campaign).unwrap_or(path).display().to_string();
        let made = self.inputs.iter().flatten();
        let made = made.map(|input| Artefact { file: name(&input.path), digest: input.content.clone() });
        Identity {
            label: stage.label(),
            describes: stage.describe(),
            results_version: self.version,
            parameters: stage.parameters(),
            extent: stage.extent(),
            inputs: self.files.iter().cloned().chain(made).collect(),
        }
    }
}

/// A stage of a campaign, and what is known of it.
struct ResolvedStage {
    /// As the recipe has it, or what it has become if it had to wait for a value.
    node: Node,
    /// As the recipe has it.
    original: Node,
    path: Path,
    /// The positions of what it needs.
    inputs: Vec<usize>,
    /// The middle of its folder's name.
    words: String,
    /// Its parameters and those of what it reads, as the recipe has them.
    marks: Marks,
    progress: StageProgress,
}

/// How far a stage is, with what is known then: one state at a time.
enum StageProgress {
    /// Something that it reads is not there yet, or nobody has looked.
    Waiting,
    /// It has decided on the stages at these positions.
    Decided(Vec<usize>),
    /// It has a fingerprint and a folder, and is not done.
    ToDo(Resolved),
    /// It is done.
    Done(Resolved, StageResult),
    /// Its result is there without any work.
    Given(StageResult),
}

impl ResolvedStage {
    fn resolved(&self) -> Option<&Resolved> {
        match &self.progress {
            StageProgress::ToDo(resolved) | StageProgress::Done(resolved, _) => Some(resolved),
            _ => None,
        }
    }

    fn result(&self) -> Option<&StageResult> {
        match &self.progress {
            StageProgress::Done(_, result) | StageProgress::Given(result) => Some(result),
            _ => None,
        }
    }

    fn status(&self) -> StageStatus {
        match self.progress {
            StageProgress::Waiting => StageStatus::Waiting,
            StageProgress::Decided(_) => StageStatus::Decided,
            StageProgress::ToDo(_) => StageStatus::ToDo,
            StageProgress::Done(..) => StageStatus::Done,
            StageProgress::Given(_) => StageStatus::Given,
        }
    }
}

/// The stages of a campaign by their positions in it, resolved one after the other: what each reads, its fingerprint, its
/// history and its result.
///
/// Stages that are decided on the way follow after those that were there before.
pub(crate) struct CampaignResolver<'a> {
    campaign: &'a Campaign,
    folder: PathBuf,
    progress: Progress,
    stages: Vec<ResolvedStage>,
    /// What they are called, until there are more of them or more is known of one.
    names: OnceCell<Vec<String>>,
    /// Whether runs that an earlier version has made are continued, though nobody has said so before.
    accept_older: bool,
}

impl<'a> CampaignResolver<'a> {
    /// A walk over `campaign` in its folder, which need not be there.
    pub(crate) fn new(campaign: &'a Campaign, folder: &FilePath) -> Self {
        let mut resolver = Self {
            campaign,
            folder: folder.into(),
            progress: Progress::default(),
            stages: Vec::new(),
            names: OnceCell::new(),
            accept_older: false,
        };
        for (n, node) in campaign.stages.iter().enumerate() {
            resolver.push(node.clone(), vec![n]);
        }
        resolver.find_words(0);
        resolver
    }

    /// The same, which shows at `progress` what it reads.
    #[must_use]
    pub(crate) fn shown(self, progress: &Progress) -> Self {
        Self { progress: progress.clone(), ..self }
    }

    /// The same, in which runs that an earlier version has made are continued: `--accept-version`.
    #[must_use]
    pub(crate) fn accepting_older(self, accept_older: bool) -> Self {
        Self { accept_older, ..self }
    }

    /// Takes in a stage whose inputs are there.
    fn push(&mut self, node: Node, path: Path) {
        let position = |input: &Node| self.position(input).expect("inputs come first");
        let inputs = node.inputs().iter().map(position).collect();
        let (original, progress) = (node.clone(), StageProgress::Waiting);
        let (words, marks) = (String::new(), Marks::default());
        self.stages.push(ResolvedStage { node, original, path, inputs, words, marks, progress });
    }

    /// Finds the words in the folder names of the stages from `first` on: those of the recipe, or of one decision. Stages of
    /// another decision count for nothing, since they may or may not be there yet.
    fn find_words(&mut self, first: usize) {
        for n in first..self.stages.len() {
            let inputs = self.reads(n).iter().map(|&input| &self.stages[input]);
            let inputs = inputs.map(|input| (&input.original, &input.marks));
            let marks = Marks::of(&self.stages[n].original, inputs, false);
            self.stages[n].marks = marks;
        }
        let stages: Vec<_> = self.stages[first..].iter().map(|stage| (&stage.original, &stage.marks)).collect();
        let words = folder_words(&stages);
        for (stage, words) in self.stages[first..].iter_mut().zip(words) {
            stage.words = words;
        }
    }

    /// The words in the folder name of stage `n`, until it has a folder.
    pub(super) fn words(&self, n: usize) -> &str {
        &self.stages[n].words
    }

    /// The name of the folder of stage `n`, which has this fingerprint. Stages that are one have the words of the first.
    fn folder_of(&self, n: usize, fingerprint: &str, history: &History) -> String {
        let resolved = self.stages.iter().filter_map(ResolvedStage::resolved);
        let same = self.stages[..n].iter().find(|stage| stage.resolved().is_some_and(|r| r.fingerprint == fingerprint));
        let words = same.map_or_else(|| self.words(n), |same| same.words.as_str());
        let is_taken = |name: &str| resolved.clone().any(|r| r.folder == name && r.fingerprint != fingerprint);
        history.folder_of([&self.stage(n).label(), words], fingerprint, is_taken)
    }

    /// The position of a stage of the recipe.
    fn position(&self, node: &Node) -> Option<usize> {
        self.stages.iter().position(|stage| stage.original.is(node))
    }

    /// A walk that has looked at every stage, and by stage what the results lack that it reads: other stages may go on.
    pub(crate) fn through(
        campaign: &'a Campaign,
        folder: &FilePath,
        history: &History,
    ) -> Result<(Self, BTreeMap<usize, PipelineError>), PipelineError> {
        let progress = Progress::on_terminal();
        let (mut resolver, mut lacking) = (Self::new(campaign, folder).shown(&progress), BTreeMap::new());
        let (line, mut n) = (progress.stage(), 0);
        while n < resolver.positions().end {
            line.doing(&format!(
                "looking at {} ({} of {})",
                own_name(resolver.stage(n)),
                n + 1,
                resolver.positions().end
            ));
            match resolver.look(n, history) {
                Err(error @ PipelineError::Input { .. }) if !resolver.reads(n).is_empty() => {
                    _ = lacking.insert(n, error)
                }
                looked => _ = looked?,
            }
            n += 1;
        }
        Ok((resolver, lacking))
    }

    /// Looks at every stage, those that are decided on the way among them; by stage what hinders looking at it, if anything
    /// does.
    pub(crate) fn look_at_all(&mut self, history: &History) -> Vec<Option<PipelineError>> {
        let mut hindrances = Vec::new();
        while hindrances.len() < self.positions().end {
            hindrances.push(self.look(hindrances.len(), history).err());
        }
        hindrances
    }

    /// A walk that has looked at every stage that can be looked at: what hinders others is for those who need them.
    pub(crate) fn where_possible(campaign: &'a Campaign, folder: &FilePath, history: &History) -> Self {
        let mut resolver = Self::new(campaign, folder).shown(&Progress::on_terminal());
        // the errors are met again where the stages are to be done
        let _ = resolver.look_at_all(history);
        resolver
    }

    /// Takes stage `n`, which has been looked at, out of what is done until it is looked at again: its files may have been
    /// refused, or are to be made again.
    pub(crate) fn set_aside(&mut self, n: usize) {
        self.stages[n].progress = match std::mem::replace(&mut self.stages[n].progress, StageProgress::Waiting) {
            StageProgress::Done(resolved, _) => StageProgress::ToDo(resolved),
            StageProgress::Given(_) => StageProgress::Waiting,
            other => other,
        };
    }

    /// Finds out anew what stage `n` is: what an earlier version has made of it was forgotten.
    pub(crate) fn resolve_again(&mut self, n: usize) {
        if !matches!(self.stages[n].progress, StageProgress::Decided(_)) {
            self.stages[n].progress = StageProgress::Waiting;
        }
    }

    pub(crate) fn folder(&self) -> &FilePath {
        &self.folder
    }

    /// Every stage's position; there may be more after one was looked at.
    pub(crate) fn positions(&self) -> std::ops::Range<usize> {
        0..self.stages.len()
    }

    /// Every stage's position in the order of the recipe's `campaign([…])`; stages that it does not list follow, and a stage
    /// that was decided on follows the decision.
    pub(crate) fn listed_order(&self) -> Vec<usize> {
        let listed = &self.campaign.listed;
        let mut positions: Vec<usize> = self.positions().collect();
        positions.sort_by_key(|&n| {
            let path = self.path(n);
            (listed.iter().position(|&stage| stage == path[0]).unwrap_or(listed.len()), path.clone())
        });
        positions
    }

    /// The stage at position `n`, as far as it is known.
    pub(crate) fn node(&self, n: usize) -> &Node {
        &self.stages[n].node
    }

    pub(crate) fn stage(&self, n: usize) -> &dyn Stage {
        self.node(n).stage()
    }

    pub(crate) fn path(&self, n: usize) -> &Path {
        &self.stages[n].path
    }

    /// Whether it is not known yet what stage, or which stages, this will be.
    pub(crate) fn is_undecided(&self, n: usize) -> bool {
        self.node(n).decision().is_some() && self.further(n).is_none()
    }

    /// The positions of the further stages that it has decided on.
    pub(crate) fn further(&self, n: usize) -> Option<&[usize]> {
        match &self.stages[n].progress {
            StageProgress::Decided(further) => Some(further),
            _ => None,
        }
    }

    /// What it is called for a reader, among the stages that are known by now.
    pub(crate) fn name(&self, n: usize) -> &str {
        let named = || {
            let stages: Vec<_> = self.positions().map(|n| (self.node(n), self.reads(n))).collect();
            names(&stages)
        };
        &self.names.get_or_init(named)[n]
    }

    /// The positions of what it needs.
    pub(crate) fn inputs(&self, n: usize) -> &[usize] {
        &self.stages[n].inputs
    }

    /// The positions of those among them whose results it reads; for the others it has waited to be decided.
    pub(crate) fn reads(&self, n: usize) -> &[usize] {
        let stage = &self.stages[n];
        match stage.original.decision() {
            Some((_, Deferred::Stage { own, .. })) => &stage.inputs[..*own],
            _ => &stage.inputs,
        }
    }

    /// What there has to be so that there is this stage, or its result: its inputs, and the stage that has decided on it.
    pub(crate) fn needs(&self, n: usize) -> Vec<usize> {
        let path = self.path(n);
        let parent = self.stages.iter().position(|other| other.path == path[..path.len() - 1]);
        self.inputs(n).iter().copied().chain(parent).collect()
    }

    /// What it reads and where it lies, once it has been looked at with its inputs there.
    pub(crate) fn resolved(&self, n: usize) -> Option<&Resolved> {
        self.stages[n].resolved()
    }

    /// What it has left, once it has been seen to be done.
    pub(crate) fn result(&self, n: usize) -> Option<&StageResult> {
        self.stages[n].result()
    }

    /// The positions of what it needs that was not seen to be done.
    pub(crate) fn missing(&self, n: usize) -> impl Iterator<Item = usize> {
        self.inputs(n).iter().copied().filter(|&input| self.result(input).is_none())
    }

    /// What `history` knows of it, once it has been looked at with its inputs there.
    pub(crate) fn known<'h>(&self, n: usize, history: &'h History) -> Option<&'h StageHistory> {
        self.resolved(n).and_then(|resolved| history.stage(&resolved.fingerprint))
    }

    /// Whether it has failed and is not done.
    pub(crate) fn has_failed(&self, n: usize, history: &History) -> bool {
        !self.is_done(n) && self.known(n, history).is_some_and(|known| known.failure.is_some())
    }

    /// Whether there was nothing left to do of it when it was looked at.
    pub(crate) fn is_done(&self, n: usize) -> bool {
        matches!(self.status(n), StageStatus::Given | StageStatus::Decided | StageStatus::Done)
    }

    /// Its status when it was looked at.
    pub(crate) fn status(&self, n: usize) -> StageStatus {
        self.stages[n].status()
    }

    /// What all stages have left that were seen to be done.
    pub(crate) fn results(&self) -> impl Iterator<Item = &StageResult> {
        self.stages.iter().filter_map(ResolvedStage::result)
    }

    /// Where stage `n` stands with this history. Files are read once, for their digests; what is done stays done, and what
    /// is decided stays decided.
    ///
    /// # Errors
    /// [`PipelineError::Input`] if an input lacks something, [`PipelineError::Io`] if a file cannot be read,
    /// [`PipelineError::Recipe`] where the recipe fails with a result.
    pub(crate) fn look(&mut self, n: usize, history: &History) -> Result<StageStatus, PipelineError> {
        if self.is_undecided(n) && !self.decide(n)? {
            return Ok(StageStatus::Waiting);
        }
        match &self.stages[n].progress {
            StageProgress::Decided(_) | StageProgress::Done(..) | StageProgress::Given(_) => return Ok(self.status(n)),
            StageProgress::Waiting | StageProgress::ToDo(_) => {}
        }
        let node = self.node(n).clone();
        let stage = node.stage();
        if let Some(given) = stage.given(history, &self.progress) {
            self.stages[n].progress = StageProgress::Given(given?);
            return Ok(StageStatus::Given);
        }
        let resolved = match std::mem::replace(&mut self.stages[n].progress, StageProgress::Waiting) {
            StageProgress::ToDo(resolved) => Some(resolved),
            _ => self.resolve(n, history)?,
        };
        let Some(mut resolved) = resolved else { return Ok(StageStatus::Waiting) };
        // another stage may have taken the name since
        resolved.folder = self.folder_of(n, &resolved.fingerprint, history);
        self.stages[n].progress = match history.stage(&resolved.fingerprint).filter(|history| stage.is_done(history)) {
            None => StageProgress::ToDo(resolved),
            Some(done) => {
                let result = StageResult {
                    folder: self.folder.join(&resolved.folder),
                    artefacts: done.artefacts.clone().unwrap_or_default(),
                    snapshots: stage.snapshots(done),
                };
                StageProgress::Done(resolved, result)
            }
        };
        Ok(self.status(n))
    }

    /// Decides stage `n`; whether that was possible.
    fn decide(&mut self, n: usize) -> Result<bool, PipelineError> {
        let node = self.stages[n].original.clone();
        let (undecided, deferred) = node.decision().expect("it is undecided");
        let campaign = self.campaign;
        let program = campaign.program.as_deref().expect("a campaign from a recipe has its program");
        let results: Option<Vec<&StageResult>> = self.inputs(n).iter().map(|&input| self.result(input)).collect();
        let Some(results) = results else { return Ok(false) };
        match deferred {
            Deferred::Stage { needs, make, .. } => {
                self.stages[n].node = undecided.stage((needs, &**make), node.inputs(), &results, program)?;
            }
            Deferred::Then(closure, nodes_of) => {
                // what the input is by now has the kind and the label that it had before
                let wanted = undecided.further((closure, *nodes_of), &node.inputs()[0], results[0], program)?;
                let before = self.stages.len();
                let mut nodes: Vec<Node> = self.stages.iter().map(|stage| stage.original.clone()).collect();
                wanted.iter().for_each(|node| visit(node, &mut nodes));
                let depth = self.path(n).len();
                if nodes.len() > MOST || depth > DEEPEST {
                    let message = format!(
                        "then: more than {MOST} stages, or more than {DEEPEST} decisions in sequence; end \
                                 the recursion"
                    );
                    return Err(RecipeError::at(program.source(), undecided.place, message).into());
                }
                for (k, node) in nodes.split_off(before).into_iter().enumerate() {
                    self.push(node, self.path(n).iter().copied().chain([k]).collect());
                }
                self.find_words(before);
                let position = |wanted: &Node| self.position(wanted).expect("just pushed");
                self.stages[n].progress = StageProgress::Decided(wanted.iter().map(position).collect());
            }
        }
        self.names.take();
        Ok(true)
    }

    /// What stage `n` reads among the results of those before it; `None` if not all of them are there.
    fn resolve(&self, n: usize, history: &History) -> Result<Option<Resolved>, PipelineError> {
        let stage = self.stage(n);
        let results: Option<Vec<&StageResult>> = self.reads(n).iter().map(|&input| self.result(input)).collect();
        let Some(results) = results else { return Ok(None) };
        let inputs = results.into_iter().map(|result| stage.reads(result)).collect::<Result<Vec<_>, _>>()?;
        let file = |path: PathBuf| {
            Ok(Artefact { digest: digest_of_input(&path, &self.progress)?, file: path.display().to_string() })
        };
        let files = stage.files().into_iter().map(file).collect::<Result<Vec<_>, PipelineError>>()?;
        let read = inputs.iter().flatten().map(|input| input.content.as_str());
        let digests: Vec<&str> = files.iter().map(|file| file.digest.as_str()).chain(read).collect();
        let of_version = |version: u32| fingerprint(stage, version, digests.iter().copied());
        let (mut version, mut older) = (stage.results_version(), None);
        let mut fingerprint = of_version(version);
        let reached = |fingerprint: &str| history.stage(fingerprint).and_then(StageHistory::reached);
        // only a run has an inside that can be continued: the latest version that got further than this one, if that is not done
        let is_done = history.stage(&fingerprint).is_some_and(|known| stage.is_done(known));
        let is_open = stage.as_run().is_some() && !is_done;
        let earlier = (1..version).rev().filter(|_| is_open).map(|version| (version, of_version(version)));
        if let Some((made_by, made)) = earlier.into_iter().find(|(_, made)| reached(made) > reached(&fingerprint)) {
            let known = history.stage(&made).expect("it has got somewhere");
            if self.accept_older || known.continued_by.contains(&version) {
                (version, fingerprint) = (made_by, made);
            } else {
                older = Some(Older { version: made_by, folder: known.folder.clone() });
            }
        }
        Ok(Some(Resolved { fingerprint, version, older, folder: String::new(), inputs, files }))
    }
}

//! `comove script`: a script that looks at what a campaign has left.

use super::{given, read_as, stored};
use crate::campaign::deferred::THEN;
use crate::campaign::{CampaignResolver, select};
use crate::cli;
use crate::error::PipelineError;
use crate::ledger::{History, SnapshotFile, StageHistory, history};
use crate::recipe::api::campaign_view::{CampaignView, KeptAnalysis, KeptCampaign};
use crate::recipe::api::run_view::{Called, KeptRun, RunView};
use crate::recipe::{self, Recipe};
use crate::stage::{Input, Selection, StageResult, evolve, saved};
use crate::storage::folder::CampaignFolder;
use crate::storage::snapshots::Snapshots;
use crate::terminal::progress::Progress;
use comove_sim::Role;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Evaluates it. Nothing is locked: what a process that works on the campaign writes meanwhile is there whole or not at all.
pub(super) fn script(arguments: cli::Script) -> Result<(), PipelineError> {
    let cli::Script { script: path, campaign: dir, parameters, output } = arguments;
    let source = read_as("script", &path)?;
    let given = given(parameters)?;
    let folder = CampaignFolder::open(&dir)?;
    let (history, _) = history::read(&folder.ledger())?;
    let (recipe, _) = stored(&folder)?;
    let campaign = CampaignView(Arc::new(kept(&recipe, &dir, &history)?));
    let output = output.unwrap_or_else(|| dir.join("scripts").join(path.file_stem().unwrap_or_default()));
    recipe::script::run(source, given, &campaign, &output)
}

/// What a script sees of a stage.
enum Seen {
    Run,
    Analysis,
    /// Neither: an initial condition, a decision.
    Nothing,
}

impl Seen {
    fn of(kind: &str) -> Self {
        match kind {
            evolve::KIND | saved::KIND => Self::Run,
            THEN => Self::Nothing,
            kind if kind.starts_with("ic_") => Self::Nothing,
            _ => Self::Analysis,
        }
    }
}

/// What there is of a campaign: what its recipe has, and what else its ledger knows.
fn kept(recipe: &Recipe, dir: &Path, history: &History) -> Result<KeptCampaign, PipelineError> {
    let progress = Progress::on_terminal();
    let snapshots = Snapshots::new(&progress);
    let mut resolver = CampaignResolver::new(&recipe.campaign, dir).shown(&progress);
    let hindrances = resolver.look_at_all(history);
    let (mut runs, mut analyses, mut folders) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (n, hindrance) in resolver.positions().zip(hindrances) {
        let hindrance = hindrance.map(|error| error.to_string());
        let known = known(&resolver, n, history);
        folders.extend(known.map(|known| known.folder.as_str()));
        match Seen::of(resolver.stage(n).kind()) {
            Seen::Run => runs.push(run(&resolver, n, known, hindrance, &snapshots)?),
            Seen::Analysis => analyses.push(analysis(&resolver, n, hindrance)),
            Seen::Nothing => {}
        }
    }
    let others = history.stages().map(|(_, known)| known).filter(|known| !folders.contains(known.folder.as_str()));
    let mut other_runs = Vec::new();
    let mut other_analyses = Vec::new();
    for known in others {
        match Seen::of(&known.kind) {
            Seen::Run => other_runs.push(other_run(dir, known, &snapshots)),
            Seen::Analysis => other_analyses.push(other_analysis(dir, known)),
            Seen::Nothing => {}
        }
    }
    Ok(KeptCampaign {
        name: recipe.campaign.name.clone(),
        folder: dir.into(),
        parameters: recipe.parameters.declared.iter().map(|p| (p.name.as_str().into(), p.value.clone())).collect(),
        runs,
        analyses,
        others: (other_runs, other_analyses),
        progress,
    })
}

/// What the ledger knows of stage `n`; of a run that an earlier version has got further with what it knows of that.
fn known<'h>(resolver: &CampaignResolver<'_>, n: usize, history: &'h History) -> Option<&'h StageHistory> {
    let resolved = resolver.resolved(n)?;
    match &resolved.older {
        Some(older) => history.stages().map(|(_, stage)| stage).find(|stage| stage.folder == older.folder),
        None => history.stage(&resolved.fingerprint),
    }
}

/// Run `n`, or the snapshot from elsewhere.
fn run(
    resolver: &CampaignResolver<'_>,
    n: usize,
    known: Option<&StageHistory>,
    hindrance: Option<String>,
    snapshots: &Snapshots,
) -> Result<RunView, PipelineError> {
    let stage = resolver.stage(n);
    let outputs = match (resolver.result(n), known) {
        (Some(result), _) => Selection::All.of(result)?,
        (None, Some(known)) => outputs(&resolver.folder().join(&known.folder), &stage.snapshots(known)),
        (None, None) => Vec::new(),
    };
    let of_result = resolver.result(n).map(|result| result.folder.clone());
    let kept = KeptRun {
        called: Called { name: resolver.name(n).into(), names: select::names(resolver, n).collect() },
        folder: known.map(|known| resolver.folder().join(&known.folder)).or(of_result),
        has_records: known.is_some(),
        is_done: resolver.is_done(n),
        hindrance,
        parameters: stage.parameters(),
        hooks: stage.as_run().map(|run| run.hooks.clone()),
    };
    Ok(RunView::new(&outputs, snapshots).kept(kept))
}

fn analysis(resolver: &CampaignResolver<'_>, n: usize, hindrance: Option<String>) -> KeptAnalysis {
    let missing = || hindrance.map_or_else(String::new, |error| format!(": {error}"));
    KeptAnalysis {
        called: Called { name: resolver.name(n).into(), names: select::names(resolver, n).collect() },
        label: resolver.stage(n).label(),
        left: resolver.result(n).cloned().ok_or_else(missing),
    }
}

/// A run that the recipe does not have.
fn other_run(dir: &Path, known: &StageHistory, snapshots: &Snapshots) -> RunView {
    let folder = dir.join(&known.folder);
    let kept = KeptRun {
        called: Called { name: known.folder.clone(), names: vec![known.folder.clone()] },
        has_records: true,
        is_done: known.artefacts.is_some(),
        parameters: known.identity.as_ref().map_or(Value::Null, |identity| identity.parameters.clone()),
        folder: Some(folder.clone()),
        ..KeptRun::default()
    };
    RunView::new(&outputs(&folder, &known.snapshots), snapshots).kept(kept)
}

/// A measurement or an analysis that the recipe does not have.
fn other_analysis(dir: &Path, known: &StageHistory) -> KeptAnalysis {
    let folder = dir.join(&known.folder);
    let result = |artefacts| StageResult { folder, artefacts, snapshots: Vec::new() };
    KeptAnalysis {
        called: Called { name: known.folder.clone(), names: vec![known.folder.clone()] },
        label: known.identity.as_ref().map_or_else(|| known.kind.clone(), |identity| identity.label.clone()),
        left: known.artefacts.clone().map(result).ok_or_else(String::new),
    }
}

/// The outputs among the snapshots of a run.
fn outputs(folder: &Path, snapshots: &[SnapshotFile]) -> Vec<Input> {
    snapshots.iter().filter(|s| s.role == Role::Output).map(|s| Input::snapshot(folder, s)).collect()
}

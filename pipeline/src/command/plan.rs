//! `comove plan`: what `run` would do, without doing it.

use super::{directory, given, print, read};
use crate::cli;
use crate::error::PipelineError;
use crate::executor::{Resolved, resolve, result_of};
use crate::folder::CampaignFolder;
use crate::ledger::{History, StageHistory, history};
use crate::recipe::{self, Recipe};
use crate::stage::{Input, Memory, Stage, StageResult};
use comove_kernels::Device;
use comove_kernels::memory::GIB;
use comove_sim::{Octree, Snapshot};

/// Prints the plan.
pub(super) fn plan(arguments: cli::Plan) -> Result<(), PipelineError> {
    let path = arguments.recipe.recipe;
    let mut source = read(&path)?;
    source.path = std::path::absolute(&path).map_err(PipelineError::io(&path))?;
    let recipe = recipe::evaluate(source, given(arguments.recipe.parameters)?)?;
    let dir = directory(arguments.dir, &path);
    let (history, folder) = match CampaignFolder::open(&dir) {
        Ok(folder) => (history::read(&folder.ledger())?.0, Some(folder)),
        Err(_) => (History::default(), None),
    };
    print(&format!("campaign \"{}\" in {}", recipe.campaign.name, dir.display()));
    lines(&recipe, &history, folder.as_ref())?.iter().for_each(|line| print(&line.text));
    Ok(())
}

/// A stage in a plan.
pub(super) struct Line {
    /// What it is and whether it is done, for the terminal.
    pub(super) text: String,
    /// Whether there is nothing left to do.
    pub(super) done: bool,
}

/// One entry a stage.
pub(super) fn lines(
    recipe: &Recipe,
    history: &History,
    folder: Option<&CampaignFolder>,
) -> Result<Vec<Line>, PipelineError> {
    let device = Device::cpu(1)?;
    let mut results: Vec<Option<StageResult>> = Vec::new();
    let mut lines = Vec::new();
    for (n, node) in recipe.campaign.stages.iter().enumerate() {
        let stage = node.stage();
        let inputs = recipe.campaign.inputs_of(node);
        let known: Option<Vec<&StageResult>> = inputs.iter().map(|&n| results[n].as_ref()).collect();
        let mut begun = None;
        let (state, result) = match (stage.given(), known) {
            (Some(given), _) => ("given".to_owned(), Some(given?)),
            (None, None) => {
                let after: Vec<String> = inputs.iter().map(|n| (n + 1).to_string()).collect();
                (format!("to do, after {}", after.join(" and ")), None)
            }
            (None, Some(known)) => {
                let resolved = resolve(node, &known, history)?;
                let stage_history = history.stage(&resolved.fingerprint);
                let done = stage_history.filter(|h| stage.is_done(h)).zip(folder);
                let result = done.map(|(h, folder)| result_of(stage, folder, &resolved.folder, h));
                let from = if result.is_none() { goes_on_from(stage, &resolved, stage_history, folder) } else { None };
                let state = state_of(stage_history, result.is_some(), from.as_ref());
                begun = from.and_then(octree);
                (format!("{state} ({})", resolved.folder), result)
            }
        };
        let memory = if result.is_none() { memory_of(stage, &device, begun.as_ref()) } else { String::new() };
        let text = format!("{:>3}  {:<16} {state}\n     {}{memory}", n + 1, stage.kind(), stage.describe());
        lines.push(Line { text, done: result.is_some() });
        results.push(result);
    }
    Ok(lines)
}

/// The snapshot that a run would go on from: the first that is whole, as when it runs.
fn goes_on_from(
    stage: &dyn Stage,
    resolved: &Resolved,
    history: Option<&StageHistory>,
    folder: Option<&CampaignFolder>,
) -> Option<Input> {
    let own = folder.map(|folder| folder.path().join(&resolved.folder)).unwrap_or_default();
    let candidates = stage.goes_on_from(&own, history.unwrap_or(&StageHistory::default()), &resolved.inputs);
    candidates.into_iter().find(|input| input.is_whole().unwrap_or(false))
}

/// The octree of a snapshot, and its file's name.
fn octree(snapshot: Input) -> Option<(String, Octree)> {
    let (_, tree) = Snapshot::read_tree(&snapshot.path).ok()?;
    Some((snapshot.name(), tree))
}

/// What a stage needs, in words; nothing where that is little.
fn memory_of(stage: &dyn Stage, device: &Device, begun: Option<&(String, Octree)>) -> String {
    let Memory { host, device } = stage.memory(device, begun.map(|(_, tree)| tree));
    let [host, device] = [host, device].map(|bytes| bytes / GIB);
    let of_device = match begun {
        Some((file, _)) => format!("{device:.2} GiB of the device's memory with the levels of {file}"),
        None => format!("at least {device:.2} GiB of the device's memory (its root level alone)"),
    };
    match (host + device >= 0.005, device > 0.0) {
        (false, _) => String::new(),
        (true, false) => format!("; needs about {host:.2} GiB of memory"),
        (true, true) => format!("; needs {of_device} and {host:.2} GiB of the host's"),
    }
}

/// What there is of a stage, in words.
fn state_of(history: Option<&StageHistory>, done: bool, from: Option<&Input>) -> String {
    let Some(history) = history else { return "to do".into() };
    if done {
        return "done".into();
    }
    match (from, &history.failure) {
        (Some(snapshot), _) => format!("begun, continues from {} at {}", snapshot.name(), snapshot.shown()),
        (None, Some(failure)) => format!("failed: {failure}"),
        (None, None) if history.artefacts.is_some() => "done in part, starts anew".into(),
        (None, None) => "begun".into(),
    }
}

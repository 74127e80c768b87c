//! `comove plan`: what `run` would do, without doing it.

use super::{directory, given, print, read};
use crate::cli;
use crate::error::PipelineError;
use crate::executor::{resolve, result_of};
use crate::folder::CampaignFolder;
use crate::ledger::{History, StageHistory, history};
use crate::recipe::{self, Recipe};
use crate::stage::StageResult;
use comove_kernels::memory::GIB;
use comove_sim::Role;

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
    let mut results: Vec<Option<StageResult>> = Vec::new();
    let mut lines = Vec::new();
    for (n, node) in recipe.campaign.stages.iter().enumerate() {
        let stage = node.stage();
        let inputs = recipe.campaign.inputs_of(node);
        let known: Option<Vec<&StageResult>> = inputs.iter().map(|&n| results[n].as_ref()).collect();
        let (state, result) = match (stage.given(), known) {
            (Some(given), _) => ("given".to_owned(), Some(given?)),
            (None, None) => {
                let after: Vec<String> = inputs.iter().map(|n| (n + 1).to_string()).collect();
                (format!("to do, after {}", after.join(" and ")), None)
            }
            (None, Some(known)) => {
                let resolved = resolve(node, &known)?;
                let stage_history = history.stage(&resolved.fingerprint);
                let done = stage_history.filter(|h| stage.is_done(h)).zip(folder);
                let result = done.map(|(h, folder)| result_of(folder, &resolved.folder, h));
                (format!("{} ({})", state_of(stage_history, result.is_some()), resolved.folder), result)
            }
        };
        let memory = match stage.memory_bytes() / GIB {
            needed if needed >= 0.1 && result.is_none() => format!("; needs about {needed:.1} GiB of memory"),
            _ => String::new(),
        };
        let text = format!("{:>3}  {:<16} {state}\n     {}{memory}", n + 1, stage.kind(), stage.describe());
        lines.push(Line { text, done: result.is_some() });
        results.push(result);
    }
    Ok(lines)
}

/// What there is of a stage, in words.
pub(super) fn state_of(history: Option<&StageHistory>, done: bool) -> String {
    let Some(history) = history else { return "to do".into() };
    if done {
        return "done".into();
    }
    let checkpoint = history.snapshots.iter().rev().find(|s| s.role == Role::Checkpoint);
    match (checkpoint, &history.failure) {
        (Some(s), _) => format!("begun, continues from {} at {}", s.file, s.moment().rounded()),
        (None, Some(failure)) => format!("failed: {failure}"),
        (None, None) => "begun".into(),
    }
}

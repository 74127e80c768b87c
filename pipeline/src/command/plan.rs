//! `comove plan`: what `run` would do, without doing it.

use super::{done, print, standing};
use crate::campaign::deferred::own_name;
use crate::campaign::{Standing, Walk};
use crate::cli;
use crate::error::PipelineError;
use crate::ledger::{History, StageHistory};
use crate::progress::Progress;
use crate::recipe::Recipe;
use crate::stage::{Input, Memory, Stage};
use comove_kernels::Device;
use comove_kernels::memory::GIB;
use comove_sim::{Octree, Snapshot};
use std::path::Path;

/// Prints the plan.
pub(super) fn plan(arguments: cli::Plan) -> Result<(), PipelineError> {
    let cli::Recipe { recipe, parameters } = arguments.recipe;
    let (recipe, dir, history) = standing(&recipe, parameters, arguments.dir)?;
    print(&format!("campaign \"{}\" in {}", recipe.campaign.name, dir.display()));
    lines(&recipe, &history, &dir)?.iter().for_each(|line| print(&line.text));
    Ok(())
}

/// A stage in a plan.
pub(super) struct Line {
    /// What it is and whether it is done, for the terminal.
    pub(super) text: String,
    /// Whether there is nothing left to do.
    pub(super) done: bool,
}

/// One entry a stage of the campaign in `folder`, which need not be there.
pub(super) fn lines(recipe: &Recipe, history: &History, folder: &Path) -> Result<Vec<Line>, PipelineError> {
    let (device, progress) = (Device::cpu(1)?, Progress::on_terminal());
    // names are known once all stages are
    let (walk, lacking) = Walk::through(&recipe.campaign, folder, history)?;
    let line = |n: usize| {
        let (stage, standing) = (walk.stage(n), walk.standing(n));
        let mut begun = None;
        let state = match (standing, walk.resolved(n)) {
            (_, Some(resolved)) => {
                let known = history.stage(&resolved.fingerprint);
                let own = folder.join(&resolved.folder);
                let from = if standing == Standing::Done {
                    None
                } else {
                    goes_on_from(stage, &own, known, &resolved.inputs, &progress)
                };
                let state = state_of(stage, known, standing, from.as_ref());
                begun = from.and_then(octree);
                let older = resolved.older.as_ref().map(|older| format!("; {}", older.advice(stage)));
                format!("{state} ({}){}", resolved.folder, older.unwrap_or_default())
            }
            (Standing::Given, None) => "given".to_owned(),
            (Standing::Decided, None) => decided(&walk, n),
            (_, None) if lacking.contains_key(&n) => cannot(&walk, n, &lacking[&n], history),
            (_, None) if walk.is_undecided(n) => format!("decided after {}", missing(&walk, n)),
            (_, None) => {
                let after: Vec<String> = walk.inputs(n).iter().map(|n| (n + 1).to_string()).collect();
                format!("to do, after {}", after.join(" and "))
            }
        };
        let done = walk.is_done(n);
        let memory = if done { String::new() } else { memory_of(stage, &device, begun.as_ref()) };
        let text =
            format!("{:>3}  {:<16} {state}\n     {}: {}{memory}", n + 1, stage.kind(), walk.name(n), stage.describe());
        Line { text, done }
    };
    Ok(walk.positions().map(line).collect())
}

/// What a stage has decided on, by the numbers of the further stages.
pub(super) fn decided(walk: &Walk<'_>, n: usize) -> String {
    match walk.further(n) {
        Some([]) | None => "decided: nothing further".to_owned(),
        Some(further) => {
            let numbers: Vec<String> = further.iter().map(|n| (n + 1).to_string()).collect();
            format!("decided: stage {}", numbers.join(" and "))
        }
    }
}

/// Why a stage cannot be done, though what it reads is there: a run may have ended before.
fn cannot(walk: &Walk<'_>, n: usize, error: &PipelineError, history: &History) -> String {
    let ended = walk.reads(n).iter().filter_map(|&run| {
        let stop = walk.stage(run).as_run()?.stop(walk.known(run, history)?)?;
        Some(format!("; stage {} was ended by its stop rule {stop}", run + 1))
    });
    format!("cannot be done: {error}{}", ended.collect::<String>())
}

/// What a stage that is undecided waits for, by the names that the recipe gives.
pub(super) fn missing(walk: &Walk<'_>, n: usize) -> String {
    let missing = walk.missing(n);
    let names: Vec<String> = missing.map(|input| format!("{} ({})", own_name(walk.stage(input)), input + 1)).collect();
    names.join(" and ")
}

/// The snapshot that a run in the folder `own` would go on from: the first that is whole, as when it runs.
pub(super) fn goes_on_from(
    stage: &dyn Stage,
    own: &Path,
    history: Option<&StageHistory>,
    inputs: &[Vec<Input>],
    progress: &Progress,
) -> Option<Input> {
    let candidates = stage.goes_on_from(own, history.unwrap_or(&StageHistory::default()), inputs);
    candidates.into_iter().find(|input| input.is_whole(progress).unwrap_or(false))
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
fn state_of(stage: &dyn Stage, history: Option<&StageHistory>, standing: Standing, from: Option<&Input>) -> String {
    let Some(history) = history else { return "to do".into() };
    if standing == Standing::Done {
        return done(stage, Some(history));
    }
    if stage.as_run().is_some_and(|run| run.missing(history).is_empty() && !run.is_ruled(history)) {
        return "done but for its stop rule, which is asked of its steps".into();
    }
    match (from, &history.failure) {
        (Some(snapshot), _) => format!("begun, continues from {} at {}", snapshot.name(), snapshot.shown()),
        (None, Some(failure)) => format!("failed: {failure}"),
        (None, None) if history.artefacts.is_some() => {
            let why = stage.as_run().and_then(|run| run.why_anew(history)).map(|why| format!(": {why}"));
            format!("done in part, starts anew{}", why.unwrap_or_default())
        }
        (None, None) => "begun".into(),
    }
}

//! `comove plan`: what `run` would do, without doing it.

use super::{done, print, standing, unfinished};
use crate::campaign::deferred::own_name;
use crate::campaign::{CampaignResolver, StageStatus};
use crate::cli;
use crate::cost::{self, Cost, Left, Planned, Predictor};
use crate::error::PipelineError;
use crate::ledger::{History, StageHistory};
use crate::recipe::Recipe;
use crate::stage::{Input, Memory, SavedState, Stage};
use crate::terminal::progress::Progress;
use comove_kernels::Device;
use comove_sim::Snapshot;
use serde::Serialize;
use serde_json::json;
use std::path::Path;

pub(super) fn plan(arguments: cli::Plan) -> Result<(), PipelineError> {
    let cli::Recipe { recipe, parameters } = arguments.recipe;
    let (recipe, dir, history) = standing(&recipe, parameters, arguments.dir)?;
    let device = Device::from_name(&arguments.device[0], arguments.threads)?;
    let mut predictor = Predictor::new(&dir, &history, arguments.like.as_deref(), &device)?;
    let name = &recipe.campaign.name;
    if !arguments.json {
        print(&format!("campaign \"{name}\" in {}", dir.display()))?;
    }
    let lines = lines(&recipe, &history, &dir, Some(&mut predictor))?;
    let left = Total::of(&lines, &dir);
    let unfinished = unfinished::of(&recipe, &dir, &history, false);
    let foreign = unfinished::foreign(&recipe, &dir, &history);
    if arguments.json {
        let plan = json!({ "campaign": name, "folder": dir, "device": device.name(), "stages": lines, "left": left,
            "unfinished": unfinished, "foreign": foreign });
        print(&plan.to_string())?;
        return Ok(());
    }
    lines.iter().try_for_each(|line| print(&line.text()))?;
    left.map_or(Ok(()), |left| print(&left.text(&device)))?;
    recipe.warnings.iter().try_for_each(|warning| print(&format!("warning: {warning}")))?;
    foreign.into_iter().chain(unfinished::list(&unfinished)).try_for_each(|line| print(&line))
}

/// Bytes below which `plan` does not mention memory.
const LITTLE_MEMORY: f64 = 5e6;

#[derive(Serialize)]
pub(super) struct Line {
    /// Its number, from 1.
    number: usize,
    name: String,
    kind: &'static str,
    /// Where it stands, in words.
    state: String,
    /// What it is to do, in words.
    describes: String,
    /// Whether there is nothing left to do.
    pub(super) done: bool,
    /// Whether it has failed and is to be done again.
    pub(super) failed: bool,
    /// What it will take, if that is asked for.
    cost: Option<Cost>,
}

impl Line {
    /// What it is and whether it is done, for the terminal.
    pub(super) fn text(&self) -> String {
        let Self { number, name, kind, state, describes, cost, .. } = self;
        let cost = cost.as_ref().filter(|cost| !cost.is_little()).map(Cost::to_string);
        let cost = cost.map(|cost| format!("\n     expected: {cost}")).unwrap_or_default();
        format!("{number:>3}  {kind:<16} {state}\n     {name}: {describes}{cost}")
    }
}

/// What is left to do in all.
#[derive(Serialize)]
struct Total {
    /// Stages that are not done.
    stages: usize,
    /// Seconds of the stages of which they are known, one after another.
    seconds: f64,
    /// Bytes of the files that they leave.
    disk_bytes: f64,
    /// Bytes free on the file system of the campaign's folder, where the system knows them.
    free_disk_bytes: Option<f64>,
    /// Most bytes on the device of a run.
    device_bytes: f64,
    /// Stages of which nothing is known.
    unknown: usize,
    /// Whether one of them is predicted without records of a run like it.
    is_guess: bool,
}

impl Total {
    fn of(lines: &[Line], folder: &Path) -> Option<Self> {
        // what is done costs nothing more
        let costs = || lines.iter().filter_map(|line| line.cost.as_ref());
        let stages = costs().count();
        (stages > 0).then(|| Self {
            stages,
            seconds: costs().filter_map(|cost| cost.seconds).sum(),
            disk_bytes: costs().map(|cost| cost.disk_bytes).sum(),
            free_disk_bytes: free_bytes(folder),
            device_bytes: costs().filter_map(|cost| cost.device_bytes).fold(0.0, f64::max),
            unknown: costs().filter(|cost| cost.seconds.is_none()).count(),
            is_guess: costs().any(|cost| cost.is_guess),
        })
    }

    fn text(&self, device: &Device) -> String {
        let Self { stages, seconds, disk_bytes, free_disk_bytes, device_bytes, unknown, is_guess } = self;
        if unknown == stages {
            let why = "no records of a similar run (--like names a campaign that has some)";
            return format!("left to do: {stages} stages; their time is not known: {why}");
        }
        let (time, name) = (cost::time(*seconds), device.name());
        let mut text =
            format!("left to do: {time} on {name}, one stage after another; {} on disk", cost::bytes(*disk_bytes));
        if *unknown > 0 {
            text += &format!("; {unknown} of {stages} stages are not included, because nothing is known of them yet");
        }
        if let Some(free) = device.free_bytes().filter(|free| (*free as f64) < *device_bytes) {
            let [most, free] = [*device_bytes, free as f64].map(cost::memory);
            text += &format!("; not enough memory: a run needs {most}, and {free} are free");
        }
        if let Some(free) = free_disk_bytes.filter(|free| free < disk_bytes) {
            let (most, free) = (cost::bytes(*disk_bytes), cost::bytes(free));
            text += &format!("; not enough disk space: the files need {most}, and {free} are free");
        }
        if *is_guess {
            text += "; a first guess without records of a similar run (--like names a campaign that has some)";
        }
        text
    }
}

/// Bytes free for an ordinary user on the file system of a folder, or of the nearest existing one above it.
fn free_bytes(folder: &Path) -> Option<f64> {
    let folder = std::path::absolute(folder).ok()?;
    let found = folder.ancestors().find_map(|folder| rustix::fs::statvfs(folder).ok())?;
    Some(found.f_bavail as f64 * found.f_frsize as f64)
}

/// One entry a stage of the campaign in `folder`, which need not be there; with what each will take if somebody predicts.
pub(super) fn lines(
    recipe: &Recipe,
    history: &History,
    folder: &Path,
    mut predictor: Option<&mut Predictor<'_>>,
) -> Result<Vec<Line>, PipelineError> {
    let (device, progress) = (Device::cpu(1)?, Progress::on_terminal());
    // names are known once all stages are
    let (resolver, lacking) = CampaignResolver::through(&recipe.campaign, folder, history)?;
    let mut left: Vec<Option<Left>> = resolver.positions().map(|n| resolver.result(n).map(Left::of)).collect();
    let mut lines = Vec::new();
    for n in resolver.positions() {
        let (stage, standing) = (resolver.stage(n), resolver.status(n));
        let (mut from, mut known, mut own) = (None, None, None);
        let state = match (standing, resolver.resolved(n)) {
            (_, Some(resolved)) => {
                known = history.stage(&resolved.fingerprint);
                let path = folder.join(&resolved.folder);
                if standing != StageStatus::Done {
                    from = goes_on_from(stage, &path, known, &resolved.inputs, &progress);
                }
                own = Some(path);
                let state = state_of(stage, known, standing, from.as_ref());
                let older = resolved.older.as_ref().map(|older| format!("; {}", older.advice(stage)));
                // a message of several lines ends with a caret
                let (head, rest) = state.split_at(state.find('\n').unwrap_or(state.len()));
                format!("{head} ({}){}{rest}", resolved.folder, older.unwrap_or_default())
            }
            (StageStatus::Given, None) => "given".to_owned(),
            (StageStatus::Decided, None) => decided(&resolver, n),
            (_, None) if lacking.contains_key(&n) => cannot(&resolver, n, &lacking[&n], history),
            (_, None) if resolver.is_undecided(n) => format!("decided after {}", missing(&resolver, n)),
            (_, None) => {
                let after: Vec<String> = resolver.inputs(n).iter().map(|n| (n + 1).to_string()).collect();
                format!("to do, after {}", after.join(" and "))
            }
        };
        let done = resolver.is_done(n);
        let failed = resolver.has_failed(n, history);
        let begun = from.as_ref().and_then(|from| Snapshot::read_tree(&from.path).ok());
        let cost = predictor.as_deref_mut().filter(|_| !done).map(|predictor| {
            let inputs: Vec<Option<&Left>> = resolver.reads(n).iter().map(|&input| left[input].as_ref()).collect();
            let (own, from) = (own.as_deref(), from.as_ref());
            let planned = Planned { stage, folder: own, from, begun: begun.as_ref(), known, inputs: &inputs };
            let (cost, leaves) = predictor.stage(&planned);
            left[n] = leaves;
            cost
        });
        let mut describes = stage.describe();
        if !done {
            let begun = from.as_ref().map(Input::name).zip(begun.as_ref());
            describes += &memory_of(stage, &device, begun);
        }
        let (number, name, kind) = (n + 1, resolver.name(n).into(), stage.kind());
        lines.push(Line { number, name, kind, state, describes, done, failed, cost });
    }
    Ok(lines)
}

/// What a stage has decided on, by the numbers of the further stages.
pub(super) fn decided(resolver: &CampaignResolver<'_>, n: usize) -> String {
    match resolver.further(n) {
        Some([]) | None => "decided: nothing further".to_owned(),
        Some(further) => {
            let numbers: Vec<String> = further.iter().map(|n| (n + 1).to_string()).collect();
            format!("decided: stage {}", numbers.join(" and "))
        }
    }
}

/// Why a stage cannot be done, though what it reads is there: a run may have ended before.
fn cannot(resolver: &CampaignResolver<'_>, n: usize, error: &PipelineError, history: &History) -> String {
    let ended = resolver.reads(n).iter().filter_map(|&run| {
        let stop = resolver.stage(run).as_run()?.stop(resolver.known(run, history)?)?;
        Some(format!("; stage {} was ended by its stop rule {stop}", run + 1))
    });
    format!("cannot be done: {error}{}", ended.collect::<String>())
}

/// What a stage that is undecided waits for, by the names that the recipe gives.
pub(super) fn missing(resolver: &CampaignResolver<'_>, n: usize) -> String {
    let missing = resolver.missing(n);
    let names: Vec<String> =
        missing.map(|input| format!("{} ({})", own_name(resolver.stage(input)), input + 1)).collect();
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

/// What a stage needs, in words; nothing where that is little.
fn memory_of(stage: &dyn Stage, device: &Device, begun: Option<(String, &SavedState)>) -> String {
    let Memory { host, device } = stage.memory(device, begun.as_ref().map(|(_, state)| *state));
    let is_little = host + device < LITTLE_MEMORY;
    let [host, of_device] = [host, device].map(cost::memory);
    let of_device = match begun {
        Some((file, _)) => format!("{of_device} of the device's memory with the levels of {file}"),
        None => format!("at least {of_device} of the device's memory (its root level alone)"),
    };
    match (is_little, device > 0.0) {
        (true, _) => String::new(),
        (false, false) => format!("; needs about {host} of memory"),
        (false, true) => format!("; needs {of_device} and {host} of the host's"),
    }
}

/// What there is of a stage, in words.
fn state_of(stage: &dyn Stage, history: Option<&StageHistory>, standing: StageStatus, from: Option<&Input>) -> String {
    let Some(history) = history else { return "to do".into() };
    if standing == StageStatus::Done {
        return done(stage, Some(history));
    }
    if stage.as_run().is_some_and(|run| run.missing(history).is_empty() && !run.is_ruled(history)) {
        return "done except for the evaluation of its stop rule".into();
    }
    match (from, &history.failure) {
        (Some(snapshot), _) => format!("begun, continues from {} at {}", snapshot.name(), snapshot.shown()),
        (None, Some(failure)) => format!("failed: {failure}"),
        (None, None) if history.artefacts.is_some() => {
            let why = stage.as_run().and_then(|run| run.why_anew(history)).map(|why| format!(": {why}"));
            format!("done in part, starts again{}", why.unwrap_or_default())
        }
        (None, None) => "begun".into(),
    }
}

//! Unfinished runs that a recipe does not refer to: begun with other parameters, or before the recipe was edited.

use super::differences::{changes, differences};
use super::shell::line;
use super::stored;
use crate::campaign::CampaignResolver;
use crate::error::PipelineError;
use crate::ledger::{Given, History, Identity, StageHistory};
use crate::moment::Moment;
use crate::recipe::Recipe;
use crate::stage::evolve::{self, steps};
use crate::storage::folder::CampaignFolder;
use crate::terminal::progress::Progress;
use comove_sim::Role;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Component, Path};

/// Exit codes of failures that a changed recipe mends.
const WRONG_RECIPE: [u8; 3] = [3, 4, 7];

/// An unfinished run of a campaign folder.
#[derive(Serialize)]
pub(super) struct Unfinished {
    #[serde(skip)]
    pub(super) fingerprint: String,
    pub(super) folder: String,
    name: String,
    /// How far its steps and checkpoints go.
    progress: String,
    /// How it differs from the recipe, an option or parameter each.
    differences: Vec<String>,
    /// How it is continued.
    remedy: String,
    /// Whether a command that does not continue it may go ahead without a question.
    #[serde(skip)]
    pub(super) is_settled: bool,
}

impl Unfinished {
    /// Name, progress, differences and remedy, a line each.
    pub(super) fn text(&self) -> String {
        let Self { folder, name, progress, differences, remedy, .. } = self;
        let differences: String = differences.iter().map(|line| format!("\n  {line}")).collect();
        format!("{name} ({folder}): unfinished {progress}{differences}\n  {remedy}")
    }
}

/// Runs that were begun, have a step or a snapshot, and whose end the ledger does not have.
pub(super) fn in_progress<'h>(
    dir: &Path,
    history: &'h History,
) -> impl Iterator<Item = (&'h str, &'h StageHistory, String)> {
    let open = history.stages().filter(|(_, known)| known.kind == evolve::KIND && known.is_open());
    open.filter_map(move |(fingerprint, known)| Some((fingerprint, known, progress(dir, known)?)))
}

/// How far the records and the snapshots of a run go; `None` without any.
fn progress(dir: &Path, known: &StageHistory) -> Option<String> {
    let steps = steps::last(&dir.join(&known.folder));
    let last = known.snapshots.last().map(|snapshot| (snapshot.moment(), snapshot.step));
    let (moment, step) = steps.last().map(|record| (Moment::after(record), record.step)).or(last)?;
    let checkpoint = known.snapshots.iter().rfind(|snapshot| snapshot.role == Role::Checkpoint);
    let checkpoint = checkpoint.map_or("without a checkpoint".into(), |checkpoint| format!("with {}", checkpoint.file));
    Some(format!("at {} after {step} steps, {checkpoint}", moment.rounded()))
}

/// The unfinished runs of a folder that a recipe does not refer to.
///
/// * `accept_older`: whether the recipe continues runs of earlier versions
pub(super) fn of(recipe: &Recipe, dir: &Path, history: &History, accept_older: bool) -> Vec<Unfinished> {
    let mut found = in_progress(dir, history).peekable();
    if found.peek().is_none() {
        return Vec::new();
    }
    let (walk, given) = (walk(recipe, dir, history, accept_older), given(recipe));
    let last = CampaignFolder::open(dir).and_then(|folder| stored(&folder)).ok().map(|(recipe, _)| recipe);
    let last = last.filter(|last| self::given(last) != given);
    let last = last.as_ref().map(|last| (self::walk(last, dir, history, false), self::given(last)));
    let is_left =
        |(fingerprint, known, _): &(&str, &StageHistory, String)| !refers(&walk, &given, history, fingerprint, known);
    let unfinished = |(fingerprint, known, progress): (&str, &StageHistory, String)| {
        let is_of_last = last.as_ref().is_some_and(|(walk, given)| refers(walk, given, history, fingerprint, known));
        let of_older = walk.positions().filter_map(|n| walk.resolved(n)?.older.as_ref());
        let remedy = if of_older.into_iter().any(|older| older.folder == known.folder) {
            "--accept-version continues it".into()
        } else if is_of_last {
            format!("`{}` continues it", line(["comove", "resume", &dir.display().to_string()]))
        } else {
            continuation(recipe, dir, known)
        };
        Unfinished {
            fingerprint: fingerprint.into(),
            folder: known.folder.clone(),
            name: if known.name.is_empty() { evolve::TITLE.into() } else { known.name.clone() },
            progress,
            differences: difference(recipe, &walk, history, known),
            remedy,
            is_settled: known.left || known.failure_code.is_some_and(|code| WRONG_RECIPE.contains(&code)),
        }
    };
    found.filter(is_left).map(unfinished).collect()
}

fn walk<'r>(recipe: &'r Recipe, dir: &Path, history: &History, accept_older: bool) -> CampaignResolver<'r> {
    let walk = CampaignResolver::new(&recipe.campaign, dir).shown(&Progress::on_terminal());
    let mut walk = walk.accepting_older(accept_older);
    // the errors are met again where the stages are to be done
    let _ = walk.look_at_all(history);
    walk
}

fn given(recipe: &Recipe) -> Given {
    let recipe_digest = blake3::hash(recipe.source.text.as_bytes()).to_hex().to_string();
    Given { recipe_digest, parameters: Some(recipe.parameters.given.clone()) }
}

/// Whether a run is a stage of the campaign, or may turn out to be one.
fn refers(
    walk: &CampaignResolver<'_>,
    given: &Given,
    history: &History,
    fingerprint: &str,
    known: &StageHistory,
) -> bool {
    let is_it = |n: usize| match walk.resolved(n) {
        Some(resolved) => resolved.fingerprint == fingerprint,
        None => !walk.is_undecided(n) && may_become(walk, n, known, history),
    };
    // what a decision leads to is known only where nothing has changed since
    let is_decided_later = || {
        let may_be = known.given.parameters.is_none() || known.given == *given;
        may_be && walk.positions().any(|n| walk.is_undecided(n))
    };
    walk.positions().any(is_it) || is_decided_later()
}

/// Whether stage `n`, whose inputs are not there, may have this history: options and the stages that it reads are the same.
fn may_become(walk: &CampaignResolver<'_>, n: usize, known: &StageHistory, history: &History) -> bool {
    let stage = walk.stage(n);
    let is_alike = |identity: &Identity| {
        identity.label == stage.label()
            && identity.results_version == stage.results_version()
            && identity.parameters == stage.parameters()
    };
    let was_begun =
        |&input: &usize| walk.resolved(input).is_none_or(|resolved| history.stage(&resolved.fingerprint).is_some());
    stage.as_run().is_some() && known.identity.as_ref().is_none_or(is_alike) && walk.reads(n).iter().all(was_begun)
}

/// How a run that the last command does not refer to is continued.
fn continuation(recipe: &Recipe, dir: &Path, known: &StageHistory) -> String {
    let now = given(recipe);
    let only_given = known.given.recipe_digest == now.recipe_digest && known.given.parameters != now.parameters;
    let Some(parameters) = known.given.parameters.as_ref().filter(|_| only_given) else {
        return "to continue it, restore the recipe and its input files, and use `comove run`".into();
    };
    let file =
        std::env::current_dir().ok().and_then(|here| recipe.source.path.strip_prefix(here).ok().map(Path::to_owned));
    let file = file.unwrap_or_else(|| recipe.source.path.clone());
    let mut words = vec!["comove".into(), "run".into(), file.display().to_string()];
    words.extend(parameters.iter().flat_map(|(name, value)| ["-p".into(), format!("{name}={value}")]));
    if CampaignFolder::default_for(&file) != dir {
        words.extend(["--dir".into(), dir.display().to_string()]);
    }
    format!("`{}` continues it", line(words.iter().map(String::as_str)))
}

/// How a run differs from what the recipe has: in the parameters that the command line gives, else in its options and those of
/// what it reads.
fn difference(recipe: &Recipe, walk: &CampaignResolver<'_>, history: &History, known: &StageHistory) -> Vec<String> {
    let now = given(recipe);
    let before = known.given.parameters.as_ref().filter(|_| known.given.recipe_digest == now.recipe_digest);
    let now = &recipe.parameters.given;
    let names: BTreeSet<&String> = before.into_iter().flat_map(|before| before.keys().chain(now.keys())).collect();
    let value = |given: Option<&String>, name: &str| {
        let default = || recipe.parameters.declared.iter().find(|parameter| parameter.name == name);
        given.cloned().unwrap_or_else(|| default().map_or("not given".into(), |p| format!("{} (default)", p.default)))
    };
    let changed = names.into_iter().filter(|name| before.and_then(|before| before.get(*name)) != now.get(*name));
    let changed = changed.map(|name| {
        let (before, now) = (before.and_then(|before| before.get(name)), now.get(name));
        format!("-p {name}: {} → {}", value(before, name), value(now, name))
    });
    let changed: Vec<String> = changed.collect();
    if changed.is_empty() { of_options(walk, history, known) } else { changed }
}

/// How a run and the stages that it reads differ from the stages of the recipe.
fn of_options(walk: &CampaignResolver<'_>, history: &History, known: &StageHistory) -> Vec<String> {
    let inputs = known.identity.iter().flat_map(|identity| made_by(identity, history));
    let stages = std::iter::once(known).chain(inputs).filter_map(|stage| stage.identity.as_ref());
    let lines = stages.flat_map(|identity| {
        let alike = walk.positions().filter(|&n| walk.stage(n).label() == identity.label);
        let differing = alike.map(|n| match walk.resolved(n) {
            Some(resolved) => {
                differences(&outside(identity), &outside(&resolved.identity(walk.stage(n), walk.folder())))
            }
            None => changes(&identity.parameters, &walk.stage(n).parameters()),
        });
        let none = || vec![format!("{}: not in the recipe", identity.label)];
        differing.min_by_key(Vec::len).unwrap_or_else(none).into_iter().map(|line| format!("{} {line}", identity.label))
    });
    lines.collect()
}

/// The stages of a campaign whose files a stage has read.
pub(super) fn made_by<'h>(identity: &Identity, history: &'h History) -> impl Iterator<Item = &'h StageHistory> {
    let folders: BTreeSet<String> = identity.inputs.iter().filter_map(|input| folder_of(&input.file)).collect();
    history.stages().map(|(_, stage)| stage).filter(move |stage| folders.contains(&stage.folder))
}

/// The stage's folder in the name of a file below the campaign's.
fn folder_of(file: &str) -> Option<String> {
    match Path::new(file).components().next()? {
        Component::Normal(folder) => Some(folder.to_string_lossy().into_owned()),
        _ => None,
    }
}

/// An identity with the inputs alone that no stage has made.
fn outside(identity: &Identity) -> Identity {
    let inputs = identity.inputs.iter().filter(|input| folder_of(&input.file).is_none()).cloned();
    Identity { inputs: inputs.collect(), ..identity.clone() }
}

/// The refusal of a recipe where the folder holds another recipe's campaign.
pub(super) fn foreign(recipe: &Recipe, dir: &Path, history: &History) -> Option<String> {
    let recorded = CampaignFolder::open(dir).and_then(|folder| folder.manifest()).ok()?.recipe;
    let [real, own] = [&recorded, &recipe.source.path].map(|path| path.canonicalize());
    // a recipe that is gone was renamed
    if real.is_err() || real.ok() == own.ok() {
        return None;
    }
    let name = history.name().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let (dir, own, recorded) = (dir.display(), recipe.source.path.display(), recorded.display());
    Some(format!("{dir} holds the campaign{name} of {recorded}; choose another folder for {own} with --dir"))
}

/// Why `run` does not begin: the folder is another recipe's, or has unfinished runs that it does not continue.
pub(super) fn objection(foreign: Option<String>, unfinished: &[Unfinished]) -> Result<(), PipelineError> {
    let left: Vec<String> = unfinished.iter().filter(|run| !run.is_settled).map(Unfinished::text).collect();
    let left = (!left.is_empty())
        .then(|| format!("this command would start a new run and leave another unfinished:\n{}", left.join("\n")));
    let objections: Vec<String> = foreign.into_iter().chain(left).collect();
    if objections.is_empty() {
        return Ok(());
    }
    Err(PipelineError::Usage(format!("{}\nto start anyway, add --new; existing files are kept", objections.join("\n"))))
}

/// The unfinished runs of a campaign for `plan` and `status`.
pub(super) fn list(unfinished: &[Unfinished]) -> Vec<String> {
    let heading = (!unfinished.is_empty()).then(|| "unfinished runs that this recipe does not continue:".to_owned());
    heading.into_iter().chain(unfinished.iter().map(Unfinished::text)).collect()
}

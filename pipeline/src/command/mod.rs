//! What each subcommand does.

mod check;
mod clean;
mod diff;
mod differences;
mod docs;
mod doctor;
mod explain;
mod export;
mod inspect;
mod noise;
mod plan;
mod recorded;
mod report;
mod run;
mod script;
mod shell;
mod status;
mod unfinished;
mod verify_restart;

use crate::cli::{Cli, Command};
use crate::error::PipelineError;
use crate::ledger::{History, StageHistory, history};
use crate::processes::crew::Ranks;
use crate::processes::isolated_read;
use crate::recipe::{self, Recipe, Source};
use crate::stage::Stage;
use crate::storage::files::absolute;
use crate::storage::folder::{CampaignFolder, Manifest};
use crate::terminal::streams::print;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Does what the command line asks for, in the first of the processes.
///
/// # Errors
/// [`PipelineError`], whose [`PipelineError::exit_code`] the process leaves with.
pub fn execute(cli: Cli, ranks: &Ranks) -> Result<(), PipelineError> {
    dispatch(cli, ranks).map_err(PipelineError::with_file_size_limit)
}

fn dispatch(cli: Cli, ranks: &Ranks) -> Result<(), PipelineError> {
    match cli.command {
        Command::Run(arguments) => run::run(arguments, ranks),
        Command::Resume { dir, machine, terminal } => run::resume(&dir, &machine, terminal, ranks),
        Command::Plan(arguments) => plan::plan(arguments),
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Clean { dir, stages, yes } => clean::clean(&dir, &stages, yes),
        Command::Status { dir, watch: false } => status::status(&dir),
        Command::Status { dir, watch: true } => status::watch(&dir),
        Command::Report { dir } => report::report(&dir),
        Command::Diff(arguments) => diff::diff(&arguments),
        Command::VerifyRestart(arguments) => verify_restart::verify_restart(&arguments),
        Command::Inspect(asked) => inspect::inspect(&asked),
        Command::Script(arguments) => script::script(arguments),
        Command::Check(arguments) => check::check(arguments),
        Command::Export(asked) => export::export(&asked),
        Command::Noise(asked) => noise::noise(&asked),
        Command::Docs(arguments) => docs::docs(&arguments),
        Command::Doctor => doctor::doctor(),
        Command::Trial(file) => isolated_read::read(file),
    }
}

fn read(path: &Path) -> Result<Source, PipelineError> {
    read_as("recipe", path)
}

/// Reads a text that is a recipe or a script.
fn read_as(what: &str, path: &Path) -> Result<Source, PipelineError> {
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => PipelineError::Usage(format!("{}: no such {what}", path.display())),
        std::io::ErrorKind::IsADirectory => {
            let (path, remedy) = (path.display(), "give the recipe's file, or continue a campaign with `comove resume");
            PipelineError::Usage(format!("{path}: is a folder; {remedy} {path}`"))
        }
        _ => PipelineError::io(path)(error),
    })?;
    Ok(Source { path: path.into(), text })
}

/// `-p` values by name.
fn given(parameters: Vec<(String, String)>) -> Result<BTreeMap<String, String>, PipelineError> {
    let mut given = BTreeMap::new();
    for (name, value) in parameters {
        if given.contains_key(&name) {
            return Err(PipelineError::Usage(format!("-p {name} is given twice")));
        }
        given.insert(name, value);
    }
    Ok(given)
}

/// Evaluates the recipe of a campaign folder as it was run.
fn stored(folder: &CampaignFolder) -> Result<(Recipe, Manifest), PipelineError> {
    let (manifest, text) = folder.load()?;
    let source = Source { path: absolute(&manifest.recipe)?, text };
    Ok((recipe::evaluate(source, manifest.parameters.clone())?, manifest))
}

/// Evaluates the recipe in a file, whose path becomes absolute, so that a later `resume` finds the files that it names.
fn evaluated(path: &Path, given: BTreeMap<String, String>) -> Result<Recipe, PipelineError> {
    let mut source = read(path)?;
    source.path = absolute(path)?;
    recipe::evaluate(source, given)
}

/// A recipe's campaign as it stands: what it evaluates to, its folder, and what has happened there, if anything has.
fn standing(
    path: &Path,
    parameters: Vec<(String, String)>,
    dir: Option<PathBuf>,
) -> Result<(Recipe, PathBuf, History), PipelineError> {
    let recipe = evaluated(path, given(parameters)?)?;
    let dir = directory(dir, path);
    let history = happened(&dir)?;
    Ok((recipe, dir, history))
}

/// What has happened in a campaign folder; nothing if there is none.
fn happened(dir: &Path) -> Result<History, PipelineError> {
    match CampaignFolder::open(dir) {
        Ok(folder) => Ok(history::read(&folder.ledger())?.0),
        Err(_) => Ok(History::default()),
    }
}

/// The campaign folder: as given, or the recipe's default.
fn directory(dir: Option<PathBuf>, recipe: &Path) -> PathBuf {
    dir.unwrap_or_else(|| CampaignFolder::default_for(recipe))
}

/// What is said of a stage that is done.
fn done(stage: &dyn Stage, known: Option<&StageHistory>) -> String {
    let stop = stage.as_run().zip(known).and_then(|(run, known)| run.stop(known));
    stop.map_or("done".into(), |stop| format!("done, ended by its stop rule {stop}"))
}

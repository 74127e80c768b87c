//! `comove run` and `comove resume`.

use super::report::Writer;
use super::{directory, evaluated, given, happened, print, read, stored, unfinished};
use crate::campaign::select::Choice;
use crate::cli::{self, Cli, Machine, Terminal};
use crate::error::PipelineError;
use crate::executor::{Executor, Slots};
use crate::ledger::{Event, Ledger};
use crate::processes::control::{Control, Walltime};
use crate::processes::crew::Ranks;
use crate::processes::machine::Host;
use crate::recipe::{self, Recipe};
use crate::rehearsal::{self, Rehearsal};
use crate::stage::StageResult;
use crate::storage::folder::CampaignFolder;
use crate::storage::lock::{Lock, process};
use crate::storage::snapshots::Snapshots;
use crate::terminal::event_stream::EventStream;
use crate::terminal::logging;
use crate::terminal::progress::Progress;
use crate::terminal::streams::say;
use clap::CommandFactory;
use comove_kernels::memory::GIB;
use comove_sim::Role;
use std::io::{IsTerminal, stderr, stdin};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// What a process is to do, in the folder that it has locked.
struct Task {
    recipe: Recipe,
    folder: CampaignFolder,
    choice: Choice,
    /// Fingerprints of unfinished runs that it leaves.
    left: Vec<String>,
    rehearsal: Option<Rehearsal>,
    slots: Slots,
    /// Processes that share a GPU, at the most.
    sharers: usize,
    /// When the process did.
    began: Instant,
    _lock: Lock,
}

pub(super) fn run(arguments: cli::Run, ranks: &Ranks) -> Result<(), PipelineError> {
    if arguments.help {
        return help(arguments);
    }
    let began = Instant::now();
    let path = arguments.recipe.expect("clap asks for a recipe");
    let parameters = given(arguments.parameters)?;
    let recipe = evaluated(&path, parameters.clone())?;
    let (slots, sharers) = slots(&arguments.machine, ranks)?;
    let dir = directory(arguments.dir, &path);
    let choice = if arguments.only.is_empty() && arguments.force.is_empty() {
        Choice::all()
    } else {
        Choice::of(&recipe.campaign, &dir, &happened(&dir)?, &arguments.only, &arguments.force)?
    };
    let history = happened(&dir)?;
    let unfinished = unfinished::of(&recipe, &dir, &history, arguments.machine.accept_version);
    if !arguments.new {
        let may_ask = ranks.count() == 1 && !arguments.terminal.json;
        let asked = |objection| if may_ask { confirmed(objection) } else { Err(objection) };
        unfinished::objection(unfinished::foreign(&recipe, &dir, &history), &unfinished).or_else(asked)?;
    }
    let left = unfinished.into_iter().filter(|run| !run.is_settled).map(|run| run.fingerprint).collect();
    let rehearsal = if arguments.no_rehearsal { None } else { rehearsed(&recipe, &dir, arguments.terminal)? };
    let folder = CampaignFolder::create(&dir)?;
    let lock = Lock::take(folder.path())?;
    folder.store(&recipe.source.path, parameters, &recipe.source.text)?;
    let task = Task { recipe, folder, choice, left, rehearsal, slots, sharers, began, _lock: lock };
    campaign(task, &arguments.machine, arguments.terminal, ranks)
}

/// Asks on the terminal whether to start all the same.
///
/// # Errors
/// The objection, where nobody can be asked; where the answer is no, that nothing was started.
fn confirmed(objection: PipelineError) -> Result<(), PipelineError> {
    if !(stdin().is_terminal() && stderr().is_terminal()) {
        return Err(objection);
    }
    say(format!("{objection}\nStart? [y/N] ").as_bytes());
    let mut answer = String::new();
    stdin().read_line(&mut answer).map_err(PipelineError::io(Path::new("standard input")))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(PipelineError::Usage("nothing was started".into())),
    }
}

/// Resumes the campaign in a folder.
pub(super) fn resume(dir: &Path, machine: &Machine, terminal: Terminal, ranks: &Ranks) -> Result<(), PipelineError> {
    let began = Instant::now();
    let folder = CampaignFolder::open(dir)?;
    let lock = Lock::take(folder.path())?;
    let (recipe, _) = stored(&folder)?;
    let (slots, sharers) = slots(machine, ranks)?;
    let (choice, left, rehearsal) = (Choice::all(), Vec::new(), None);
    let task = Task { recipe, folder, choice, left, rehearsal, slots, sharers, began, _lock: lock };
    campaign(task, machine, terminal, ranks)
}

/// Rehearses a recipe, unless that was done before in its campaign folder.
fn rehearsed(recipe: &Recipe, dir: &Path, terminal: Terminal) -> Result<Option<Rehearsal>, PipelineError> {
    if !rehearsal::is_due(recipe, dir, &happened(dir)?) {
        return Ok(None);
    }
    let progress = if terminal.quiet { Progress::default() } else { Progress::on_terminal() };
    let tell = |text: &str| progress.print(text.as_bytes());
    match rehearsal::rehearse(recipe, &progress) {
        Ok(rehearsal) => Ok(Some(rehearsal)),
        Err(error @ (PipelineError::Recipe(_) | PipelineError::Several(_))) => {
            tell(
                "the rehearsal on a toy universe found errors; correct the recipe, or skip the rehearsal with \
                  --no-rehearsal:\n",
            );
            Err(error)
        }
        Err(error) => {
            tell(&format!("not rehearsed: {error}\n"));
            Ok(None)
        }
    }
}

/// Where to compute, and how many processes share a GPU at the most.
fn slots(machine: &Machine, ranks: &Ranks) -> Result<(Slots, usize), PipelineError> {
    let machine = ranks.own(machine)?;
    // analyses use the global pool; a second call in one process (tests) keeps the first pool
    let _ = rayon::ThreadPoolBuilder::new().num_threads(machine.threads).build_global();
    let limit = machine.memory.map(|gib| (gib * GIB) as u64);
    let slots = Slots::new(&machine.device, machine.threads, machine.jobs.map(NonZeroUsize::get), limit);
    let own = slots.as_ref().map(|slots| slots.any()).map_err(ToString::to_string);
    let sharers = ranks.crew.prepare(own);
    Ok((slots?, sharers?))
}

fn campaign(task: Task, machine: &Machine, terminal: Terminal, ranks: &Ranks) -> Result<(), PipelineError> {
    let Task { recipe, folder, choice, left, rehearsal, slots, sharers, began, _lock } = task;
    let progress = if terminal.quiet { Progress::default() } else { Progress::on_terminal() };
    logging::start(&folder.log(), &progress, terminal.quiet)?;
    // on the terminal it is already
    recipe.printed.iter().for_each(|line| tracing::debug!("{line}"));
    recipe.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let job_end = std::env::var(Walltime::JOB_END).ok();
    let walltime = Walltime::of(machine.walltime, began, job_end.as_deref()).unwrap_or_else(|what| {
        tracing::warn!("{what}");
        None
    });
    let control = Control::listen(folder.path(), walltime)?;
    let together = match ranks.count() {
        1 => String::new(),
        count => format!(", with {} more processes of MPI", count - 1),
    };
    let within = walltime.map(|walltime| format!(", {}", walltime.announced())).unwrap_or_default();
    let (name, dir) = (&recipe.campaign.name, folder.path().display());
    tracing::info!("campaign \"{name}\" in {dir} on {}{together}{within}", slots.describe());
    if sharers > 1 {
        tracing::warn!(
            "{sharers} processes share a GPU, which is slower than one process; start at most one process per GPU of \
             a node"
        );
    }
    let events = EventStream::new(terminal.json);
    let ledger = Arc::new(Ledger::open(&folder.ledger())?.told_to(events.clone()));
    let writer = Arc::new(Writer::new(recipe, folder, Arc::clone(&ledger), progress.clone()));
    let (recipe, folder) = (&writer.recipe, &writer.folder);
    let last = Arc::clone(&writer);
    control.enforce(&ledger, move || _ = last.write_or_say(), ranks.crew.aborter())?;
    ledger.append(Event::CampaignStarted {
        name: recipe.campaign.name.clone(),
        recipe_digest: blake3::hash(recipe.source.text.as_bytes()).to_hex().to_string(),
        parameters: Some(recipe.parameters.given.clone()),
        program: concat!("comove ", env!("CARGO_PKG_VERSION")).into(),
        device: format!("{}; {}", slots.describe(), slots.any().class()),
        process: process(),
        machine: Some(Host::this()),
        options: machine.arguments(),
    })?;
    left.into_iter().try_for_each(|fingerprint| ledger.append(Event::RunLeft { fingerprint }))?;
    if let Some(rehearsal) = rehearsal {
        tracing::info!("{rehearsal}");
        rehearsal.not_rehearsed.iter().for_each(|note| tracing::debug!("not rehearsed: {note}"));
        ledger.append(rehearsal.event())?;
    }
    let executor = Executor {
        campaign: &recipe.campaign,
        folder,
        ledger: &ledger,
        crew: &ranks.crew,
        part_on_node: ranks.part_on_node(),
        snapshots: Snapshots::new(&progress),
        progress: &progress,
        control: &control,
        recipe: &recipe.source.text,
        choice,
        accept_version: machine.accept_version,
        keep_going: machine.keep_going,
    };
    let outcome = executor.run(slots);
    if let Err(error) = &outcome {
        tracing::debug!("{error}"); // the terminal gets it from `main`
    }
    let page = writer.write_or_say();
    let page = page.map(|page| format!("report: {}", page.display()));
    let results = match outcome {
        Ok(results) => results,
        Err(error) => {
            page.into_iter().for_each(|page| tracing::info!("{page}"));
            return Err(error);
        }
    };
    tracing::info!("done{}", page.map(|page| format!("; {page}")).unwrap_or_default());
    for line in whereabouts(folder.path(), &results) {
        tracing::info!("{line}");
    }
    events.check()
}

/// Where pictures, tables and snapshots lie, one line each.
fn whereabouts(folder: &Path, results: &[StageResult]) -> Vec<String> {
    let made = |result: &&StageResult| result.folder.starts_with(folder);
    let named = |end: &str| {
        let files = results.iter().filter(made).flat_map(|r| &r.artefacts);
        files.filter(|a| a.file.ends_with(end)).count()
    };
    let outputs = |r: &&StageResult| r.snapshots.iter().filter(|s| s.role == Role::Output).count();
    let snapshots: usize = results.iter().filter(made).map(|r| outputs(&r)).sum();
    let kinds = [
        ("pictures", "*/*.png", named(".png")),
        ("tables", "*/*.csv", named(".csv")),
        ("snapshots", "*/output_*.h5", snapshots),
    ];
    let kinds = kinds.into_iter().filter(|(.., count)| *count > 0);
    kinds.map(|(what, pattern, count)| format!("{count:>5} {what}: {}", folder.join(pattern).display())).collect()
}

/// `comove run --help`, with the parameters of the recipe if one is given.
fn help(arguments: cli::Run) -> Result<(), PipelineError> {
    let mut command = Cli::command();
    command.build();
    let run = command.find_subcommand_mut("run").expect("the subcommand is declared");
    print(&run.render_help().to_string())?;
    let Some(path) = arguments.recipe else { return Ok(()) };
    let (parameters, error) = recipe::parameters_of(read(&path)?, given(arguments.parameters)?);
    print(&parameters.help())?;
    error.map_or(Ok(()), |error| Err(error.into()))
}

//! The rehearsal of a campaign: its closures and decisions are called on a toy universe before anything is computed.
//!
//! | module | what it holds |
//! |---|---|
//! | [`universe`] | the toy: a clump in a box of 16³ root cells, two steps from a run's start |
//! | [`hooks`] | the closures of a run, called with the records of its steps |
//! | [`walk`] | the stages that have closures, and those they read |
//!
//! An error that the recipe's text alone decides ([`Cause`]) is the recipe's: the real run would have it too. Other errors
//! may come from the toy and stop nothing. A rehearsal writes to a temporary folder only, and its closures print nothing.

mod hooks;
mod universe;
mod walk;

use crate::campaign::Campaign;
use crate::error::PipelineError;
use crate::ledger::{Event, History, Ledger};
use crate::processes::control::Control;
use crate::recipe::{Program, Recipe};
use crate::stage::work::REHEARSAL;
use crate::storage::folder::CampaignFolder;
use crate::storage::snapshots::Snapshots;
use crate::terminal::progress::Progress;
use comove_kernels::Device;
use comove_sim::RankGroup;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Instant;
use walk::Walk;

/// Threads of the toy.
const THREADS: usize = 4;

/// A rehearsal without an error of the recipe.
#[derive(Clone, Debug)]
pub(crate) struct Rehearsal {
    digest: String,
    closures: usize,
    seconds: f64,
    /// Closures that were not called or gave no result, and why.
    pub not_rehearsed: Vec<String>,
}

/// Surroundings of the stages: of this process alone, in a temporary folder.
struct Surroundings {
    folder: PathBuf,
    program: Program,
    ledger: Ledger,
    control: Control,
    crew: RankGroup,
    device: Device,
    snapshots: Snapshots,
    progress: Progress,
}

/// Whether a campaign has closures or decisions that wait for its stages.
fn has_closures(campaign: &Campaign) -> bool {
    campaign.stages.iter().any(|node| node.decision().is_some() || !node.stage().closures().is_empty())
}

/// Whether a rehearsal could find anything: the campaign has closures, and the folder's history neither has a rehearsal of
/// the same recipe nor has finished it.
pub(crate) fn is_due(recipe: &Recipe, folder: &Path, history: &History) -> bool {
    let is_finished = || {
        let stored = CampaignFolder::open(folder).and_then(|folder| folder.load());
        matches!(history.ending, Some(Event::CampaignFinished {}))
            && stored.is_ok_and(|(manifest, text)| {
                text == recipe.source.text && manifest.parameters == recipe.parameters.given
            })
    };
    has_closures(&recipe.campaign) && !history.has_rehearsed(&digest(recipe)) && !is_finished()
}

/// Calls the closures of a recipe on a toy universe.
///
/// # Errors
/// [`PipelineError::Recipe`], or several of them, that a run of the recipe would have too.
pub(crate) fn rehearse(recipe: &Recipe, progress: &Progress) -> Result<Rehearsal, PipelineError> {
    let began = Instant::now();
    let temporary = tempfile::Builder::new().prefix("comove-rehearsal-").tempdir();
    let temporary = temporary.map_err(PipelineError::io(&std::env::temp_dir()))?;
    let folder = temporary.path();
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS);
    let program = recipe.campaign.program.as_deref().expect("a campaign from a recipe has its program").silent();
    let surroundings = Surroundings {
        folder: folder.into(),
        program,
        ledger: Ledger::open(&folder.join("ledger.jsonl"))?,
        control: Control::within(folder, REHEARSAL),
        crew: RankGroup::alone(),
        device: Device::cpu(threads)?,
        snapshots: Snapshots::default(),
        progress: Progress::default(),
    };
    let found = Walk::new(&recipe.campaign, &surroundings).through(&progress.stage())?;
    let errors = found.errors.into_iter().map(|error| PipelineError::Recipe(Box::new(error))).collect();
    match PipelineError::all(errors) {
        Some(error) => Err(error),
        None => Ok(Rehearsal {
            digest: digest(recipe),
            closures: found.closures.len(),
            seconds: began.elapsed().as_secs_f64(),
            not_rehearsed: found.not_rehearsed,
        }),
    }
}

/// What decides the outcome: the recipe's text, its parameters, and the program.
fn digest(recipe: &Recipe) -> String {
    let parameters = serde_json::to_string(&recipe.parameters.given).expect("names and values");
    let version = env!("CARGO_PKG_VERSION");
    blake3::hash(format!("{version}\n{parameters}\n{}", recipe.source.text).as_bytes()).to_hex().to_string()
}

impl Rehearsal {
    /// As the ledger has it.
    pub(crate) fn event(&self) -> Event {
        let Self { digest, closures, seconds, not_rehearsed } = self.clone();
        Event::Rehearsed { digest, closures, seconds, not_rehearsed }
    }
}

impl fmt::Display for Rehearsal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.closures == 1 { "" } else { "s" };
        write!(f, "rehearsed {} closure{plural} in {:.1} s", self.closures, self.seconds)
    }
}

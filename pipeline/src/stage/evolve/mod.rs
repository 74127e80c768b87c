//! `evolve`: a run from an initial condition or a snapshot to its end, with checkpoints and outputs.
//!
//! | module | what it holds |
//! |---|---|
//! | [`options`] | what a recipe may say |
//! | [`hooks`], [`observed`] | closures that are asked after its steps, and what they have noted |
//! | [`start`] | the state to begin or to continue from |
//! | [`trajectory`] | the loop over steps |
//! | [`snapshots`] | writing checkpoints and outputs beside the next steps, and deleting old ones |
//! | [`steps`] | `steps.jsonl`, one record a step |
//! | [`pace`] | how long the next step and checkpoint will take |
//! | [`section`] | the run's part of the report |
//!
//! Killed at any moment, a run continues from its newest valid checkpoint. Outputs are side branches of the trajectory,
//! so asking for one that lies in the past steps again from a checkpoint before it (or from the start) and gets the
//! same bits; what comes after it goes on from the newest checkpoint there is. A stop rule says where the run ends: it is
//! asked of the records of steps that were taken before the recipe had it, so the run ends where it would have ended.

pub mod hooks;
pub mod observed;
pub mod options;
pub mod pace;
pub mod section;
pub mod snapshots;
pub mod start;
pub mod steps;
pub mod trajectory;

use super::formula::Formula;
use super::ic::{self, InitialFacts, MESH};
use super::{Input, Memory, Selection, Stage, StageResult, Work};
use crate::error::PipelineError;
use crate::ledger::{SnapshotFile, StageHistory};
use crate::moment::{Moment, list};
use comove_kernels::Device;
use comove_kernels::layout::GROUP_CELLS;
use comove_sim::{Octree, Role, RunParameters, memory};
pub use hooks::Hooks;
use hooks::{StopPoint, stop_file};
pub use options::Checkpoints;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// Its kind.
pub const KIND: &str = "evolve";

/// What a run is called that the recipe does not name.
pub const TITLE: &str = "The run";

/// The version of a run's results.
pub const RESULTS_VERSION: u32 = 5;

/// A run.
#[derive(Clone, Debug)]
pub struct Evolve {
    /// What it starts from.
    pub origin: Origin,
    /// The numbers that decide its results.
    pub parameters: RunParameters,
    /// Where it ends.
    pub end: Moment,
    /// When outputs are taken, the end among them, in the order of time.
    pub outputs: Vec<Moment>,
    /// When checkpoints are written.
    pub checkpoints: Checkpoints,
    /// What is asked of the recipe after its steps.
    pub hooks: Hooks,
}

/// A way that a run steps without going back.
struct Leg {
    /// The outputs on it, in the order of time.
    outputs: Vec<Moment>,
    /// Where it ends, if not at the last of these.
    stop: Option<StopPoint>,
}

impl Leg {
    /// The first output on it.
    fn first(&self) -> Moment {
        self.outputs.first().copied().or(self.stop.map(|stop| stop.moment)).expect("a leg leads somewhere")
    }
}

/// What a run starts from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A mesh, its only input, which the run puts on its own octree.
    Initial(InitialFacts),
    /// A formula, which the run evaluates on its own octree.
    Formula(Arc<Formula>),
    /// A checkpoint, which is continued, or an output, from which another trajectory starts if `branch` says so.
    Saved {
        /// Whether the run may leave the snapshot's own trajectory.
        branch: bool,
    },
}

impl Origin {
    /// Where a run starts, if that is known before it runs.
    pub fn start(&self) -> Option<Moment> {
        match self {
            Self::Initial(facts) => Some(Moment::Redshift(facts.z)),
            Self::Formula(formula) => Some(formula.start()),
            Self::Saved { .. } => None,
        }
    }
}

impl Evolve {
    /// The outputs that a history lacks, in the order of time, up to where the stop rule has ended the run.
    pub fn missing(&self, history: &StageHistory) -> Vec<Moment> {
        let there = self.snapshots(history);
        let wanted = self.outputs.iter().copied().filter(|moment| self.reaches(*moment, history));
        wanted.filter(|moment| there.iter().all(|s| s.moment() != *moment)).collect()
    }

    /// Whether a history has all outputs, and what the stop rule asks for.
    pub fn has_all(&self, history: &StageHistory) -> bool {
        self.missing(history).is_empty() && self.is_ruled(history)
    }

    /// Whether a moment does not lie beyond where the stop rule has ended the run.
    fn reaches(&self, moment: Moment, history: &StageHistory) -> bool {
        self.stop(history).is_none_or(|stop| moment.now() <= stop.moment.now())
    }

    /// Why a run with these files has nothing to continue: checkpoints lie after what it lacks, and outputs, which may lie
    /// before, are no part of its way.
    pub fn why_anew(&self, history: &StageHistory) -> Option<String> {
        let first = *self.missing(history).first()?;
        let before = history.snapshots.iter().rfind(|s| s.role == Role::Output && s.moment().now() < first.now());
        let output = before.map(|s| {
            format!(", and from an output, as {}, none continues: checkpoints: #{{ at_z: […] }} keeps some", s.file)
        });
        Some(format!("no checkpoint lies before {}{}", first.rounded(), output.unwrap_or_default()))
    }

    /// The run that does what all of these do, which differ in where they end and what they write.
    ///
    /// # Panics
    /// If there is none.
    pub fn joined(runs: &[&Self]) -> Self {
        let last = runs.iter().max_by(|x, y| x.end.now().total_cmp(&y.end.now())).expect("at least one");
        let mut outputs: Vec<Moment> = runs.iter().flat_map(|run| run.outputs.iter().copied()).collect();
        outputs.sort_by(|x, y| x.now().total_cmp(&y.now()));
        outputs.dedup();
        let checkpoints = Checkpoints::joined(runs.iter().map(|run| &run.checkpoints));
        Self { outputs, checkpoints, ..(*last).clone() }
    }

    /// The stretches of the run's way that are left: each from a checkpoint, else from its start, to its last output or to
    /// where the stop rule has ended the run.
    pub fn stretches(&self, history: &StageHistory) -> Vec<(Option<Moment>, Moment)> {
        let stretch = |leg: Leg| {
            let from = checkpoints_before(history, leg.first()).next().map(SnapshotFile::moment);
            let stop = leg.stop.map(|stop| stop.moment);
            (from, stop.or(leg.outputs.last().copied()).expect("a leg leads somewhere"))
        };
        self.legs(history).into_iter().map(stretch).collect()
    }

    /// What is left to do, leg by leg: each goes to the last output before a checkpoint, from which the next goes on.
    fn legs(&self, history: &StageHistory) -> Vec<Leg> {
        let between = |x: f64, y: f64| checkpoints(history).any(|c| x < c.moment().now() && c.moment().now() <= y);
        let missing = self.missing(history);
        let legs = missing.chunk_by(|x, y| !between(x.now(), y.now()));
        let mut legs: Vec<Leg> = legs.map(|outputs| Leg { outputs: outputs.to_vec(), stop: None }).collect();
        if let Some(stop) = self.stop(history).filter(|_| !self.is_ruled(history)) {
            match legs.last_mut() {
                Some(last) if !between(last.first().now(), stop.moment.now()) => last.stop = Some(stop),
                _ => legs.push(Leg { outputs: Vec::new(), stop: Some(stop) }),
            }
        }
        legs
    }
}

/// The checkpoints of a history, newest first.
fn checkpoints(history: &StageHistory) -> impl Iterator<Item = &SnapshotFile> {
    history.snapshots.iter().rev().filter(|s| s.role == Role::Checkpoint)
}

/// The checkpoints of a history from which a run comes to the output at `moment`, newest first.
fn checkpoints_before(history: &StageHistory, moment: Moment) -> impl Iterator<Item = &SnapshotFile> {
    checkpoints(history).filter(move |s| s.moment().now() <= moment.now())
}

impl Stage for Evolve {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn results_version(&self) -> u32 {
        RESULTS_VERSION
    }

    fn title(&self) -> String {
        TITLE.into()
    }

    fn describe(&self) -> String {
        let start = match &self.origin {
            Origin::Initial(facts) => {
                format!("z = {} to {}, root {}", facts.z, self.end.value(), ic::shown(facts.root))
            }
            Origin::Formula(formula) => {
                let (start, root) = (formula.start().rounded(), ic::shown(formula.setup.root));
                format!("{}, {start} to {}, root {root}", formula.describe(), self.end.rounded().value())
            }
            Origin::Saved { .. } => format!("from a snapshot to {}", self.end),
        };
        let precision = format!("{:?}", self.parameters.precision).to_lowercase();
        let levels = match self.parameters.max_level {
            0 => "no refinement".into(),
            1 => "1 refinement level".into(),
            n => format!("{n} refinement levels"),
        };
        format!("{start}, {levels}, {precision} precision, outputs at {}{}", list(&self.outputs), self.hooks.describe())
    }

    fn parameters(&self) -> Value {
        let origin = match &self.origin {
            Origin::Initial(facts) => json!({ "root": facts.root }),
            Origin::Formula(formula) => formula.parameters(),
            Origin::Saved { branch } => json!({ "branch": branch }),
        };
        match &self.hooks.steer {
            Some(steer) => json!({ "run": self.parameters, "origin": origin, "steer": steer.parameters() }),
            None => json!({ "run": self.parameters, "origin": origin }),
        }
    }

    fn extent(&self) -> Value {
        let outputs: Vec<String> = self.outputs.iter().map(Moment::to_string).collect();
        let hooks = self.hooks.extent();
        json!({ "end": self.end.to_string(), "outputs": outputs, "checkpoints": self.checkpoints, "hooks": hooks })
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        match &self.origin {
            Origin::Initial(_) => input
                .artefact(MESH)
                .map(|mesh| vec![mesh])
                .ok_or_else(|| PipelineError::input(&input.folder, format!("{MESH} is missing"))),
            Origin::Formula(_) => Ok(Vec::new()),
            Origin::Saved { .. } => Selection::Last.of(input),
        }
    }

    /// The octree's arrays and a snapshot of it: of the root alone where nothing more is known.
    fn memory(&self, device: &Device, tree: Option<&Octree>) -> Memory {
        let snapshot = |cells: f64| {
            let groups = (cells / GROUP_CELLS as f64) as usize;
            memory::snapshot_bytes(device, groups, self.parameters.precision.bytes()) as f64
        };
        let of_root = |root: [usize; 3], mesh: f64| Memory {
            host: mesh + snapshot(ic::volume(root)),
            device: memory::root_device_bytes(device, root, &self.parameters),
        };
        match (tree, &self.origin) {
            (Some(tree), _) => Memory {
                host: snapshot((tree.group_count() * GROUP_CELLS) as f64),
                device: memory::device_bytes(device, tree, &self.parameters) as f64,
            },
            (None, Origin::Initial(facts)) => of_root(facts.root, ic::BYTES_PER_CELL * ic::volume(facts.cells)),
            (None, Origin::Formula(formula)) => of_root(formula.setup.root, 0.0),
            (None, Origin::Saved { .. }) => Memory::default(),
        }
    }

    fn as_run(&self) -> Option<&Self> {
        Some(self)
    }

    fn is_done(&self, history: &StageHistory) -> bool {
        history.artefacts.is_some() && self.has_all(history)
    }

    fn snapshots(&self, history: &StageHistory) -> Vec<SnapshotFile> {
        let outputs = history.snapshots.iter().filter(|s| s.role == Role::Output);
        let last = self.stop(history).map(|stop| stop_file(stop.step));
        let asked = |s: &&SnapshotFile| {
            last.as_ref() == Some(&s.file) || (self.outputs.contains(&s.moment()) && self.reaches(s.moment(), history))
        };
        outputs.filter(asked).cloned().collect()
    }

    fn goes_on_from(&self, folder: &Path, history: &StageHistory, inputs: &[Vec<Input>]) -> Vec<Input> {
        let Some(first) = self.legs(history).first().map(Leg::first) else { return Vec::new() };
        let saved = matches!(self.origin, Origin::Saved { .. }).then(|| inputs[0][0].clone());
        checkpoints_before(history, first).map(|s| Input::snapshot(folder, s)).chain(saved).collect()
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let asked = self.rule_on_records(work)?;
        let legs = self.legs(&work.history());
        if legs.is_empty() {
            // damaged records do not make the results doubtful: what can be read of them stays
            steps::Steps::open(&work.folder, None)?;
            observed::Observed::open(&self.hooks, work)?;
        }
        for leg in legs {
            let mut simulation = start::start(self, work, leg.first()).map_err(PipelineError::before_start)?;
            let summary = trajectory::follow(&mut simulation, self, work, &leg, asked)?;
            section::write_summary(work, &summary)?;
            if self.stop(&work.history()).is_some_and(|stop| stop.step == summary.steps) {
                break;
            }
        }
        self.rule_passed(asked, work)?;
        let mut section = section::section(work, self)?;
        let mut files = observed::show(self, work, &mut section)?;
        for file in [steps::FILE, section::SUMMARY, start::AUDIT, observed::FILE] {
            if work.path(file).exists() {
                files.push(file.into());
            }
        }
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

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
//! | [`section`], [`so_far`] | the run's part of the report, when it is done and before |
//!
//! Killed at any moment, a run continues from its newest valid checkpoint. Outputs are side branches of the trajectory,
//! so asking for one that lies in the past steps again from a checkpoint before it (or from the start) and gets the
//! same bits; what comes after it goes on from the newest checkpoint there is. A stop rule says where the run ends: it is
//! asked of the records of steps that were taken before the recipe had it, so the run ends where it would have ended.

pub(crate) mod hooks;
pub(crate) mod observed;
pub(crate) mod options;
pub(crate) mod pace;
mod rule;
pub(crate) mod run;
pub(crate) mod section;
pub(crate) mod snapshots;
pub(crate) mod so_far;
pub(crate) mod start;
pub(crate) mod steps;
pub(crate) mod trajectory;

use super::ic::{self, MESH};
use super::initial::SpeciesPresent;
use super::{EXPRESSIONS, Input, Memory, SavedState, Selection, Stage, StageResult, Work};
use crate::error::PipelineError;
use crate::ledger::{SnapshotFile, StageHistory};
use crate::moment::{Moment, list};
use crate::recipe::Place;
use comove_kernels::Device;
use comove_kernels::layout::GROUP_CELLS;
use comove_sim::memory;
use comove_sim::records::RECORD_VERSION;
pub(crate) use hooks::Hooks;
pub(crate) use run::{Evolve, Origin};
use run::{Segment, checkpoints_before};
use serde_json::{Value, json};
use std::path::Path;

pub(crate) const KIND: &str = "evolve";

/// What a run is called that the recipe does not name.
pub(crate) const TITLE: &str = "The run";

/// The version of a run's results.
pub const RESULTS_VERSION: u32 = 10;

/// The parameters of two runs for a reader: where the programs of their criteria differ, by the texts of the expressions.
pub(crate) fn with_expressions(mut of: [(Value, &Value); 2]) -> [Value; 2] {
    let places: Vec<String> = of.iter().flat_map(|(parameters, _)| programs("", parameters)).collect();
    for place in places {
        if of[0].0.pointer(&place) != of[1].0.pointer(&place) {
            for (parameters, extent) in &mut of {
                let text = extent[EXPRESSIONS].get(&place).cloned();
                if let Some(program) = parameters.pointer_mut(&place).filter(|program| program.is_array()) {
                    *program = text.unwrap_or_else(|| "an expression, of which an earlier version kept no text".into());
                }
            }
        }
    }
    of.map(|(parameters, _)| parameters)
}

/// Where programs of criteria stand in parameters, as JSON pointers.
fn programs(place: &str, value: &Value) -> Vec<String> {
    let inner = |name: &str, value: &Value| {
        let place = format!("{place}/{name}");
        if place.ends_with("/where/program") { vec![place] } else { programs(&place, value) }
    };
    match value {
        Value::Object(map) => map.iter().flat_map(|(name, value)| inner(name, value)).collect(),
        Value::Array(list) => list.iter().enumerate().flat_map(|(n, value)| inner(&n.to_string(), value)).collect(),
        _ => Vec::new(),
    }
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
            Origin::Saved { branch, .. } => json!({ "branch": branch }),
        };
        let mut parameters = json!({ "run": self.parameters, "origin": origin });
        if let Some(steer) = &self.hooks.steer {
            parameters["steer"] = steer.parameters();
            // older records, which have steered older runs, have other densities beside dark matter
            if self.may_have_dark_matter() {
                parameters["records"] = RECORD_VERSION.into();
            }
        }
        parameters
    }

    fn species(&self) -> Option<SpeciesPresent> {
        self.origin.species()
    }

    fn shown_parameters(&self) -> Value {
        let mut parameters = self.parameters();
        for (place, text) in self.expressions() {
            if let Some(program) = parameters.pointer_mut(&place) {
                *program = text.into();
            }
        }
        parameters
    }

    fn extent(&self) -> Value {
        let outputs: Vec<String> = self.outputs.iter().map(Moment::to_string).collect();
        let hooks = self.hooks.extent();
        let mut extent =
            json!({ "end": self.end.to_string(), "outputs": outputs, "checkpoints": self.checkpoints, "hooks": hooks });
        let expressions = self.expressions();
        if !expressions.is_empty() {
            extent[EXPRESSIONS] = json!(expressions);
        }
        extent
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
    fn memory(&self, device: &Device, begun: Option<&SavedState>) -> Memory {
        let species = self.species(begun.map(|(header, _)| header));
        let snapshot = |cells: f64| {
            let groups = (cells / GROUP_CELLS as f64) as usize;
            let scalars = self.parameters.scalars.len();
            memory::snapshot_bytes(device, groups, scalars, species, self.parameters.precision.bytes()) as f64
        };
        let of_root = |root: [usize; 3], mesh: f64| Memory {
            host: mesh + snapshot(ic::volume(root)),
            device: memory::root_device_bytes(device, root, &self.parameters, species),
        };
        match (begun, &self.origin) {
            (Some((_, tree)), _) => Memory {
                host: snapshot((tree.group_count() * GROUP_CELLS) as f64),
                device: memory::device_bytes(device, tree, &self.parameters, species) as f64,
            },
            (None, Origin::Initial(facts)) => {
                let values = ic::volume(facts.cells).max(facts.particles as f64);
                of_root(facts.root, ic::BYTES_PER_CELL * values)
            }
            (None, Origin::Formula(formula)) => of_root(formula.setup.root, 0.0),
            (None, Origin::Saved { .. }) => Memory::default(),
        }
    }

    fn closures(&self) -> Vec<Place> {
        let of_start = match &self.origin {
            Origin::Formula(formula) => formula.closures(),
            Origin::Initial(_) | Origin::Saved { .. } => Vec::new(),
        };
        self.hooks.closures().map(|hook| hook.captured.place).chain(of_start).collect()
    }

    fn as_run(&self) -> Option<&Self> {
        Some(self)
    }

    fn is_done(&self, history: &StageHistory) -> bool {
        history.artefacts.is_some() && self.has_all(history)
    }

    fn snapshots(&self, history: &StageHistory) -> Vec<SnapshotFile> {
        self.asked_snapshots(history)
    }

    fn goes_on_from(&self, folder: &Path, history: &StageHistory, inputs: &[Vec<Input>]) -> Vec<Input> {
        let Some(first) = self.segments(history).first().map(Segment::first) else { return Vec::new() };
        let saved = matches!(self.origin, Origin::Saved { .. }).then(|| inputs[0][0].clone());
        checkpoints_before(history, first).map(|s| Input::snapshot(folder, s)).chain(saved).collect()
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let asked = self.rule_on_records(work)?;
        let legs = self.segments(&work.history());
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

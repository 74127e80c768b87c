//! `evolve`: a run from an initial condition or a snapshot to `z_end`, with checkpoints and outputs.
//!
//! | module | what it holds |
//! |---|---|
//! | [`options`] | what a recipe may say |
//! | [`start`] | the state to begin or to continue from |
//! | [`trajectory`] | the loop over steps |
//! | [`snapshots`] | writing checkpoints and outputs beside the next steps, and deleting old ones |
//! | [`steps`] | `steps.jsonl`, one record a step |
//!
//! Killed at any moment, a run continues from its newest valid checkpoint. Outputs are side branches of the trajectory,
//! so asking for one that lies in the past steps again from a checkpoint before it (or from the start) and gets the
//! same bits.

pub mod options;
pub mod snapshots;
pub mod start;
pub mod steps;
pub mod trajectory;

use super::ic::{InitialFacts, MESH};
use super::section::Section;
use super::{Input, Selection, Stage, StageResult, Work};
use crate::error::PipelineError;
use crate::ledger::{SnapshotFile, StageHistory};
use comove_sim::records::RunSummary;
use comove_sim::{Role, RunParameters};
pub use options::Checkpoints;
use serde_json::{Value, json};

/// A run.
#[derive(Clone, Debug)]
pub struct Evolve {
    /// What it starts from.
    pub origin: Origin,
    /// The numbers that decide its results.
    pub parameters: RunParameters,
    /// Redshift at which it ends.
    pub z_end: f64,
    /// Redshifts of the outputs, `z_end` among them, falling.
    pub outputs: Vec<f64>,
    /// When checkpoints are written.
    pub checkpoints: Checkpoints,
}

/// What a run starts from: its only input.
#[derive(Clone, Debug)]
pub enum Origin {
    /// An initial condition, which the run puts on its own octree.
    Initial(InitialFacts),
    /// A checkpoint, which is continued, or an output, from which another trajectory starts if `branch` says so.
    Saved {
        /// Whether an output will do.
        branch: bool,
    },
}

impl Evolve {
    /// The outputs that a history lacks, as redshifts, falling: what is left to do.
    pub fn missing(&self, history: &StageHistory) -> Vec<f64> {
        let there = |z: f64| history.snapshots.iter().any(|s: &SnapshotFile| s.role == Role::Output && s.z == z);
        self.outputs.iter().copied().filter(|z| !there(*z)).collect()
    }
}

impl Stage for Evolve {
    fn kind(&self) -> &'static str {
        "evolve"
    }

    fn describe(&self) -> String {
        let start = match &self.origin {
            Origin::Initial(facts) => format!("z = {} to {}, root {:?}", facts.z, self.z_end, facts.root),
            Origin::Saved { .. } => format!("from a snapshot to z = {}", self.z_end),
        };
        let outputs: Vec<String> = self.outputs.iter().map(ToString::to_string).collect();
        let precision = format!("{:?}", self.parameters.precision).to_lowercase();
        let levels = self.parameters.max_level;
        format!("{start}, {levels} refinement levels, {precision} precision, outputs at z = {}", outputs.join(", "))
    }

    fn parameters(&self) -> Value {
        let origin = match &self.origin {
            Origin::Initial(facts) => json!({ "root": facts.root }),
            Origin::Saved { branch } => json!({ "branch": branch }),
        };
        json!({ "run": self.parameters, "origin": origin })
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        match &self.origin {
            Origin::Initial(_) => input
                .artefact(MESH)
                .map(|mesh| vec![mesh])
                .ok_or_else(|| PipelineError::input(&input.folder, format!("{MESH} is missing"))),
            Origin::Saved { .. } => Selection::Last.of(input),
        }
    }

    fn is_done(&self, history: &StageHistory) -> bool {
        history.artefacts.is_some() && self.missing(history).is_empty()
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let missing = self.missing(&work.history());
        let mut files: Vec<String> = Vec::new();
        if !missing.is_empty() {
            let mut simulation = start::start(self, work, &missing)?;
            let summary = trajectory::follow(&mut simulation, self, work, &missing)?;
            work.write_json("summary.json", &summary)?;
        }
        for file in [steps::FILE, "summary.json", start::AUDIT] {
            if work.path(file).exists() {
                files.push(file.into());
            }
        }
        files.push(work.write_section(&self.section(work)?)?);
        Ok(files)
    }
}

impl Evolve {
    /// The run's part of the report: how far, how well the sums were kept, where the time went.
    fn section(&self, work: &Work<'_>) -> Result<Section, PipelineError> {
        let mut section = Section::new("The run", self.describe());
        let path = work.path("summary.json");
        let Ok(text) = std::fs::read(&path) else { return Ok(section) };
        let summary: RunSummary = serde_json::from_slice(&text)
            .map_err(|e| PipelineError::input(&path, format!("not a run's summary: {e}; delete the stage's folder")))?;
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        section.table(
            "Totals at the end",
            &["quantity", "value"],
            vec![
                row("root steps", summary.steps.to_string()),
                row("cells", summary.cells.to_string()),
                row("relative drift of mass", format!("{:.2e}", summary.mass_drift)),
                row("residual of the energy ledger", format!("{:.2e}", summary.energy_residual)),
                row("work of gravity", format!("{:.4e}", summary.ledger.gravity_work)),
                row("energy from the entropy scalar", format!("{:.4e}", summary.ledger.entropy_energy)),
                row("energy from floors", format!("{:.4e}", summary.ledger.floor_energy)),
                row("energy from regrids", format!("{:.4e}", summary.ledger.regrid_energy)),
                row("cells floored", summary.ledger.floored_cells.to_string()),
                row("memory per cell in bytes", format!("{:.1}", summary.bytes_per_cell)),
                row("device", summary.device.clone()),
            ],
        );
        let timing = &summary.timing;
        let parts = [
            ("hydro", timing.hydro),
            ("Poisson", timing.poisson),
            ("gravity kick", timing.kick),
            ("flux correction and restriction", timing.correction),
            ("time step", timing.time_step),
            ("regrid", timing.regrid),
            ("records", timing.records),
        ];
        let total = timing.total().max(f64::MIN_POSITIVE);
        let share =
            |(name, s): (&str, f64)| vec![name.to_owned(), format!("{s:.2}"), format!("{:.1}", 100.0 * s / total)];
        section.table(
            "Where the time went (last process)",
            &["part", "seconds", "percent"],
            parts.into_iter().map(share).collect(),
        );
        let path = work.path(start::AUDIT);
        if let Ok(text) = std::fs::read(&path) {
            let audit = serde_json::from_slice(&text)
                .map_err(|e| PipelineError::input(&path, format!("not an audit: {e}; delete the stage's folder")))?;
            section.tables.extend(start::audit_tables(&audit));
        }
        Ok(section)
    }
}

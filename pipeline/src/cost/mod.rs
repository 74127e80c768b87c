//! What the stages of a campaign will take: cells, memory, disk and time.
//!
//! A run is predicted from records: its own so far, those of runs like it, and last a model of clustering. What
//! came of a
//! prediction is in a table of docs/campaigns.md, written by `scripts/check-predictions`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`records`] | campaigns that have run: their runs' records, and how long their stages took |
//! | [`mesh`], [`state`] | mesh, universe and options that decide a run's steps; its state at a place on its way |
//! | [`theory`], [`model`] | the run without records: linear theory, and the fractions of the box that halos refine |
//! | [`trajectory_model`] | the way of a recorded run, its steps and refined fractions, also on another mesh |
//! | [`ways`] | records and the model one after the other |
//! | [`mod@reference`] | speeds of the reference machines |
//! | [`run`] | cost of a run on such a way |
//! | [`remaining`] | time that a run in progress has left |
//! | [`speed`] | how fast this machine is, against those of the reference |

mod mesh;
mod model;
pub(crate) mod records;
pub(crate) mod reference;
pub(crate) mod remaining;
pub(crate) mod run;
pub(crate) mod speed;
mod state;
mod theory;
pub(crate) mod trajectory_model;
mod ways;

use crate::error::PipelineError;
use crate::ledger::{History, SnapshotFile, StageHistory};
use crate::moment::Moment;
use crate::stage::evolve::Evolve;
use crate::stage::ic::MESH;
use crate::stage::{Input, SavedState, Stage, StageResult};
use crate::terminal::time_left::CENTURY;
use comove_kernels::Device;
use comove_kernels::memory::GIB;
use comove_sim::{Coordinates, Role, SnapshotHeader};
use indicatif::{BinaryBytes, DecimalBytes, HumanDuration};
use records::Records;
use run::{RunCost, Start};
use serde::Serialize;
use speed::Speed;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// Root steps of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<f64>,
    /// Most cells that a run's octree has, all levels together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<f64>,
    /// Most bytes on the device of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_bytes: Option<f64>,
    /// Bytes of the files that it leaves, without tables and pictures.
    pub disk_bytes: f64,
    /// Seconds; `None` where nothing is known of it.
    pub seconds: Option<f64>,
    /// What a run is predicted from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether that is no record of a run like it.
    pub is_guess: bool,
}

impl Cost {
    fn is_finite(&self) -> bool {
        [self.steps, self.cells, self.device_bytes, Some(self.disk_bytes), self.seconds]
            .into_iter()
            .flatten()
            .all(f64::is_finite)
    }

    /// Whether it is not worth a word: nothing is known, or it is a second at most and leaves no large file.
    pub(crate) fn is_little(&self) -> bool {
        self.steps.is_none() && self.disk_bytes < 1e6 && self.seconds.is_none_or(|seconds| seconds < 1.0)
    }
}

impl std::fmt::Display for Cost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.steps.map(|steps| format!("{} steps", count(steps.ceil()))));
        parts.extend(self.cells.map(|cells| format!("up to {} cells", count(cells))));
        parts.extend(self.device_bytes.map(|bytes| format!("{} of the device's memory", memory(bytes))));
        parts.extend(Some(self.disk_bytes).filter(|bytes| *bytes > 0.0).map(|disk| format!("{} on disk", bytes(disk))));
        parts.extend(self.seconds.map(time));
        let from = match (&self.from, self.is_guess) {
            (Some(from), false) => format!(", from the records of {from}"),
            (Some(from), true) => format!(", a first guess from {from}"),
            (None, _) => String::new(),
        };
        write!(f, "{}{from}", parts.join(", "))
    }
}

/// A count in words: `512`, `1.2 million`, `6.9e21`.
fn count(n: f64) -> String {
    match n {
        ..1e5 => format!("{n:.0}"),
        ..1e9 => format!("{:.1} million", n / 1e6),
        ..1e14 => format!("{:.1} billion", n / 1e9),
        _ => format!("{n:.1e}"),
    }
}

pub(crate) fn time(seconds: f64) -> String {
    match Duration::try_from_secs_f64(seconds) {
        Ok(_) if seconds < 1.0 => "less than a second".into(),
        Ok(time) if seconds < CENTURY => format!("about {}", HumanDuration(time)),
        _ => "more than a century".into(),
    }
}

/// A size of files in words.
pub(crate) fn bytes(bytes: f64) -> String {
    if bytes < 1e18 { DecimalBytes(bytes as u64).to_string() } else { format!("{:.1e} EB", bytes / 1e18) }
}

/// A size of memory in words.
pub(crate) fn memory(bytes: f64) -> String {
    let gibibytes = bytes / GIB;
    match gibibytes {
        ..0.01 => BinaryBytes(bytes as u64).to_string(),
        ..1e7 => format!("{gibibytes:.2} GiB"),
        _ => format!("{gibibytes:.1e} GiB"),
    }
}

/// Predicts the stages of a campaign, each after those that it reads.
pub(crate) struct Predictor<'a> {
    device: &'a Device,
    records: Records,
    speed: Speed,
}

/// A stage and what is known of it, for a prediction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned<'a> {
    pub stage: &'a dyn Stage,
    /// Its folder in the campaign's, once its inputs are there.
    pub folder: Option<&'a Path>,
    /// The snapshot from which a run resumes or starts, and its header and octree.
    pub from: Option<&'a Input>,
    pub begun: Option<&'a SavedState>,
    /// What the ledger knows of it.
    pub known: Option<&'a StageHistory>,
    /// What it reads, stage by stage: [`Left`] of each, if known.
    pub inputs: &'a [Option<&'a Left>],
}

/// What a stage has left, or will have left.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    result: StageResult,
    /// Bytes of each snapshot.
    bytes: Vec<f64>,
    /// Bytes of its mesh.
    mesh: f64,
    /// Of a run that does not exist yet.
    start: Option<Start>,
}

impl Left {
    /// What there is of a stage that is done.
    pub(crate) fn of(result: &StageResult) -> Self {
        let size = |file: &str| std::fs::metadata(result.folder.join(file)).map_or(0.0, |file| file.len() as f64);
        let mesh = result.artefact(MESH).map_or(0.0, |_| size(MESH));
        let bytes = result.snapshots.iter().map(|snapshot| size(&snapshot.file)).collect();
        Self { result: result.clone(), bytes, mesh, start: None }
    }
}

impl<'a> Predictor<'a> {
    /// One for the campaign in `folder`, with this history: from its records, from those of the campaigns beside it, and of
    /// the one in `like`.
    pub(crate) fn new(
        folder: &Path,
        history: &History,
        like: Option<&Path>,
        device: &'a Device,
    ) -> Result<Self, PipelineError> {
        let records = Records::around(folder, history, like)?;
        let speed = Speed::of(device, &records);
        Ok(Self { device, records, speed })
    }

    /// What a stage takes that is not done, and what it leaves.
    pub(crate) fn stage(&mut self, planned: &Planned<'_>) -> (Cost, Option<Left>) {
        if let Some(run) = planned.stage.as_run() {
            return self.run(run, planned);
        }
        let left = Left { result: nothing(), bytes: Vec::new(), mesh: planned.stage.mesh_bytes(), start: None };
        (self.other(planned), Some(left))
    }

    fn run(&mut self, run: &Evolve, planned: &Planned<'_>) -> (Cost, Option<Left>) {
        let Some(RunCost { cost, outputs, start }) =
            run::cost(run, planned, &self.records, self.device, &mut self.speed)
        else {
            return (Cost::default(), None);
        };
        let snapshots = outputs.iter().enumerate().map(|(n, (moment, _))| snapshot_at(n, *moment)).collect();
        let bytes = outputs.into_iter().map(|(_, bytes)| bytes).collect();
        (cost, Some(Left { result: StageResult { snapshots, ..nothing() }, bytes, mesh: 0.0, start: Some(start) }))
    }

    /// An initial condition or an analysis, by what it reads and makes.
    fn other(&self, planned: &Planned<'_>) -> Cost {
        let made = planned.stage.mesh_bytes();
        let read = || {
            let mut files = Vec::new();
            for input in planned.inputs {
                let left = (*input)?;
                for file in planned.stage.reads(&left.result).ok()? {
                    let n = left.result.snapshots.iter().position(|s| file.path.ends_with(&s.file));
                    files.push(n.map_or(left.mesh, |n| left.bytes[n]));
                }
            }
            Some(files)
        };
        let seconds =
            read().map(|files| self.speed.other(planned.stage.kind(), files.len(), files.iter().sum::<f64>() + made));
        Cost { disk_bytes: made, seconds: seconds.flatten(), ..Cost::default() }
    }
}

/// What a stage leaves that is not there.
fn nothing() -> StageResult {
    StageResult { folder: PathBuf::new(), artefacts: Vec::new(), snapshots: Vec::new() }
}

/// A snapshot that a run will have written: its moment counts, and a name for each.
fn snapshot_at(n: usize, moment: Moment) -> SnapshotFile {
    let header = SnapshotHeader { role: Role::Output, ..SnapshotHeader::initial(Coordinates::Comoving) };
    SnapshotFile::new(format!("{n}.h5"), &header, moment, true)
}

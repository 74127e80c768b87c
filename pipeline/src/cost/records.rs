//! Campaigns that have run, as far as their folders tell: their runs, and how long their other stages took.

use super::mesh::Mesh;
use super::theory::Universe;
use super::trajectory_model::{Record, Recorded};
use crate::error::PipelineError;
use crate::ledger::{Event, History, StageHistory, history};
use crate::processes::machine::Host;
use crate::stage::evolve::{Evolve, Origin, steps};
use crate::stage::ic::MESH;
use crate::storage::folder::CampaignFolder;
use crate::storage::jsonl;
use comove_kernels::layout::GROUP_CELLS;
use comove_sim::RunParameters;
use comove_sim::records::upgrade;
use serde::Deserialize;
use serde_json::Value;
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// Campaigns beside one that are looked at, the latest.
const MOST: usize = 20;

/// A run that has taken steps.
#[derive(Debug)]
pub(crate) struct RecordedRun {
    pub folder: PathBuf,
    pub device: String,
    /// The machine, if the ledger says.
    pub machine: Option<Host>,
    pub parameters: RunParameters,
    /// What else decides its results: what it started from.
    origin: Value,
    /// `None` where the ledger does not hold its initial condition.
    universe: Option<Universe>,
    /// Its records, once they have been read.
    records: OnceCell<Vec<Record>>,
}

/// A record, brought to the present layout as it is read.
#[derive(Deserialize)]
#[serde(try_from = "Value")]
struct Upgraded(Record);

impl TryFrom<Value> for Upgraded {
    type Error = serde_json::Error;

    fn try_from(mut record: Value) -> Result<Self, Self::Error> {
        upgrade(&mut record);
        serde_json::from_value(record).map(Self)
    }
}

#[derive(Debug)]
pub(crate) struct RecordedStage {
    pub kind: String,
    pub files: usize,
    /// Bytes of these, and of the mesh that it made.
    pub bytes: f64,
    pub seconds: f64,
}

#[derive(Debug, Default)]
pub(crate) struct Records {
    pub runs: Vec<RecordedRun>,
    pub stages: Vec<RecordedStage>,
}

impl Records {
    /// Those of a campaign, of another one, and of the campaigns in folders beside the first, where what cannot be read
    /// tells nothing.
    pub(crate) fn around(folder: &Path, history: &History, like: Option<&Path>) -> Result<Self, PipelineError> {
        let read = |folder: &Path| Ok::<_, PipelineError>(history::read(&CampaignFolder::open(folder)?.ledger())?.0);
        let mut records = Self::default();
        records.take(folder, history);
        if let Some(like) = like {
            records.take(like, &read(like)?);
        }
        let like = like.and_then(|like| std::path::absolute(like).ok());
        for other in beside(folder).into_iter().filter(|other| Some(other) != like.as_ref()) {
            read(&other).into_iter().for_each(|history| records.take(&other, &history));
        }
        Ok(records)
    }

    fn take(&mut self, folder: &Path, history: &History) {
        let Some(Event::CampaignStarted { device, machine, .. }) = &history.start else { return };
        for (_, stage) in history.stages() {
            let (Some(identity), folder) = (&stage.identity, folder.join(&stage.folder)) else { continue };
            if stage.kind == "evolve" {
                let Some(parameters) = parameters_of(&identity.parameters["run"]) else { continue };
                self.runs.push(RecordedRun {
                    folder,
                    device: device.clone(),
                    machine: machine.clone(),
                    parameters,
                    origin: identity.parameters["origin"].clone(),
                    universe: universe(history, stage),
                    records: OnceCell::new(),
                });
            } else if let Some(seconds) = stage.seconds {
                let campaign = folder.parent().expect("a stage's folder lies in its campaign's");
                let size = |path: PathBuf| path.metadata().map(|file| file.len() as f64);
                let read: Result<Vec<f64>, _> =
                    identity.inputs.iter().map(|file| size(campaign.join(&file.file))).collect();
                // what has been deleted since cannot be weighed
                let Ok(read) = read else { continue };
                let bytes = read.iter().sum::<f64>() + size(folder.join(MESH)).unwrap_or(0.0);
                self.stages.push(RecordedStage { kind: stage.kind.clone(), files: read.len(), bytes, seconds });
            }
        }
    }
}

/// Universe of a run: that of the initial condition which it, or the run that it continues, started from.
fn universe(history: &History, run: &StageHistory) -> Option<Universe> {
    let origin = |stage: &StageHistory| {
        let (folder, _) = stage.identity.as_ref()?.inputs.first()?.file.rsplit_once('/')?;
        history.stages().map(|(_, stage)| stage).find(|stage| stage.folder == folder)
    };
    let mut stage = origin(run)?;
    // a damaged ledger may lead in a circle
    for _ in history.stages() {
        if stage.kind != "evolve" {
            return Universe::of_initial(&stage.identity.as_ref()?.parameters);
        }
        stage = origin(stage)?;
    }
    None
}

/// The campaigns in folders beside one, the latest first.
fn beside(folder: &Path) -> Vec<PathBuf> {
    let Some(folder) = std::path::absolute(folder).ok() else { return Vec::new() };
    let entries = folder.parent().and_then(|above| std::fs::read_dir(above).ok()).into_iter().flatten().flatten();
    let ledger = |folder: PathBuf| {
        let changed = CampaignFolder::open(&folder).ok()?.ledger().metadata().ok()?.modified().ok()?;
        Some((changed, folder))
    };
    let others = entries.map(|entry| entry.path()).filter(|other| *other != folder);
    let mut others: Vec<_> = others.filter_map(ledger).collect();
    others.sort();
    others.into_iter().rev().map(|(_, folder)| folder).take(MOST).collect()
}

impl RecordedRun {
    /// Its records; none if one is damaged.
    pub(crate) fn records(&self) -> &[Record] {
        self.records.get_or_init(|| {
            let records: Vec<Upgraded> = jsonl::read(&self.folder.join(steps::FILE)).unwrap_or_default();
            let records: Vec<Record> = records.into_iter().map(|Upgraded(record)| record).collect();
            if records.iter().all(Record::is_whole) { records } else { Vec::new() }
        })
    }

    /// Whether it had gas.
    pub(crate) fn gas(&self) -> bool {
        self.universe.as_ref().is_none_or(|universe| universe.gas)
    }

    pub(crate) fn way(&self) -> Option<Recorded> {
        let records = self.records();
        let first = records.first()?;
        let particles = first.dark_matter.iter().flat_map(|dark_matter| &dark_matter.particles).sum::<u64>();
        let universe = self.universe.clone().map(|universe| Universe { particles: particles as f64, ..universe });
        let mesh = Mesh::new((first.groups[0] * GROUP_CELLS) as f64, universe, self.parameters.clone());
        Recorded::new(mesh, records)
    }

    /// How unlike a run this one is; `None` where it tells nothing of it.
    pub(crate) fn unlike(&self, run: &Evolve, mesh: &Mesh) -> Option<f64> {
        let parameters = &run.parameters;
        if self.parameters.coordinates != parameters.coordinates || self.parameters.gravity != parameters.gravity {
            return None;
        }
        let same = |name: &str, ours: &Value| self.origin.get(name) == ours.get(name);
        let is_like = match &run.origin {
            Origin::Initial(_) => self.universe.is_some(),
            Origin::Formula(formula) => {
                let ours = formula.parameters();
                same("problem", &ours) && same("closure", &ours)
            }
            Origin::Saved { .. } => true,
        };
        let root = self.origin["root"].as_array();
        let root = root.map(|root| root.iter().filter_map(Value::as_f64).product::<f64>());
        let width = self.universe.as_ref().zip(root).map(|(universe, root)| universe.box_mpc_h / root.cbrt());
        let doublings = width.zip(mesh.width()).map_or(0.0, |(width, ours)| (width / ours).log2().abs());
        let species = |universe: &Universe| (universe.gas, universe.particles > 0.0);
        let species = self.universe.as_ref().map(species) != mesh.universe.as_ref().map(species);
        let levels = f64::from(self.parameters.max_level.abs_diff(parameters.max_level));
        let differs = |is_so: bool, by: f64| if is_so { by } else { 0.0 };
        is_like.then_some(
            doublings
                + 0.5 * levels
                + differs(self.parameters.refine != parameters.refine, 2.0)
                + differs(species, 2.0)
                + differs(self.parameters.time_steps != parameters.time_steps, 1.0)
                + differs(self.parameters.precision != parameters.precision, 0.1),
        )
    }
}

/// The parameters of a run, also of version 0.1, whose Poisson solver had others.
pub(super) fn parameters_of(run: &Value) -> Option<RunParameters> {
    let mut run = run.clone();
    for name in ["group_solver", "sor_tolerance", "sibling_steps", "mass_sheet"] {
        run.as_object_mut()?.remove(name);
    }
    RunParameters::deserialize(run).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Records of an older program have half a step's Δt, and count as those of the present one.
    #[test]
    fn records_of_older_programs_are_upgraded() {
        let folder = tempfile::tempdir().unwrap();
        let line = |step: u64, version: Option<u64>, dt: f64| {
            let mut record = json!({
                "step": step, "a": 0.1, "time": 1.0, "dt": dt, "gas_dt": 1.5 * dt, "limit": { "by": "expansion" },
                "groups": [8], "volume_fractions": [1.0], "level_steps": [1], "timing": {}, "device_bytes": 4096
            });
            if let Some(version) = version {
                record["version"] = version.into();
            }
            format!("{record}\n")
        };
        let lines = [line(1, None, 0.5), line(2, Some(1), 1.0), line(3, Some(2), 1.0)].concat();
        std::fs::write(folder.path().join(steps::FILE), lines).unwrap();
        let run = RecordedRun {
            folder: folder.path().to_owned(),
            device: "cpu".into(),
            machine: None,
            parameters: RunParameters::default(),
            origin: Value::Null,
            universe: None,
            records: OnceCell::new(),
        };
        let found: Vec<_> = run.records().iter().map(|record| (record.dt, record.gas_dt)).collect();
        assert_eq!(found, [(1.0, Some(1.5)); 3]);
    }
}

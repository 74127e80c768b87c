//! A run as its folder tells of it: what the ledger knows of it, the record of every step, and its way again from a
//! checkpoint. Nothing is written.

use crate::cli::OneDevice;
use crate::error::{CHANGED_FILE, PipelineError};
use crate::ledger::{History, StageHistory, history};
use crate::processes::isolated_read;
use crate::stage::evolve::steps;
use crate::stage::result::digest_of;
use crate::storage::folder::CampaignFolder;
use crate::storage::jsonl;
use crate::terminal::progress::Progress;
use comove_kernels::Device;
use comove_sim::records::{StepRecord, upgrade};
use comove_sim::{RunParameters, Simulation, Snapshot, SnapshotHeader, Steering};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A run that has taken steps.
pub(super) struct RecordedRun {
    pub folder: PathBuf,
    /// What the ledger knows of it.
    pub known: StageHistory,
    /// The records of its steps, by their numbers.
    pub records: BTreeMap<u64, Recorded>,
    /// Everything that the ledger knows.
    pub history: History,
}

#[derive(Deserialize)]
#[serde(try_from = "Value")]
pub(super) struct Recorded {
    /// What counts here.
    pub step: Counted,
    pub value: Value,
}

/// What two ways through a step are compared by, and what the run was steered by in it.
#[derive(Deserialize)]
pub(super) struct Counted {
    pub step: u64,
    /// Hash of all fields and keys after the step.
    pub state_hash: String,
    #[serde(default)]
    steering: Steering,
    /// The class of device that the run came from, if its process was on another one.
    pub continued_from_device_class: Option<String>,
}

impl TryFrom<Value> for Recorded {
    type Error = serde_json::Error;

    fn try_from(mut value: Value) -> Result<Self, Self::Error> {
        upgrade(&mut value);
        Ok(Self { step: Counted::deserialize(&value)?, value })
    }
}

impl RecordedRun {
    /// The run in this folder of a campaign.
    pub(super) fn open(folder: &Path) -> Result<Self, PipelineError> {
        let real = folder.canonicalize().map_err(PipelineError::io(folder))?;
        let not = |reason: &str| PipelineError::input(folder, reason);
        let (Some(above), Some(name)) = (real.parent(), real.file_name()) else {
            return Err(not("not the folder of a run; give one in a campaign folder"));
        };
        let campaign = CampaignFolder::open(above)
            .map_err(|_| not("not the folder of a run: the folder above has no campaign.json"))?;
        let (history, _) = history::read(&campaign.ledger())?;
        let name = name.to_string_lossy();
        let known = history.stages().find(|(_, stage)| stage.folder == name).map(|(_, stage)| stage.clone());
        let known = known.ok_or_else(|| not("the ledger of the campaign has no stage with this folder"))?;
        if known.kind != "evolve" {
            return Err(not(&format!("the folder of a stage of kind {}, not of a run (evolve)", known.kind)));
        }
        let records = jsonl::read::<Recorded>(&folder.join(steps::FILE))?;
        let records = records.into_iter().map(|record| (record.step.step, record)).collect();
        Ok(Self { records, folder: folder.into(), known, history })
    }

    /// The numbers that decide its results, from the ledger.
    pub(super) fn parameters(&self) -> Result<RunParameters, PipelineError> {
        let unknown =
            |why: String| PipelineError::input(&self.folder, format!("the ledger lacks the run's parameters: {why}"));
        let identity = self.known.identity.as_ref();
        let identity = identity.ok_or_else(|| unknown("an older program began it".into()))?;
        RunParameters::deserialize(&identity.parameters["run"])
            .map_err(|e| unknown(format!("another version of comove began it ({e})")))
    }

    /// The snapshot in a file of its folder.
    pub(super) fn snapshot(&self, file: &str) -> Result<Snapshot, PipelineError> {
        Ok(Snapshot::read(&self.whole(file)?)?)
    }

    /// The path of a snapshot in its folder, if the whole file is what was written; one that the ledger does not know is
    /// validated in a child process.
    pub(super) fn whole(&self, file: &str) -> Result<PathBuf, PipelineError> {
        let path = self.folder.join(file);
        let digest = digest_of(&path, &Progress::on_terminal())?;
        match self.known.snapshots.iter().find(|snapshot| snapshot.file == file) {
            Some(written) if written.digest != digest => {
                return Err(PipelineError::input(&path, format!("{CHANGED_FILE}; use another one")));
            }
            None if !self.history.vouches_for(&digest) => isolated_read::snapshot(&path)?,
            _ => {}
        }
        Ok(path)
    }

    /// The number of its last recorded step; 0 without one.
    pub(super) fn last(&self) -> u64 {
        self.records.keys().next_back().copied().unwrap_or(0)
    }
}

/// A run on its way again, from a checkpoint.
pub(super) struct Replay<'a> {
    pub simulation: Simulation,
    records: &'a BTreeMap<u64, Recorded>,
}

impl<'a> Replay<'a> {
    /// From this snapshot, with the run's own parameters.
    pub(super) fn start(run: &'a RecordedRun, snapshot: &Snapshot, device: &Device) -> Result<Self, PipelineError> {
        let started = Simulation::start(device.clone(), snapshot, run.parameters()?);
        let simulation = started.map_err(|error| PipelineError::from(error).before_start())?;
        Ok(Self { simulation, records: &run.records })
    }

    /// Takes the next step, steered as the record of it says.
    pub(super) fn step(&mut self) -> Result<StepRecord, PipelineError> {
        let next = self.simulation.step_number() + 1;
        let steering = self.records.get(&next).map(|record| record.step.steering).unwrap_or_default();
        if self.simulation.steering() != steering {
            self.simulation.steer(steering)?;
        }
        Ok(self.simulation.step()?)
    }
}

/// The class of the device that a snapshot was written on.
pub(super) fn class_of(header: &SnapshotHeader) -> &str {
    header.provenance["device_class"].as_str().unwrap_or("an unknown device")
}

impl OneDevice {
    /// The device that is asked for; of `auto` one of this class if there is one.
    pub(super) fn open(&self, class: &str) -> Result<Device, PipelineError> {
        let device = Device::from_name(&self.device, self.threads)?;
        if self.device == "auto" && device.class() != class {
            let cpu = Device::cpu(self.threads)?;
            return Ok(if cpu.class() == class { cpu } else { device });
        }
        Ok(device)
    }
}

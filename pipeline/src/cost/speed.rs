//! How fast this machine is, against the machines of the reference: from records of runs on it, or by a few steps taken on
//! the spot.

use super::records::{RecordedRun, Records};
use super::reference::{REFERENCE, Speeds};
use super::trajectory_model::Record;
use crate::error::PipelineError;
use crate::ledger::{Event, History};
use crate::processes::machine::Host;
use comove_ic::function_state;
use comove_ic::problems::{Jeans, Problem};
use comove_kernels::Device;
use comove_kernels::layout::GROUP_CELLS;
use comove_sim::{Precision, Simulation, Snapshot, SnapshotHeader};
use std::collections::BTreeMap;

/// Cells of the root per axis, and steps, of the trial.
const TRIAL: (usize, usize) = (32, 4);

pub(crate) struct Speed {
    device: Device,
    /// The processor of its host.
    processor: String,
    /// Seconds of a run's step against those of the reference, where no record of a run like it says so.
    any: Option<f64>,
    /// Seconds of other stages against those of the reference, by kind.
    others: BTreeMap<String, f64>,
    /// The same of those of which nothing is known.
    other: f64,
}

/// Work of steps.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StepWork {
    /// Steps of all levels.
    pub level_steps: f64,
    /// Cells of the root through a step, and cells of refined levels through a step of theirs.
    pub root_updates: f64,
    pub refined_updates: f64,
    /// Particles through a step of their level.
    pub particle_updates: f64,
}

impl StepWork {
    /// Work of a recorded step.
    pub(crate) fn of(record: &Record) -> Self {
        // levels may have come or gone at the end of the step
        let levels = record.groups.len().min(record.level_steps.len());
        let steps = |level: usize| f64::from(record.level_steps[level.min(levels - 1)]);
        let updates = |level: usize| (record.groups[level] * GROUP_CELLS) as f64 * steps(level);
        let particles = record.dark_matter.iter().flat_map(|dark_matter| dark_matter.particles.iter().enumerate());
        Self {
            level_steps: record.level_steps.iter().copied().map(f64::from).sum(),
            root_updates: updates(0),
            refined_updates: (1..levels).map(updates).sum(),
            particle_updates: particles.map(|(level, particles)| *particles as f64 * steps(level)).sum(),
        }
    }

    /// Seconds on the reference machine with this kind of device, for a run with or without gas.
    pub(crate) fn seconds(&self, device: DeviceKind, gas: bool) -> f64 {
        let speeds = device.speeds();
        let cells = |[root, refined]: [f64; 2]| self.root_updates * root + self.refined_updates * refined;
        let of_gas = if gas { cells(speeds.gas) } else { 0.0 };
        self.level_steps * speeds.level_step + of_gas + cells(speeds.gravity) + self.particle_updates * speeds.particle
    }
}

/// Kind of a device, whose reference speeds differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeviceKind {
    Cpu,
    Gpu,
}

impl DeviceKind {
    pub(crate) fn of(device: &Device) -> Self {
        if matches!(device, Device::Cpu(_)) { Self::Cpu } else { Self::Gpu }
    }

    /// That of the device on which a campaign began.
    pub(crate) fn of_campaign(history: &History) -> Self {
        match &history.start {
            Some(Event::CampaignStarted { device, .. }) if device.contains("cuda") => Self::Gpu,
            _ => Self::Cpu,
        }
    }

    fn speeds(self) -> &'static Speeds {
        match self {
            Self::Cpu => &REFERENCE.cpu,
            Self::Gpu => &REFERENCE.cuda,
        }
    }

    /// Seconds for writing so many bytes of snapshots on the reference machine.
    pub(super) fn written_seconds(self, bytes: f64) -> f64 {
        bytes * self.speeds().written_byte
    }
}

impl Speed {
    /// That of `device`, and of the host for what is done there.
    pub(crate) fn of(device: &Device, records: &Records) -> Self {
        let mut sums: BTreeMap<String, [f64; 2]> = BTreeMap::new();
        for stage in &records.stages {
            let expected = on_reference(&stage.kind, stage.files, stage.bytes);
            if let Some(expected) = expected.filter(|seconds| *seconds > 0.0) {
                let sum = sums.entry(stage.kind.clone()).or_default();
                (sum[0], sum[1]) = (sum[0] + stage.seconds, sum[1] + expected);
            }
        }
        let others: BTreeMap<String, f64> =
            sums.into_iter().map(|(kind, [took, expected])| (kind, took / expected)).collect();
        let other = REFERENCE.cpu.threads / device.threads() as f64;
        Self { device: device.clone(), processor: Host::this().processor, any: None, others, other }
    }

    /// Seconds of a run's steps against the reference's: from the first of these records that were made on this machine and
    /// device, else from any that were, else from a few steps.
    pub(crate) fn of_run<'r>(&mut self, mut like: impl Iterator<Item = &'r RecordedRun>, records: &Records) -> f64 {
        let of = |run: &RecordedRun| {
            if self.made(run) { factor(DeviceKind::of(&self.device), run.gas(), run.records()) } else { None }
        };
        if let Some(factor) = like.find_map(of) {
            return factor;
        }
        if self.any.is_none() {
            let found = records.runs.iter().rev().find_map(of);
            self.any = Some(found.or_else(|| trial(&self.device)).unwrap_or(self.other));
        }
        self.any.expect("just found")
    }

    /// Whether a run was made on this device of this machine.
    fn made(&self, run: &RecordedRun) -> bool {
        let is_here = run.machine.as_ref().is_none_or(|host| host.processor == self.processor);
        is_here && run.device.contains(&self.device.name())
    }

    /// Seconds for writing so many bytes of snapshots.
    pub(crate) fn writing(&self, bytes: f64) -> f64 {
        DeviceKind::of(&self.device).written_seconds(bytes)
    }

    /// Seconds of a stage that is no run; `None` of a kind that neither reference nor records know.
    pub(crate) fn other(&self, kind: &str, files: usize, bytes: f64) -> Option<f64> {
        let factor = self.others.get(kind).copied().unwrap_or(self.other);
        on_reference(kind, files, bytes).map(|seconds| factor * seconds)
    }
}

/// Seconds of a stage that is no run on the reference machine.
fn on_reference(kind: &str, files: usize, bytes: f64) -> Option<f64> {
    REFERENCE.stages.get(kind).map(|[file, byte]| file * files.max(1) as f64 + byte * bytes)
}

/// Seconds of recorded steps of a run with or without gas, over those of the reference: Σe / Σ(e²/s) of seconds s where e
/// are expected, which a step that something else has held up hardly changes.
pub(super) fn factor(device: DeviceKind, gas: bool, records: &[Record]) -> Option<f64> {
    let steps = records.iter().map(|record| (record.timing.total(), StepWork::of(record).seconds(device, gas)));
    let [expected, squares] =
        steps.fold([0.0; 2], |[sum, squares], (took, expected)| [sum + expected, squares + expected * expected / took]);
    Some(expected / squares).filter(|factor| *factor > 0.0)
}

/// The same of a few steps of a wave on a root and a level that covers it.
fn trial(device: &Device) -> Option<f64> {
    let problem = Jeans { root: TRIAL.0, levels: 1, precision: Precision::Single, ..Jeans::default() };
    let setup = problem.setup();
    let gas = |x, h| Ok::<_, PipelineError>(problem.initial(x, h));
    let state = function_state(&gas, &setup, device, &|_, _| ()).ok()?;
    let header = SnapshotHeader {
        box_length: setup.box_length,
        gamma: setup.parameters.gamma,
        eta: setup.parameters.eta,
        precision: setup.parameters.precision,
        ..SnapshotHeader::initial(setup.parameters.coordinates)
    };
    let mut simulation = Simulation::start(device.clone(), &Snapshot { header, state }, setup.parameters).ok()?;
    let records: Option<Vec<Record>> = (0..=TRIAL.1).map(|_| Some((&simulation.step().ok()?).into())).collect();
    // the first step finds nothing in the caches; what else runs meanwhile holds up others
    records?[1..]
        .iter()
        .filter_map(|record| factor(DeviceKind::of(device), true, std::slice::from_ref(record)))
        .reduce(f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a root alone, which took so many times the reference's seconds.
    fn records(factors: &[f64]) -> Vec<Record> {
        let record = |factor: &f64| {
            let root_updates = 8.0 * GROUP_CELLS as f64;
            let work = StepWork { level_steps: 1.0, root_updates, ..StepWork::default() };
            let seconds = factor * work.seconds(DeviceKind::Cpu, true);
            let json = serde_json::json!({
                "a": 1.0, "time": 0.0, "dt": 1.0, "limit": { "by": "expansion" }, "groups": [8],
                "volume_fractions": [1.0], "level_steps": [1], "timing": { "hydro": seconds }, "device_bytes": 0,
            });
            serde_json::from_value(json).unwrap()
        };
        factors.iter().map(record).collect()
    }

    #[test]
    fn a_machine_is_as_fast_as_its_steps_were() {
        let device = Device::cpu(1).unwrap();
        let of = |factors: &[f64]| factor(DeviceKind::Cpu, true, &records(factors)).unwrap();
        assert!((of(&[2.0, 3.0, 4.0]) - 36.0 / 13.0).abs() < 1e-9);
        // of one that was held up for an hour little is left
        assert!((of(&[2.0, 2.0, 1e9, 2.0]) - 8.0 / 3.0).abs() < 1e-6);
        assert_eq!(factor(DeviceKind::Cpu, true, &[]), None);
        assert!(trial(&device).is_some_and(|factor| (1e-2..1e3).contains(&factor)), "it is some machine");
    }
}

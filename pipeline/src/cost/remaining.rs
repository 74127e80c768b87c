//! Time that a run in progress has left: its way from here on, from its own records, those of runs like it and the model,
//! with the speed of its own last steps.

use super::mesh::Mesh;
use super::records::Records;
use super::run::{Start, Sums, along, cells, like, snapshot_bytes};
use super::speed::{DeviceKind, factor};
use super::state::State;
use super::trajectory_model::{Record, Recorded};
use super::ways::Ways;
use crate::ledger::History;
use crate::moment::Moment;
use crate::stage::SavedState;
use crate::stage::evolve::Evolve;
use crate::terminal::time_left::{Estimator, TimeLeft};
use comove_kernels::Device;
use comove_sim::records::StepRecord;
use comove_sim::{Coordinates, Octree, SnapshotHeader};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps before the first estimate.
const FIRST: usize = 4;

/// Interval between estimates.
const INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) struct Remaining {
    device: DeviceKind,
    start: Start,
    mesh: Mesh,
    /// Places of outputs, the last is the end.
    outputs: Vec<f64>,
    others: Vec<Recorded>,
    /// All records of the run, and how many of them earlier processes have left.
    own: Vec<Record>,
    earlier: usize,
}

/// Estimator of a run of a campaign.
pub(crate) struct RunEstimator<'a> {
    pub run: &'a Evolve,
    pub device: &'a Device,
    /// Folder of the run in that of its campaign.
    pub folder: &'a Path,
    pub campaign: &'a Path,
    pub history: Arc<History>,
    pub remaining: Option<Remaining>,
    pub last: Option<(Instant, Option<TimeLeft>)>,
}

impl Estimator for RunEstimator<'_> {
    fn begin(&mut self, begun: &(SnapshotHeader, Octree), outputs: &[Moment]) {
        let records = Records::around(self.campaign, &self.history, None).unwrap_or_default();
        let (device, now) = (DeviceKind::of(self.device), Moment::of(&begun.0).now());
        self.remaining = Remaining::new(self.run, Some(begun), outputs, device, (self.folder, &records));
        self.remaining.iter_mut().for_each(|remaining| remaining.resume(now));
    }

    fn step(&mut self, record: &StepRecord) {
        self.remaining.iter_mut().for_each(|remaining| remaining.step(record.into()));
    }

    fn left(&mut self) -> Option<TimeLeft> {
        if let Some((made, left)) = self.last.filter(|(made, _)| made.elapsed() < INTERVAL) {
            let passed = made.elapsed().as_secs_f64();
            return left.map(|left| TimeLeft { seconds: (left.seconds - passed).max(0.0), ..left });
        }
        let left = self.remaining.as_ref().and_then(Remaining::estimate);
        self.last = Some((Instant::now(), left));
        left
    }
}

impl Remaining {
    /// For a run in `folder` to the last of `outputs`; `None` of one whose start is not known.
    pub(crate) fn new(
        run: &Evolve,
        begun: Option<&SavedState>,
        outputs: &[Moment],
        device: DeviceKind,
        (folder, records): (&Path, &Records),
    ) -> Option<Self> {
        let start = Start::of(run, begun)?;
        let mesh = start.mesh(&run.parameters);
        let own = records.runs.iter().find(|run| run.folder == folder).map_or(&[][..], |run| run.records()).to_vec();
        let others = like(run, &mesh, Some(folder), records).into_iter().filter(|(run, _)| run.folder != folder);
        let others = others.map(|(_, way)| way).collect();
        let outputs = outputs.iter().map(|moment| mesh.place(moment.now())).collect();
        let earlier = own.len();
        Some(Self { device, start, mesh, outputs, others, own, earlier })
    }

    /// Goes back to this scale factor or time: the records beyond tell of what is repeated.
    fn resume(&mut self, now: f64) {
        let coordinates = self.mesh.parameters.coordinates;
        let passed = self.own.partition_point(|record| record.now(coordinates) <= now * (1.0 + 1e-12));
        if passed < self.own.len() {
            Recorded::new(self.mesh.clone(), &self.own).into_iter().for_each(|way| self.others.insert(0, way));
            self.own.truncate(passed);
            self.earlier = passed;
        }
    }

    /// Adds a step; one that repeats a recorded step replaces its record.
    pub(crate) fn step(&mut self, record: Record) {
        let coordinates = self.mesh.parameters.coordinates;
        let now = record.now(coordinates);
        let before = self.own.partition_point(|known| known.now(coordinates) < now * (1.0 - 1e-12));
        self.own.truncate(before);
        self.earlier = self.earlier.min(before);
        self.own.push(record);
    }

    /// Seconds from the last step to the end; `None` of a run that has hardly begun.
    pub(crate) fn estimate(&self) -> Option<TimeLeft> {
        let (gas, species) = (self.start.species.gas, self.start.species);
        let speed = factor(self.device, gas, self.timed()?)?;
        let own = Recorded::new(self.mesh.clone(), &self.own)?;
        let (now, end) = (own.end(), *self.outputs.last()?);
        if now >= end {
            return Some(TimeLeft { seconds: 0.0, is_least: false });
        }
        let ways = Ways::new(&self.mesh, std::iter::once(&own).chain(&self.others).collect());
        let known = along(&ways, &[[now, end]], species);
        let is_least = known.is_none() && self.mesh.parameters.coordinates == Coordinates::Comoving;
        let sums = match known {
            Some((sums, _)) => sums,
            // as in the last steps
            None => {
                let (_, state) = own.at_end(&self.mesh);
                let mut sums = Sums::default();
                sums.add(&state, &self.mesh, species, (end - now) / own.last_step());
                sums
            }
        };
        let at = |place: f64| ways.at(place).unwrap_or_else(|| (0, own.at_end(&self.mesh).1)).1;
        let seconds = speed * sums.work.seconds(self.device, gas) + self.written(now, at);
        seconds.is_finite().then_some(TimeLeft { seconds, is_least })
    }

    /// Steps that tell the speed: those of this process if it has made enough.
    fn timed(&self) -> Option<&[Record]> {
        let own = &self.own[self.earlier..];
        let steps = if own.len() < FIRST { &self.own } else { own };
        (steps.len() >= FIRST).then_some(steps)
    }

    /// Seconds for writing what comes after `now`.
    fn written(&self, now: f64, at: impl Fn(f64) -> State) -> f64 {
        let bytes =
            |place: f64| snapshot_bytes(cells(&at(place), &self.mesh).iter().sum(), &self.mesh, self.start.species);
        let outputs = self.outputs.iter().filter(|place| **place > now);
        self.device.written_seconds(outputs.map(|place| bytes(*place)).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_kernels::layout::GROUP_CELLS;
    use comove_sim::memory::Species;
    use comove_sim::{Criterion, RunParameters};
    use serde::Deserialize;
    use serde_json::Value;

    /// Recorded runs of `fixtures/runs.rhai`: a line with the initial condition and the parameters, and one for each step.
    fn recorded(text: &str) -> (Remaining, Vec<Record>) {
        let mut lines = text.lines();
        let head: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        let own: Vec<Record> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
        let universe = super::super::theory::Universe::of_initial(&head["initial"]).unwrap();
        let species = Species { gas: universe.gas, particles: universe.particles as usize };
        let root: Vec<usize> = Vec::deserialize(&head["root"]).unwrap();
        let start = Start { root: root.try_into().unwrap(), universe: Some(universe), species };
        let mesh = start.mesh(&super::super::records::parameters_of(&head["run"]).unwrap());
        assert_eq!(mesh.root_cells, (own[0].groups[0] * GROUP_CELLS) as f64);
        let outputs = vec![mesh.place(own.last().unwrap().a)];
        let device = DeviceKind::Cpu;
        (Remaining { device, start, mesh, outputs, others: Vec::new(), own: Vec::new(), earlier: 0 }, own)
    }

    /// Estimates over true values after these parts of the run's time.
    fn replay(text: &str, parts: &[f64]) -> Vec<f64> {
        let (mut remaining, records) = recorded(text);
        let cells = (records.last().unwrap().groups.iter().sum::<usize>() * GROUP_CELLS) as f64;
        let bytes = snapshot_bytes(cells, &remaining.mesh, remaining.start.species);
        let steps: f64 = records.iter().map(|record| record.timing.total()).sum();
        let total = steps + remaining.device.written_seconds(bytes);
        let mut passed = 0.0;
        let mut ratios = Vec::new();
        for record in records {
            passed += record.timing.total();
            remaining.step(record);
            if ratios.len() < parts.len() && passed >= parts[ratios.len()] * steps {
                ratios.push(remaining.estimate().unwrap().seconds / (total - passed));
            }
        }
        ratios
    }

    /// From a tenth of the run on, without records of others.
    #[test]
    fn the_time_left_is_known_early() {
        let runs = [
            ("two species", include_str!("fixtures/two_species.jsonl")),
            ("dark matter", include_str!("fixtures/dark_matter.jsonl")),
            ("uniform steps", include_str!("fixtures/uniform_steps.jsonl")),
        ];
        let ratios = runs.map(|(name, text)| {
            let ratios = replay(text, &[0.1, 0.2, 0.5, 0.8]);
            println!("{name}: estimates over true values after 10%, 20%, 50%, 80%: {ratios:.2?}");
            ratios
        });
        assert!(ratios.iter().flatten().all(|ratio| (ratio - 1.0).abs() < 0.25), "{ratios:.2?}");
    }

    /// Of a run whose criterion the model does not know, the present state tells a lower bound.
    #[test]
    fn what_is_not_known_is_a_bound() {
        let (mut remaining, records) = recorded(include_str!("fixtures/dark_matter.jsonl"));
        let refine = vec![Criterion::JeansCellsBelow { thresholds: vec![4.0] }];
        let parameters = RunParameters { refine, ..remaining.mesh.parameters.clone() };
        remaining.mesh = remaining.start.mesh(&parameters);
        let half = records.len() / 2;
        let left: f64 = records[half..].iter().map(|record| record.timing.total()).sum();
        records.into_iter().take(half).for_each(|record| remaining.step(record));
        let bound = remaining.estimate().unwrap();
        assert!(bound.is_least && bound.seconds > 0.0 && bound.seconds < left, "{bound:?} of {left}");
        // of its first steps nothing is said
        remaining.own.truncate(FIRST - 1);
        assert_eq!(remaining.estimate(), None);
    }
}

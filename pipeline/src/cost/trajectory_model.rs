//! The way of a recorded run, its steps and the fractions of the box that it refines, on its own mesh or another.

use super::mesh::Mesh;
use super::state::State;
use comove_sim::Coordinates;
use comove_sim::records::{Ladder, StepLimit, StepRecord, Timing};
use serde::Deserialize;

/// Largest factor between two runs by which one is scaled to the other.
pub(super) const APART: f64 = 5.0;

/// Records over which the end of a way is averaged.
const END: usize = 8;

/// What is read of the record of a step.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Record {
    pub a: f64,
    /// Code time at its end.
    pub time: f64,
    pub dt: f64,
    /// Δt that the gas would have allowed.
    #[serde(default)]
    pub gas_dt: Option<f64>,
    /// What set it.
    pub limit: StepLimit,
    pub groups: Vec<usize>,
    /// Fraction of the box that each level covers.
    pub volume_fractions: Vec<f64>,
    pub level_steps: Vec<u32>,
    /// How often it was taken again.
    #[serde(default)]
    pub ladder: Ladder,
    pub timing: Timing,
    pub device_bytes: u64,
    #[serde(default)]
    pub dark_matter: Option<Particles>,
}

/// Particles of each level at the end of a step.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Particles {
    pub particles: Vec<u64>,
}

impl From<&StepRecord> for Record {
    fn from(record: &StepRecord) -> Self {
        let StepRecord { a, time, dt, gas_dt, timing, ladder, device_bytes, .. } = *record;
        let StepRecord { limit, groups, volume_fractions, level_steps, dark_matter, .. } = record.clone();
        let dark_matter = dark_matter.map(|dark_matter| Particles { particles: dark_matter.particles });
        Self {
            a,
            time,
            dt,
            gas_dt,
            limit,
            groups,
            volume_fractions,
            level_steps,
            ladder,
            timing,
            device_bytes,
            dark_matter,
        }
    }
}

impl Record {
    /// Whether it has a root, and a step.
    pub(crate) fn is_whole(&self) -> bool {
        let has_root = !self.groups.is_empty() && !self.volume_fractions.is_empty() && !self.level_steps.is_empty();
        has_root && self.dt > 0.0
    }

    /// Scale factor or time, as [`Mesh::place`] takes it.
    pub(super) fn now(&self, coordinates: Coordinates) -> f64 {
        match coordinates {
            Coordinates::Comoving => self.a,
            Coordinates::Plain => self.time,
        }
    }
}

/// The way of a run that was recorded.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub mesh: Mesh,
    pub start: f64,
    /// Places at the ends of its steps, in order.
    places: Vec<f64>,
    states: Vec<State>,
    /// Whether the last steps tell what matter allows: not where expansion has set them, and particles might.
    pub(super) tells_step: bool,
}

impl Recorded {
    /// The way that these records tell of, two or more, each of a later place than that before.
    pub(crate) fn new(mesh: Mesh, records: &[Record]) -> Option<Self> {
        let place = |record: &Record| mesh.place(record.now(mesh.parameters.coordinates));
        let places: Vec<f64> = records.iter().map(place).collect();
        let first = places.get(1)? - places[0];
        if !places.is_sorted_by(|x, y| x < y) {
            return None;
        }
        let lengths = std::iter::once(first).chain(places.windows(2).map(|pair| pair[1] - pair[0]));
        let state = |(record, length): (&Record, f64)| {
            let chosen = record.dt * f64::from(1u32 << record.ladder.retries.min(31));
            let gas = record.gas_dt.map_or(f64::INFINITY, |gas| length * gas / chosen);
            let step = match &record.limit {
                StepLimit::Expansion | StepLimit::Source { .. } | StepLimit::Steered => gas,
                // older records have no `gas_dt`
                _ => gas.min(length),
            };
            State { fractions: record.volume_fractions.clone(), step }
        };
        let states = records.iter().zip(lengths).map(state).collect();
        let is_set_by_matter = |record: &Record| {
            !matches!(record.limit, StepLimit::Expansion | StepLimit::Source { .. } | StepLimit::Steered)
        };
        let tells_step = records.last().is_some_and(|last| last.dark_matter.is_none() || is_set_by_matter(last));
        Some(Self { start: places[0] - first, mesh, places, states, tells_step })
    }

    /// Length of the last step.
    pub(super) fn last_step(&self) -> f64 {
        self.end() - self.places[self.places.len() - 2]
    }

    pub(crate) fn end(&self) -> f64 {
        *self.places.last().expect("a way has places")
    }

    /// State at `place`, on another mesh; `None` outside the records.
    pub(super) fn at(&self, place: f64, mesh: &Mesh) -> Option<State> {
        let slack = 0.5 * (self.places[1] - self.places[0]);
        if place < self.start - slack || place > self.end() + 1e-9 {
            return None;
        }
        let n = self.places.partition_point(|end| *end < place).min(self.places.len() - 1);
        Some(self.on(mesh, &self.states[n], place))
    }

    /// Mean place and state of the last records, on another mesh.
    pub(super) fn at_end(&self, mesh: &Mesh) -> (f64, State) {
        let from = self.states.len().saturating_sub(END);
        let (places, last) = (&self.places[from..], &self.states[from..]);
        let place = places.iter().sum::<f64>() / places.len() as f64;
        let levels = last.iter().map(|state| state.fractions.len()).max().unwrap_or(1);
        let mean = |level: usize| last.iter().map(|state| state.fraction(level)).sum::<f64>() / last.len() as f64;
        let step = last.iter().map(|state| state.step).sum::<f64>() / last.len() as f64;
        (place, self.on(mesh, &State { fractions: (0..levels).map(mean).collect(), step }, place))
    }

    /// A recorded state on another mesh: fractions differ as those of the two models do.
    fn on(&self, mesh: &Mesh, state: &State, place: f64) -> State {
        let refined = state.fractions.iter().filter(|fraction| **fraction > 0.0).count() - 1;
        let step = state.step * mesh.steps_over(&self.mesh, refined);
        let (Some(ours), Some(theirs)) = (mesh.model(), self.mesh.model()) else {
            return State { fractions: state.fractions.clone(), step };
        };
        let [ours, theirs] = [ours, theirs].map(|model| model.at(place));
        let mut fractions = vec![1.0];
        for level in 1..=usize::from(mesh.parameters.max_level) {
            let coarser = fractions[level - 1];
            let fraction = if level <= usize::from(self.mesh.parameters.max_level) {
                changed(state.fraction(level), theirs.fraction(level), ours.fraction(level))
            } else {
                changed(ours.fraction(level), ours.fraction(level - 1), coarser)
            };
            fractions.push(fraction.min(coarser));
        }
        State { fractions, step }
    }
}

/// A factor that is not out of all proportion.
pub(super) fn within(factor: f64) -> f64 {
    factor.clamp(1.0 / APART, APART)
}

/// A fraction whose odds change as those from `before` to `after`.
fn changed(fraction: f64, before: f64, after: f64) -> f64 {
    if before == after || fraction <= 0.0 || fraction >= 1.0 {
        return fraction;
    }
    let odds = |fraction: f64| fraction.max(1e-9) / (1.0 - fraction).max(1e-9);
    let changed = odds(fraction) * within(odds(after) / odds(before));
    changed / (1.0 + changed)
}

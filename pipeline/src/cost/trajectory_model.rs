//! Where the steps of a run lead and how much of the box it refines: from the records of another, put onto its own mesh.

use super::mesh::{Mesh, State};
use super::reference;
use comove_sim::Coordinates;
use comove_sim::records::{Ladder, StepLimit, StepRecord, Timing};
use serde::Deserialize;

/// By how much two ways may be apart where one is scaled to the other.
const APART: f64 = 5.0;

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
}

impl From<StepRecord> for Record {
    fn from(record: StepRecord) -> Self {
        let StepRecord { a, time, dt, gas_dt, limit, groups, volume_fractions, level_steps, .. } = record;
        let StepRecord { ladder, timing, device_bytes, .. } = record;
        Self { a, time, dt, gas_dt, limit, groups, volume_fractions, level_steps, ladder, timing, device_bytes }
    }
}

impl Record {
    /// Whether it has a root, and a step.
    pub(crate) fn is_whole(&self) -> bool {
        let has_root = !self.groups.is_empty() && !self.volume_fractions.is_empty() && !self.level_steps.is_empty();
        has_root && self.dt > 0.0
    }

    /// Scale factor or time, as [`Mesh::place`] takes it.
    fn now(&self, coordinates: Coordinates) -> f64 {
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
            let gas = match (record.gas_dt, &record.limit) {
                (Some(gas), _) => length * gas / chosen,
                // older records say it where the gas has set the step
                (None, StepLimit::Expansion | StepLimit::Steered | StepLimit::Particle { .. }) => f64::INFINITY,
                (None, _) => length,
            };
            State { fractions: record.volume_fractions.clone(), gas }
        };
        let states = records.iter().zip(lengths).map(state).collect();
        Some(Self { start: places[0] - first, mesh, places, states })
    }

    pub(crate) fn end(&self) -> f64 {
        *self.places.last().expect("a way has places")
    }

    /// What it is like at `place` on a mesh; `None` where it has not been.
    fn at(&self, place: f64, mesh: &Mesh) -> Option<State> {
        let slack = 0.5 * (self.places[1] - self.places[0]);
        if place < self.start - slack || place > self.end() + 1e-9 {
            return None;
        }
        let n = self.places.partition_point(|end| *end < place).min(self.places.len() - 1);
        Some(self.on(mesh, &self.states[n], place))
    }

    /// What it is like at its end, on average.
    fn at_end(&self, mesh: &Mesh) -> State {
        let last = &self.states[self.states.len().saturating_sub(END)..];
        let levels = last.iter().map(|state| state.fractions.len()).max().unwrap_or(1);
        let mean = |level: usize| last.iter().map(|state| state.fraction(level)).sum::<f64>() / last.len() as f64;
        let gas = last.iter().map(|state| state.gas).sum::<f64>() / last.len() as f64;
        self.on(mesh, &State { fractions: (0..levels).map(mean).collect(), gas }, self.end())
    }

    /// A state of this way on another mesh. Other widths of cells change what is refined as they do in the reference.
    fn on(&self, mesh: &Mesh, state: &State, place: f64) -> State {
        let refined = state.fractions.iter().filter(|fraction| **fraction > 0.0).count() - 1;
        let gas = state.gas * mesh.steps_over(&self.mesh, refined);
        let reference = |mesh: &Mesh| reference::state(mesh, place);
        let is_same = (mesh.width_over(&self.mesh).log2()).abs() < 0.1;
        let (Some(ours), Some(theirs)) = (reference(mesh), reference(&self.mesh)) else {
            return State { fractions: state.fractions.clone(), gas };
        };
        let mut fractions = vec![1.0];
        for level in 1..=usize::from(mesh.parameters.max_level) {
            let coarser = fractions[level - 1];
            let [ours_coarser, ours] = [level - 1, level].map(|level| ours.fraction(level));
            let (theirs, there) = (theirs.fraction(level), state.fraction(level));
            let has_level = level <= usize::from(self.mesh.parameters.max_level);
            let fraction = match (has_level, is_same) {
                (true, true) => there,
                (true, false) if theirs > 0.0 && there > 0.0 => there * within(ours / theirs),
                _ if ours_coarser > 0.0 => ours * within(coarser / ours_coarser),
                _ => 0.0,
            };
            fractions.push(fraction.min(coarser));
        }
        State { fractions, gas }
    }
}

/// A factor that is not out of all proportion.
fn within(factor: f64) -> f64 {
    factor.clamp(1.0 / APART, APART)
}

/// Ways that a run may go, the likest first, each as far as it goes; the last one is the reference.
pub(crate) struct Ways<'a> {
    pub mesh: &'a Mesh,
    /// Ways of runs like it.
    pub recorded: Vec<&'a Recorded>,
}

impl Ways<'_> {
    /// What the run is like at `place`, and the number of the way that says so: `recorded.len()` stands for the reference.
    /// Where one way ends and the next one takes over, that is scaled to what the first has ended with.
    pub(crate) fn at(&self, place: f64) -> Option<(usize, State)> {
        let of = |n: usize, place: f64| match self.recorded.get(n) {
            Some(way) => way.at(place, self.mesh),
            None => reference::state(self.mesh, place),
        };
        let (n, state) = (0..=self.recorded.len()).find_map(|n| Some((n, of(n, place)?)))?;
        let before = self.recorded[..n].iter().filter(|way| way.end() < place);
        let before = before.max_by(|x, y| x.end().total_cmp(&y.end()));
        let scaled = before.and_then(|before| Some(state.scaled(&before.at_end(self.mesh), &of(n, before.end())?)));
        Some((n, scaled.unwrap_or(state)))
    }
}

impl State {
    /// The same, as another way would have it that was like `theirs` where this one was like `ours`.
    fn scaled(&self, theirs: &Self, ours: &Self) -> Self {
        let (mut factor, mut coarser) = (1.0, 1.0);
        let fraction = |(level, fraction): (usize, &f64)| {
            let [theirs, ours] = [theirs, ours].map(|state| state.fraction(level));
            if theirs > 0.0 && ours > 0.0 {
                factor = within(theirs / ours);
            }
            coarser = (fraction * factor).min(coarser);
            coarser
        };
        let fractions = self.fractions.iter().enumerate().map(fraction).collect();
        let gas = if theirs.gas.is_finite() && ours.gas.is_finite() { within(theirs.gas / ours.gas) } else { 1.0 };
        Self { fractions, gas: self.gas * gas }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::{RunParameters, TimeSteps};

    fn mesh(root: f64, max_level: u8) -> Mesh {
        let parameters = RunParameters { max_level, ..RunParameters::default() };
        Mesh { root_cells: root.powi(3), width: Some(100.0 / root), is_cosmic: true, parameters }
    }

    /// Records of steps of one percent from a = 0.1 on, half of what the gas would allow, with so much refined at each end.
    fn recorded(mesh: Mesh, refined: impl Fn(f64) -> f64, steps: i32) -> Recorded {
        let record = |n: i32| {
            let a = 0.1 * 1.01f64.powi(n);
            let json = serde_json::json!({
                "a": a, "time": 0.0, "dt": 1.0, "gas_dt": 2.0, "limit": { "by": "expansion" }, "groups": [1],
                "volume_fractions": [1.0, refined(a)], "level_steps": [1], "timing": {}, "device_bytes": 0,
            });
            serde_json::from_value(json).unwrap()
        };
        Recorded::new(mesh, &(1..=steps).map(record).collect::<Vec<Record>>()).unwrap()
    }

    #[test]
    fn a_run_like_another_goes_its_way() {
        let (mesh, expansion) = (mesh(64.0, 1), 0.01f64.ln_1p());
        let way = recorded(mesh.clone(), |a| a, 100);
        let ways = Ways { mesh: &mesh, recorded: vec![&way] };
        let (n, state) = ways.at(0.2f64.ln()).unwrap();
        assert_eq!(n, 0);
        assert!((state.fractions[1] - 0.2).abs() < 0.003, "{state:?}");
        assert!((state.gas / expansion - 2.0).abs() < 1e-6, "{state:?}");
        assert!((mesh.expansion() - expansion).abs() < 1e-9);
        // cells twice as wide let the gas take steps twice as long
        let wider =
            Mesh { root_cells: mesh.root_cells / 8.0, width: mesh.width.map(|width| 2.0 * width), ..mesh.clone() };
        let ways = Ways { mesh: &wider, recorded: vec![&way] };
        let (_, state) = ways.at(0.2f64.ln()).unwrap();
        assert!((state.gas / expansion - 4.0).abs() < 1e-6, "{state:?}");
    }

    /// Where the first way ends, the second one goes on from there: with twice as much refined if the first had that.
    #[test]
    fn ways_join() {
        let mesh = mesh(64.0, 1);
        let (first, second) = (recorded(mesh.clone(), |_| 0.2, 100), recorded(mesh.clone(), |_| 0.1, 200));
        let ways = Ways { mesh: &mesh, recorded: vec![&first, &second] };
        for (place, n) in [(0.2f64, 0), (0.5, 1)] {
            let (way, state) = ways.at(place.ln()).unwrap();
            assert_eq!(way, n);
            assert!((state.fractions[1] - 0.2).abs() < 1e-9, "{state:?}");
        }
        // the reference knows where nobody has been, but nothing of another physics
        assert_eq!(ways.at(0.9f64.ln()).unwrap().0, 2);
        let other = Mesh { is_cosmic: false, ..mesh.clone() };
        assert_eq!(Ways { mesh: &other, recorded: Vec::new() }.at(0.9f64.ln()), None);
    }

    /// Uniform steps are those of the finest level.
    #[test]
    fn uniform_steps_are_shorter() {
        let individual = RunParameters { time_steps: TimeSteps::Individual, ..RunParameters::default() };
        let (uniform, individual) = (mesh(64.0, 0), Mesh { parameters: individual, ..mesh(64.0, 0) });
        assert_eq!((uniform.steps_over(&individual, 3), individual.steps_over(&uniform, 3)), (0.125, 8.0));
        assert_eq!(uniform.steps_over(&uniform, 3), 1.0);
    }
}

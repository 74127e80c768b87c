//! Sources of a prediction one after the other: where records end, others or the model continue them.

use super::mesh::Mesh;
use super::state::State;
use super::trajectory_model::{APART, Recorded, within};
use comove_kernels::layout::GROUP_CELLS;

/// Longest shift of a place between two sources, and the number of shifts tried on either side.
const LONGEST_SHIFT: f64 = 0.5;
const SHIFTS: i32 = 25;

/// Groups of a level below which its fraction hardly tells of a shift.
const FEW_GROUPS: f64 = 4.0;

/// Weight of a shift unlike the coarser level's, against ln of the odds of fractions.
const UNLIKE_COARSER: f64 = 4.0;

/// Sources of a prediction, the likeliest first, each as far as it goes; the last is the model without records.
pub(crate) struct Ways<'a> {
    mesh: &'a Mesh,
    /// Runs like this one.
    recorded: Vec<&'a Recorded>,
    /// Continuation of an earlier source by each of them and by the model.
    joins: Vec<Option<Join>>,
}

/// Continuation of a source that ends by another.
#[derive(Clone, Debug)]
struct Join {
    /// Place at which the first source ends.
    end: f64,
    /// How each level's fraction follows from that of the second source.
    levels: Vec<Continued>,
    /// Ratio of their longest steps.
    step: f64,
}

/// A level's fraction that continues another source.
#[derive(Clone, Copy, Debug, Default)]
struct Continued {
    /// Difference of place: structure forms earlier or later than in the second source.
    shift: f64,
    /// ln of the factor of its odds.
    odds: f64,
    /// Fraction that a few groups cover.
    few: f64,
}

impl Continued {
    /// ln of the odds of a fraction, to which a few groups are added on either side.
    fn odds_of(few: f64, fraction: f64) -> f64 {
        ((fraction + few) / (1.0 - fraction + few)).ln()
    }

    fn apply(self, fraction: f64) -> f64 {
        let odds = (Self::odds_of(self.few, fraction) + self.odds).exp();
        ((odds * (1.0 + self.few) - self.few) / (1.0 + odds)).clamp(0.0, 1.0)
    }
}

impl<'a> Ways<'a> {
    pub(crate) fn new(mesh: &'a Mesh, recorded: Vec<&'a Recorded>) -> Self {
        let mut ways = Self { mesh, recorded, joins: Vec::new() };
        ways.joins = (0..=ways.recorded.len()).map(|n| ways.join(n)).collect();
        ways
    }

    pub(crate) fn mesh(&self) -> &'a Mesh {
        self.mesh
    }

    /// Number of the model among the sources.
    pub(crate) fn model(&self) -> usize {
        self.recorded.len()
    }

    /// State of the run at `place`, and the number of the source.
    pub(crate) fn at(&self, place: f64) -> Option<(usize, State)> {
        let (n, state) = (0..=self.model()).find_map(|n| Some((n, self.of(n, place)?)))?;
        let Some(join) = self.joins[n].as_ref().filter(|join| place > join.end) else { return Some((n, state)) };
        let continued = |(level, continued): (usize, &Continued)| {
            continued.apply(self.near(n, place + continued.shift).fraction(level))
        };
        let mut fractions = vec![1.0];
        fractions.extend(join.levels.iter().enumerate().skip(1).map(continued));
        for level in 1..fractions.len() {
            fractions[level] = fractions[level].min(fractions[level - 1]);
        }
        Some((n, State { fractions, step: state.step * join.step }))
    }

    /// State of source `n` at `place`.
    fn of(&self, n: usize, place: f64) -> Option<State> {
        match self.recorded.get(n) {
            Some(way) => way.at(place, self.mesh),
            None => self.mesh.model().map(|model| model.at(place)),
        }
    }

    /// State of source `n` at the place on it nearest to `place`; empty where it has none.
    fn near(&self, n: usize, place: f64) -> State {
        let place = self.recorded.get(n).map_or(place, |way| place.clamp(way.start, way.end()));
        self.of(n, place).unwrap_or(State { fractions: vec![1.0], step: f64::INFINITY })
    }

    fn join(&self, n: usize) -> Option<Join> {
        let before = self.recorded[..n].iter().max_by(|x, y| x.end().total_cmp(&y.end()))?;
        let (place, theirs) = before.at_end(self.mesh);
        let ours = self.of(n, place)?;
        let mut levels = vec![Continued::default()];
        for level in 1..=usize::from(self.mesh.parameters.max_level) {
            let coarser = levels[level - 1].shift;
            levels.push(self.continued(n, level, (place, theirs.fraction(level)), coarser));
        }
        let step = match theirs.step / ours.step {
            ratio if !(theirs.step.is_finite() && ours.step.is_finite() && ratio > 0.0) => 1.0,
            ratio if before.tells_step => within(ratio),
            // matter has allowed this step at least
            _ => within((before.last_step() / ours.step).max(1.0)),
        };
        Some(Join { end: before.end(), levels, step })
    }

    /// How source `n` continues this fraction of a level: where that grows fast by a difference of place, where it hardly
    /// changes by a factor of its odds. Before the level has some groups, its shift is that of the coarser level.
    fn continued(&self, n: usize, level: usize, (place, fraction): (f64, f64), coarser: f64) -> Continued {
        let few = FEW_GROUPS * GROUP_CELLS as f64 / (self.mesh.root_cells * 8f64.powi(level as i32));
        let difference = |shift: f64| {
            let there = self.near(n, place + shift).fraction(level);
            Continued::odds_of(few, fraction) - Continued::odds_of(few, there)
        };
        let unlikely = |shift: f64| difference(shift).abs() + UNLIKE_COARSER * (shift - coarser).abs();
        let shifts = (-SHIFTS..=SHIFTS).map(|n| LONGEST_SHIFT * f64::from(n) / f64::from(SHIFTS));
        let shift = shifts.min_by(|x, y| unlikely(*x).total_cmp(&unlikely(*y))).unwrap_or(0.0);
        Continued { shift, odds: difference(shift).clamp(-APART.ln(), APART.ln()), few }
    }
}

#[cfg(test)]
mod tests {
    use super::super::theory::Universe;
    use super::super::trajectory_model::Record;
    use super::*;
    use comove_sim::{Cosmology, Criterion, RunParameters};

    /// Gas in a box of 100 Mpc/h.
    fn mesh(root: f64, max_level: u8) -> Mesh {
        let refine = vec![Criterion::OverdensityAbove { thresholds: vec![8.0] }];
        let parameters = RunParameters { max_level, refine, ..RunParameters::default() };
        let cosmology = Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0);
        let (box_mpc_h, mesh_mpc_h) = (100.0, 100.0 / root);
        let universe = Universe { cosmology, box_mpc_h, mesh_mpc_h, gas: true, particles: 0.0 };
        Mesh::new(root.powi(3), Some(universe), parameters)
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
        let (ours, expansion) = (mesh(64.0, 1), 0.01f64.ln_1p());
        let way = recorded(ours.clone(), |a| a, 100);
        let (n, state) = Ways::new(&ours, vec![&way]).at(0.2f64.ln()).unwrap();
        assert_eq!(n, 0);
        assert!((state.fractions[1] - 0.2).abs() < 0.003, "{state:?}");
        assert!((state.step / expansion - 2.0).abs() < 1e-6, "{state:?}");
        assert!((ours.expansion() - expansion).abs() < 1e-9);
        // cells twice as wide let the gas take steps twice as long, and hold fewer halos
        let wider = mesh(32.0, 1);
        let (_, state) = Ways::new(&wider, vec![&way]).at(0.2f64.ln()).unwrap();
        assert!((state.step / expansion - 4.0).abs() < 1e-6, "{state:?}");
        assert!(state.fractions[1] < 0.1, "{state:?}");
    }

    /// The second source continues the first: one in which structure forms earlier stays ahead.
    #[test]
    fn ways_join() {
        let mesh = mesh(64.0, 1);
        let refined = |a: f64| 1.0 / (1.0 + (0.5 / a).powi(8));
        let (first, second) = (recorded(mesh.clone(), |a| refined(1.2 * a), 100), recorded(mesh.clone(), refined, 200));
        let ways = Ways::new(&mesh, vec![&first, &second]);
        for (a, n) in [(0.2, 0), (0.5, 1)] {
            let (way, state) = ways.at(f64::ln(a)).unwrap();
            assert_eq!(way, n);
            assert!((state.fractions[1] - refined(1.2 * a)).abs() < 0.02, "{state:?}");
        }
        // the model tells of places where no run has been, but of no other physics
        assert_eq!(ways.at(0.9f64.ln()).unwrap().0, ways.model());
        let other = Mesh::new(mesh.root_cells, None, mesh.parameters.clone());
        assert_eq!(Ways::new(&other, Vec::new()).at(0.9f64.ln()), None);
    }
}

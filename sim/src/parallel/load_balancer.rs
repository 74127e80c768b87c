//! How fast ranks are, as measured: a slower one is given fewer groups of the levels that are cut.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Root steps of which the median counts: one that something else has slowed moves nothing.
const STEPS: usize = 8;

/// Ranks count as equally fast until their costs differ by this factor: measurements of equal ones vary by less.
const APART: f64 = 1.1;

/// And count as such again when they differ by less than this one.
const TOGETHER: f64 = 1.05;

/// What sweeps of a level took a rank's device in a root step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepTime {
    /// Seconds of the device, with redos, without waiting for other ranks.
    pub seconds: f64,
    /// Groups swept, those that were redone once; 0 where nothing was measured.
    pub groups: u64,
}

/// What ranks' sweeps of one root step tell of each other.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Compared {
    /// What a group costs each rank: the time of its sweeps over that of as many groups of the same levels by all ranks.
    pub costs: Vec<f64>,
    /// How much longer the slowest ranks of the levels took than all on average.
    pub imbalance: f64,
}

impl Compared {
    /// From what each rank has measured of each level; none if there is no level of which all have.
    ///
    /// Only such levels count as fill the devices: on others a sweep takes as long with fewer groups, and a rank would seem
    /// the slower the fewer it has.
    pub(crate) fn of(ranks: &[&[SweepTime]]) -> Option<Self> {
        let levels = ranks.iter().map(|rank| rank.len()).min().unwrap_or(0);
        let by_all = |&level: &usize| ranks.iter().all(|rank| rank[level].groups > 0 && rank[level].seconds > 0.0);
        let levels: Vec<usize> = (0..levels).filter(by_all).collect();
        if levels.is_empty() {
            return None;
        }
        let count = ranks.len() as f64;
        let each = |level: usize, rank: &[SweepTime]| rank[level].seconds / rank[level].groups as f64;
        let mean = |level: usize| ranks.iter().map(|rank| each(level, rank)).sum::<f64>() / count;
        let means: Vec<f64> = levels.iter().map(|&level| mean(level)).collect();
        let cost = |rank: &&[SweepTime]| {
            let took: f64 = levels.iter().map(|&level| rank[level].seconds).sum();
            took / levels.iter().zip(&means).map(|(&level, mean)| rank[level].groups as f64 * mean).sum::<f64>()
        };
        let seconds = |level: usize| ranks.iter().map(move |rank| rank[level].seconds);
        let slowest: f64 = levels.iter().map(|&level| seconds(level).fold(0.0, f64::max)).sum();
        let all: f64 = levels.iter().map(|&level| seconds(level).sum::<f64>()).sum();
        Some(Self { costs: ranks.iter().map(cost).collect(), imbalance: slowest * count / all - 1.0 })
    }
}

/// What groups cost the ranks by the last eight root steps; every rank has the same.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadBalancer {
    /// Of each step, by rank; none where nothing was measured.
    steps: VecDeque<Option<Vec<f64>>>,
    /// What a group costs each rank, while they do not count as equally fast.
    costs: Option<Vec<f64>>,
}

impl LoadBalancer {
    /// As if it had been measured: for tests.
    pub fn of(costs: &[f64]) -> Self {
        let mut load_balancer = Self::default();
        (0..STEPS).for_each(|_| load_balancer.add(Some(costs.to_vec())));
        load_balancer
    }

    /// Takes what a step has measured, by rank, if it has, and forgets the step that was eight before.
    pub fn add(&mut self, costs: Option<Vec<f64>>) {
        if self.steps.len() == STEPS {
            self.steps.pop_front();
        }
        self.steps.push_back(costs);
        let factor = if self.is_imbalanced() { TOGETHER } else { APART };
        self.costs = self.medians().filter(|costs| {
            let [least, most] = [f64::min, f64::max].map(|of| costs.iter().copied().reduce(of).unwrap_or(1.0));
            most >= factor * least
        });
    }

    /// The median cost of each rank, if at least half of eight steps have measured any.
    fn medians(&self) -> Option<Vec<f64>> {
        let measured: Vec<&Vec<f64>> = self.steps.iter().flatten().collect();
        let median = |rank: usize| {
            let mut costs: Vec<f64> = measured.iter().map(|step| step[rank]).collect();
            costs.sort_unstable_by(f64::total_cmp);
            costs[costs.len() / 2]
        };
        let enough = self.steps.len() == STEPS && 2 * measured.len() >= STEPS;
        enough.then(|| (0..measured[0].len()).map(median).collect())
    }

    /// What a group costs each of so many ranks, 1 for all while they count as equally fast.
    pub fn costs(&self, ranks: usize) -> Vec<f64> {
        self.costs.clone().unwrap_or_else(|| vec![1.0; ranks])
    }

    /// Whether not all ranks count as equally fast.
    pub fn is_imbalanced(&self) -> bool {
        self.costs.is_some()
    }

    /// What part of a level's groups each of so many ranks is to have, so that all take as long.
    pub fn parts(&self, ranks: usize) -> Vec<f64> {
        let speeds: Vec<f64> = self.costs(ranks).iter().map(|cost| cost.recip()).collect();
        let all: f64 = speeds.iter().sum();
        speeds.iter().map(|speed| speed / all).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks that sweep so many groups of each level, at so many seconds each.
    fn compared(ranks: &[&[(u64, f64)]]) -> Option<Compared> {
        let time = |&(groups, each): &(u64, f64)| SweepTime { seconds: groups as f64 * each, groups };
        let ranks: Vec<Vec<SweepTime>> = ranks.iter().map(|rank| rank.iter().map(time).collect()).collect();
        Compared::of(&ranks.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn ranks_are_compared_level_by_level() {
        // the second has more of the level whose groups take longer, and is no slower for that
        let even = compared(&[&[(300, 1e-3), (100, 4e-3)], &[(100, 1e-3), (300, 4e-3)]]).unwrap();
        assert!(even.costs.iter().all(|cost| (cost - 1.0).abs() < 1e-12), "{even:?}");
        // 0.3 s of 0.2 on average, and 1.2 of 0.8
        assert!((even.imbalance - 0.5).abs() < 1e-12, "{even:?}");
        let slow = compared(&[&[(200, 1e-3), (100, 2e-3)], &[(100, 3e-3), (50, 6e-3)]]).unwrap();
        assert!((slow.costs[1] / slow.costs[0] - 3.0).abs() < 1e-12, "{slow:?}");
    }

    #[test]
    fn only_levels_that_all_have_measured_count() {
        let more = compared(&[&[(200, 1e-3), (100, 9e-3)], &[(200, 1e-3)], &[(200, 2e-3), (0, 0.0)]]);
        let fewer = compared(&[&[(200, 1e-3)], &[(200, 1e-3)], &[(200, 2e-3)]]);
        assert!(more.is_some() && more == fewer);
        assert_eq!(compared(&[&[(10, 1e-3)], &[]]), None);
        assert_eq!(compared(&[&[(10, 1e-3), (0, 0.0)], &[(0, 0.0), (10, 1e-3)]]), None);
    }

    #[test]
    fn eight_steps_count_and_a_disturbed_one_among_them_does_not() {
        let mut load_balancer = LoadBalancer::default();
        for step in 0..STEPS {
            assert_eq!(load_balancer.parts(2), [0.5; 2], "after {step} steps");
            load_balancer.add(Some(if step == 5 { vec![0.1, 1.9] } else { vec![1.5, 0.5] }));
        }
        assert_eq!((load_balancer.costs(2), load_balancer.parts(2)), (vec![1.5, 0.5], vec![0.25, 0.75]));
    }

    #[test]
    fn ranks_that_are_nearly_as_fast_stay_what_they_count_as() {
        for (before, [cost, other], after) in [
            ([1.0; 2], [1.04, 0.96], [1.0; 2]),
            ([1.0; 2], [1.06, 0.94], [1.06, 0.94]),
            ([1.2, 0.8], [1.04, 0.96], [1.04, 0.96]),
            ([1.2, 0.8], [1.02, 0.98], [1.0; 2]),
        ] {
            let mut load_balancer = LoadBalancer::of(&before);
            (0..STEPS).for_each(|_| load_balancer.add(Some(vec![cost, other])));
            assert_eq!(load_balancer.costs(2), after, "{cost} and {other} after {before:?}");
        }
    }

    #[test]
    fn what_is_not_measured_any_more_is_forgotten() {
        let mut load_balancer = LoadBalancer::of(&[1.5, 0.5]);
        for step in 0..STEPS {
            assert_eq!(load_balancer.is_imbalanced(), step <= STEPS / 2, "after {step} steps");
            load_balancer.add(None);
        }
        assert_eq!(load_balancer.costs(2), [1.0; 2]);
    }
}

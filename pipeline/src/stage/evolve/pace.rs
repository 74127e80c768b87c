//! How long the next step and the writing of the state will take, as far as those so far tell.

use std::time::Duration;

/// What may be slower next time: a level more, a step taken again, a busy disk.
const MARGIN: f64 = 2.0;

/// The slowest step and the last writing of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    step: Duration,
    /// With the groups of the state; `None` before anything was written.
    written: Option<(Duration, usize)>,
}

impl Pace {
    /// A step has taken so long.
    pub(crate) fn stepped(&mut self, time: Duration) {
        self.step = self.step.max(time);
    }

    /// Making and writing a snapshot of so many groups has taken so long.
    pub(crate) fn wrote(&mut self, time: Duration, groups: usize) {
        self.written = Some((time, groups));
    }

    /// Whether anything was written yet.
    pub(crate) fn has_written(&self) -> bool {
        self.written.is_some()
    }

    /// What so many steps and snapshots of so many groups may take. Writing grows with the state, and does not shrink
    /// with it.
    pub(crate) fn of(&self, steps: usize, snapshots: usize, groups: usize) -> Duration {
        let growth = |before: usize| (groups as f64 / before.max(1) as f64).max(1.0);
        let snapshot = self.written.map_or(0.0, |(time, before)| time.as_secs_f64() * growth(before));
        let seconds = steps as f64 * self.step.as_secs_f64() + snapshots as f64 * snapshot;
        Duration::try_from_secs_f64(MARGIN * seconds).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_step_counts_and_writing_grows_with_the_state() {
        let mut pace = Pace::default();
        assert_eq!((pace.of(3, 2, 100), pace.has_written()), (Duration::ZERO, false));
        for seconds in [4, 10, 6] {
            pace.stepped(Duration::from_secs(seconds));
        }
        assert_eq!(pace.of(2, 0, 1000), Duration::from_secs(40));
        pace.wrote(Duration::from_secs(5), 10);
        pace.wrote(Duration::from_secs(8), 32);
        assert_eq!(pace.of(1, 2, 64), Duration::from_secs(2 * (10 + 32)));
        assert_eq!(pace.of(0, 1, 16), Duration::from_secs(16));
    }
}

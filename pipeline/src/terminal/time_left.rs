//! Time that a run in progress has left.

use crate::moment::Moment;
use comove_sim::records::StepRecord;
use comove_sim::{Octree, SnapshotHeader};
use indicatif::HumanDuration;
use std::time::Duration;

/// Upper bound of printed durations, in seconds.
pub(crate) const CENTURY: f64 = 100.0 * 365.25 * 86400.0;

/// Seconds that a run has left.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeLeft {
    pub seconds: f64,
    /// Whether structure that forms on the way may take more: no record and no model tells of it.
    pub is_least: bool,
}

/// Estimates the time left from the steps of a run.
pub(crate) trait Estimator: Send + Sync {
    /// Begins with a run that starts or resumes from this state, and ends with the last of these outputs.
    fn begin(&mut self, begun: &(SnapshotHeader, Octree), outputs: &[Moment]);

    /// Adds a step.
    fn step(&mut self, record: &StepRecord);

    /// `None` of a run that has hardly begun.
    fn left(&mut self) -> Option<TimeLeft>;
}

impl TimeLeft {
    /// In words; none where it is bounded on neither side. `stops`: whether a stop rule may end the run before.
    pub(crate) fn text(self, stops: bool) -> Option<String> {
        let bound = match (self.is_least, stops) {
            (true, true) => return None,
            (true, false) => "at least ",
            (false, true) => "at most ",
            (false, false) => "",
        };
        let time = Duration::try_from_secs_f64(self.seconds).ok().filter(|time| time.as_secs_f64() < CENTURY)?;
        Some(match time.as_secs() {
            0..90 => format!("{bound}{:.0} s left", self.seconds.ceil()),
            90..5400 => format!("{bound}{:.0} min left", self.seconds / 60.0),
            _ => format!("{bound}{} left", HumanDuration(time)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_named() {
        let text = |seconds, is_least, stops| TimeLeft { seconds, is_least }.text(stops);
        assert_eq!(text(7.2, false, false).unwrap(), "8 s left");
        assert_eq!(text(300.0, true, false).unwrap(), "at least 5 min left");
        assert_eq!(text(7200.0, false, true).unwrap(), "at most 2 hours left");
        assert_eq!((text(1.0, true, true), text(1e300, false, false)), (None, None));
    }
}

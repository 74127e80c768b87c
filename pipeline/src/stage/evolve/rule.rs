//! Where the stop rule of a run has ended it, and asking it of steps that were taken before.

use super::hooks::{StopPoint, stop_file};
use super::run::{Evolve, Origin, checkpoints};
use super::steps;
use crate::error::PipelineError;
use crate::ledger::{Event, Ruling, StageHistory};
use crate::moment::Moment;
use crate::stage::work::Work;
use comove_sim::records::{RECORD_VERSION, StepRecord};

/// Why a stop rule cannot be asked of a record without the density of all matter.
const OLDER: &str = "the stop rule cannot be evaluated, because an older comove recorded only the density of the \
                     gas; compute the run again (--force evolve), or remove stop_when";

impl Evolve {
    /// The stop rule as the ledger knows it: its text, the values that it has captured, and where there may be dark matter
    /// the layout of records, of which older ones have other densities.
    fn rule(&self) -> Option<String> {
        let rule = self.hooks.stop_when.as_ref()?.identity();
        Some(if self.may_have_dark_matter() { format!("{rule} {RECORD_VERSION}") } else { rule })
    }

    /// Where the run's stop rule ends it, if that is known and lies before its end.
    pub(crate) fn stop(&self, history: &StageHistory) -> Option<StopPoint> {
        match history.rulings.get(&self.rule()?)? {
            Ruling::Met { step, moment } if moment.now() < self.end.now() => {
                Some(StopPoint { step: *step, moment: *moment })
            }
            _ => None,
        }
    }

    /// Whether the stop rule, if there is one, has been asked of every step up to the end, and its output is there if it was
    /// met.
    pub(crate) fn is_ruled(&self, history: &StageHistory) -> bool {
        let Some(rule) = self.rule() else { return true };
        match history.rulings.get(&rule) {
            None => false,
            Some(Ruling::Met { .. }) => match self.stop(history) {
                Some(point) => history.snapshots.iter().any(|s| s.file == stop_file(point.step)),
                None => true,
            },
            Some(Ruling::Passed { step }) => {
                let end = history.snapshots.iter().find(|s| s.moment() == self.end);
                end.is_some_and(|end| end.step <= *step)
            }
        }
    }

    /// Asks the stop rule, if there is one, of the steps that were taken before; the last of them that has been asked.
    ///
    /// # Errors
    /// [`PipelineError::Recipe`]; [`PipelineError::Io`] of the ledger and the records; [`PipelineError::Input`] if records
    /// are missing or damaged, so that nobody knows where the rule ends the run.
    pub(crate) fn rule_on_records(&self, work: &Work<'_>) -> Result<u64, PipelineError> {
        let Some(rule) = self.rule() else { return Ok(0) };
        let (history, records) = (work.history(), steps::sound(&work.folder)?);
        let mut asked = match history.rulings.get(&rule) {
            Some(Ruling::Met { step, .. }) => return Ok(*step),
            Some(Ruling::Passed { step }) if self.is_ruled(&history) => return Ok(*step),
            Some(Ruling::Passed { step }) => *step,
            None => 0,
        };
        // a run from a snapshot begins with another step than the first
        let may_begin_later = matches!(self.origin, Origin::Saved { .. });
        let lacks = |step: u64, asked: u64| step > asked + 1 && !(may_begin_later && asked == 0);
        let lost = |step: u64| {
            let reason = format!(
                "the record of step {step} is missing or damaged, so the stop rule cannot be evaluated; compute the \
                 run again (--force evolve), or remove stop_when"
            );
            Err(PipelineError::input(&work.path(steps::FILE), reason))
        };
        for record in records {
            let number = record["step"].as_u64().unwrap_or_default();
            if number <= asked {
                continue;
            }
            if lacks(number, asked) {
                return lost(asked + 1);
            }
            let met = self.hooks.stops(&record, work).map_err(|error| match record.get("density_max") {
                Some(_) => error,
                None => PipelineError::input(&work.path(steps::FILE), format!("step {number}: {OLDER}\n{error}")),
            })?;
            if met {
                let ended: StepRecord = serde_json::from_value(record)
                    .map_err(|e| PipelineError::input(&work.path(steps::FILE), format!("step {number}: {e}")))?;
                self.rule_met(&ended, work)?;
                return Ok(number);
            }
            asked = number;
        }
        // records are on disk before the checkpoint that follows them
        let checkpointed = checkpoints(&history).map(|checkpoint| checkpoint.step).max().unwrap_or(0);
        if lacks(checkpointed + 1, asked) { lost(asked + 1) } else { Ok(asked) }
    }

    /// Enters into the ledger that a run that has come to its end was not ended by its stop rule, if it has one; `asked`: the
    /// last of the steps taken before that it was asked of.
    pub(crate) fn rule_passed(&self, asked: u64, work: &Work<'_>) -> Result<(), PipelineError> {
        let history = work.history();
        let Some(rule) = self.rule().filter(|_| !self.is_ruled(&history)) else { return Ok(()) };
        let end = history.snapshots.iter().find(|s| s.moment() == self.end).map_or(0, |end| end.step);
        work.record(Event::StopRulePassed { fingerprint: work.fingerprint.into(), rule, step: end.max(asked) })
    }

    /// Enters into the ledger that the stop rule is met by a step.
    pub(crate) fn rule_met(&self, record: &StepRecord, work: &Work<'_>) -> Result<(), PipelineError> {
        let moment = Moment::after(record);
        tracing::info!("the stop rule ends the run at step {} ({})", record.step, moment.rounded());
        let rule = self.rule().expect("it is met");
        work.record(Event::StopRuleMet { fingerprint: work.fingerprint.into(), rule, step: record.step, moment })
    }
}

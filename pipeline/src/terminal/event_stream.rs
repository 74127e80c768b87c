//! What happens, for other programs: one JSON object a line on the standard output.
//!
//! These are the events of the ledger as they enter it, with one more that is not kept there: `step`, the record of a step of
//! the run with this fingerprint and in this folder.

use crate::error::PipelineError;
use crate::ledger::VERSION;
use crate::terminal::streams::printed;
use crate::terminal::time_left::TimeLeft;
use comove_sim::records::StepRecord;
use serde::Serialize;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// The lines, if they are asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventStream {
    /// Whether they are.
    pub is_on: bool,
    /// Why a line was lost.
    lost: Arc<Mutex<Option<PipelineError>>>,
}

/// The record of a step, shaped as an event.
#[derive(Serialize)]
struct Step<'a> {
    version: u32,
    unix_time_s: f64,
    event: &'static str,
    fingerprint: &'a str,
    folder: &'a str,
    record: &'a StepRecord,
    /// Seconds that the run has left, as far as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_left: Option<f64>,
    /// Whether that is a lower bound.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    at_least: bool,
}

impl EventStream {
    /// A stream, if `is_on`.
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_on, ..Self::default() }
    }

    /// Prints a line, which ends with a line break.
    pub(crate) fn line(&self, line: &[u8]) {
        if self.is_on {
            let mut out = std::io::stdout().lock();
            if let Err(error) = printed(out.write_all(line).and_then(|()| out.flush())) {
                self.lost().get_or_insert(error);
            }
        }
    }

    /// The error of the first line that was lost: the campaign has gone on without it.
    pub(crate) fn check(&self) -> Result<(), PipelineError> {
        self.lost().take().map_or(Ok(()), Err)
    }

    fn lost(&self) -> std::sync::MutexGuard<'_, Option<PipelineError>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that a run has made a step.
    pub(crate) fn step(
        &self,
        unix_time_s: f64,
        fingerprint: &str,
        folder: &str,
        (record, left): (&StepRecord, Option<TimeLeft>),
    ) {
        let (seconds_left, at_least) = (left.map(|left| left.seconds), left.is_some_and(|left| left.is_least));
        let event = "step";
        let step = Step { version: VERSION, unix_time_s, event, fingerprint, folder, record, seconds_left, at_least };
        let mut line = serde_json::to_vec(&step).expect("a record is plain data");
        line.push(b'\n');
        self.line(&line);
    }
}

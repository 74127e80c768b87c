//! The closures of a run, called with the records of a toy's steps: as they are, and as they would be at each output.

use super::universe::Universe;
use crate::error::PipelineError;
use crate::moment::Moment;
use crate::recipe::Cause;
use crate::recipe::api::snapshot_view::SnapshotView;
use crate::stage::evolve::Evolve;
use crate::stage::evolve::hooks::step;
use crate::stage::work::Work;
use comove_sim::Snapshot;
use rhai::Dynamic;
use serde_json::Value;
use std::sync::Arc;

/// Moments of outputs at which the closures are called: a rule may look at more once the run has come so far.
const MOMENTS: usize = 3;
/// A density that thresholds of a recipe lie below.
const DENSE: f64 = 1e9;
/// The number of a late step.
const LATE: u64 = 1_000_000;

/// Calls them all; the errors of each.
pub(super) fn call(run: &Evolve, universe: &Universe, work: &Work<'_>) -> Vec<PipelineError> {
    let mut errors = Vec::new();
    for record in &universe.records {
        errors.extend(of_step(run, record, work));
    }
    if let Some(last) = universe.records.last() {
        let every = run.outputs.len().div_ceil(MOMENTS);
        let late = run.outputs.iter().rev().step_by(every).map(|moment| later(last, *moment));
        let of_text = |error: &PipelineError| matches!(error, PipelineError::Recipe(e) if e.cause == Cause::Text);
        errors.extend(late.flat_map(|record| of_step(run, &record, work)).filter(of_text));
    }
    if let Some(hook) = &run.hooks.on_output {
        let last = run.outputs.last().copied();
        let output = last.map_or_else(|| universe.output.clone(), |moment| at(universe.output.clone(), moment));
        errors.extend(hook.ask(Dynamic::from(SnapshotView::new(Arc::new(output))), work).err());
    }
    errors
}

fn of_step(run: &Evolve, record: &Value, work: &Work<'_>) -> Vec<PipelineError> {
    let hooks = &run.hooks;
    let steered = hooks.steering(record, work, |steering| steering.on(&run.parameters).map(drop));
    let observed = hooks.on_step.as_ref().and_then(|hook| hook.ask(step(record), work).err());
    let stopped = hooks.stops(record, work);
    steered.err().into_iter().chain(observed).chain(stopped.err()).collect()
}

/// A record as it would be at `moment`, of a dense state.
fn later(record: &Value, moment: Moment) -> Value {
    let mut later = record.clone();
    match moment {
        Moment::Redshift(z) => (later["z"], later["a"]) = (z.into(), moment.now().into()),
        Moment::Time(t) => later["time"] = t.into(),
    }
    later["step"] = LATE.into();
    if later["density_max"].is_number() {
        later["density_max"] = DENSE.into();
    }
    later
}

/// A snapshot as if it were of `moment`.
pub(super) fn at(mut snapshot: Snapshot, moment: Moment) -> Snapshot {
    match moment {
        Moment::Redshift(_) => snapshot.header.a = moment.now(),
        Moment::Time(t) => snapshot.header.time = t,
    }
    snapshot
}

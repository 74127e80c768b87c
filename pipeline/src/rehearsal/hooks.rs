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

/// A closure that sees steps.
#[derive(Clone, Copy, PartialEq)]
enum Hook {
    Steer,
    OnStep,
    StopWhen,
}

/// Calls them all; the errors of each. The last is [`PipelineError::Interrupted`] if the rehearsal has ended before.
pub(super) fn call(run: &Evolve, universe: &Universe, work: &Work<'_>) -> Vec<PipelineError> {
    let mut errors = Vec::new();
    if let Err(interrupted) = call_within_time(run, universe, work, &mut errors) {
        errors.push(interrupted);
    }
    errors
}

/// Calls the closures while the rehearsal has time, and puts what they fail for into `errors`.
fn call_within_time(
    run: &Evolve,
    universe: &Universe,
    work: &Work<'_>,
    errors: &mut Vec<PipelineError>,
) -> Result<(), PipelineError> {
    let mut hooks = vec![Hook::Steer, Hook::OnStep, Hook::StopWhen];
    for record in &universe.records {
        errors.extend(of_step(run, record, work, &mut hooks)?);
    }
    if let Some(last) = universe.records.last() {
        let every = run.outputs.len().div_ceil(MOMENTS);
        for moment in run.outputs.iter().rev().step_by(every) {
            let found = of_step(run, &later(last, *moment), work, &mut hooks)?;
            errors.extend(found.into_iter().filter(is_of_text));
        }
    }
    if let Some(hook) = &run.hooks.on_output {
        work.in_time()?;
        let last = run.outputs.last().copied();
        let output = last.map_or_else(|| universe.output.clone(), |moment| at(universe.output.clone(), moment));
        errors.extend(hook.ask(Dynamic::from(SnapshotView::new(Arc::new(output))), work).err());
    }
    Ok(())
}

/// The errors of these closures for a step; one that has taken too long is not called again.
fn of_step(
    run: &Evolve,
    record: &Value,
    work: &Work<'_>,
    hooks: &mut Vec<Hook>,
) -> Result<Vec<PipelineError>, PipelineError> {
    let mut errors = Vec::new();
    for hook in hooks.clone() {
        work.in_time()?;
        match ask(run, hook, record, work) {
            Ok(()) => {}
            Err(error @ PipelineError::Interrupted { .. }) => return Err(error),
            Err(error) => {
                if matches!(&error, PipelineError::Recipe(late) if late.is_late) {
                    hooks.retain(|other| *other != hook);
                }
                errors.push(error);
            }
        }
    }
    Ok(errors)
}

fn ask(run: &Evolve, hook: Hook, record: &Value, work: &Work<'_>) -> Result<(), PipelineError> {
    let hooks = &run.hooks;
    match hook {
        Hook::Steer => hooks.steering(record, work, |steering| steering.on(&run.parameters).map(drop)),
        Hook::OnStep => match &hooks.on_step {
            Some(hook) => hook.ask(step(record), work).map(drop),
            None => Ok(()),
        },
        Hook::StopWhen => hooks.stops(record, work).map(drop),
    }
}

/// Whether an error does not come from the numbers of a record that is made up.
fn is_of_text(error: &PipelineError) -> bool {
    matches!(error, PipelineError::Recipe(e) if matches!(e.cause, Cause::Text | Cause::Members))
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

//! What the sources do to the gas in a step, and what they allow the first one.

use crate::clock::Clock;
use crate::records::DevicePart;
use crate::source::{Source, SourceLimit, Span};
use crate::state::State;
use crate::step::diagnostics::{Pending, StepDiagnostics};
use crate::step::physics::Physics;
use comove_kernels::Real;

/// A Δt that a search changes by a smaller part is found.
const FOUND: f64 = 0.9;

/// Whether the run has sources.
pub(crate) fn are_there<T>(physics: &Physics<T>) -> bool {
    Source::of(&physics.parameters).next().is_some()
}

/// Lets the sources act on one level's gas.
pub(super) fn apply<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    level: usize,
    span: Span<'_>,
    diagnostics: &mut StepDiagnostics,
) {
    let State { device, mesh, gas: Some(gas), .. } = state else { return };
    for source in Source::of(&physics.parameters) {
        let started = device.now();
        let reports = source.apply(device, &mesh.tables[level], &mut gas.fluid, &physics.eos, span);
        diagnostics.defer(level, Pending::Source { source, dt: span.dt, reports });
        diagnostics.record_time(DevicePart::Sources, started, device.now());
    }
}

/// What the sources allow a step before which none has acted, by trial on a copy of the gas: collective.
///
/// * `dt`: of the root step, as all else allows it
pub(crate) fn first_limit<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    clock: &Clock,
    mut dt: f64,
) -> Option<SourceLimit> {
    loop {
        let mut trial = StepDiagnostics::new(physics.parameters.time_steps);
        let a = clock.scale_factor_after(0.5 * dt);
        for level in 0..state.level_count() {
            state.copy_to_next(level);
            let State { device, mesh, gas: Some(gas), .. } = state else { return None };
            let dt = dt / physics.parameters.time_steps.per_root_step(level);
            for source in Source::of(&physics.parameters) {
                let span = Span { clock, a, dt };
                let reports = source.apply(device, &mesh.tables[level], &mut gas.next, &physics.eos, span);
                trial.defer(level, Pending::Source { source, dt, reports });
            }
        }
        trial.collect(state);
        trial.reduce(&state.exchange.communicator);
        match trial.source_limit() {
            Some(limit) if limit.time < FOUND * dt => dt = limit.time,
            found => return found,
        }
    }
}

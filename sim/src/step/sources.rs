//! Sources in a step, and the limit that they set to a first one.

use crate::clock::Clock;
use crate::records::DevicePart;
use crate::source::{SourceLimit, Span};
use crate::state::State;
use crate::step::diagnostics::{Pending, StepDiagnostics};
use crate::step::physics::Physics;
use comove_kernels::Real;

/// The search for a limit ends when Δt shrinks by less than 10%.
const CONVERGED: f64 = 0.9;

/// True for a run with sources.
pub(crate) fn any<T>(physics: &Physics<T>) -> bool {
    physics.parameters.sources().next().is_some()
}

/// Applies the sources to one level's gas.
pub(super) fn apply<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    level: usize,
    span: Span<'_>,
    diagnostics: &mut StepDiagnostics,
) {
    let State { device, mesh, gas: Some(gas), .. } = state else { return };
    for source in physics.parameters.sources() {
        let started = device.now();
        let reports = source.apply(device, &mesh.tables[level], &mut gas.fluid.values, &physics.eos, span);
        diagnostics.defer(level, Pending::Source { source, dt: span.dt, reports });
        diagnostics.record_time(DevicePart::Sources, started, device.now());
    }
}

/// The limit of a step before which no source has acted, by trial in the gas's second pool: collective.
///
/// * `dt`: Δt of the root step by all other limits
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
            let State { device, mesh, gas: Some(gas), .. } = state else { return None };
            let tables = &mesh.tables[level];
            gas.fluid.copy_to_next(device, &tables.slots);
            let span = Span { clock, a, dt: dt / physics.parameters.time_steps.per_root_step(level) };
            for source in physics.parameters.sources() {
                let reports = source.apply(device, tables, &mut gas.fluid.next, &physics.eos, span);
                trial.defer(level, Pending::Source { source, dt: span.dt, reports });
            }
        }
        trial.collect(state);
        trial.reduce(&state.exchange.communicator);
        match trial.source_limit() {
            Some(limit) if limit.time < CONVERGED * dt => dt = limit.time,
            found => return found,
        }
    }
}

//! The uniform time step: the operations of the scheme's plan ([`crate::step::plan`]), each on all levels.

use crate::clock::{Clock, Interval};
use crate::error::SimError;
use crate::records::DevicePart;
use crate::source::Span;
use crate::state::State;
use crate::step::diagnostics::{Pending, StepDiagnostics};
use crate::step::level_sweep::{Ghosts, sweep_level};
use crate::step::particles;
use crate::step::physics::Physics;
use crate::step::plan::{Direction, Operation};
use crate::step::sources;
use comove_kernels::gravity_kick::{gravity_kick, max_acceleration};
use comove_kernels::{Eos, Real, potential_energy};

/// One uniform step of all levels.
///
/// * `mean_density`: of the box, from the sums at the start of the step.
///
/// # Errors
/// [`SimError::Kernel`]; cells that turn unphysical are counted in `diagnostics`.
pub(crate) fn step<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    clock: &Clock,
    interval: &Interval,
    mean_density: f64,
    diagnostics: &mut StepDiagnostics,
) -> Result<(), SimError> {
    for level in 0..state.level_count() {
        diagnostics.count_level_step(state, level);
    }
    particles::begin(state, interval.dt);
    let plan = physics.parameters.step_plan();
    let sweep_dt = interval.dt / f64::from(plan.sweeps());
    let levels = 0..state.level_count();
    for (passed, operation) in plan.operations() {
        match operation {
            Operation::Sweep(direction) => {
                let span = Span { clock, a: interval.a_mid, dt: sweep_dt };
                sweep(state, physics, span, direction, diagnostics);
            }
            Operation::Kick => {
                particles::drift(state, levels.clone(), passed, diagnostics);
                if physics.parameters.gravity {
                    solve_and_kick(state, physics, clock, interval, mean_density, diagnostics)?;
                }
                particles::drift(state, levels.clone(), 1.0 - passed, diagnostics);
            }
            Operation::Sources => {
                let span = Span { clock, a: interval.a_mid, dt: interval.dt };
                levels.clone().for_each(|level| sources::apply(state, physics, level, span, diagnostics));
                if physics.parameters.gravity || sources::any(physics) {
                    restrict_all(state, physics, diagnostics);
                }
            }
        }
    }
    particles::sort(state, 0, diagnostics)?;
    state.regrid.count_step(0, plan.sweeps());
    Ok(())
}

/// Solves the potential of all levels and kicks them over the whole step.
fn solve_and_kick<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    clock: &Clock,
    interval: &Interval,
    mean_density: f64,
    diagnostics: &mut StepDiagnostics,
) -> Result<(), SimError> {
    let four_pi_g = clock.four_pi_g(interval.a_mid, physics.parameters.four_pi_g);
    let started = state.device.now();
    state.solve_gravity(four_pi_g, mean_density)?;
    sum_potential(state, interval.a_mid, mean_density, diagnostics);
    diagnostics.record_time(DevicePart::Poisson, started, state.device.now());
    kick(state, physics, interval.dt, diagnostics);
    Ok(())
}

/// Sums the potential energy of all levels, which are at one time.
pub(crate) fn sum_potential<T: Real>(state: &State<T>, a: f64, mean_density: f64, diagnostics: &mut StepDiagnostics) {
    let Some(gravity) = &state.gravity else { return };
    // with a 4πG of 1: the contrast itself
    let density = gravity.source(state.matter(1.0, mean_density));
    diagnostics.begin_potential(a);
    for (level, tables) in state.mesh.tables.iter().enumerate() {
        let sums = potential_energy(&state.device, tables, density, &gravity.potential.current);
        diagnostics.defer(level, Pending::Potential(sums));
    }
}

/// One hydro sweep of all levels over a span's `dt`, each from the state before the sweep, then flux correction and restriction
/// from the finest level down.
fn sweep<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    span: Span<'_>,
    direction: Direction,
    diagnostics: &mut StepDiagnostics,
) {
    if state.gas.is_none() {
        return;
    }
    let levels = state.level_count();
    let started = state.device.now();
    for level in 0..levels {
        sweep_level(state, physics, level, span, direction, None, Ghosts::Fresh, diagnostics);
    }
    state.swap();
    diagnostics.record_time(DevicePart::Hydro, started, state.device.now());

    let started = state.device.now();
    for level in (0..levels.saturating_sub(1)).rev() {
        correct_level(state, physics, level, span.dt, diagnostics);
    }
    state.refresh_all();
    diagnostics.record_time(DevicePart::Correction, started, state.device.now());
}

/// Flux correction of one level by the next finer one, and restriction: after a sweep over `dt`, or, when levels are
/// subcycled, after all sweeps of a step, each over `dt`, and twice as many of the finer level, each over half of it.
pub(crate) fn correct_level<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    level: usize,
    dt: f64,
    diagnostics: &mut StepDiagnostics,
) {
    let dt_over_dx = T::from_f64(dt / state.cell_width(level));
    state.send_fluxes(level);
    let subcycled = state.is_subcycled();
    let State { device, mesh, gas: Some(gas), .. } = state else { return };
    let reports = gas.correct(device, &mesh.flux.reflux[level], subcycled, dt_over_dx, &physics.eos);
    diagnostics.defer(level, Pending::Correction(reports));
    restrict_level(state, level, &physics.eos);
}

/// Restriction to one level; patches that other ranks have refined come from them.
fn restrict_level<T: Real>(state: &mut State<T>, level: usize, eos: &Eos<T>) {
    let State { device, exchange, mesh, gas: Some(gas), .. } = state else { return };
    gas.restrict(device, &mesh.tables[level], (exchange, exchange.links(level)), eos);
}

/// The gravity kick of all levels over `dt`.
fn kick<T: Real>(state: &mut State<T>, physics: &Physics<T>, dt: f64, diagnostics: &mut StepDiagnostics) {
    for level in 0..state.level_count() {
        kick_level(state, physics, level, dt, None, diagnostics);
    }
}

/// The gravity kick of one level's gas and particles over `dt`, and how strong it is; `coarse` is the part of the coarser level's step that has
/// passed, where that level is ahead.
pub(crate) fn kick_level<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    level: usize,
    dt: f64,
    coarse: Option<f64>,
    diagnostics: &mut StepDiagnostics,
) {
    let started = state.device.now();
    let h = state.cell_width(level);
    let State { device, mesh, gas, dark_matter, gravity: Some(gravity), .. } = state else { return };
    let coarse = coarse.map(|passed| gravity.potential.at(mesh, passed));
    let (tables, potential) = (&mesh.tables[level], &gravity.potential.current);
    let kicks = match gas {
        Some(gas) => Pending::Kick(gravity_kick(
            device,
            tables,
            potential,
            coarse.as_ref(),
            &mut gas.fluid.values,
            h,
            dt,
            &physics.eos,
        )),
        None => Pending::Peaks(max_acceleration(device, tables, potential, coarse.as_ref(), h)),
    };
    diagnostics.defer(level, kicks);
    diagnostics.record_time(DevicePart::Kick, started, device.now());
    if let Some(dark_matter) = dark_matter {
        let started = device.now();
        dark_matter.kick(device, level, potential, coarse.as_ref(), (h, dt));
        diagnostics.record_time(DevicePart::Particles, started, device.now());
    }
}

/// Restriction of all levels, from the finest down.
fn restrict_all<T: Real>(state: &mut State<T>, physics: &Physics<T>, diagnostics: &mut StepDiagnostics) {
    if state.gas.is_none() {
        return;
    }
    let started = state.device.now();
    for level in (0..state.level_count().saturating_sub(1)).rev() {
        restrict_level(state, level, &physics.eos);
    }
    state.refresh_all();
    diagnostics.record_time(DevicePart::Correction, started, state.device.now());
}

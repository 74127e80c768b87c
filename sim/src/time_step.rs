//! The choice of Δt: the smallest of all limits, and which one it was.

use crate::book::Acceleration;
use crate::clock::Clock;
use crate::records::StepLimit;
use crate::state::State;
use crate::step::Physics;
use comove_kernels::Real;
use comove_kernels::reading::Reading;
use comove_kernels::timestep::{SignalSpeed, signal_speed};

/// The fastest signal of each group of a level.
pub fn signal_speeds<T: Real>(state: &State<T>, physics: &Physics<T>, level: usize) -> Reading<SignalSpeed> {
    signal_speed(&state.device, &state.tables[level], &state.fluid, &physics.eos)
}

/// A choice of Δt.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Δt of one sweep.
    pub dt: f64,
    /// What limited it.
    pub limit: StepLimit,
    /// What the gas alone would have allowed, its signals and its acceleration; infinite where it stands still.
    pub gas_dt: f64,
}

/// Δt of one sweep, and what limited it.
///
/// * CFL: Δt ≤ `courant` h/(|v| + c_s) on every level, also for gas that a boundary holds beyond the box;
/// * acceleration: 2Δt ≤ `gravity_courant` √(h/g), from the last step's kicks;
/// * expansion: Δa/a ≤ `max_delta_a` over the step.
///
/// With individual time steps the first two limit the level's own Δt, 2^−ℓ of the root's, which is returned.
pub fn choose<T: Real>(
    state: &State<T>,
    physics: &Physics<T>,
    clock: &Clock,
    acceleration: Option<Acceleration>,
) -> Choice {
    let parameters = &physics.parameters;
    let mut best = (f64::INFINITY, StepLimit::Expansion);
    if let Some(a) = acceleration {
        let dt = 0.5 * parameters.gravity_courant * a.time;
        if dt < best.0 {
            best = (dt, StepLimit::Acceleration { level: a.level, cell: a.cell, acceleration: a.acceleration });
        }
    }
    for level in 0..state.level_count() {
        let steps = parameters.time_steps.per_root_step(level);
        let groups = signal_speeds(state, physics, level).wait();
        for (group, fastest) in groups.iter().enumerate() {
            let dt = steps * parameters.courant * state.cell_width(level) / fastest.speed;
            if dt < best.0 {
                let cell = state.locate(level, group, fastest.cell as usize);
                best = (dt, StepLimit::Courant { level: level as u8, cell, speed: fastest.speed });
            }
        }
        for (face, gas) in parameters.boundary.fixed() {
            let touches = state.tables[level].outside.iter().any(|faces| faces >> face & 1 == 1);
            let speed = gas.signal_speed(parameters.gamma);
            let dt = steps * parameters.courant * state.cell_width(level) / speed;
            if touches && dt < best.0 {
                best = (dt, StepLimit::Inflow { level: level as u8, speed });
            }
        }
    }
    let (gas_dt, limit) = best;
    let expansion = clock.expansion_limit(parameters.max_delta_a);
    if expansion <= gas_dt {
        return Choice { dt: expansion, limit: StepLimit::Expansion, gas_dt };
    }
    Choice { dt: gas_dt, limit, gas_dt }
}

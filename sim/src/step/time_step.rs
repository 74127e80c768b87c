//! The choice of Δt: the smallest of all limits, and which one it was.

use crate::clock::Clock;
use crate::mesh::Key;
use crate::records::StepLimit;
use crate::state::State;
use crate::step::diagnostics::Acceleration;
use crate::step::physics::Physics;
use comove_kernels::Deferred;
use comove_kernels::Real;
use comove_kernels::layout::GROUP;
use comove_kernels::timestep::SignalSpeed;

/// The fastest signal of each group of a level; none without gas.
pub(crate) fn signal_speeds<T: Real>(state: &State<T>, physics: &Physics<T>, level: usize) -> Deferred<SignalSpeed> {
    let Some(gas) = &state.gas else { return Deferred::ready(Vec::new()) };
    gas.signal_speeds(&state.device, &state.mesh.tables[level], &physics.eos)
}

/// The fastest signal of each level and its cell on the level's lattice, the first in key order of equal ones: collective.
fn fastest_signals<T: Real>(state: &State<T>, physics: &Physics<T>) -> Vec<Option<(f64, [usize; 3])>> {
    let of_level = |level: usize| {
        let groups = signal_speeds(state, physics, level).wait();
        let mut fastest = None;
        for (group, signal) in groups.iter().enumerate() {
            if signal.speed > fastest.map_or(0.0, |(speed, _)| speed) {
                fastest = Some((signal.speed, state.mesh.locate(level, group, signal.cell as usize)));
            }
        }
        fastest
    };
    let own: Vec<Option<(f64, [usize; 3])>> = (0..state.level_count()).map(of_level).collect();
    if state.exchange.communicator.size() == 1 {
        return own;
    }
    // bits, as infinity is a speed too
    let own: Vec<_> = own.iter().map(|fastest| fastest.map(|(speed, cell)| (speed.to_bits(), cell))).collect();
    let all = state.exchange.communicator.gather_all_of(&own);
    let of_level = |level: usize| {
        let signals = all.iter().filter_map(|rank| rank[level]).map(|(speed, cell)| (f64::from_bits(speed), cell));
        let group = |cell: [usize; 3]| Key::new(level as u8, cell.map(|c| (c / GROUP) as u32));
        signals.min_by(|(a, at), (b, other)| b.total_cmp(a).then_with(|| group(*at).cmp(&group(*other))))
    };
    (0..own.len()).map(of_level).collect()
}

/// Cells of its level that a particle may cross in a step.
pub(crate) const CELLS_CROSSED: f64 = 0.5;

/// The fastest particle of each level, |v| along its worst axis.
fn fastest_particles<T: Real>(state: &State<T>) -> Vec<f64> {
    let (device, communicator) = (&state.device, &state.exchange.communicator);
    state.dark_matter.as_ref().map_or_else(Vec::new, |dark_matter| dark_matter.fastest(device, communicator))
}

/// A choice of Δt.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Δt of the root step.
    pub dt: f64,
    /// What limited it.
    pub limit: StepLimit,
    /// What the gas alone would have allowed, its signals and its acceleration; infinite where it stands still.
    pub gas_dt: f64,
    /// What the particles alone would have allowed; infinite where there are none.
    pub particle_dt: f64,
}

/// Δt of the root step, and what limited it.
///
/// * CFL: Δt of a sweep, a part of the step's, ≤ `courant` h/(|v| + c_s) on every level, also for gas that a boundary holds beyond
///   the box;
/// * acceleration: Δt ≤ `gravity_courant` √(h/g), from the last step's kicks;
/// * particles: none crosses more than half a cell of its level;
/// * expansion: Δa/a ≤ `max_delta_a` over the step.
///
/// With individual time steps (subcycling) the first three limit the level's own Δt, 2^−ℓ of the root's, which is returned.
pub(crate) fn choose<T: Real>(
    state: &State<T>,
    physics: &Physics<T>,
    clock: &Clock,
    acceleration: Option<Acceleration>,
) -> Choice {
    let parameters = &physics.parameters;
    let sweeps = f64::from(parameters.step_plan().sweeps());
    let mut best = (f64::INFINITY, StepLimit::Expansion);
    if let Some(a) = acceleration {
        let dt = parameters.gravity_courant * a.time;
        if dt < best.0 {
            best = (dt, StepLimit::Acceleration { level: a.level, cell: a.cell, acceleration: a.acceleration });
        }
    }
    for (level, fastest) in fastest_signals(state, physics).into_iter().enumerate() {
        let steps = parameters.time_steps.per_root_step(level);
        let dt = |speed: f64| sweeps * steps * parameters.courant * state.cell_width(level) / speed;
        if let Some((speed, cell)) = fastest.filter(|(speed, _)| dt(*speed) < best.0) {
            best = (dt(speed), StepLimit::Courant { level: level as u8, cell, speed });
        }
        for (face, gas) in parameters.boundary.fixed() {
            let touches = state.mesh.tables[level].outside.iter().any(|faces| faces >> face & 1 == 1);
            let speed = gas.signal_speed(parameters.gamma);
            if state.exchange.communicator.any(touches) && dt(speed) < best.0 {
                best = (dt(speed), StepLimit::Inflow { level: level as u8, speed });
            }
        }
    }
    let (gas_dt, _) = best;
    let mut particle_dt = f64::INFINITY;
    for (level, speed) in fastest_particles(state).into_iter().enumerate() {
        let steps = parameters.time_steps.per_root_step(level);
        let dt = CELLS_CROSSED * steps * state.cell_width(level) / speed;
        particle_dt = particle_dt.min(dt);
        if dt < best.0 {
            best = (dt, StepLimit::Particle { level: level as u8, speed });
        }
    }
    let (matter_dt, limit) = best;
    let expansion = clock.expansion_limit(parameters.max_delta_a);
    if expansion <= matter_dt {
        return Choice { dt: expansion, limit: StepLimit::Expansion, gas_dt, particle_dt };
    }
    Choice { dt: matter_dt, limit, gas_dt, particle_dt }
}

//! The choice of Δt: the smallest of all limits, and which one it was.

use crate::clock::Clock;
use crate::mesh::Key;
use crate::records::StepLimit;
use crate::source::SourceLimit;
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

/// A limit and its Δt.
struct Proposal {
    dt: f64,
    limit: StepLimit,
}

/// The shortest, the first of equal ones.
fn shortest(proposals: Vec<Proposal>) -> Option<Proposal> {
    proposals.into_iter().filter(|proposal| !proposal.dt.is_nan()).min_by(|a, b| a.dt.total_cmp(&b.dt))
}

/// By the gas's signals: Δt of a sweep, a part of the step's, ≤ `courant` h/(|v| + c_s) on every level, also for gas that a boundary
/// holds beyond the box. Collective.
fn by_signals<T: Real>(state: &State<T>, physics: &Physics<T>) -> Vec<Proposal> {
    let parameters = &physics.parameters;
    let sweeps = f64::from(parameters.step_plan().sweeps());
    let mut proposals = Vec::new();
    for (level, fastest) in fastest_signals(state, physics).into_iter().enumerate() {
        let steps = parameters.time_steps.per_root_step(level);
        let dt = |speed: f64| sweeps * steps * parameters.courant * state.cell_width(level) / speed;
        let level_number = level as u8;
        if let Some((speed, cell)) = fastest {
            proposals.push(Proposal { dt: dt(speed), limit: StepLimit::Courant { level: level_number, cell, speed } });
        }
        for (face, gas) in parameters.boundary.fixed() {
            let touches = state.mesh.tables[level].outside.iter().any(|faces| faces >> face & 1 == 1);
            let speed = gas.signal_speed(parameters.gamma);
            if state.exchange.communicator.any(touches) {
                proposals.push(Proposal { dt: dt(speed), limit: StepLimit::Inflow { level: level_number, speed } });
            }
        }
    }
    proposals
}

/// By the last step's kicks: Δt ≤ `gravity_courant` √(h/g).
fn by_acceleration(found: Option<Acceleration>, gravity_courant: f64) -> Option<Proposal> {
    let Acceleration { time, level, cell, acceleration } = found?;
    let limit = StepLimit::Acceleration { level, cell, acceleration };
    Some(Proposal { dt: gravity_courant * time, limit })
}

/// By the particles: none crosses more than half a cell of its level. Collective.
fn by_particles<T: Real>(state: &State<T>, physics: &Physics<T>) -> Vec<Proposal> {
    let of_level = |(level, speed): (usize, f64)| {
        let steps = physics.parameters.time_steps.per_root_step(level);
        let dt = CELLS_CROSSED * steps * state.cell_width(level) / speed;
        Proposal { dt, limit: StepLimit::Particle { level: level as u8, speed } }
    };
    fastest_particles(state).into_iter().enumerate().map(of_level).collect()
}

/// By the last step's sources, or a trial of them.
fn by_sources(found: Option<&SourceLimit>) -> Option<Proposal> {
    let SourceLimit { time, source, level, cell } = found?.clone();
    Some(Proposal { dt: time, limit: StepLimit::Source { source: source.name().into(), level, cell } })
}

/// Δt of the root step, and what limited it: the shortest proposal; of equal ones expansion (Δa/a ≤ `max_delta_a` over the step), then gas,
/// particles, sources. With individual time steps (subcycling) all but expansion limit the level's own Δt, 2^−ℓ of the root's,
/// which is returned. Collective.
pub(crate) fn choose<T: Real>(
    state: &State<T>,
    physics: &Physics<T>,
    clock: &Clock,
    acceleration: Option<Acceleration>,
    sources: Option<&SourceLimit>,
) -> Choice {
    let parameters = &physics.parameters;
    let mut gas: Vec<_> = by_acceleration(acceleration, parameters.gravity_courant).into_iter().collect();
    gas.extend(by_signals(state, physics));
    let [gas, particles] = [gas, by_particles(state, physics)].map(shortest);
    let allows = |proposal: &Option<Proposal>| proposal.as_ref().map_or(f64::INFINITY, |proposal| proposal.dt);
    let (gas_dt, particle_dt) = (allows(&gas), allows(&particles));
    let expansion = Proposal { dt: clock.expansion_limit(parameters.max_delta_a), limit: StepLimit::Expansion };
    let proposals = [Some(expansion), gas, particles, by_sources(sources)];
    let Proposal { dt, limit } = shortest(proposals.into_iter().flatten().collect()).expect("expansion proposes one");
    Choice { dt, limit, gas_dt, particle_dt }
}

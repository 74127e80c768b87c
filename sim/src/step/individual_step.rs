//! Individual time steps (subcycling): a level takes two steps for one of the next coarser level (paper, section 2.1).
//!
//! A level goes first and its finer levels follow, twice with half the step. At coarse–fine boundaries they interpolate
//! the coarser level in time: the fluid between the start and the end of its step, the potential between the times at
//! which it was solved (start, kick, end). Once both have arrived the coarser level takes over their fluxes, summed,
//! and their means. Particles change levels then.
//!
//! Pools: `fluid.values` holds every level at its own time. Each sweep of a level makes the two pools change roles, so a level with
//! finer ones has its new state in both, and one that sweeps an odd number of times is copied back.

use crate::clock::Clock;
use crate::error::SimError;
use crate::gravity::{Purpose, Solve, StepPhase};
use crate::records::DevicePart;
use crate::refinement;
use crate::source::Span;
use crate::state::State;
use crate::step::diagnostics::{Pending, StepDiagnostics};
use crate::step::level_sweep::{Ghosts, sweep_level};
use crate::step::particles;
use crate::step::physics::Physics;
use crate::step::plan::{Direction, Operation};
use crate::step::sources;
use crate::step::time_step::signal_speeds;
use crate::step::uniform_step::{correct_level, kick_level, sum_potential};
use comove_kernels::Real;

/// One root step and all the finer levels' steps within, with regrids of finer levels where they are due.
///
/// * `dt`: Δt of the root level.
/// * `mean_density`: of the box, from the sums at the start of the step.
///
/// # Errors
/// [`SimError::Kernel`]; cells that turn unphysical are counted in `diagnostics`.
pub(crate) fn individual_step<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    clock: &Clock,
    dt: f64,
    mean_density: f64,
    diagnostics: &mut StepDiagnostics,
) -> Result<(), SimError> {
    particles::begin(state, dt);
    let mut root_step = RootStep { state, physics, clock, mean_density, diagnostics };
    root_step.solve_synchronised(0, None, 0.0)?;
    sum_potential(root_step.state, clock.a, mean_density, root_step.diagnostics);
    root_step.advance(LevelStep { level: 0, dt, start: 0.0, within: 0.0 })
}

/// One step of one level.
#[derive(Clone, Copy)]
struct LevelStep {
    level: usize,
    /// Δt.
    dt: f64,
    /// Code time since the start of the root step.
    start: f64,
    /// The part of the coarser level's step that has passed: 0 or 1/2.
    within: f64,
}

impl LevelStep {
    /// The two steps of the next finer level.
    fn halves(self) -> [Self; 2] {
        [0.0, 0.5].map(|within| Self {
            level: self.level + 1,
            dt: 0.5 * self.dt,
            start: self.start + self.dt * within,
            within,
        })
    }

    /// The part of the coarser level's step that has passed when so much of this one has; none for the root.
    fn in_coarser_step(self, passed: f64) -> Option<f64> {
        (self.level > 0).then_some(self.within + 0.5 * passed)
    }
}

/// A root step in progress.
struct RootStep<'a, T> {
    state: &'a mut State<T>,
    physics: &'a Physics<T>,
    /// At its start.
    clock: &'a Clock,
    mean_density: f64,
    diagnostics: &'a mut StepDiagnostics,
}

impl<T: Real> RootStep<'_, T> {
    /// One step of a level and the steps of finer levels within.
    fn advance(&mut self, step: LevelStep) -> Result<(), SimError> {
        self.begin(step.level);
        for (passed, operation) in self.physics.parameters.step_plan().operations() {
            match operation {
                Operation::Sweep(direction) => self.sweep(step, passed, direction),
                Operation::Kick => self.kick(step, passed)?,
                Operation::Sources => {
                    let a = self.clock.scale_factor_after(step.start + passed * step.dt);
                    let span = Span { clock: self.clock, a, dt: step.dt };
                    sources::apply(self.state, self.physics, step.level, span, self.diagnostics);
                }
            }
        }
        let sweeps = self.physics.parameters.step_plan().sweeps();
        if sweeps % 2 == 1 {
            self.state.copy_to_next(step.level);
            self.state.swap();
        }
        self.state.refresh(step.level);
        self.state.regrid.count_step(step.level, sweeps);
        if self.has_finer(step.level) {
            self.arrive(step)?;
            for half in step.halves() {
                self.advance(half)?;
            }
            self.correct(step);
        }
        if step.level == 0 || self.has_finer(step.level) {
            particles::sort(self.state, step.level, self.diagnostics)?;
        }
        // after the second half the coarser level synchronises both, after the root step whoever takes it
        if step.level > 0 && step.within == 0.0 { self.synchronise(step) } else { Ok(()) }
    }

    /// Whether no cell has turned out invalid so far.
    fn is_valid(&mut self) -> bool {
        self.diagnostics.collect(self.state);
        !self.state.exchange.communicator.any(self.diagnostics.invalid_cells() > 0)
    }

    fn has_finer(&self, level: usize) -> bool {
        level + 1 < self.state.level_count()
    }

    /// Keeps what finer levels interpolate from, and starts the sums of the fluxes between the two.
    fn begin(&mut self, level: usize) {
        self.diagnostics.count_level_step(self.state, level);
        if self.has_finer(level) {
            self.state.keep_start(level);
        }
    }

    /// Sweeps the level when so much of its step has passed; afterwards its new state is in `fluid.values`.
    fn sweep(&mut self, step: LevelStep, passed: f64, direction: Direction) {
        if self.state.gas.is_none() {
            return;
        }
        let started = self.state.device.now();
        let coarse = step.in_coarser_step(passed);
        // a step starts with ghost zones as they are; each operation of it leaves them behind
        let ghosts = if passed == 0.0 { Ghosts::Fresh } else { Ghosts::Stale };
        let dt = self.sweep_dt(step);
        let span = Span { clock: self.clock, a: self.clock.scale_factor_after(step.start + 0.5 * step.dt), dt };
        sweep_level(self.state, self.physics, step.level, span, direction, coarse, ghosts, self.diagnostics);
        self.state.swap();
        self.state.sum_fluxes(step.level);
        // Δt was chosen before the root step, whose finest level takes many
        let speeds = signal_speeds(self.state, self.physics, step.level);
        let dt_over_dx = dt / self.state.cell_width(step.level);
        self.diagnostics.defer(step.level, Pending::Signals { speeds, dt_over_dx });
        self.diagnostics.record_time(DevicePart::Hydro, started, self.state.device.now());
    }

    /// Δt of one of the sweeps of a step.
    fn sweep_dt(&self, step: LevelStep) -> f64 {
        step.dt / f64::from(self.physics.parameters.step_plan().sweeps())
    }

    /// The kick of the level over its whole step, when so much of it has passed. Its particles drift to this time and on.
    fn kick(&mut self, step: LevelStep, passed: f64) -> Result<(), SimError> {
        self.drift(step, passed);
        if self.physics.parameters.gravity {
            self.solve(step, StepPhase::Mid, passed)?;
            let coarse = step.in_coarser_step(passed);
            kick_level(self.state, self.physics, step.level, step.dt, coarse, self.diagnostics);
        }
        self.drift(step, 1.0 - passed);
        Ok(())
    }

    /// Moves the level's particles over a part of its step.
    fn drift(&mut self, step: LevelStep, part: f64) {
        let of_root = part / f64::from(1u32 << step.level);
        particles::drift(self.state, step.level..step.level + 1, of_root, self.diagnostics);
    }

    /// Makes the level's new state ready for finer levels to interpolate to.
    fn arrive(&mut self, step: LevelStep) -> Result<(), SimError> {
        self.state.copy_to_next(step.level);
        if self.physics.parameters.gravity { self.solve(step, StepPhase::End, 1.0) } else { Ok(()) }
    }

    /// The level takes over what the next finer one did.
    fn correct(&mut self, step: LevelStep) {
        let started = self.state.device.now();
        correct_level(self.state, self.physics, step.level, self.sweep_dt(step), self.diagnostics);
        self.state.refresh(step.level);
        self.diagnostics.record_time(DevicePart::Correction, started, self.state.device.now());
    }

    /// Solves the level's potential when so much of its step has passed, with the mass sheets held; finer levels interpolate
    /// from it as that of `moment`.
    fn solve(&mut self, step: LevelStep, moment: StepPhase, passed: f64) -> Result<(), SimError> {
        let started = self.state.device.now();
        let four_pi_g = self.four_pi_g(step.start + passed * step.dt);
        let coarse = step.in_coarser_step(passed);
        let purpose = if moment == StepPhase::Mid { Purpose::Kick } else { Purpose::Boundary };
        self.state.solve_gravity_on((Solve::Level(step.level), purpose), coarse, four_pi_g, self.mean_density)?;
        if self.has_finer(step.level) {
            self.state.keep_potential(step.level, moment);
        }
        self.diagnostics.record_time(DevicePart::Poisson, started, self.state.device.now());
        Ok(())
    }

    /// Solves `base` and all finer levels, which are at the same time, and the mass sheets between them.
    fn solve_synchronised(&mut self, base: usize, coarse: Option<f64>, time: f64) -> Result<(), SimError> {
        let started = self.state.device.now();
        let levels = (Solve::From(base), Purpose::Boundary);
        self.state.solve_gravity_on(levels, coarse, self.four_pi_g(time), self.mean_density)?;
        self.diagnostics.record_time(DevicePart::Poisson, started, self.state.device.now());
        Ok(())
    }

    fn four_pi_g(&self, time: f64) -> f64 {
        self.clock.four_pi_g(self.clock.scale_factor_after(time), self.physics.parameters.four_pi_g)
    }

    /// The level and all finer ones have arrived at one time: regrids where it is due, and solves their potential and
    /// mass sheets anew.
    fn synchronise(&mut self, step: LevelStep) -> Result<(), SimError> {
        // a tree with unphysical cells stays as it is, so that they are found
        if let Some(level) = refinement::due(self.state, &self.physics.parameters, step.level)
            && self.is_valid()
        {
            let clock = self.clock.interval(step.start + step.dt).end;
            refinement::regrid(self.state, self.physics, (&clock, self.mean_density), level, None, self.diagnostics)?;
        }
        if self.has_finer(step.level) {
            let coarse = step.in_coarser_step(1.0);
            self.solve_synchronised(step.level, coarse, step.start + step.dt)?;
        }
        Ok(())
    }
}

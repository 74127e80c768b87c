//! A root step, retried in smaller parts where it turns out badly.

use crate::clock::{Clock, Interval};
use crate::error::{Fault, SimError};
use crate::parameters::TimeSteps;
use crate::records::Timing;
use crate::state::State;
use crate::state::diagnosis::diagnose;
use crate::step::diagnostics::StepDiagnostics;
use crate::step::individual_step::individual_step;
use crate::step::leaf_sums::{LeafSums, leaf_sums};
use crate::step::physics::Physics;
use crate::step::retry::{Attempt, RetryPolicy};
use crate::step::uniform_step::step;
use comove_kernels::Real;
use std::time::Instant;

/// A root step that has been taken.
pub(super) struct Advance {
    pub(super) diagnostics: StepDiagnostics,
    /// Δt of the root step's parts.
    pub(super) dt: f64,
    /// How often it was retried.
    pub(super) retries: u32,
    pub(super) retry_policy: RetryPolicy,
    /// Over the leaves afterwards.
    pub(super) sums: LeafSums,
}

/// A root step that is to be taken.
pub(super) struct RootStep<'a, T> {
    /// Saved unless the recipe allows no retries.
    pub(super) state: &'a mut State<T>,
    pub(super) physics: &'a Physics<T>,
    pub(super) clock: Clock,
    /// Of the box.
    pub(super) mean_density: f64,
    /// Its number.
    pub(super) number: u64,
    pub(super) retry_policy: RetryPolicy,
}

impl<T: Real> RootStep<'_, T> {
    /// Advances the state over an interval and sums its leaves. A step that turns out badly is retried in two parts, then
    /// four (see [`crate::step::retry`]).
    pub(super) fn advance(mut self, interval: &Interval) -> Result<Advance, SimError> {
        let most = self.physics.parameters.retries as usize;
        let mut attempts = Vec::new();
        let mut timing = Timing::default();
        let mut diagnostics = loop {
            let parts = 1 << attempts.len();
            if parts > 1 {
                self.state.restore()?;
            }
            let diagnostics = self.attempt(interval, parts)?;
            timing.add(&diagnostics.timing);
            let floored = diagnostics.floored_cells() as f64 / diagnostics.swept_cells() as f64;
            let stable = diagnostics.courant_number() <= self.physics.parameters.scheme.max_courant();
            attempts.push(Attempt { acceptable: self.fault(&diagnostics).is_none(), stable, floored });
            if attempts.len() > most || !self.retry_policy.should_retry(&attempts) {
                break diagnostics;
            }
        };
        self.refuse_unphysical(&diagnostics, attempts.len())?;
        diagnostics.timing = timing;
        let recording = Instant::now();
        let sums = leaf_sums(self.state);
        diagnostics.timing.records += recording.elapsed().as_secs_f64();
        let retries = attempts.len() as u32 - 1;
        let dt = interval.dt / f64::from(1u32 << retries);
        Ok(Advance { diagnostics, dt, retries, retry_policy: self.retry_policy.after(&attempts), sums })
    }

    /// Takes a root step in so many equal parts, which end together exactly where the interval ends.
    fn attempt(&mut self, interval: &Interval, parts: u32) -> Result<StepDiagnostics, SimError> {
        let time_steps = self.physics.parameters.time_steps;
        let mut diagnostics = StepDiagnostics::new(time_steps);
        let mut clock = self.clock;
        for part in 1..=parts {
            let mut piece = if parts == 1 { *interval } else { clock.interval(interval.dt / f64::from(parts)) };
            if part == parts {
                piece.end = interval.end;
            }
            let Self { state, physics, mean_density, .. } = self;
            match time_steps {
                TimeSteps::Uniform => step(state, physics, &clock, &piece, *mean_density, &mut diagnostics)?,
                TimeSteps::Individual => {
                    individual_step(state, physics, &clock, piece.dt, *mean_density, &mut diagnostics)?
                }
            }
            clock = piece.end;
        }
        diagnostics.collect(self.state);
        diagnostics.reduce(&self.state.exchange.communicator);
        Ok(diagnostics)
    }

    /// What forbids to accept a step.
    fn fault(&self, diagnostics: &StepDiagnostics) -> Option<Fault> {
        let allowed = (self.physics.parameters.floor_budget * diagnostics.swept_cells() as f64) as u64;
        match (diagnostics.invalid_cells(), diagnostics.floored_cells()) {
            (0, cells) if cells <= allowed => None,
            (0, cells) => Some(Fault::Floored { cells, allowed }),
            (cells, _) => Some(Fault::Invalid { cells }),
        }
    }

    /// # Errors
    /// [`SimError::Unphysical`] if the last of so many attempts at a step cannot be accepted.
    fn refuse_unphysical(&self, diagnostics: &StepDiagnostics, attempts: usize) -> Result<(), SimError> {
        let Some(fault) = self.fault(diagnostics) else { return Ok(()) };
        let redone = diagnostics.redone_cells();
        let tried = match attempts {
            1 => format!("first-order fluxes around {redone} cells"),
            _ => {
                format!("first-order fluxes around {redone} cells and the step taken in {} parts", 1 << (attempts - 1))
            }
        };
        let cell = diagnose(self.state, &self.physics.eos, diagnostics.first_bad().expect("a fault has a first cell"));
        Err(SimError::Unphysical { step: self.number, fault, tried, cell: Box::new(cell) })
    }
}

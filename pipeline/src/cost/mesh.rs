//! What the steps of a run depend on, and what it is like at a place on its way.

use comove_sim::{Coordinates, RunParameters, TimeSteps};

/// What a run's way depends on.
#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    pub root_cells: f64,
    /// Width of a root cell, in Mpc/h where space expands; unknown of a run from a snapshot.
    pub width: Option<f64>,
    /// Whether it starts from an initial condition, as the runs of the reference do.
    pub is_cosmic: bool,
    pub parameters: RunParameters,
}

impl Mesh {
    /// Where a run is when its scale factor or time is `now`: ln a, or the time. Steps have lengths in this.
    pub(crate) fn place(&self, now: f64) -> f64 {
        match self.parameters.coordinates {
            Coordinates::Comoving => now.ln(),
            Coordinates::Plain => now,
        }
    }

    /// The longest root step that expansion allows.
    pub(crate) fn expansion(&self) -> f64 {
        match self.parameters.coordinates {
            Coordinates::Comoving => self.parameters.max_delta_a.ln_1p(),
            Coordinates::Plain => f64::INFINITY,
        }
    }

    /// How wide its root cells are, against those of another.
    pub(super) fn width_over(&self, other: &Self) -> f64 {
        match (self.width, other.width) {
            (Some(width), Some(others)) => width / others,
            _ => (other.root_cells / self.root_cells).cbrt(),
        }
    }

    /// How long its steps may be where the gas limits both, against those of another that has so many refined levels: both
    /// grow with the cells, and uniform steps are those of the finest.
    pub(super) fn steps_over(&self, other: &Self, refined: usize) -> f64 {
        let finest = (1u64 << refined.min(60)) as f64;
        let kind = match (self.parameters.time_steps, other.parameters.time_steps) {
            (TimeSteps::Uniform, TimeSteps::Individual) => 1.0 / finest,
            (TimeSteps::Individual, TimeSteps::Uniform) => finest,
            _ => 1.0,
        };
        kind * self.width_over(other) * self.parameters.courant / other.parameters.courant
    }
}

/// A place on a way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// Fraction of the box that each level covers, the root's first.
    pub fractions: Vec<f64>,
    /// The longest root step that the gas allows; infinite where that is not known.
    pub gas: f64,
}

impl State {
    /// The fraction of the box that a level covers, which it may not have.
    pub(super) fn fraction(&self, level: usize) -> f64 {
        self.fractions.get(level).copied().unwrap_or(0.0)
    }
}

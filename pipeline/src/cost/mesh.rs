//! Mesh, universe and options that decide a run's steps.

use super::model::Model;
use super::theory::Universe;
use comove_sim::{Coordinates, RunParameters, TimeSteps};
use std::sync::OnceLock;

#[derive(Clone, Debug)]
pub(crate) struct Mesh {
    pub root_cells: f64,
    /// `None` in non-comoving coordinates, and where neither an initial condition nor a snapshot tells of it.
    pub universe: Option<Universe>,
    pub parameters: RunParameters,
    model: OnceLock<Option<Box<Model>>>,
}

impl Mesh {
    pub(crate) fn new(root_cells: f64, universe: Option<Universe>, parameters: RunParameters) -> Self {
        let universe = universe.filter(|_| parameters.coordinates == Coordinates::Comoving);
        Self { root_cells, universe, parameters, model: OnceLock::new() }
    }

    /// Width of a root cell in Mpc/h, where space expands.
    pub(super) fn width(&self) -> Option<f64> {
        self.universe.as_ref().map(|universe| universe.box_mpc_h / self.root_cells.cbrt())
    }

    /// The run without records: `None` where theory does not tell of it.
    pub(super) fn model(&self) -> Option<&Model> {
        let model = || {
            let universe = self.universe.as_ref()?;
            Model::new(universe, (self.root_cells, self.width()?), &self.parameters).map(Box::new)
        };
        self.model.get_or_init(model).as_deref()
    }

    /// Place of a run with this scale factor or time: ln a, or the time. Steps have lengths in the same unit.
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

    /// Width of its root cells over that of another mesh's.
    pub(super) fn width_over(&self, other: &Self) -> f64 {
        match (self.width(), other.width()) {
            (Some(width), Some(others)) => width / others,
            _ => (other.root_cells / self.root_cells).cbrt(),
        }
    }

    /// Length of its steps where matter limits both runs, over those of another with so many refined levels: both
    /// grow with the cells, and uniform steps are those of the finest level.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Uniform steps are those of the finest level.
    #[test]
    fn uniform_steps_are_shorter() {
        let [uniform, individual] = [TimeSteps::Uniform, TimeSteps::Individual]
            .map(|time_steps| Mesh::new(4096.0, None, RunParameters { time_steps, ..RunParameters::default() }));
        assert_eq!((uniform.steps_over(&individual, 3), individual.steps_over(&uniform, 3)), (0.125, 8.0));
        assert_eq!(uniform.steps_over(&uniform, 3), 1.0);
    }
}

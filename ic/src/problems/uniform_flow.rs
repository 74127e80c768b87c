//! Gas that moves through a periodic box as a whole and must notice nothing, least of all the borders between
//! refinement levels.

use super::{Gas, Problem, Setup, View, options_of, plain_gas, require};
use comove_sim::Precision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Constant density, velocity and pressure in the unit box.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct UniformFlow {
    /// Root cells along each axis.
    pub root: usize,
    /// Precision of the state.
    pub precision: Precision,
    /// Mass density everywhere.
    pub density: f64,
    /// Velocity everywhere.
    pub velocity: [f64; 3],
    /// Pressure everywhere.
    pub pressure: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// End of the run.
    pub end: f64,
}

impl Default for UniformFlow {
    /// Oblique flow at Mach 1.4, in no symmetry with the mesh.
    fn default() -> Self {
        Self {
            root: 32,
            precision: Precision::Single,
            density: 1.25,
            velocity: [1.0, -0.7, 0.4],
            pressure: 0.6,
            gamma: 5.0 / 3.0,
            end: 0.5,
        }
    }
}

impl Problem for UniformFlow {
    fn name(&self) -> &'static str {
        "uniform_flow"
    }

    fn options(&self) -> Value {
        options_of(self)
    }

    fn setup(&self) -> Setup {
        let parameters = plain_gas(self.precision, self.gamma);
        Setup { box_length: 1.0, root: [self.root; 3], cosmology: None, start: 0.0, end: self.end, parameters }
    }

    fn initial(&self, _x: [f64; 3], _h: f64) -> Gas {
        Gas { density: self.density, velocity: self.velocity, pressure: self.pressure }
    }

    fn exact(&self, x: [f64; 3], _t: f64) -> Option<Gas> {
        Some(self.initial(x, 0.0))
    }

    fn view(&self) -> View {
        View::Diagonal
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        require("density", self.density, self.density > 0.0, "must be positive")?;
        require("pressure", self.pressure, self.pressure > 0.0, "must be positive")
    }
}

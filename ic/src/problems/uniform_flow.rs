//! Gas that moves through a periodic box as a whole and must notice nothing, least of all the borders between
//! refinement levels.

use super::{Gas, Problem};

/// Constant density, velocity and pressure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UniformFlow {
    /// The gas everywhere.
    pub gas: Gas,
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl UniformFlow {
    /// Oblique flow at Mach 1.4, in no symmetry with the mesh.
    pub const STANDARD: Self =
        Self { gas: Gas { density: 1.25, velocity: [1.0, -0.7, 0.4], pressure: 0.6 }, gamma: 5.0 / 3.0 };
}

impl Problem for UniformFlow {
    fn name(&self) -> &'static str {
        "uniform_flow"
    }

    fn gamma(&self) -> f64 {
        self.gamma
    }

    fn end_time(&self) -> f64 {
        0.5
    }

    fn exact(&self, _x: [f64; 3], _t: f64) -> Gas {
        self.gas
    }

    fn expected_order(&self) -> Option<f64> {
        None
    }
}

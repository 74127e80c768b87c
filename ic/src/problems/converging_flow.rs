//! Cold gas streams together from all sides, smoothly, at a high Mach number: what robustness is shown on.
//!
//! The velocity along each axis is M c_s sin 2π(x − x_f + ½), so that gas converges on the planes through the focus x_f
//! and most of all on the focus itself. As long as pressure does nothing (M ≫ 1), gas keeps its velocity (Zel'dovich
//! 1970, A&A 5, 84): what was at q is at x = q + v(q) t, its density is ρ₀/Π(∂xᵢ/∂qᵢ) until streams cross at t = 1/(2πM
//! c_s), and its pressure stays on the adiabat P ∝ ρ^γ.

use super::{Gas, Problem, Setup, View, options_of, plain_gas, require};
use comove_sim::Criterion;
use comove_sim::{Precision, RunParameters};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::f64::consts::TAU;

/// The flow in a unit box of gas of density and sound speed 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConvergingFlow {
    /// Root cells along each axis.
    pub root: usize,
    /// Refinement levels, where gas is denser than twice the mean, four times, …
    pub levels: u8,
    /// Precision of the state.
    pub precision: Precision,
    /// Mach number M of the fastest gas along each axis.
    pub mach: f64,
    /// Where the streams meet.
    pub focus: [f64; 3],
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl Default for ConvergingFlow {
    /// Mach 100, with the focus in no symmetry with the mesh.
    fn default() -> Self {
        Self {
            root: 32,
            levels: 1,
            precision: Precision::Single,
            mach: 100.0,
            focus: [0.47, 0.52, 0.55],
            gamma: 5.0 / 3.0,
        }
    }
}

impl ConvergingFlow {
    /// When the first streams cross.
    pub fn crossing_time(&self) -> f64 {
        1.0 / (TAU * self.mach)
    }

    /// P/ρ^γ, everywhere and until the first shock.
    pub fn adiabat(&self) -> f64 {
        1.0 / self.gamma
    }

    /// Velocity of gas that started at q, a distance from the focus along an axis, and ∂v/∂q.
    fn stream(&self, q: f64) -> (f64, f64) {
        (-self.mach * (TAU * q).sin(), -self.mach * TAU * (TAU * q).cos())
    }

    /// Where the gas at x, a distance from the focus along an axis in [−½, ½], started: the root of q + v(q) t = x by
    /// bisection, because the left side rises with q.
    fn origin(&self, x: f64, t: f64) -> f64 {
        let (mut low, mut high) = (-0.5, 0.5);
        // 60 halvings: to round-off
        for _ in 0..60 {
            let q = 0.5 * (low + high);
            if q + self.stream(q).0 * t < x {
                low = q;
            } else {
                high = q;
            }
        }
        0.5 * (low + high)
    }

    /// The gas at x until streams cross.
    fn gas(&self, x: [f64; 3], t: f64) -> Gas {
        let mut density = 1.0;
        let mut velocity = [0.0; 3];
        for axis in 0..3 {
            let from_focus = x[axis] - self.focus[axis];
            let (v, slope) = self.stream(self.origin(from_focus - from_focus.round(), t));
            velocity[axis] = v;
            density /= 1.0 + slope * t;
        }
        Gas { density, velocity, pressure: self.adiabat() * density.powf(self.gamma) }
    }
}

impl Problem for ConvergingFlow {
    fn name(&self) -> &'static str {
        "converging_flow"
    }

    fn options(&self) -> Value {
        options_of(self)
    }

    /// Half-way to the first crossing.
    fn setup(&self) -> Setup {
        let thresholds = (0..self.levels).map(|level| 2f64.powi(i32::from(level) + 1)).collect();
        let parameters = RunParameters {
            max_level: self.levels,
            refine: vec![Criterion::DensityAbove { thresholds }],
            ..plain_gas(self.precision, self.gamma)
        };
        let end = 0.5 * self.crossing_time();
        Setup { box_length: 1.0, root: [self.root; 3], cosmology: None, start: 0.0, end, parameters }
    }

    fn initial(&self, x: [f64; 3], _h: f64) -> Gas {
        self.gas(x, 0.0)
    }

    /// Until streams cross, up to what pressure does, which is of order 1/M².
    fn exact(&self, x: [f64; 3], t: f64) -> Option<Gas> {
        (t < self.crossing_time()).then(|| self.gas(x, t))
    }

    fn view(&self) -> View {
        View::Line { axis: 0, through: self.focus }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        require("mach", self.mach, self.mach > 0.0, "must be positive")?;
        self.focus
            .into_iter()
            .try_for_each(|x| require("focus", x, (0.0..=1.0).contains(&x), "must lie in the box, [0, 1]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Continuity by central differences, and gas that keeps its velocity along its way.
    #[test]
    fn the_solution_is_a_flow_without_forces() {
        let flow = ConvergingFlow { mach: 3.0, ..ConvergingFlow::default() };
        let (x, t, d) = ([0.31, 0.77, 0.6], flow.setup().end, 1e-5);
        let flux = |axis: usize, by: f64| {
            let mut y = x;
            y[axis] += by;
            let gas = flow.gas(y, t);
            gas.density * gas.velocity[axis]
        };
        let divergence: f64 = (0..3).map(|axis| (flux(axis, d) - flux(axis, -d)) / (2.0 * d)).sum();
        let rate = (flow.gas(x, t + d).density - flow.gas(x, t - d).density) / (2.0 * d);
        // the differences' own error: d² times third derivatives, which are of order (2π)³ M
        assert!((rate + divergence).abs() < 1e-5 * divergence.abs(), "{rate} {divergence}");
        let gas = flow.gas(x, t);
        let back = std::array::from_fn(|axis| x[axis] - gas.velocity[axis] * t);
        for (then, now) in flow.gas(back, 0.0).velocity.iter().zip(gas.velocity) {
            assert!((then - now).abs() < 1e-12);
        }
        let centre = flow.gas(flow.focus, t).density;
        // at half the crossing time cells at the focus have shrunk to half their width along each axis
        assert!((centre - 8.0).abs() < 1e-9, "{centre}");
    }
}

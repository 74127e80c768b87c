//! A diaphragm between two gases at rest breaks: rarefaction, contact and shock (Sod 1978, J. Comput. Phys. 27, 1; paper,
//! section 4.2).

use super::riemann::{Side, Solution};
use super::{Gas, Problem, Setup, View, options_of, plain_gas};
use comove_sim::Criterion;
use comove_sim::FixedGas;
use comove_sim::TimeSteps;
use comove_sim::criterion::Quantity;
use comove_sim::kernels::layout::GROUP;
use comove_sim::{Boundaries, Boundary, Precision, RunParameters};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Two gases that meet at a plane across x. Lengths are in finest cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShockTube {
    /// Root cells along x; across there is one group of 16.
    pub root: usize,
    /// Refinement levels.
    pub levels: u8,
    /// Precision of the state.
    pub precision: Precision,
    /// The gas at x below the interface; its velocity along x.
    pub left: Side,
    /// The gas beyond it.
    pub right: Side,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Where the gases meet, as a fraction of the box.
    pub interface: f64,
    /// End of the run, in crossings of a finest cell at speed 1; by default 110 in a box of 2048 and in proportion.
    pub end: Option<f64>,
}

impl Default for ShockTube {
    fn default() -> Self {
        Self {
            root: 64,
            levels: 5,
            precision: Precision::Single,
            left: Side { density: 1.0, velocity: 0.0, pressure: 1.0 },
            right: Side { density: 0.125, velocity: 0.0, pressure: 0.1 },
            gamma: 5.0 / 3.0,
            interface: 0.5,
            end: None,
        }
    }
}

impl ShockTube {
    /// The two gases beyond the ends, periodic across.
    fn boundary(&self) -> Boundaries {
        let fixed = |side: Side| {
            Boundary::Fixed(FixedGas {
                density: side.density,
                velocity: [side.velocity, 0.0, 0.0],
                pressure: side.pressure,
            })
        };
        let mut boundary = Boundaries::default();
        boundary.faces[0] = fixed(self.left);
        boundary.faces[1] = fixed(self.right);
        boundary
    }

    /// Finest cells along x.
    fn box_length(&self) -> f64 {
        (self.root << self.levels) as f64
    }
}

impl Problem for ShockTube {
    fn name(&self) -> &'static str {
        "shock_tube"
    }

    fn options(&self) -> Value {
        options_of(self)
    }

    fn setup(&self) -> Setup {
        let box_length = self.box_length();
        let parameters = RunParameters {
            boundary: self.boundary(),
            max_level: self.levels,
            refine: vec![Criterion::GradientAbove {
                of: Quantity::Density,
                thresholds: vec![0.03; self.levels.into()],
            }],
            flag_buffer: 8,
            time_steps: TimeSteps::Individual,
            ..plain_gas(self.precision, self.gamma)
        };
        let end = self.end.unwrap_or(110.0 / 2048.0 * box_length);
        Setup { box_length, root: [self.root, GROUP, GROUP], cosmology: None, start: 0.0, end, parameters }
    }

    fn initial(&self, x: [f64; 3], _h: f64) -> Gas {
        let side = if x[0] < self.interface * self.box_length() { self.left } else { self.right };
        gas(side)
    }

    fn exact(&self, x: [f64; 3], t: f64) -> Option<Gas> {
        if t == 0.0 {
            return Some(self.initial(x, 0.0));
        }
        let from_interface = x[0] - self.interface * self.box_length();
        Some(gas(Solution::new(self.left, self.right, self.gamma).at(from_interface / t)))
    }

    fn view(&self) -> View {
        let across = 0.5 * GROUP as f64 / self.root as f64 * self.box_length();
        View::Line { axis: 0, through: [0.0, across, across] }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let inside = self.interface > 0.0 && self.interface < 1.0;
        if !inside {
            return Err(("interface", format!("{} must lie between 0 and 1", self.interface)));
        }
        for (name, side) in [("left", self.left), ("right", self.right)] {
            if !(side.density > 0.0 && side.pressure > 0.0) {
                return Err((name, "density and pressure must be positive".into()));
            }
        }
        if !Solution::exists(self.left, self.right, self.gamma) {
            return Err(("right", "the gases separate and leave a vacuum, which has no exact solution here".into()));
        }
        Ok(())
    }
}

fn gas(side: Side) -> Gas {
    Gas { density: side.density, velocity: [side.velocity, 0.0, 0.0], pressure: side.pressure }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mass, momentum and energy of the tube change by what the ends let through: nothing but pressure at rest.
    #[test]
    fn the_solution_conserves() {
        let tube = ShockTube::default();
        let (n, length) = (20_000, tube.box_length());
        let end = tube.setup().end;
        let totals = |t: f64| {
            let mut sums = [0.0; 3];
            for i in 0..n {
                let gas = tube.exact([(f64::from(i) + 0.5) / f64::from(n) * length, 0.0, 0.0], t).unwrap();
                let v = gas.velocity[0];
                let energy = gas.pressure / (tube.gamma - 1.0) + 0.5 * gas.density * v * v;
                for (sum, value) in sums.iter_mut().zip([gas.density, gas.density * v, energy]) {
                    *sum += value / f64::from(n);
                }
            }
            sums
        };
        let (before, after) = (totals(0.0), totals(end));
        let expected = [before[0], end / length * (1.0 - 0.1), before[2]];
        for (found, expected) in after.iter().zip(expected) {
            // a discontinuity inside a cell is a sampling error of one cell
            assert!((found - expected).abs() < 1.0 / f64::from(n), "{after:?} {expected:?}");
        }
    }
}

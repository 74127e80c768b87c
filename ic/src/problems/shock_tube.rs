//! A diaphragm between two gases at rest breaks: rarefaction, contact and shock (Sod 1978, J. Comput. Phys. 27, 1).

use super::riemann::{Side, Solution};
use super::{Gas, Problem};
use comove_sim::{Boundaries, Boundary};

/// Two gases that meet at x = 1/2.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShockTube {
    /// The gas at x < 1/2; its velocity along x.
    pub left: Side,
    /// The gas at x > 1/2.
    pub right: Side,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// End of the run.
    pub end_time: f64,
}

impl ShockTube {
    /// Sod's tube.
    pub const SOD: Self = Self {
        left: Side { density: 1.0, velocity: 0.0, pressure: 1.0 },
        right: Side { density: 0.125, velocity: 0.0, pressure: 0.1 },
        gamma: 1.4,
        end_time: 0.2,
    };
}

impl Problem for ShockTube {
    fn name(&self) -> &'static str {
        "shock_tube"
    }

    fn gamma(&self) -> f64 {
        self.gamma
    }

    fn boundary(&self) -> Boundaries {
        Boundaries::all(Boundary::Outflow)
    }

    /// One group of cells across.
    fn root_cells(&self, n: usize) -> [usize; 3] {
        [n, 16, 16]
    }

    fn end_time(&self) -> f64 {
        self.end_time
    }

    fn exact(&self, x: [f64; 3], t: f64) -> Gas {
        let from_diaphragm = x[0] - 0.5;
        let side = if t > 0.0 {
            Solution::new(self.left, self.right, self.gamma).at(from_diaphragm / t)
        } else if from_diaphragm < 0.0 {
            self.left
        } else {
            self.right
        };
        Gas { density: side.density, velocity: [side.velocity, 0.0, 0.0], pressure: side.pressure }
    }

    /// Shock and contact are first order.
    fn expected_order(&self) -> Option<f64> {
        Some(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mass, momentum and energy of the tube change by what the ends let through: nothing but pressure at rest.
    #[test]
    fn the_solution_conserves() {
        let tube = ShockTube::SOD;
        let n = 20_000;
        let totals = |t: f64| {
            let mut sums = [0.0; 3];
            for i in 0..n {
                let gas = tube.exact([(f64::from(i) + 0.5) / f64::from(n), 0.0, 0.0], t);
                let v = gas.velocity[0];
                let energy = gas.pressure / (tube.gamma - 1.0) + 0.5 * gas.density * v * v;
                for (sum, value) in sums.iter_mut().zip([gas.density, gas.density * v, energy]) {
                    *sum += value / f64::from(n);
                }
            }
            sums
        };
        let (before, after) = (totals(0.0), totals(0.2));
        let expected = [before[0], 0.2 * (1.0 - 0.1), before[2]];
        for (found, expected) in after.iter().zip(expected) {
            // a discontinuity inside a cell is a sampling error of one cell
            assert!((found - expected).abs() < 1.0 / f64::from(n), "{after:?} {expected:?}");
        }
    }
}

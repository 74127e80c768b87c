//! The exact solution of the Riemann problem of an ideal gas (Toro, *Riemann Solvers and Numerical Methods for Fluid
//! Dynamics*, chapter 4; equation numbers of the third edition).

use serde::{Deserialize, Serialize};

/// Gas on one side of a plane: density, velocity across it, pressure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Side {
    /// Mass density.
    pub density: f64,
    /// Velocity along x.
    #[serde(default)]
    pub velocity: f64,
    /// Pressure.
    pub pressure: f64,
}

impl Side {
    fn sound_speed(&self, gamma: f64) -> f64 {
        (gamma * self.pressure / self.density).sqrt()
    }
}

/// The self-similar solution.
pub(super) struct Solution {
    left: Side,
    right: Side,
    gamma: f64,
    /// Pressure and velocity between the two outer waves.
    star_pressure: f64,
    star_velocity: f64,
}

impl Solution {
    /// Whether the gases stay in touch: moving apart too fast, they leave a vacuum.
    pub(super) fn exists(left: Side, right: Side, gamma: f64) -> bool {
        let escape = 2.0 / (gamma - 1.0) * (left.sound_speed(gamma) + right.sound_speed(gamma));
        right.velocity - left.velocity < escape
    }

    /// Solves for the state between the waves.
    ///
    /// # Panics
    /// If there is none: see [`Solution::exists`].
    pub(super) fn new(left: Side, right: Side, gamma: f64) -> Self {
        assert!(
            Self::exists(left, right, gamma),
            "the gases separate and leave a vacuum, which has no exact solution here"
        );
        let apart = right.velocity - left.velocity;
        // eq. 4.5: f_L(p) + f_R(p) + u_R − u_L = 0, increasing in p; bisection in ln p needs no guess and cannot fail
        let total = |p: f64| velocity_change(&left, gamma, p) + velocity_change(&right, gamma, p) + apart;
        let (mut low, mut high) = (1e-12 * left.pressure.min(right.pressure), left.pressure.max(right.pressure));
        while total(high) < 0.0 {
            high *= 2.0;
        }
        for _ in 0..200 {
            let middle = (low * high).sqrt();
            if middle <= low || middle >= high {
                break;
            }
            if total(middle) < 0.0 { low = middle } else { high = middle }
        }
        let star_pressure = (low * high).sqrt();
        // eq. 4.9
        let change = velocity_change(&right, gamma, star_pressure) - velocity_change(&left, gamma, star_pressure);
        let star_velocity = 0.5 * (left.velocity + right.velocity + change);
        Self { left, right, gamma, star_pressure, star_velocity }
    }

    /// The gas at x/t.
    pub(super) fn at(&self, speed: f64) -> Side {
        if speed < self.star_velocity {
            return self.behind(&self.left, speed);
        }
        let mirror = |side: Side| Side { velocity: -side.velocity, ..side };
        let mirrored =
            Self { left: mirror(self.right), right: mirror(self.left), star_velocity: -self.star_velocity, ..*self };
        mirror(mirrored.behind(&mirrored.left, -speed))
    }

    /// The gas left of the contact.
    fn behind(&self, side: &Side, speed: f64) -> Side {
        let g = self.gamma;
        let sound = side.sound_speed(g);
        let ratio = self.star_pressure / side.pressure;
        let star = |density| Side { density, velocity: self.star_velocity, pressure: self.star_pressure };
        if ratio > 1.0 {
            // shock: eqs. 4.50, 4.52
            let shock = side.velocity - sound * ((g + 1.0) / (2.0 * g) * ratio + (g - 1.0) / (2.0 * g)).sqrt();
            let jump = (g - 1.0) / (g + 1.0);
            return if speed < shock { *side } else { star(side.density * (ratio + jump) / (jump * ratio + 1.0)) };
        }
        // rarefaction: eqs. 4.53–4.56
        let head = side.velocity - sound;
        let tail = self.star_velocity - sound * ratio.powf((g - 1.0) / (2.0 * g));
        if speed < head {
            *side
        } else if speed > tail {
            star(side.density * ratio.powf(1.0 / g))
        } else {
            let fan = 2.0 / (g + 1.0) + (g - 1.0) / ((g + 1.0) * sound) * (side.velocity - speed);
            Side {
                density: side.density * fan.powf(2.0 / (g - 1.0)),
                velocity: 2.0 / (g + 1.0) * (sound + (g - 1.0) / 2.0 * side.velocity + speed),
                pressure: side.pressure * fan.powf(2.0 * g / (g - 1.0)),
            }
        }
    }
}

/// The change of velocity across the wave that takes a side to pressure p: eqs. 4.6, 4.7.
fn velocity_change(side: &Side, gamma: f64, p: f64) -> f64 {
    if p > side.pressure {
        let a = 2.0 / ((gamma + 1.0) * side.density);
        let b = (gamma - 1.0) / (gamma + 1.0) * side.pressure;
        (p - side.pressure) * (a / (p + b)).sqrt()
    } else {
        let power = (gamma - 1.0) / (2.0 * gamma);
        2.0 * side.sound_speed(gamma) / (gamma - 1.0) * ((p / side.pressure).powf(power) - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Star states of Toro's tests 1, 2 and 3 (table 4.2), to the digits printed there.
    #[test]
    fn star_states_of_toro() {
        let side = |density, velocity, pressure| Side { density, velocity, pressure };
        let cases = [
            (side(1.0, 0.0, 1.0), side(0.125, 0.0, 0.1), ["0.30313", "0.92745", "0.42632", "0.26557"]),
            (side(1.0, -2.0, 0.4), side(1.0, 2.0, 0.4), ["0.00189", "0.00000", "0.02185", "0.02185"]),
            (side(1.0, 0.0, 1000.0), side(1.0, 0.0, 0.01), ["460.894", "19.5975", "0.57506", "5.99924"]),
        ];
        for (left, right, printed) in cases {
            let solution = Solution::new(left, right, 1.4);
            let beside = |offset: f64| solution.at(solution.star_velocity + offset).density;
            let found = [solution.star_pressure, solution.star_velocity, beside(-1e-6), beside(1e-6)];
            for (found, printed) in found.into_iter().zip(printed) {
                let decimals = printed.len() - printed.find('.').unwrap() - 1;
                let expected: f64 = printed.parse().unwrap();
                assert!((found - expected).abs() < 0.51 * 0.1f64.powi(decimals as i32), "{found} {printed}");
            }
        }
    }

    /// Exchanging the sides mirrors the solution.
    #[test]
    fn mirrored_sides_mirror_the_solution() {
        let (left, right) =
            (Side { density: 1.0, velocity: 0.3, pressure: 1.0 }, Side { density: 0.2, velocity: -0.4, pressure: 0.3 });
        let mirror = |side: Side| Side { velocity: -side.velocity, ..side };
        let (one, other) = (Solution::new(left, right, 1.4), Solution::new(mirror(right), mirror(left), 1.4));
        for i in -30..30 {
            let speed = 0.1 * f64::from(i) + 0.05;
            let (a, b) = (one.at(speed), mirror(other.at(-speed)));
            assert!((a.density - b.density).abs() < 1e-13 && (a.velocity - b.velocity).abs() < 1e-13);
        }
    }
}

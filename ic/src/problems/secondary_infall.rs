//! The similarity solution of gas that falls onto an overdensity in an Einstein–de Sitter universe (Bertschinger 1985,
//! ApJS 58, 39, section III).
//!
//! The only length is the turnaround radius r_ta ∝ t^(8/9). With λ = r/r_ta and the background density
//! ρ_b = 1/(6πGt²): v = (r_ta/t) V(λ), ρ = ρ_b D(λ), P = ρ_b (r_ta/t)² Π(λ), m = (4π/3) ρ_b r_ta³ M(λ).
//!
//! Monatomic gas, γ = 5/3, the one of comoving coordinates. Outside the shock at λ_s cold shells follow cycloids. Behind it, with U = V/λ, W = U − 8/9, C = Π/(D λ²) and ' for
//! d/dlnλ, the equations are
//!
//! - continuity: W D'/D + U' + 3U = 2,
//! - momentum: W (U + U') − U/9 + C Π'/Π + (2/9) M/λ³ = 0,
//! - entropy: W (Π'/Π − γ D'/D) = 20/9 − 2γ,
//! - mass: M = −(9/2) D W λ³, an integral of continuity and M' = 3λ³ D.
//!
//! At the centre gas is at rest and in equilibrium: U = 0, D ∝ λ^(−9/4), Π ∝ λ^(−5/2), C/D = 16/45. Deviations from it
//! change as λ and as λ^(−3/2); λ_s is where the second is absent, so that no mass sits at the centre and none leaves it.

use crate::ode::{Curve, solve};
use std::f64::consts::PI;

const GAMMA: f64 = 5.0 / 3.0;
/// Similarity speed of a fixed radius: −dlnλ/dlnt.
const DRIFT: f64 = 8.0 / 9.0;
/// ln of the innermost λ over that of the shock; inside, the central power laws continue. The mode λ^(−3/2), excited at
/// round-off, has grown to 10⁻¹⁰ there, and what is left of the other to 10⁻³.
const DEPTH: f64 = -9.0;
/// Points of the curve: cubic interpolation between them is good to 10⁻¹⁰.
const INTERVALS: usize = 2000;
const TOLERANCE: f64 = 1e-13;

/// The gas at a point of the solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Infall {
    /// D = ρ/ρ_b.
    pub(super) density: f64,
    /// V = v t/r_ta, proper and including the expansion.
    pub(super) velocity: f64,
    /// Π = P t²/(ρ_b r_ta²).
    pub(super) pressure: f64,
    /// M, in (4π/3) ρ_b r_ta³.
    pub(super) mass: f64,
}

/// The solution.
#[derive(Clone, Debug)]
pub(super) struct SecondaryInfall {
    shock: f64,
    /// U, lnD and lnΠ behind the shock against lnλ.
    curve: Curve<3>,
}

impl SecondaryInfall {
    /// Finds the shock and integrates from there to the centre.
    pub(super) fn new() -> Self {
        // phases of the cycloid at the shock, λ_s = 0.535 and 0.195: too far out the gas moves outward at the centre,
        // too far in inward
        let (mut low, mut high) = (1.3 * PI, 1.6 * PI);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if central_velocity(middle) > 0.0 { low = middle } else { high = middle }
        }
        let ahead = Shell::at_phase(0.5 * (low + high));
        let x = ahead.lambda.ln();
        let curve = Curve::solve(&slope, x, behind(&ahead), x + DEPTH, INTERVALS, TOLERANCE);
        Self { shock: ahead.lambda, curve }
    }

    /// λ_s.
    pub(super) fn shock(&self) -> f64 {
        self.shock
    }

    /// The gas at λ > 0.
    pub(super) fn at(&self, lambda: f64) -> Infall {
        if lambda > self.shock {
            return Shell::at(lambda).gas();
        }
        let innermost = self.shock * DEPTH.exp();
        let [u, log_density, log_pressure] = self.curve.at(lambda.max(innermost).ln());
        let inside = (lambda / innermost).min(1.0);
        let u = u * inside;
        let density = log_density.exp() * inside.powf(-2.25);
        let pressure = log_pressure.exp() * inside.powf(-2.5);
        Infall { density, velocity: u * lambda, pressure, mass: mass(lambda, density, u) }
    }
}

/// M = −(9/2) D W λ³.
fn mass(lambda: f64, density: f64, u: f64) -> f64 {
    4.5 * density * (DRIFT - u) * lambda.powi(3)
}

/// A cold shell that follows its cycloid: r = r_max sin²(θ/2), t = t_max (θ − sinθ)/π.
#[derive(Clone, Copy, Debug)]
struct Shell {
    lambda: f64,
    /// U = V/λ.
    u: f64,
    /// t/t_max.
    age: f64,
}

impl Shell {
    /// A shell at phase θ in (0, 2π); θ = π at turnaround.
    fn at_phase(theta: f64) -> Self {
        // θ − sinθ by its series where the difference would lose digits
        let lag = if theta < 0.1 {
            theta.powi(3) / 6.0
                * (1.0 - theta.powi(2) / 20.0 * (1.0 - theta.powi(2) / 42.0 * (1.0 - theta.powi(2) / 72.0)))
        } else {
            theta - theta.sin()
        };
        let age = lag / PI;
        let half = (0.5 * theta).sin().powi(2);
        Self { lambda: half * age.powf(-DRIFT), u: theta.sin() * lag / (4.0 * half * half), age }
    }

    /// The shell at λ: λ falls with θ.
    fn at(lambda: f64) -> Self {
        let (mut low, mut high) = (0.0, 2.0 * PI);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if Self::at_phase(middle).lambda > lambda { low = middle } else { high = middle }
        }
        Self { lambda, ..Self::at_phase(0.5 * (low + high)) }
    }

    /// m does not change, so M = (3π/4)² (t/t_max)^(−2/3).
    fn gas(&self) -> Infall {
        let mass = (0.75 * PI).powi(2) * self.age.powf(-2.0 / 3.0);
        let density = mass / (4.5 * (DRIFT - self.u) * self.lambda.powi(3));
        Infall { density, velocity: self.u * self.lambda, pressure: 0.0, mass }
    }
}

/// U, lnD and lnΠ behind a strong shock into a shell, at rest at λ_s: the speed towards it falls by (γ−1)/(γ+1).
fn behind(ahead: &Shell) -> [f64; 3] {
    let density = ahead.gas().density;
    let approach = ahead.u - DRIFT;
    let jump = (GAMMA - 1.0) / (GAMMA + 1.0);
    let pressure = 2.0 / (GAMMA + 1.0) * density * (approach * ahead.lambda).powi(2);
    [DRIFT + jump * approach, (density / jump).ln(), pressure.ln()]
}

/// d/dlnλ of U, lnD and lnΠ.
fn slope(x: f64, [u, log_density, log_pressure]: &[f64; 3]) -> [f64; 3] {
    let w = u - DRIFT;
    let density = log_density.exp();
    let c = (log_pressure - log_density - 2.0 * x).exp();
    let entropy = 20.0 / 9.0 - 2.0 * GAMMA;
    // D'/D and Π'/Π from continuity and entropy into momentum
    let rest = w * (u / 9.0 - w * u + density * w) + c * (GAMMA * (3.0 * u - 2.0) - entropy);
    let u_slope = rest / (w * w - GAMMA * c);
    let density_slope = -(u_slope + 3.0 * u - 2.0) / w;
    [u_slope, density_slope, GAMMA * density_slope + entropy / w]
}

/// U far inside a shock that stands at phase θ of the shells ahead of it, or where it has left its central value for
/// good: its sign is that of the mode λ^(−3/2).
fn central_velocity(theta: f64) -> f64 {
    let ahead = Shell::at_phase(theta);
    let spacing = 0.05;
    let mut x = ahead.lambda.ln();
    let mut y = behind(&ahead);
    // twice the depth of the curve, so that the mode has grown as far again as it may have on the curve
    for _ in 0..(-2.0 * DEPTH / spacing) as usize {
        // well before U = 8/9, where the equations are singular, and beyond any U from which the gas comes to rest
        if y[0] > 0.7 || y[0] < -5.0 {
            break;
        }
        y = solve(&slope, x, y, x - spacing, TOLERANCE);
        x -= spacing;
    }
    y[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// λ_s = 0.339 for γ = 5/3 (Bertschinger 1985, section III); 0.338976 here.
    #[test]
    fn the_shock_stands_where_bertschinger_found_it() {
        let infall = SecondaryInfall::new();
        assert!((infall.shock() - 0.338_976).abs() < 1e-6, "{}", infall.shock());
    }

    /// The shock conditions across λ_s: mass flux, momentum flux, and no energy lost, in the frame of the shock.
    #[test]
    fn fluxes_through_the_shock_agree() {
        let infall = SecondaryInfall::new();
        let shock = infall.shock();
        let [ahead, behind] = [shock * (1.0 + 1e-12), shock].map(|lambda| {
            let gas = infall.at(lambda);
            let w = gas.velocity - DRIFT * lambda;
            let specific = 0.5 * w * w + GAMMA / (GAMMA - 1.0) * gas.pressure / gas.density;
            [gas.density * w, gas.density * w * w + gas.pressure, specific, gas.mass]
        });
        for (ahead, behind) in ahead.into_iter().zip(behind) {
            assert!((ahead / behind - 1.0).abs() < 1e-9, "{ahead} {behind}");
        }
    }

    /// M(λ₂) − M(λ₁) = ∫ 3λ² D dλ, behind the shock and ahead of it: the integral of mass, which gave M, against the
    /// density by Simpson's rule in lnλ.
    #[test]
    fn mass_is_the_integral_of_density() {
        let infall = SecondaryInfall::new();
        let shock = infall.shock();
        for (from, to) in [(1e-5 * shock, 0.1 * shock), (0.1 * shock, shock), (shock * (1.0 + 1e-13), 1.0), (1.0, 4.0)]
        {
            let n = 20_000;
            let h = (to / from).ln() / f64::from(n);
            let weight = |i: i32| {
                if i == 0 || i == n {
                    1.0
                } else if i % 2 == 1 {
                    4.0
                } else {
                    2.0
                }
            };
            let term = |i: i32| {
                let lambda = (from * (h * f64::from(i)).exp()).clamp(from, to);
                weight(i) * 3.0 * lambda.powi(3) * infall.at(lambda).density
            };
            let mass = (0..=n).map(term).sum::<f64>() * h / 3.0;
            let expected = infall.at(to).mass - infall.at(from).mass;
            assert!((mass / expected - 1.0).abs() < 1e-6, "{from} to {to}: {mass} {expected}");
        }
    }

    /// Equilibrium at the centre: gas at rest with D ∝ λ^(−9/4), Π ∝ λ^(−5/2) and C/D = 16/45.
    #[test]
    fn the_centre_is_in_equilibrium() {
        let infall = SecondaryInfall::new();
        for fraction in [3e-3, 3e-4, 1e-6] {
            let lambda = fraction * infall.shock();
            let (gas, further) = (infall.at(lambda), infall.at(1.01 * lambda));
            let slope = |a: f64, b: f64| (b / a).ln() / 1.01f64.ln();
            // what is left of the decaying mode is of order λ/λ_s
            let tolerance = 3.0 * fraction + 1e-3;
            assert!((gas.velocity / lambda).abs() < tolerance, "{fraction}: {gas:?}");
            assert!((slope(gas.density, further.density) + 2.25).abs() < tolerance, "{fraction}");
            assert!((slope(gas.pressure, further.pressure) + 2.5).abs() < tolerance, "{fraction}");
            let ratio = gas.pressure / (gas.density * lambda).powi(2);
            assert!((ratio * 45.0 / 16.0 - 1.0).abs() < tolerance, "{fraction}: {ratio}");
        }
    }

    /// At turnaround V = 0 and M = (3π/4)²; far out the gas follows the background.
    #[test]
    fn shells_turn_around_at_one() {
        let infall = SecondaryInfall::new();
        let gas = infall.at(1.0);
        assert!(gas.velocity.abs() < 1e-12 && (gas.mass - (0.75 * PI).powi(2)).abs() < 1e-12, "{gas:?}");
        let far = infall.at(1e3);
        // a mass excess Δ slows shells by Δ/3 and compresses them by Δ, Δ ∝ λ^(−9/4)... all below 10⁻³ there
        assert!((far.density - 1.0).abs() < 1e-3 && (far.velocity / 1e3 - 2.0 / 3.0).abs() < 1e-3, "{far:?}");
    }
}

//! The similarity solution of gas that falls onto an overdensity in an Einstein–de Sitter universe (Bertschinger 1985,
//! ApJS 58, 39, section III), and what a periodic box changes in it.
//!
//! The only length is the turnaround radius r_ta ∝ t^(8/9). With λ = r/r_ta and the background density
//! ρ_b = 1/(6πGt²): v = (r_ta/t) V(λ), ρ = ρ_b D(λ), P = ρ_b (r_ta/t)² Π(λ), m = (4π/3) ρ_b r_ta³ M(λ).
//!
//! Monatomic gas, γ = 5/3, the one of comoving coordinates. Outside the shock at λ_s cold shells follow cycloids
//! (`infalling_shell.rs`). Behind it, with U = V/λ, W = U − 8/9, C = Π/(D λ²) and ' for d/dlnλ, the equations are
//!
//! - continuity: W D'/D + U' + 3U = 2,
//! - momentum: W (U + U') − U/9 + C Π'/Π + (2/9) M/λ³ = 0,
//! - entropy: W (Π'/Π − γ D'/D) = 20/9 − 2γ,
//! - mass: M = −(9/2) D W λ³, an integral of continuity and M' = 3λ³ D.
//!
//! At the centre gas is at rest and in equilibrium: U = 0, D ∝ λ^(−9/4), Π ∝ λ^(−5/2), C/D = 16/45. Deviations from it
//! change as λ and as λ^(−3/2); λ_s is where the second is absent, so that no mass sits at the centre and none leaves it.
//!
//! A periodic box holds its mean excess ε back, and η = ε/Δ_ta ∝ t^(2/3) enters as a second number. The solution is
//! carried to first order in it, U + ηu, lnD + ηd, lnΠ + ηp and a shock at λ_s (1 + ηs), with λ still in turnaround radii
//! of infinite space. Each equation above gains (2/3) of the deviation of what it evolves:
//!
//! - continuity: (2/3) d + W d' + u D'/D + u' + 3u = 0,
//! - momentum: (2/3) u + W (u + u') + u (U + U') − u/9 + C (p' + (p − d) Π'/Π) − ½ D (W d + u) = 0,
//! - entropy: (2/3) (p − γ d) + W (p' − γ d') + u (Π'/Π − γ D'/D) = 0,
//! - mass: its relative deviation is ½ (d + u/W).
//!
//! s again is where nothing grows towards the centre.

use super::infall::Infall;
use super::infalling_shell::Shell;
use crate::ode::{Curve, solve};
use std::f64::consts::PI;

const GAMMA: f64 = 5.0 / 3.0;
/// Similarity speed of a fixed radius: −dlnλ/dlnt.
const DRIFT: f64 = 8.0 / 9.0;
/// dlnη/dlnt.
const GROWTH: f64 = 2.0 / 3.0;
/// ln of the innermost λ over that of the shock; inside, the central power laws continue. The mode λ^(−3/2), excited at
/// round-off, has grown to 10⁻¹⁰ there, and what is left of the other to 10⁻³.
const DEPTH: f64 = -9.0;
/// Points of the curve: cubic interpolation between them is good to 10⁻¹⁰.
const INTERVALS: usize = 2000;
const TOLERANCE: f64 = 1e-13;

/// The solution.
#[derive(Clone, Debug)]
pub(super) struct SecondaryInfall {
    shock: f64,
    /// U, lnD and lnΠ behind the shock against lnλ.
    curve: Curve<3>,
    /// s.
    shift: f64,
    /// u, d and p behind the shock against lnλ.
    deviation: Curve<3>,
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
        let ahead = Shell::at_phase(0.5 * (low + high), 0.0);
        let x = ahead.lambda.ln();
        let curve = Curve::solve(&slope, x, behind(&ahead, DRIFT), x + DEPTH, INTERVALS, TOLERANCE);
        let deviation = |shift: f64| {
            let slope = |x: f64, y: &[f64; 3]| deviation_slope(x, &curve.at(x), y);
            Curve::solve(&slope, x, deviation_behind(ahead.lambda, shift), x + DEPTH, INTERVALS, TOLERANCE)
        };
        // u at the innermost point is linear in s
        let [none, one] = [0.0, 1.0].map(|shift| deviation(shift).at(x + DEPTH)[0]);
        let shift = none / (none - one);
        let deviation = deviation(shift);
        Self { shock: ahead.lambda, curve, shift, deviation }
    }

    /// Where the shock stands: λ_s (1 + ηs).
    ///
    /// * `held_back`: η, 0 in infinite space.
    pub(super) fn shock(&self, held_back: f64) -> f64 {
        self.shock * (1.0 + held_back * self.shift)
    }

    /// The gas at λ > 0.
    ///
    /// * `held_back`: η, 0 in infinite space; what is left out behind the shock is of order η².
    pub(super) fn at(&self, lambda: f64, held_back: f64) -> Infall {
        if lambda > self.shock(held_back) {
            return Shell::at(lambda, held_back).gas();
        }
        // each λ over the shock's, so that no curve is asked for beyond its shock
        let strained = lambda * self.shock / self.shock(held_back);
        let innermost = self.shock * DEPTH.exp();
        let x = strained.max(innermost).ln();
        let base = self.curve.at(x);
        let (along, deviation) = (slope(x, &base), self.deviation.at(x));
        let [u, log_density, log_pressure] =
            std::array::from_fn(|n| base[n] + held_back * (deviation[n] + self.shift * along[n]));
        let inside = (strained / innermost).min(1.0);
        let w = base[0] - DRIFT;
        let mass = -4.5 * w * (base[1] + 3.0 * x).exp() * inside.powf(0.75);
        // M'/M = −2/(3W)
        let more = 0.5 * (deviation[1] + deviation[0] / w) - self.shift * 2.0 / (3.0 * w);
        Infall {
            density: log_density.exp() * inside.powf(-2.25),
            velocity: u * inside * lambda,
            pressure: log_pressure.exp() * inside.powf(-2.5),
            mass: mass * (1.0 + held_back * more),
        }
    }
}

/// U, lnD and lnΠ behind a strong shock into a shell: the gas's speed towards it falls by (γ−1)/(γ+1).
///
/// * `speed`: dlnr/dlnt of the shock.
fn behind(ahead: &Shell, speed: f64) -> [f64; 3] {
    let density = ahead.gas().density;
    let approach = ahead.u - speed;
    let jump = (GAMMA - 1.0) / (GAMMA + 1.0);
    let pressure = 2.0 / (GAMMA + 1.0) * density * (approach * ahead.lambda).powi(2);
    [speed + jump * approach, (density / jump).ln(), pressure.ln()]
}

/// u, d and p at λ_s, behind a shock at λ_s (1 + ηs) that moves with it: the derivative over η of what `behind` gives
/// there, by a central difference good to 10⁻⁸, less s times the slope of the solution.
fn deviation_behind(shock: f64, shift: f64) -> [f64; 3] {
    let eta = 1e-4;
    let [low, middle, high] = [-eta, 0.0, eta].map(|eta| {
        let ahead = Shell::at(shock * (1.0 + eta * shift), eta);
        behind(&ahead, DRIFT + GROWTH * eta * shift)
    });
    let along = slope(shock.ln(), &middle);
    std::array::from_fn(|n| (high[n] - low[n]) / (2.0 * eta) - shift * along[n])
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

/// d/dlnλ of u, d and p, about U, lnD and lnΠ.
fn deviation_slope(x: f64, base: &[f64; 3], [u, d, p]: &[f64; 3]) -> [f64; 3] {
    let [velocity, log_density, log_pressure] = *base;
    let [velocity_slope, density_slope, pressure_slope] = slope(x, base);
    let w = velocity - DRIFT;
    let density = log_density.exp();
    let c = (log_pressure - log_density - 2.0 * x).exp();
    // p' without its part −γ u'/W, from continuity and entropy, into momentum
    let p_rest = -(GROWTH * p + u * pressure_slope + 3.0 * GAMMA * u) / w;
    let forces = u * (GROWTH + w + velocity + velocity_slope - 1.0 / 9.0) + c * ((p - d) * pressure_slope + p_rest)
        - 0.5 * density * (w * d + u);
    let u_slope = -w * forces / (w * w - GAMMA * c);
    let d_slope = -(GROWTH * d + u * density_slope + u_slope + 3.0 * u) / w;
    [u_slope, d_slope, p_rest - GAMMA * u_slope / w]
}

/// U far inside a shock that stands at phase θ of the shells ahead of it, or where it has left its central value for
/// good: its sign is that of the mode λ^(−3/2).
fn central_velocity(theta: f64) -> f64 {
    let ahead = Shell::at_phase(theta, 0.0);
    let spacing = 0.05;
    let mut x = ahead.lambda.ln();
    let mut y = behind(&ahead, DRIFT);
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
        assert!((infall.shock(0.0) - 0.338_976).abs() < 1e-6, "{}", infall.shock(0.0));
    }

    /// The shock conditions across λ_s: mass flux, momentum flux, and no energy lost, in the frame of the shock.
    #[test]
    fn fluxes_through_the_shock_agree() {
        let infall = SecondaryInfall::new();
        let shock = infall.shock(0.0);
        let [ahead, behind] = [shock * (1.0 + 1e-12), shock].map(|lambda| {
            let gas = infall.at(lambda, 0.0);
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
        let shock = infall.shock(0.0);
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
                weight(i) * 3.0 * lambda.powi(3) * infall.at(lambda, 0.0).density
            };
            let mass = (0..=n).map(term).sum::<f64>() * h / 3.0;
            let expected = infall.at(to, 0.0).mass - infall.at(from, 0.0).mass;
            assert!((mass / expected - 1.0).abs() < 1e-6, "{from} to {to}: {mass} {expected}");
        }
    }

    /// Equilibrium at the centre: gas at rest with D ∝ λ^(−9/4), Π ∝ λ^(−5/2) and C/D = 16/45.
    #[test]
    fn the_centre_is_in_equilibrium() {
        let infall = SecondaryInfall::new();
        for fraction in [3e-3, 3e-4, 1e-6] {
            let lambda = fraction * infall.shock(0.0);
            let (gas, further) = (infall.at(lambda, 0.0), infall.at(1.01 * lambda, 0.0));
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

    /// What the box changes of first order: the shock by s = −0.0776, its conditions to second order only, and nothing
    /// at the centre, whose gas fell in when η was small: deviations fall as the mass's own power, λ^(3/4), there.
    #[test]
    fn a_box_changes_the_shock_and_not_the_centre() {
        let infall = SecondaryInfall::new();
        let eta = 1e-3;
        assert!((infall.shock(eta) / infall.shock(0.0) - 1.0 + 0.0776 * eta).abs() < 1e-4 * eta, "{}", infall.shift);
        let shock = infall.shock(eta);
        let speed = DRIFT + GROWTH * infall.shift * eta;
        let [ahead, behind] = [shock * (1.0 + 1e-12), shock].map(|lambda| {
            let gas = infall.at(lambda, eta);
            let w = gas.velocity - speed * lambda;
            let specific = 0.5 * w * w + GAMMA / (GAMMA - 1.0) * gas.pressure / gas.density;
            [gas.density * w, gas.density * w * w + gas.pressure, specific, gas.mass]
        });
        for (ahead, behind) in ahead.into_iter().zip(behind) {
            assert!((ahead / behind - 1.0).abs() < 10.0 * eta * eta, "{ahead} {behind}");
        }
        for fraction in [1e-2, 1e-3] {
            let lambda = fraction * infall.shock(0.0);
            let (with, without) = (infall.at(lambda, eta), infall.at(lambda, 0.0));
            for change in [with.density / without.density, with.pressure / without.pressure, with.mass / without.mass] {
                assert!((change - 1.0).abs() < 8.0 * eta * fraction.powf(0.75), "{fraction}: {change}");
            }
        }
    }
}

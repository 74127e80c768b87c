//! The similarity solution of a strong point explosion in a uniform gas (Sedov 1959, *Similarity and Dimensional
//! Methods in Mechanics*; Landau & Lifshitz, *Fluid Mechanics*, §106).
//!
//! The shock is at r_s = β (E t²/ρ₁)^(1/5) and moves at v_s = (2/5) r_s/t. Behind it, with ξ = r/r_s,
//! v = v_s ξ V(ξ), ρ = ρ₁ D(ξ), P = ρ₁ v_s² Π(ξ) and C = Π/(D ξ²), the Euler equations are, ' being d/dlnξ,
//!
//! - continuity: (V − 1) D'/D + V' + 3V = 0,
//! - momentum: (V − 1)(V + V') − (3/2) V + C Π'/Π = 0,
//! - entropy: (V − 1)(Π'/Π − γ D'/D) = 3.
//!
//! The energy inside a sphere of constant ξ does not change, which makes C a function of V alone:
//! C = ½ (γ − 1) V² (1 − V)/(γV − 1). With it the equations are stable from the shock to the centre; without it V
//! leaves its central value 1/γ as ξ⁻³.

use crate::ode::Curve;
use std::f64::consts::PI;

/// Where the curve ends: the pressure no longer varies there, and the density is below 10⁻¹⁷.
const INNERMOST: f64 = 1e-4;
/// Points of the curve: cubic interpolation between them is good to 10⁻¹⁰.
const INTERVALS: usize = 4000;
const TOLERANCE: f64 = 1e-13;

/// The flow at a point behind the shock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Flow {
    /// ρ/ρ₁.
    pub(super) density: f64,
    /// Radial velocity over that of the shock.
    pub(super) velocity: f64,
    /// P/(ρ₁ v_s²).
    pub(super) pressure: f64,
}

/// The solution for one ratio of specific heats.
#[derive(Clone, Debug)]
pub(super) struct BlastWave {
    gamma: f64,
    /// ln(γV − 1), lnD, and the energy between ξ and the shock over ρ₁ v_s² r_s³, against lnξ.
    curve: Curve<3>,
    beta: f64,
}

impl BlastWave {
    /// Integrates from the shock to the centre.
    pub(super) fn new(gamma: f64) -> Self {
        // strong shock: v = 2/(γ+1) v_s, ρ = (γ+1)/(γ−1) ρ₁ (paper, eqs. of section 4.3)
        let at_shock = [((gamma - 1.0) / (gamma + 1.0)).ln(), ((gamma + 1.0) / (gamma - 1.0)).ln(), 0.0];
        let slope = |x: f64, y: &[f64; 3]| slope(gamma, x, y);
        let curve = Curve::solve(&slope, 0.0, at_shock, INNERMOST.ln(), INTERVALS, TOLERANCE);
        let mut wave = Self { gamma, curve, beta: 0.0 };
        let centre = 4.0 * PI / 3.0 * INNERMOST.powi(3) * wave.at(INNERMOST).pressure / (gamma - 1.0);
        let energy = wave.curve.end()[2] + centre;
        // E = ρ₁ v_s² r_s³ · energy = (4/25) β⁵ E · energy
        wave.beta = (25.0 / (4.0 * energy)).powf(0.2);
        wave
    }

    /// β of r_s = β (E t²/ρ₁)^(1/5).
    pub(super) fn beta(&self) -> f64 {
        self.beta
    }

    /// The flow at ξ = r/r_s in [0, 1].
    pub(super) fn at(&self, xi: f64) -> Flow {
        let [log_excess, log_density, _] = self.curve.at(xi.max(INNERMOST).ln());
        let excess = log_excess.exp();
        let v = (1.0 + excess) / self.gamma;
        // D falls as ξ^(3/(γ−1)) at the centre
        let density = log_density.exp() * (xi / INNERMOST).min(1.0).powf(3.0 / (self.gamma - 1.0));
        let pressure = scaled_sound(self.gamma, v) / excess * log_density.exp() * xi.max(INNERMOST).powi(2);
        Flow { density, velocity: xi * v, pressure }
    }
}

/// C (γV − 1), from V.
fn scaled_sound(gamma: f64, v: f64) -> f64 {
    0.5 * (gamma - 1.0) * v * v * (1.0 - v)
}

/// d/dlnξ of ln(γV − 1), lnD and the energy outside.
fn slope(gamma: f64, x: f64, [log_excess, log_density, _]: &[f64; 3]) -> [f64; 3] {
    let excess = log_excess.exp();
    let v = (1.0 + excess) / gamma;
    let c = scaled_sound(gamma, v);
    // entropy into momentum: V' [(V − 1)² − γC] = V (V − 1) (5/2 − V) + 3C (γV − 1), both sides times γV − 1
    let v_slope_over_excess = (v * (v - 1.0) * (2.5 - v) + 3.0 * c) / ((v - 1.0) * (v - 1.0) * excess - gamma * c);
    let density_slope = (v_slope_over_excess * excess + 3.0 * v) / (1.0 - v);
    // 4π ξ³ (½ D ξ² V² + Π/(γ−1)), lost towards the shock
    let energy = 4.0 * PI * (log_density + 5.0 * x).exp() * (0.5 * v * v + c / (excess * (gamma - 1.0)));
    [gamma * v_slope_over_excess, density_slope, -energy]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ξ, D, V and Π/Π_s for a given V in Landau & Lifshitz' closed form (§106, eqs. 106.11 to 106.13).
    fn closed_form(gamma: f64, v: f64) -> (f64, Flow) {
        let g = gamma;
        let n1 = (13.0 * g * g - 7.0 * g + 12.0) / ((3.0 * g - 1.0) * (2.0 * g + 1.0));
        let n2 = -5.0 * (g - 1.0) / (2.0 * g + 1.0);
        let n3 = 3.0 / (2.0 * g + 1.0);
        let n4 = n1 / (2.0 - g);
        let n5 = -2.0 / (2.0 - g);
        let first = 0.5 * (g + 1.0) * v;
        let second = (g + 1.0) / (7.0 - g) * (5.0 - (3.0 * g - 1.0) * v);
        let third = (g + 1.0) / (g - 1.0) * (g * v - 1.0);
        let xi = (first.powi(-2) * second.powf(-n1) * third.powf(-n2)).powf(0.2);
        let fourth = (g + 1.0) / (g - 1.0) * (1.0 - v);
        let density = (g + 1.0) / (g - 1.0) * third.powf(n3) * second.powf(n4) * fourth.powf(n5);
        let pressure = scaled_sound(g, v) / (g * v - 1.0) * density * xi * xi;
        (xi, Flow { density, velocity: xi * v, pressure })
    }

    /// Everywhere, to what the table's interpolation leaves; the closed form loses digits in γV − 1 towards the centre.
    #[test]
    fn the_integration_follows_the_closed_form() {
        for gamma in [1.4, 5.0 / 3.0] {
            let wave = BlastWave::new(gamma);
            for n in 0..60 {
                let excess = (gamma - 1.0) / (gamma + 1.0) * 0.8f64.powi(n);
                let (xi, exact) = closed_form(gamma, (1.0 + excess) / gamma);
                let found = wave.at(xi);
                assert!((found.density / exact.density - 1.0).abs() < 1e-8, "{xi}: {found:?} {exact:?}");
                assert!((found.velocity / exact.velocity - 1.0).abs() < 1e-9, "{xi}: {found:?} {exact:?}");
                assert!((found.pressure / exact.pressure - 1.0).abs() < 1e-8, "{xi}: {found:?} {exact:?}");
            }
        }
    }

    /// Simpson's rule for ∫ f dξ over [0, 1].
    fn integral(f: impl Fn(f64) -> f64) -> f64 {
        let n = 20_000;
        let weight = |i: usize| {
            if i == 0 || i == n {
                1.0
            } else if i % 2 == 1 {
                4.0
            } else {
                2.0
            }
        };
        (0..=n).map(|i| weight(i) * f(i as f64 / n as f64)).sum::<f64>() / (3 * n) as f64
    }

    /// The gas behind the shock is all that was there: ∫ D 4πξ² dξ = 4π/3, and the energy is E.
    #[test]
    fn mass_and_energy_are_kept() {
        for gamma in [1.4, 5.0 / 3.0] {
            let wave = BlastWave::new(gamma);
            let mass = integral(|xi| 3.0 * xi * xi * wave.at(xi).density);
            assert!((mass - 1.0).abs() < 1e-8, "{mass}");
            let energy = integral(|xi| {
                let flow = wave.at(xi);
                4.0 * PI * xi * xi * (0.5 * flow.density * flow.velocity.powi(2) + flow.pressure / (gamma - 1.0))
            });
            assert!((4.0 / 25.0 * wave.beta().powi(5) * energy - 1.0).abs() < 1e-8, "{energy}");
        }
    }

    /// The equation of motion with the slope of the pressure that is returned: (V − 1)(V + V') − (3/2) V + C Π'/Π = 0.
    /// Further in, C multiplies the error of the difference by more than 10³.
    #[test]
    fn momentum_is_balanced() {
        let wave = BlastWave::new(5.0 / 3.0);
        for xi in [0.3, 0.4, 0.5, 0.7, 0.9, 0.99] {
            let v = |xi: f64| wave.at(xi).velocity / xi;
            let d = 1e-4f64;
            let slope = |f: &dyn Fn(f64) -> f64| (f(xi * d.exp()) - f(xi * (-d).exp())) / (2.0 * d);
            let flow = wave.at(xi);
            let inertia = (v(xi) - 1.0) * (v(xi) + slope(&v)) - 1.5 * v(xi);
            let push = slope(&|xi| wave.at(xi).pressure) / (flow.density * xi * xi);
            assert!((inertia + push).abs() < 1e-5, "{xi}: {inertia} {push}");
        }
    }

    /// E = α ρ₁ r_s⁵/t², α = β⁻⁵ = 0.851072 for γ = 1.4 (Kamm & Timmes 2007, LA-UR-07-2849, table 1).
    #[test]
    fn energy_constant() {
        assert!((BlastWave::new(1.4).beta().powi(-5) - 0.851_072).abs() < 1e-6);
        assert!((BlastWave::new(5.0 / 3.0).beta() - 1.1517).abs() < 1e-4);
    }
}

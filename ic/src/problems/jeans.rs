//! The growing mode of Jeans' instability of a static periodic gas (paper, section 4.5).
//!
//! About a gas at rest of density ρ₀ and sound speed c = √(γP₀/ρ₀), the linear Euler and Poisson equations have
//! ω² = c²k² − 4πGρ₀ (eqs. of the dispersion relation there). Where Γ² = −ω² is positive a mode grows:
//! δρ = δρ₀ sin(kx) e^(Γt), v = Γ/k δρ₀/ρ₀ cos(kx) e^(Γt), P = P₀ (1 + γ δρ/ρ₀), φ = −4πG δρ/k². What the linear solution
//! leaves out is of order δρ².

use super::{Gas, Problem, Setup, View, options_of, plain_gas, require, require_wave};
use comove_sim::Criterion;
use comove_sim::{Precision, RunParameters};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::f64::consts::{PI, TAU};

/// One wavelength along x in a gas of density 1 and pressure 3/5, in a box of the same length whatever the resolution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Jeans {
    /// Root cells along each axis.
    pub root: usize,
    /// Refinement levels, each covering the whole box.
    pub levels: u8,
    /// Precision of the state.
    pub precision: Precision,
    /// Amplitude δρ₀ at the start.
    pub amplitude: f64,
    /// Newton's constant.
    pub newton: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Box length and wavelength: 128 finest cells at three levels.
    pub box_length: f64,
    /// How often the amplitude at the start the run ends with.
    pub growth: f64,
}

impl Default for Jeans {
    fn default() -> Self {
        Self {
            root: 16,
            levels: 3,
            precision: Precision::Double,
            amplitude: 1e-6,
            newton: 1e-3,
            gamma: 5.0 / 3.0,
            box_length: 128.0,
            growth: 100.0,
        }
    }
}

/// P₀; ρ₀ is 1.
const PRESSURE: f64 = 3.0 / 5.0;

impl Jeans {
    fn four_pi_g(&self) -> f64 {
        4.0 * PI * self.newton
    }

    /// k.
    fn wave_number(&self) -> f64 {
        TAU / self.box_length
    }

    /// Γ: Γ² = 4πGρ₀ − c²k².
    pub fn growth_rate(&self) -> f64 {
        (self.four_pi_g() - self.gamma * PRESSURE * self.wave_number().powi(2)).sqrt()
    }

    /// φ at the point x at time t, with ⟨φ⟩ = 0.
    pub fn potential(&self, x: [f64; 3], t: f64) -> f64 {
        -self.four_pi_g() * (self.wave(x, t).density - 1.0) / self.wave_number().powi(2)
    }

    fn wave(&self, x: [f64; 3], t: f64) -> Gas {
        let (k, rate) = (self.wave_number(), self.growth_rate());
        let amplitude = self.amplitude * (rate * t).exp();
        let (sin, cos) = (k * x[0]).sin_cos();
        Gas {
            density: 1.0 + amplitude * sin,
            velocity: [rate / k * amplitude * cos, 0.0, 0.0],
            pressure: PRESSURE * (1.0 + self.gamma * amplitude * sin),
        }
    }
}

impl Problem for Jeans {
    fn name(&self) -> &'static str {
        "jeans"
    }

    fn options(&self) -> Value {
        options_of(self)
    }

    fn setup(&self) -> Setup {
        let parameters = RunParameters {
            gravity: true,
            four_pi_g: self.four_pi_g(),
            max_level: self.levels,
            // a wave across the whole box spans many groups of a level that covers it: a few steps leave 40% more error
            poisson_cycles: Some(6),
            refine: vec![Criterion::DensityAbove { thresholds: vec![0.0; self.levels.into()] }],
            ..plain_gas(self.precision, self.gamma)
        };
        let end = self.growth.ln() / self.growth_rate();
        let (box_length, root) = (self.box_length, [self.root; 3]);
        Setup { box_length, root, cosmology: None, start: 0.0, end, parameters }
    }

    fn initial(&self, x: [f64; 3], _h: f64) -> Gas {
        self.wave(x, 0.0)
    }

    fn exact(&self, x: [f64; 3], t: f64) -> Option<Gas> {
        Some(self.wave(x, t))
    }

    fn view(&self) -> View {
        View::Line { axis: 0, through: [0.0, 0.5 * self.box_length, 0.5 * self.box_length] }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        require_wave(self.amplitude, self.gamma)?;
        let jeans_length = TAU * (self.gamma * PRESSURE / self.four_pi_g()).sqrt();
        let unstable = self.box_length > jeans_length && self.box_length.is_finite();
        let reason = format!("must be longer than the Jeans length {jeans_length:.4}");
        require("box_length", self.box_length, unstable, &reason)?;
        require("growth", self.growth, self.growth > 1.0, "must be above 1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Continuity, Euler's, the entropy and Poisson's equation by central differences; what remains is of order δρ² and
    /// of the differences' own error, both below 10⁻³ of the terms.
    #[test]
    fn the_mode_solves_the_equations() {
        let jeans = Jeans { amplitude: 1e-5, ..Jeans::default() };
        let (x, t, d) = ([37.0, 5.0, 9.0], 11.0, 0.1);
        let gas = |dx: f64, dt: f64| jeans.wave([x[0] + dx, x[1], x[2]], t + dt);
        let along = |f: &dyn Fn(Gas) -> f64| (f(gas(d, 0.0)) - f(gas(-d, 0.0))) / (2.0 * d);
        let rate = |f: &dyn Fn(Gas) -> f64| (f(gas(0.0, d)) - f(gas(0.0, -d))) / (2.0 * d);
        let flux = |g: Gas| g.density * g.velocity[0];
        assert!((rate(&|g| g.density) + along(&flux)).abs() < 1e-3 * rate(&|g| g.density).abs());
        let phi = |dx: f64| jeans.potential([x[0] + dx, 0.0, 0.0], t);
        let pull = (phi(d) - phi(-d)) / (2.0 * d);
        let motion = rate(&flux) + along(&|g| g.pressure) + pull;
        assert!(motion.abs() < 1e-3 * pull.abs(), "{motion:e} of {pull:e}");
        let source = jeans.four_pi_g() * (gas(0.0, 0.0).density - 1.0);
        let laplacian = (phi(d) - 2.0 * phi(0.0) + phi(-d)) / (d * d);
        assert!((laplacian / source - 1.0).abs() < 1e-3, "{laplacian:e} {source:e}");
        let entropy = |g: Gas| g.pressure / g.density.powf(jeans.gamma);
        assert!((entropy(gas(0.0, 0.0)) / PRESSURE - 1.0).abs() < 1e-8);
    }

    /// The amplitude at the end, and a box too short to be unstable: λ_J = 2πc/√(4πGρ₀) = 56.05.
    #[test]
    fn growth_and_its_limit() {
        let jeans = Jeans::default();
        assert!(jeans.check().is_ok());
        let crest = jeans.wave([32.0, 0.0, 0.0], jeans.setup().end).density - 1.0;
        assert!((crest / 1e-4 - 1.0).abs() < 1e-9, "{crest}");
        let (option, reason) = Jeans { box_length: 56.0, ..jeans }.check().unwrap_err();
        assert!(option == "box_length" && reason.ends_with("56.0499"), "{reason}");
    }
}

//! A standing sound wave of small amplitude, released from rest along the diagonal of a periodic box (paper, section
//! 4.1).
//!
//! The linear Euler equations about a gas at rest, with sound speed c = √(γP₀/ρ₀), are solved by
//! δρ/ρ₀ = A cos(k·x) cos(kct), by the velocity c A sin(k·x) sin(kct) along k, and by the pressure P₀ (1 + γ δρ/ρ₀)
//! (Landau & Lifshitz, *Fluid Mechanics*, §64). What the linear solution leaves out is of order A².

use super::{Gas, Problem, Setup, View, options_of, plain_gas, require_wave};
use comove_sim::Precision;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::f64::consts::TAU;

/// The wave in a gas of density 1 and pressure 3/5, in a box of 512 whatever the resolution.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AcousticWave {
    /// Root cells along each axis.
    pub root: usize,
    /// Precision of the state.
    pub precision: Precision,
    /// Relative amplitude A of the density.
    pub amplitude: f64,
    /// Wavelengths along each edge of the box.
    pub wave_numbers: [i32; 3],
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Box length.
    pub box_length: f64,
    /// End of the run.
    pub end: f64,
}

impl Default for AcousticWave {
    fn default() -> Self {
        Self {
            root: 64,
            precision: Precision::Double,
            amplitude: 1e-6,
            wave_numbers: [1; 3],
            gamma: 5.0 / 3.0,
            box_length: 512.0,
            end: 600.0,
        }
    }
}

/// P₀; ρ₀ is 1.
const PRESSURE: f64 = 3.0 / 5.0;

impl AcousticWave {
    /// c.
    pub fn sound_speed(&self) -> f64 {
        (self.gamma * PRESSURE).sqrt()
    }

    /// k.
    fn wave_vector(&self) -> [f64; 3] {
        self.wave_numbers.map(|n| TAU * f64::from(n) / self.box_length)
    }

    /// |k|.
    fn wave_number(&self) -> f64 {
        self.wave_vector().iter().map(|k| k * k).sum::<f64>().sqrt()
    }

    fn wave(&self, x: [f64; 3], t: f64) -> Gas {
        let (k, k_norm, c) = (self.wave_vector(), self.wave_number(), self.sound_speed());
        let (sin_kx, cos_kx) = (0..3).map(|axis| k[axis] * x[axis]).sum::<f64>().sin_cos();
        let (sin_kct, cos_kct) = (k_norm * c * t).sin_cos();
        let contrast = self.amplitude * cos_kx * cos_kct;
        Gas {
            density: 1.0 + contrast,
            velocity: k.map(|k| k / k_norm * c * self.amplitude * sin_kx * sin_kct),
            pressure: PRESSURE * (1.0 + self.gamma * contrast),
        }
    }
}

impl Problem for AcousticWave {
    fn name(&self) -> &'static str {
        "acoustic_wave"
    }

    fn options(&self) -> Value {
        options_of(self)
    }

    fn setup(&self) -> Setup {
        let parameters = plain_gas(self.precision, self.gamma);
        let (box_length, root) = (self.box_length, [self.root; 3]);
        Setup { box_length, root, cosmology: None, start: 0.0, end: self.end, parameters }
    }

    fn initial(&self, x: [f64; 3], _h: f64) -> Gas {
        self.wave(x, 0.0)
    }

    fn exact(&self, x: [f64; 3], t: f64) -> Option<Gas> {
        Some(self.wave(x, t))
    }

    fn view(&self) -> View {
        View::Diagonal
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        require_wave(self.amplitude, self.gamma)?;
        if self.wave_numbers == [0; 3] {
            return Err(("wave_numbers", "must not all be 0: there would be no wave".into()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Continuity and Euler's equation by central differences: what remains is of order A² and of the differences' own
    /// error, both below 10⁻³ A.
    #[test]
    fn the_wave_solves_the_euler_equations() {
        let (box_length, amplitude) = (2.0, 1e-4);
        let wave =
            AcousticWave { amplitude, wave_numbers: [1, 2, -1], gamma: 1.4, box_length, ..AcousticWave::default() };
        let (x, t, d) = ([0.13, 0.57, 0.71], 0.21, 1e-4);
        let shifted = |axis: usize, by: f64| {
            let mut y = x;
            y[axis] += by;
            wave.wave(y, t)
        };
        let difference = |f: &dyn Fn(Gas) -> f64, axis: usize| (f(shifted(axis, d)) - f(shifted(axis, -d))) / (2.0 * d);
        let rate = |f: &dyn Fn(Gas) -> f64| (f(wave.wave(x, t + d)) - f(wave.wave(x, t - d))) / (2.0 * d);
        let k = wave.wave_number();
        let divergence: f64 = (0..3).map(|axis| difference(&|g| g.density * g.velocity[axis], axis)).sum();
        assert!((rate(&|g| g.density) + divergence).abs() < 1e-3 * amplitude * k);
        for axis in 0..3 {
            let force = difference(&|g| g.pressure, axis);
            assert!((rate(&|g| g.density * g.velocity[axis]) + force).abs() < 1e-3 * amplitude * k);
        }
        let entropy = |g: Gas| g.pressure / g.density.powf(wave.gamma);
        assert!((entropy(wave.wave(x, t)) / PRESSURE - 1.0).abs() < 1e-3 * amplitude);
        let back = wave.wave(x, t + TAU / (k * wave.sound_speed()));
        assert!((back.density - wave.wave(x, t).density).abs() < 1e-12);
        assert_eq!(wave.initial(x, 0.1).velocity, [0.0; 3]);
    }
}

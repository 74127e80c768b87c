//! A travelling sound wave of small amplitude in a periodic box.
//!
//! The linear Euler equations about a gas at rest move δρ/ρ₀ = A cos(k·x − kct) at the sound speed c = √(γP₀/ρ₀) with
//! velocity c δρ/ρ₀ along k and pressure P₀ (1 + γ δρ/ρ₀) (Landau & Lifshitz, *Fluid Mechanics*, §64). What the linear
//! solution leaves out is of order A².

use super::{Gas, Problem};
use std::f64::consts::TAU;

/// The wave in a gas of density and sound speed 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AcousticWave {
    /// Relative amplitude A of the density.
    pub amplitude: f64,
    /// Wavelengths along each edge of the box.
    pub wave_numbers: [i32; 3],
    /// Ratio of specific heats.
    pub gamma: f64,
}

impl AcousticWave {
    /// One wavelength along x with nonlinear terms below 10⁻⁸.
    pub const STANDARD: Self = Self { amplitude: 1e-4, wave_numbers: [1, 0, 0], gamma: 5.0 / 3.0 };

    /// k.
    fn wave_vector(&self) -> [f64; 3] {
        self.wave_numbers.map(|n| TAU * f64::from(n))
    }

    /// |k|.
    fn wave_number(&self) -> f64 {
        self.wave_vector().iter().map(|k| k * k).sum::<f64>().sqrt()
    }
}

impl Problem for AcousticWave {
    fn name(&self) -> &'static str {
        "acoustic_wave"
    }

    fn gamma(&self) -> f64 {
        self.gamma
    }

    /// One period.
    fn end_time(&self) -> f64 {
        TAU / self.wave_number()
    }

    fn exact(&self, x: [f64; 3], t: f64) -> Gas {
        let (k, k_norm) = (self.wave_vector(), self.wave_number());
        let phase = (0..3).map(|axis| k[axis] * x[axis]).sum::<f64>() - k_norm * t;
        let contrast = self.amplitude * phase.cos();
        Gas {
            density: 1.0 + contrast,
            velocity: k.map(|k| k / k_norm * contrast),
            pressure: (1.0 + self.gamma * contrast) / self.gamma,
        }
    }

    fn expected_order(&self) -> Option<f64> {
        Some(2.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Continuity and Euler's equation by central differences: what remains is of order A² and of the differences' own
    /// error, both below 10⁻³ A.
    #[test]
    fn the_wave_solves_the_euler_equations() {
        let wave = AcousticWave { amplitude: 1e-4, wave_numbers: [1, 2, -1], gamma: 1.4 };
        let (x, t, d) = ([0.13, 0.57, 0.71], 0.21, 1e-4);
        let shifted = |axis: usize, by: f64| {
            let mut y = x;
            y[axis] += by;
            wave.exact(y, t)
        };
        let difference = |f: &dyn Fn(Gas) -> f64, axis: usize| (f(shifted(axis, d)) - f(shifted(axis, -d))) / (2.0 * d);
        let rate = |f: &dyn Fn(Gas) -> f64| (f(wave.exact(x, t + d)) - f(wave.exact(x, t - d))) / (2.0 * d);
        let k = wave.wave_number();
        let divergence: f64 = (0..3).map(|axis| difference(&|g| g.density * g.velocity[axis], axis)).sum();
        assert!((rate(&|g| g.density) + divergence).abs() < 1e-3 * wave.amplitude * k);
        for axis in 0..3 {
            let force = difference(&|g| g.pressure, axis);
            assert!((rate(&|g| g.density * g.velocity[axis]) + force).abs() < 1e-3 * wave.amplitude * k);
        }
        let entropy = |g: Gas| g.pressure / g.density.powf(wave.gamma);
        assert!((entropy(wave.exact(x, t)) * wave.gamma - 1.0).abs() < 1e-3 * wave.amplitude);
        let back = wave.exact(x, t + wave.end_time());
        assert!((back.density - wave.exact(x, t).density).abs() < 1e-12);
    }
}

//! Unit complex Gaussians for Fourier modes, from a generator that counts instead of remembering.

use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rustfft::num_complex::Complex;
use std::f64::consts::TAU;

/// White noise in Fourier space: one complex number with ⟨|g|²⟩ = 1 for each integer wave vector.
///
/// A mode's value depends on the seed and its wave vector alone: (n_y, n_z) chooses the stream of a ChaCha generator,
/// n_x the position in it. So it depends neither on the mesh nor on the order or the thread in which modes are drawn.
#[derive(Clone, Copy, Debug)]
pub struct WhiteNoise {
    /// Chooses the realisation.
    pub seed: u64,
    /// Every |g| is 1 and only the phase is drawn (Angulo & Pontzen 2016): the realisation has exactly the spectrum.
    pub fixed_amplitude: bool,
    /// Every g has the opposite sign: the other one of a pair.
    pub inverted: bool,
}

impl WhiteNoise {
    /// Fills a row with the modes n_x = 0, 1, … of (n_y, n_z).
    ///
    /// A real field has g(−n) = g*(n); of each such pair the one with n_x > 0, else n_y > 0, else n_z > 0 is drawn.
    pub fn fill(&self, ny: i64, nz: i64, row: &mut [Complex<f64>]) {
        let mut generator = self.stream(ny, nz);
        for mode in row.iter_mut() {
            *mode = self.draw(&mut generator);
        }
        if let Some(first) = row.first_mut() {
            if (ny, nz) == (0, 0) {
                *first = Complex::ZERO;
            } else if ny < 0 || (ny == 0 && nz < 0) {
                *first = self.draw(&mut self.stream(-ny, -nz)).conj();
            }
        }
    }

    fn stream(&self, ny: i64, nz: i64) -> ChaCha12Rng {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        let mut generator = ChaCha12Rng::from_seed(key);
        // Two's complement, the low 32 bits of each: a wave number has far fewer.
        generator.set_stream((ny as u64 & 0xffff_ffff) << 32 | nz as u64 & 0xffff_ffff);
        generator
    }

    /// |g|² is exponential with mean 1, the phase uniform; 128 bits of the stream for each mode.
    fn draw(&self, generator: &mut ChaCha12Rng) -> Complex<f64> {
        let unit = |bits: u64| ((bits >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
        let (first, second) = (generator.next_u64(), generator.next_u64());
        let amplitude = if self.fixed_amplitude { 1.0 } else { (-unit(first).ln()).sqrt() };
        let mode = Complex::from_polar(amplitude, TAU * unit(second));
        if self.inverted { -mode } else { mode }
    }

    /// A mode of noise from elsewhere, with amplitude and sign as [`WhiteNoise::fixed_amplitude`] and
    /// [`WhiteNoise::inverted`] have them.
    pub(super) fn changed(&self, mode: Complex<f64>) -> Complex<f64> {
        let size = mode.norm();
        let mode = if self.fixed_amplitude && size > 0.0 { mode / size } else { mode };
        if self.inverted { -mode } else { mode }
    }
}

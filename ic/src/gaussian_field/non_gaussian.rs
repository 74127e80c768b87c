//! Primordial non-Gaussianity of the local type.

use super::{LinearModes, dot};
use rayon::prelude::*;
use rustfft::num_complex::Complex;

impl LinearModes<'_> {
    /// The modes of the potential Φ + `f_nl` (Φ² − ⟨Φ²⟩) in place of Φ = δ/α (Komatsu & Spergel 2001, Phys. Rev. D 63, 063002),
    /// the square without aliases. Collective.
    ///
    /// * `alpha`: α of k in h/Mpc ([`crate::linear_power::LinearPower::density_per_potential`])
    #[must_use]
    pub fn non_gaussian(&self, f_nl: f64, alpha: impl Fn(f64) -> f64 + Sync) -> Self {
        let potential = self.scaled(|k| 1.0 / alpha(k));
        let [square] = potential.dealiased(|shift| {
            let mut values = potential.derived(|k| Complex::from_polar(1.0, dot(k, shift)));
            values.par_iter_mut().for_each(|value| *value *= *value);
            [values]
        });
        self.combined(1.0, &square.scaled(alpha), f_nl)
    }
}

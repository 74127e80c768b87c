//! Second order of Lagrangian perturbation theory.

use super::LinearModes;
use rayon::prelude::*;
use rustfft::num_complex::Complex;

impl LinearModes<'_> {
    /// The modes whose [displacement](Self::velocity) is that of second order in Lagrangian perturbation theory: 3/7 `growth`
    /// Σ (φ_,ii φ_,jj − φ_,ij²) over pairs of axes, with ∇²φ = δ (Bouchet et al. 1995; Scoccimarro 1998). Collective.
    ///
    /// * `growth`: −7/3 D₂/D², 1 in an Einstein–de Sitter universe
    #[must_use]
    pub fn second_order(&self, growth: f64) -> Self {
        self.of_product(&self.minors([0.0; 3], 3.0 / 7.0 * growth))
    }

    /// ∇²φ⁽²⁾ = Σ (φ_,ii φ_,jj − φ_,ij²), the source of [`Self::second_order`], without [aliases](Self::dealiased). Collective.
    pub(super) fn second_order_source(&self) -> Self {
        let [source] = self.dealiased(|shift| [self.minors(shift, 1.0)]);
        source
    }

    /// `factor` Σ (φ_,ii φ_,jj − φ_,ij²) at places `shift` behind the cell centres. Collective.
    fn minors(&self, shift: [f64; 3], factor: f64) -> Vec<f64> {
        let [xx, yy, zz] = [0, 1, 2].map(|axis| self.hessian(axis, axis, shift));
        let mut source: Vec<f64> =
            (xx.par_iter().zip(&yy).zip(&zz)).map(|((xx, yy), zz)| factor * (xx * yy + xx * zz + yy * zz)).collect();
        drop((xx, yy, zz));
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let mixed = self.hessian(i, j, shift);
            source.par_iter_mut().zip(mixed).for_each(|(sum, mixed)| *sum -= factor * mixed * mixed);
        }
        source
    }

    /// φ_,ij with ∇²φ = δ at places `shift` Mpc/h behind the cell centres along x, y, z. Collective.
    pub(super) fn hessian(&self, i: usize, j: usize, shift: [f64; 3]) -> Vec<f64> {
        self.derived(|k| {
            let size = k[i] * k[j] / super::square(k);
            if shift == [0.0; 3] { Complex::new(size, 0.0) } else { Complex::from_polar(size, super::dot(k, shift)) }
        })
    }
}

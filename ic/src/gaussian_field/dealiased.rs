//! Products of fields without aliases.

use super::{LinearModes, dot, is_left_out, transform, wave_vector};
use rayon::prelude::*;
use rustfft::num_complex::Complex;

impl LinearModes<'_> {
    /// The modes of a field on this mesh, but for those that are left out. Collective.
    pub(super) fn of_product(&self, field: &[f64]) -> Self {
        self.of_shifted(field, [0.0; 3], 1.0)
    }

    /// The modes on this mesh of products of two or three of its fields, without aliases. Collective.
    ///
    /// They are means over eight meshes, each behind this one by half a cell along some axes. Together these are a mesh of twice as
    /// many cells along each axis, on which waves of products of three fields fold onto none of this mesh (Orszag 1971, J.
    /// Atmos. Sci. 28, 1074).
    ///
    /// * `products`: values of the products at places behind the cell centres by a distance in Mpc/h along x, y, z
    pub(super) fn dealiased<const N: usize>(&self, products: impl Fn([f64; 3]) -> [Vec<f64>; N]) -> [Self; N] {
        let half = self.half_a_cell(self.cells[0]);
        let mut sums = std::array::from_fn(|_| Self { density: vec![Complex::ZERO; self.density.len()], ..*self });
        for corner in 0..8 {
            let shift = [0, 1, 2].map(|axis| if corner >> axis & 1 == 1 { half } else { 0.0 });
            for (sum, product) in sums.iter_mut().zip(products(shift)) {
                sum.add(&self.of_shifted(&product, shift, 0.125));
            }
        }
        sums
    }

    /// The modes of `weight` times a field that is given at places `shift` behind the cell centres.
    fn of_shifted(&self, field: &[f64], shift: [f64; 3], weight: f64) -> Self {
        let mut modes = Self { density: transform::to_modes(self.communicator, self.cells, field), ..*self };
        let (cells, spacing) = (self.cells, self.spacing);
        modes.for_each_row(|ny, nz, row| {
            for (nx, mode) in row.iter_mut().enumerate() {
                let n = [nx as i64, ny, nz];
                if is_left_out(n, cells) {
                    *mode = Complex::ZERO;
                } else if weight != 1.0 {
                    *mode *= Complex::from_polar(weight, -dot(wave_vector(n, spacing), shift));
                }
            }
        });
        modes
    }

    /// Adds other modes.
    pub(super) fn add(&mut self, other: &Self) {
        self.density.par_iter_mut().zip(&other.density).for_each(|(sum, mode)| *sum += mode);
    }
}

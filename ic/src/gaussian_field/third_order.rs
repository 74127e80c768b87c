//! Third order of Lagrangian perturbation theory.

use super::LinearModes;
use rayon::prelude::*;

/// Sources of third order, of first-order potential φ and second-order one φ⁽²⁾, with growth factors of 1.
pub(super) struct ThirdOrder<'c> {
    /// (3a): det φ_,ij.
    pub determinant: LinearModes<'c>,
    /// (3b): φ_,ii φ⁽²⁾_,jj − φ_,ij φ⁽²⁾_,ij, summed over i and j.
    pub mixed: LinearModes<'c>,
    /// (3c): ε_ijk φ_,lj φ⁽²⁾_,lk, summed over j, k and l, for each axis i.
    pub curl: [LinearModes<'c>; 3],
}

/// Place of the component along axes i and j among six.
fn place(i: usize, j: usize) -> usize {
    if i == j { i } else { 6 - i - j }
}

impl<'c> LinearModes<'c> {
    /// The sources of third order (Buchert 1994, MNRAS 267, 811; Catelan 1995, MNRAS 276, 115; Michaux et al. 2021, MNRAS 500,
    /// 663) without [aliases](Self::dealiased), with ∇²φ = δ. Collective.
    ///
    /// * `second`: ∇²φ⁽²⁾ ([`Self::second_order_source`])
    pub(super) fn third_order(&self, second: &Self) -> ThirdOrder<'c> {
        let [determinant, mixed, x, y, z] = self.dealiased(|shift| self.cubic(second, shift));
        ThirdOrder { determinant, mixed, curl: [x, y, z] }
    }

    /// The sources at places `shift` behind the cell centres. Alive at the end: six fields of φ, five sources, one of φ⁽²⁾.
    fn cubic(&self, second: &Self, shift: [f64; 3]) -> [Vec<f64>; 5] {
        let axes = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)];
        let mut first: [Vec<f64>; 6] = Default::default();
        for (i, j) in axes {
            first[place(i, j)] = self.hessian(i, j, shift);
        }
        let count = first[0].len();
        let of = |i: usize, j: usize, n: usize| first[place(i, j)][n];
        let determinant = (0..count).into_par_iter().map(|n| {
            let [xx, yy, zz, xy, xz, yz] = axes.map(|(i, j)| of(i, j, n));
            xx * (yy * zz - yz * yz) - xy * (xy * zz - yz * xz) + xz * (xy * yz - yy * xz)
        });
        let determinant = determinant.collect();
        let mut mixed = vec![0.0; count];
        let mut curl: [Vec<f64>; 3] = std::array::from_fn(|_| vec![0.0; count]);
        for axis in 0..3 {
            let [p, q] = [(axis + 1) % 3, (axis + 2) % 3];
            let [_, along_p, along_q] = [axis, p, q].map(|axis| &first[place(axis, axis)]);
            // the component along this axis twice
            let value = second.hessian(axis, axis, shift);
            add(&mut mixed, &value, |n| along_p[n] + along_q[n]);
            add(&mut curl[p], &value, |n| of(axis, q, n));
            add(&mut curl[q], &value, |n| -of(axis, p, n));
            // and that along the two others
            let value = second.hessian(p, q, shift);
            add(&mut mixed, &value, |n| -2.0 * of(p, q, n));
            add(&mut curl[axis], &value, |n| along_p[n] - along_q[n]);
            add(&mut curl[p], &value, |n| -of(p, axis, n));
            add(&mut curl[q], &value, |n| of(q, axis, n));
        }
        let [x, y, z] = curl;
        [determinant, mixed, x, y, z]
    }
}

/// Adds values times a factor for each cell.
fn add(sum: &mut [f64], values: &[f64], factor: impl Fn(usize) -> f64 + Sync) {
    sum.par_iter_mut().zip(values).enumerate().for_each(|(n, (sum, value))| *sum += value * factor(n));
}

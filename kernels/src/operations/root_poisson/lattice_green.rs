//! The Green's function of the 7-point Laplacian in empty space, and its transform on a zero-padded mesh.
//!
//! Heat on the lattice, u' = Δu, spreads from a point by the factor e^(−2t) I_n(2t) along each axis, I_n being the
//! modified Bessel function; and G = −∫ u dt over all times obeys ΔG = δ and vanishes at infinity:
//!
//! G(i, j, k) = −∫₀^∞ b_i(t) b_j(t) b_k(t) dt, b_n(t) = e^(−2t) I_n(2t).
//!
//! Far away it is −1/(4πr). With t = e^s the integrand is smooth and falls exponentially at both ends, so equal steps
//! in s give all of it to round-off; and as each node is a product of three factors, so is its transform.

use rayon::prelude::*;
use std::f64::consts::PI;
use std::ops::Range;

/// Step in s. The error of the equal steps is of the order of e^(−π²/step) = 5·10⁻¹⁵.
const STEP: f64 = 0.3;
/// The first node in s: there t = 8·10⁻⁹, and b_n = δ_n to round-off.
const FIRST: f64 = -18.6;

/// A node of the integral: its time and weight.
#[derive(Clone, Copy)]
struct Node {
    t: f64,
    weight: f64,
}

/// The nodes for lattice distances up to `reach`. What lies before the first (where the integrand is as t) and beyond
/// the last (as t^(−1/2)) is in the weights of these two, as the sum of a geometric series.
fn nodes(reach: f64) -> Vec<Node> {
    let last = (1e10 * reach * reach).ln();
    let count = ((last - FIRST) / STEP).ceil() as usize + 1;
    let node = |n: usize| {
        let t = (FIRST + STEP * n as f64).exp();
        let tail = match n {
            0 => 1.0 / (1.0 - (-STEP).exp()),
            n if n + 1 == count => 1.0 / (1.0 - (-0.5 * STEP).exp()),
            _ => 1.0,
        };
        Node { t, weight: STEP * t * tail }
    };
    (0..count).map(node).collect()
}

/// e^(−x) I_n(x) for n = 0 … `last`.
fn scaled_bessel(x: f64, last: usize) -> Vec<f64> {
    let square = (last * last) as f64;
    if x > 100.0 && x > 50.0 * square {
        return (0..=last).map(|n| asymptotic_bessel(x, n)).collect();
    }
    // The recurrence I_(n−1) = I_(n+1) + (2n/x) I_n is stable downwards; started where I_n/I_0 is below 10⁻¹⁷ of what
    // it is at `last`, it forgets what it started from. The sum over all n of e^(−x) I_n(x) is 1.
    let start = last + 20 + (80.0 * x).sqrt() as usize;
    let mut values = vec![0.0; last + 1];
    let (mut above, mut here, mut sum) = (0.0, 1e-280, 0.0);
    for n in (0..=start).rev() {
        if n <= last {
            values[n] = here;
        }
        sum += if n == 0 { here } else { 2.0 * here };
        (above, here) = (here, above + 2.0 * n as f64 / x * here);
        if here > 1e200 {
            const SHRINK: f64 = 1e-250;
            (above, here, sum) = (above * SHRINK, here * SHRINK, sum * SHRINK);
            values.iter_mut().for_each(|value| *value *= SHRINK);
        }
    }
    values.iter_mut().for_each(|value| *value /= sum);
    values
}

/// Hankel's expansion for x ≫ n².
fn asymptotic_bessel(x: f64, n: usize) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..12 {
        let odd = (2 * k - 1) as f64;
        term *= (odd * odd - 4.0 * (n * n) as f64) / (8.0 * x * k as f64);
        sum += term;
    }
    sum / (2.0 * PI * x).sqrt()
}

/// The transform of b_n over −N … N, repeated with period 2N: values for k = 0 … N.
fn transform(b: &[f64]) -> Vec<f64> {
    let n = b.len() - 1;
    let cosine: Vec<f64> = (0..2 * n).map(|m| (PI * m as f64 / n as f64).cos()).collect();
    let mode = |k: usize| {
        let inner: f64 = (1..n).map(|m| b[m] * cosine[m * k % (2 * n)]).sum();
        b[0] + 2.0 * inner + b[n] * cosine[n * k % (2 * n)]
    };
    (0..=n).map(mode).collect()
}

/// The transform of G on a mesh of twice as many cells along each axis, divided by the number of its cells. It is real
/// and even in each wave number.
pub(super) struct LatticeGreen {
    /// Cells of the mesh before padding.
    cells: [usize; 3],
    /// The |ky| that it is held for.
    rows: Range<usize>,
    /// `[rows, N_z + 1, N_x + 1]`, kx fastest.
    values: Vec<f64>,
}

/// |ky| of some wave numbers ky = 0 … 2N − 1 on a mesh of N cells along y.
fn folded(cells: usize, ky: Range<usize>) -> Range<usize> {
    let folded = |ky: usize| ky.min(2 * cells - ky);
    let least = ky.clone().map(folded).min().unwrap_or(0);
    least..ky.map(|ky| folded(ky) + 1).max().unwrap_or(0)
}

impl LatticeGreen {
    /// For a mesh of so many cells along x, y, z, and wave numbers `ky` of the padded mesh.
    pub(super) fn new(cells: [usize; 3], ky: Range<usize>) -> Self {
        let rows = folded(cells[1], ky);
        let reach = cells.iter().map(|&n| (n * n) as f64).sum::<f64>().sqrt();
        let norm: f64 = cells.iter().map(|&n| 2.0 * n as f64).product();
        let nodes = nodes(reach);
        let factors: Vec<[Vec<f64>; 3]> =
            nodes.par_iter().map(|node| cells.map(|n| transform(&scaled_bessel(2.0 * node.t, n)))).collect();
        let [nx, _, nz] = cells;
        let mut values = vec![0.0; rows.len() * (nz + 1) * (nx + 1)];
        values.par_chunks_mut(nx + 1).enumerate().for_each(|(n, row)| {
            let (ky, kz) = (rows.start + n / (nz + 1), n % (nz + 1));
            for (node, [x, y, z]) in nodes.iter().zip(&factors) {
                let factor = -node.weight / norm * y[ky] * z[kz];
                for (value, x) in row.iter_mut().zip(x) {
                    *value += factor * x;
                }
            }
        });
        Self { cells, rows, values }
    }

    /// The values at (ky, kz) of the padded mesh for kx = 0 … N_x; ky is one of those asked for.
    #[inline(always)]
    pub(super) fn row(&self, ky: usize, kz: usize) -> &[f64] {
        let [nx, ny, nz] = self.cells;
        let (ky, kz) = (ky.min(2 * ny - ky), kz.min(2 * nz - kz));
        &self.values[((ky - self.rows.start) * (nz + 1) + kz) * (nx + 1)..][..nx + 1]
    }

    /// The |ky| that it is held for.
    #[cfg(feature = "cuda")]
    pub(super) fn rows(&self) -> &Range<usize> {
        &self.rows
    }

    /// `[rows, N_z + 1, N_x + 1]`, kx fastest.
    #[cfg(feature = "cuda")]
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Bytes of the table for a mesh of so many cells and these wave numbers.
    pub(super) fn bytes_for(cells: [usize; 3], ky: Range<usize>) -> usize {
        let [nx, ny, nz] = cells;
        folded(ny, ky).len() * (nz + 1) * (nx + 1) * size_of::<f64>()
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> usize {
        self.values.len() * size_of::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G by the nodes, without transforms.
    fn green(at: [usize; 3], nodes: &[Node]) -> f64 {
        let last = *at.iter().max().expect("three axes");
        let value = |node: &Node| {
            let b = scaled_bessel(2.0 * node.t, last);
            -node.weight * b[at[0]] * b[at[1]] * b[at[2]]
        };
        nodes.iter().map(value).sum()
    }

    /// At the origin Watson's integral, far away −1/(4πr) with its next term (the x⁴ of the 7-point operator).
    #[test]
    fn known_values() {
        let nodes = nodes(200.0);
        const WATSON: f64 = 1.516_386_059_151_978;
        assert!((green([0, 0, 0], &nodes) + WATSON / 6.0).abs() < 1e-14);
        for at in [[60usize, 0, 0], [40, 41, 12], [100, 3, 77]] {
            let [x, y, z] = at.map(|c| (c * c) as f64);
            let r2 = x + y + z;
            let quartic = x * x + y * y + z * z - 3.0 * (x * y + y * z + z * x);
            let expected = -(1.0 + quartic / (4.0 * r2.powi(3))) / (4.0 * PI * r2.sqrt());
            // the next term is of the order of r⁻⁴
            assert!((green(at, &nodes) / expected - 1.0).abs() < 3.0 / (r2 * r2), "{at:?}");
        }
    }

    #[test]
    fn it_obeys_the_equation() {
        let nodes = nodes(30.0);
        for at in [[0usize, 0, 0], [1, 0, 0], [3, 2, 5], [12, 0, 9]] {
            let mut sum = -6.0 * green(at, &nodes);
            for axis in 0..3 {
                let mut neighbour = at;
                neighbour[axis] = at[axis] + 1;
                sum += green(neighbour, &nodes);
                neighbour[axis] = at[axis].abs_diff(1);
                sum += green(neighbour, &nodes);
            }
            let delta = if at == [0; 3] { 1.0 } else { 0.0 };
            assert!((sum - delta).abs() < 3e-14, "{at:?}: {sum:e}");
        }
    }

    #[test]
    fn wave_numbers_fold() {
        for (ky, expected) in [(0..16, 0..9), (0..4, 0..4), (4..16, 1..9), (9..12, 5..8), (6..10, 6..9), (3..3, 0..0)] {
            assert_eq!(folded(8, ky.clone()), expected, "{ky:?}");
        }
    }

    /// Both ways of computing the Bessel functions, where they meet.
    #[test]
    fn expansion_and_recurrence_agree() {
        let x = 50.0 * 400.0;
        let recurrence = scaled_bessel(x, 20);
        for (n, value) in recurrence.iter().enumerate() {
            assert!((value / asymptotic_bessel(x, n) - 1.0).abs() < 1e-13, "{n}");
        }
    }
}

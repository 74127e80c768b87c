//! What divides by the Laplacian of a periodic mesh in Fourier space: φ_k = −h² source_k Π factor_a / Σ sum_a over the axes,
//! each a function of θ = k_a h.

use std::f64::consts::{FRAC_PI_2, PI, TAU};

/// Tables along x, y and z.
#[derive(Clone, Debug)]
pub(super) struct PeriodicGreen {
    pub(super) sums: [Vec<f64>; 3],
    pub(super) factors: [Vec<f64>; 3],
}

impl PeriodicGreen {
    /// Of the 7-point operator: 2 − 2cos θ.
    pub(super) fn of_seven_points(lengths: [usize; 3]) -> Self {
        // 2 − 2cos 2x = 4 sin² x, without the cancellation
        let eigenvalues = |n: usize| (0..n).map(|k| 4.0 * (PI * k as f64 / n as f64).sin().powi(2)).collect();
        Self { sums: lengths.map(eigenvalues), factors: lengths.map(|n| vec![1.0; n]) }
    }

    /// Of a mesh with particles, which have this share of all matter: with it, to the fourth order in θ, matter is
    /// accelerated by its own density as in the continuum. Central differences of φ have sin θ/θ of the gradient, so that
    /// Σ k_a² sin θ_a/θ_a divides. The clouds of particles keep sinc²(θ/2) of their density on the mesh. Of the acceleration
    /// that is gathered they keep as much on average over a cell, and cos(θ/2) at its corners, where a lattice starts: a mean of
    /// both counts ([`on_lattice`]). That is made up for on average over gas and particles. At short waves, where these would
    /// grow without bounds, they stay as they are at the largest θ sin θ and at θ = π/2.
    pub(super) fn for_particles(lengths: [usize; 3], share: f64) -> Self {
        let sum = |theta: f64| {
            let theta = theta.min(LARGEST_SUM);
            theta * theta.sin()
        };
        let factor = |theta: f64| {
            let half = 0.5 * theta.min(FRAC_PI_2);
            let cloud = if half > 0.0 { (half.sin() / half).powi(2) } else { 1.0 };
            let gathered = on_lattice(share) * half.cos() + (1.0 - on_lattice(share)) * cloud;
            1.0 / ((1.0 - share + share * cloud) * (1.0 - share + share * gathered))
        };
        Self { sums: lengths.map(|n| table(n, sum)), factors: lengths.map(|n| table(n, factor)) }
    }
}

/// How much of the acceleration counts as gathered at corners of cells: with it all matter grows as in linear theory to a quarter
/// of the Nyquist wave number, alone and beside gas, which grows faster there (docs/notes/dark-matter.md, *Tried*).
fn on_lattice(share: f64) -> f64 {
    if share < 1.0 { 0.5 } else { 0.75 }
}

/// Where θ sin θ is largest.
const LARGEST_SUM: f64 = 2.028_757_838_110_434;

/// Of a function of |θ| ≤ π, for the wave numbers along an axis of `n` cells.
fn table(n: usize, of: impl Fn(f64) -> f64) -> Vec<f64> {
    let theta = |k: usize| (TAU * k.min(n - k) as f64 / n as f64).min(PI);
    (0..n).map(|k| of(theta(k))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The acceleration of a wave by its own density over that of the continuum, along an axis and along a diagonal.
    #[test]
    fn particles_are_accelerated_as_in_the_continuum() {
        let n = 64;
        for share in [0.0, 0.84, 1.0] {
            let green = PeriodicGreen::for_particles([n; 3], share);
            for k in [[4, 0, 0], [4, 4, 4], [8, 0, 0], [8, 8, 0]] {
                let theta = k.map(|k| TAU * k as f64 / n as f64);
                let sum: f64 = (0..3).map(|a| green.sums[a][k[a]]).sum();
                let factor: f64 = (0..3).map(|a| green.factors[a][k[a]]).product();
                let sinc = |t: f64| if t > 0.0 { t.sin() / t } else { 1.0 };
                let cloud: f64 = theta.iter().map(|t| sinc(0.5 * t).powi(2)).product();
                let gradient = theta.iter().map(|t| t * t.sin()).sum::<f64>();
                let mean = 1.0 - share + share * cloud;
                let gathered = theta
                    .iter()
                    .map(|t| on_lattice(share) * (0.5 * t).cos() + (1.0 - on_lattice(share)) * sinc(0.5 * t).powi(2))
                    .product::<f64>();
                let acceleration = mean * (1.0 - share + share * gathered) * factor / sum * gradient;
                assert!(
                    (acceleration - 1.0).abs() < if k[0] == 4 { 2e-3 } else { 1e-2 },
                    "{share} {k:?} {acceleration}"
                );
            }
        }
    }
}

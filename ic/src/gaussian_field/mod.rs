//! Density and growing-mode velocity of a Gaussian random field in linear theory.
//!
//! Modes are counted by integer wave vectors n, k_a = 2π n_a/L_a, and δ(x) = Σ δ_n e^(ik·x) with ⟨|δ_n|²⟩ = P(k)/V. The
//! origin of x is the corner of the box, and cells are sampled at their centres, so meshes of different resolution show
//! the same field. The mean (n = 0) and the modes of the Nyquist planes (|n_a| = N_a/2, which have no sign and so no
//! velocity) are left out.

pub(crate) mod transform;
mod white_noise;

pub use white_noise::WhiteNoise;

use crate::linear_power::LinearPower;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use rustfft::num_complex::Complex;
use std::f64::consts::PI;

/// The Fourier modes of a linear density field on a mesh, or where ranks share it, those of a rank's own n_y.
#[derive(Clone)]
pub struct LinearModes<'c> {
    communicator: &'c Communicator,
    cells: [usize; 3],
    /// Smallest wave number along each axis in h/Mpc: 2π/L.
    spacing: [f64; 3],
    /// δ_n as seen from the cell centres, `[own ny, nz, nx]` with n_x = 0 … N_x/2 fastest.
    density: Vec<Complex<f64>>,
}

impl<'c> LinearModes<'c> {
    /// Draws the modes: `growth` √(P(k)/V) times white noise.
    ///
    /// * `cells`: cells along x, y, z, each even; cells are cubic
    /// * `box_mpc_h`: length of the box along x in Mpc/h
    /// * `growth`: D(a)/D(1)
    ///
    /// # Panics
    /// If an axis has an odd number of cells: the caller's bug.
    pub fn new(
        communicator: &'c Communicator,
        cells: [usize; 3],
        box_mpc_h: f64,
        noise: &WhiteNoise,
        power: &LinearPower,
        growth: f64,
    ) -> Self {
        assert!(cells.iter().all(|n| n % 2 == 0), "{cells:?}: an even number of cells on every axis");
        let lengths = cells.map(|n| box_mpc_h * n as f64 / cells[0] as f64);
        let volume: f64 = lengths.iter().product();
        let spacing = lengths.map(|length| 2.0 * PI / length);
        let rows = transform::rows(cells, communicator.rank(), communicator.size());
        let density = vec![Complex::ZERO; rows.len() * cells[2] * transform::row_length(cells)];
        let mut modes = Self { communicator, cells, spacing, density };
        modes.for_each_row(|ny, nz, row| {
            noise.fill(ny, nz, row);
            for (nx, mode) in row.iter_mut().enumerate() {
                let n = [nx as i64, ny, nz];
                if n == [0; 3] || on_nyquist_plane(n, cells) {
                    *mode = Complex::ZERO;
                    continue;
                }
                let k = norm(wave_vector(n, spacing));
                // k·x at the centre of the first cell, x = h/2 on each axis: Σ π n_a/N_a
                let centre: f64 = (0..3).map(|a| PI * n[a] as f64 / cells[a] as f64).sum();
                *mode *= Complex::from_polar(growth * (power.at(k) / volume).sqrt(), centre);
            }
        });
        modes
    }

    /// Smallest and largest k in h/Mpc on a mesh.
    pub fn range(cells: [usize; 3], box_mpc_h: f64) -> (f64, f64) {
        let longest = *cells.iter().max().expect("three axes") as f64 / cells[0] as f64 * box_mpc_h;
        let nyquist = PI * cells[0] as f64 / box_mpc_h;
        (2.0 * PI / longest, 3f64.sqrt() * nyquist)
    }

    /// δ at the cell centres of the rank's own planes along z, x fastest. Collective.
    pub fn density_contrast(&self) -> Vec<f64> {
        transform::to_cells(self.communicator, self.cells, self.density.clone())
    }

    /// Code velocity along `axis` at the same places: ṽ_n = `rate` (i k/k²) δ_n. Collective.
    ///
    /// Continuity asks for ∂δ/∂t̃ = −∇·ṽ; of a growing mode the left side is f dlna/dt̃ δ = a²E(a)f(a) δ, which is
    /// `rate`. With a rate of 1 it is the displacement of Zel'dovich's approximation.
    pub fn velocity(&self, axis: usize, rate: f64) -> Vec<f64> {
        self.derived(|k| Complex::new(0.0, rate * k[axis] / square(k)))
    }

    /// The same at the cells' lower corners.
    pub fn velocity_at_corners(&self, axis: usize, rate: f64) -> Vec<f64> {
        self.velocity_before_centres(axis, rate, self.cells[0])
    }

    /// The same half a cell of another mesh, of `cells` along x, before the cell centres on all axes.
    pub fn velocity_before_centres(&self, axis: usize, rate: f64, cells: usize) -> Vec<f64> {
        let half = 0.5 * 2.0 * PI / self.spacing[0] / cells as f64;
        self.derived(|k| Complex::from_polar(rate * k[axis] / square(k), 0.5 * PI - half * k.iter().sum::<f64>()))
    }

    /// These modes times one factor and others times another.
    #[must_use]
    pub fn combined(&self, factor: f64, other: &Self, other_factor: f64) -> Self {
        let modes = self.density.par_iter().zip(&other.density);
        Self { density: modes.map(|(one, other)| one * factor + other * other_factor).collect(), ..*self }
    }

    /// These modes times a factor of k in h/Mpc.
    #[must_use]
    pub fn scaled(&self, factor: impl Fn(f64) -> f64 + Sync) -> Self {
        let (mut modes, spacing) = (self.clone(), self.spacing);
        modes.for_each_row(|ny, nz, row| {
            for (nx, mode) in row.iter_mut().enumerate() {
                // modes that are left out have no wave number in a table
                if *mode != Complex::ZERO {
                    *mode *= factor(norm(wave_vector([nx as i64, ny, nz], spacing)));
                }
            }
        });
        modes
    }

    /// The modes whose [displacement](Self::velocity) is that of second order in Lagrangian perturbation theory: 3/7 `growth`
    /// Σ (φ_,ii φ_,jj − φ_,ij²) over pairs of axes, with ∇²φ = δ (Bouchet et al. 1995; Scoccimarro 1998). Collective.
    ///
    /// * `growth`: −7/3 D₂/D², 1 in an Einstein–de Sitter universe
    #[must_use]
    pub fn second_order(&self, growth: f64) -> Self {
        let second = |i: usize, j: usize| self.derived(|k| Complex::new(k[i] * k[j] / square(k), 0.0));
        let [xx, yy, zz] = [0, 1, 2].map(|axis| second(axis, axis));
        let factor = 3.0 / 7.0 * growth;
        let mut source: Vec<f64> =
            (xx.par_iter().zip(&yy).zip(&zz)).map(|((xx, yy), zz)| factor * (xx * yy + xx * zz + yy * zz)).collect();
        drop((xx, yy, zz));
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            source.par_iter_mut().zip(second(i, j)).for_each(|(sum, mixed)| *sum -= factor * mixed * mixed);
        }
        let mut modes = Self { density: transform::to_modes(self.communicator, self.cells, &source), ..*self };
        let cells = self.cells;
        modes.for_each_row(|ny, nz, row| {
            for (nx, mode) in row.iter_mut().enumerate() {
                let n = [nx as i64, ny, nz];
                if n == [0; 3] || on_nyquist_plane(n, cells) {
                    *mode = Complex::ZERO;
                }
            }
        });
        modes
    }

    /// The field whose modes are those of δ times a factor of the wave vector. Collective.
    fn derived(&self, factor: impl Fn([f64; 3]) -> Complex<f64> + Sync) -> Vec<f64> {
        let mut modes = Self { density: self.density.clone(), ..*self };
        let spacing = self.spacing;
        modes.for_each_row(|ny, nz, row| {
            for (nx, mode) in row.iter_mut().enumerate() {
                let k = wave_vector([nx as i64, ny, nz], spacing);
                *mode *= if square(k) > 0.0 { factor(k) } else { Complex::ZERO };
            }
        });
        transform::to_cells(self.communicator, self.cells, modes.density)
    }

    /// Calls `f(n_y, n_z, row)` for every own row of modes along n_x, in parallel.
    fn for_each_row(&mut self, f: impl Fn(i64, i64, &mut [Complex<f64>]) + Sync) {
        let [_, ny, nz] = self.cells;
        let first = transform::rows(self.cells, self.communicator.rank(), self.communicator.size()).start;
        self.density.par_chunks_mut(transform::row_length(self.cells)).enumerate().for_each(|(row, values)| {
            f(signed(first + row / nz, ny), signed(row % nz, nz), values);
        });
    }
}

/// The signed wave number of an index: 0, 1, … n/2, −n/2+1, … −1.
fn signed(index: usize, n: usize) -> i64 {
    if index <= n / 2 { index as i64 } else { index as i64 - n as i64 }
}

fn on_nyquist_plane(n: [i64; 3], cells: [usize; 3]) -> bool {
    (0..3).any(|a| 2 * n[a].unsigned_abs() as usize == cells[a])
}

fn wave_vector(n: [i64; 3], spacing: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|a| n[a] as f64 * spacing[a])
}

fn norm(k: [f64; 3]) -> f64 {
    square(k).sqrt()
}

fn square(k: [f64; 3]) -> f64 {
    k.iter().map(|k| k * k).sum::<f64>()
}

#[cfg(test)]
mod tests;

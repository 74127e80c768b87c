//! Density and growing-mode velocity of a Gaussian random field in linear theory, displacements beyond.
//!
//! Modes are counted by integer wave vectors n, k_a = 2π n_a/L_a, and δ(x) = Σ δ_n e^(ik·x) with ⟨|δ_n|²⟩ = P(k)/V. The
//! origin of x is the corner of the box, and cells are sampled at their centres, so meshes of different resolution show
//! the same field. The mean (n = 0) and the modes of the Nyquist planes (|n_a| = N_a/2, which have no sign and so no
//! velocity) are left out.

mod dealiased;
mod lagrangian;
pub mod noise_file;
mod non_gaussian;
mod second_order;
mod third_order;
pub(crate) mod transform;
mod white_noise;

pub use lagrangian::{Flow, HigherOrders, LPT_ORDERS};
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
        let volume = volume(cells, box_mpc_h);
        Self::drawn(communicator, cells, box_mpc_h, noise, |k| growth * (power.at(k) / volume).sqrt())
    }

    /// White noise times a function of k in h/Mpc.
    fn drawn(
        communicator: &'c Communicator,
        cells: [usize; 3],
        box_mpc_h: f64,
        noise: &WhiteNoise,
        amplitude: impl Fn(f64) -> f64 + Sync,
    ) -> Self {
        let mut modes = Self::zero(communicator, cells, box_mpc_h);
        let spacing = modes.spacing;
        modes.for_each_row(|ny, nz, row| {
            noise.fill(ny, nz, row);
            for (nx, mode) in row.iter_mut().enumerate() {
                let n = [nx as i64, ny, nz];
                if is_left_out(n, cells) {
                    *mode = Complex::ZERO;
                    continue;
                }
                let k = norm(wave_vector(n, spacing));
                // k·x at the centre of the first cell, x = h/2 on each axis: Σ π n_a/N_a
                let centre: f64 = (0..3).map(|a| PI * n[a] as f64 / cells[a] as f64).sum();
                *mode *= Complex::from_polar(amplitude(k), centre);
            }
        });
        modes
    }

    /// The modes of white noise that is given in cells: `growth` √(P(k)/V) times Σ noise e^(−ik·x)/√N. Collective.
    ///
    /// * `noise`: numbers of variance 1 in the cells of the rank's own planes along z, x fastest
    /// * `change`: of the seeds' noise, how each mode is changed; its seed has no effect
    /// * others as of [`LinearModes::new`]
    pub fn of_noise(
        communicator: &'c Communicator,
        cells: [usize; 3],
        box_mpc_h: f64,
        noise: &[f64],
        change: &WhiteNoise,
        power: &LinearPower,
        growth: f64,
    ) -> Self {
        let zero = Self::zero(communicator, cells, box_mpc_h);
        let mut modes = Self { density: transform::to_modes(communicator, cells, noise), ..zero };
        let (spacing, volume) = (modes.spacing, volume(cells, box_mpc_h));
        let count: f64 = cells.iter().map(|&n| n as f64).product();
        modes.for_each_row(|ny, nz, row| {
            for (nx, mode) in row.iter_mut().enumerate() {
                let n = [nx as i64, ny, nz];
                if is_left_out(n, cells) {
                    *mode = Complex::ZERO;
                    continue;
                }
                let amplitude = growth * (power.at(norm(wave_vector(n, spacing))) / volume).sqrt();
                *mode = change.changed(*mode * count.sqrt()) * amplitude;
            }
        });
        modes
    }

    /// White noise of a seed in cells, with variance 1 but for the modes that are left out: in the rank's own planes along z, x
    /// fastest. Collective.
    pub fn noise_in_cells(communicator: &'c Communicator, cells: [usize; 3], noise: &WhiteNoise) -> Vec<f64> {
        let count: f64 = cells.iter().map(|&n| n as f64).product();
        Self::drawn(communicator, cells, 1.0, noise, |_| 1.0 / count.sqrt()).density_contrast()
    }

    /// Modes without amplitude.
    ///
    /// # Panics
    /// If an axis has an odd number of cells: the caller's bug.
    fn zero(communicator: &'c Communicator, cells: [usize; 3], box_mpc_h: f64) -> Self {
        assert!(cells.iter().all(|n| n % 2 == 0), "{cells:?}: an even number of cells on every axis");
        let spacing = lengths(cells, box_mpc_h).map(|length| 2.0 * PI / length);
        let rows = transform::rows(cells, communicator.rank(), communicator.size());
        let density = vec![Complex::ZERO; rows.len() * cells[2] * transform::row_length(cells)];
        Self { communicator, cells, spacing, density }
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
        self.in_cells(self.velocity_modes(axis, rate, 0.0))
    }

    /// The same at the cells' lower corners.
    pub fn velocity_at_corners(&self, axis: usize, rate: f64) -> Vec<f64> {
        self.velocity_before_centres(axis, rate, self.cells[0])
    }

    /// The same half a cell of another mesh, of `cells` along x, before the cell centres on all axes.
    pub fn velocity_before_centres(&self, axis: usize, rate: f64, cells: usize) -> Vec<f64> {
        self.in_cells(self.velocity_modes(axis, rate, self.half_a_cell(cells)))
    }

    /// Modes times i `rate` k_axis/k² at places `before` Mpc/h before the cell centres on all axes.
    fn velocity_modes(&self, axis: usize, rate: f64, before: f64) -> Vec<Complex<f64>> {
        self.multiplied(|k| quarter_turn(rate * k[axis] / square(k), k, before))
    }

    /// Half the width in Mpc/h of a cell of a mesh of `cells` along x.
    fn half_a_cell(&self, cells: usize) -> f64 {
        0.5 * 2.0 * PI / self.spacing[0] / cells as f64
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

    /// The field whose modes are those of δ times a factor of the wave vector. Collective.
    fn derived(&self, factor: impl Fn([f64; 3]) -> Complex<f64> + Sync) -> Vec<f64> {
        self.in_cells(self.multiplied(factor))
    }

    /// Modes of δ times a factor of the wave vector.
    fn multiplied(&self, factor: impl Fn([f64; 3]) -> Complex<f64> + Sync) -> Vec<Complex<f64>> {
        let mut modes = self.clone();
        let spacing = self.spacing;
        modes.for_each_row(|ny, nz, row| {
            for (nx, mode) in row.iter_mut().enumerate() {
                let k = wave_vector([nx as i64, ny, nz], spacing);
                *mode *= if square(k) > 0.0 { factor(k) } else { Complex::ZERO };
            }
        });
        modes.density
    }

    /// The field of modes on this mesh. Collective.
    fn in_cells(&self, modes: Vec<Complex<f64>>) -> Vec<f64> {
        transform::to_cells(self.communicator, self.cells, modes)
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

/// A field at the centres of cells from its values at their lower corners, by its modes below the Nyquist planes. Collective.
///
/// * `corners`: of the rank's own planes along z, x fastest
pub(crate) fn at_centres(communicator: &Communicator, cells: [usize; 3], corners: &[f64]) -> Vec<f64> {
    let half = cells.map(|n| PI / n as f64);
    let density = transform::to_modes(communicator, cells, corners);
    let mut modes = LinearModes { communicator, cells, spacing: [1.0; 3], density };
    modes.for_each_row(|ny, nz, row| {
        for (nx, mode) in row.iter_mut().enumerate() {
            let n = [nx as i64, ny, nz];
            *mode *= if on_nyquist_plane(n, cells) {
                Complex::ZERO
            } else {
                Complex::cis(dot(half, wave_vector(n, [1.0; 3])))
            };
        }
    });
    modes.density_contrast()
}

/// The signed wave number of an index: 0, 1, … n/2, −n/2+1, … −1.
fn signed(index: usize, n: usize) -> i64 {
    if index <= n / 2 { index as i64 } else { index as i64 - n as i64 }
}

/// True for the mean and the modes of the Nyquist planes.
fn is_left_out(n: [i64; 3], cells: [usize; 3]) -> bool {
    n == [0; 3] || on_nyquist_plane(n, cells)
}

fn on_nyquist_plane(n: [i64; 3], cells: [usize; 3]) -> bool {
    (0..3).any(|a| 2 * n[a].unsigned_abs() as usize == cells[a])
}

fn wave_vector(n: [i64; 3], spacing: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|a| n[a] as f64 * spacing[a])
}

fn dot(k: [f64; 3], x: [f64; 3]) -> f64 {
    k[0] * x[0] + k[1] * x[1] + k[2] * x[2]
}

fn norm(k: [f64; 3]) -> f64 {
    square(k).sqrt()
}

fn square(k: [f64; 3]) -> f64 {
    k.iter().map(|k| k * k).sum::<f64>()
}

/// i `size` e^(−ik·x) at x = `before` on all axes.
fn quarter_turn(size: f64, k: [f64; 3], before: f64) -> Complex<f64> {
    if before == 0.0 {
        return Complex::new(0.0, size);
    }
    Complex::from_polar(size, 0.5 * PI - before * k.iter().sum::<f64>())
}

/// Lengths of a box of cubic cells in Mpc/h.
fn lengths(cells: [usize; 3], box_mpc_h: f64) -> [f64; 3] {
    cells.map(|n| box_mpc_h * n as f64 / cells[0] as f64)
}

/// Its volume in (Mpc/h)³.
fn volume(cells: [usize; 3], box_mpc_h: f64) -> f64 {
    lengths(cells, box_mpc_h).iter().product()
}

#[cfg(test)]
mod lagrangian_tests;
#[cfg(test)]
mod tests;

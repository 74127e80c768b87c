//! P(k) of the density contrast on a uniform grid of a stated level: of all matter, the gas, dark matter, or the latter two
//! with each other.
//!
//! Of gas the grid holds cell averages ([`crate::covering_grid`]): δ on the grid is the true δ convolved with one cell, W(k) =
//! Π sinc(k_i h/2), where cells of that level or finer exist. `deconvolve` divides P by W²; coarser cells are smoother
//! than that, and aliases from beyond the grid are not removed. A grid field has no shot noise. Particles are put on the grid
//! by clouds in cells, whose window is W². Their shot noise is V Σm²/(Σm)², V/N of N equal ones, times the square of their
//! share of the matter; on the grid, with its aliases, times Π(1 − ⅔ sin²(k_i h/2)) (Jing 2005, ApJ 620, 559), and over W⁴ where P is
//! deconvolved. Every bin states that mean over its modes, `subtract_shot_noise` takes it away. Gas with dark matter has none.

use crate::covering_grid::{GRID_LIMIT_MIB, cells_within, planes, slab_by};
use crate::error::AnalysisError;
use crate::fourier::forward_by;
use crate::messages::{broadcast, exchange, gather};
use crate::part::{Part, alone};
use crate::table::{Entry, Record, Table};
use bytemuck::{Pod, Zeroable};
use comove_sim::Snapshot;
use comove_sim::kernels::point::particle::Cloud;
use comove_sim::parallel::Communicator;
use ndarray::parallel::prelude::*;
use ndarray::{Array3, Axis};
use rustfft::num_complex::Complex;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How wave numbers are binned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Bins {
    /// Bins as wide as the fundamental k_f = 2π/L of the longest side, centred on its multiples.
    Linear,
    /// Bins evenly in log k from k_f/2 on, this many per factor of ten; empty ones are left out.
    PerDecade(usize),
}

/// Whose power.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Species {
    /// Gas and dark matter together.
    #[default]
    Matter,
    /// Gas.
    Gas,
    /// Dark matter.
    DarkMatter,
    /// Gas with dark matter: Re ⟨δ δ*⟩.
    Cross,
}

/// What a power spectrum is measured on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PowerOptions {
    /// Whose power: `"matter"`, `"gas"`, `"dark_matter"`, or `"cross"` of the latter two.
    pub species: Species,
    /// Level of the grid.
    pub level: usize,
    /// Binning of k.
    pub bins: Bins,
    /// Whether P is divided by the square of the cell's window.
    pub deconvolve: bool,
    /// Whether the Poisson shot noise of the particles is subtracted, bin by bin (column `shot_noise_mpc3_h3`). Particles
    /// that start on a lattice have less of it until they have left the lattice: early spectra become negative.
    pub subtract_shot_noise: bool,
}

impl Default for PowerOptions {
    fn default() -> Self {
        Self { species: Species::Matter, level: 0, bins: Bins::Linear, deconvolve: true, subtract_shot_noise: false }
    }
}

impl PowerOptions {
    /// What can be refused without a snapshot.
    ///
    /// * `gas`, `dark_matter`: whether there are some
    ///
    /// # Errors
    /// [`AnalysisError::Option`] for an option out of its range, or a species that there is not.
    pub fn check(&self, gas: bool, dark_matter: bool) -> Result<(), AnalysisError> {
        if let Bins::PerDecade(n) = self.bins
            && !(1..=200).contains(&n)
        {
            return Err(AnalysisError::option("bins", n, "must lie between 1 and 200 per factor of ten"));
        }
        if !dark_matter && matches!(self.species, Species::DarkMatter | Species::Cross) {
            return Err(AnalysisError::option(
                "species",
                "dark matter",
                "the snapshot has none; use species: \"gas\" or \"matter\"",
            ));
        }
        if !gas && matches!(self.species, Species::Gas | Species::Cross) {
            return Err(AnalysisError::option(
                "species",
                "gas",
                "the snapshot has none; use species: \"dark_matter\" or \"matter\"",
            ));
        }
        let without_noise = match self.species {
            Species::Gas => Some("gas has no shot noise"),
            Species::Cross => Some("gas and dark matter have no shot noise in common"),
            Species::Matter | Species::DarkMatter if !dark_matter => {
                Some("gas has no shot noise, and there are no particles")
            }
            Species::Matter | Species::DarkMatter => None,
        };
        if let Some(reason) = without_noise.filter(|_| self.subtract_shot_noise) {
            return Err(AnalysisError::option("subtract_shot_noise", true, format!("{reason}; leave the option out")));
        }
        Ok(())
    }
}

/// P in a bin of wave numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerBin {
    /// Mean wave number of its modes in h/Mpc.
    pub k_h_mpc: f64,
    /// Mean power in (Mpc/h)³.
    pub power_mpc3_h3: f64,
    /// Modes in the bin; k and −k both count.
    pub modes: u64,
    /// Mean shot noise of its modes in (Mpc/h)³: contained in the power, or subtracted from it; 0 for gas and cross spectra.
    #[serde(default)]
    pub shot_noise_mpc3_h3: f64,
}

/// A power spectrum.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerSpectrum {
    /// Redshift.
    pub redshift: f64,
    /// Options of the stage.
    pub options: PowerOptions,
    /// Cells of the grid along x, y, z.
    pub cells: [usize; 3],
    /// Nyquist wave number of the grid, π/h, in h/Mpc: bins end there.
    pub k_nyquist_h_mpc: f64,
    /// Shot noise of the particles at small wave numbers in (Mpc/h)³; left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shot_noise_mpc3_h3: Option<f64>,
    /// From small k to large.
    pub bins: Vec<PowerBin>,
    /// Linear theory at the wave numbers of the bins in (Mpc/h)³; left out where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linear_mpc3_h3: Vec<f64>,
}

/// P(k) = V ⟨|δ_k|²⟩ with δ_k = (1/N) Σ δ exp(−i k·x), in comoving (Mpc/h)³.
///
/// # Errors
/// [`AnalysisError::GridTooLarge`]; [`AnalysisError::Option`] for bins out of range or an empty box.
pub fn power_spectrum(snapshot: &Snapshot, options: &PowerOptions) -> Result<PowerSpectrum, AnalysisError> {
    power_spectrum_within(snapshot, options, GRID_LIMIT_MIB)
}

/// [`power_spectrum`] with a memory limit of its own for the grid; its transform takes as much again.
pub fn power_spectrum_within(
    snapshot: &Snapshot,
    options: &PowerOptions,
    limit_mib: usize,
) -> Result<PowerSpectrum, AnalysisError> {
    alone(snapshot, |communicator, part| power_spectrum_by(communicator, part, options, limit_mib))
}

/// The same of a snapshot in parts, on the first rank; the memory limit is that of each rank. Collective.
pub fn power_spectrum_by(
    communicator: &Communicator,
    part: &Part,
    options: &PowerOptions,
    limit_mib: usize,
) -> Result<Option<PowerSpectrum>, AnalysisError> {
    let has_particles = part.header().dark_matter.is_some();
    let has_gas = part.header().fields.has_gas();
    options.check(has_gas, has_particles)?;
    let cells = cells_within(part, options.level, limit_mib, communicator.size())?;
    let width = part.snapshot.cell_width(options.level);
    let mut contrasts = Vec::new();
    if has_gas && options.species != Species::DarkMatter {
        let (contrast, mean) =
            contrast(communicator, slab_by(communicator, part, "density", options.level, limit_mib)?)?;
        contrasts.push(Contrast { modes: forward_by(communicator, contrast, cells[2]), mean, cloud: false });
    }
    if has_particles && options.species != Species::Gas {
        let (contrast, mean) = contrast(communicator, particle_slab_by(communicator, part, cells, width)?)?;
        contrasts.push(Contrast { modes: forward_by(communicator, contrast, cells[2]), mean, cloud: true });
    }
    let shot_noise =
        part.header().dark_matter.filter(|_| matches!(options.species, Species::Matter | Species::DarkMatter));
    let all: f64 = contrasts.iter().map(|contrast| contrast.mean).sum();
    let share = contrasts.last().map_or(1.0, |dark_matter| dark_matter.mean / all);
    let volume = cells.iter().product::<usize>() as f64 * width.powi(3);
    let shot_noise = shot_noise.map(|stated| volume / stated.effective_number() * share * share);
    let bins = binned_power(communicator, &contrasts, cells, width, (options, shot_noise.unwrap_or(0.0)));
    Ok(bins.map(|bins| PowerSpectrum {
        redshift: part.header().redshift(),
        options: options.clone(),
        cells,
        k_nyquist_h_mpc: PI / width,
        shot_noise_mpc3_h3: shot_noise,
        bins,
        linear_mpc3_h3: Vec::new(),
    }))
}

/// The contrast of a species on the mesh.
struct Contrast {
    /// δ_k of this rank's planes of k_z.
    modes: Array3<Complex<f64>>,
    /// Mean density.
    mean: f64,
    /// Whether its window is that of clouds in cells.
    cloud: bool,
}

/// δ from a density on this rank's planes, and the mean: collective.
fn contrast(communicator: &Communicator, mut density: Array3<f64>) -> Result<(Array3<f64>, f64), AnalysisError> {
    let mut cells = [density.len() as u64];
    communicator.sum(&mut cells);
    let mean = sum(communicator, &density) / cells[0] as f64;
    if !(mean > 0.0 && mean.is_finite()) {
        return Err(AnalysisError::option("density", mean, "its mean must be positive and finite"));
    }
    density.par_mapv_inplace(|value| value / mean - 1.0);
    Ok((density, mean))
}

/// Particles of a rank in one message.
const SENT: usize = 1 << 22;

/// A particle on its way to the mesh.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Deposited {
    position: [u32; 3],
    /// Mass in units of class 0.
    weight: u32,
}

/// The cloud-in-cell density of all particles on this rank's [`planes`] of a mesh, `[planes, j, i]`: collective.
fn particle_slab_by(
    communicator: &Communicator,
    part: &Part,
    cells: [usize; 3],
    width: f64,
) -> Result<Array3<f64>, AnalysisError> {
    let particles = part.particles()?;
    let stated = part.header().dark_matter.expect("particles have a header");
    let unit = stated.weight_unit();
    let (rank, ranks) = (communicator.rank(), communicator.size());
    let own = planes(cells[2], rank, ranks);
    let weights: Vec<AtomicU64> = (0..own.len() * cells[1] * cells[0]).map(|_| AtomicU64::new(0)).collect();
    let overflow = AtomicBool::new(false);
    let particle = |n: usize| Deposited {
        position: particles.position.each_ref().map(|column| column[n]),
        weight: unit.of(particles.id[n]) as u32,
    };
    let deposit = |Deposited { position, weight: mass }: Deposited| {
        let cloud: [Cloud; 3] = std::array::from_fn(|a| Cloud::with_bits(position[a], cells[a] as u32, unit.bits()));
        for corner in 0..8 {
            let [x, y, z] = std::array::from_fn(|a| cell_of_cloud(&cloud[a], corner >> a & 1, cells[a]));
            let weight: u64 = (0..3).map(|a| u64::from(cloud[a].weights[corner >> a & 1])).product();
            if own.contains(&z) {
                // integers have no order
                let cell = &weights[((z - own.start) * cells[1] + y) * cells[0] + x];
                let weight = u64::from(mass) * weight;
                if cell.fetch_add(weight, Ordering::Relaxed).checked_add(weight).is_none() {
                    overflow.store(true, Ordering::Relaxed);
                }
            }
        }
    };
    if ranks == 1 {
        (0..particles.len()).into_par_iter().for_each(|n| deposit(particle(n)));
    } else {
        let rank_of_plane: Vec<usize> =
            (0..ranks).flat_map(|rank| planes(cells[2], rank, ranks).map(move |_| rank)).collect();
        let most = communicator.max(particles.len() as f64) as usize;
        for first in (0..most).step_by(SENT) {
            let mut to = vec![Vec::new(); ranks];
            for n in first..particles.len().min(first + SENT) {
                let cloud = Cloud::with_bits(particles.position[2][n], cells[2] as u32, unit.bits());
                let [lower, upper] = [0, 1].map(|side| rank_of_plane[cell_of_cloud(&cloud, side, cells[2])]);
                to[lower].push(particle(n));
                if upper != lower {
                    to[upper].push(particle(n));
                }
            }
            exchange(communicator, to).par_iter().flatten().for_each(|&particle| deposit(particle));
        }
    }
    if communicator.any(overflow.into_inner()) {
        let reason = "must be finer: the dark matter of a cell exceeds 64 bits";
        return Err(AnalysisError::option("level", format!("{cells:?} cells"), reason));
    }
    let unit = stated.density_of_weight(width);
    let density = weights.into_par_iter().map(|weight| unit * weight.into_inner() as f64).collect();
    Ok(Array3::from_shape_vec([own.len(), cells[1], cells[0]], density).expect("as many values as cells"))
}

/// The lower (`side` 0) or upper (1) cell of a cloud along a periodic axis.
fn cell_of_cloud(cloud: &Cloud, side: usize, cells: usize) -> usize {
    let cell = i64::from(cloud.cell) + i64::from(cloud.lower) + side as i64;
    cell.rem_euclid(cells as i64) as usize
}

/// The sum over the cells of a mesh, of which each rank has some planes, on all ranks: collective. Eight sums, each of every
/// eighth cell, which one rank takes on from the other.
fn sum(communicator: &Communicator, planes: &Array3<f64>) -> f64 {
    let mut sums = [0.0; 8];
    for rank in 0..communicator.size() {
        if rank == communicator.rank() {
            let cells = planes.as_slice().expect("x is contiguous");
            // a plane has a multiple of 16² cells
            for cells in cells.chunks_exact(sums.len()) {
                sums.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += cell);
            }
        }
        sums = broadcast(communicator, rank, vec![sums])[0];
    }
    (0..4).map(|n| sums[n] + sums[n + 4]).fold(0.0, |all, sum| all + sum)
}

/// Power of contrasts, added by their means or, for [`Species::Cross`], one with the other, on a mesh of cells of this width,
/// up to the Nyquist wave number, on the first rank: collective.
///
/// * `cells`: of the mesh, along x, y, z
/// * `shot_noise`: of the particles, before they are put on the mesh
fn binned_power(
    communicator: &Communicator,
    contrasts: &[Contrast],
    [nx, ny, nz]: [usize; 3],
    width: f64,
    (options, shot_noise): (&PowerOptions, f64),
) -> Option<Vec<PowerBin>> {
    let longest = nx.max(ny).max(nz) as f64 * width;
    let fundamental = 2.0 * PI / longest;
    let nyquist = PI / width * (1.0 + 1e-12);
    let bin_of = |k: f64| match options.bins {
        Bins::Linear => (k / fundamental).round() as usize,
        Bins::PerDecade(n) => ((2.0 * k / fundamental).log10() * n as f64).floor() as usize,
    };
    let count = bin_of(nyquist) + 1;
    let cells = (nx * ny * nz) as f64;
    let norm = width.powi(3) / cells; // V/N² with V = N h³
    let frequency = |n: usize, cells: usize| {
        let signed = if 2 * n > cells { n as f64 - cells as f64 } else { n as f64 };
        2.0 * PI * signed / (cells as f64 * width)
    };
    let sinc = |k: f64| {
        let x = 0.5 * k * width;
        if x == 0.0 { 1.0 } else { x.sin() / x }
    };
    // what aliases add to a cloud's window: Σ W⁴ over all of them
    let aliased = |k: f64| 1.0 - 2.0 / 3.0 * (0.5 * k * width).sin().powi(2);
    // one partial sum a plane of k_z, added in order
    let first = planes(nz, communicator.rank(), communicator.size()).start;
    let all: f64 = contrasts.iter().map(|contrast| contrast.mean).sum();
    let of_planes: Vec<Vec<[f64; 4]>> = (0..contrasts[0].modes.len_of(Axis(0)))
        .into_par_iter()
        .map(|plane| {
            let mut sums = vec![[0.0; 4]; count];
            let kz = frequency(first + plane, nz);
            for ((y, x), first) in contrasts[0].modes.index_axis(Axis(0), plane).indexed_iter() {
                let (ky, kx) = (frequency(y, ny), frequency(x, nx));
                let k = (kx * kx + ky * ky + kz * kz).sqrt();
                if k == 0.0 || k > nyquist {
                    continue;
                }
                let cell = if options.deconvolve { sinc(kx) * sinc(ky) * sinc(kz) } else { 1.0 };
                let window = |contrast: &Contrast| if contrast.cloud { cell * cell } else { cell };
                let amplitude = |contrast: &Contrast| contrast.modes[[plane, y, x]] / window(contrast);
                let noise = shot_noise * aliased(kx) * aliased(ky) * aliased(kz) / cell.powi(4);
                let power = match contrasts {
                    [one] => first.norm_sqr() / window(one).powi(2),
                    [gas, dark] if options.species == Species::Cross => (amplitude(gas) * amplitude(dark).conj()).re,
                    all_of_them => {
                        let parts = all_of_them.iter().map(|contrast| amplitude(contrast) * (contrast.mean / all));
                        parts.sum::<Complex<f64>>().norm_sqr()
                    }
                };
                // the half with k_x < 0 is the conjugate of the one with k_x > 0
                let twice = if x == 0 || 2 * x == nx { 1.0 } else { 2.0 };
                let sum = &mut sums[bin_of(k)];
                sum[0] += twice;
                sum[1] += twice * k;
                sum[2] += twice * norm * power;
                sum[3] += twice * noise;
            }
            sums
        })
        .collect();
    let mut total = vec![[0.0; 4]; count];
    for plane in gather(communicator, of_planes.concat())?.concat().chunks_exact(count) {
        for (sum, part) in total.iter_mut().zip(plane) {
            (0..4).for_each(|n| sum[n] += part[n]);
        }
    }
    let filled = total.into_iter().filter(|sum| sum[0] > 0.0);
    let bin = |[n, k, power, noise]: [f64; 4]| {
        let (power, shot_noise_mpc3_h3) = (power / n, noise / n);
        let power_mpc3_h3 = if options.subtract_shot_noise { power - shot_noise_mpc3_h3 } else { power };
        PowerBin { k_h_mpc: k / n, power_mpc3_h3, modes: n as u64, shot_noise_mpc3_h3 }
    };
    Some(filled.map(bin).collect())
}

impl Record for PowerSpectrum {
    fn table(&self) -> Table {
        let linear = (!self.linear_mpc3_h3.is_empty()).then_some("linear_mpc3_h3");
        let columns = ["k_h_mpc", "power_mpc3_h3", "modes", "k_nyquist_h_mpc", "shot_noise_mpc3_h3"];
        let mut table = Table::new(columns.into_iter().chain(linear));
        for (n, bin) in self.bins.iter().enumerate() {
            let [k, power, noise] = [bin.k_h_mpc, bin.power_mpc3_h3, bin.shot_noise_mpc3_h3].map(Entry::from);
            let measured = [k, power, bin.modes.into(), self.k_nyquist_h_mpc.into(), noise];
            let linear = self.linear_mpc3_h3.get(n).map(|power| (*power).into());
            table.push(measured.into_iter().chain(linear).collect());
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{Fixture, gas, heavy_and_light, random_particles, with_particles};
    use comove_sim::HostParticles;

    /// Mean of cos(k·x + phase) over a cell of width h at x is Π sinc(k_i h/2) times its value at the centre; the
    /// planted spectrum is P = V A²/4 for each of ±k.
    #[test]
    fn a_planted_spectrum_comes_back() {
        // wave vectors in units of 2π/L: shells up to three quarters of the Nyquist wave number, several a bin
        let waves: Vec<([i32; 3], f64)> = (0..40)
            .map(|n: i32| {
                let vector = [n % 7 - 3, (n * 5) % 11 - 5, (n * 3) % 9 + 1];
                (vector, 1e-3 * (1.0 + 0.1 * f64::from(n % 4)))
            })
            .collect();
        let planted = waves.clone();
        let mut fixture = Fixture::new(move |x| {
            let h = 50.0 / 32.0;
            let wave = |&([a, b, c], amplitude): &([i32; 3], f64)| {
                let k = [a, b, c].map(|n| 2.0 * PI * f64::from(n) / 50.0);
                let window: f64 =
                    k.iter().map(|k| if *k == 0.0 { 1.0 } else { (0.5 * k * h).sin() / (0.5 * k * h) }).product();
                let phase = f64::from(a + 3 * b + 7 * c);
                amplitude * window * (k[0] * x[0] + k[1] * x[1] + k[2] * x[2] + phase).cos()
            };
            gas(1.0 + planted.iter().map(wave).sum::<f64>(), [0.0; 3], 1.0)
        });
        fixture.box_length = 50.0;
        let spectrum = power_spectrum(&fixture.build(), &PowerOptions::default()).unwrap();
        assert!((spectrum.k_nyquist_h_mpc - PI * 32.0 / 50.0).abs() < 1e-12);
        let volume = 50f64.powi(3);
        for (n, bin) in spectrum.bins.iter().enumerate() {
            let in_bin =
                |v: &[i32; 3]| (v.iter().map(|c| f64::from(c * c)).sum::<f64>()).sqrt().round() as usize == n + 1;
            let expected: f64 = waves.iter().filter(|(v, _)| in_bin(v)).map(|(_, a)| 2.0 * volume * a * a / 4.0).sum();
            let found = bin.power_mpc3_h3 * bin.modes as f64;
            assert!((found - expected).abs() <= 1e-9 * expected + 1e-12, "bin {n}: {found} {expected}");
        }
        // all modes of the sphere |k| ≤ k_Nyquist, without k = 0
        let sphere = (0..33 * 33 * 33)
            .map(|s| [s % 33, s / 33 % 33, s / 1089].map(|c| c - 16))
            .filter(|v| v.iter().map(|c| c * c).sum::<i32>() <= 256 && !v.contains(&-16) && *v != [0; 3])
            .count();
        assert_eq!(spectrum.bins.iter().map(|b| b.modes).sum::<u64>() as usize, sphere);
    }

    /// A steep spectrum sampled by true cell averages (8³ points a cell) comes back within 1% up to half the Nyquist
    /// wave number with the window taken out, and not without; bins in log k agree with linear ones.
    #[test]
    fn the_window_of_a_cell_is_taken_out() {
        let mut fixture = Fixture::new(|x| {
            let wave = |n: f64| 0.01 * (2.0 * PI * n * (x[0] + x[1]) / 50.0).cos();
            gas(1.0 + wave(2.0) + wave(4.0) + wave(5.0), [0.0; 3], 1.0)
        });
        (fixture.box_length, fixture.samples) = (50.0, 8);
        fixture.root = [1; 3];
        let snapshot = fixture.build();
        let total = |options: &PowerOptions, lowest: f64| -> f64 {
            let spectrum = power_spectrum(&snapshot, options).unwrap();
            spectrum.bins.iter().filter(|b| b.k_h_mpc > lowest).map(|b| b.power_mpc3_h3 * b.modes as f64).sum()
        };
        let one = 50f64.powi(3) * 1e-4 / 2.0;
        let linear = PowerOptions::default();
        assert!((total(&linear, 0.0) / (3.0 * one) - 1.0).abs() < 0.01, "{}", total(&linear, 0.0) / one);
        assert!(total(&PowerOptions { deconvolve: false, ..linear.clone() }, 0.7) < 0.7 * total(&linear, 0.7));
        let log = PowerOptions { bins: Bins::PerDecade(10), ..linear.clone() };
        assert!((total(&log, 0.0) / total(&linear, 0.0) - 1.0).abs() < 1e-12);
    }

    /// In a box of 1 × ½ × ¼ the waves of the fixture, one period long on each axis, have 1, 2 and 4 times the
    /// fundamental of the longest axis, and their power in the volume of the box.
    #[test]
    fn waves_in_an_uneven_box() {
        let mut fixture = Fixture::long();
        (fixture.max_level, fixture.samples) = (0, 4);
        let spectrum = power_spectrum(&fixture.build(), &PowerOptions::default()).unwrap();
        let power = |n: usize| {
            let bin = spectrum.bins.iter().find(|bin| (bin.k_h_mpc / (2.0 * PI) - n as f64).abs() < 0.4).unwrap();
            bin.power_mpc3_h3 * bin.modes as f64
        };
        // amplitude 0.3 of a mean of 2, modes k and −k
        let one = 0.125 * 0.15f64.powi(2) / 2.0;
        for n in [1, 2, 4] {
            assert!((power(n) / one - 1.0).abs() < 0.01, "{n}: {} {one}", power(n));
        }
        let rest: f64 = spectrum.bins.iter().map(|bin| bin.power_mpc3_h3 * bin.modes as f64).sum();
        assert!((rest / (3.0 * one) - 1.0).abs() < 0.01);
    }

    /// A wave in gas, and the same with half the amplitude in particles: each has its power, and all matter that of the mean.
    #[test]
    fn species_have_their_power() {
        let (amplitude, length, n) = (0.02, 50.0, 48usize);
        let wave = 2.0 * PI * 2.0 / length;
        let mut fixture = Fixture::new(move |x| gas(0.2 * (1.0 + amplitude * (wave * x[0]).cos()), [0.0; 3], 1.0));
        (fixture.box_length, fixture.samples, fixture.root) = (length, 4, [1; 3]);
        let mut snapshot = fixture.build();
        let mass = 0.8 * length.powi(3) / n.pow(3) as f64;
        let mut particles = HostParticles { particle_mass: mass, ..HostParticles::default() };
        for m in 0..n.pow(3) {
            let [i, j, k] = [m % n, m / n % n, m / (n * n)].map(|c| c as f64 / n as f64 * length);
            let x = i - 0.5 * amplitude / wave * (wave * i).sin();
            for (axis, x) in [x.rem_euclid(length), j, k].into_iter().enumerate() {
                particles.position[axis].push(HostParticles::fraction(x, length).unwrap());
                particles.velocity[axis].push(0.0);
            }
            particles.id.push(m as u64);
        }
        snapshot.header.dark_matter = Some(particles.header());
        snapshot.state.particles = Some(particles);
        let power = |species: Species| {
            let spectrum = power_spectrum(&snapshot, &PowerOptions { species, ..PowerOptions::default() }).unwrap();
            let bin = spectrum.bins[1];
            (bin.power_mpc3_h3 * bin.modes as f64 / length.powi(3) * 2.0, spectrum.shot_noise_mpc3_h3)
        };
        let close = |found: f64, amplitude: f64| assert!((found / amplitude.powi(2) - 1.0).abs() < 0.02, "{found}");
        close(power(Species::Gas).0, amplitude);
        close(power(Species::DarkMatter).0, 0.5 * amplitude);
        close(power(Species::Cross).0, 0.5f64.sqrt() * amplitude);
        close(power(Species::Matter).0, (0.2 + 0.8 * 0.5) * amplitude);
        let noise = length.powi(3) / n.pow(3) as f64;
        assert_eq!((power(Species::DarkMatter).1, power(Species::Gas).1), (Some(noise), None));
        assert!((power(Species::Matter).1.unwrap() / (0.64 * noise) - 1.0).abs() < 1e-6);
        snapshot.header.dark_matter = None;
        let options = PowerOptions { species: Species::DarkMatter, ..PowerOptions::default() };
        assert!(
            power_spectrum(&snapshot, &options).unwrap_err().to_string().contains("dark matter: the snapshot has none")
        );
    }

    /// A particle of class 1 has the power of eight of class 0 at its place; shot noise is that of unequal masses.
    #[test]
    fn heavy_particles_count_by_their_mass() {
        let both = heavy_and_light(random_particles(999, [1.0; 3], 6));
        let options = PowerOptions { species: Species::DarkMatter, ..PowerOptions::default() };
        let [heavy, light] = both
            .map(|particles| with_particles(Fixture::uniform(1.0).build(), particles))
            .map(|snapshot| power_spectrum(&snapshot, &options).unwrap());
        for (heavy, light) in heavy.bins.iter().zip(&light.bins) {
            assert_eq!((heavy.power_mpc3_h3, heavy.modes), (light.power_mpc3_h3, light.modes));
        }
        // 666 particles of mass 1, 333 of mass 8
        let noise = (666.0 + 333.0 * 64.0) / f64::powi(666.0 + 333.0 * 8.0, 2);
        assert!((heavy.shot_noise_mpc3_h3.unwrap() / noise - 1.0).abs() < 1e-12);
    }

    /// Random particles have the power of their shot noise in every bin up to the Nyquist wave number, deconvolved or not;
    /// subtracted, nothing remains, and beside smooth gas their share counts.
    #[test]
    fn random_particles_have_their_shot_noise_alone() {
        let count = 40_000;
        let mut snapshot = with_particles(Fixture::uniform(1.0).build(), random_particles(count, [1.0; 3], 5));
        // a third of the matter is gas
        let particles = snapshot.state.particles.as_mut().unwrap();
        particles.particle_mass = 2.0 / count as f64;
        snapshot.header.dark_matter = Some(particles.header());
        for (species, share) in [(Species::DarkMatter, 1.0f64), (Species::Matter, 2.0 / 3.0)] {
            for deconvolve in [true, false] {
                let options = PowerOptions { species, deconvolve, ..PowerOptions::default() };
                let with = power_spectrum(&snapshot, &options).unwrap();
                let subtracted = PowerOptions { subtract_shot_noise: true, ..options };
                let without = power_spectrum(&snapshot, &subtracted).unwrap();
                let noise = share.powi(2) / count as f64;
                assert!((with.shot_noise_mpc3_h3.unwrap() / noise - 1.0).abs() < 1e-12);
                assert_eq!(with.shot_noise_mpc3_h3, without.shot_noise_mpc3_h3);
                let mut chi2 = 0.0;
                for (bin, rest) in with.bins.iter().zip(&without.bins) {
                    let stated = bin.shot_noise_mpc3_h3;
                    assert_eq!((rest.shot_noise_mpc3_h3, rest.power_mpc3_h3), (stated, bin.power_mpc3_h3 - stated));
                    // k and −k are one mode; within a bin the noise of modes differs by up to two
                    let error = stated * (2.0 / bin.modes as f64).sqrt();
                    assert!(rest.power_mpc3_h3.abs() < 4.5 * error, "{species:?} {deconvolve}: {bin:?}");
                    chi2 += (rest.power_mpc3_h3 / error).powi(2) / with.bins.len() as f64;
                }
                assert!((0.3..2.2).contains(&chi2), "{species:?} {deconvolve}: {chi2}");
                let first = with.bins[0].shot_noise_mpc3_h3;
                assert!((first / noise - 1.0).abs() < 0.02, "{first} {noise}");
                // an end of the grid without its aliases would be far off
                let last = with.bins.last().unwrap().shot_noise_mpc3_h3;
                assert!(if deconvolve { last > 1.2 * noise } else { last < 0.6 * noise }, "{last} {noise}");
                let table = without.table();
                assert_eq!(table.columns.last().map(String::as_str), Some("shot_noise_mpc3_h3"));
            }
        }
        let gas =
            power_spectrum(&snapshot, &PowerOptions { species: Species::Gas, ..PowerOptions::default() }).unwrap();
        assert!(gas.bins.iter().all(|bin| bin.shot_noise_mpc3_h3 == 0.0));
    }

    /// There is nothing to subtract from gas, nor from gas with dark matter.
    #[test]
    fn shot_noise_of_gas_is_not_subtracted() {
        for (species, dark_matter, part) in [
            (Species::Gas, true, "gas has no shot noise"),
            (Species::Cross, true, "gas and dark matter have no shot noise in common"),
            (Species::Matter, false, "there are no particles"),
        ] {
            let options = PowerOptions { species, subtract_shot_noise: true, ..PowerOptions::default() };
            let error = options.check(true, dark_matter).unwrap_err().to_string();
            assert!(error.contains("subtract_shot_noise = true") && error.contains(part), "{error}");
        }
        let options = PowerOptions { subtract_shot_noise: true, ..PowerOptions::default() };
        assert!(options.check(true, true).is_ok() && options.check(false, true).is_ok());
    }

    /// The grid of a coarser level keeps large-scale power of a refined snapshot.
    #[test]
    fn levels_agree_on_large_scales() {
        let mut fixture = Fixture::new(|x| gas(1.0 + 0.1 * (2.0 * PI * x[0]).sin(), [0.0; 3], 1.0));
        fixture.max_level = 1;
        (fixture.root, fixture.samples) = ([1; 3], 2);
        fixture.refine = Box::new(|_, x, _| x[1] < 0.5);
        let snapshot = fixture.build();
        for level in 0..2 {
            let spectrum = power_spectrum(&snapshot, &PowerOptions { level, ..PowerOptions::default() }).unwrap();
            let bin = spectrum.bins[0];
            // half the box is piecewise constant on the finer grid: its window is that of the coarser cells
            assert!((bin.power_mpc3_h3 * bin.modes as f64 / (0.01 / 2.0) - 1.0).abs() < 0.02, "{level} {bin:?}");
        }
    }
}

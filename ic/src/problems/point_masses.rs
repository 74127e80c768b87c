//! The forces between two point masses on refined meshes (paper, section 4.4): a test of the Poisson solver alone, not a
//! run.
//!
//! A pair keeps its orientation, its place relative to the cells and its separation in finest cells when levels are
//! added, so the finest cell is the only length, and the force times the square of the finest cell should be what the
//! root level alone gives. The box is periodic: the pull of the images comes off by Ewald's sums.

use super::ewald::image_force;
use super::particle_mesh::ParticleMesh;
use crate::error::IcError;
use comove_sim::kernels::layout::GROUP;
use comove_sim::kernels::{Device, Real};
use comove_sim::{Precision, RunParameters, SimError};
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;

/// Pairs of unit masses at random places in random orientations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PointMasses {
    /// Root cells along each axis.
    pub root: usize,
    /// Number of pairs.
    pub pairs: usize,
    /// Smallest and largest separation, finest cells; the pairs are spread evenly between their logarithms.
    pub separations: [f64; 2],
    /// Bins between them, equally wide in the logarithm.
    pub bins: usize,
    /// Chooses places and orientations.
    pub seed: u64,
}

impl Default for PointMasses {
    fn default() -> Self {
        Self { root: 32, pairs: 200, separations: [0.3, 16.0], bins: 8, seed: 1 }
    }
}

/// The force on one mass of a pair, along the line to the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForceSample {
    /// Finest cells.
    pub separation: f64,
    /// Over Newton's 1/r².
    pub to_newton: f64,
    /// Over the force of the root level alone at the same separation in its cells, rescaled.
    pub to_root: f64,
}

/// The samples of one range of separations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForceBin {
    /// Geometric mean of the bin's ends, finest cells.
    pub separation: f64,
    /// Samples: two a pair.
    pub count: usize,
    /// Mean of [`ForceSample::to_root`].
    pub mean: f64,
    /// Its standard deviation.
    pub rms: f64,
}

/// Forces with one number of levels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForceTable {
    /// Refinement levels.
    pub levels: u8,
    /// Two a pair, by separation.
    pub samples: Vec<ForceSample>,
    /// Bins that have samples, by separation.
    pub bins: Vec<ForceBin>,
}

/// A pair, apart from the finest cell's width.
struct Pair {
    /// Where in the box, in [0, 1).
    region: [f64; 3],
    /// Of the first mass from its cell's lower corner, in cells.
    offset: [f64; 3],
    /// From the first mass to the second, a unit vector.
    direction: [f64; 3],
    /// Finest cells.
    separation: f64,
}

impl PointMasses {
    /// Measures the forces with `levels` refinement levels and without, with the solver of `parameters` (its precision,
    /// `group_solver`, `sor_tolerance`, `sibling_steps`, `mass_sheet` and `flag_buffer`; the rest is not used).
    ///
    /// # Errors
    /// [`IcError::Parameter`] for options that make no pairs, [`IcError::Sim`] where the mesh does not fit.
    pub fn force_test(&self, levels: u8, parameters: &RunParameters) -> Result<ForceTable, IcError> {
        self.check()?;
        parameters.check()?;
        let measure = match parameters.precision {
            Precision::Single => Self::samples::<f32>,
            Precision::Double => Self::samples::<f64>,
        };
        let samples: Vec<[ForceSample; 2]> = self
            .draw()
            .par_iter()
            .map(|pair| measure(self, pair, levels, parameters))
            .collect::<Result<_, SimError>>()?;
        let samples = samples.into_iter().flatten().collect::<Vec<_>>();
        let bins = (0..self.bins).filter_map(|bin| self.bin(bin, &samples)).collect();
        Ok(ForceTable { levels, samples, bins })
    }

    fn check(&self) -> Result<(), IcError> {
        let check = |name, value: String, good: bool, reason: String| {
            if good { Ok(()) } else { Err(IcError::Parameter { name, value, reason }) }
        };
        let root = self.root > 0 && self.root.is_multiple_of(GROUP);
        check("root", self.root.to_string(), root, format!("must be a multiple of {GROUP} cells"))?;
        check("pairs", self.pairs.to_string(), self.pairs > 0, "must be at least 1".into())?;
        check("bins", self.bins.to_string(), self.bins > 0, "must be at least 1".into())?;
        let [from, to] = self.separations;
        let half = 0.5 * self.root as f64;
        let good = from > 0.0 && from < to && to <= half;
        let reason = format!("must rise from above 0 to at most {half}, half the root level");
        check("separations", format!("{:?}", self.separations), good, reason)
    }

    fn draw(&self) -> Vec<Pair> {
        let mut generator = ChaCha12Rng::seed_from_u64(self.seed);
        let mut unit = || (generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        let [from, to] = self.separations;
        (0..self.pairs)
            .map(|n| {
                let (region, offset) = ([unit(), unit(), unit()], [unit(), unit(), unit()]);
                let (z, azimuth) = (2.0 * unit() - 1.0, TAU * unit());
                let across = (1.0 - z * z).sqrt();
                let direction = [across * azimuth.cos(), across * azimuth.sin(), z];
                let separation = from * (to / from).powf((n as f64 + 0.5) / self.pairs as f64);
                Pair { region, offset, direction, separation }
            })
            .collect()
    }

    /// The forces on both masses of a pair.
    fn samples<T: Real>(
        &self,
        pair: &Pair,
        levels: u8,
        parameters: &RunParameters,
    ) -> Result<[ForceSample; 2], SimError> {
        let forces = self.forces::<T>(pair, levels, parameters)?;
        let root = if levels == 0 { forces } else { self.forces::<T>(pair, 0, parameters)? };
        Ok([0, 1].map(|mass| ForceSample {
            separation: pair.separation,
            to_newton: forces[mass] * pair.separation.powi(2),
            to_root: forces[mass] / root[mass],
        }))
    }

    /// The pull of each mass of a pair on the other along the line between them, times the square of the finest cell.
    fn forces<T: Real>(&self, pair: &Pair, levels: u8, parameters: &RunParameters) -> Result<[f64; 2], SimError> {
        let cells = (self.root << levels) as f64;
        let apart = pair.direction.map(|n| n * pair.separation / cells);
        let first: [f64; 3] =
            std::array::from_fn(|axis| ((pair.region[axis] * cells).floor() + pair.offset[axis]) / cells);
        let second = std::array::from_fn(|axis| (first[axis] + apart[axis]).rem_euclid(1.0));
        let positions = [first, second];
        let root = (self.root / GROUP) as u32;
        // pairs are solved side by side, each on one thread
        let mesh = ParticleMesh::<T>::new(Device::cpu(1)?, root, levels, &positions, parameters)?;
        let accelerations = mesh.accelerations(&positions)?;
        let images = image_force(apart); // on the second mass; the first feels the opposite
        let along = |v: [f64; 3]| (0..3).map(|axis| v[axis] * pair.direction[axis]).sum::<f64>();
        let image = along(images);
        Ok([along(accelerations[0]) + image, image - along(accelerations[1])].map(|force| force / (cells * cells)))
    }

    /// Mean and scatter of the samples of a bin; `None` without samples.
    fn bin(&self, bin: usize, samples: &[ForceSample]) -> Option<ForceBin> {
        let [from, to] = self.separations;
        let end = |n: f64| from * (to / from).powf(n / self.bins as f64);
        let place = |s: &ForceSample| (s.separation / from).ln() / (to / from).ln() * self.bins as f64;
        let ratios: Vec<f64> = samples.iter().filter(|s| place(s) as usize == bin).map(|s| s.to_root).collect();
        let count = ratios.len();
        let mean = ratios.iter().sum::<f64>() / count as f64;
        let variance = ratios.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / count as f64;
        (count > 0).then(|| ForceBin { separation: end(bin as f64 + 0.5), count, mean, rms: variance.sqrt() })
    }
}

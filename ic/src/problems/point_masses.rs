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
use serde::{Deserialize, Serialize};
use std::f64::consts::TAU;
use std::num::NonZero;

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

/// Cells along an axis of the finest level that keys can count (see [`comove_sim::Key`]).
const FINEST: f64 = (GROUP << 21) as f64;
/// Bins, which are looked at one by one.
const MOST_BINS: usize = 1000;
/// Bytes of the fields and buffers of a root cell, for each pair that is measured at the same time. Measured as peak memory
/// at 128³ and 192³ root cells in double precision: 152 and 153.
const BYTES_PER_CELL: f64 = 160.0;
/// The same of a refinement level, around two masses with the widest `flag_buffer`. Measured up to 8 levels: 13 MB.
const BYTES_PER_LEVEL: f64 = 1.6e7;
/// Bytes of a pair and its samples, and of what is written of them.
const BYTES_PER_PAIR: f64 = 1000.0;

/// The force on one mass of a pair, along the line to the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForceSample {
    /// Separation of the pair in finest cells.
    pub separation: f64,
    /// Force of the other mass over Newton's 1/r².
    pub to_newton: f64,
    /// Force of the other mass over that of the root level alone at the same separation in its cells, rescaled.
    pub to_root: f64,
    /// Force with that of the mass on itself over the force of the root level alone.
    pub felt_to_root: f64,
}

/// The samples of one range of separations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForceBin {
    /// Geometric mean of the bin's ends, finest cells.
    pub separation: f64,
    /// Samples: two a pair.
    pub count: usize,
    /// Force of the other mass over that of the root level alone.
    pub to_root: Spread,
    /// Force with that of the mass on itself over the force of the root level alone.
    pub felt_to_root: Spread,
}

/// What samples have in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Mean.
    pub mean: f64,
    /// Standard deviation.
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

/// What pulls a mass towards the other.
#[derive(Clone, Copy, Default)]
struct Force {
    /// The other one, without its images.
    pull: f64,
    /// Itself, through the mesh.
    own: f64,
}

impl PointMasses {
    /// Measures the forces with `levels` refinement levels and without, with the solver of `parameters` (its precision,
    /// `poisson_cycles`, `sheet_passes` and `flag_buffer`; the rest is not used). `None` if
    /// `is_over`, which is asked before each pair, has said so.
    ///
    /// # Errors
    /// [`IcError::Parameter`] for options that make no pairs, [`IcError::Sim`] where the mesh does not fit.
    pub fn force_test(
        &self,
        levels: u8,
        parameters: &RunParameters,
        is_over: impl Fn() -> bool + Sync,
    ) -> Result<Option<ForceTable>, IcError> {
        self.check(levels)?;
        parameters.check()?;
        let measure = match parameters.precision {
            Precision::Single => Self::samples::<f32>,
            Precision::Double => Self::samples::<f64>,
        };
        let samples = self.on_all_cores(|pair, device| {
            let wanted = (!is_over()).then(|| measure(self, pair, levels, parameters, device));
            wanted.transpose()
        })?;
        let Some(samples) = samples else { return Ok(None) };
        let bins = (0..self.bins).filter_map(|bin| self.bin(bin, &samples)).collect();
        Ok(Some(ForceTable { levels, samples, bins }))
    }

    /// Bytes that this takes, about.
    pub fn bytes(&self, levels: u8) -> f64 {
        let mesh = BYTES_PER_CELL * (self.root as f64).powi(3) + BYTES_PER_LEVEL * f64::from(levels);
        mesh * cores().min(self.pairs) as f64 + BYTES_PER_PAIR * self.pairs as f64
    }

    /// Both samples of every pair in order, `None` if one is; by a thread for each core with a device of its own: a mesh
    /// around two masses is too small to share.
    fn on_all_cores(
        &self,
        measure: impl Fn(&Pair, &Device) -> Result<Option<[ForceSample; 2]>, SimError> + Sync,
    ) -> Result<Option<Vec<ForceSample>>, SimError> {
        let pairs = self.draw();
        let share = &|pairs: &[Pair]| {
            let device = Device::cpu(1)?;
            pairs.iter().map(|pair| measure(pair, &device)).collect::<Result<Option<Vec<_>>, SimError>>()
        };
        let shares: Result<Option<Vec<_>>, SimError> = std::thread::scope(|scope| {
            let chunks = pairs.chunks(pairs.len().div_ceil(cores()));
            let threads: Vec<_> = chunks.map(|pairs| scope.spawn(move || share(pairs))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic in a measurement")).collect()
        });
        Ok(shares?.map(|shares| shares.into_iter().flatten().flatten().collect()))
    }

    /// Checks the options.
    ///
    /// * `levels`: of refinement
    ///
    /// # Errors
    /// [`IcError::Parameter`] for a number out of range.
    pub fn check(&self, levels: u8) -> Result<(), IcError> {
        let check = |name, value: String, good: bool, reason: String| {
            if good { Ok(()) } else { Err(IcError::Parameter { name, value, reason }) }
        };
        let root = self.root > 0 && self.root.is_multiple_of(GROUP);
        check("root", self.root.to_string(), root, format!("must be a multiple of {GROUP} cells"))?;
        let finest = self.root as f64 * 2f64.powi(levels.into());
        let reason = format!("with {} root cells the finest level may have {FINEST} along each axis", self.root);
        check("levels", levels.to_string(), finest <= FINEST, reason)?;
        check("pairs", self.pairs.to_string(), self.pairs > 0, "must be at least 1".into())?;
        let reason = format!("must lie between 1 and {MOST_BINS}");
        check("bins", self.bins.to_string(), (1..=MOST_BINS).contains(&self.bins), reason)?;
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
        device: &Device,
    ) -> Result<[ForceSample; 2], SimError> {
        let forces = self.forces::<T>(pair, levels, parameters, device)?;
        let root = if levels == 0 { forces } else { self.forces::<T>(pair, 0, parameters, device)? };
        Ok([0, 1].map(|mass| ForceSample {
            separation: pair.separation,
            to_newton: forces[mass].pull * pair.separation.powi(2),
            to_root: forces[mass].pull / root[mass].pull,
            felt_to_root: (forces[mass].pull + forces[mass].own) / (root[mass].pull + root[mass].own),
        }))
    }

    /// The forces on each mass of a pair, times the square of the finest cell.
    fn forces<T: Real>(
        &self,
        pair: &Pair,
        levels: u8,
        parameters: &RunParameters,
        device: &Device,
    ) -> Result<[Force; 2], SimError> {
        let cells = (self.root << levels) as f64;
        let apart = pair.direction.map(|n| n * pair.separation / cells);
        let first: [f64; 3] =
            std::array::from_fn(|axis| ((pair.region[axis] * cells).floor() + pair.offset[axis]) / cells);
        let second = std::array::from_fn(|axis| (first[axis] + apart[axis]).rem_euclid(1.0));
        let positions = [first, second];
        let root = (self.root / GROUP) as u32;
        let mut mesh = ParticleMesh::<T>::new(device.clone(), root, levels, &positions, parameters)?;
        let images = image_force(apart); // on the second mass; the first feels the opposite
        let along = |v: [f64; 3]| (0..3).map(|axis| v[axis] * pair.direction[axis]).sum::<f64>();
        let mut forces = [Force::default(); 2];
        // towards the other: along the direction for the first mass, against it for the second
        for (source, sign) in [(0, -1.0), (1, 1.0)] {
            mesh.solve(positions[source])?;
            let accelerations = mesh.accelerations(&positions)?.into_iter().map(along).collect::<Vec<_>>();
            let target = 1 - source;
            forces[target].pull = (sign * accelerations[target] + along(images)) / (cells * cells);
            forces[source].own = -sign * accelerations[source] / (cells * cells);
        }
        Ok(forces)
    }

    /// Mean and scatter of the samples of a bin; `None` without samples.
    fn bin(&self, bin: usize, samples: &[ForceSample]) -> Option<ForceBin> {
        let [from, to] = self.separations;
        let end = |n: f64| from * (to / from).powf(n / self.bins as f64);
        let place = |s: &ForceSample| (s.separation / from).ln() / (to / from).ln() * self.bins as f64;
        let inside: Vec<&ForceSample> = samples.iter().filter(|s| place(s) as usize == bin).collect();
        let spread = |ratio: fn(&ForceSample) -> f64| {
            let mean = |f: &dyn Fn(f64) -> f64| inside.iter().map(|s| f(ratio(s))).sum::<f64>() / inside.len() as f64;
            let centre = mean(&|r| r);
            Spread { mean: centre, rms: mean(&|r| (r - centre).powi(2)).sqrt() }
        };
        (!inside.is_empty()).then(|| ForceBin {
            separation: end(bin as f64 + 0.5),
            count: inside.len(),
            to_root: spread(|s| s.to_root),
            felt_to_root: spread(|s| s.felt_to_root),
        })
    }
}

/// Pairs that are measured at the same time, at most.
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(test: &PointMasses, levels: u8, parameters: &RunParameters) -> ForceTable {
        test.force_test(levels, parameters, || false).unwrap().expect("nobody stops it")
    }

    /// Largest deviation of a bin's mean from 1 and largest scatter.
    fn worst(table: &ForceTable) -> [f64; 2] {
        let largest = |f: fn(&ForceBin) -> f64| table.bins.iter().map(f).fold(0.0, f64::max);
        [largest(|b| (b.to_root.mean - 1.0).abs()), largest(|b| b.to_root.rms)]
    }

    /// Two levels: means within half a percent and a scatter of 1% (measured: 3.4e-3 and 9.0e-3; paper at six levels:
    /// 3.6e-2 and 2.9e-2), at least three times as much without sheets and cycles (9.0e-2 and 0.12).
    #[test]
    fn two_levels_have_the_forces_of_the_root_level() {
        let test = PointMasses { pairs: 24, bins: 3, ..PointMasses::default() };
        let double = RunParameters {
            precision: Precision::Double,
            flag_buffer: 0,
            poisson_cycles: Some(4),
            ..RunParameters::default()
        };
        let [mean, rms] = worst(&measured(&test, 2, &double));
        assert!(mean < 5e-3 && rms < 1e-2, "{mean:e} {rms:e}");
        let uncorrected = RunParameters { poisson_cycles: Some(0), sheet_passes: 0, ..double };
        let [far_mean, far_rms] = worst(&measured(&test, 2, &uncorrected));
        assert!(far_mean > 3.0 * mean && far_rms > 3.0 * rms, "{far_mean:e} {far_rms:e}");
    }

    /// On the root level alone forces are Newton's beyond three cells, within what the cells' shape leaves (6.5% here).
    #[test]
    fn the_root_level_has_newtons_forces() {
        let test = PointMasses { pairs: 24, ..PointMasses::default() };
        let double = RunParameters { precision: Precision::Double, ..RunParameters::default() };
        for sample in measured(&test, 0, &double).samples {
            assert!(sample.to_root == 1.0 && sample.felt_to_root == 1.0);
            let newton = sample.to_newton;
            assert!(sample.separation < 3.0 || (newton - 1.0).abs() < 0.065, "{sample:?}");
            assert!(sample.separation > 1.0 || newton < 0.45, "{sample:?}: softened below a cell");
        }
    }

    #[test]
    fn options_that_make_no_pairs_are_refused() {
        let with_levels = |test: PointMasses, levels| {
            test.force_test(levels, &RunParameters::default(), || false).unwrap_err().to_string()
        };
        let refusal = |test| with_levels(test, 1);
        let far = refusal(PointMasses { separations: [0.3, 20.0], ..PointMasses::default() });
        assert_eq!(far, "separations = [0.3, 20.0]: must rise from above 0 to at most 16, half the root level");
        assert!(refusal(PointMasses { root: 24, ..PointMasses::default() }).starts_with("root = 24: "));
        for levels in [21, 40, 64, 255] {
            let refused = with_levels(PointMasses::default(), levels);
            assert!(refused.starts_with(&format!("levels = {levels}: with 32 root cells")), "{refused}");
        }
        let bins = refusal(PointMasses { bins: 1 << 32, ..PointMasses::default() });
        assert_eq!(bins, "bins = 4294967296: must lie between 1 and 1000");
    }
}

//! Refined fractions and step lengths of a run without records: from the abundance of halos in linear theory.
//!
//! A cell exceeds a threshold where a halo is massive enough for its centre to do so: halos have the mass function of Sheth
//! & Tormen 1999, with the barrier of spherical collapse to that overdensity, and an isothermal profile within the virial
//! radius. A patch is refined with such a halo in it or within the buffer around it. Halos cluster, so their counts in such
//! cubes follow a negative binomial distribution. [`Calibration`] was fitted to runs of 16³ to 128³ root cells in boxes of 12.5
//! to 200 Mpc/h; `scripts/check-predictions` compares.

use super::state::State;
use super::theory::{Theory, Universe};
use comove_kernels::layout::PATCH;
use comove_sim::{Criterion, RunParameters};
use std::f64::consts::PI;

/// Places at which the model is tabulated, and their distance: ln a.
const PLACES: (f64, f64) = (-5.0, 0.5);
const DISTANCE: f64 = 0.05;

/// Overdensity at the virial radius, and the linear one of collapse.
const VIRIAL: f64 = 200.0;
const COLLAPSE: f64 = 1.686;

/// Volume of a sphere of radius 1.
const SPHERE: f64 = 4.0 / 3.0 * PI;

/// Masses over which halos are summed: ln M beyond the smallest, and their number.
const MASSES: (f64, usize) = (12.0, 96);

/// Normalisation, scale and slope of the mass function.
const SHETH_TORMEN: (f64, f64, f64) = (0.3222, 0.707, 0.3);

/// Threshold at which [`Calibration::core`] is stated.
const USUAL: f64 = 30.0;

/// Cells that a particle may cross in a step.
const CELLS_CROSSED: f64 = 0.5;

/// Numbers fitted to runs of some species.
struct Calibration {
    /// Radius in cells within which the density of a halo's central cell is the mean one.
    core: f64,
    /// Exponent of its growth with the threshold, as pressure keeps gas from the centre.
    steepness: f64,
    /// Factor of the barrier of collapse.
    barrier: f64,
    /// Factor of the variance of counts.
    clustering: f64,
    /// Radius within which a halo exceeds the threshold, over that of its profile.
    extent: f64,
}

const DARK_MATTER: Calibration =
    Calibration { core: 0.73, steepness: 0.0, barrier: 1.135, clustering: 2.3, extent: 0.55 };
const GAS: Calibration = Calibration { core: 1.25, steepness: 0.24, barrier: 0.9, clustering: 0.75, extent: 0.6 };

/// Speed of the fastest signal in gas and of the fastest particle, over the circular velocity of the most massive halo.
const SPEEDS: (f64, f64) = (1.1, 2.0);

/// Largest displacement over the RMS along an axis.
const LINEAR_PEAK: f64 = 4.0;

/// Acceleration (aH)² Ω_m δ h at the most massive halo's centre, of overdensity δ in cells of width h, in these units.
const CENTRAL: f64 = 0.38;

/// States of a run by place.
#[derive(Clone, Debug)]
pub(super) struct Model {
    states: Vec<State>,
}

impl Model {
    /// `None` where linear theory does not tell of the run, or a criterion looks at what the model does not have.
    ///
    /// * `root`: its cells, and their width in Mpc/h
    pub(super) fn new(universe: &Universe, root: (f64, f64), parameters: &RunParameters) -> Option<Self> {
        let (root_cells, width) = root;
        let (theory, box_mpc_h) = (Theory::new(universe)?, universe.box_mpc_h);
        let volume = Volume { parameters, root_cells, universe, theory, width, box_mpc_h };
        let number = ((PLACES.1 - PLACES.0) / DISTANCE) as usize;
        let states = (0..=number).map(|n| volume.state(PLACES.0 + DISTANCE * n as f64)).collect::<Option<_>>()?;
        Some(Self { states })
    }

    /// State between two places; before the first and after the last as there.
    pub(super) fn at(&self, place: f64) -> State {
        let x = ((place - PLACES.0) / DISTANCE).clamp(0.0, (self.states.len() - 1) as f64 - 1e-9);
        let (n, part) = (x as usize, x.fract());
        let [before, after] = [&self.states[n], &self.states[n + 1]];
        let between = |level| before.fraction(level) * (1.0 - part) + after.fraction(level) * part;
        let fractions = (0..before.fractions.len()).map(between).collect();
        State { fractions, step: (before.step.ln() * (1.0 - part) + after.step.ln() * part).exp() }
    }
}

/// Halos of one mass range.
struct Halos {
    /// Comoving number density, (h/Mpc)³.
    density: f64,
    /// Virial radius, Mpc/h.
    radius: f64,
    bias: f64,
}

/// Box of a run.
struct Volume<'a> {
    parameters: &'a RunParameters,
    root_cells: f64,
    universe: &'a Universe,
    theory: Theory,
    width: f64,
    box_mpc_h: f64,
}

impl Volume<'_> {
    fn calibration(&self) -> &'static Calibration {
        if self.universe.particles > 0.0 { &DARK_MATTER } else { &GAS }
    }

    fn state(&self, place: f64) -> Option<State> {
        let mut fractions = vec![1.0];
        for level in 0..self.parameters.max_level {
            let coarser = fractions[usize::from(level)];
            let refined = self.parameters.refine.iter().map(|criterion| self.refined(criterion, level, place));
            let kept = refined.map(|fraction| Some(1.0 - fraction?)).product::<Option<f64>>()?;
            fractions.push((1.0 - kept).min(coarser));
        }
        let step = self.step(place, &fractions);
        Some(State { fractions, step })
    }

    /// Fraction of the box that a criterion refines on a level; `None` of one that looks at something else than the density
    /// of matter or a place.
    fn refined(&self, criterion: &Criterion, level: u8, place: f64) -> Option<f64> {
        let width = self.width / f64::from(1u32 << level.min(31));
        let of = |thresholds: &[f64]| thresholds.get(usize::from(level)).copied();
        let around = (PATCH + 2 * self.parameters.flag_buffer as usize) as f64 * width;
        // the cubes around patches tile an axis no more than once
        let along = |length: f64| ((length + around) / self.box_mpc_h).min(1.0);
        match criterion {
            Criterion::DensityAbove { thresholds } | Criterion::OverdensityAbove { thresholds } => {
                Some(of(thresholds).map_or(0.0, |threshold| self.above(threshold, width, place)))
            }
            Criterion::ParticlesAbove { thresholds } => {
                let mean = self.universe.particles * (width / self.box_mpc_h).powi(3);
                Some(of(thresholds).map_or(0.0, |number| self.above(number / mean, width, place)))
            }
            Criterion::InsideBox { min, max, level: finest } => {
                let part: f64 = (0..3).map(|axis| along(max[axis] - min[axis])).product();
                Some(if level < *finest { part } else { 0.0 })
            }
            Criterion::InsideBall { radius, level: finest, .. } => {
                // a ball that touches a cube has its centre within the cube's half width, on average over directions
                let ball = SPHERE * (radius + 0.62 * around).powi(3);
                Some(if level < *finest { (ball / self.box_mpc_h.powi(3)).min(1.0) } else { 0.0 })
            }
            // as if places that meet one criterion met another by chance
            Criterion::All(all) => all.iter().map(|one| self.refined(one, level, place)).product(),
            Criterion::Any(any) => {
                let refined = any.iter().map(|one| self.refined(one, level, place));
                Some(1.0 - refined.map(|fraction| Some(1.0 - fraction?)).product::<Option<f64>>()?)
            }
            _ => None,
        }
    }

    /// Fraction of the patches of a level that are refined where an overdensity in cells of this width exceeds a threshold.
    fn above(&self, threshold: f64, width: f64, place: f64) -> f64 {
        // the mean density itself exceeds it
        if threshold < 1.0 {
            return 1.0;
        }
        let Calibration { core, steepness, clustering, extent, .. } = self.calibration();
        let core = core * (threshold / USUAL).powf(*steepness) * width;
        // of the halo whose central cell has this overdensity
        let radius =
            if threshold <= VIRIAL { core * (threshold / VIRIAL).cbrt() } else { core * (threshold / VIRIAL).sqrt() };
        let cube = (PATCH + 2 * self.parameters.flag_buffer as usize) as f64 * width;
        let (mut expected, mut weighted, mut density) = (0.0, 0.0, 0.0);
        for halos in self.halos(radius, threshold, place) {
            let slope = if threshold < VIRIAL { 0.4 } else { 0.5 };
            let exceeds = extent * halos.radius * (VIRIAL / threshold).powf(slope);
            let reach = (cube + 2.0 * exceeds).min(self.box_mpc_h).powi(3);
            expected += halos.density * reach;
            weighted += halos.density * reach * halos.bias;
            density += halos.density;
        }
        if expected <= 0.0 {
            return 0.0;
        }
        let bias = (weighted / expected).max(0.5);
        let sphere = (expected / density / SPHERE).cbrt();
        let variance = clustering * (bias * self.sigma(sphere, place)).powi(2) + 1e-6;
        let fraction = 1.0 - (1.0 + expected * variance).powf(-1.0 / variance);
        // of a box no larger than the cube all or nothing is refined
        if cube < 0.999 * self.box_mpc_h { fraction } else { fraction.round() }
    }

    /// Linear RMS in spheres of this radius, no larger than the box.
    fn sigma(&self, radius: f64, place: f64) -> f64 {
        let largest = self.box_mpc_h / SPHERE.cbrt();
        self.theory.sigma(radius.min(largest)) * self.theory.growth(place)
    }

    /// Halos from a virial radius on, which have collapsed to this overdensity, none heavier than the box.
    fn halos(&self, radius: f64, overdensity: f64, place: f64) -> Vec<Halos> {
        // linear overdensity of a sphere that has collapsed so far (Bernardeau 1994)
        let collapsed = COLLAPSE * (1.0 - overdensity.clamp(1.01, VIRIAL).powf(-1.0 / COLLAPSE));
        let barrier = self.calibration().barrier * collapsed;
        // masses in the mean density of a Mpc³/h³
        let least = SPHERE * VIRIAL * radius.powi(3);
        let mass = |n: usize| least * (MASSES.0 * n as f64 / MASSES.1 as f64).exp();
        let height = |mass: f64| barrier / self.sigma((mass / SPHERE).cbrt(), place);
        let bins = (0..MASSES.1).map_while(|n| {
            let [from, to] = [mass(n), mass(n + 1)];
            let [low, high] = [from, to].map(height);
            let mass = (from * to).sqrt();
            let halos = Halos {
                density: 0.5 * (sheth_tormen(low) + sheth_tormen(high)) * (high - low).max(0.0) / mass,
                radius: (mass / (SPHERE * VIRIAL)).cbrt(),
                bias: bias(low, barrier),
            };
            (to < self.box_mpc_h.powi(3)).then_some(halos)
        });
        bins.collect()
    }

    /// Virial radius of the most massive halo in the box, Mpc/h; 0 where there is hardly any.
    fn largest(&self, place: f64) -> f64 {
        let halos = self.halos(0.2 * self.width, VIRIAL, place);
        let mut number = 0.0;
        for halos in halos.iter().rev() {
            number += halos.density * self.box_mpc_h.powi(3);
            if number >= 1.0 {
                return halos.radius;
            }
        }
        0.0
    }

    /// The longest root step that gas and particles allow.
    fn step(&self, place: f64, fractions: &[f64]) -> f64 {
        let (cosmology, parameters) = (&self.universe.cosmology, self.parameters);
        let a = place.exp();
        // Ω_m at a
        let matter = (1.0 / cosmology.critical_over_mean(a)).min(1.0);
        let displaced = LINEAR_PEAK * self.theory.displacement * self.theory.growth(place);
        let radius = self.largest(place);
        // circular velocity of the halo over aH, Mpc/h: V² = G M/r
        let circular = radius * (0.5 * VIRIAL * matter).sqrt();
        let crossing = |is_there: bool, cells: f64, speed: f64| {
            if is_there { cells / displaced.hypot(speed * circular) } else { f64::INFINITY }
        };
        let gas = crossing(self.universe.gas, 2.0 * parameters.courant, SPEEDS.0);
        let particles = crossing(self.universe.particles > 0.0, CELLS_CROSSED, SPEEDS.1);
        let levels = fractions
            .iter()
            .enumerate()
            .take_while(|(level, fraction)| **fraction * self.root_cells * 8f64.powi(*level as i32) > 2048.0);
        let of_level = |(level, _): (usize, &f64)| {
            let refined = f64::from(1u32 << level.min(31));
            let width = self.width / refined;
            let central = VIRIAL * (radius / (self.calibration().core * width)).powi(2).max(0.0);
            // acceleration over (aH)², in Mpc/h
            let acceleration = matter * (1.5 * displaced).max(CENTRAL * central * width);
            let accelerated = parameters.gravity_courant * (width / acceleration).sqrt();
            let step = (width * gas.min(particles)).min(accelerated);
            step * parameters.time_steps.per_root_step(level)
        };
        levels.map(of_level).fold(f64::INFINITY, f64::min)
    }
}

/// Mass fraction of halos per peak height ν (Sheth & Tormen 1999).
fn sheth_tormen(height: f64) -> f64 {
    let x = SHETH_TORMEN.1 * height * height;
    SHETH_TORMEN.0 * (2.0 * SHETH_TORMEN.1 / PI).sqrt() * (1.0 + x.powf(-SHETH_TORMEN.2)) * (-0.5 * x).exp()
}

/// Linear bias of halos of peak height ν.
fn bias(height: f64, barrier: f64) -> f64 {
    let x = SHETH_TORMEN.1 * height * height;
    1.0 + (x - 1.0 + 2.0 * SHETH_TORMEN.2 / (1.0 + x.powf(SHETH_TORMEN.2))) / barrier
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::mesh::Mesh;
    use comove_sim::{Cosmology, TimeSteps};

    fn mesh(root: f64, box_mpc_h: f64, [gas, dark]: [bool; 2], refine: Vec<Criterion>, max_level: u8) -> Mesh {
        let cosmology = Cosmology::flat(0.6766, 0.3111, 0.04897, 0.8102, 0.9665);
        let particles = if dark { root.powi(3) } else { 0.0 };
        let universe = Universe { cosmology, box_mpc_h, mesh_mpc_h: box_mpc_h / root, gas, particles };
        let (time_steps, max_delta_a) = (TimeSteps::Individual, 0.02);
        let parameters = RunParameters { refine, max_level, time_steps, max_delta_a, ..RunParameters::default() };
        Mesh::new(root.powi(3), Some(universe), parameters)
    }

    fn thresholds(first: f64) -> Vec<f64> {
        (0..3).map(|level| first * 8f64.powi(level)).collect()
    }

    /// Most cells over those of the root, of runs from z = 49 to 0 in steps of 2%.
    #[test]
    fn cells_are_those_of_runs() {
        let (gas, both, dark) = ([true, false], [true, true], [false, true]);
        let measured = [
            (16.0, 12.5, both, 8.0, 3, 133.0),
            (16.0, 25.0, both, 3.0, 2, 63.0),
            (16.0, 50.0, both, 8.0, 3, 99.0),
            (16.0, 12.5, dark, 8.0, 3, 149.0),
            (16.0, 25.0, dark, 30.0, 3, 60.0),
            (16.0, 50.0, dark, 8.0, 3, 123.0),
            (32.0, 25.0, both, 8.0, 2, 40.8),
            (32.0, 25.0, dark, 8.0, 3, 93.4),
            (32.0, 100.0, dark, 8.0, 2, 50.75),
            (16.0, 12.5, gas, 8.0, 3, 41.0),
            (32.0, 200.0, gas, 8.0, 3, 9.0),
        ];
        for (root, box_mpc_h, species, first, levels, cells) in measured {
            let refine = Criterion::OverdensityAbove { thresholds: thresholds(first) };
            let mesh = mesh(root, box_mpc_h, species, vec![refine], levels);
            let state = mesh.model().unwrap().at(0.0);
            let of_level = |(level, fraction): (usize, &f64)| fraction * 8f64.powi(level as i32);
            let found: f64 = state.fractions.iter().enumerate().map(of_level).sum();
            println!("{root}³ in {box_mpc_h} Mpc/h, {species:?}, {first}: {found:.1} for {cells}");
            assert!((0.5..2.0).contains(&(found / cells)), "{root}³ in {box_mpc_h} Mpc/h: {found} for {cells}");
        }
    }

    /// Particles are counted in cells; a region has its volume and the patches at its faces; of two criteria one is enough.
    #[test]
    fn criteria_are_joined() {
        let fractions =
            |refine: Vec<Criterion>| mesh(64.0, 100.0, [false, true], refine, 2).model().unwrap().at(-0.5).fractions;
        let particles = Criterion::ParticlesAbove { thresholds: vec![8.0; 2] };
        let density = Criterion::OverdensityAbove { thresholds: thresholds(8.0) };
        let are_equal = |x: &[f64], y: &[f64]| x.iter().zip(y).all(|(x, y)| (x - y).abs() < 1e-9);
        assert!(are_equal(&fractions(vec![particles]), &fractions(vec![density.clone()])));
        let region = Criterion::InsideBox { min: [25.0; 3], max: [75.0; 3], level: 1 };
        let both = fractions(vec![density.clone(), region.clone()]);
        let [density, region] = [density, region].map(|criterion| fractions(vec![criterion]));
        assert!(are_equal(&region, &[1.0, 0.75f64.powi(3), 0.0]), "{region:?}");
        assert!(both[1] >= density[1] && both[1] > region[1] && are_equal(&both[2..], &density[2..]), "{both:?}");
        // gas that is not in the model
        let jeans = Criterion::JeansCellsBelow { thresholds: vec![4.0] };
        assert!(mesh(64.0, 100.0, [true, false], vec![jeans], 1).model().is_none());
    }
}

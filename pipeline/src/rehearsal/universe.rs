//! A toy universe: a box of some 16³ root cells with one clump in it, two steps from where a run starts.
//!
//! It has the coordinates, species, scalars, box and cosmology of the run, and levels around the clump, so that closures see
//! a halo, a density peak and a refined grid.

use crate::error::PipelineError;
use crate::stage::evolve::{Evolve, Origin};
use crate::stage::formula::Formula;
use crate::stage::initial::SpeciesPresent;
use crate::stage::work::Work;
use crate::storage::canonical_json::canonical;
use comove_ic::problems::{Gas, Setup};
use comove_ic::{IcError, function_state, silent};
use comove_kernels::layout::{ENTROPY, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, cell_coordinate};
use comove_sim::fields::FieldSet;
use comove_sim::memory::Species;
use comove_sim::{
    Coordinates, Cosmology, Criterion, HostParticles, HostState, Octree, RunParameters, ScalarParameters, Simulation,
    Snapshot, SnapshotHeader, Units,
};
use serde_json::{Value, json};

/// Levels that it is refined to at the most.
const FINEST: u8 = 3;
/// Groups of the root level at the most.
const ROOT_GROUPS: usize = 32;
const STEPS: usize = 2;

/// The clump's part of the box.
const MASS: f64 = 0.35;
/// The radius of the clump's gas in the box, that of a Gaussian.
const RADIUS: f64 = 0.03;
/// By this factor particles around the centre are drawn to it.
const CONTRACTION: f64 = 0.12;
/// Temperature of its gas.
const TEMPERATURE_K: f64 = 1e5;

/// What a run of a campaign looks like on a toy.
#[derive(Clone, Debug)]
pub(super) struct Universe {
    /// The records of its steps.
    pub records: Vec<Value>,
    pub output: Snapshot,
}

/// What of a run decides its toy universe.
pub(super) struct Toy {
    setup: Setup,
    mean_molecular_weight: f64,
    species: Species,
    formula: Option<Formula>,
}

impl Toy {
    /// Of a run.
    pub(super) fn of(run: &Evolve) -> Self {
        let comoving = run.parameters.coordinates == Coordinates::Comoving;
        let (box_length, root, cosmology, start, mean_molecular_weight) = match &run.origin {
            Origin::Initial(facts) => {
                (facts.box_mpc_h, facts.root, Some(facts.cosmology), 1.0 / (1.0 + facts.z), facts.mean_molecular_weight)
            }
            Origin::Formula(formula) => {
                let Setup { box_length, root, cosmology, start, .. } = formula.setup;
                (box_length, root, cosmology, start, formula.mean_molecular_weight)
            }
            Origin::Saved { .. } => {
                let first = run.outputs.first().map_or(1.0, |moment| moment.now());
                let start = if comoving { 0.5 * first } else { 0.0 };
                (UNKNOWN_BOX, [GROUP; 3], comoving.then(unknown_cosmology), start, NEUTRAL)
            }
        };
        let species = run.origin.species().unwrap_or(SpeciesPresent { gas: true, dark_matter: comoving });
        let formula = match &run.origin {
            Origin::Formula(formula) => Some(Formula::clone(formula)),
            Origin::Initial(_) | Origin::Saved { .. } => None,
        };
        Self::new(box_length, root, cosmology, start, &run.parameters, mean_molecular_weight, species, formula)
    }

    /// Of a snapshot of which only the species are known before it is read, or nothing: comoving, by default with gas and
    /// dark matter.
    pub(super) fn of_snapshot(species: Option<SpeciesPresent>) -> Self {
        let species = species.unwrap_or(SpeciesPresent { gas: true, dark_matter: true });
        let parameters = RunParameters { max_level: 1, ..RunParameters::default() };
        Self::new(UNKNOWN_BOX, [GROUP; 3], Some(unknown_cosmology()), 0.5, &parameters, NEUTRAL, species, None)
    }

    #[allow(clippy::too_many_arguments)]
    fn new(
        box_length: f64,
        root: [usize; 3],
        cosmology: Option<Cosmology>,
        start: f64,
        run: &RunParameters,
        mean_molecular_weight: f64,
        SpeciesPresent { gas, dark_matter }: SpeciesPresent,
        formula: Option<Formula>,
    ) -> Self {
        let species = Species { gas, particles: usize::from(dark_matter) };
        // a halo has cells enough; what a closure says of a cell is said of one of the run's
        let is_fine = run.max_level == 0 && formula.is_none();
        let root = toy_root(root, is_fine);
        let width = box_length / root[0] as f64;
        let parameters = toy_parameters(run, root.map(|n| 0.5 * n as f64 * width), width, formula.is_some());
        let setup = Setup { box_length, root, cosmology, start, end: f64::INFINITY, parameters };
        let formula = formula.map(|formula| Formula { setup: setup.clone(), ..formula });
        Self { setup, mean_molecular_weight, species, formula }
    }

    /// What decides it, as a text.
    pub(super) fn identity(&self) -> String {
        let Setup { box_length, root, cosmology, start, parameters, .. } = &self.setup;
        canonical(&json!({
            "box": box_length,
            "root": root,
            "cosmology": cosmology,
            "start": start,
            "run": parameters,
            "mean_molecular_weight": self.mean_molecular_weight,
            "gas": self.species.gas,
            "particles": self.species.particles,
            "formula": self.formula.as_ref().map(Formula::parameters),
        }))
    }

    /// Makes it, and takes its steps.
    pub(super) fn evolve(&self, work: &Work<'_>) -> Result<Universe, PipelineError> {
        let snapshot = self.start(work)?;
        let mut simulation = Simulation::start(work.device.clone(), &snapshot, self.setup.parameters.clone())?;
        let mut records = Vec::new();
        for _ in 0..STEPS {
            let record = simulation.step()?;
            records.push(serde_json::to_value(&record).expect("a record is plain data"));
        }
        let output = simulation.output_at(simulation.now())?;
        Ok(Universe { records, output })
    }

    fn start(&self, work: &Work<'_>) -> Result<Snapshot, PipelineError> {
        let Setup { box_length, root, cosmology, start, ref parameters, .. } = self.setup;
        if let Some(formula) = &self.formula {
            // the closures are called for the root level alone
            let unrefined = RunParameters { max_level: 0, refine: Vec::new(), ..parameters.clone() };
            let mut snapshot = formula.snapshot(&unrefined, work)?;
            if cosmology.is_some() {
                self.add_clump(&mut snapshot);
            }
            return Ok(snapshot);
        }
        let Species { gas, particles } = self.species;
        let fraction = match cosmology {
            Some(cosmology) if gas && particles > 0 => cosmology.baryon_fraction(),
            _ => 1.0,
        };
        let mut state = if gas {
            let pressure = match cosmology {
                Some(_) => TEMPERATURE_K / Units::new(cosmology).temperature_k(start, self.mean_molecular_weight),
                None => 1.0,
            };
            let gas = |x: [f64; 3], _| {
                let density = fraction * self.clump(x);
                Ok::<_, IcError>(Gas { density, velocity: [0.0; 3], pressure: density * pressure })
            };
            function_state(&gas, &self.setup, work.device, &silent)?
        } else {
            let groups = root.map(|n| (n / GROUP) as u32);
            HostState::without_fields(Octree::new(groups, parameters.boundary.periodic()))
        };
        if particles > 0 {
            let share = if gas { 1.0 - fraction } else { 1.0 };
            state.particles = Some(self.particles(share).in_file_order(&state.tree));
        }
        let header = SnapshotHeader {
            a: if cosmology.is_some() { start } else { 1.0 },
            time: if cosmology.is_some() { 0.0 } else { start },
            box_length,
            cosmology,
            gamma: parameters.gamma,
            mean_molecular_weight: self.mean_molecular_weight,
            eta: parameters.eta,
            precision: parameters.precision,
            fields: if gas { FieldSet::default() } else { FieldSet::without_gas() },
            dark_matter: state.particles.as_ref().map(HostParticles::header),
            ..SnapshotHeader::initial(parameters.coordinates)
        };
        Ok(Snapshot { header, state })
    }

    /// The offset of a position from the centre, in the shortest box length.
    fn offset(&self, x: [f64; 3]) -> [f64; 3] {
        let Setup { box_length, root, .. } = self.setup;
        let width = box_length / root[0] as f64;
        let shortest = width * root.into_iter().min().unwrap_or(GROUP) as f64;
        [0, 1, 2].map(|axis| (x[axis] - 0.5 * root[axis] as f64 * width) / shortest)
    }

    /// Density of the clump in the mean.
    fn clump(&self, x: [f64; 3]) -> f64 {
        let square: f64 = self.offset(x).iter().map(|d| d * d).sum();
        let peak = MASS / (std::f64::consts::TAU * RADIUS * RADIUS).powf(1.5);
        1.0 - MASS + peak * (-0.5 * square / (RADIUS * RADIUS)).exp()
    }

    /// Multiplies the density of gas by that of the clump; temperatures and velocities stay.
    fn add_clump(&self, snapshot: &mut Snapshot) {
        let width = self.setup.box_length / self.setup.root[0] as f64;
        let exponent = 2.0 - snapshot.header.gamma;
        let HostState { tree, fluid, scalars, .. } = &mut snapshot.state;
        for (group, key) in tree.keys().enumerate() {
            for cell in 0..GROUP_CELLS {
                let at = cell_coordinate(cell);
                let x = [0, 1, 2].map(|a| ((key.coordinate[a] as usize * GROUP + at[a]) as f64 + 0.5) * width);
                let factor = self.clump(x);
                for field in 0..FIELDS {
                    // S = P/ρ^(γ−1)
                    let factor = if field == ENTROPY { factor.powf(exponent) } else { factor };
                    fluid[group * GROUP_VALUES + field * GROUP_CELLS + cell] *= factor;
                }
                scalars.iter_mut().for_each(|scalar| scalar[group * GROUP_CELLS + cell] *= factor);
            }
        }
    }

    /// A lattice of particles, one a root cell, drawn together around the centre, that have this share of all matter.
    fn particles(&self, share: f64) -> HostParticles {
        let Setup { box_length, root, .. } = self.setup;
        let width = box_length / root[0] as f64;
        let radius = (0.75 * MASS / std::f64::consts::PI).cbrt();
        let mut particles = HostParticles { particle_mass: share * width.powi(3), ..HostParticles::default() };
        for n in 0..root.iter().product::<usize>() {
            let cell = [n % root[0], n / root[0] % root[1], n / root[0] / root[1]];
            let mut x = cell.map(|i| (i as f64 + 0.5) * width);
            if self.offset(x).iter().map(|d| d * d).sum::<f64>() < radius * radius {
                x = [0, 1, 2].map(|a| {
                    let centre = 0.5 * root[a] as f64 * width;
                    centre + CONTRACTION * (x[a] - centre)
                });
            }
            for axis in 0..3 {
                let length = root[axis] as f64 * width;
                let fraction = HostParticles::fraction(x[axis], length).expect("a particle in the box");
                particles.position[axis].push(fraction);
                // up to 100 km/s to and fro, so that velocities have a dispersion
                particles.velocity[axis].push(((n >> axis) % 3) as f32 - 1.0);
            }
            particles.id.push(n as u64);
        }
        particles
    }
}

/// Box length in Mpc/h where that is not known.
const UNKNOWN_BOX: f64 = 100.0;
/// μ of neutral primordial gas.
const NEUTRAL: f64 = 1.22;

fn unknown_cosmology() -> Cosmology {
    let (omega_r, m_nu_ev, w0, wa, t_cmb_k) = (0.0, 0.0, -1.0, 0.0, 2.7255);
    let (h, omega_m, omega_lambda, omega_b, sigma8, n_s) = (0.7, 0.3, 0.7, 0.045, 0.8, 0.96);
    Cosmology { h, omega_m, omega_b, omega_lambda, omega_r, m_nu_ev, w0, wa, sigma8, n_s, t_cmb_k }
}

/// A root of the same shape with 16 cells along the shortest axis, or 32 if it is to be fine.
fn toy_root(root: [usize; 3], is_fine: bool) -> [usize; 3] {
    let groups = root.map(|n| (n / GROUP).max(1));
    let volume = |groups: [usize; 3]| groups.iter().product::<usize>();
    let divisors = (1..=*groups.iter().min().expect("three axes")).rev();
    let shape = divisors.filter(|d| groups.iter().all(|n| n % d == 0)).map(|d| groups.map(|n| n / d)).next();
    let mut shape = shape.unwrap_or(groups);
    while volume(shape) > ROOT_GROUPS {
        shape = shape.map(|n| n.div_ceil(2));
    }
    let factor = if is_fine && volume(shape) == 1 { 2 } else { 1 };
    shape.map(|n| n * factor * GROUP)
}

/// The parameters of a run on a toy: its physics and precision, and levels around the centre.
fn toy_parameters(run: &RunParameters, center: [f64; 3], width: f64, of_formula: bool) -> RunParameters {
    let RunParameters { precision, coordinates, gamma, boundary, gravity, gravity_boundary, four_pi_g, .. } =
        run.clone();
    let max_level = run.max_level.min(FINEST);
    let ball = Criterion::InsideBall { center, radius: 1e-3 * width, level: max_level };
    let refine = if max_level > 0 { vec![ball] } else { Vec::new() };
    let fractions = run.scalars.names().zip(run.scalars.initial());
    let scalars = match of_formula {
        true => run.scalars.clone(),
        false => ScalarParameters::uniform(fractions.map(|(name, fraction)| (name, fraction.unwrap_or(0.1)))),
    };
    RunParameters {
        precision,
        coordinates,
        gamma,
        boundary,
        scalars,
        gravity,
        gravity_boundary,
        four_pi_g,
        max_level,
        refine,
        density_floor: run.density_floor,
        pressure_floor: run.pressure_floor,
        ..RunParameters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_keep_their_shape() {
        assert_eq!(toy_root([256; 3], false), [16; 3]);
        assert_eq!(toy_root([256; 3], true), [32; 3]);
        assert_eq!(toy_root([128, 32, 64], true), [64, 16, 32]);
        assert!(toy_root([1600, 16, 16], false)[0] <= 32 * 16);
    }
}

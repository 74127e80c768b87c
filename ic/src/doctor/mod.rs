//! Examination of an initial condition: comparison with linear theory for its box, epoch and cosmology.
//!
//! | module | content |
//! |---|---|
//! | `content` | values that no linear theory is needed for: byte order, order of fields, mean density, displacements beside the box |
//! | `fields` | density contrast and velocity of each species in Fourier space, on at most 64³ cells |
//! | `modes` | statistics over modes below half of the Nyquist wave number |
//! | `species` | the verdicts on a species |
//! | `causes` | factors that explain a ratio |
//! | `nested` | gas of nested meshes beside that of the mesh around them |
//! | `bare_file` | a file without a recipe |
//!
//! The velocity of a species is compared with the growing mode of its own density contrast, mode by mode, so that chance has
//! no part in it; the amplitude is compared with the linear spectrum, within the scatter of its modes.

mod bare_file;
mod causes;
pub(crate) mod content;
mod fields;
mod modes;
mod nested;
mod species;

use crate::format::LoadFormat;
use crate::gaussian_field::transform::to_cells;
use crate::linear_power::LinearPower;
use crate::particle_set::{FEW, ParticleSet};
use crate::temperature::{gas_temperature_k, specific_internal_energy};
use crate::uniform_mesh::{DarkMatter, UniformMesh};
pub use bare_file::{BareFile, Given};
use causes::{explained, of_temperature};
use comove_sim::Cosmology;
use comove_sim::kernels::point::particle::mass_of_class;
use comove_sim::parallel::Communicator;
use fields::{Grid, SpeciesModes};
pub use modes::Spectrum;
use rustfft::num_complex::Complex;
use serde::{Deserialize, Serialize};
use species::Judge;
use std::f64::consts::{PI, TAU};

/// Ratio of temperatures without a remark.
const TEMPERATURE: f64 = 1.5;

/// Ratio of temperatures, beyond which a known mistake is refused.
const GROSS_TEMPERATURE: f64 = 10.0;

/// Mean velocity over the rms one that is remarked on.
const DRIFT: f64 = 0.3;

/// Ratio of gas to dark matter in compared modes, below which gas has none of them.
const ROUND_OFF: f64 = 1e-5;

/// Correlation of gas and dark matter below which they are of two realisations.
const ALIKE: f64 = 0.8;

/// Shift in cells that is remarked on.
const SHIFT: f64 = 0.2;

/// Quantity of [`particle_lattice`].
const LATTICE_OFFSET: &str = "offset of the particles' lattice, cells";

/// Points of the scatter plot.
const POINTS: usize = 4000;

/// Box, epoch and background of an initial condition.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The background.
    pub cosmology: &'a Cosmology,
    /// The linear spectrum today.
    pub power: &'a LinearPower,
    /// False where the amplitude of the spectrum is assumed.
    pub amplitude_is_known: bool,
    /// Scale factor.
    pub a: f64,
    /// Length of the box along x in Mpc/h.
    pub box_mpc_h: f64,
    /// Format, whose convention the velocities have.
    pub format: LoadFormat,
    /// Temperature in K that the recipe gives the gas.
    pub temperature_k: Option<f64>,
    /// Mean molecular weight in hydrogen masses.
    pub mean_molecular_weight: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
}

/// Verdict of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As expected.
    Good,
    /// Possible, but perhaps not meant.
    Suspicious,
    /// A mistake: refused unless trusted.
    Wrong,
}

impl Verdict {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Suspicious => "suspicious",
            Self::Wrong => "wrong",
        }
    }
}

/// A quantity of an initial condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its name and unit.
    pub quantity: String,
    /// Its value.
    pub found: String,
    /// The expected value; empty where there is none.
    pub expected: String,
    /// Verdict.
    pub verdict: Verdict,
    /// Why, with the factor or mistake that would explain it; empty if it is good.
    pub sentence: String,
}

/// Data for the figure of a species.
#[derive(Clone, Debug)]
pub struct Picture {
    /// Its name.
    pub species: &'static str,
    /// P(k) beside linear theory.
    pub spectrum: Spectrum,
    /// Cells of a slice along x and y.
    pub slice_cells: [usize; 2],
    /// δ in the slice's plane of cells, x fastest.
    pub slice: Vec<f64>,
    /// δ of some cells, and θ = −∇·v/(aHf) there; modes below half of the Nyquist wave number.
    pub scatter: Vec<[f64; 2]>,
}

/// Findings of an examination.
#[derive(Clone, Debug, Default)]
pub struct Examination {
    /// In the order of a table.
    pub findings: Vec<Finding>,
    /// Of each species that could be compared.
    pub pictures: Vec<Picture>,
}

impl Examination {
    /// Sentences of the findings of a verdict.
    pub fn sentences(&self, verdict: Verdict) -> Vec<String> {
        self.findings.iter().filter(|f| f.verdict == verdict).map(|f| f.sentence.clone()).collect()
    }

    /// Sentences of all findings that are not good; of those that are wrong with the reason why they are accepted.
    pub fn remarks(&self, trust: Option<&str>) -> Vec<String> {
        let trusted = |sentence: String| match trust {
            Some(reason) => format!("{sentence} (trusted: {reason})"),
            None => sentence,
        };
        let mut remarks: Vec<String> = self.sentences(Verdict::Wrong).into_iter().map(trusted).collect();
        remarks.extend(self.sentences(Verdict::Suspicious));
        remarks
    }

    /// Adds a remark on a quantity.
    pub(crate) fn remark(
        &mut self,
        quantity: &str,
        found: impl Into<String>,
        expected: impl Into<String>,
        sentence: String,
    ) {
        self.add(quantity, found, expected).judge(Verdict::Suspicious, sentence);
    }

    fn add(
        &mut self,
        quantity: impl Into<String>,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> &mut Finding {
        self.findings.push(Finding {
            quantity: quantity.into(),
            found: found.into(),
            expected: expected.into(),
            verdict: Verdict::Good,
            sentence: String::new(),
        });
        self.findings.last_mut().expect("just added")
    }
}

impl Finding {
    fn judge(&mut self, verdict: Verdict, sentence: impl Into<String>) {
        self.verdict = verdict;
        self.sentence = sentence.into();
    }
}

/// A number in five digits; 0 below 10⁻¹⁰.
fn shown(value: f64) -> String {
    if value.abs() < 1e-10 {
        return "0".into();
    }
    if (1e-3..1e5).contains(&value.abs()) { format!("{value:.5}") } else { format!("{value:.4e}") }
}

/// A shift in cells, in three decimals.
fn shown_shift(shift: [f64; 3]) -> String {
    shift.map(|d| format!("{:.3}", (d * 1e3).round() / 1e3 + 0.0)).join(", ")
}

/// Examines an initial condition, whose values are finite. Collective.
///
/// * `pictures`: whether those are made
pub fn examine(communicator: &Communicator, mesh: &UniformMesh, subject: &Subject<'_>, pictures: bool) -> Examination {
    let mut examination = Examination::default();
    let rate = subject.cosmology.hubble_flow(subject.a) * subject.cosmology.growth(subject.a).1;
    let set = match &mesh.dark_matter {
        Some(DarkMatter::Set(set)) => Some(set),
        _ => None,
    };
    let has_gas = mesh.has_gas(communicator);
    let has_lattice = communicator.any(mesh.lattice().is_some());
    let has_set = communicator.any(set.is_some());
    let is_alone = !(has_gas && (has_lattice || has_set));
    let mut share = 1.0;
    if has_gas {
        share = mesh.mean(communicator, |i| mesh.density[i]);
        let expected = if is_alone { 1.0 } else { subject.cosmology.baryon_fraction() };
        examination.add("mean density of gas over that of matter", shown(share), shown(expected));
        of_drift(&mut examination, "gas", &|f| mesh.mean(communicator, f), &|i, axis| {
            mesh.momentum[axis][i] / mesh.density[i]
        });
        temperature(&mut examination, communicator, mesh, subject, share);
        nested::nested_gas(&mut examination, communicator, mesh, subject, (share, rate));
    }
    if let Some(lattice) = mesh.lattice() {
        let velocity = |i: usize, axis: usize| lattice.velocity[axis][i];
        of_drift(&mut examination, "dark matter", &|f| mesh.mean(communicator, f), &velocity);
    }
    let (mut across, mut has_several_masses) = (None, false);
    if let Some(set) = set {
        examination.add("particles", set.described(communicator), "");
        let counts = set.counts(communicator);
        if counts.iter().sum::<u64>() >= FEW {
            let velocity = |n: usize, axis: usize| f64::from(set.velocity[axis][n]);
            of_drift(&mut examination, "dark matter", &|f| set.mean(communicator, f), &velocity);
            let heaviest = counts.iter().rposition(|count| *count > 0).unwrap_or(0);
            let number_if_heaviest = set.mass(communicator) as f64 / f64::from(mass_of_class(heaviest));
            let longest = mesh.cells.iter().max().copied().unwrap_or(1) as f64;
            let volume: f64 = mesh.cells.iter().map(|n| *n as f64).product();
            let along = (number_if_heaviest * longest.powi(3) / volume).cbrt();
            across = Some(along);
            has_several_masses = counts.iter().filter(|count| **count > 0).count() > 1;
            if has_several_masses {
                examination.add(LATTICE_OFFSET, "not examined: several masses", "");
            } else if (along - along.round()).abs() < 1e-3 {
                particle_lattice(&mut examination, communicator, set, mesh.cells, along.round());
            }
        }
    }
    let Some(grid) = Grid::of(mesh.cells, subject.box_mpc_h, has_gas || has_lattice, across) else {
        return examination;
    };
    if has_set && across.is_none() && !has_gas {
        return examination;
    }
    let growth = subject.cosmology.growth_factor(subject.a);
    let linear = |k: f64| subject.power.at(k) * growth * growth;
    let linear_rms = grid.linear_rms(&linear);
    let gas = has_gas.then(|| grid.gas(communicator, mesh, share));
    let dark_matter = match (set, across) {
        (Some(set), Some(across)) => Some(grid.set(communicator, set, across)),
        _ => grid.lattice(communicator, mesh),
    };
    for (name, modes, is_set) in [("dark matter", &dark_matter, has_set), ("gas", &gas, false)] {
        let Some(modes) = modes else { continue };
        let judge = Judge {
            name,
            subject,
            grid: &grid,
            rate,
            growth,
            linear: &linear,
            linear_rms,
            is_set,
            has_several_masses: is_set && has_several_masses,
            is_alone,
            mesh_cells: mesh.cells,
        };
        judge.species(&mut examination, modes);
        if pictures {
            examination.pictures.push(picture(&grid, name, modes, rate, &linear));
        }
    }
    if let (Some(gas), Some(dark_matter)) = (&gas, &dark_matter) {
        // lattices side by side have noise in density that their velocities lack
        match has_several_masses {
            true => both(&mut examination, &grid, &gas.delta, &grid.convergence(dark_matter, rate), &linear),
            false => both(&mut examination, &grid, &gas.delta, &dark_matter.delta, &linear),
        }
    }
    examination
}

/// Values by row.
type Rows<'a> = dyn Fn(usize) -> f64 + Sync + 'a;

/// The mean velocity of a species beside its rms.
fn of_drift(
    examination: &mut Examination,
    name: &str,
    mean: &dyn Fn(&Rows<'_>) -> f64,
    velocity: &(dyn Fn(usize, usize) -> f64 + Sync),
) {
    let drift = [0, 1, 2].map(|axis| mean(&|i| velocity(i, axis)));
    let square = |i: usize| (0..3).map(|axis| (velocity(i, axis) - drift[axis]).powi(2)).sum::<f64>();
    let rms = mean(&square).sqrt();
    let size = drift.iter().map(|d| d * d).sum::<f64>().sqrt();
    let finding = examination.add(
        format!("mean velocity of {name} over the rms one"),
        shown(size / rms.max(f64::MIN_POSITIVE)),
        "0",
    );
    if size > DRIFT * rms && size > 0.0 {
        let [x, y, z] = drift.map(shown);
        finding.judge(
            Verdict::Suspicious,
            format!(
                "{name} moves as a whole, ṽ = [{x}, {y}, {z}] in 100 km/s, {:.2} times its rms velocity: subtract the mean, unless it is \
                 a stream",
                size / rms
            ),
        );
    }
}

fn temperature(
    examination: &mut Examination,
    communicator: &Communicator,
    mesh: &UniformMesh,
    subject: &Subject<'_>,
    share: f64,
) {
    let Subject { cosmology, a, mean_molecular_weight, gamma, .. } = *subject;
    let kelvin = specific_internal_energy(cosmology, a, 1.0, mean_molecular_weight, gamma);
    let found = mesh.mean(communicator, |i| mesh.internal_energy[i] / mesh.density[i]) / kelvin;
    let expected = subject.temperature_k.unwrap_or_else(|| gas_temperature_k(cosmology, 1.0 / a - 1.0));
    let finding = examination.add("mean temperature of gas, K", shown(found), shown(expected));
    let ratio = found / expected;
    if (1.0 / TEMPERATURE..=TEMPERATURE).contains(&ratio) {
        return;
    }
    let text = format!(
        "the gas has {} K, {} times the {} K expected at z = {:.4}",
        shown(found),
        shown(ratio),
        shown(expected),
        1.0 / a - 1.0
    );
    // other programs have other temperatures after decoupling
    let cause = explained(ratio, &of_temperature(subject, expected, share), 0.1);
    let is_gross = !(1.0 / GROSS_TEMPERATURE..=GROSS_TEMPERATURE).contains(&ratio);
    match cause {
        Some(cause) if is_gross => finding.judge(Verdict::Wrong, format!("{text}: {cause}")),
        Some(cause) => finding.judge(Verdict::Suspicious, format!("{text}: {cause}")),
        None => finding.judge(Verdict::Suspicious, format!("{text}; set temperature_k to replace it")),
    }
}

/// Finds the offset of the particles' lattice, and refuses moving particles without displacements.
fn particle_lattice(
    examination: &mut Examination,
    communicator: &Communicator,
    set: &ParticleSet,
    cells: [usize; 3],
    across: f64,
) {
    let longest = cells.iter().max().copied().unwrap_or(1) as f64;
    let phases = [0, 1, 2].map(|axis| {
        let k = TAU * across * cells[axis] as f64 / longest / 2f64.powi(32);
        let phase = |n: usize| k * f64::from(set.position[axis][n]);
        let (cos, sin) = (set.mean(communicator, |n| phase(n).cos()), set.mean(communicator, |n| phase(n).sin()));
        (cos.hypot(sin), sin.atan2(cos) / TAU)
    });
    let found = match phases.iter().all(|(size, _)| *size > 0.2) {
        true => {
            let [x, y, z] = phases.map(|(_, offset)| format!("{:.3}", offset.rem_euclid(1.0)));
            format!("{x}, {y}, {z}")
        }
        false => "no lattice".into(),
    };
    let finding = examination.add(LATTICE_OFFSET, found, "");
    let at_rest = phases.iter().all(|(size, _)| (size - 1.0).abs() < 1e-7);
    let moves = (0..3).any(|axis| communicator.any(set.velocity[axis].iter().any(|v| *v != 0.0)));
    if at_rest && moves {
        finding.judge(
            Verdict::Wrong,
            "particles move, but are on their lattice: displacements were not applied to positions",
        );
    }
}

/// Compares density contrasts of both species.
fn both(
    examination: &mut Examination,
    grid: &Grid,
    gas: &[Complex<f64>],
    dark_matter: &[Complex<f64>],
    linear: &dyn Fn(f64) -> f64,
) {
    let likeness = grid.likeness(gas, dark_matter, linear);
    // of fields without waves among the compared modes round-off is left
    if likeness.ratio < ROUND_OFF {
        return;
    }
    let finding = examination.add("correlation of gas and dark matter", shown(likeness.correlation), "1");
    if likeness.correlation < -ALIKE {
        finding.judge(
            Verdict::Wrong,
            "gas is where dark matter is not: the density contrast of one has the opposite sign",
        );
    } else if likeness.correlation < ALIKE {
        let sentence =
            "gas and dark matter do not correlate: are they of one realisation, with the same order of axes?";
        finding.judge(Verdict::Wrong, sentence);
    }
    let is_alike = likeness.correlation >= ALIKE;
    let shift = likeness.shift.map(|d| d * grid.averaged as f64);
    let place = shown_shift(shift);
    let finding = examination.add("place of gas less that of dark matter, cells", place.clone(), "0");
    if is_alike && shift.iter().any(|d| d.abs() > SHIFT) {
        finding.judge(
            Verdict::Wrong,
            format!(
                "gas is displaced from dark matter by [{place}] cells along x, y, z: half a cell is the distance of cell \
                 centres, of which the gas has means, from corners, from which particles are displaced"
            ),
        );
    }
    let finding =
        examination.add("rms density contrast of gas over that of dark matter", shown(likeness.ratio), "at most 1");
    if is_alike && likeness.ratio > 1.2 {
        let sentence = format!(
            "gas is {:.3} times as clustered as dark matter, and baryons are never more: are their transfer functions swapped?",
            likeness.ratio
        );
        finding.judge(Verdict::Suspicious, sentence);
    }
}

fn picture(
    grid: &Grid,
    species: &'static str,
    modes: &SpeciesModes,
    rate: f64,
    linear: &dyn Fn(f64) -> f64,
) -> Picture {
    let alone = Communicator::alone();
    let delta = to_cells(&alone, grid.cells, modes.delta.clone());
    let mut low = vec![Complex::ZERO; modes.delta.len()];
    grid.for_each_mode(modes::WITHIN, |_, _, index, _| low[index] = modes.delta[index]);
    let [low, theta] = [low, grid.convergence(modes, rate)].map(|modes| to_cells(&alone, grid.cells, modes));
    let step = grid.count().div_ceil(POINTS).max(1);
    let [nx, ny, nz] = grid.cells;
    let plane = nz / 2 * nx * ny;
    Picture {
        species,
        spectrum: grid.spectrum(&modes.delta, linear),
        slice_cells: [nx, ny],
        slice: delta[plane..plane + nx * ny].to_vec(),
        scatter: (0..grid.count()).step_by(step).map(|i| [low[i], theta[i]]).collect(),
    }
}

/// The rms displacement along an axis in linear theory, of waves that fit the box and its cells, in Mpc/h: D² ∫ P dk/(6π²).
pub(crate) fn linear_displacement(subject: &Subject<'_>, cells: [usize; 3]) -> f64 {
    let longest = subject.box_mpc_h * cells.into_iter().max().unwrap_or(1) as f64 / cells[0] as f64;
    let (from, to) = (TAU / longest, PI * cells[0] as f64 / subject.box_mpc_h);
    const STEPS: usize = 512;
    let step = (to / from).ln() / STEPS as f64;
    let at = |n: usize| from * (step * (n as f64 + 0.5)).exp();
    let integral: f64 = (0..STEPS).map(|n| step * at(n) * subject.power.at(at(n))).sum();
    subject.cosmology.growth_factor(subject.a) * (integral / (6.0 * PI * PI)).sqrt()
}

#[cfg(test)]
mod tests;

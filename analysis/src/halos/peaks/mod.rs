//! Spherical-overdensity halos, grown around density peaks.
//!
//! 1. [`maxima`]: leaf cells denser than a threshold and than every leaf cell they touch, the densest first (equal
//!    densities by position: z, then y, then x).
//! 2. Around each peak, the smallest sphere, at least one peak cell in radius, whose mean density has fallen to Δ times
//!    the reference density ([`growth`]). Its mass is M = Δ ρ_ref 4π/3 R³.
//! 3. A peak inside a halo already accepted is that halo's sub-peak, and so is one most of whose sphere lies in accepted
//!    halos (`claims.rs`).
//!
//! The density is that of all matter: of the gas, and of dark matter where there is some, in units of the mean density of
//! matter. Velocities and temperatures are the gas's. About each halo's centre masses of further definitions are measured
//! ([`crate::halos::overdensity`]).
//! Spheres may overlap, and mass in an overlap counts in both halos: `overlaps` counts them. Because the densest peak
//! comes first and not the heaviest halo, a small dense halo can be accepted and later be covered by its host; it is kept,
//! and `parent` names the heaviest halo whose sphere holds its centre. Halos are numbered by falling mass.

mod claims;
pub mod growth;
pub mod maxima;

use crate::cell_fields::Gas;
use crate::error::AnalysisError;
use crate::halos::overdensity::{Overdensities, Probe, measure};
use crate::matter::{OneFluid, require_gas};
use crate::messages::{FIRST, broadcast};
use crate::part::{Part, alone};
use crate::sphere::{norm, separation};
use crate::table::{Column, Record, Table};
use claims::Claims;
use comove_sim::parallel::Communicator;
use comove_sim::{Cosmology, Snapshot};
use maxima::Peak;
use serde::{Deserialize, Serialize};

/// The density that Δ multiplies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reference {
    /// The mean matter density (non-comoving coordinates: the mean density of the box).
    #[default]
    Mean,
    /// The critical density at the snapshot's redshift.
    Critical,
}

/// Where a halo's centre lies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Centre {
    /// At the centre of the peak cell.
    #[default]
    Peak,
    /// At the ρ²-weighted mean position of the cells within two peak cell widths.
    DensityWeighted,
}

/// What a halo is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HaloOptions {
    /// Δ: mean density of a halo in the reference density.
    pub delta: f64,
    /// The density that Δ multiplies.
    pub reference: Reference,
    /// Density of a peak in the reference density; at least and by default Δ.
    pub peak_threshold: Option<f64>,
    /// Leaf cells (by their centres) that a halo around a density peak has at least.
    pub min_cells: usize,
    /// Definition of the centre.
    pub centre: Centre,
    /// Samples along a sphere's radius: cells wider than radius/samples are split evenly into as many sub-cells as it
    /// takes, each of which is in or out by its centre.
    pub samples: usize,
}

impl Default for HaloOptions {
    fn default() -> Self {
        Self {
            delta: 200.0,
            reference: Reference::Mean,
            peak_threshold: None,
            min_cells: 32,
            centre: Centre::Peak,
            samples: 16,
        }
    }
}

/// A halo. In non-comoving coordinates lengths, masses and velocities are in code units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Halo {
    /// Rank by mass, from 0.
    pub id: usize,
    /// Centre in comoving Mpc/h.
    pub position_mpc_h: [f64; 3],
    /// Comoving radius in Mpc/h.
    pub radius_mpc_h: f64,
    /// Mass of all matter in Msun/h.
    pub mass_msun_h: f64,
    /// The gas's share of it; 1 where there is no dark matter.
    #[serde(default = "all")]
    pub gas_fraction: f64,
    /// Density of the peak cell in units of the mean density.
    pub peak_density: f64,
    /// Mass-weighted mean peculiar velocity in km/s.
    pub velocity_km_s: [f64; 3],
    /// Mass-weighted mean temperature in K.
    pub temperature_k: f64,
    /// Leaf cells whose centres lie inside.
    pub cells: usize,
    /// Peaks inside, and saddles to other halos, that started no halo of their own.
    pub sub_peaks: usize,
    /// Other halos whose spheres meet this one.
    pub overlaps: usize,
    /// The heaviest heavier halo whose sphere holds this centre.
    pub parent: Option<usize>,
    /// Spherical overdensities about the centre.
    #[serde(flatten)]
    pub spheres: Overdensities,
}

fn all() -> f64 {
    1.0
}

/// The halos of a snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HaloCatalogue {
    /// Redshift.
    pub redshift: f64,
    /// Options of the stage.
    pub options: HaloOptions,
    /// The reference density in units of the mean density.
    pub reference_density: f64,
    /// Lengths of the box in Mpc/h.
    pub box_mpc_h: [f64; 3],
    /// The background; none in non-comoving coordinates.
    pub cosmology: Option<Cosmology>,
    /// Mass of all matter for each particle of dark matter in Msun/h, in a cosmology the particle's times Ω_m/(Ω_m − Ω_b), of
    /// the lightest class; none without dark matter.
    pub particle_mass_msun_h: Option<f64>,
    /// The halos, heaviest first.
    pub halos: Vec<Halo>,
    /// Density peaks above the threshold.
    pub peaks: usize,
    /// Peaks whose spheres hold fewer than `min_cells` cells.
    pub too_small: usize,
    /// Peaks whose spheres would reach half the box.
    pub unbounded: usize,
}

/// Spheres grown at once, or as many as there are ranks: peaks are taken one by one, so how many are grown in vain decides
/// nothing.
const BATCH: usize = 32;

/// Finds the halos of a snapshot.
///
/// # Errors
/// [`AnalysisError::Option`] for an option out of its range, or the critical density in non-comoving coordinates.
pub fn find_halos(snapshot: &Snapshot, options: &HaloOptions) -> Result<HaloCatalogue, AnalysisError> {
    find_halos_in(snapshot, &OneFluid::new(snapshot), options)
}

/// The same where all matter of the snapshot is at hand.
///
/// # Errors
/// As [`find_halos`].
pub fn find_halos_in(
    snapshot: &Snapshot,
    matter: &OneFluid,
    options: &HaloOptions,
) -> Result<HaloCatalogue, AnalysisError> {
    alone(snapshot, |communicator, part| find_halos_by(communicator, part, matter, options))
}

/// The same of a snapshot in parts, on the first rank, which alone knows the peaks and halos and says which are grown:
/// collective.
pub fn find_halos_by(
    communicator: &Communicator,
    whole: &Part,
    matter: &OneFluid,
    options: &HaloOptions,
) -> Result<Option<HaloCatalogue>, AnalysisError> {
    let reason = "density peaks need gas, and the snapshot has none; use finder: \"fof\"";
    require_gas(whole, reason)?;
    let part = &matter.part(whole);
    let gas = Gas::by(communicator, part);
    let snapshot = part.snapshot;
    let reference_density = reference_density(snapshot, options, &gas)?;
    options.check()?;
    let threshold = options.threshold();
    let peaks = maxima::find(communicator, part, threshold * reference_density);
    let peak_count = peaks.as_ref().map(Vec::len);
    let density = options.delta * reference_density;
    let at_once = BATCH.max(communicator.size());
    let mut claims = Claims::new(communicator, part, options.samples);
    let mut waiting = peaks.into_iter().flatten();
    loop {
        let starts = |peak: &Peak| !claims.joins(peak.position);
        let batch = waiting.by_ref().filter(starts).take(at_once).map(|peak| peak.numbers()).collect();
        let batch: Vec<Peak> = broadcast(communicator, FIRST, batch).into_iter().map(Peak::of).collect();
        if batch.is_empty() {
            break;
        }
        let grown = growth::grow(communicator, part, &gas, &batch, density, options);
        for (peak, outcome) in batch.iter().zip(grown) {
            // a halo accepted earlier in this batch may cover the peak
            if !claims.joins(peak.position) {
                claims.take(peak.position, outcome);
            }
        }
    }
    let Claims { mut halos, too_small, unbounded, .. } = claims;
    rank(snapshot, &mut halos);
    let particle_mass_msun_h = particle_mass_msun_h(whole, gas.mean_density());
    let mut catalogue = peak_count.map(|peaks| HaloCatalogue {
        redshift: part.header().redshift(),
        options: options.clone(),
        reference_density,
        box_mpc_h: snapshot.box_lengths(),
        cosmology: part.header().cosmology,
        particle_mass_msun_h,
        halos,
        peaks,
        too_small,
        unbounded,
    });
    let found = catalogue.iter().flat_map(|catalogue| &catalogue.halos);
    // R200m in half the overdensity is not twice as far; of a higher one it may be, and the sphere then grows
    let probe = |halo: &Halo| halo.position_mpc_h.into_iter().chain([1.5 * halo.radius_mpc_h]);
    let probes = broadcast(communicator, FIRST, found.flat_map(probe).collect());
    let probe = |numbers: &[f64]| Probe { centre: [numbers[0], numbers[1], numbers[2]], radius: numbers[3] };
    let probes: Vec<Probe> = probes.chunks_exact(4).map(probe).collect();
    let spheres = measure(communicator, whole, &probes, options.samples);
    for (halo, spheres) in catalogue.iter_mut().flat_map(|catalogue| &mut catalogue.halos).zip(spheres) {
        halo.spheres = spheres;
    }
    Ok(catalogue)
}

/// The mass that a particle stands for, if there are any.
///
/// * `mean_density`: of all matter in non-comoving coordinates; 1 in comoving ones
fn particle_mass_msun_h(part: &Part, mean_density: f64) -> Option<f64> {
    let header = part.header();
    let mean_density = header.cosmology.map_or(mean_density, |_| 1.0);
    let mass = mean_density * part.snapshot.box_lengths().iter().product::<f64>();
    header.dark_matter.map(|stated| mass / stated.number_if_lightest() as f64 * header.units().mass_msun_h())
}

/// Numbers the halos by falling mass (a stable sort: equal masses stay in the order of their peaks) and relates them.
fn rank(snapshot: &Snapshot, halos: &mut [Halo]) {
    halos.sort_by(|x, y| y.mass_msun_h.total_cmp(&x.mass_msun_h));
    let spheres: Vec<([f64; 3], f64)> = halos.iter().map(|h| (h.position_mpc_h, h.radius_mpc_h)).collect();
    for (id, halo) in halos.iter_mut().enumerate() {
        halo.id = id;
        let distance = |other: usize| norm(separation(snapshot, halo.position_mpc_h, spheres[other].0));
        halo.parent = (0..id).find(|&other| distance(other) < spheres[other].1);
        halo.overlaps = (0..spheres.len())
            .filter(|&other| other != id && distance(other) < halo.radius_mpc_h + spheres[other].1)
            .count();
    }
}

fn reference_density(snapshot: &Snapshot, options: &HaloOptions, gas: &Gas) -> Result<f64, AnalysisError> {
    match (options.reference, snapshot.header.cosmology) {
        (Reference::Mean, Some(_)) => Ok(1.0),
        (Reference::Mean, None) => Ok(gas.mean_density()),
        (Reference::Critical, Some(cosmology)) => Ok(cosmology.critical_over_mean(snapshot.header.a)),
        (Reference::Critical, None) => {
            Err(AnalysisError::option("reference", "critical", "needs comoving coordinates; use \"mean\""))
        }
    }
}

impl HaloOptions {
    /// Density of a peak in the reference density.
    fn threshold(&self) -> f64 {
        self.peak_threshold.unwrap_or(self.delta)
    }

    /// What can be refused without a snapshot.
    ///
    /// # Errors
    /// [`AnalysisError::Option`] for an option out of its range.
    pub fn check(&self) -> Result<(), AnalysisError> {
        if !(self.delta > 1.0 && self.delta.is_finite()) {
            return Err(AnalysisError::option("delta", self.delta, "must exceed 1"));
        }
        let threshold = self.threshold();
        if !threshold.is_finite() || threshold < self.delta {
            let reason = format!("must be at least {}, the overdensity of halos", self.delta);
            return Err(AnalysisError::option("peak_threshold", threshold, reason));
        }
        if !(4..=128).contains(&self.samples) {
            return Err(AnalysisError::option("samples", self.samples, "must lie between 4 and 128 along the radius"));
        }
        Ok(())
    }
}

impl Record for HaloCatalogue {
    fn table(&self) -> Table {
        let mut columns: Vec<Column<'_, Halo>> = vec![
            ("id", |h| h.id.into()),
            ("x_mpc_h", |h| h.position_mpc_h[0].into()),
            ("y_mpc_h", |h| h.position_mpc_h[1].into()),
            ("z_mpc_h", |h| h.position_mpc_h[2].into()),
            ("radius_mpc_h", |h| h.radius_mpc_h.into()),
            ("mass_msun_h", |h| h.mass_msun_h.into()),
            ("peak_density_mean", |h| h.peak_density.into()),
            ("vx_km_s", |h| h.velocity_km_s[0].into()),
            ("vy_km_s", |h| h.velocity_km_s[1].into()),
            ("vz_km_s", |h| h.velocity_km_s[2].into()),
            ("temperature_k", |h| h.temperature_k.into()),
            ("cells", |h| h.cells.into()),
            ("sub_peaks", |h| h.sub_peaks.into()),
            ("overlaps", |h| h.overlaps.into()),
            ("parent", |h| h.parent.into()),
        ];
        let has_dark_matter = self.particle_mass_msun_h.is_some();
        if has_dark_matter {
            columns.push(("gas_fraction", |h| h.gas_fraction.into()));
        }
        let mut table = Table::of(&self.halos, &columns);
        if self.cosmology.is_some() {
            Overdensities::add_columns(&mut table, self.halos.iter().map(|halo| &halo.spheres), has_dark_matter);
        }
        table
    }
}

#[cfg(test)]
mod tests;

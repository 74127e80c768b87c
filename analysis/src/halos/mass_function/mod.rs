//! The mass function dn/dlnM of a halo catalogue, in bins of log M, with the errors of Poisson statistics and predictions.
//!
//! Of a definition by a density, a halo counts unless its centre lies in the sphere of a heavier one; of friends of friends all
//! count. Predictions ([`Model`]) are averaged over each bin. They take σ(M) of linear theory today from the caller and scale
//! it with the growth of matter: M = ρ_m 4π/3 R³, σ in spheres of R.

mod models;

pub use models::Model;

use crate::error::AnalysisError;
use crate::halos::fof::FofCatalogue;
use crate::halos::overdensity::{MassDefinition, Overdensities, hosts};
use crate::halos::peaks::HaloCatalogue;
use crate::table::{Column, Record, Table};
use comove_sim::{Cosmology, Units};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::f64::consts::PI;

/// What is counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MassFunctionOptions {
    /// What the mass of a halo is: within a density, or of friends of friends.
    pub definition: MassDefinition,
    /// Bins per factor of ten in mass; every power of ten is an edge.
    pub bins_per_decade: usize,
    /// Mass of the lightest halos that count, in particles; of a snapshot without dark matter all count.
    pub min_particles: usize,
    /// The same in Msun/h, in place of that.
    pub min_mass_msun_h: Option<f64>,
}

impl Default for MassFunctionOptions {
    fn default() -> Self {
        Self { definition: MassDefinition::M200m, bins_per_decade: 5, min_particles: 100, min_mass_msun_h: None }
    }
}

impl MassFunctionOptions {
    /// What can be refused without halos.
    ///
    /// # Errors
    /// [`AnalysisError::Option`] for an option out of its range.
    pub fn check(&self) -> Result<(), AnalysisError> {
        if !(1..=50).contains(&self.bins_per_decade) {
            return Err(AnalysisError::option("bins_per_decade", self.bins_per_decade, "must lie between 1 and 50"));
        }
        if let Some(mass) = self.min_mass_msun_h
            && !(1e4..1e17).contains(&mass)
        {
            return Err(AnalysisError::option("min_mass_msun_h", mass, "must lie between 1e4 and 1e17 Msun/h"));
        }
        if self.min_particles == 0 {
            return Err(AnalysisError::option("min_particles", 0, "at least 1"));
        }
        Ok(())
    }
}

/// The halos of a catalogue by one definition of mass.
#[derive(Clone, Debug)]
pub struct HaloMasses {
    redshift: f64,
    cosmology: Cosmology,
    box_mpc_h: [f64; 3],
    particle_mass_msun_h: Option<f64>,
    masses_msun_h: Vec<f64>,
    /// Left out because they lie within others.
    within_others: usize,
    /// Left out because they have no mass of the definition.
    without_mass: usize,
}

/// A sphere about a halo's centre: position, radius, mass.
type HaloSphere = ([f64; 3], f64, f64);

impl HaloMasses {
    /// Of friends of friends.
    ///
    /// # Errors
    /// [`AnalysisError::Option`] in non-comoving coordinates.
    pub fn of_friends(catalogue: &FofCatalogue, definition: MassDefinition) -> Result<Self, AnalysisError> {
        let FofCatalogue { redshift, cosmology, box_mpc_h, particle_mass_msun_h, .. } = *catalogue;
        let none = Self::none(redshift, cosmology, box_mpc_h, Some(particle_mass_msun_h))?;
        if definition == MassDefinition::Fof {
            return Ok(Self { masses_msun_h: catalogue.halos.iter().map(|halo| halo.mass_msun_h).collect(), ..none });
        }
        Ok(none.with(definition, catalogue.halos.iter().map(|halo| (halo.position_mpc_h, &halo.spheres))))
    }

    /// Of density peaks.
    ///
    /// # Errors
    /// [`AnalysisError::Option`] for the mass of friends of friends, or in non-comoving coordinates.
    pub fn of_peaks(catalogue: &HaloCatalogue, definition: MassDefinition) -> Result<Self, AnalysisError> {
        if definition == MassDefinition::Fof {
            let reason = "needs friends-of-friends halos, and these are density peaks; set finder: \"fof\" in halos";
            return Err(AnalysisError::option("definition", "fof", reason));
        }
        let HaloCatalogue { redshift, cosmology, box_mpc_h, particle_mass_msun_h, .. } = *catalogue;
        let none = Self::none(redshift, cosmology, box_mpc_h, particle_mass_msun_h)?;
        Ok(none.with(definition, catalogue.halos.iter().map(|halo| (halo.position_mpc_h, &halo.spheres))))
    }

    /// No halos of a box.
    fn none(
        redshift: f64,
        cosmology: Option<Cosmology>,
        box_mpc_h: [f64; 3],
        particle_mass_msun_h: Option<f64>,
    ) -> Result<Self, AnalysisError> {
        let reason = "mass functions need comoving coordinates";
        let cosmology = cosmology.ok_or_else(|| AnalysisError::option("coordinates", "non-comoving", reason))?;
        let masses_msun_h = Vec::new();
        let (within_others, without_mass) = (0, 0);
        Ok(Self { redshift, cosmology, box_mpc_h, particle_mass_msun_h, masses_msun_h, within_others, without_mass })
    }

    /// The background.
    pub fn cosmology(&self) -> &Cosmology {
        &self.cosmology
    }

    /// With the halos at these centres that lie in no heavier one.
    fn with<'a>(
        self,
        definition: MassDefinition,
        halos: impl ExactSizeIterator<Item = ([f64; 3], &'a Overdensities)>,
    ) -> Self {
        let all = halos.len();
        let sphere = |(centre, spheres): ([f64; 3], &Overdensities)| {
            let sphere = spheres.of(definition)?;
            Some((centre, sphere.radius_mpc_h, sphere.mass_msun_h))
        };
        let mut spheres: Vec<HaloSphere> = halos.filter_map(sphere).collect();
        spheres.sort_by(|x, y| y.2.total_cmp(&x.2));
        let shapes: Vec<([f64; 3], f64)> = spheres.iter().map(|sphere| (sphere.0, sphere.1)).collect();
        let hosts = hosts(&shapes, self.box_mpc_h);
        let masses_msun_h: Vec<f64> =
            spheres.iter().zip(&hosts).filter(|(_, host)| host.is_none()).map(|(sphere, _)| sphere.2).collect();
        let within_others = spheres.len() - masses_msun_h.len();
        Self { within_others, without_mass: all - spheres.len(), masses_msun_h, ..self }
    }
}

/// Halos in a bin of mass.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MassBin {
    /// Lower edge in Msun/h.
    pub low_msun_h: f64,
    /// Upper edge in Msun/h.
    pub high_msun_h: f64,
    /// Middle of the bin in log M, in Msun/h, for the abscissa of the predictions.
    pub centre_msun_h: f64,
    /// Mean mass of the halos in Msun/h; of an empty bin its middle in log M.
    pub mass_msun_h: f64,
    /// Halos.
    pub halos: usize,
    /// dn/dlnM in (h/Mpc)³, comoving.
    pub dn_dlnm_h3_mpc3: f64,
    /// Its error: that of the square root of the halos.
    pub error_h3_mpc3: f64,
    /// The mean of Tinker et al. 2008 in the bin.
    pub tinker08_h3_mpc3: Option<f64>,
    /// The mean of Despali et al. 2016 in the bin.
    pub despali16_h3_mpc3: Option<f64>,
}

/// A mass function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MassFunction {
    /// Redshift.
    pub redshift: f64,
    /// Options of the stage.
    pub options: MassFunctionOptions,
    /// The background.
    pub cosmology: Cosmology,
    /// Comoving volume of the box in (Mpc/h)³.
    pub volume_mpc3_h3: f64,
    /// Mass that a particle of dark matter stands for in Msun/h.
    pub particle_mass_msun_h: Option<f64>,
    /// Halos in the bins.
    pub halos: usize,
    /// Halos lighter than the lowest bin.
    pub below_bins: usize,
    /// Halos left out because they have no mass of this definition.
    pub without_mass: usize,
    /// Halos left out because their centres lie within heavier ones.
    pub within_others: usize,
    /// From small masses to the largest, or to where a prediction expects one halo.
    pub bins: Vec<MassBin>,
}

/// Parts of a bin that predictions are summed over: Simpson's rule.
const PARTS: usize = 8;

/// Mass up to which predictions look for the last bin, in Msun/h.
const HEAVIEST: f64 = 1e17;

/// The mass function of halos; without bins where there is neither a halo nor a least mass.
///
/// * `sigma`: RMS of the linear density today in spheres of this radius in Mpc/h; `None` where that is not known, and bins of such
///   masses have no prediction
///
/// # Errors
/// [`AnalysisError::Option`] for an option out of its range.
pub fn mass_function(
    halos: &HaloMasses,
    options: &MassFunctionOptions,
    sigma: &(dyn Fn(f64) -> Option<f64> + Sync),
) -> Result<MassFunction, AnalysisError> {
    options.check()?;
    let masses = &halos.masses_msun_h;
    let per_decade = options.bins_per_decade as f64;
    let of_particles = halos.particle_mass_msun_h.map(|mass| mass * options.min_particles as f64);
    let lightest = masses.iter().copied().reduce(f64::min);
    let volume: f64 = halos.box_mpc_h.iter().product();
    let found = |bins: Vec<MassBin>| {
        let in_bins = bins.iter().map(|bin| bin.halos).sum();
        MassFunction {
            redshift: halos.redshift,
            options: options.clone(),
            cosmology: halos.cosmology,
            volume_mpc3_h3: volume,
            particle_mass_msun_h: halos.particle_mass_msun_h,
            halos: in_bins,
            below_bins: masses.len() - in_bins,
            without_mass: halos.without_mass,
            within_others: halos.within_others,
            bins,
        }
    };
    let Some(least) = options.min_mass_msun_h.or(of_particles).or(lightest) else { return Ok(found(Vec::new())) };
    let up = if options.min_mass_msun_h.or(of_particles).is_some() { f64::ceil } else { f64::floor };
    // an edge that is hit but for round-off is hit
    let first = up(least.log10() * per_decade * (1.0 - 1e-14));
    let edge = |n: usize| 10f64.powf((first + n as f64) / per_decade);
    let heaviest = masses.iter().copied().fold(0.0, f64::max);
    let most = ((heaviest.max(HEAVIEST).log10() * per_decade).floor() - first).max(0.0) as usize + 1;

    let width = std::f64::consts::LN_10 / per_decade;
    let a = 1.0 / (1.0 + halos.redshift);
    let linear = Linear::new(&halos.cosmology, a, sigma, (edge(0), width, most));
    let predictions = [Model::Tinker2008, Model::Despali2016]
        .map(|model| model.multiplicity(options.definition, &halos.cosmology, a).map(|f| linear.predicted(&*f)));
    let mut in_bins = vec![Vec::new(); most];
    for &mass in masses.iter().filter(|mass| **mass >= edge(0)) {
        let near = ((mass.log10() * per_decade - first).floor().max(0.0) as usize).min(most - 1);
        // round-off may be on the other side of an edge
        let bin = (near.saturating_sub(1)..=near + 1).find(|&n| mass < edge(n + 1)).unwrap_or(near).min(most - 1);
        in_bins[bin].push(mass);
    }
    let expected = |bin: usize| predictions.iter().flatten().filter_map(|model| model[bin]).fold(0.0, f64::max);
    let is_needed = |&bin: &usize| !in_bins[bin].is_empty() || expected(bin) * volume * width >= 1.0;
    let count = (0..most).rev().find(is_needed).unwrap_or(0) + 1;
    let bins = (0..count)
        .map(|n| {
            let (low, high) = (edge(n), edge(n + 1));
            let centre = (low * high).sqrt();
            let inside = &in_bins[n];
            let number = inside.len() as f64;
            MassBin {
                low_msun_h: low,
                high_msun_h: high,
                centre_msun_h: centre,
                mass_msun_h: if inside.is_empty() { centre } else { inside.iter().sum::<f64>() / number },
                halos: inside.len(),
                dn_dlnm_h3_mpc3: number / (volume * width),
                error_h3_mpc3: number.sqrt() / (volume * width),
                tinker08_h3_mpc3: predictions[0].as_ref().and_then(|model| model[n]),
                despali16_h3_mpc3: predictions[1].as_ref().and_then(|model| model[n]),
            }
        })
        .collect();
    Ok(found(bins))
}

/// σ(M) at one epoch, on points in bins of mass.
struct Linear {
    /// Lower edge of the first bin in Msun/h.
    first: f64,
    bins: usize,
    /// Between points, in lnM.
    step: f64,
    /// Mean matter density in Msun/h (h/Mpc)³.
    density: f64,
    /// From one point before the first bin to one behind the last.
    ln_sigma: Vec<Option<f64>>,
}

impl Linear {
    /// Of bins from `first` on, `width` wide in lnM.
    fn new(
        cosmology: &Cosmology,
        a: f64,
        sigma: &(dyn Fn(f64) -> Option<f64> + Sync),
        (first, width, bins): (f64, f64, usize),
    ) -> Self {
        let density = Units::new(Some(*cosmology)).mass_msun_h();
        let growth = cosmology.growth_factor(a);
        let empty = Self { first, bins, step: width / PARTS as f64, density, ln_sigma: Vec::new() };
        let radius = |point: usize| (empty.mass(point) / (density * 4.0 / 3.0 * PI)).cbrt();
        let at = |point: usize| Some((growth * sigma(radius(point))?).ln());
        let ln_sigma = (0..bins * PARTS + 3).into_par_iter().map(at).collect();
        Self { ln_sigma, ..empty }
    }

    fn mass(&self, point: usize) -> f64 {
        self.first * ((point as f64 - 1.0) * self.step).exp()
    }

    /// dn/dlnM = f(σ) ρ_m/M dlnσ⁻¹/dlnM in (h/Mpc)³, averaged over each bin; `None` where σ is not known.
    fn predicted(&self, multiplicity: &dyn Fn(f64) -> f64) -> Vec<Option<f64>> {
        let at = |point: usize| {
            let slope = (self.ln_sigma[point - 1]? - self.ln_sigma[point + 1]?) / (2.0 * self.step);
            Some(multiplicity(self.ln_sigma[point]?.exp()) * self.density / self.mass(point) * slope)
        };
        let mean = |bin: usize| {
            let sum: Option<f64> = (0..=PARTS)
                .map(|part| {
                    let weight = if part == 0 || part == PARTS { 1.0 } else { 2.0 + 2.0 * (part % 2) as f64 };
                    Some(weight * at(1 + bin * PARTS + part)?)
                })
                .sum();
            Some(sum? / (3.0 * PARTS as f64))
        };
        (0..self.bins).map(mean).collect()
    }
}

impl Record for MassFunction {
    fn table(&self) -> Table {
        let columns: [Column<'_, MassBin>; 9] = [
            ("low_msun_h", |bin| bin.low_msun_h.into()),
            ("high_msun_h", |bin| bin.high_msun_h.into()),
            ("centre_msun_h", |bin| bin.centre_msun_h.into()),
            ("mass_msun_h", |bin| bin.mass_msun_h.into()),
            ("halos", |bin| bin.halos.into()),
            ("dn_dlnm_h3_mpc3", |bin| bin.dn_dlnm_h3_mpc3.into()),
            ("error_h3_mpc3", |bin| bin.error_h3_mpc3.into()),
            ("tinker08_h3_mpc3", |bin| bin.tinker08_h3_mpc3.into()),
            ("despali16_h3_mpc3", |bin| bin.despali16_h3_mpc3.into()),
        ];
        Table::of(&self.bins, &columns)
    }
}

#[cfg(test)]
mod tests;

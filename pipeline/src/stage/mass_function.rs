//! `mass_function`: dn/dlnM of catalogues of halos, beside predictions.

use super::combine::{data_of, moment_of};
use super::result::read_json;
use super::section::Section;
use super::{Input, Stage, StageResult, Work};
use crate::error::PipelineError;
use crate::moment::Moment;
use comove_analysis::figure::results::mass_function_figure;
use comove_analysis::halos::Catalogue;
use comove_analysis::halos::mass_function::{MassBin, MassFunction, MassFunctionOptions, mass_function};
use comove_analysis::halos::overdensity::MassDefinition;
use comove_analysis::table::Record;
use comove_ic::{LinearPower, PowerSource, SpeciesTransfer};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// The mass functions of what a stage of [`super::halos`] has found.
#[derive(Clone, Debug)]
pub(crate) struct MassFunctions {
    pub options: MassFunctionOptions,
    /// Where the linear spectrum of the predictions comes from.
    pub power: PowerSource,
    /// Its table at the initial redshift; only beside massive neutrinos.
    pub start: Option<(SpeciesTransfer, f64)>,
}

/// What a recipe says in `mass_function(HALOS, #{ … })` besides what is counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PredictionOptions {
    /// Shape of the linear spectrum of the predictions; by default that of the run's initial condition where `ic_gaussian` makes
    /// it, else `"eisenstein_hu"`. The amplitude is the cosmology's `sigma8`.
    pub power: Option<PowerSource>,
}

/// The name of [`PredictionOptions`]'s option.
pub(crate) const PREDICTION: [&str; 1] = ["power"];

/// The kind of stage whose catalogues are counted.
pub(crate) const HALOS: &str = "halos";

/// Why a run with massive neutrinos has no predictions.
const WITHOUT_TABLES: &str = "; no predictions: with m_nu_ev they need the two tables of ic_gaussian";

impl MassFunctions {
    /// The mass function of a catalogue, and why bins have no predictions, if some have none.
    fn of(&self, catalogue: &Input) -> Result<(MassFunction, String), PipelineError> {
        let halos = read_json::<Catalogue>(&catalogue.path)?;
        let masses = halos.masses(self.options.definition)?;
        let cosmology = masses.cosmology();
        let linear = match &self.start {
            Some((species, z)) => LinearPower::of_box(&self.power, Some(species), cosmology, *z)?,
            None if cosmology.has_neutrinos() => {
                let found = mass_function(&masses, &self.options, &|_| None)?;
                return Ok((found, WITHOUT_TABLES.into()));
            }
            None => LinearPower::new(&self.power, cosmology)?,
        };
        let is_known = AtomicBool::new(true);
        let sigma = |radius: f64| {
            let sigma = linear.sigma(radius);
            is_known.fetch_and(sigma.is_some(), Ordering::Relaxed);
            sigma
        };
        let found = mass_function(&masses, &self.options, &sigma)?;
        if is_known.into_inner() {
            return Ok((found, String::new()));
        }
        let has_prediction = |bin: &&MassBin| bin.tinker08_h3_mpc3.or(bin.despali16_h3_mpc3).is_some();
        let first = found.bins.iter().find(has_prediction);
        let below = first.map_or(String::new(), |first| format!(" below {:.2e} Msun/h", first.low_msun_h));
        let left_out = format!(
            "; no predictions{below}: the table of the linear spectrum ends at k = {:.3} h/Mpc, and most of the variance of such \
             masses comes from larger k",
            linear.range().1
        );
        Ok((found, left_out))
    }
}

impl Stage for MassFunctions {
    fn kind(&self) -> &'static str {
        "mass_function"
    }

    fn results_version(&self) -> u32 {
        // predictions: σ(M) without a cut at k = 100 h/Mpc or at the end of a table
        2
    }

    fn describe(&self) -> String {
        let MassFunctionOptions { definition, bins_per_decade, .. } = self.options;
        format!("{}, {bins_per_decade} bins per factor of ten", shown(definition))
    }

    fn parameters(&self) -> Value {
        // a table counts by its content
        let mut parameters = json!({ "options": self.options, "power": self.power.name() });
        if let Some((species, z)) = &self.start {
            parameters["species_transfer"] = json!({ "name": species.name(), "z": z });
        }
        parameters
    }

    fn files(&self) -> Vec<PathBuf> {
        let start = self.start.as_ref().map(|(species, _)| species.file());
        self.power.file().into_iter().chain(start).map(PathBuf::from).collect()
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        Ok(data_of(input).into_iter().filter(|file| file.name().starts_with(HALOS)).collect())
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let text = format!(
            "Halos by mass ({}), comoving, in bins of log M; errors are the square root of the number of halos. \
             Predictions are the means of Tinker et al. 2008 and Despali et al. 2016 over each bin.",
            shown(self.options.definition)
        );
        let mut section = Section::new(text);
        let mut files = Vec::new();
        for input in work.all_inputs() {
            let (found, without_prediction) = self.of(input)?;
            if !without_prediction.is_empty() {
                tracing::warn!("{}{without_prediction}", input.name());
            }
            let now = moment_of(&input.name()).unwrap_or(Moment::Redshift(found.redshift).rounded());
            let file = format!("mass_function_{}", now.tag());
            files.extend(work.write_record(&file, &found)?);
            // without halos and a least mass there is nothing to draw
            if !found.bins.is_empty() {
                files.extend(work.write_figure(&file, &mass_function_figure(&found), &mut section)?);
            }
            let left_out = left_out(&found);
            section.record(format!("{now}: {}{left_out}{without_prediction}", halos_of(found.halos)), &found.table());
        }
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

/// So many halos, in words.
fn halos_of(count: usize) -> String {
    format!("{count} halo{}", if count == 1 { "" } else { "s" })
}

/// The halos that are in no bin, and why.
fn left_out(found: &MassFunction) -> String {
    let least = found.bins.first().map(|bin| format!("lighter than the lowest bin ({:.3e} M☉/h)", bin.low_msun_h));
    let reasons = [
        (found.below_bins, least.unwrap_or_else(|| "too light for a bin".into())),
        (found.without_mass, format!("without {}", shown(found.options.definition))),
        (found.within_others, "with centres inside heavier ones".into()),
    ];
    let parts: Vec<String> =
        reasons.into_iter().filter(|(n, _)| *n > 0).map(|(n, why)| format!("{} {why}", halos_of(n))).collect();
    if parts.is_empty() { String::new() } else { format!("; not in the bins: {}", parts.join(", ")) }
}

fn shown(definition: MassDefinition) -> String {
    match definition {
        MassDefinition::Fof => "friends of friends".into(),
        other => format!("M{}", other.name()),
    }
}

#[cfg(test)]
mod tests;

//! `mass_function`: dn/dlnM of catalogues of halos, beside predictions.

use super::combine::{data_of, moment_of};
use super::result::read_json;
use super::section::Section;
use super::{Input, Stage, StageResult, Work};
use crate::error::PipelineError;
use crate::moment::Moment;
use comove_analysis::figure::results::mass_function_figure;
use comove_analysis::halos::Catalogue;
use comove_analysis::mass_function::{MassFunction, MassFunctionOptions, mass_function};
use comove_analysis::spherical_overdensity::MassDefinition;
use comove_analysis::table::Record;
use comove_ic::{LinearPower, PowerSource};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::PathBuf;

/// The mass functions of what a stage of [`super::halos`] has found.
#[derive(Clone, Debug)]
pub(crate) struct MassFunctions {
    pub options: MassFunctionOptions,
    /// Where the linear spectrum of the predictions comes from.
    pub power: PowerSource,
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

impl MassFunctions {
    /// The mass function of a catalogue.
    fn of(&self, catalogue: &Input) -> Result<MassFunction, PipelineError> {
        let halos = read_json::<Catalogue>(&catalogue.path)?;
        let masses = halos.masses(self.options.definition)?;
        let linear = LinearPower::new(&self.power, masses.cosmology())?;
        Ok(mass_function(&masses, &self.options, &|radius| linear.sigma(radius))?)
    }
}

impl Stage for MassFunctions {
    fn kind(&self) -> &'static str {
        "mass_function"
    }

    fn describe(&self) -> String {
        let MassFunctionOptions { definition, bins_per_decade, .. } = self.options;
        format!("{}, {bins_per_decade} bins per factor of ten", shown(definition))
    }

    fn parameters(&self) -> Value {
        // a table counts by its content
        json!({ "options": self.options, "power": self.power.name() })
    }

    fn files(&self) -> Vec<PathBuf> {
        self.power.file().map(PathBuf::from).into_iter().collect()
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
            let found = self.of(input)?;
            let now = moment_of(&input.name()).unwrap_or(Moment::Redshift(found.redshift).rounded());
            let file = format!("mass_function_{}", now.tag());
            files.extend(work.write_record(&file, &found)?);
            // without halos and a least mass there is nothing to draw
            if !found.bins.is_empty() {
                files.push(work.write_figure(&file, &mass_function_figure(&found), &mut section)?);
            }
            let MassFunction { halos, within_others, .. } = found;
            let left_out = match within_others {
                0 => String::new(),
                n => format!("; {n} more have their centres in heavier ones and are left out"),
            };
            section.record(format!("{now}: {halos} halos{left_out}"), &found.table());
        }
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

fn shown(definition: MassDefinition) -> String {
    match definition {
        MassDefinition::Fof => "friends of friends".into(),
        other => format!("M{}", other.name()),
    }
}

#[cfg(test)]
mod tests;

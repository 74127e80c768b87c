//! `power_spectrum`: P(k) of the density of a run's outputs.

use super::analysis::Analysis;
use super::initial::InitialCondition;
use super::section::Section;
use super::{Selection, Stage, Work};
use crate::error::PipelineError;
use comove_analysis::covering_grid::GRID_LIMIT_MIB;
use comove_analysis::figure::results::power_figure;
use comove_analysis::power_spectrum::{PowerOptions, PowerSpectrum, Species, power_spectrum_by};
use comove_analysis::table::Record;
use comove_analysis::{AnalysisError, Part};
use comove_ic::{IcError, LinearPower, PowerSource, SpeciesTransfer};
use comove_sim::Cosmology;
use comove_sim::parallel::Communicator;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(crate) struct PowerSpectra {
    pub outputs: Selection,
    /// Grid and binning.
    pub options: PowerOptions,
    /// Linear theory of all matter; `None` without an initial condition that has a linear spectrum.
    pub linear: Option<LinearTheory>,
}

/// The linear spectrum that a run starts from, grown to any time.
#[derive(Clone, Debug)]
pub(crate) struct LinearTheory {
    pub power: PowerSource,
    pub cosmology: Cosmology,
    /// Table of the initial redshift; only beside massive neutrinos.
    pub start: Option<(SpeciesTransfer, f64)>,
}

impl LinearTheory {
    pub(crate) fn of(initial: &InitialCondition) -> Self {
        match initial {
            InitialCondition::Gaussian(ic) => Self {
                power: ic.power.clone(),
                cosmology: ic.cosmology,
                start: ic.species_transfer.clone().filter(|_| ic.cosmology.has_neutrinos()).map(|table| (table, ic.z)),
            },
            InitialCondition::Load(ic, _) => {
                Self { power: PowerSource::default(), cosmology: ic.cosmology, start: None }
            }
        }
    }

    fn linear_power(&self) -> Result<LinearPower, IcError> {
        match &self.start {
            Some((species, z)) => LinearPower::of_box(&self.power, Some(species), &self.cosmology, *z),
            None => LinearPower::new(&self.power, &self.cosmology),
        }
    }

    /// P(k) at the bins of any spectrum: P(k, a) = P(k) D²(a)/D²(1).
    fn at_bins(&self) -> Result<impl Fn(&PowerSpectrum) -> Vec<f64>, IcError> {
        let (linear, cosmology) = (self.linear_power()?, self.cosmology);
        Ok(move |spectrum: &PowerSpectrum| {
            let grown = cosmology.growth_factor(1.0 / (1.0 + spectrum.redshift)).powi(2);
            spectrum.bins.iter().map(|bin| grown * linear.at(bin.k_h_mpc)).collect()
        })
    }
}

fn species(species: Species) -> &'static str {
    match species {
        Species::Matter => "all matter",
        Species::Gas => "gas",
        Species::DarkMatter => "dark matter",
        Species::Cross => "gas with dark matter",
    }
}

impl Analysis for PowerOptions {
    type Found = PowerSpectrum;

    fn find(&self, communicator: &Communicator, part: &Part) -> Result<Option<PowerSpectrum>, AnalysisError> {
        power_spectrum_by(communicator, part, self, GRID_LIMIT_MIB)
    }
}

impl Stage for PowerSpectra {
    fn kind(&self) -> &'static str {
        "power_spectrum"
    }

    fn describe(&self) -> String {
        format!("{} on the grid of level {}", species(self.options.species), self.options.level)
    }

    fn parameters(&self) -> Value {
        let mut parameters = json!(self.options);
        let options = parameters.as_object_mut().expect("a map of options");
        if self.options.species == Species::Matter {
            // what a spectrum was before there were species
            options.remove("species");
        }
        if !self.options.subtract_shot_noise {
            // absent before it could be subtracted
            options.remove("subtract_shot_noise");
        }
        parameters
    }

    fn results_version(&self) -> u32 {
        2
    }

    fn outputs(&self) -> Option<&Selection> {
        Some(&self.outputs)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let window = if self.options.deconvolve {
            "divided by the cell's window"
        } else {
            "not corrected for the cell's window"
        };
        let text = format!(
            "P(k) of the density contrast ({}) on the uniform grid of level {}, {window}.",
            species(self.options.species),
            self.options.level
        );
        let source = match &self.linear {
            Some(linear) => format!(" Linear theory: {}, σ8 = {}.", linear.power.name(), linear.cosmology.sigma8),
            None => String::new(),
        };
        let linear = self
            .linear
            .as_ref()
            .and_then(|linear| linear.at_bins().inspect_err(|error| tracing::warn!("no linear theory: {error}")).ok());
        let mut files = Vec::new();
        let mut spectra = Vec::new();
        for input in work.all_inputs() {
            let mut spectrum = work.find(input, &self.options)?;
            if let Some(linear) = &linear {
                spectrum.linear_mpc3_h3 = linear(&spectrum);
            }
            files.extend(work.write_record(&format!("power_spectrum_{}", work.shown(input).tag()), &spectrum)?);
            spectra.push((format!("{}", work.shown(input)), spectrum));
        }
        let noise = match spectra.iter().any(|(_, spectrum)| spectrum.shot_noise_mpc3_h3.is_some()) {
            false => "",
            true if self.options.subtract_shot_noise => " The shot noise of the particles is subtracted.",
            true => " The shot noise of the particles is not subtracted; a column of the tables states it.",
        };
        let mut section = Section::new(format!("{text}{noise}{source}"));
        for (name, spectrum) in &spectra {
            section.record(name.clone(), &spectrum.table());
        }
        let named: Vec<(String, &PowerSpectrum)> = spectra.iter().map(|(name, s)| (name.clone(), s)).collect();
        files.extend(work.write_figure("power_spectrum", &power_figure(&named), &mut section)?);
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

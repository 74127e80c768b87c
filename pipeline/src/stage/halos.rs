//! `halos`: a catalogue of halos, found around density peaks or by friends of friends, and radial profiles of the heaviest.

use super::analysis::Analysis;
use super::section::Section;
use super::{Input, Selection, Stage, StageResult, Work};
use crate::error::PipelineError;
use crate::task::AnalysisRequest;
use comove_analysis::figure::results::profile_figure;
use comove_analysis::friends_of_friends::{FofCatalogue, FofOptions, find_fof_halos_by};
use comove_analysis::halo_finder::{HaloCatalogue, HaloOptions, find_halos_by};
use comove_analysis::halo_profile::{HaloProfile, ProfileCentre, ProfileOptions, halo_profiles_by};
use comove_analysis::mass_function::HaloMasses;
use comove_analysis::matter::OneFluid;
use comove_analysis::spherical_overdensity::MassDefinition;
use comove_analysis::table::{Record, Table};
use comove_analysis::{AnalysisError, Part};
use comove_sim::parallel::Communicator;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Halos and profiles of the selected outputs.
#[derive(Clone, Debug)]
pub(crate) struct Halos {
    pub outputs: Selection,
    pub options: HalosAndProfiles,
}

/// What a recipe says in `halos(RUN, #{ … })` on how halos are found; each way has options of its own.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FinderChoice {
    /// Spheres around density peaks of all matter (options `delta` to `samples`), or friends of friends of dark-matter
    /// particles (`linking_length`, `min_particles`).
    pub finder: FinderName,
}

/// The name of [`FinderChoice`]'s option.
pub(crate) const FINDER_CHOICE: [&str; 1] = ["finder"];

/// A way to find halos.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FinderName {
    /// Density peaks.
    #[default]
    Peaks,
    /// Friends of friends.
    Fof,
}

/// A way to find halos with its options.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Finder {
    /// Density peaks.
    Peaks(HaloOptions),
    /// Friends of friends.
    Fof(FofOptions),
}

/// What a recipe says in `halos(RUN, #{ … })` besides the finder's options.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ProfileChoice {
    /// How many of the heaviest halos get a profile.
    pub profiles: usize,
    /// The bins of a profile.
    pub profile: ProfileOptions,
}

/// The names of [`ProfileChoice`]'s options.
pub(crate) const PROFILE_CHOICE: [&str; 2] = ["profiles", "profile"];

/// Halos that the report lists.
const LISTED: usize = 20;

impl Default for ProfileChoice {
    fn default() -> Self {
        Self { profiles: 5, profile: ProfileOptions::default() }
    }
}

/// The halos of a snapshot, and profiles of the heaviest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct HalosAndProfiles {
    /// What a halo is.
    pub finder: Finder,
    /// How many of the heaviest halos get a profile.
    pub profiles: usize,
    /// The bins of a profile.
    pub profile: ProfileOptions,
}

/// What a finder has found, as it is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Catalogue {
    /// Friends of friends.
    Fof(FofCatalogue),
    /// Density peaks.
    Peaks(HaloCatalogue),
}

impl Finder {
    /// The halos of a snapshot, on the first process: collective.
    pub(crate) fn find(
        &self,
        communicator: &Communicator,
        part: &Part,
        matter: &OneFluid,
    ) -> Result<Option<Catalogue>, AnalysisError> {
        match self {
            Self::Peaks(options) => Ok(find_halos_by(communicator, part, matter, options)?.map(Catalogue::Peaks)),
            Self::Fof(options) => Ok(find_fof_halos_by(communicator, part, options)?.map(Catalogue::Fof)),
        }
    }

    /// In a few words that begin with a capital.
    fn heading(&self) -> &'static str {
        match self {
            Self::Peaks(_) => "Spheres around density peaks",
            Self::Fof(_) => "Friends of friends of dark-matter particles",
        }
    }

    fn describe(&self) -> String {
        match self {
            Self::Peaks(options) => {
                let reference = format!("{:?}", options.reference).to_lowercase();
                format!("{} times the {reference} density", options.delta)
            }
            Self::Fof(FofOptions { linking_length, min_particles }) => {
                format!("friends of friends, b = {linking_length}, {min_particles} particles or more")
            }
        }
    }
}

impl Catalogue {
    /// What profiles of the heaviest halos are taken around.
    fn heaviest(&self, count: usize) -> Vec<ProfileCentre> {
        match self {
            Self::Fof(found) => found.halos.iter().take(count).map(Into::into).collect(),
            Self::Peaks(found) => found.halos.iter().take(count).map(Into::into).collect(),
        }
    }

    /// Masses by one definition.
    pub(crate) fn masses(&self, definition: MassDefinition) -> Result<HaloMasses, AnalysisError> {
        match self {
            Self::Fof(found) => HaloMasses::of_friends(found, definition),
            Self::Peaks(found) => HaloMasses::of_peaks(found, definition),
        }
    }
}

impl Record for Catalogue {
    fn table(&self) -> Table {
        match self {
            Self::Fof(found) => found.table(),
            Self::Peaks(found) => found.table(),
        }
    }
}

impl Analysis for HalosAndProfiles {
    type Found = (Catalogue, Vec<HaloProfile>);

    fn find(&self, communicator: &Communicator, part: &Part) -> Result<Option<Self::Found>, AnalysisError> {
        let matter = OneFluid::by(communicator, part)?;
        let catalogue = self.finder.find(communicator, part, &matter)?;
        let heaviest = catalogue.as_ref().map_or(Vec::new(), |catalogue| catalogue.heaviest(self.profiles));
        let profiles = halo_profiles_by(communicator, part, &matter, &heaviest, &self.profile)?;
        Ok(catalogue.zip(profiles))
    }
}

impl Stage for Halos {
    fn kind(&self) -> &'static str {
        "halos"
    }

    fn describe(&self) -> String {
        let HalosAndProfiles { finder, profiles, .. } = &self.options;
        format!("{}, profiles of the heaviest {profiles}", finder.describe())
    }

    fn results_version(&self) -> u32 {
        2
    }

    fn parameters(&self) -> Value {
        json!(self.options)
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        self.outputs.of(input)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let mut section = Section::new(format!("{}: {}.", self.options.finder.heading(), self.describe()));
        let mut files = Vec::new();
        for input in work.all_inputs() {
            let (catalogue, found) = work.find(input, &self.options, AnalysisRequest::Halos)?;
            let now = input.shown();
            files.extend(work.write_record(&format!("halos_{}", now.tag()), &catalogue)?);
            let mut table = catalogue.table();
            let caption =
                format!("{now}: {} halos, the heaviest {} listed", table.rows.len(), table.rows.len().min(LISTED));
            table.rows.truncate(LISTED);
            section.record(caption, &table);
            let mut profiles = Vec::new();
            for profile in found {
                files.extend(work.write_record(&format!("profile_{}_halo{}", now.tag(), profile.halo), &profile)?);
                profiles.push((format!("halo {}", profile.halo), profile));
            }
            if let Some((_, heaviest)) = profiles.first() {
                let named: Vec<(String, &HaloProfile)> = profiles.iter().map(|(name, p)| (name.clone(), p)).collect();
                files.push(work.write_figure(
                    &format!("profiles_{}", now.tag()),
                    &profile_figure(&named),
                    &mut section,
                )?);
                section.record(format!("{now}: profile of the heaviest halo"), &heaviest.table());
            }
        }
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

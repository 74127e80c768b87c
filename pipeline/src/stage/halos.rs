//! `halos`: a catalogue of halos, found by friends of friends or around density peaks, and radial profiles of the heaviest.

use super::analysis::Analysis;
use super::section::Section;
use super::{Selection, Stage, Work};
use crate::error::PipelineError;
use comove_analysis::figure::results::profile_figure;
use comove_analysis::halos::fof::FofOptions;
use comove_analysis::halos::profile::{HaloProfile, HaloProfiles, ProfileOptions, WithoutProfile, halo_profiles_by};
use comove_analysis::halos::{Catalogue, Finder};
use comove_analysis::matter::OneFluid;
use comove_analysis::table::Record;
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

impl Analysis for HalosAndProfiles {
    type Found = (Catalogue, HaloProfiles);

    fn find(&self, communicator: &Communicator, part: &Part) -> Result<Option<Self::Found>, AnalysisError> {
        let matter = OneFluid::by(communicator, part);
        let catalogue = self.finder.find(communicator, part, &matter)?;
        let heaviest = catalogue.as_ref().map_or(Vec::new(), |catalogue| catalogue.heaviest(self.profiles));
        let profiles = halo_profiles_by(communicator, part, &matter, &heaviest, &self.profile)?;
        Ok(catalogue.zip(profiles))
    }
}

/// How halos are found, in a few words that begin with a capital.
fn heading(finder: &Finder) -> &'static str {
    match finder {
        Finder::Peaks(_) => "Spheres around density peaks",
        Finder::Fof(_) => "Friends of friends of dark-matter particles",
        Finder::Default => "Default finder",
    }
}

fn describe(finder: &Finder) -> String {
    match finder {
        Finder::Peaks(options) => {
            let reference = format!("{:?}", options.reference).to_lowercase();
            format!("{} times the {reference} density", options.delta)
        }
        Finder::Fof(FofOptions { linking_length, min_particles }) => {
            format!("b = {linking_length}, at least {min_particles} particles")
        }
        Finder::Default => "friends of friends, or density peaks where there is gas alone".into(),
    }
}

impl Halos {
    fn describe_with(&self, finder: &Finder) -> String {
        format!("{}, profiles of the heaviest {}", describe(finder), self.options.profiles)
    }
}

impl Stage for Halos {
    fn kind(&self) -> &'static str {
        "halos"
    }

    fn describe(&self) -> String {
        self.describe_with(&self.options.finder)
    }

    fn results_version(&self) -> u32 {
        4
    }

    fn parameters(&self) -> Value {
        json!(self.options)
    }

    fn outputs(&self) -> Option<&Selection> {
        Some(&self.outputs)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let mut section = Section::default();
        let mut files = Vec::new();
        for input in work.all_inputs() {
            let (catalogue, found) = work.find(input, &self.options)?;
            let now = work.shown(input);
            let found_by = catalogue.finder();
            section.text = format!("{}: {}.", heading(&found_by), self.describe_with(&found_by));
            files.extend(work.write_record(&format!("halos_{}", now.tag()), &catalogue)?);
            let mut table = catalogue.table();
            let caption = match table.rows.len() {
                1 => format!("{now}: one halo"),
                halos => format!("{now}: {halos} halos, the heaviest {} listed", halos.min(LISTED)),
            };
            table.rows.truncate(LISTED);
            section.record(caption, &table);
            let mut profiles = Vec::new();
            for profile in found.profiles {
                files.extend(work.write_record(&format!("profile_{}_halo{}", now.tag(), profile.halo), &profile)?);
                profiles.push((format!("halo {}", profile.halo), profile));
            }
            if !found.without.is_empty() {
                let row = |without: &WithoutProfile| vec![without.halo.to_string(), without.reason.clone()];
                for WithoutProfile { halo, reason } in &found.without {
                    tracing::info!("{now}: no profile of halo {halo}: {reason}");
                }
                let rows = found.without.iter().map(row).collect();
                section.table(&format!("{now}: halos without a profile"), &["halo", "reason"], rows);
            }
            if let Some((_, heaviest)) = profiles.first() {
                let named: Vec<(String, &HaloProfile)> = profiles.iter().map(|(name, p)| (name.clone(), p)).collect();
                files.extend(work.write_figure(
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

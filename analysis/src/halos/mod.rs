//! Halos: by friends of friends ([`fof`]) or around density peaks ([`peaks`]); masses and radii about their centres
//! ([`overdensity`]), radial profiles ([`profile`]), and the number of halos by mass ([`mass_function`]).

pub mod fof;
pub mod mass_function;
mod nfw;
pub mod overdensity;
pub mod peaks;
pub mod profile;

use crate::error::AnalysisError;
use crate::halos::fof::{FofCatalogue, FofOptions, find_fof_halos_by};
use crate::halos::mass_function::HaloMasses;
use crate::halos::overdensity::MassDefinition;
use crate::halos::peaks::{HaloCatalogue, HaloOptions, find_halos_by};
use crate::halos::profile::ProfileCentre;
use crate::matter::OneFluid;
use crate::part::Part;
use crate::table::{Record, Table};
use comove_sim::parallel::Communicator;
use serde::{Deserialize, Serialize};

/// A way to find halos, with its options.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Finder {
    /// Spheres around density peaks.
    Peaks(HaloOptions),
    /// Friends of friends.
    Fof(FofOptions),
    /// With default options friends of friends where there is dark matter, else spheres around density peaks.
    Default,
}

/// What a finder has found, as it is written.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Catalogue {
    /// Friends of friends.
    Fof(FofCatalogue),
    /// Spheres around density peaks.
    Peaks(HaloCatalogue),
}

impl Finder {
    /// Friends of friends where there is dark matter, else density peaks.
    pub fn default_for(has_dark_matter: bool) -> Self {
        if has_dark_matter { Self::Fof(FofOptions::default()) } else { Self::Peaks(HaloOptions::default()) }
    }

    /// The halos of a snapshot in parts, on the first rank: collective.
    ///
    /// # Errors
    /// As [`find_halos_by`] and [`find_fof_halos_by`].
    pub fn find(
        &self,
        communicator: &Communicator,
        part: &Part,
        matter: &OneFluid,
    ) -> Result<Option<Catalogue>, AnalysisError> {
        match self {
            Self::Default => Self::default_for(part.header().dark_matter.is_some()).find(communicator, part, matter),
            Self::Peaks(options) => Ok(find_halos_by(communicator, part, matter, options)?.map(Catalogue::Peaks)),
            Self::Fof(options) => Ok(find_fof_halos_by(communicator, part, options)?.map(Catalogue::Fof)),
        }
    }
}

impl Catalogue {
    /// The finder and its options.
    pub fn finder(&self) -> Finder {
        match self {
            Self::Fof(found) => Finder::Fof(found.options.clone()),
            Self::Peaks(found) => Finder::Peaks(found.options.clone()),
        }
    }

    /// What profiles of the heaviest halos are taken around.
    pub fn heaviest(&self, count: usize) -> Vec<ProfileCentre> {
        match self {
            Self::Fof(found) => found.halos.iter().take(count).map(Into::into).collect(),
            Self::Peaks(found) => found.halos.iter().take(count).map(Into::into).collect(),
        }
    }

    /// Masses by one definition.
    ///
    /// # Errors
    /// As [`HaloMasses::of_friends`] and [`HaloMasses::of_peaks`].
    pub fn masses(&self, definition: MassDefinition) -> Result<HaloMasses, AnalysisError> {
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

//! Halos found in either way: around density peaks, or by friends of friends.

use crate::error::AnalysisError;
use crate::friends_of_friends::{FofCatalogue, FofOptions, find_fof_halos_by};
use crate::halo_finder::{HaloCatalogue, HaloOptions, find_halos_by};
use crate::halo_profile::ProfileCentre;
use crate::mass_function::HaloMasses;
use crate::matter::OneFluid;
use crate::part::Part;
use crate::spherical_overdensity::MassDefinition;
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
            Self::Peaks(options) => Ok(find_halos_by(communicator, part, matter, options)?.map(Catalogue::Peaks)),
            Self::Fof(options) => Ok(find_fof_halos_by(communicator, part, options)?.map(Catalogue::Fof)),
        }
    }
}

impl Catalogue {
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

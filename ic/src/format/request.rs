//! Options of a recipe that loads an initial condition.

use crate::identities::Identities;
use comove_sim::{Cosmology, Precision};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Unit of lengths in a Gadget file that does not state one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthUnit {
    /// Comoving Mpc/h
    MpcH,
    /// Comoving kpc/h
    KpcH,
}

impl LengthUnit {
    pub(crate) const ALL: [Self; 2] = [Self::MpcH, Self::KpcH];

    /// In Mpc/h.
    pub(crate) fn mpc_h(self) -> f64 {
        if self == Self::MpcH { 1.0 } else { 1e-3 }
    }

    /// Name in recipes.
    pub(crate) fn name(self) -> &'static str {
        if self == Self::MpcH { "mpc_h" } else { "kpc_h" }
    }

    /// Name in messages.
    pub(crate) fn written(self) -> &'static str {
        if self == Self::MpcH { "Mpc/h" } else { "kpc/h" }
    }
}

/// An initial condition in a file, with what the recipe says about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadIc {
    /// The file, the first of several, or a folder.
    pub path: PathBuf,
    /// Its format; by default recognised by content.
    pub format: Option<LoadFormat>,
    /// Unit of lengths of a Gadget file that does not state one; by default Mpc/h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length_unit: Option<LengthUnit>,
    /// The background; a file that states another is refused.
    pub cosmology: Cosmology,
    /// Length of the box along x in comoving Mpc/h; a file that states another is refused.
    pub box_mpc_h: f64,
    /// Cells of the mesh in the file along x, y, z: root cells · 2^level. For particles alone any in the proportions of the box.
    pub cells: [usize; 3],
    /// Redshift; a file that states another is refused.
    pub z: f64,
    /// Gas temperature in K to take instead of the file's energy.
    pub temperature_k: Option<f64>,
    /// Mean molecular weight μ in hydrogen masses; a file that states another is refused.
    pub mean_molecular_weight: f64,
    /// Ratio of specific heats; a file that states another is refused.
    pub gamma: f64,
    /// Whether gas alone may have all of omega_m, more than omega_b, without a remark.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub baryons_only: bool,
    /// Identities of the particles that refinement follows, of the lightest mass; by default all that the file does not mark.
    #[serde(default, skip_serializing_if = "Identities::is_empty")]
    pub follow: Identities,
    /// The reason why the file is accepted though findings of its examination are wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<String>,
}

/// The format of a file to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadFormat {
    /// GAMER's raw binary `UM_IC`, which has no header.
    UmIc {
        /// Order of its axes.
        order: Order,
        /// Precision of its numbers; by default deduced from its size.
        precision: Option<Precision>,
    },
    /// Our own HDF5 file, which states its epoch, box and cosmology.
    ComoveIc,
    /// Gadget's snapshot, HDF5 or of format 1 or 2, in one or several files.
    Gadget,
    /// SWIFT's HDF5 initial condition, in one or several files.
    Swift,
    /// A folder of GRAFIC files, as RAMSES reads them.
    Grafic,
    /// A folder of HDF5 files that MUSIC writes for Enzo.
    Enzo,
    /// monofonIC's HDF5 file of format `generic`.
    Monofonic,
    /// MUSIC's HDF5 file of format `generic`.
    Music,
}

/// Order of the axes, slowest first; v is the field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Field by field, GAMER's `OPT__UM_IC_FORMAT` 1.
    #[default]
    Vzyx,
    /// Cell by cell, GAMER's `OPT__UM_IC_FORMAT` 2.
    Zyxv,
}

impl LoadFormat {
    /// Name in recipes.
    pub fn name(self) -> &'static str {
        match self {
            Self::UmIc { .. } => "um_ic",
            Self::ComoveIc => "comove_ic",
            Self::Gadget => "gadget",
            Self::Swift => "swift",
            Self::Grafic => "grafic",
            Self::Enzo => "enzo",
            Self::Monofonic => "monofonic",
            Self::Music => "music",
        }
    }
}

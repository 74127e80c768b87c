//! The datasets of a file by name, and the documents of its `/Comove` group.

use super::gamer::TreeShape;
use super::header::SnapshotHeader;
use crate::gas::fields::Field;
use serde::{Deserialize, Serialize};

/// Version of the `/Comove` group; a reader refuses a higher one. Format 1 names one boundary for all faces of the box,
/// format 2 the axes along which it is periodic.
pub(super) const FORMAT: u32 = 2;

/// Lower corners of the patches.
pub(super) const CORNER: &str = "Tree/Corner";
/// First refining patches.
pub(super) const SON: &str = "Tree/Son";
/// Particles of each patch; there where the snapshot has dark matter.
pub(super) const PARTICLE_COUNTS: &str = "Tree/NPar";
/// The columns of particles that are read back: positions in code length, velocities like the gas's, identities.
pub(super) const POSITIONS: [&str; 3] = ["Particle/ParPosX", "Particle/ParPosY", "Particle/ParPosZ"];
/// See [`POSITIONS`].
pub(super) const VELOCITIES: [&str; 3] = ["Particle/ParVelX", "Particle/ParVelY", "Particle/ParVelZ"];
/// See [`POSITIONS`].
pub(super) const IDENTITIES: &str = "Comove/particle_id";
/// Masses, which follow from header and identities: for readers that want a column.
pub(super) const MASSES: &str = "Particle/ParMass";
/// Sizes and time.
pub(super) const KEY_INFO: &str = "Info/KeyInfo";
/// Whether coordinates are comoving.
pub(super) const MAKEFILE: &str = "Info/Makefile";
/// Units.
pub(super) const INPUT_PARA: &str = "Info/InputPara";
/// The [`Document`] as JSON.
pub(super) const HEADER: &str = "Comove/header";
/// The recipe's text.
pub(super) const RECIPE: &str = "Comove/recipe";
/// What a restart needs, as JSON.
pub(super) const RESTART: &str = "Comove/restart";
/// Where the file comes from, as JSON.
pub(super) const PROVENANCE: &str = "Comove/provenance";
/// Pressure of the gas by the run's own rule: derived, for readers that know no entropy scalar.
pub(super) const PRESSURE: &str = "GridData/Pres";
/// The attribute of a dataset that holds its digest.
pub(super) const DIGEST: &str = "blake3";

/// What `/Comove/header` says.
#[derive(Serialize, Deserialize)]
pub(super) struct Document {
    /// [`FORMAT`] of the writer.
    pub(super) format: u32,
    /// What `/Tree/Corner` does not say of the octree.
    pub(super) tree: TreeShape,
    /// Whether `/GridData/Pote` is there.
    pub(super) potential: bool,
    /// Whether `/GridData/ParDens` is there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) dark_matter: bool,
    /// The header; its recipe, restart data and provenance are empty here and lie in datasets of their own, so that
    /// the digests of what a run computed do not depend on where it ran.
    pub(super) snapshot: SnapshotHeader,
}

impl Document {
    /// The document of a header and a tree.
    pub(super) fn new(header: &SnapshotHeader, tree: TreeShape, dark_matter: bool, potential: bool) -> Self {
        let snapshot = SnapshotHeader {
            restart: serde_json::Value::Null,
            recipe: String::new(),
            provenance: serde_json::Value::Null,
            ..header.clone()
        };
        Self { format: FORMAT, tree, potential, dark_matter, snapshot }
    }

    /// The names of all datasets that a file with this document has, in file order.
    pub(super) fn datasets(&self) -> Vec<String> {
        [HEADER, RECIPE, RESTART, PROVENANCE, KEY_INFO, MAKEFILE, INPUT_PARA, CORNER, SON]
            .into_iter()
            .map(String::from)
            .chain(self.stored_fields().iter().map(dataset))
            .chain(self.pressure())
            .chain(self.particle_columns().into_iter().map(String::from))
            .collect()
    }

    /// The dataset of the pressure; none without gas.
    pub(super) fn pressure(&self) -> Option<String> {
        self.snapshot.fields.has_gas().then(|| PRESSURE.into())
    }

    /// The datasets of particles; none without dark matter.
    pub(super) fn particle_columns(&self) -> Vec<&'static str> {
        let columns = POSITIONS.into_iter().chain(VELOCITIES).chain([IDENTITIES, MASSES, PARTICLE_COUNTS]);
        columns.filter(|_| self.snapshot.dark_matter.is_some()).collect()
    }

    /// The fields of the file, in file order.
    pub(super) fn stored_fields(&self) -> Vec<Field> {
        self.snapshot.fields.stored(self.dark_matter, self.potential).collect()
    }
}

/// The dataset of a field.
pub(super) fn dataset(field: &Field) -> String {
    format!("GridData/{}", field.dataset)
}

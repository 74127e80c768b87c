//! The snapshot: one HDF5 file format for checkpoints and outputs, in the layout that yt's `gamer` frontend reads.

use crate::cosmology::Cosmology;
use crate::error::SimError;
use crate::host_state::HostState;
use crate::parameters::{Coordinates, Precision};
use crate::units::Units;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// What a snapshot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// On the trajectory, at the end of a root step: restarts bit for bit.
    Checkpoint,
    /// A side branch at an exact time: to look at; resuming from it starts another trajectory.
    Output,
    /// An initial condition.
    Initial,
}

/// What a snapshot says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SnapshotHeader {
    /// Checkpoint or output.
    pub role: Role,
    /// Scale factor; 1 in plain coordinates.
    pub a: f64,
    /// Code time since the start of the run.
    pub time: f64,
    /// Root steps taken.
    pub step: u64,
    /// Box length along x in code length (comoving Mpc/h); cells are cubic, so the other axes follow.
    pub box_length: f64,
    /// Comoving or plain.
    pub coordinates: Coordinates,
    /// The background; `None` in plain coordinates.
    pub cosmology: Option<Cosmology>,
    /// Ratio of specific heats.
    pub gamma: f64,
    /// Mean molecular weight, for temperatures.
    pub mean_molecular_weight: f64,
    /// Switch between energy and entropy scalar, for pressures.
    pub eta: f64,
    /// Precision of the run and of the file's fields.
    pub precision: Precision,
    /// What else a bitwise restart needs: the run's own counters and ledgers, opaque to readers.
    pub restart: serde_json::Value,
    /// The recipe's canonical text; empty if there was none.
    pub recipe: String,
    /// Program version, device class, host and the like.
    pub provenance: serde_json::Value,
}

impl SnapshotHeader {
    /// Redshift: 1/a − 1.
    pub fn redshift(&self) -> f64 {
        1.0 / self.a - 1.0
    }

    /// The units of the run.
    pub fn units(&self) -> Units {
        Units::new(self.cosmology)
    }
}

/// A snapshot in memory.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// What it says of itself.
    pub header: SnapshotHeader,
    /// Octree and fields.
    pub state: HostState,
}

impl Snapshot {
    /// Cell width of a level in code length.
    pub fn cell_width(&self, level: usize) -> f64 {
        self.header.box_length / self.state.tree.cells(level)[0] as f64
    }

    /// Box lengths along x, y, z in code length.
    pub fn box_lengths(&self) -> [f64; 3] {
        self.state.tree.cells(0).map(|n| n as f64 * self.cell_width(0))
    }

    /// Writes the file: temporary name, fsync, read back and verified, renamed. Returns the BLAKE3 digest (hex) of the
    /// whole file.
    ///
    /// # Errors
    /// [`SimError::Io`], [`SimError::Hdf5`]; the file of that name, if any, is then untouched.
    pub fn write(&self, path: &Path) -> Result<String, SimError> {
        todo!("{path:?}")
    }

    /// Reads a file and verifies every dataset's digest.
    ///
    /// # Errors
    /// [`SimError::Io`], [`SimError::NotASnapshot`], [`SimError::Damaged`].
    pub fn read(path: &Path) -> Result<Self, SimError> {
        todo!("{path:?}")
    }

    /// Reads the header alone (digest verified).
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn read_header(path: &Path) -> Result<SnapshotHeader, SimError> {
        todo!("{path:?}")
    }
}

//! The snapshot: one HDF5 file format for checkpoints and outputs, in the layout that yt's `gamer` frontend reads.
//!
//! | module | what it holds |
//! |---|---|
//! | `header` | what a snapshot says of itself |
//! | `gamer` | the order of patches and cells in the file, `/Tree` from an octree and back |
//! | `info` | the `/Info` compounds: sizes, times and units for yt |
//! | `contents` | the datasets of a file by name, and the `/Comove` documents |
//! | `digest` | BLAKE3 of arrays and of whole files |
//! | `write` | temporary name, by all ranks, block by block from the owners of groups, fsync, read back and verified, renamed |
//! | `source`, `read` | datasets checked in type, shape and digest, block by block; the snapshot from them |
//! | `particles` | dark matter in the file |
//! | `part` | what a rank has of a snapshot whose cells are shared out: read by each rank from the file |
//! | `distribute` | what a run starts from; the fields of a file, read by all ranks, to the owners of groups |
//!
//! The format is described for readers in `docs/snapshot-format.md`.

use crate::dark_matter::HostParticles;
use crate::error::SimError;
use crate::io::blocks;
use crate::mesh::Octree;
use crate::mesh::host_state::HostState;
use crate::parallel::Communicator;
use std::path::Path;

mod column;
mod contents;
mod digest;
mod distribute;
mod gamer;
mod header;
mod info;
mod part;
mod particles;
mod read;
mod source;
mod write;

pub use digest::{file_digest, file_digest_reporting};
pub use distribute::StartFrom;
pub use header::{Role, SnapshotHeader};
pub use part::{Pieces, SnapshotPart};
pub use read::StoredSnapshot;
pub use write::Unverified;

/// The version of the HDF5 library that snapshots are read and written with.
pub fn hdf5_version() -> String {
    let (major, minor, micro) = hdf5::library_version();
    format!("{major}.{minor}.{micro}")
}

/// A snapshot in memory. Where ranks share a run, each has its own groups alone.
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
        self.header.cell_width(&self.state.tree, level)
    }

    /// Box lengths along x, y, z in code length.
    pub fn box_lengths(&self) -> [f64; 3] {
        self.header.box_lengths(&self.state.tree)
    }

    /// Writes the file: temporary name in the same folder, fsync, read back and verified, renamed. Returns the BLAKE3
    /// digest (hex) of the whole file.
    ///
    /// Fields are rounded to the header's precision, which is exact for the state of a run.
    ///
    /// # Errors
    /// [`SimError::Parameter`] for a header or tree that no file can hold, [`SimError::Hdf5`], and [`SimError::Io`],
    /// also when the file does not read back as written. The temporary file is then gone and the file
    /// of that name, if any, untouched.
    ///
    /// # Panics
    /// If the arrays of the state do not have the tree's number of groups: the caller's bug.
    pub fn write(&self, path: &Path) -> Result<String, SimError> {
        let written = self.write_by(&Communicator::alone(), path)?;
        written.expect("a rank without others is the first").complete()
    }

    /// The same of a snapshot whose groups are distributed out to ranks, up to a file under its temporary name, which the first
    /// rank then [completes](Unverified::complete). Its bytes do not depend on the ranks. Collective: the header is the same
    /// on all ranks, but for recipe and provenance, which count on the first one.
    ///
    /// # Errors
    /// As [`Snapshot::write`], on all ranks.
    ///
    /// # Panics
    /// As [`Snapshot::write`].
    pub fn write_by(&self, communicator: &Communicator, path: &Path) -> Result<Option<Unverified>, SimError> {
        write::write(self, communicator, path, blocks::GROUPS)
    }

    /// Reads a file and verifies every dataset's digest. The state has the bits that were written.
    ///
    /// # Errors
    /// [`SimError::Io`] where the file cannot be read, [`SimError::NotASnapshot`] where it lacks something,
    /// [`SimError::Damaged`] where it is not what its digests say.
    pub fn read(path: &Path) -> Result<Self, SimError> {
        Self::read_reporting(path, &|_| ())
    }

    /// The same, while `report` is told the fraction that is read.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn read_reporting(path: &Path, report: &dyn Fn(f64)) -> Result<Self, SimError> {
        StoredSnapshot::open(path)?.read(report)
    }

    /// Reads everything of a file and verifies every dataset's digest, as [`Snapshot::read`] does, and keeps nothing.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn verify(path: &Path) -> Result<(), SimError> {
        read::verify(path, path)
    }

    /// Reads the header alone (digests verified).
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn read_header(path: &Path) -> Result<SnapshotHeader, SimError> {
        read::read_header(path)
    }

    /// Reads the header and the octree, without the fields (digests verified).
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn read_tree(path: &Path) -> Result<(SnapshotHeader, Octree), SimError> {
        read::read_tree(path)
    }

    /// Bytes of its fields and particles in memory.
    pub fn bytes(&self) -> usize {
        let scalars = self.state.scalars.iter().map(Vec::len).sum::<usize>();
        let particles = self.state.particles.as_ref().map_or(0, HostParticles::bytes);
        let fields = self.state.fluid.len() + self.state.potential.len() + self.state.dark_matter.len() + scalars;
        size_of::<f64>() * fields + particles
    }

    /// The stored digests (hex) of a file's datasets by name, in file order; the datasets are not read. Two files with
    /// equal digests of `/Tree`, `/GridData` and `/Comove/restart` continue alike.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn digests(path: &Path) -> Result<Vec<(String, String)>, SimError> {
        read::digests(path)
    }

    /// The digest (hex) of what a file shows, whoever wrote it and where: octree, fields, restart data and the rest of the
    /// header, from the stored digests, but neither recipe and provenance nor what only follows from these. Equal for
    /// files that [`Snapshot::read`] gives the same state of and that continue alike.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn content_digest(path: &Path) -> Result<String, SimError> {
        read::content_digest(path)
    }
}

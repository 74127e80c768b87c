//! What can be wrong with an initial condition.

use comove_sim::parallel::CollectiveError;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum IcError {
    /// A cosmology or run parameter that `comove-sim` refuses.
    #[error(transparent)]
    Sim(#[from] comove_sim::SimError),
    /// A number that no initial condition can use.
    #[error("{name} = {value}: {reason}")]
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file that HDF5 refuses.
    #[error("{path}: {source}")]
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// What HDF5 said.
        source: hdf5::Error,
    },
    /// A raw file whose size is not that of the mesh asked for.
    #[error("{path}: {found} bytes, expected {expected}: {remedy}")]
    Size {
        /// The file.
        path: PathBuf,
        /// Bytes that the recipe's cells and precision make.
        expected: String,
        /// Bytes that are there.
        found: u64,
        /// What to change.
        remedy: String,
    },
    /// A line of a table that cannot be used.
    #[error("{path}, line {line}: {reason}, in {text:?}")]
    TableLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
        /// The line's text.
        text: String,
    },
    /// A power spectrum table that does not reach as far as the mesh.
    #[error(
        "the power spectrum is tabulated for k = {from:e} to {to:e} h/Mpc, the mesh has modes from {need_from:e} to \
         {need_to:e}: use a longer table, another box or other cells"
    )]
    TableRange {
        /// Smallest tabulated k in h/Mpc.
        from: f64,
        /// Largest tabulated k in h/Mpc.
        to: f64,
        /// Smallest k of the mesh in h/Mpc.
        need_from: f64,
        /// Largest k of the mesh in h/Mpc.
        need_to: f64,
    },
    /// A file that says something else than the recipe.
    #[error("{path}: the file has {name} = {file}, the recipe says {recipe}: change one of them")]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// What both of them state.
        name: &'static str,
        /// The file's value.
        file: String,
        /// The recipe's value.
        recipe: String,
    },
    /// A file that lacks something or holds it in another form.
    #[error("{path}: {reason}")]
    Content {
        /// The file.
        path: PathBuf,
        /// What is missing or wrong, and what is expected.
        reason: String,
    },
    /// A cell that no gas can be in.
    #[error("cell {cell:?} (x, y, z): {field} = {value:e}: {reason}")]
    Cell {
        /// The field.
        field: &'static str,
        /// The cell on the mesh, x, y, z.
        cell: [usize; 3],
        /// Its value there.
        value: f64,
        /// Why not, and what would do.
        reason: &'static str,
    },
    /// Gas that cannot be, from a formula.
    #[error("{field} = {value:e} at ({}, {}, {}), the centre of a cell {width} wide: must be {}", position[0],
        position[1], position[2], if *field == "velocity" { "finite" } else { "positive and finite" })]
    Gas {
        /// The quantity.
        field: &'static str,
        /// Its value.
        value: f64,
        /// Centre of the cell, code length.
        position: [f64; 3],
        /// Width of the cell, code length.
        width: f64,
    },
    /// Another of the ranks that share the work could not go on.
    #[error("rank {rank}: {message}")]
    OnRank {
        /// Which.
        rank: usize,
        /// [`IcError::is_of_the_system`].
        of_the_system: bool,
        /// What it said.
        message: String,
    },
    /// A problem that does not exist.
    #[error("unknown problem \"{name}\"; available: {known}")]
    UnknownProblem {
        /// The name asked for.
        name: String,
        /// The names of those that exist.
        known: String,
    },
    /// An option that a problem does not know or cannot use.
    #[error("problem \"{problem}\": {path}: {message}")]
    ProblemOption {
        /// The problem's name.
        problem: String,
        /// Path of the option, names joined by points.
        path: String,
        /// What is wrong.
        message: String,
    },
}

impl IcError {
    /// Whether the system failed, or HDF5, and not what was asked for: it may pass. An input that is not there is the
    /// recipe's affair.
    pub fn is_of_the_system(&self) -> bool {
        match self {
            Self::Hdf5 { .. } => true,
            Self::Sim(error) => error.kind() == comove_sim::error::ErrorKind::File,
            Self::Io { source, .. } => source.kind() != ErrorKind::NotFound,
            Self::OnRank { of_the_system, .. } => *of_the_system,
            _ => false,
        }
    }
}

impl CollectiveError for IcError {
    /// [`IcError::is_of_the_system`].
    type Kind = bool;

    fn collective_kind(&self) -> bool {
        self.is_of_the_system()
    }

    fn on_rank(rank: usize, of_the_system: bool, message: String) -> Self {
        Self::OnRank { rank, of_the_system, message }
    }
}

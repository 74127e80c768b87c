//! What can go wrong in a run.

pub(crate) mod diagnosis;
mod overfull_cell;
pub(crate) mod shortage;
mod strays;

pub use diagnosis::{CellGas, Diagnosis};
pub use overfull_cell::OverfullCell;
use serde::{Deserialize, Serialize};
pub use shortage::{Bound, Shortage};
use std::path::PathBuf;
pub use strays::Strays;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A kernel could not run.
    #[error(transparent)]
    Kernel(#[from] comove_kernels::KernelError),
    /// A tree that does not fit the memory there is. Nothing has moved.
    #[error("{0}")]
    OutOfMemory(Box<Shortage>),
    /// A number that no run can use.
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
    /// A snapshot whose content is not what its digests say.
    #[error("{path}: {dataset} does not match its digest: the file is damaged; use an earlier snapshot")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The dataset or part.
        dataset: String,
    },
    /// A file that is not one of ours, or lacks something.
    #[error("{path}: not a comove snapshot: {reason}")]
    NotASnapshot {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// Another of the ranks that share a run could not go on.
    #[error("rank {rank}: {message}")]
    OnRank {
        /// Which.
        rank: usize,
        /// What kind of thing that is.
        kind: ErrorKind,
        /// What it said.
        message: String,
    },
    /// What keeps processes from computing one run.
    #[error("MPI: {0}")]
    Mpi(String),
    /// A step that no rung of the robustness ladder could save.
    #[error("step {step}: {fault}, after {tried}; first cell: {cell}")]
    Unphysical {
        /// Root step.
        step: u64,
        /// What is wrong, and in how many cells.
        fault: Fault,
        /// What was tried.
        tried: String,
        /// The first of these cells, as it is now, and its neighbours.
        cell: Box<Diagnosis>,
    },
    /// Particles that have lost their velocity.
    #[error(
        "step {step}: {particles} particles have velocities above 2000 code units along an axis, or not finite ones"
    )]
    UnphysicalParticles {
        /// Root step.
        step: u64,
        /// How many.
        particles: u64,
    },
    /// Particles that would leave a box that is not periodic.
    #[error("step {step}: {strays}")]
    ParticlesLeave {
        /// Root step.
        step: u64,
        /// Which they are.
        strays: Strays,
    },
    /// Dark matter in a cell that exceeds the range of its integer.
    #[error("{0}")]
    CellMass(OverfullCell),
}

/// What kind of thing went wrong, on which rank ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ErrorKind {
    /// What was asked for cannot be, or a file is not what it should be.
    Input,
    /// A file cannot be read or written.
    File,
    /// A device cannot be used, or ranks cannot work together.
    Device,
    /// There is not enough memory.
    Room,
    /// The state has become unphysical.
    Unphysical,
}

/// What is wrong with the state after a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    /// Cells that are not finite, or not positive although they were raised to the floors.
    Invalid {
        /// How many.
        cells: u64,
    },
    /// More cells had to be raised to the floors than `floor_budget` allows.
    Floored {
        /// How many.
        cells: u64,
        /// How many may be.
        allowed: u64,
    },
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid { cells } => write!(f, "{cells} cells are not finite or not positive"),
            Self::Floored { cells, allowed } => {
                write!(f, "{cells} cells were raised to a floor, and floor_budget allows {allowed}")
            }
        }
    }
}

impl SimError {
    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Parameter { .. } | Self::Damaged { .. } | Self::NotASnapshot { .. } => ErrorKind::Input,
            Self::Io { .. } | Self::Hdf5 { .. } => ErrorKind::File,
            Self::OutOfMemory(_) | Self::Kernel(comove_kernels::KernelError::OutOfMemory { .. }) => ErrorKind::Room,
            Self::Kernel(_) | Self::Mpi(_) => ErrorKind::Device,
            Self::Unphysical { .. }
            | Self::UnphysicalParticles { .. }
            | Self::ParticlesLeave { .. }
            | Self::CellMass(_) => ErrorKind::Unphysical,
            Self::OnRank { kind, .. } => *kind,
        }
    }

    /// Whether memory is what is missing: a run that can go back does, and continues where there is more.
    pub fn is_out_of_memory(&self) -> bool {
        self.kind() == ErrorKind::Room
    }

    /// Whether a file is what it is about: one that cannot be read or written, or is not what it should be. Of another rank
    /// only the latter: where its node does not see the file, it will see no other one.
    pub fn is_of_a_file(&self) -> bool {
        match self {
            Self::Io { .. } | Self::Hdf5 { .. } | Self::Damaged { .. } | Self::NotASnapshot { .. } => true,
            Self::OnRank { kind, .. } => *kind == ErrorKind::Input,
            _ => false,
        }
    }

    /// [`SimError::Parameter`] unless `good`.
    ///
    /// # Errors
    /// That one.
    pub(crate) fn require(
        name: &'static str,
        value: &dyn std::fmt::Display,
        good: bool,
        reason: impl Into<String>,
    ) -> Result<(), Self> {
        if good { Ok(()) } else { Err(Self::Parameter { name, value: value.to_string(), reason: reason.into() }) }
    }
}

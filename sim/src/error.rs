//! What can go wrong in a run.

use std::path::PathBuf;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// A kernel could not run.
    #[error(transparent)]
    Kernel(#[from] comove_kernels::KernelError),
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
    #[error("{path}: {dataset} does not match its digest: the file is damaged; an earlier snapshot can be used")]
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
    /// A state that no physics explains.
    #[error(
        "step {step}: unphysical state in {count} cells, first at level {level}, cell {cell:?} \
         (density {density:e}, energy {energy:e}, entropy {entropy:e})"
    )]
    Unphysical {
        /// Root step.
        step: u64,
        /// Cells concerned.
        count: u64,
        /// Level of the first.
        level: u8,
        /// Its cell on the level's lattice.
        cell: [usize; 3],
        /// Its density.
        density: f64,
        /// Its total energy density.
        energy: f64,
        /// Its entropy scalar.
        entropy: f64,
    },
}

impl SimError {
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

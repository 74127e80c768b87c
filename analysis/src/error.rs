//! What can go wrong in an analysis.

use std::path::PathBuf;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum AnalysisError {
    /// A field that does not exist.
    #[error("unknown field {name:?}; available: {known}")]
    UnknownField {
        /// What was asked for.
        name: String,
        /// Every name that exists, separated by commas.
        known: String,
    },
    /// A field that this snapshot cannot give.
    #[error("field {name:?} is not in this snapshot: {reason}")]
    MissingField {
        /// What was asked for.
        name: &'static str,
        /// What is missing and what would do.
        reason: &'static str,
    },
    /// An option out of its range.
    #[error("{name} = {value}: {reason}")]
    Option {
        /// The option.
        name: &'static str,
        /// Its value.
        value: String,
        /// Why not, and what would do.
        reason: String,
    },
    /// A uniform grid beyond the memory limit.
    #[error(
        "a uniform grid at level {level} has {cells:?} cells and takes {needed_mib} MiB, more than the limit of \
         {limit_mib} MiB; choose a coarser level"
    )]
    GridTooLarge {
        /// The level asked for.
        level: usize,
        /// Cells along x, y, z.
        cells: [usize; 3],
        /// Memory it would take on a rank.
        needed_mib: usize,
        /// Memory allowed on a rank.
        limit_mib: usize,
    },
    /// A file that cannot be written.
    #[error("{path}: {source}; is the folder writable and the disk not full?")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A figure that cannot be drawn.
    #[error("figure {title:?}: {reason}")]
    Figure {
        /// Its title.
        title: String,
        /// Why not.
        reason: String,
    },
    /// A report that cannot be laid out.
    #[error("report {title:?}: {source}")]
    Report {
        /// Its title.
        title: String,
        /// What the template engine said.
        source: minijinja::Error,
    },
}

impl AnalysisError {
    /// An option out of its range.
    pub(crate) fn option(name: &'static str, value: impl ToString, reason: impl Into<String>) -> Self {
        Self::Option { name, value: value.to_string(), reason: reason.into() }
    }
}

//! What can go wrong, and the exit code that says so to a script (docs/exit-codes.md).

use crate::processes::machine;
use crate::recipe::RecipeError;
use comove_analysis::AnalysisError;
use comove_ic::IcError;
use comove_kernels::KernelError;
use comove_kernels::memory::GIB;
use comove_sim::SimError;
use comove_sim::error::{Bound, ErrorKind as SimErrorKind};
use std::error::Error;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The exit code "resumable".
pub(crate) const RESUMABLE: u8 = 75;

/// Errors of this crate.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// The command line asks for something that does not exist.
    #[error("{0}")]
    Usage(String),
    /// The recipe, or the script, is wrong.
    #[error(transparent)]
    Recipe(#[from] Box<RecipeError>),
    /// An input file, or a file of the campaign, is missing or not what it should be.
    #[error("{path}: {reason}", path = .path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// What is wrong with it and what would help.
        reason: String,
    },
    /// Another process runs this campaign.
    #[error("{folder}: {holder} is computing this campaign; wait for it, or choose another folder with --dir",
        folder = .folder.display())]
    Busy {
        /// The campaign folder.
        folder: PathBuf,
        /// Process and host, as the lock file says.
        holder: String,
    },
    /// A file that cannot be read or written.
    #[error("{path}: {source}", path = .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file has reached the size that files of this process may have.
    #[error("{source}; files are limited to {limit} bytes (ulimit -f); raise the limit")]
    FileTooLarge {
        /// The failure to write it.
        source: Box<PipelineError>,
        /// The limit in bytes.
        limit: u64,
    },
    /// The run failed.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The initial condition failed.
    #[error(transparent)]
    Ic(#[from] IcError),
    /// The analysis failed.
    #[error(transparent)]
    Analysis(#[from] AnalysisError),
    /// The device cannot be used.
    #[error(transparent)]
    Device(#[from] KernelError),
    /// A stage needs more memory than there is.
    #[error("needs about {needed:.1} GiB of memory, and {available:.1} GiB are free; reduce the cells, or use a \
             larger machine",
        needed = .needed / GIB, available = .available / GIB)]
    Memory {
        /// Bytes that the stage needs at least.
        needed: f64,
        /// Bytes that are free.
        available: f64,
    },
    /// A run has outgrown the memory there is, or does not fit it from the start.
    #[error("{source}; {}", .left.advice(.source))]
    OutOfMemory {
        /// The numbers.
        source: SimError,
        /// What there is to go on from.
        left: Left,
    },
    /// One stage of the campaign failed.
    #[error("{stage}: {source}")]
    Stage {
        /// Its name, and its folder's.
        stage: String,
        /// Why.
        source: Box<PipelineError>,
    },
    /// Several stages failed.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<PipelineError>),
    /// What was compared is not equal.
    #[error("{0}")]
    Different(String),
    /// Stopped on request, with everything saved.
    #[error("stopped by {by}; `comove resume {folder}` continues", folder = .folder.display())]
    Interrupted {
        /// The campaign folder.
        folder: PathBuf,
        /// Signal or file that asked for it.
        by: String,
    },
    /// The time that the process had was over before anything was saved, as it would be every time.
    #[error(
        "stopped by {by} before anything was saved ({at}), and would be again in the same time; raise the limit with \
         --walltime or sbatch --time, or use more threads or a faster device, then continue with `comove resume \
         {folder}`",
        folder = .folder.display()
    )]
    OutOfTime {
        /// The campaign folder.
        folder: PathBuf,
        /// The limit.
        by: String,
        /// What was in progress.
        at: String,
    },
}

/// What a run leaves that had to stop because there was no room for it.
#[derive(Debug)]
pub enum Left {
    /// Nothing: it has not begun.
    Nothing,
    /// A checkpoint.
    Checkpoint {
        /// Its file.
        file: String,
        /// The campaign folder.
        folder: PathBuf,
    },
}

impl Left {
    /// What helps.
    fn advice(&self, error: &SimError) -> String {
        let shortage = match error {
            SimError::OutOfMemory(shortage) => Some(shortage),
            _ => None,
        };
        let more = match shortage.map(|shortage| shortage.bound) {
            Some(Bound::Limit) => "with a larger --memory",
            Some(Bound::Host) => "on a machine with more free memory",
            _ => "on a device with more free memory",
        };
        let go_on = match self {
            Self::Nothing => format!("run it {more}"),
            Self::Checkpoint { file, folder } => {
                format!("{file} was written; continue {more} by `comove resume {}`", folder.display())
            }
        };
        let within = shortage.map(|shortage| readable(0.9 * shortage.cells_that_fit() as f64));
        let max_cells = within.map(|cells| format!(", or max_cells: {cells}"));
        format!(
            "{go_on}, or start a run that needs less: with a lower max_level, higher thresholds for the finest level{}",
            max_cells.unwrap_or_default()
        )
    }
}

/// A number of cells with two digits that count.
fn readable(cells: f64) -> u64 {
    let unit = 10f64.powf(cells.max(10.0).log10().floor() - 1.0);
    ((cells / unit).floor() * unit) as u64
}

/// Reason of an error about a file whose digest is not that in the ledger.
pub(crate) const CHANGED_FILE: &str = "the file was damaged or changed after it was written";

impl PipelineError {
    /// The same, with advice if a run could not start for lack of room.
    #[must_use]
    pub fn before_start(self) -> Self {
        match self {
            Self::Sim(source) if source.is_out_of_memory() => Self::OutOfMemory { source, left: Left::Nothing },
            other => other,
        }
    }

    /// All of them as one; `None` if there is none.
    pub fn all(mut errors: Vec<Self>) -> Option<Self> {
        match errors.len() {
            0 | 1 => errors.pop(),
            _ => Some(Self::Several(errors)),
        }
    }

    /// Names the limit of a file's size (`ulimit -f`) where it is the cause.
    #[must_use]
    pub fn with_file_size_limit(self) -> Self {
        if let Self::Several(errors) = self {
            return Self::Several(errors.into_iter().map(Self::with_file_size_limit).collect());
        }
        match machine::file_size_limit().filter(|_| self.is_file_too_large()) {
            Some(limit) => Self::FileTooLarge { source: Box::new(self), limit },
            None => self,
        }
    }

    /// Whether the size of a file is the cause, and the limit is not named yet.
    fn is_file_too_large(&self) -> bool {
        let (mut cause, mut is_too_large): (Option<&(dyn Error + 'static)>, bool) = (Some(self), false);
        while let Some(error) = cause {
            let boxed = error.downcast_ref::<Box<Self>>().map(|boxed| &**boxed);
            if let Some(Self::FileTooLarge { .. }) = boxed.or(error.downcast_ref()) {
                return false;
            }
            let system = error.downcast_ref::<std::io::Error>();
            is_too_large |= system.is_some_and(|error| error.kind() == ErrorKind::FileTooLarge);
            cause = error.source();
        }
        is_too_large
    }

    /// Who asked to stop, if that is what ended the work.
    pub fn interrupted_by(&self) -> Option<String> {
        match self {
            Self::Interrupted { by, .. } => Some(by.clone()),
            _ => None,
        }
    }

    /// Whether the same may succeed another time: what failed was the system or the device, not what was asked for.
    pub fn may_pass(&self) -> bool {
        matches!(self.exit_code(), 6 | 8)
    }

    /// An [`PipelineError::Io`] about `path`: the argument of `map_err`.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        move |source| Self::Io { path: path.into(), source }
    }

    /// A [`PipelineError::Input`] about `path`.
    pub fn input(path: &Path, reason: impl Into<String>) -> Self {
        Self::Input { path: path.into(), reason: reason.into() }
    }

    /// The process's exit code; docs/exit-codes.md lists them.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Different(_) => 1,
            Self::Usage(_) => 2,
            Self::Recipe(error) => error.exit_code,
            Self::Analysis(AnalysisError::Io { .. }) => 6,
            Self::Ic(error) if error.is_of_the_system() => 6,
            Self::Input { .. } | Self::Ic(_) => 4,
            Self::Busy { .. } => 5,
            Self::Io { .. } => 6,
            Self::FileTooLarge { source, .. } => source.exit_code(),
            Self::Sim(error) => match error.kind() {
                SimErrorKind::Input => 4,
                SimErrorKind::File => 6,
                SimErrorKind::Unphysical => 7,
                SimErrorKind::Device | SimErrorKind::Room => 8,
            },
            Self::Analysis(_) => 4,
            Self::Device(_) | Self::Memory { .. } | Self::OutOfMemory { .. } => 8,
            Self::Stage { source, .. } => source.exit_code(),
            Self::Several(errors) => errors.iter().map(Self::exit_code).max().unwrap_or(1),
            Self::OutOfTime { .. } => 9,
            Self::Interrupted { .. } => RESUMABLE,
        }
    }
}

//! `comove export`: a snapshot in another format, or a recipe's initial condition and run as the input of another code.
//!
//! | module | content |
//! |---|---|
//! | `snapshot` | from the file to its format |
//! | `leaf_cells` | cells of gas in the place of particles |
//! | `meshes` | fields: NumPy arrays and VTKHDF |
//! | `recipe` | the initial condition of a run, for a code |
//! | `deck` | parameter files, one table a code |

mod deck;
mod leaf_cells;
mod meshes;
mod recipe;
mod snapshot;

use crate::cli::Export;
use crate::error::PipelineError;
use comove_kernels::memory;
use std::path::{Path, PathBuf};

/// Ending of recipes.
const RECIPE: &str = "rhai";

pub(super) fn export(asked: &Export) -> Result<(), PipelineError> {
    let is_recipe = asked.source.extension().is_some_and(|extension| extension == RECIPE);
    let usage = |reason: &str| Err(PipelineError::Usage(format!("{}: {reason}", asked.source.display())));
    match (asked.format, asked.code) {
        (Some(_), _) if is_recipe => usage("a recipe; --format needs a snapshot: use --for, or name a snapshot"),
        (Some(format), _) => snapshot::export(asked, format),
        (None, Some(_)) if !is_recipe => usage("not a .rhai file; --for needs a recipe: use --format for a snapshot"),
        (None, Some(code)) => recipe::export(asked, code),
        (None, None) => usage("--format or --for is missing: choose one"),
    }
}

/// The path to write: as given, or in the working directory with the source's name and this ending.
fn output(asked: &Export, ending: &str) -> PathBuf {
    let stem = asked.source.file_stem().unwrap_or_default().to_string_lossy();
    asked.output.clone().unwrap_or_else(|| PathBuf::from(format!("{stem}{ending}")))
}

/// Refuses what needs more bytes of memory than are free.
fn check_memory(needed: f64) -> Result<(), PipelineError> {
    match memory::available().filter(|&available| needed > available) {
        Some(available) => Err(PipelineError::Memory { needed, available }),
        None => Ok(()),
    }
}

/// Refuses a path where something is that may not be replaced: a file, or a folder that is not empty.
fn check_absent(path: &Path, asked: &Export, is_folder: bool) -> Result<(), PipelineError> {
    let usage = |reason: &str| Err(PipelineError::Usage(format!("{}: {reason}", path.display())));
    let is_empty = || path.read_dir().is_ok_and(|mut entries| entries.next().is_none());
    match (path.is_dir(), is_folder) {
        _ if !path.exists() => Ok(()),
        (true, false) => usage("is a folder; expected a file to write: give another name"),
        (false, true) => usage("is a file; expected a folder to write: give another name"),
        (true, true) if is_empty() => Ok(()),
        _ if asked.overwrite => Ok(()),
        _ => usage("exists; give another name, or --overwrite to replace it"),
    }
}

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
mod lattice;
mod leaf_cells;
mod meshes;
mod recipe;
mod snapshot;

use crate::cli::Export;
use crate::error::PipelineError;
use comove_kernels::memory;
use comove_sim::{Cosmology, complete_file};
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

/// Density parameter of the gas: all matter of the box where there is no dark matter.
fn omega_of_gas(cosmology: &Cosmology, has_gas: bool, has_dark_matter: bool) -> f64 {
    match (has_gas, has_dark_matter) {
        (false, _) => 0.0,
        (true, false) => cosmology.omega_cb(),
        (true, true) => cosmology.omega_b,
    }
}

/// Checks that enough memory is free.
///
/// * `needed`: bytes
fn check_memory(needed: f64) -> Result<(), PipelineError> {
    match memory::available().filter(|&available| needed > available) {
        Some(available) => Err(PipelineError::Memory { needed, available }),
        None => Ok(()),
    }
}

/// Checks that a source is not the output, nor in it: `--overwrite` would replace it.
fn check_apart(path: &Path, source: &Path) -> Result<(), PipelineError> {
    match (path.canonicalize(), source.canonicalize()) {
        (Ok(output), Ok(source)) if source.starts_with(&output) => {
            let reason =
                format!("{}: is or contains the source {}; give another name", path.display(), source.display());
            Err(PipelineError::Usage(reason))
        }
        _ => Ok(()),
    }
}

/// Removes files of an earlier export, the one that describes the others first, so that no mixture passes for complete.
fn remove_earlier(folder: &Path, names: impl Iterator<Item = impl AsRef<Path>>) -> Result<(), PipelineError> {
    for path in names.map(|name| folder.join(name)) {
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(PipelineError::io(&path)(error)),
            _ => {}
        }
    }
    complete_file::remove_leftovers(folder).map_err(PipelineError::io(folder))
}

/// Checks that no file is in the place of the output, nor a folder with files, unless they may be replaced.
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

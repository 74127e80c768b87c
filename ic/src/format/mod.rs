//! Files that hold an initial condition on a uniform mesh.

pub mod comove_ic;
pub mod um_ic;

use crate::error::IcError;
use comove_sim::complete_file::Temporary;
use std::path::Path;

/// Writes a file under a temporary name beside `path`, makes it durable and gives it its name. A failed write leaves
/// what was there untouched and nothing else behind.
fn write_then_rename(path: &Path, write: impl FnOnce(&Path) -> Result<(), IcError>) -> Result<(), IcError> {
    let failed = |source| IcError::Io { path: path.into(), source };
    let temporary = Temporary::beside(path).map_err(failed)?;
    write(temporary.path())?;
    temporary.rename(path).map_err(failed)
}

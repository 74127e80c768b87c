//! Files that hold an initial condition on a uniform mesh.

pub mod comove_ic;
pub mod um_ic;

use crate::error::IcError;
use std::path::{Path, PathBuf};

/// Writes a file under a temporary name beside `path`, makes it durable and gives it its name. A failed write leaves
/// what was there untouched and nothing else behind.
fn write_then_rename(path: &Path, write: impl FnOnce(&Path) -> Result<(), IcError>) -> Result<(), IcError> {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    let temporary: PathBuf = path.with_file_name(name);
    let failed = |source| IcError::Io { path: path.into(), source };
    let result = write(&temporary)
        .and_then(|()| std::fs::File::open(&temporary).and_then(|file| file.sync_all()).map_err(failed))
        .and_then(|()| std::fs::rename(&temporary, path).map_err(failed));
    if result.is_err() {
        // The first error is the one to report; the partial file may not even exist.
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

//! Whole files of a campaign: only regular ones are read, as a device or a pipe might never end.

use crate::error::PipelineError;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub(crate) fn regular_file(path: &Path) -> Result<Metadata, PipelineError> {
    let found = path.metadata().map_err(PipelineError::io(path))?;
    if found.is_file() {
        return Ok(found);
    }
    Err(PipelineError::input(path, "not a regular file; give a file, not a folder, device or pipe"))
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, PipelineError> {
    regular_file(path)?;
    std::fs::read(path).map_err(PipelineError::io(path))
}

/// The content of a file; `None` if it is not there.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, PipelineError> {
    match read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(PipelineError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The absolute path of a recipe: UTF-8, as files in JSON and HDF5 name it and what lies beside it.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, PipelineError> {
    let absolute = std::path::absolute(path).map_err(PipelineError::io(path))?;
    match absolute.to_str() {
        Some(_) => Ok(absolute),
        None => Err(PipelineError::Usage(format!("{}: the path is not UTF-8: rename the folder", absolute.display()))),
    }
}

/// Deletes a file that may be gone.
pub(crate) fn remove_if_there(path: &Path) -> Result<(), PipelineError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(PipelineError::io(path)(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_in_the_place_of_a_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("steps.jsonl");
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        for refused in [read(&link).map(drop), read_if_there(&link).map(drop), regular_file(&link).map(drop)] {
            assert!(refused.unwrap_err().to_string().contains("not a regular file"));
        }
        assert_eq!(read_if_there(&folder.path().join("none")).unwrap(), None);
    }
}

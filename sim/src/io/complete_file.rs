//! A file is complete or absent: written under a temporary name in its folder, brought to disk, then renamed.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// What stands between a temporary file's name and the number of the process that writes it.
const MARK: &str = ".tmp-";

/// A file under a temporary name, removed when it is dropped without having been given its own.
#[derive(Debug)]
pub struct Temporary {
    path: PathBuf,
}

impl Temporary {
    /// Creates `.<name>.tmp-<pid>` in the folder of `path`.
    ///
    /// # Errors
    /// The system's, where the folder is missing or cannot be written.
    pub fn beside(path: &Path) -> io::Result<Self> {
        let Some(name) = path.file_name() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
        };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(format!("{MARK}{}", std::process::id()));
        let path = path.with_file_name(hidden);
        File::create(&path)?;
        Ok(Self { path })
    }

    /// Where to write for the time being.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Brings the content to disk, gives the file its name and makes that last.
    ///
    /// # Errors
    /// The system's; an older file of that name is then untouched.
    pub fn rename(self, path: &Path) -> io::Result<()> {
        let _phase = tracing::trace_span!(target: crate::PHASE, "rename").entered();
        File::open(&self.path)?.sync_all()?;
        fs::rename(&self.path, path)?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // fails after the rename, when there is nothing left to remove
        let _ = fs::remove_file(&self.path);
    }
}

/// Writes a whole file.
///
/// # Errors
/// The system's; an older file of that name is then untouched.
pub fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = Temporary::beside(path)?;
    File::create(temporary.path())?.write_all(content)?;
    temporary.rename(path)
}

/// Whether a file is called as one that is not finished.
pub fn is_leftover(name: &str) -> bool {
    let process = name.rsplit_once(MARK).map(|(_, process)| process);
    name.starts_with('.') && process.is_some_and(|process| process.bytes().all(|b| b.is_ascii_digit()))
}

/// Removes what killed processes have left half written in a folder that nobody else writes to now.
///
/// # Errors
/// The system's.
pub fn remove_leftovers(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if is_leftover(&entry.file_name().to_string_lossy()) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_complete_or_as_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        write(&path, b"first").unwrap();
        let unfinished = Temporary::beside(&path).unwrap();
        fs::write(unfinished.path(), b"half").unwrap();
        drop(unfinished);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write(&folder.path().join("missing").join("x.csv"), b"x").is_err());
    }

    #[test]
    fn leftovers_go_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".x.h5.tmp-123", ".x.tmp-me", "x.tmp-123", ".hidden"] {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        remove_leftovers(folder.path()).unwrap();
        let mut left: Vec<OsString> = fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".hidden", ".x.tmp-me", "x.tmp-123"]);
    }
}

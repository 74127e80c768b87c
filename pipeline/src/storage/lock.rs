//! Keeps two processes out of one campaign folder.
//!
//! The lock is the operating system's, on the file `lock`, and vanishes with the process however it ends; so a stale
//! lock file is no lock. Its text only says who holds it.

use crate::error::PipelineError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The lock on a campaign folder, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl Lock {
    pub(crate) fn take(folder: &Path) -> Result<Self, PipelineError> {
        let path = folder.join("lock");
        let mut file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)
            .map_err(PipelineError::io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).map_err(PipelineError::io(&path))?;
                return Err(PipelineError::Busy { folder: folder.into(), holder: holder.trim().into() });
            }
            Err(TryLockError::Error(error)) => return Err(PipelineError::io(&path)(error)),
        }
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "{}", process()))
            .map_err(PipelineError::io(&path))?;
        Ok(Self { _file: file })
    }

    /// Who holds the lock of `folder`, if anyone does; takes nothing.
    pub(crate) fn holder(folder: &Path) -> Option<String> {
        let mut file = File::open(folder.join("lock")).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                file.read_to_string(&mut holder).ok()?;
                Some(holder.trim().into())
            }
            _ => None,
        }
    }
}

/// This process, in words: its number and host.
pub(crate) fn process() -> String {
    format!("process {} on {}", std::process::id(), host())
}

pub(crate) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().or_else(|| std::env::var("HOSTNAME").ok());
    name.map_or_else(|| "this host".into(), |name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_refused_and_a_stale_file_is_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let lock = Lock::take(folder.path()).unwrap();
        match Lock::take(folder.path()) {
            Err(PipelineError::Busy { holder, .. }) => assert_eq!(holder, process()),
            other => panic!("{other:?}"),
        }
        assert_eq!(Lock::holder(folder.path()), Some(process()));
        drop(lock);
        assert_eq!(Lock::holder(folder.path()), None);
        std::fs::write(folder.path().join("lock"), "process 1 on elsewhere\n").unwrap();
        assert!(Lock::take(folder.path()).is_ok());
    }
}

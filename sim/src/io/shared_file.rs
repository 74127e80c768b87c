//! An HDF5 file whose large arrays all ranks write: the first makes everything else, with a place for each array in one piece;
//! then each writes its parts where they belong, past HDF5.

use crate::error::SimError;
use crate::io::complete_file::Temporary;
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::Communicator;
use crate::parallel::communicator::FIRST;
use crate::parallel::node;
use hdf5::H5Type;
use hdf5::dataset::{AllocTime, FillTime};
use hdf5::file::{FileAccessBuilder, OpenMode};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Arrays of at least so many bytes begin at a multiple of the second number: pages of a file, 64 KiB at most, are then one
/// rank's where its parts are such multiples too.
const ALIGNED: (u64, u64) = (1 << 20, 1 << 16);

/// Numbers are written as they lie in memory.
const _: () = assert!(cfg!(target_endian = "little"));

/// A file under its temporary name, to which every rank writes.
pub struct SharedFile {
    /// On the first rank.
    temporary: Option<Temporary>,
    /// The name that it is to have.
    path: PathBuf,
    file: File,
    /// Where each array begins, in bytes.
    offsets: Vec<u64>,
    /// Whether this rank is on another machine than the first.
    elsewhere: bool,
}

impl SharedFile {
    /// Creates it in the folder of `path`, under which all ranks see that. Collective; path and `prepare` count on the first
    /// rank.
    ///
    /// * `prepare`: writes everything but the arrays, gives these their places by [`allocate`], and returns them
    ///
    /// # Errors
    /// [`SimError::Io`], [`SimError::Hdf5`], and what `prepare` says; on all ranks.
    pub fn create(
        communicator: &Communicator,
        path: &Path,
        prepare: impl FnOnce(&hdf5::File) -> Result<Vec<u64>, SimError>,
    ) -> Result<Self, SimError> {
        let first = communicator.rank() == FIRST;
        let (temporary, offsets) =
            collective_result(communicator, first.then(|| create(path, prepare)).transpose())?.unzip();
        let here = told_path(communicator, temporary.as_ref().map_or(Path::new(""), Temporary::path));
        let told = told_path(communicator, path);
        let path = if first { path.to_path_buf() } else { told };
        let offsets = communicator.broadcast(FIRST, bytemuck::cast_slice(&offsets.unwrap_or_default()).to_vec());
        let offsets = bytemuck::pod_collect_to_vec(&offsets);
        let elsewhere = communicator.broadcast(FIRST, node().into_bytes()) != node().into_bytes();
        let opened =
            File::options().write(true).open(here).map_err(|source| SimError::Io { path: path.clone(), source });
        Ok(Self { temporary, file: collective_result(communicator, opened)?, path, offsets, elsewhere })
    }

    /// Writes a part of an array that no other rank writes.
    ///
    /// * `at`: where in the array it begins, in bytes
    ///
    /// # Errors
    /// [`SimError::Io`].
    pub fn put(&self, array: usize, at: usize, bytes: &[u8]) -> Result<(), SimError> {
        let written = self.file.write_all_at(bytes, self.offsets[array] + at as u64);
        written.map_err(|source| SimError::Io { path: self.path.clone(), source })
    }

    /// Closes the file, of which the first rank gets what is to be renamed. Collective. What other machines than that rank's
    /// have of it is on disk then.
    ///
    /// * `done`: what came of writing; where a rank failed, the file goes
    ///
    /// # Errors
    /// [`SimError::Io`], on all ranks, and what some rank has `done`.
    pub fn close(self, communicator: &Communicator, done: Result<(), SimError>) -> Result<Option<Temporary>, SimError> {
        let Self { temporary, path, file, elsewhere, .. } = self;
        let synced = || if elsewhere { file.sync_data() } else { Ok(()) };
        let done = done.and_then(|()| synced().map_err(|source| SimError::Io { path, source }));
        drop(file);
        collective_result(communicator, done).map(|()| temporary)
    }
}

/// The path of a file that the first rank has, for all, wherever they were started. Collective.
pub(crate) fn told_path(communicator: &Communicator, path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
    OsString::from_vec(communicator.broadcast(FIRST, path.as_os_str().as_bytes().to_vec())).into()
}

/// A file with its places for arrays.
fn create(
    path: &Path,
    prepare: impl FnOnce(&hdf5::File) -> Result<Vec<u64>, SimError>,
) -> Result<(Temporary, Vec<u64>), SimError> {
    let temporary = Temporary::beside(path).map_err(|source| SimError::Io { path: path.into(), source })?;
    // No locks: parallel file systems may have none, and no other process knows the temporary name.
    // No times: the same arrays are the same file, byte for byte, whenever it is written.
    let file = hdf5::File::with_options()
        .with_fapl(|fapl| at_once(fapl).file_locking(false).alignment(ALIGNED.0, ALIGNED.1))
        .with_fcpl(|fcpl| fcpl.obj_track_times(false))
        .create(temporary.path())
        .map_err(|source| failure(path, source))?;
    let prepared = prepare(&file);
    Ok((temporary, close(file, path, prepared)?))
}

/// Changes something of a file, which errors call `path`, past its arrays.
///
/// # Errors
/// [`SimError::Io`], [`SimError::Hdf5`].
pub(crate) fn amend(
    temporary: &Temporary,
    path: &Path,
    change: impl FnOnce(&hdf5::File) -> hdf5::Result<()>,
) -> Result<(), SimError> {
    let file = hdf5::File::with_options()
        .with_fapl(|fapl| at_once(fapl).file_locking(false))
        .open_as(temporary.path(), OpenMode::ReadWrite)
        .map_err(|source| failure(path, source))?;
    let changed = change(&file).map_err(|source| failure(path, source));
    close(file, path, changed)
}

/// Closes a file to which this was done, and brings to the system what HDF5 has of it.
fn close<R>(file: hdf5::File, path: &Path, done: Result<R, SimError>) -> Result<R, SimError> {
    let flushed = if done.is_ok() { file.flush() } else { Ok(()) };
    let closed = flushed.and(file.close());
    done.and_then(|done| closed.map(|()| done).map_err(|source| failure(path, source)))
}

/// Gives an array its place in one piece. Returns where that begins, in bytes; nothing is written there.
///
/// # Errors
/// What HDF5 says.
pub fn allocate<T: H5Type>(file: &hdf5::File, name: &str, shape: &[usize]) -> hdf5::Result<u64> {
    let builder = file.new_dataset::<T>().alloc_time(Some(AllocTime::Early)).fill_time(FillTime::Never);
    let dataset = builder.shape(shape).create(name)?;
    dataset.offset().ok_or_else(|| hdf5::Error::from(format!("{name} has no place in the file").as_str()))
}

/// What HDF5 could not do with a file, in the system's own word where that was the cause (a full disk).
pub fn failure(path: &Path, source: hdf5::Error) -> SimError {
    match system_error(&source) {
        Some(source) => SimError::Io { path: path.into(), source },
        None => SimError::Hdf5 { path: path.into(), source },
    }
}

fn system_error(error: &hdf5::Error) -> Option<io::Error> {
    let text = error.to_string();
    let (_, rest) = text.split_once("errno = ")?;
    rest.split(',').next()?.parse().ok().map(io::Error::from_raw_os_error)
}

/// Has HDF5 write data when it is told to, so that it is the writing that fails on a full disk. What it keeps back it writes
/// when a dataset is closed, where a failure is lost, and crashes the next time that the file is flushed.
fn at_once(fapl: &mut FileAccessBuilder) -> &mut FileAccessBuilder {
    fapl.sieve_buf_size(0).chunk_cache(1, 0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::on_ranks;

    /// Numbers of each array, and bytes of a rank's part, but for the last one's.
    const LENGTHS: [usize; 3] = [1000, 300_000, 300_001];
    const PART: usize = 1 << 16;

    fn prepare(file: &hdf5::File) -> Result<Vec<u64>, SimError> {
        let place = |(n, &length): (usize, &usize)| allocate::<f64>(file, &format!("array {n}"), &[length]);
        LENGTHS.iter().enumerate().map(place).collect::<hdf5::Result<_>>().map_err(|e| failure(Path::new("x"), e))
    }

    fn array(n: usize) -> Vec<f64> {
        (0..LENGTHS[n]).map(|i| (i * 3 + n) as f64).collect()
    }

    /// HDF5 reads what ranks have written in parts, a part of another rank each time; large arrays begin at pages.
    #[test]
    fn parts_of_ranks_are_arrays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.h5");
        for ranks in [1, 2, 3] {
            on_ranks(ranks, |communicator| {
                // no other rank knows the path
                let path = if communicator.rank() == FIRST { &path } else { Path::new("") };
                let file = SharedFile::create(&communicator, path, prepare).unwrap();
                assert!(file.offsets[1..].iter().all(|offset| offset.is_multiple_of(ALIGNED.1)), "{:?}", file.offsets);
                let put = (0..LENGTHS.len()).try_for_each(|n| {
                    let array = array(n);
                    let mut parts = bytemuck::cast_slice(&array).chunks(PART).enumerate();
                    let mut own = parts.by_ref().skip(communicator.rank()).step_by(ranks);
                    own.try_for_each(|(part, bytes)| file.put(n, part * PART, bytes))
                });
                if let Some(temporary) = file.close(&communicator, put).unwrap() {
                    amend(&temporary, path, |file| file.new_attr::<i32>().create("late")?.write_scalar(&7)).unwrap();
                    temporary.rename(path).unwrap();
                }
            });
            let file = hdf5::File::open(&path).unwrap();
            assert_eq!(file.attr("late").unwrap().read_scalar::<i32>().unwrap(), 7);
            for n in 0..LENGTHS.len() {
                assert_eq!(file.dataset(&format!("array {n}")).unwrap().read_raw::<f64>().unwrap(), array(n));
            }
        }
    }

    /// Whichever rank could not write, all say so, and nothing stays.
    #[test]
    fn what_a_rank_could_not_write_none_has_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.h5");
        for bad in 0..3 {
            let ends = on_ranks(3, |communicator| {
                let file = SharedFile::create(&communicator, &path, prepare).unwrap();
                let put = match communicator.rank() == bad {
                    // past what a file can hold
                    true => file.put(0, i64::MAX as usize - 8192, &[0; 1 << 20]),
                    false => file.put(0, 0, &[0]),
                };
                file.close(&communicator, put).unwrap_err()
            });
            assert!(ends.iter().all(|end| end.kind() == crate::error::ErrorKind::File), "{ends:?}");
            assert!(ends.iter().all(|end| end.to_string().contains("x.h5")), "{ends:?}");
            assert!(matches!(ends[bad], SimError::Io { .. }) && matches!(ends[(bad + 1) % 3], SimError::OnRank { .. }));
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}

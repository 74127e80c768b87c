//! Values of contiguous datasets without filters, which threads read without HDF5.

use bytemuck::{AnyBitPattern, NoUninit, zeroed_vec};
use hdf5::Dataset;
use rayon::prelude::*;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Values that a thread reads at a time.
const AT_A_TIME: usize = 1 << 16;

/// Values in files are little-endian.
const _: () = assert!(cfg!(target_endian = "little"));

/// Type of the values in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stored {
    F32,
    F64,
    I32,
    I64,
    U32,
    U64,
}

/// Location of the values of a contiguous dataset.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainValues {
    /// Offset of the first value in the file, bytes.
    offset: u64,
    stored: Stored,
    count: usize,
}

/// A type that values are read as.
pub(super) trait Value: hdf5::H5Type + NoUninit + AnyBitPattern + Send + Sync {
    /// Reads values of a stored type; `None` if there is no conversion.
    ///
    /// * `offset`: of the first value in the file, bytes
    fn read(file: &File, stored: Stored, offset: u64, count: usize) -> Option<io::Result<Vec<Self>>>;
}

impl PlainValues {
    /// `None` for a dataset in chunks, compressed, in another file, or of other numbers than this machine's.
    pub(super) fn of(dataset: &Dataset) -> Option<Self> {
        let dtype = dataset.dtype().ok()?;
        let types = [
            (dtype.is::<f32>(), Stored::F32),
            (dtype.is::<f64>(), Stored::F64),
            (dtype.is::<i32>(), Stored::I32),
            (dtype.is::<i64>(), Stored::I64),
            (dtype.is::<u32>(), Stored::U32),
            (dtype.is::<u64>(), Stored::U64),
        ];
        let stored = types.into_iter().find_map(|(is_it, stored)| is_it.then_some(stored))?;
        let (count, offset) = (dataset.size(), dataset.offset()?);
        let is_whole = dataset.storage_size() == (count as u64).checked_mul(stored.size())?;
        (is_whole && dataset.chunk().is_none()).then_some(Self { offset, stored, count })
    }

    /// Reads a range of values; `None` where HDF5 has to convert them.
    ///
    /// # Errors
    /// [`io::Error`], of [`io::ErrorKind::UnexpectedEof`] where the file ends before.
    ///
    /// # Panics
    /// If the range ends beyond the dataset.
    pub(super) fn read<T: Value>(&self, file: &File, range: Range<usize>) -> Option<io::Result<Vec<T>>> {
        assert!(range.end <= self.count, "values {range:?} of {}", self.count);
        let Some(offset) = self.offset.checked_add(range.start as u64 * self.stored.size()) else {
            return Some(Err(io::ErrorKind::UnexpectedEof.into()));
        };
        T::read(file, self.stored, offset, range.len())
    }
}

impl Stored {
    /// Bytes of a value.
    fn size(self) -> u64 {
        match self {
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }
}

impl Value for f64 {
    fn read(file: &File, stored: Stored, offset: u64, count: usize) -> Option<io::Result<Vec<Self>>> {
        match stored {
            Stored::F64 => Some(as_stored(file, offset, count)),
            Stored::F32 => Some(converted(file, offset, count, |value: f32| value.into())),
            _ => None,
        }
    }
}

impl Value for u64 {
    fn read(file: &File, stored: Stored, offset: u64, count: usize) -> Option<io::Result<Vec<Self>>> {
        // negative numbers are 0, as HDF5 has them
        match stored {
            Stored::U64 => Some(as_stored(file, offset, count)),
            Stored::U32 => Some(converted(file, offset, count, |value: u32| value.into())),
            Stored::I64 => Some(converted(file, offset, count, |value: i64| value.try_into().unwrap_or(0))),
            Stored::I32 => Some(converted(file, offset, count, |value: i32| value.try_into().unwrap_or(0))),
            _ => None,
        }
    }
}

impl Value for i64 {
    fn read(file: &File, stored: Stored, offset: u64, count: usize) -> Option<io::Result<Vec<Self>>> {
        match stored {
            Stored::I64 => Some(as_stored(file, offset, count)),
            _ => None,
        }
    }
}

fn as_stored<T: Value>(file: &File, offset: u64, count: usize) -> io::Result<Vec<T>> {
    let mut values = zeroed_vec(count);
    let read = |(n, values): (usize, &mut [T])| {
        file.read_exact_at(bytemuck::cast_slice_mut(values), offset + (n * AT_A_TIME * size_of::<T>()) as u64)
    };
    values.par_chunks_mut(AT_A_TIME).enumerate().try_for_each(read)?;
    Ok(values)
}

fn converted<S: NoUninit + AnyBitPattern, T: Value>(
    file: &File,
    offset: u64,
    count: usize,
    convert: impl Fn(S) -> T + Sync,
) -> io::Result<Vec<T>> {
    let mut values = zeroed_vec(count);
    let read = |stored: &mut Vec<S>, (n, values): (usize, &mut [T])| {
        stored.resize(values.len(), S::zeroed());
        file.read_exact_at(bytemuck::cast_slice_mut(stored), offset + (n * AT_A_TIME * size_of::<S>()) as u64)?;
        values.iter_mut().zip(stored).for_each(|(value, stored)| *value = convert(*stored));
        Ok::<_, io::Error>(())
    };
    values.par_chunks_mut(AT_A_TIME).enumerate().try_for_each_init(Vec::new, read)?;
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdf5::types::VarLenUnicode;
    use hdf5::{File as Hdf5File, H5Type};

    /// Values of every type are those that HDF5 reads, from anywhere in the dataset.
    #[test]
    fn values_are_those_of_hdf5() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("values.h5");
        let file = Hdf5File::create(&path).unwrap();
        let some = || (0..3 * AT_A_TIME as i64 / 2).map(|n| n * 37 - 11);
        fn put<T: H5Type>(file: &Hdf5File, name: &str, values: impl Iterator<Item = T>) -> Dataset {
            file.new_dataset_builder().with_data(&values.collect::<Vec<T>>()).create(name).unwrap()
        }
        let floats =
            [put(&file, "f32", some().map(|n| n as f32 / 3.0)), put(&file, "f64", some().map(|n| n as f64 / 3.0))];
        let integers = [
            put(&file, "i32", some().map(|n| n as i32)),
            put(&file, "i64", some().map(|n| n << 30)),
            put(&file, "u32", some().map(|n| n as u32)),
            put(&file, "u64", some().map(|n| (n as u64) << 31)),
        ];
        let plain = File::open(&path).unwrap();
        fn same<T: Value + PartialEq + std::fmt::Debug>(plain: &File, dataset: &Dataset) {
            let expected = dataset.read_raw::<T>().unwrap();
            for range in [0..expected.len(), AT_A_TIME - 3..AT_A_TIME + 5, 7..7] {
                let found = PlainValues::of(dataset).unwrap().read::<T>(plain, range.clone()).unwrap().unwrap();
                assert!(found == expected[range], "{}", dataset.name());
            }
        }
        file.flush().unwrap();
        floats.iter().for_each(|dataset| same::<f64>(&plain, dataset));
        integers.iter().for_each(|dataset| same::<u64>(&plain, dataset));
        same::<i64>(&plain, &integers[1]);
        // what HDF5 has to convert
        assert!(PlainValues::of(&integers[0]).unwrap().read::<f64>(&plain, 0..1).is_none());
        std::fs::File::options().write(true).open(&path).unwrap().set_len(100_000).unwrap();
        let error = PlainValues::of(&floats[1]).unwrap().read::<f64>(&plain, 0..AT_A_TIME).unwrap().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    /// Datasets in chunks, of texts and without values are for HDF5 (other storage: scripts/tests/test_hdf5_storage.py).
    #[test]
    fn other_datasets_are_for_hdf5() {
        let folder = tempfile::tempdir().unwrap();
        let file = Hdf5File::create(folder.path().join("values.h5")).unwrap();
        let chunked = file.new_dataset::<f64>().chunk(8).shape(64).create("chunks").unwrap();
        chunked.write_raw(&[1.0f64; 64]).unwrap();
        let text = file.new_dataset::<VarLenUnicode>().shape(2).create("text").unwrap();
        let unwritten = file.new_dataset::<f64>().shape(64).create("nothing").unwrap();
        assert!([&chunked, &text, &unwritten].iter().all(|dataset| PlainValues::of(dataset).is_none()));
    }
}

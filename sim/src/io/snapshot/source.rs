//! A file opened for reading: datasets checked in type, shape and digest before they are believed.

use super::contents;
use super::digest::{Digest, Stored, digest};
use crate::error::SimError;
use crate::io::filters;
use hdf5::types::FixedAscii;
use hdf5::{Hyperslab, SliceOrIndex};
use serde::de::DeserializeOwned;
use std::io::Read;
use std::marker::PhantomData;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The first bytes of an HDF5 file.
const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

/// An open snapshot file.
pub(super) struct Source {
    file: hdf5::File,
    path: PathBuf,
    /// The name that errors give.
    name: PathBuf,
    /// Length of the file: no dataset is longer.
    bytes: u64,
}

impl Source {
    /// Opens the file at `path`, which errors call `name`.
    pub(super) fn open(path: &Path, name: &Path) -> Result<Self, SimError> {
        let io = |source| SimError::Io { path: name.into(), source };
        let not = |reason: &str| SimError::NotASnapshot { path: name.into(), reason: reason.into() };
        let plain = std::fs::File::open(path).map_err(io)?;
        let metadata = plain.metadata().map_err(io)?;
        if !metadata.is_file() {
            return Err(not("not a regular file"));
        }
        if metadata.len() == 0 {
            return Err(not("the file is empty"));
        }
        let mut start = Vec::new();
        plain.take(SIGNATURE.len() as u64).read_to_end(&mut start).map_err(io)?;
        if start != SIGNATURE {
            return Err(not("not an HDF5 file"));
        }
        // No locks: a snapshot is never changed in place, and parallel file systems may have none.
        let file = hdf5::File::with_options()
            .with_fapl(|fapl| fapl.file_locking(false))
            .open(path)
            .map_err(|_| SimError::Damaged { path: name.into(), dataset: "the HDF5 structure".into() })?;
        Ok(Self { file, path: path.into(), name: name.into(), bytes: metadata.len() })
    }

    /// An error that says what is missing.
    pub(super) fn not(&self, reason: impl Into<String>) -> SimError {
        SimError::NotASnapshot { path: self.name.clone(), reason: reason.into() }
    }

    /// An error that says what is damaged.
    pub(super) fn damaged(&self, dataset: &str) -> SimError {
        SimError::Damaged { path: self.name.clone(), dataset: dataset.into() }
    }

    /// The version of the `/Comove` group.
    pub(super) fn format(&self) -> Result<u32, SimError> {
        let group = self.file.group("Comove").map_err(|_| self.not("no group Comove"))?;
        let version = group.attr("format_version").and_then(|attribute| attribute.read_scalar::<u32>());
        version.map_err(|_| self.not("the group Comove has no format_version"))
    }

    fn dataset(&self, name: &str) -> Result<hdf5::Dataset, SimError> {
        match self.file.dataset(name) {
            Ok(dataset) => Ok(dataset),
            Err(_) if self.file.link_exists(name) => Err(self.damaged(name)),
            Err(_) => Err(self.not(format!("no dataset {name}"))),
        }
    }

    /// The digest that a dataset claims to have.
    pub(super) fn digest(&self, name: &str) -> Result<String, SimError> {
        self.digest_of(&self.dataset(name)?, name)
    }

    fn digest_of(&self, dataset: &hdf5::Dataset, name: &str) -> Result<String, SimError> {
        let attribute = dataset.attr(contents::DIGEST).map_err(|_| self.not(format!("{name} has no digest")))?;
        let digest = attribute.read_scalar::<FixedAscii<64>>().map_err(|_| self.damaged(name))?;
        // Bytes, since nothing says that a damaged string is ASCII.
        String::from_utf8(digest.as_bytes().to_vec()).map_err(|_| self.damaged(name))
    }

    /// An array of this type and shape with the right digest. A scalar has an empty shape.
    pub(super) fn array<T: Stored>(&self, name: &str, shape: &[usize]) -> Result<Vec<T>, SimError> {
        self.array_with(&self.dataset(name)?, name, shape)
    }

    /// An array of this type and shape, to be read some rows at a time.
    pub(super) fn rows<T: Stored>(&self, name: &str, shape: &[usize]) -> Result<Rows<'_, T>, SimError> {
        let dataset = self.dataset(name)?;
        self.check::<T>(&dataset, name, shape)?;
        let (name, shape, digest) = (name.to_owned(), shape.to_vec(), Digest::default());
        Ok(Rows { source: self, name, dataset, shape, begin: 0, digest, values: PhantomData })
    }

    fn array_with<T: Stored>(&self, dataset: &hdf5::Dataset, name: &str, shape: &[usize]) -> Result<Vec<T>, SimError> {
        self.check::<T>(dataset, name, shape)?;
        let values = dataset.read_raw::<T>().map_err(|_| self.damaged(name))?;
        self.compare(&digest(&values), dataset, name)?;
        Ok(values)
    }

    /// Checks type and shape; returns the number of values.
    fn check<T: Stored>(&self, dataset: &hdf5::Dataset, name: &str, shape: &[usize]) -> Result<usize, SimError> {
        let values = shape.iter().try_fold(1usize, |product, &n| product.checked_mul(n));
        // `size` differs from the product for a null dataspace, which would leave a scalar unread.
        if dataset.shape() != shape || values != Some(dataset.size()) {
            return Err(self.not(format!("{name} has the shape {:?} instead of {shape:?}", dataset.shape())));
        }
        let stored = dataset.dtype().and_then(|dtype| dtype.to_descriptor());
        if stored.ok() != Some(T::type_descriptor().to_packed_repr()) {
            return Err(self.not(format!("{name} has another type than the header says")));
        }
        if let Some(reason) = filters::unreadable(dataset) {
            return Err(self.not(reason));
        }
        let compression = if dataset.filters().is_empty() { 1 } else { filters::LARGEST_COMPRESSION };
        let most = self.bytes.saturating_mul(compression);
        if values.and_then(|n| n.checked_mul(T::BYTES)).is_none_or(|bytes| bytes as u64 > most) {
            return Err(self.damaged(name));
        }
        Ok(dataset.size())
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Compares a digest with that which a dataset claims to have.
    fn compare(&self, digest: &str, dataset: &hdf5::Dataset, name: &str) -> Result<(), SimError> {
        if digest == self.digest_of(dataset, name)? { Ok(()) } else { Err(self.damaged(name)) }
    }

    /// A scalar compound with the right digest.
    pub(super) fn compound<T: Stored>(&self, name: &str) -> Result<T, SimError> {
        Ok(self.array(name, &[])?[0])
    }

    /// A text with the right digest.
    pub(super) fn text(&self, name: &str) -> Result<String, SimError> {
        let dataset = self.dataset(name)?;
        let bytes = self.array_with(&dataset, name, &[dataset.size()])?;
        String::from_utf8(bytes).map_err(|_| self.not(format!("{name} is not UTF-8")))
    }

    /// A JSON text with the right digest.
    pub(super) fn json<D: DeserializeOwned>(&self, name: &str) -> Result<D, SimError> {
        serde_json::from_str(&self.text(name)?).map_err(|error| self.not(format!("{name}: {error}")))
    }
}

/// An array that is read some rows at a time. Its digest is verified with the last of them.
pub(super) struct Rows<'a, T> {
    source: &'a Source,
    name: String,
    dataset: hdf5::Dataset,
    shape: Vec<usize>,
    /// The next row.
    begin: usize,
    digest: Digest,
    values: PhantomData<T>,
}

impl<T: Stored> Rows<'_, T> {
    /// The values of the next `rows` rows, or of those that are left.
    ///
    /// # Errors
    /// [`SimError::Damaged`], with the last rows also where those before are not what was written.
    pub(super) fn next(&mut self, rows: usize) -> Result<Vec<T>, SimError> {
        let end = self.shape[0].min(self.begin + rows);
        let values = self.at(self.begin..end)?;
        self.digest.update(&values);
        self.begin = end;
        if end == self.shape[0] {
            self.compare(&self.digest.hex())?;
        }
        Ok(values)
    }

    /// The values of some rows, or of those of them that there are; nothing of them is verified.
    ///
    /// # Errors
    /// [`SimError::Damaged`].
    pub(super) fn at(&self, rows: Range<usize>) -> Result<Vec<T>, SimError> {
        let mut slab = vec![SliceOrIndex::from(..); self.shape.len()];
        slab[0] = (rows.start..rows.end.min(self.shape[0])).into();
        let values = self.dataset.read_slice::<T, _, ndarray::IxDyn>(Hyperslab::from(slab));
        Ok(values.map_err(|_| self.source.damaged(&self.name))?.into_raw_vec_and_offset().0)
    }

    /// Compares the digest of all rows with that which the array claims to have.
    ///
    /// # Errors
    /// [`SimError::Damaged`].
    pub(super) fn compare(&self, digest: &str) -> Result<(), SimError> {
        self.source.compare(digest, &self.dataset, &self.name)
    }

    /// Reads what is left, so many rows at a time, and keeps nothing.
    ///
    /// # Errors
    /// As [`Rows::next`].
    pub(super) fn verify(&mut self, rows: usize) -> Result<(), SimError> {
        while self.begin < self.shape[0] {
            self.next(rows)?;
        }
        Ok(())
    }
}

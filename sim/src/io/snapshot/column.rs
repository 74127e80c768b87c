//! Datasets that are written some rows at a time, and the digests that go with them.

use super::contents;
use super::digest::{Digest, Stored};
use hdf5::types::FixedAscii;
use hdf5::{Hyperslab, SliceOrIndex};
use ndarray::{ArrayViewD, IxDyn};

/// An array that is written some rows at a time.
pub(super) struct Column {
    dataset: hdf5::Dataset,
    shape: Vec<usize>,
    /// Rows that are there.
    rows: usize,
    digest: Digest,
}

impl Column {
    pub(super) fn create<T: Stored>(file: &hdf5::File, name: &str, shape: &[usize]) -> hdf5::Result<Self> {
        let dataset = file.new_dataset::<T>().shape(shape).create(name)?;
        Ok(Self { dataset, shape: shape.to_vec(), rows: 0, digest: Digest::default() })
    }

    /// Writes the rows that come next.
    pub(super) fn append<T: Stored>(&mut self, values: &[T]) -> hdf5::Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        let mut shape = self.shape.clone();
        shape[0] = values.len() / shape[1..].iter().product::<usize>();
        let mut slab = vec![SliceOrIndex::from(..); shape.len()];
        slab[0] = (self.rows..self.rows + shape[0]).into();
        self.rows += shape[0];
        let rows = ArrayViewD::from_shape(IxDyn(&shape), values).expect("whole rows");
        let (digest, dataset) = (&mut self.digest, &self.dataset);
        rayon::join(|| digest.update(values), || dataset.write_slice(rows, Hyperslab::from(slab))).1
    }

    /// Notes the digest of all rows, which are there.
    pub(super) fn label(self) -> hdf5::Result<hdf5::Dataset> {
        label(&self.dataset, &self.digest.hex())?;
        Ok(self.dataset)
    }
}

/// Notes a dataset's digest.
pub(super) fn label(dataset: &hdf5::Dataset, digest: &str) -> hdf5::Result<()> {
    dataset.new_attr::<FixedAscii<64>>().create(contents::DIGEST)?.write_scalar(&ascii::<64>(digest)?)
}

/// A short string for an attribute.
pub(super) fn ascii<const N: usize>(text: &str) -> hdf5::Result<FixedAscii<N>> {
    FixedAscii::from_ascii(text).map_err(|error| hdf5::Error::from(error.to_string().as_str()))
}

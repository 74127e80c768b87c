//! BLAKE3 of arrays and of whole files.

use crate::error::SimError;
use hdf5::H5Type;
use std::path::Path;

/// A value with a fixed byte form in the file: little-endian, compounds member by member without padding.
pub(super) trait Stored: H5Type + Copy + Send + Sync {
    /// Length of the byte form.
    const BYTES: usize;
    /// Writes the byte form; `bytes` has [`Stored::BYTES`] places.
    fn put(&self, bytes: &mut [u8]);
}

macro_rules! stored_number {
    ($($number:ty)*) => {
        $(impl Stored for $number {
            const BYTES: usize = size_of::<$number>();
            #[inline(always)]
            fn put(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
        })*
    };
}

stored_number!(u8 i32 i64 f32 f64);

impl<T: Stored, const N: usize> Stored for [T; N] {
    const BYTES: usize = N * T::BYTES;
    fn put(&self, bytes: &mut [u8]) {
        for (value, bytes) in self.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
            value.put(bytes);
        }
    }
}

/// BLAKE3 (hex) of an array's bytes as the file stores them.
pub(super) fn digest<T: Stored>(values: &[T]) -> String {
    // The byte form is made a cache-sized block at a time.
    let block = (1 << 16) / T::BYTES;
    let mut bytes = vec![0; block * T::BYTES];
    let mut hasher = blake3::Hasher::new();
    for values in values.chunks(block) {
        for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
            value.put(bytes);
        }
        hasher.update(&bytes[..values.len() * T::BYTES]);
    }
    hasher.finalize().to_hex().to_string()
}

/// BLAKE3 (hex) of a whole file, as the ledger keeps it to check a snapshot before HDF5 opens it.
///
/// # Errors
/// [`SimError::Io`].
pub fn file_digest(path: &Path) -> Result<String, SimError> {
    let digest = || {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(std::fs::File::open(path)?)?;
        Ok(hasher.finalize().to_hex().to_string())
    };
    digest().map_err(|source| SimError::Io { path: path.into(), source })
}

//! BLAKE3 of arrays and of whole files.

use crate::error::SimError;
use hdf5::H5Type;
use rayon::prelude::*;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes that are hashed at once, by all threads: enough for each of them, and little against an array.
const BLOCK: usize = 1 << 23;
/// Bytes of a block whose byte form one thread makes at a time.
const PIECE: usize = 1 << 16;

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

/// BLAKE3 of an array's bytes as the file stores them, made as the array comes.
#[derive(Default)]
pub(super) struct Digest {
    hasher: blake3::Hasher,
    bytes: Vec<u8>,
}

impl Digest {
    /// With the values that come next.
    pub(super) fn update<T: Stored>(&mut self, values: &[T]) {
        let (block, piece) = (BLOCK / T::BYTES, PIECE / T::BYTES);
        for values in values.chunks(block) {
            self.bytes.resize(self.bytes.len().max(values.len() * T::BYTES), 0);
            let bytes = &mut self.bytes[..values.len() * T::BYTES];
            bytes.par_chunks_mut(piece * T::BYTES).zip(values.par_chunks(piece)).for_each(|(bytes, values)| {
                for (value, bytes) in values.iter().zip(bytes.chunks_exact_mut(T::BYTES)) {
                    value.put(bytes);
                }
            });
            self.hasher.update_rayon(bytes);
        }
    }

    /// In hexadecimal digits.
    pub(super) fn hex(&self) -> String {
        self.hasher.finalize().to_hex().to_string()
    }
}

/// BLAKE3 (hex) of an array's bytes as the file stores them.
pub(super) fn digest<T: Stored>(values: &[T]) -> String {
    let mut digest = Digest::default();
    digest.update(values);
    digest.hex()
}

/// BLAKE3 (hex) of a whole file, as the ledger keeps it to check a snapshot before HDF5 opens it.
///
/// # Errors
/// [`SimError::Io`].
pub fn file_digest(path: &Path) -> Result<String, SimError> {
    file_digest_reporting(path, &|_| ())
}

/// The same, while `report` is told how many bytes have been read.
///
/// # Errors
/// [`SimError::Io`].
pub fn file_digest_reporting(path: &Path, report: &dyn Fn(u64)) -> Result<String, SimError> {
    let digest = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len().clamp(1, BLOCK as u64);
        let mut block = Vec::with_capacity(length as usize);
        let mut hasher = blake3::Hasher::new();
        let mut bytes = 0;
        loop {
            block.clear();
            if (&mut file).take(length).read_to_end(&mut block)? == 0 {
                return Ok(hasher.finalize().to_hex().to_string());
            }
            hasher.update_rayon(&block);
            bytes += block.len() as u64;
            report(bytes);
        }
    };
    digest().map_err(|source| SimError::Io { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Arrays and files longer than a block, and not a multiple of one, against BLAKE3 of all bytes in one go.
    #[test]
    fn digests_are_those_of_all_bytes() {
        let values: Vec<f64> = (0..BLOCK / 8 + BLOCK / 16 + 3).map(|n| n as f64).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let expected = blake3::hash(&bytes).to_hex().to_string();
        assert_eq!(digest(&values), expected);
        let mut parts = Digest::default();
        values.chunks(BLOCK / 9).for_each(|part| parts.update(part));
        assert_eq!(parts.hex(), expected);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("values");
        std::fs::write(&path, &bytes).unwrap();
        let told = std::cell::Cell::new(0);
        let report = |bytes| {
            assert!(bytes > told.get());
            told.set(bytes);
        };
        assert_eq!(file_digest_reporting(&path, &report).unwrap(), expected);
        assert_eq!((told.get() as usize, file_digest(&path).unwrap()), (values.len() * 8, expected));
        assert_eq!(digest::<f32>(&[]), blake3::hash(&[]).to_hex().to_string());
    }
}

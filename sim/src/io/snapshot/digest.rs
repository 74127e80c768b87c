//! BLAKE3 of arrays and of whole files.

use crate::error::SimError;
use crate::parallel::communicator::Communicator;
use crate::parallel::communicator::FIRST;
use blake3::hazmat::{ChainingValue, HasherExt, Mode, left_subtree_len, merge_subtrees_non_root, merge_subtrees_root};
use hdf5::H5Type;
use rayon::prelude::*;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes that are hashed at once, by all threads: enough for each of them, and little against an array.
const BLOCK: usize = 1 << 23;
/// Bytes of a block that one thread reads at a time.
const READ: usize = 1 << 18;
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

stored_number!(u8 i32 i64 u64 f32 f64);

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

/// The digests of arrays of one length whose blocks different ranks have.
///
/// BLAKE3 is a binary tree over chunks of 1024 bytes. A block of 2ⁿ of them that begins at a multiple of its length is a
/// subtree, as is what is left at the end, so its value depends on no other block.
pub(super) struct BlockDigests {
    /// Bytes of an array.
    array: u64,
    /// Bytes of a block; the last one of an array may be shorter.
    block: u64,
    /// Values of this rank's blocks, array by array.
    own: Vec<ChainingValue>,
}

impl BlockDigests {
    /// Of arrays of so many bytes.
    ///
    /// # Panics
    /// If a block is no power of two of at least 1024 bytes.
    pub(super) fn new(array: usize, block: usize) -> Self {
        assert!(block.is_power_of_two() && block >= blake3::CHUNK_LEN, "blocks of {block} bytes");
        Self { array: array as u64, block: block as u64, own: Vec::new() }
    }

    /// With a block of an array. A rank's blocks of one array come in their order, before those of the next array.
    pub(super) fn add(&mut self, block: usize, bytes: &[u8]) {
        let mut hasher = blake3::Hasher::new();
        self.own.push(if self.array <= self.block {
            *hasher.update_rayon(bytes).finalize().as_bytes()
        } else {
            hasher.set_input_offset(block as u64 * self.block).update_rayon(bytes).finalize_non_root()
        });
    }

    /// The digests (hex) of all arrays, on the first rank, where each rank has had its piece of every array, in the order of
    /// ranks. Collective.
    pub(super) fn whole(&self, communicator: &Communicator, arrays: usize) -> Option<Vec<String>> {
        let of_ranks = communicator.gather(FIRST, self.own.as_flattened().to_vec())?;
        let of_array = |array: usize| -> Vec<ChainingValue> {
            let of_rank = |bytes: &'_ Vec<u8>| {
                let (values, _) = bytes.as_chunks();
                let length = values.len() / arrays;
                values[array * length..][..length].to_vec()
            };
            of_ranks.iter().flat_map(of_rank).collect()
        };
        Some((0..arrays).map(|array| self.united(&of_array(array))).collect())
    }

    /// The digest of an array from all of its blocks.
    fn united(&self, blocks: &[ChainingValue]) -> String {
        let root = match blocks {
            [only] => blake3::Hash::from_bytes(*only),
            _ => {
                let [left, right] = self.halves(blocks, self.array);
                merge_subtrees_root(&left, &right, Mode::Hash)
            }
        };
        root.to_hex().to_string()
    }

    /// The values of both subtrees of some bytes in more than one block.
    fn halves(&self, blocks: &[ChainingValue], bytes: u64) -> [ChainingValue; 2] {
        let left = left_subtree_len(bytes);
        let (first, rest) = blocks.split_at((left / self.block) as usize);
        [(first, left), (rest, bytes - left)].map(|(blocks, bytes)| match blocks {
            [only] => *only,
            _ => {
                let [left, right] = self.halves(blocks, bytes);
                merge_subtrees_non_root(&left, &right, Mode::Hash)
            }
        })
    }
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
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut block = vec![0; length.min(BLOCK as u64) as usize];
        let mut hasher = blake3::Hasher::new();
        let mut bytes = 0;
        while bytes < length {
            let block = &mut block[..(length - bytes).min(BLOCK as u64) as usize];
            let read = |(n, part): (usize, &mut [u8])| file.read_exact_at(part, bytes + (n * READ) as u64);
            block.par_chunks_mut(READ).enumerate().try_for_each(read)?;
            hasher.update_rayon(block);
            bytes += block.len() as u64;
            report(bytes);
        }
        match file.metadata()?.len() {
            now if now == length => Ok(hasher.finalize().to_hex().to_string()),
            now => Err(io::Error::other(format!(
                "it grew from {length} to {now} bytes while its digest was found; try again"
            ))),
        }
    };
    digest().map_err(|source| SimError::Io { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parallel::on_ranks;

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

    /// Arrays in blocks that ranks have, from less than one block each to several, against BLAKE3 of all bytes.
    #[test]
    fn blocks_of_ranks_make_the_digests_of_arrays() {
        const BLOCK: usize = 4096;
        for (bytes, ranks) in
            [(1000, 1), (BLOCK, 3), (BLOCK + 1, 2), (7 * BLOCK + 1500, 1), (13 * BLOCK, 5), (64 * BLOCK - 7, 7)]
        {
            let arrays: Vec<Vec<u8>> =
                (0..3).map(|array| (0..bytes).map(|n| (n * 7 + n / 251 + array) as u8).collect()).collect();
            let blocks = bytes.div_ceil(BLOCK);
            let digests = on_ranks(ranks, |communicator| {
                let mut digests = BlockDigests::new(bytes, BLOCK);
                let rank = communicator.rank();
                for array in &arrays {
                    let own =
                        array.chunks(BLOCK).enumerate().take(blocks * (rank + 1) / ranks).skip(blocks * rank / ranks);
                    own.for_each(|(block, bytes)| digests.add(block, bytes));
                }
                digests.whole(&communicator, arrays.len())
            });
            let expected = arrays.iter().map(|array| blake3::hash(array).to_hex().to_string()).collect();
            assert_eq!(digests[FIRST], Some(expected), "{bytes} bytes on {ranks} ranks");
            assert!(digests[1..].iter().all(Option::is_none));
        }
    }
}

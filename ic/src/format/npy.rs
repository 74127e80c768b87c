//! NumPy's `.npy` files, version 1.0 (NumPy Enhancement Proposal 1): a header of text, then the numbers, the last axis fastest.

use super::write_then_rename;
use crate::error::IcError;
use bytemuck::Pod;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Numbers that a file can hold.
pub trait Number: Pod {
    /// NumPy's name of the type, little-endian.
    const TYPE: &'static str;
}

impl Number for f64 {
    const TYPE: &'static str = "<f8";
}

impl Number for f32 {
    const TYPE: &'static str = "<f4";
}

impl Number for u64 {
    const TYPE: &'static str = "<u8";
}

/// The header ends at a multiple of this.
const ALIGNED: usize = 64;

/// Writes an array piece by piece.
///
/// * `pieces`: all numbers in order
///
/// # Errors
/// [`IcError::Io`]; a file of that name, if any, is then untouched.
pub fn write<N: Number>(
    path: &Path,
    shape: &[usize],
    pieces: impl Iterator<Item = impl AsRef<[N]>>,
) -> Result<(), IcError> {
    let sizes: String = shape.iter().map(|n| format!("{n}, ")).collect();
    let mut header = format!("{{'descr': '{}', 'fortran_order': False, 'shape': ({sizes}), }}", N::TYPE);
    // six bytes of magic, two of version, two of length, and a line feed
    let padding = (header.len() + 11).next_multiple_of(ALIGNED) - (header.len() + 11);
    header.push_str(&" ".repeat(padding));
    header.push('\n');
    write_then_rename(path, |temporary| {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(temporary)?);
        file.write_all(b"\x93NUMPY\x01\x00")?;
        file.write_all(&(header.len() as u16).to_le_bytes())?;
        file.write_all(header.as_bytes())?;
        for piece in pieces {
            file.write_all(bytemuck::cast_slice(piece.as_ref()))?;
        }
        file.flush()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header as the proposal has it, and the numbers of the pieces.
    #[test]
    fn arrays_have_a_header_of_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.npy");
        write(&path, &[2, 3], [vec![1.5f32, 2.5], vec![3.5; 4]].into_iter()).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let (header, numbers) = bytes.split_at(bytes.len() - 24);
        assert!(header.starts_with(b"\x93NUMPY\x01\x00") && header.len().is_multiple_of(ALIGNED));
        assert_eq!(usize::from(u16::from_le_bytes([header[8], header[9]])), header.len() - 10);
        let text = std::str::from_utf8(&header[10..]).unwrap();
        assert_eq!(text.trim_end(), "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, ), }");
        assert!(text.ends_with('\n'));
        assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(numbers), [1.5, 2.5, 3.5, 3.5, 3.5, 3.5]);
    }
}

//! Files of white noise: a number of mean 0 and variance 1 for each cell of a mesh.
//!
//! | layout | content |
//! |---|---|
//! | GRAFIC (Bertschinger 2001, ApJS 137, 1) | Fortran records, each between two lengths of four bytes: nx, ny, nz, seed; then nz planes of nx · ny numbers, x fastest |
//! | MUSIC's `wnoise_*.bin` | without records: nx, ny, nz; then nx planes of ny · nz numbers, z fastest |
//!
//! Counts have 32 bits, numbers 32 or 64, in either byte order: first record and size of the file tell which.

use crate::error::IcError;
use crate::ordered_sum::ordered_sum_of_ranks;
use comove_sim::Precision;
use comove_sim::complete_file::Temporary;
use comove_sim::parallel::{Communicator, collective_result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A file of white noise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoiseFile {
    /// The file.
    pub path: PathBuf,
    /// Sign of its numbers; by default that of [`NoiseSign::Grafic`], and in MUSIC's own files always that of the density
    /// contrast.
    pub sign: Option<NoiseSign>,
}

/// Sign of the numbers in a GRAFIC file, which does not state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoiseSign {
    /// That of the density contrast: GRAFIC, and MUSIC with `grafic_sign = yes`.
    Grafic,
    /// The opposite: MUSIC's default for files that it reads.
    Music,
}

/// Most cells of a mesh along an axis.
const MOST_CELLS: u64 = 1 << 16;

/// Least cells along an axis that noise is written for: with fewer the modes that are left out have much of the variance.
const LEAST_CELLS: u64 = 8;

/// Bytes of GRAFIC's first record without its two lengths.
const HEADER: u32 = 16;

/// Range of the variance of white noise. On 16³ cells it is 1 ± 0.02, and 0.82 without the modes that are left out.
const VARIANCE: Range<f64> = 0.5..2.0;

/// Arrangement of a file's numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    cells: [usize; 3],
    /// True for Fortran records, one for each z with x fastest; false for planes, one for each x with z fastest.
    has_records: bool,
    is_big_endian: bool,
    /// Bytes of a number.
    width: usize,
}

impl NoiseFile {
    /// Checks the header and the size.
    ///
    /// * `cells`: those of the recipe's mesh
    ///
    /// # Errors
    /// [`IcError::Io`]; [`IcError::Content`] for a file of another kind or length, or a sign that it cannot have;
    /// [`IcError::Contradiction`] for one of another mesh.
    pub fn check(&self, cells: [usize; 3]) -> Result<(), IcError> {
        self.open(cells).map(|_| ())
    }

    fn open(&self, cells: [usize; 3]) -> Result<(File, Layout), IcError> {
        let failed = |source| IcError::Io { path: self.path.clone(), source };
        let mut file = File::open(&self.path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut start = [[0; 4]; 6];
        if size >= size_of_val(&start) as u64 {
            file.read_exact(start.as_flattened_mut()).map_err(failed)?;
        }
        let content = |reason| IcError::Content { path: self.path.clone(), reason };
        let layout = Layout::of(start, size, cells).map_err(content)?;
        if layout.cells != cells {
            let [found, expected] = [layout.cells, cells].map(|cells| format!("{cells:?}"));
            let path = self.path.clone();
            return Err(IcError::Contradiction { path, name: "cells", file: found, recipe: expected });
        }
        if !layout.has_records && self.sign.is_some() {
            let reason = "MUSIC's own file, whose numbers have the sign of the density contrast: remove noise_sign";
            return Err(content(reason.into()));
        }
        Ok((file, layout))
    }

    /// Numbers with the sign of the density contrast, of a rank's planes along z, x fastest. Collective.
    ///
    /// * `cells`: those of the whole mesh
    ///
    /// # Errors
    /// Those of [`NoiseFile::check`]; [`IcError::Content`] for damaged records, numbers that are not finite or that are no white
    /// noise.
    pub(crate) fn read(
        &self,
        communicator: &Communicator,
        cells: [usize; 3],
        planes: Range<usize>,
    ) -> Result<Vec<f64>, IcError> {
        let read = self.open(cells).and_then(|(mut file, layout)| layout.read(&mut file, &self.path, planes));
        let mut noise = collective_result(communicator, read)?;
        let count: f64 = cells.iter().map(|&n| n as f64).product();
        let variance = ordered_sum_of_ranks(communicator, noise.len(), |n| noise[n] * noise[n]) / count;
        if !VARIANCE.contains(&variance) {
            let Range { start, end } = VARIANCE;
            let reason = format!(
                "the numbers have a variance of {variance:.4}, expected {start} to {end}: give a file of white noise, not of \
                 densities"
            );
            return Err(IcError::Content { path: self.path.clone(), reason });
        }
        if self.sign == Some(NoiseSign::Music) {
            noise.par_iter_mut().for_each(|number| *number = -*number);
        }
        Ok(noise)
    }
}

impl Layout {
    /// The layout of a file that begins with `start`.
    ///
    /// # Errors
    /// The reason why there is none.
    fn of(start: [[u8; 4]; 6], size: u64, expected: [usize; 3]) -> Result<Self, String> {
        let mut closest = None;
        for (is_big_endian, has_records) in [(false, true), (true, true), (false, false), (true, false)] {
            let words = start.map(|word| number_of(word, is_big_endian));
            if has_records && (words[0] != HEADER || words[5] != HEADER) {
                continue;
            }
            let [x, y, z] = std::array::from_fn(|n| words[n + usize::from(has_records)]);
            if [x, y, z].iter().any(|&n| !(1..=MOST_CELLS).contains(&u64::from(n))) {
                continue;
            }
            let layout = |width| Self { cells: [x, y, z].map(|n| n as usize), has_records, is_big_endian, width };
            if let Some(found) = [4, 8].map(layout).into_iter().find(|layout| layout.size() == size) {
                return Ok(found);
            }
            if has_records || layout(4).cells == expected {
                closest = closest.or(Some([4, 8].map(layout)));
            }
        }
        Err(match closest {
            Some([single, double]) => format!(
                "{size} bytes, expected {} for {:?} numbers of 32 bits or {} for 64: copy the file again",
                single.size(),
                single.cells,
                double.size()
            ),
            None => {
                let words = match start {
                    [[0, ..], ..] if size < size_of_val(&start) as u64 => String::new(),
                    _ => format!(" that begin with the 32-bit words {:?}", start.map(u32::from_le_bytes)),
                };
                format!(
                    "{size} bytes{words}: expected white noise in records of Fortran, the first one of {HEADER} bytes, or MUSIC's \
                     wnoise_*.bin, which begins with the cells {expected:?}"
                )
            }
        })
    }

    /// Bytes of the header, with its lengths.
    fn header(self) -> u64 {
        if self.has_records { u64::from(HEADER) + 8 } else { 12 }
    }

    /// Planes, and numbers of a plane.
    fn planes(self) -> (usize, usize) {
        let [x, y, z] = self.cells;
        if self.has_records { (z, x * y) } else { (x, y * z) }
    }

    /// Bytes of the file.
    fn size(self) -> u64 {
        let (planes, numbers) = self.planes();
        let lengths = if self.has_records { 8 } else { 0 };
        self.header() + planes as u64 * (numbers as u64 * self.width as u64 + lengths)
    }

    /// Numbers of a rank's planes along z, x fastest.
    fn read(self, file: &mut File, path: &Path, own: Range<usize>) -> Result<Vec<f64>, IcError> {
        let failed = |source| IcError::Io { path: path.into(), source };
        let content = |reason| IcError::Content { path: path.into(), reason };
        let [nx, ny, nz] = self.cells;
        let mut noise = vec![0.0; nx * ny * own.len()];
        let (planes, numbers) = self.planes();
        let border = if self.has_records { 4 } else { 0 };
        let mut bytes = vec![0; numbers * self.width + 2 * border];
        // the planes of a file with records are those of the mesh
        let read = if self.has_records { own.clone() } else { 0..planes };
        for n in read {
            file.seek(SeekFrom::Start(self.header() + (n * bytes.len()) as u64)).map_err(failed)?;
            file.read_exact(&mut bytes).map_err(failed)?;
            let (before, rest) = bytes.split_at(border);
            let (values, after) = rest.split_at(numbers * self.width);
            for length in [before, after].into_iter().filter_map(|length| length.try_into().ok()) {
                let (found, expected) = (number_of(length, self.is_big_endian) as usize, values.len());
                if found != expected {
                    let reason = format!(
                        "the record of plane {n} (from 0) has {found} bytes, expected {expected}: copy the file again"
                    );
                    return Err(content(reason));
                }
            }
            for (m, value) in values.chunks_exact(self.width).enumerate() {
                let cell = if self.has_records { [m % nx, m / nx, n] } else { [n, m / nz, m % nz] };
                let value = self.real(value);
                if !value.is_finite() {
                    return Err(content(format!("cell {cell:?} (from 0) is {value}: must be finite")));
                }
                if own.contains(&cell[2]) {
                    noise[((cell[2] - own.start) * ny + cell[1]) * nx + cell[0]] = value;
                }
            }
        }
        Ok(noise)
    }

    fn real(self, bytes: &[u8]) -> f64 {
        let mut ordered = [0; 8];
        ordered[..bytes.len()].copy_from_slice(bytes);
        if self.is_big_endian {
            ordered[..bytes.len()].reverse();
        }
        let bits = u64::from_le_bytes(ordered);
        if self.width == 4 { f64::from(f32::from_bits(bits as u32)) } else { f64::from_bits(bits) }
    }
}

fn number_of(word: [u8; 4], is_big_endian: bool) -> u32 {
    if is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}

/// Writes white noise of a whole mesh as a GRAFIC file, little-endian, with the sign of the density contrast.
///
/// * `noise`: a number for each cell, `[z, y, x]`, x fastest
/// * `seed`: its low 32 bits are noted in the file
///
/// # Errors
/// [`IcError::Io`]; [`IcError::Parameter`] for planes that a record of Fortran cannot hold.
pub fn write(path: &Path, cells: [usize; 3], noise: &[f64], seed: u64, precision: Precision) -> Result<(), IcError> {
    let failed = |source| IcError::Io { path: path.into(), source };
    let [nx, ny, nz] = cells;
    let length = record_length(cells, precision)?.to_le_bytes();
    assert_eq!(noise.len(), nx * ny * nz, "a number for each cell");
    let write = || {
        let temporary = Temporary::beside(path)?;
        let mut file = BufWriter::new(File::create(temporary.path())?);
        let header = [HEADER, nx as u32, ny as u32, nz as u32, seed as u32, HEADER];
        file.write_all(header.map(u32::to_le_bytes).as_flattened())?;
        for plane in noise.chunks(nx * ny) {
            file.write_all(&length)?;
            for value in plane {
                match precision {
                    Precision::Single => file.write_all(&(*value as f32).to_le_bytes())?,
                    Precision::Double => file.write_all(&value.to_le_bytes())?,
                }
            }
            file.write_all(&length)?;
        }
        file.flush()?;
        temporary.rename(path)
    };
    write().map_err(failed)
}

/// Bytes of the record of a plane of such a file.
///
/// # Errors
/// [`IcError::Parameter`] for axes of odd or too many cells, and planes that a record of Fortran cannot hold.
pub fn record_length(cells: [usize; 3], precision: Precision) -> Result<u32, IcError> {
    let refuse = |reason: String| IcError::Parameter { name: "cells", value: format!("{cells:?}"), reason };
    if cells.iter().any(|&n| n % 2 == 1 || !(LEAST_CELLS..=MOST_CELLS).contains(&(n as u64))) {
        return Err(refuse(format!("every axis must have an even number of cells from {LEAST_CELLS} to {MOST_CELLS}")));
    }
    let bytes = cells[0] * cells[1] * if precision == Precision::Single { 4 } else { 8 };
    let reason = "a plane exceeds 2 GiB, the longest record of Fortran: reduce cells, or write single precision";
    i32::try_from(bytes).map(i32::cast_unsigned).map_err(|_| refuse(reason.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::parallel::on_ranks;

    const CELLS: [usize; 3] = [6, 4, 8];

    /// The number in a cell, of 32 bits and of variance 1 over the mesh.
    fn number([i, j, k]: [usize; 3]) -> f64 {
        f64::from((1.41 * (0.7 * (i + 10 * j + 100 * k) as f64).sin()) as f32)
    }

    /// Bytes of a file with these numbers, put together by hand.
    fn bytes(has_records: bool, is_big_endian: bool, width: usize) -> Vec<u8> {
        let [nx, ny, nz] = CELLS;
        let ordered = |mut bytes: Vec<u8>| {
            if is_big_endian {
                bytes.reverse();
            }
            bytes
        };
        let word = |n: usize| ordered((n as u32).to_le_bytes().to_vec());
        let real =
            |x: f64| ordered(if width == 4 { (x as f32).to_le_bytes().to_vec() } else { x.to_le_bytes().to_vec() });
        let mut file = Vec::new();
        if !has_records {
            file.extend(CELLS.map(word).concat());
            for i in 0..nx {
                for j in 0..ny {
                    (0..nz).for_each(|k| file.extend(real(number([i, j, k]))));
                }
            }
            return file;
        }
        file.extend([16, nx, ny, nz, 77, 16].map(word).concat());
        for k in 0..nz {
            file.extend(word(nx * ny * width));
            for j in 0..ny {
                (0..nx).for_each(|i| file.extend(real(number([i, j, k]))));
            }
            file.extend(word(nx * ny * width));
        }
        file
    }

    fn written(folder: &Path, bytes: &[u8]) -> NoiseFile {
        let path = folder.join("noise.bin");
        std::fs::write(&path, bytes).unwrap();
        NoiseFile { path, sign: None }
    }

    #[test]
    fn all_layouts_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let [nx, ny, nz] = CELLS;
        let expected: Vec<f64> = (0..nx * ny * nz).map(|n| number([n % nx, n / nx % ny, n / (nx * ny)])).collect();
        for has_records in [true, false] {
            for (is_big_endian, width) in [(false, 4), (false, 8), (true, 4), (true, 8)] {
                let file = written(folder.path(), &bytes(has_records, is_big_endian, width));
                for planes in [0..nz, 3..5] {
                    let (mut opened, layout) = file.open(CELLS).unwrap();
                    let found = layout.read(&mut opened, &file.path, planes.clone()).unwrap();
                    assert_eq!(found, expected[planes.start * nx * ny..planes.end * nx * ny]);
                }
                let parts = on_ranks(2, |communicator| {
                    let planes = communicator.rank() * nz / 2..(communicator.rank() + 1) * nz / 2;
                    file.read(&communicator, CELLS, planes).unwrap()
                });
                assert_eq!(parts.concat(), expected);
            }
        }
        let file = NoiseFile { sign: Some(NoiseSign::Music), ..written(folder.path(), &bytes(true, false, 4)) };
        let negative = file.read(&Communicator::alone(), CELLS, 0..nz).unwrap();
        assert!(negative.iter().zip(&expected).all(|(found, expected)| *found == -expected));
    }

    /// Each refusal names the file, and what was found and expected.
    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let said = |bytes: &[u8], cells: [usize; 3], sign: Option<NoiseSign>| {
            let file = NoiseFile { sign, ..written(folder.path(), bytes) };
            let said = file.read(&Communicator::alone(), cells, 0..cells[2]).unwrap_err().to_string();
            assert!(said.contains("noise.bin: ") && !said.contains('\n'), "{said}");
            said
        };
        let changed = |at: usize, word: [u8; 4]| {
            let mut file = bytes(true, false, 4);
            file[at..at + 4].copy_from_slice(&word);
            file
        };
        let (records, raw) = (bytes(true, false, 8), bytes(false, false, 4));
        for (bytes, parts) in [
            (&records[..1000], ["1000 bytes, expected 856 for [6, 4, 8] numbers of 32 bits", "1624 for 64"]),
            (&raw[..700], ["700 bytes, expected 780", "1548 for 64"]),
            (&[7; 100], ["100 bytes that begin with the 32-bit words [117901063,", "[6, 4, 8]"]),
            (&[], ["0 bytes", "wnoise_*.bin"]),
            (&changed(24, [0; 4]), ["the record of plane 0 (from 0) has 0 bytes", "expected 96"]),
            (&changed(24 + 104 + 4 + 4 * 7, f32::NAN.to_le_bytes()), ["cell [1, 1, 1] (from 0)", "NaN"]),
            (&changed(28, 100f32.to_le_bytes()), ["a variance of", "expected 0.5 to 2"]),
        ] {
            let said = said(bytes, CELLS, None);
            assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        }
        let other = said(&records, [6, 4, 10], None);
        assert!(other.contains("cells = [6, 4, 8], the recipe says [6, 4, 10]"), "{other}");
        assert!(said(&raw, CELLS, Some(NoiseSign::Music)).contains("remove noise_sign"));
    }
}

//! Binary files of formats 1 and 2 (Springel 2005, *User guide for GADGET-2*, section 6.1): Fortran records, each between two
//! marks of four bytes that state its length.
//!
//! The first record is the header of 256 bytes. The following have positions, velocities, identities and the masses of types
//! without one in the header, each for all types in turn. In format 2 a record of 8 bytes with a name of four letters is before
//! each. Marks tell the order of bytes, lengths of records the precision of numbers.

use super::quantity::Quantity;
use crate::error::IcError;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of the header's record.
const HEADER_BYTES: u32 = 256;

/// Bytes of a record that has a name.
const NAME_BYTES: u32 = 8;

/// Name of the header in format 2.
const HEAD: [u8; 4] = *b"HEAD";

/// Types of particles.
const TYPES: usize = 6;

/// Entries of the header under their names in HDF5, with their first bytes and number.
const COUNTS: [(&str, usize, usize); 4] = [
    (THIS_FILE, 0, TYPES),
    ("NumPart_Total", 96, TYPES),
    ("NumFilesPerSnapshot", 124, 1),
    ("NumPart_Total_HighWord", 168, TYPES),
];
const REALS: [(&str, usize, usize); 7] = [
    (MASS_TABLE, 24, TYPES),
    ("Time", 72, 1),
    ("Redshift", 80, 1),
    ("BoxSize", 128, 1),
    ("Omega0", 136, 1),
    ("OmegaLambda", 144, 1),
    ("HubbleParam", 152, 1),
];
const THIS_FILE: &str = "NumPart_ThisFile";
const MASS_TABLE: &str = "MassTable";

/// An open file.
pub(super) struct Records {
    path: PathBuf,
    file: File,
    size: u64,
    is_swapped: bool,
    /// Names are before records: format 2.
    is_named: bool,
    header: Vec<u8>,
    /// First byte after the header.
    blocks: u64,
}

/// Numbers of one type.
pub(super) struct Block {
    /// First byte.
    start: u64,
    width: usize,
    pub is_single: bool,
}

/// Bytes of a record without its marks.
type Payload = Range<u64>;

/// `(is_swapped, is_named)` of a file of format 1 or 2 that begins with these bytes: the other byte order, names of blocks.
fn start_of(bytes: [u8; 8]) -> Option<(bool, bool)> {
    let (mark, name) = (u32::from_ne_bytes(bytes[..4].try_into().ok()?), &bytes[4..]);
    [false, true].into_iter().find_map(|is_swapped| {
        let is = |length: u32| mark == if is_swapped { length.swap_bytes() } else { length };
        let is_named = is(NAME_BYTES) && name == HEAD;
        (is_named || is(HEADER_BYTES)).then_some((is_swapped, is_named))
    })
}

/// True for the first bytes of a file of format 1 or 2.
pub(in crate::format) fn begins(start: &[u8]) -> bool {
    start.try_into().is_ok_and(|start| start_of(start).is_some())
}

/// Numbers of `W` bytes.
fn numbers<const W: usize, T>(bytes: &[u8], is_swapped: bool, number: fn([u8; W]) -> T) -> Vec<T> {
    let in_order = |mut bytes: [u8; W]| {
        if is_swapped {
            bytes.reverse();
        }
        number(bytes)
    };
    bytes.as_chunks().0.iter().copied().map(in_order).collect()
}

impl Records {
    /// Reads the header.
    ///
    /// # Errors
    /// [`IcError::Io`], [`IcError::Content`] for a file that does not begin as either format.
    pub(super) fn open(path: &Path) -> Result<Self, IcError> {
        let failed = |source| IcError::Io { path: path.into(), source };
        let content = |reason: String| IcError::Content { path: path.into(), reason };
        let file = File::open(path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let mut start = [0; 8];
        if size >= 8 {
            file.read_exact_at(&mut start, 0).map_err(failed)?;
        }
        let (is_swapped, is_named) = start_of(start).ok_or_else(|| {
            content(format!(
                "the file does not begin with a record of {HEADER_BYTES} bytes, the header of Gadget's format 1, or with the name \
                 \"HEAD\" of format 2"
            ))
        })?;
        let path = path.to_path_buf();
        let mut records = Self { path, file, size, is_swapped, is_named, header: Vec::new(), blocks: 0 };
        let at = if is_named { records.name(0)?.1 } else { 0 };
        let header = records.record(at, "the header", &[HEADER_BYTES.into()])?;
        records.header = records.bytes(header.start, HEADER_BYTES as usize)?;
        records.blocks = header.end + 4;
        Ok(records)
    }

    pub(super) fn content(&self, reason: impl Into<String>) -> IcError {
        IcError::Content { path: self.path.clone(), reason: reason.into() }
    }

    /// Numbers of an entry of the header. Totals are those of several files: in one file Gadget-2 reads none.
    pub(super) fn numbers(&self, name: &str) -> Option<Vec<f64>> {
        let find = |entries: &[(&str, usize, usize)]| {
            entries.iter().find(|entry| entry.0 == name).map(|entry| (entry.1, entry.2))
        };
        if let Some((first, count)) = find(&REALS) {
            return Some(numbers(&self.header[first..first + 8 * count], self.is_swapped, f64::from_ne_bytes));
        }
        if name.starts_with("NumPart_Total") && self.numbers("NumFilesPerSnapshot").is_none_or(|files| files[0] <= 1.0)
        {
            return None;
        }
        let (first, count) = find(&COUNTS)?;
        let number = |bytes| f64::from(u32::from_ne_bytes(bytes));
        Some(numbers(&self.header[first..first + 4 * count], self.is_swapped, number))
    }

    /// Particles of each type that a block has.
    fn counts(&self, quantity: Quantity) -> Vec<u64> {
        let [counts, masses] = [THIS_FILE, MASS_TABLE].map(|name| self.numbers(name).unwrap_or_default());
        let is_here = |mass: f64| quantity != Quantity::Masses || mass == 0.0;
        counts.into_iter().zip(masses).map(|(count, mass)| if is_here(mass) { count as u64 } else { 0 }).collect()
    }

    /// Numbers of a type.
    ///
    /// # Errors
    /// [`IcError::Content`] for a block that is missing, cut short, or of another length.
    pub(super) fn block(&self, quantity: Quantity, kind: usize) -> Result<Block, IcError> {
        let mut order = Quantity::ALL.into_iter();
        let mut at = self.blocks;
        while at < self.size {
            let (name, found, start) = if self.is_named {
                let (name, start) = self.name(at)?;
                (name, Quantity::ALL.into_iter().find(|quantity| quantity.block().as_bytes() == name), start)
            } else {
                (*b"    ", order.next(), at)
            };
            let payload = match found {
                Some(found) if !self.is_named || self.counts(found).iter().any(|n| *n > 0) => {
                    self.payload(start, found)?
                }
                // one of which the header says nothing may have any length
                _ => {
                    let block = format!("block \"{}\"", String::from_utf8_lossy(&name));
                    let mark = u64::from(self.mark(start, &block)?);
                    let lengths: Vec<u64> = (0..=self.size >> 32).map(|n| mark + (n << 32)).collect();
                    self.record(start, &block, &lengths)?
                }
            };
            if found == Some(quantity) {
                let counts = self.counts(quantity);
                let width = quantity.width();
                let numbers = width as u64 * counts.iter().sum::<u64>();
                let is_single = payload.end - payload.start == 4 * numbers;
                let before = width as u64 * counts[..kind].iter().sum::<u64>() * if is_single { 4 } else { 8 };
                return Ok(Block { start: payload.start + before, width, is_single });
            }
            at = payload.end + 4;
        }
        Err(self.content(format!(
            "block \"{}\" is missing: the file ends after {} bytes, expected the numbers of {} particles",
            quantity.block(),
            self.size,
            self.counts(quantity).iter().sum::<u64>()
        )))
    }

    /// The record of a block.
    fn payload(&self, at: u64, quantity: Quantity) -> Result<Payload, IcError> {
        let numbers = quantity.width() as u64 * self.counts(quantity).iter().sum::<u64>();
        self.record(at, &format!("block \"{}\"", quantity.block()), &[4 * numbers, 8 * numbers])
    }

    /// A record whose mark is at byte `at`.
    ///
    /// * `lengths`: those that it may have. Marks of longer records than 4 GiB state them modulo 2³²
    fn record(&self, at: u64, name: &str, lengths: &[u64]) -> Result<Payload, IcError> {
        let mark = self.mark(at, name)?;
        let fitting = || lengths.iter().copied().filter(|length| *length as u32 == mark);
        let payload = |length: u64| at + 4..at + 4 + length;
        let is_complete = |payload: &Payload| payload.end + 4 <= self.size;
        for payload in fitting().map(payload).filter(is_complete) {
            if self.mark(payload.end, name)? == mark {
                return Ok(payload);
            }
        }
        let reason = match fitting().map(payload).next() {
            Some(payload) if is_complete(&payload) => format!(
                "{name} begins with a mark of {mark} bytes and ends with one of {}: the file is damaged, copy it again",
                self.mark(payload.end, name)?
            ),
            Some(payload) => format!(
                "the file is truncated in {name}: {} bytes, expected at least {}; copy it again",
                self.size,
                payload.end + 4
            ),
            None => {
                let lengths: Vec<String> = lengths.iter().map(u64::to_string).collect();
                format!("{name} has {mark} bytes, expected {} as the header says", lengths.join(" or "))
            }
        };
        Err(self.content(reason))
    }

    /// The name in a record at this byte, and the first byte after the record.
    fn name(&self, at: u64) -> Result<([u8; 4], u64), IcError> {
        let payload = self.record(at, "the name of a block", &[NAME_BYTES.into()])?;
        let name = self.bytes(payload.start, 4)?;
        Ok((name.try_into().expect("four bytes"), payload.end + 4))
    }

    fn mark(&self, at: u64, name: &str) -> Result<u32, IcError> {
        if at + 4 > self.size {
            let reason = format!(
                "the file is truncated in {name}: {} bytes, expected at least {}; copy it again",
                self.size,
                at + 4
            );
            return Err(self.content(reason));
        }
        Ok(numbers(&self.bytes(at, 4)?, self.is_swapped, u32::from_ne_bytes)[0])
    }

    fn bytes(&self, at: u64, count: usize) -> Result<Vec<u8>, IcError> {
        let mut bytes = vec![0; count];
        let read = self.file.read_exact_at(&mut bytes, at);
        read.map_err(|source| IcError::Io { path: self.path.clone(), source }).map(|()| bytes)
    }

    fn rows(&self, block: &Block, rows: Range<usize>) -> Result<Vec<u8>, IcError> {
        let size = block.width * if block.is_single { 4 } else { 8 };
        self.bytes(block.start + (rows.start * size) as u64, rows.len() * size)
    }

    /// Numbers of particles.
    ///
    /// # Errors
    /// [`IcError::Io`].
    pub(super) fn reals(&self, block: &Block, rows: Range<usize>) -> Result<Vec<f64>, IcError> {
        let bytes = self.rows(block, rows)?;
        let single = |bytes| f64::from(f32::from_ne_bytes(bytes));
        Ok(match block.is_single {
            true => numbers(&bytes, self.is_swapped, single),
            false => numbers(&bytes, self.is_swapped, f64::from_ne_bytes),
        })
    }

    /// Whole numbers of particles.
    ///
    /// # Errors
    /// [`IcError::Io`].
    pub(super) fn integers(&self, block: &Block, rows: Range<usize>) -> Result<Vec<u64>, IcError> {
        let bytes = self.rows(block, rows)?;
        let single = |bytes| u64::from(u32::from_ne_bytes(bytes));
        Ok(match block.is_single {
            true => numbers(&bytes, self.is_swapped, single),
            false => numbers(&bytes, self.is_swapped, u64::from_ne_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes two particles of type 1, whose mass is in the header, and one of type 2.
    #[derive(Clone, Copy)]
    struct Writer {
        is_named: bool,
        is_swapped: bool,
        is_single: bool,
    }

    const POSITIONS: [f64; 9] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.5];
    const IDS: [u32; 3] = [7, 8, 9];

    impl Writer {
        fn number<const W: usize>(self, mut bytes: [u8; W]) -> [u8; W] {
            if self.is_swapped {
                bytes.reverse();
            }
            bytes
        }

        fn record(self, to: &mut Vec<u8>, name: &[u8; 4], payload: &[u8]) {
            let mark = |length: usize| self.number((length as u32).to_ne_bytes());
            if self.is_named {
                to.extend(mark(8));
                to.extend(name);
                to.extend(mark(payload.len() + 8));
                to.extend(mark(8));
            }
            to.extend(mark(payload.len()));
            to.extend(payload);
            to.extend(mark(payload.len()));
        }

        fn reals(self, values: &[f64]) -> Vec<u8> {
            let single = |value: &f64| self.number((*value as f32).to_ne_bytes()).to_vec();
            let double = |value: &f64| self.number(value.to_ne_bytes()).to_vec();
            values.iter().flat_map(|value| if self.is_single { single(value) } else { double(value) }).collect()
        }

        fn bytes(self) -> Vec<u8> {
            let mut header = vec![0; 256];
            let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
            put(4, &self.number(2u32.to_ne_bytes()));
            put(8, &self.number(1u32.to_ne_bytes()));
            put(32, &self.number(0.25f64.to_ne_bytes()));
            put(72, &self.number(0.02f64.to_ne_bytes()));
            put(124, &self.number(1u32.to_ne_bytes()));
            let mut file = Vec::new();
            self.record(&mut file, b"HEAD", &header);
            self.record(&mut file, b"POS ", &self.reals(&POSITIONS));
            if self.is_named {
                self.record(&mut file, b"POT ", &[1, 2, 3]);
            }
            self.record(&mut file, b"VEL ", &self.reals(&POSITIONS.map(|x| -x)));
            let wide = |id: &u32| self.number(u64::from(*id).to_ne_bytes()).to_vec();
            let id = |id: &u32| if self.is_single { self.number(id.to_ne_bytes()).to_vec() } else { wide(id) };
            self.record(&mut file, b"ID  ", &IDS.iter().flat_map(id).collect::<Vec<u8>>());
            self.record(&mut file, b"MASS", &self.reals(&[2.0]));
            file
        }
    }

    fn opened(bytes: &[u8]) -> Result<Records, IcError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Records::open(file.path())
    }

    #[test]
    fn blocks_come_back_in_any_arrangement() {
        for n in 0..8 {
            let [is_named, is_swapped, is_single] = [1, 2, 4].map(|bit| n & bit != 0);
            let bytes = Writer { is_named, is_swapped, is_single }.bytes();
            assert!(begins(&bytes[..8]));
            let records = opened(&bytes).unwrap();
            assert_eq!(records.numbers("Time"), Some(vec![0.02]));
            assert_eq!(records.numbers("NumPart_ThisFile"), Some(vec![0.0, 2.0, 1.0, 0.0, 0.0, 0.0]));
            assert_eq!((records.numbers("NumPart_Total"), records.numbers("OmegaBaryon")), (None, None));
            let reals = |quantity, kind, rows| records.reals(&records.block(quantity, kind).unwrap(), rows).unwrap();
            assert_eq!(reals(Quantity::Positions, 1, 0..2), POSITIONS[..6]);
            assert_eq!(reals(Quantity::Positions, 1, 1..2), POSITIONS[3..6]);
            assert_eq!(reals(Quantity::Velocities, 2, 0..1), [-7.0, -8.0, -9.5]);
            assert_eq!(reals(Quantity::Masses, 2, 0..1), [2.0]);
            let ids = records.block(Quantity::Ids, 1).unwrap();
            assert_eq!((records.integers(&ids, 0..2).unwrap(), ids.is_single), (vec![7, 8], is_single));
        }
    }

    #[test]
    fn damaged_files_say_where() {
        for is_named in [false, true] {
            let writer = Writer { is_named, is_swapped: true, is_single: true };
            let bytes = writer.bytes();
            let name = if is_named { 16 } else { 0 };
            let (positions, mut longer) = (name + 264 + name, bytes.clone());
            longer[positions..positions + 4].copy_from_slice(&writer.number(40u32.to_ne_bytes()));
            let mut torn = bytes.clone();
            torn[positions + 40] ^= 1;
            for (bytes, expected) in [
                (&bytes[..200], "truncated in the header: 200 bytes, expected at least"),
                (&bytes[..positions + 10], "truncated in block \"POS \""),
                (&bytes[..positions + 44], "block \"ID  \" is missing"),
                (&longer, "block \"POS \" has 40 bytes, expected 36 or 72"),
                (&torn, "begins with a mark of 36 bytes and ends with one of"),
                (&[1; 300], "does not begin with a record of 256 bytes"),
                (&[], "does not begin with a record of 256 bytes"),
            ] {
                let read = opened(bytes).and_then(|records| records.block(Quantity::Ids, 1).map(drop));
                let said = read.unwrap_err().to_string();
                assert!(said.contains(expected), "{said}; {expected}");
            }
        }
        assert!(!begins(b"\x08\0\0\0POS ") && !begins(&[0; 8]) && !begins(b"12"));
    }
}

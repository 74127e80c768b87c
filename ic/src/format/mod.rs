//! Files that hold an initial condition: the table of formats. [`par_ic`], [`nyx`], [`npy`] and [`vtkhdf`] are written only.

mod cell_values;
pub mod comove_ic;
pub mod enzo;
pub mod gadget;
mod generic;
pub mod grafic;
mod hdf5_input;
mod nested;
pub mod npy;
pub mod nyx;
pub mod par_ic;
mod plain_values;
mod reader;
mod request;
pub mod um_ic;
pub mod vtkhdf;

pub use reader::{Contents, Part};
pub use request::{LengthUnit, LoadFormat, LoadIc};

use crate::error::IcError;
use comove_sim::complete_file::Temporary;
use comove_sim::parallel::{Communicator, collective_result};
use comove_sim::shared_file::{SharedFile, failure};
use comove_sim::{Cosmology, SimError};
use hdf5_input::Hdf5Input;
use reader::Reader;
pub(crate) use reader::{ReadPart, Statements};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Formats that are recognised by content.
const RECOGNISED: [LoadFormat; 5] =
    [LoadFormat::ComoveIc, LoadFormat::Swift, LoadFormat::Gadget, LoadFormat::Monofonic, LoadFormat::Music];

/// The first bytes of an HDF5 file (HDF5 File Format Specification, *Superblock*).
const HDF5_SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";

impl LoadFormat {
    fn reader(self) -> Box<dyn Reader> {
        match self {
            Self::UmIc { order, precision } => Box::new(um_ic::UmIc { order, precision }),
            Self::ComoveIc => Box::new(comove_ic::ComoveIc),
            Self::Gadget | Self::Swift => Box::new(gadget::Gadget { format: self }),
            Self::Enzo => Box::new(enzo::Enzo),
            Self::Grafic => Box::new(grafic::Grafic),
            Self::Monofonic | Self::Music => Box::new(generic::Generic { format: self }),
        }
    }

    /// The format of a file, from its content; of a folder GRAFIC, or Enzo by its files.
    ///
    /// # Errors
    /// [`IcError::Io`], [`IcError::Hdf5`] for a file that cannot be read, [`IcError::Content`] for one of another format.
    pub fn of(path: &Path) -> Result<Self, IcError> {
        if path.is_dir() {
            return Ok(if enzo::is_here(path) { Self::Enzo } else { Self::Grafic });
        }
        let content = |reason: &str| IcError::Content { path: path.into(), reason: reason.into() };
        if !is_hdf5(path)? {
            if gadget::begins(&start(path)?) {
                return Ok(Self::Gadget);
            }
            return Err(content(
                "the file does not begin as HDF5 files do; expected comove_ic, Gadget or SWIFT HDF5, Gadget's format 1 or 2, a \
                 folder of GRAFIC or Enzo files, or for GAMER's UM_IC set format: #{ um_ic: #{ order: \"vzyx\" } }",
            ));
        }
        let file = Hdf5Input::open(path)?;
        RECOGNISED.into_iter().find(|format| format.reader().recognises(&file)).ok_or_else(|| {
            content(
                "an HDF5 file of no known format: expected attribute \"format\" = \"comove-ic\" (comove_ic), or group \
                 \"Header\" with attribute \"NumPart_ThisFile\" (Gadget, SWIFT), \"astart\" (generic of monofonIC), or \
                 \"header\" with \"levelmin\" (generic of MUSIC)",
            )
        })
    }
}

/// The first 8 bytes of a file, or all of a shorter one.
fn start(path: &Path) -> Result<Vec<u8>, IcError> {
    let mut start = Vec::new();
    let read = File::open(path).and_then(|file| file.take(8).read_to_end(&mut start));
    read.map_err(|source| IcError::Io { path: path.into(), source }).map(|_| start)
}

/// True for a file that begins as HDF5 files do.
fn is_hdf5(path: &Path) -> Result<bool, IcError> {
    Ok(start(path)? == HDF5_SIGNATURE)
}

impl Contents {
    /// Contents of a file of a format with header.
    ///
    /// # Errors
    /// As of [`LoadFormat::of`], and [`IcError::Content`] for an unusable header.
    pub fn of(path: &Path) -> Result<Self, IcError> {
        contents(LoadFormat::of(path)?, path)
    }
}

/// Species in a file of this format.
///
/// # Errors
/// [`IcError`] of the file.
pub(crate) fn contents(format: LoadFormat, path: &Path) -> Result<Contents, IcError> {
    format.reader().contents(path)
}

/// True if HDF5 decodes no values of an initial condition: its datasets are contiguous and unfiltered, and the reader of this format
/// reads them without HDF5.
///
/// # Errors
/// [`IcError::Io`], [`IcError::Hdf5`].
pub(crate) fn is_plain(format: LoadFormat, path: &Path) -> Result<bool, IcError> {
    let (reads_itself, has_other_files) = match format {
        LoadFormat::ComoveIc | LoadFormat::Swift => (true, false),
        LoadFormat::Gadget | LoadFormat::Grafic => (true, true),
        LoadFormat::UmIc { .. } | LoadFormat::Enzo | LoadFormat::Monofonic | LoadFormat::Music => (false, false),
    };
    if !reads_itself {
        return Ok(false);
    }
    for file in files(path) {
        let is_plain = if is_hdf5(&file)? { Hdf5Input::open(&file)?.is_plain() } else { has_other_files };
        if !is_plain {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Statements of a file of this format about itself.
///
/// # Errors
/// [`IcError`] of the file.
pub(crate) fn statements(format: LoadFormat, path: &Path) -> Result<Statements, IcError> {
    format.reader().statements(path)
}

/// Opens an initial condition of this format. Collective.
///
/// # Errors
/// [`IcError`] of the file, on all ranks.
pub(crate) fn open<'i>(
    format: LoadFormat,
    ic: &'i LoadIc,
    communicator: &Communicator,
) -> Result<ReadPart<'i>, IcError> {
    format.reader().open(ic, communicator)
}

/// The files of an initial condition: those that are read of a folder; else the one named, and if that is `name.0.hdf5` or
/// `name.0` those that follow it without a gap.
pub fn files(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        return if enzo::is_here(path) { enzo::files(path) } else { grafic::files(path) };
    }
    let following = (1..).map_while(|n| gadget::sibling(path, n).filter(|file| file.exists()));
    std::iter::once(path.to_path_buf()).chain(following).collect()
}

/// Writes a file under a temporary name beside `path`, makes it durable and gives it its name. A failed write leaves
/// what was there untouched and nothing else behind.
fn write_then_rename(path: &Path, write: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), IcError> {
    let written = || {
        let temporary = Temporary::beside(path)?;
        write(temporary.path())?;
        temporary.rename(path)
    };
    written().map_err(|source| IcError::Io { path: path.into(), source })
}

/// Writes an HDF5 file with large arrays under a temporary name, and gives it its name: collective. A failed write leaves what
/// was there untouched.
///
/// * `prepare`: writes everything but the arrays, and returns their places
/// * `fill`: writes this rank's part of the arrays
fn write_arrays(
    communicator: &Communicator,
    path: &Path,
    prepare: impl FnOnce(&hdf5::File) -> hdf5::Result<Vec<u64>>,
    fill: impl FnOnce(&SharedFile) -> Result<(), SimError>,
) -> Result<(), IcError> {
    let file = SharedFile::create(communicator, path, |file| prepare(file).map_err(|source| failure(path, source)))?;
    let filled = fill(&file);
    let renamed = file.close(communicator, filled)?.map(|temporary| temporary.rename(path));
    let renamed = renamed.transpose().map_err(|source| SimError::Io { path: path.into(), source });
    Ok(collective_result(communicator, renamed).map(drop)?)
}

/// Background, scale factor and box of a file that is written.
#[derive(Clone, Copy, Debug)]
pub struct FileHeader {
    /// The background.
    pub cosmology: Cosmology,
    /// Scale factor.
    pub a: f64,
    /// Length of the box along x in comoving Mpc/h.
    pub box_mpc_h: f64,
}

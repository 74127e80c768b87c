//! GAMER's `UM_IC`: raw numbers in native byte order, without header (docs/equations.md, *Initial conditions*).
//!
//! Five conserved fields, density, three momenta and *total* energy, in the code units we share with GAMER. The file is
//! as large as its cells make it, and that is all it can be checked by.

use super::hdf5_input::Hdf5Input;
use super::reader::{Contents, ReadPart, Reader, Statements};
use super::request::{LoadFormat, LoadIc};
use crate::error::IcError;
use crate::uniform_mesh::UniformMesh;
use comove_sim::Precision;
use comove_sim::parallel::Communicator;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

pub use super::request::Order;

/// Reader of the format.
pub(super) struct UmIc {
    pub order: Order,
    pub precision: Option<Precision>,
}

impl Reader for UmIc {
    fn recognises(&self, _file: &Hdf5Input) -> bool {
        false
    }

    fn contents(&self, _path: &Path) -> Result<Contents, IcError> {
        let format = LoadFormat::UmIc { order: self.order, precision: self.precision };
        Ok(Contents { format, gas: true, nested_cells: 0, particles: 0, off_lattice: false })
    }

    fn statements(&self, _path: &Path) -> Result<Statements, IcError> {
        Ok(Statements::default())
    }

    fn open<'i>(&self, ic: &'i LoadIc, _: &Communicator) -> Result<ReadPart<'i>, IcError> {
        let (order, precision) = (self.order, self.precision);
        Ok(Box::new(move |part| read(&ic.path, ic.cells, part.planes.clone(), order, precision)))
    }
}

/// Fields in a file: density, momentum along x, y, z, total energy.
const FIELDS: usize = 5;

/// Reads these planes along z of a mesh of `cells` along x, y, z. Without a precision it follows from the file's size.
/// The internal energy is the total less the kinetic one; [`UniformMesh::check`] tells where that is not positive.
///
/// # Errors
/// [`IcError::Io`] for a file that cannot be read, [`IcError::Size`] for one of another size.
pub fn read(
    path: &Path,
    cells: [usize; 3],
    planes: Range<usize>,
    order: Order,
    precision: Option<Precision>,
) -> Result<UniformMesh, IcError> {
    let failed = |source| IcError::Io { path: path.into(), source };
    let file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let precision = check_size(path, size, cells, precision)?;
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let plane = cells[0] * cells[1];
    let count = plane * planes.len();
    let mut fields: [Vec<f64>; FIELDS] = std::array::from_fn(|_| Vec::with_capacity(count));
    let start = |numbers: usize| SeekFrom::Start((numbers * bytes(precision)) as u64);
    match order {
        Order::Vzyx => {
            for (n, field) in fields.iter_mut().enumerate() {
                reader.seek(start((n * cells[2] + planes.start) * plane)).map_err(failed)?;
                for _ in planes.clone() {
                    field.extend(read_numbers(&mut reader, plane, precision).map_err(failed)?);
                }
            }
        }
        Order::Zyxv => {
            reader.seek(start(planes.start * plane * FIELDS)).map_err(failed)?;
            for _ in planes.clone() {
                let numbers = read_numbers(&mut reader, plane * FIELDS, precision).map_err(failed)?;
                for (n, value) in numbers.into_iter().enumerate() {
                    fields[n % FIELDS].push(value);
                }
            }
        }
    }
    let [density, x, y, z, energy] = fields;
    let mut mesh = UniformMesh {
        cells,
        planes,
        density,
        momentum: [x, y, z],
        internal_energy: energy,
        nests: Vec::new(),
        dark_matter: None,
    };
    for index in 0..count {
        mesh.internal_energy[index] -= mesh.kinetic_energy(index);
    }
    Ok(mesh)
}

/// Writes a mesh, which is here as a whole; the energy written is the total.
///
/// # Errors
/// [`IcError::Io`]; a file of that name, if any, is then untouched.
pub fn write(path: &Path, mesh: &UniformMesh, order: Order, precision: Precision) -> Result<(), IcError> {
    let value = |field: usize, index: usize| match field {
        0 => mesh.density[index],
        4 => mesh.internal_energy[index] + mesh.kinetic_energy(index),
        _ => mesh.momentum[field - 1][index],
    };
    super::write_then_rename(path, |temporary| {
        let mut writer = BufWriter::with_capacity(1 << 20, File::create(temporary)?);
        let count = mesh.cell_count();
        for n in 0..FIELDS * count {
            let number = match order {
                Order::Vzyx => value(n / count, n % count),
                Order::Zyxv => value(n % FIELDS, n / FIELDS),
            };
            match precision {
                Precision::Single => writer.write_all(&(number as f32).to_ne_bytes())?,
                Precision::Double => writer.write_all(&number.to_ne_bytes())?,
            }
        }
        writer.flush()
    })
}

fn bytes(precision: Precision) -> usize {
    match precision {
        Precision::Single => 4,
        Precision::Double => 8,
    }
}

fn read_numbers(reader: &mut impl Read, count: usize, precision: Precision) -> std::io::Result<Vec<f64>> {
    let mut raw = vec![0; count * bytes(precision)];
    reader.read_exact(&mut raw)?;
    Ok(match precision {
        Precision::Single => raw.as_chunks().0.iter().map(|b| f64::from(f32::from_ne_bytes(*b))).collect(),
        Precision::Double => raw.as_chunks().0.iter().map(|b| f64::from_ne_bytes(*b)).collect(),
    })
}

/// The precision that makes `cells` fill the file, or an error that says what would.
fn check_size(path: &Path, found: u64, cells: [usize; 3], precision: Option<Precision>) -> Result<Precision, IcError> {
    let size = |precision| cells.iter().map(|n| *n as u64).product::<u64>() * (FIELDS * bytes(precision)) as u64;
    let candidates = match precision {
        Some(precision) => vec![precision],
        None => vec![Precision::Single, Precision::Double],
    };
    if let Some(precision) = candidates.iter().find(|p| size(**p) == found) {
        return Ok(*precision);
    }
    let [nx, ny, nz] = cells;
    let mesh = format!("{nx} × {ny} × {nz} cells of {FIELDS} fields");
    let expected = match precision {
        Some(p) => format!("{} ({mesh} in {} precision)", size(p), name(p)),
        None => {
            format!("{} or {} ({mesh} in single or double precision)", size(Precision::Single), size(Precision::Double))
        }
    };
    Err(IcError::Size { path: path.into(), expected, found, remedy: remedy(found, cells, precision, size) })
}

fn name(precision: Precision) -> &'static str {
    match precision {
        Precision::Single => "single",
        Precision::Double => "double",
    }
}

/// What to change, judged from sizes that would fit.
fn remedy(found: u64, cells: [usize; 3], asked: Option<Precision>, size: impl Fn(Precision) -> u64) -> String {
    for precision in [Precision::Single, Precision::Double] {
        let fits = size(precision);
        if found == fits && asked.is_some() {
            return format!("the size matches {} precision; set that, or none", name(precision));
        }
        for levels in 1..10 {
            let factor = 1u64 << (3 * levels);
            let (more, other) = if found == fits * factor {
                ("higher", cells.map(|n| n << levels))
            } else if found > 0 && found * factor == fits {
                ("lower", cells.map(|n| n >> levels))
            } else {
                continue;
            };
            return format!(
                "the size matches {other:?} cells in {} precision; change cells, or the level by {levels} ({more})",
                name(precision)
            );
        }
    }
    if found < size(asked.unwrap_or(Precision::Double)) {
        return "the file is cut short, or cells or level are wrong; copy it again or correct them".into();
    }
    format!(
        "cells, level or precision are wrong, or the file has more than {FIELDS} fields; correct them, or write only \
         density, momenta and total energy"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mesh whose every number differs and is exact in single precision, energies included.
    fn mesh() -> UniformMesh {
        let cells = [4, 6, 2];
        let n = 48;
        let ramp = |from: f64, step: f64| (0..n).map(|i| from + step * f64::from(i)).collect::<Vec<f64>>();
        UniformMesh {
            cells,
            planes: 0..cells[2],
            density: (0..n).map(|i| f64::from(1u32 << (i % 4))).collect(),
            momentum: [ramp(1.0, 1.0), ramp(-3.0, 2.0), ramp(0.0, -1.0)],
            internal_energy: ramp(8.0, 4.0),
            nests: Vec::new(),
            dark_matter: None,
        }
    }

    #[test]
    fn both_orders_and_precisions_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("UM_IC");
        for order in [Order::Vzyx, Order::Zyxv] {
            for precision in [Precision::Single, Precision::Double] {
                write(&path, &mesh(), order, precision).unwrap();
                assert_eq!(read(&path, mesh().cells, 0..2, order, Some(precision)).unwrap(), mesh());
                assert_eq!(read(&path, mesh().cells, 0..2, order, None).unwrap(), mesh());
                let upper = read(&path, mesh().cells, 1..2, order, None).unwrap();
                assert!(upper.density == mesh().density[24..] && upper.internal_energy == mesh().internal_energy[24..]);
                assert!((0..3).all(|axis| upper.momentum[axis] == mesh().momentum[axis][24..]));
                assert_eq!(read(&path, mesh().cells, 2..2, order, None).unwrap().cell_count(), 0);
            }
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    }

    /// The bytes in the order of the format: x fastest, field slowest or fastest.
    #[test]
    fn bytes_lie_where_the_format_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("UM_IC");
        let m = mesh();
        let number = |raw: &[u8], n: usize| f64::from_ne_bytes(raw[8 * n..8 * n + 8].try_into().unwrap());
        let index = m.index([3, 1, 0]);
        write(&path, &m, Order::Vzyx, Precision::Double).unwrap();
        let raw = std::fs::read(&path).unwrap();
        assert_eq!(number(&raw, 2 * 48 + 4 + 3), m.momentum[1][index]);
        assert_eq!(number(&raw, 4 * 48 + 7), m.internal_energy[index] + m.kinetic_energy(index));
        write(&path, &m, Order::Zyxv, Precision::Double).unwrap();
        assert_eq!(number(&std::fs::read(&path).unwrap(), 7 * 5 + 2), m.momentum[1][index]);
    }

    #[test]
    fn wrong_sizes_say_what_to_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("UM_IC");
        write(&path, &mesh(), Order::Vzyx, Precision::Double).unwrap();
        let message = |cells: [usize; 3], precision| {
            read(&path, cells, 0..cells[2], Order::Vzyx, precision).unwrap_err().to_string()
        };
        let single = message([4, 6, 2], Some(Precision::Single));
        assert!(
            single.contains("1920 bytes, expected 960") && single.contains("double precision; set that"),
            "{single}"
        );
        let level = message([2, 3, 1], None);
        assert!(level.contains("[4, 6, 2] cells in double") && level.contains("by 1 (higher)"), "{level}");
        assert!(message([8, 12, 4], None).contains("by 1 (lower)"));
        assert!(message([16, 16, 16], None).contains("cut short"));
        assert!(message([4, 6, 3], None).contains("cut short"));
        assert!(message([1, 1, 7], None).contains("more than 5 fields"));
        std::fs::remove_file(&path).unwrap();
        assert!(message([4, 6, 2], None).contains("UM_IC"));
    }
}

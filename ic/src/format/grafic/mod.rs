//! Folders of GRAFIC files as RAMSES reads them (Bertschinger 2001, ApJS 137, 1): gas and dark matter on a mesh, or on
//! nested ones in folders `level_NNN`.
//!
//! | files | values, plane by plane along z |
//! |---|---|
//! | `ic_velcx`, `y`, `z` | peculiar velocity of dark matter in km/s: a particle for each cell that no finer mesh covers |
//! | `ic_poscx`, `y`, `z` | its displacement from the cell's centre in comoving Mpc/h; without them that of the growing mode (Zel'dovich) |
//! | `ic_velbx`, `y`, `z`, `ic_deltab` | peculiar velocity of gas in km/s, density contrast |
//! | `ic_massc` | masses of particles, which have to be equal |
//! | `ic_refmap` | of the finest mesh: refinement follows the particles of cells with at least 1, as in RAMSES |

pub mod write;

use super::hdf5_input::Hdf5Input;
use super::nested::{self, Plane, check_count, fill_with_gas};
use super::reader::{Contents, Part, ReadPart, Reader, SAME_LAMBDA, Statements};
use super::request::{LoadFormat, LoadIc};
use crate::error::IcError;
use crate::particle_set::ParticleSet;
use crate::span::Span;
use crate::uniform_mesh::{DarkMatter, UniformMesh};
use comove_sim::parallel::{Communicator, collective_result};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Reader of the format.
pub(super) struct Grafic;

/// Bytes of the header's record without its two lengths.
const HEADER_BYTES: u32 = 44;

/// Relative difference at which numbers of 32 bits contradict the recipe.
const SAME: f64 = 1e-5;

/// Most cells of a mesh along an axis.
const MOST_CELLS: i32 = 1 << 16;

const VELC: [&str; 3] = ["ic_velcx", "ic_velcy", "ic_velcz"];
const POSC: [&str; 3] = ["ic_poscx", "ic_poscy", "ic_poscz"];
const CONTRAST: &str = "ic_deltab";
const MASSC: &str = "ic_massc";
const REFMAP: &str = "ic_refmap";
const VELB: [&str; 3] = ["ic_velbx", "ic_velby", "ic_velbz"];

impl Reader for Grafic {
    fn recognises(&self, _file: &Hdf5Input) -> bool {
        false
    }

    fn contents(&self, path: &Path) -> Result<Contents, IcError> {
        let Meshes { nested, gas, dark_matter, .. } = Meshes::open(path)?;
        Ok(nested.contents(LoadFormat::Grafic, gas, dark_matter))
    }

    fn statements(&self, path: &Path) -> Result<Statements, IcError> {
        let Header { cells, dx, a, omega_m, omega_lambda, h0, .. } = Meshes::open(path)?.levels[0].header;
        Ok(Statements {
            a: Some(a),
            box_length: Some(cells[0] as f64 * dx),
            length_is_without_h: true,
            h: Some(h0 / 100.0),
            omega_m: Some(omega_m),
            omega_lambda: Some(omega_lambda),
            cells: Some(cells),
            ..Statements::default()
        })
    }

    fn open<'i>(&self, ic: &'i LoadIc, communicator: &Communicator) -> Result<ReadPart<'i>, IcError> {
        let opened = Meshes::open(&ic.path).and_then(|meshes| meshes.check(ic).map(|()| meshes));
        let meshes = collective_result(communicator, opened)?;
        Ok(Box::new(move |part| meshes.read(ic, part)))
    }
}

/// Folders of the meshes below a path, the coarsest first; none where there are no GRAFIC files.
fn folders(path: &Path) -> Vec<PathBuf> {
    let has_files = |folder: &Path| [VELC[0], VELB[0]].iter().any(|name| folder.join(name).is_file());
    if has_files(path) {
        return vec![path.into()];
    }
    let number = |entry: &Path| entry.file_name()?.to_str()?.strip_prefix("level_")?.parse::<u32>().ok();
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut numbered: Vec<_> = entries.filter(|e| has_files(e)).filter_map(|e| Some((number(&e)?, e))).collect();
    numbered.sort();
    numbered.into_iter().map(|(_, folder)| folder).collect()
}

/// The files that are read.
pub(super) fn files(path: &Path) -> Vec<PathBuf> {
    let names = || VELC.into_iter().chain(POSC).chain(VELB).chain([CONTRAST, MASSC, REFMAP]);
    let all = folders(path).into_iter().flat_map(|folder| names().map(move |name| folder.join(name)));
    all.filter(|file| file.is_file()).collect()
}

/// The first record of a file.
#[derive(Clone, Copy, Debug)]
struct Header {
    cells: [usize; 3],
    /// Width of a cell in comoving Mpc.
    dx: f64,
    /// Lower corner in comoving Mpc.
    offset: [f64; 3],
    a: f64,
    omega_m: f64,
    omega_lambda: f64,
    /// In km/s/Mpc.
    h0: f64,
}

/// An open file.
struct Planes {
    path: PathBuf,
    file: File,
    header: Header,
    is_swapped: bool,
}

fn content(path: &Path, reason: String) -> IcError {
    IcError::Content { path: path.into(), reason }
}

impl Planes {
    fn open(path: PathBuf) -> Result<Self, IcError> {
        let failed = |source| IcError::Io { path: path.clone(), source };
        let mut file = File::open(&path).map_err(failed)?;
        let size = file.metadata().map_err(failed)?.len();
        let header_size = u64::from(HEADER_BYTES) + 8;
        if size < header_size {
            return Err(content(
                &path,
                format!("{size} bytes, expected a header of {header_size}: copy the file again"),
            ));
        }
        let mut words = [[0; 4]; 13];
        file.read_exact(words.as_flattened_mut()).map_err(failed)?;
        let is_swapped = u32::from_ne_bytes(words[0]) == HEADER_BYTES.swap_bytes();
        if is_swapped {
            words.iter_mut().for_each(|word| word.reverse());
        }
        let length = u32::from_ne_bytes(words[0]);
        if length != HEADER_BYTES || words[12] != words[0] {
            let reason = format!(
                "the first record has {length} bytes, expected {HEADER_BYTES}: is it a GRAFIC file of Fortran records?"
            );
            return Err(content(&path, reason));
        }
        let counts = [1, 2, 3].map(|n| i32::from_ne_bytes(words[n]));
        let real = |n: usize| f64::from(f32::from_ne_bytes(words[n]));
        let header = Header {
            cells: counts.map(|n| n as usize),
            dx: real(4),
            offset: [5, 6, 7].map(real),
            a: real(8),
            omega_m: real(9),
            omega_lambda: real(10),
            h0: real(11),
        };
        let Header { dx, offset, .. } = header;
        if counts.iter().any(|n| !(1..=MOST_CELLS).contains(n)) || !(dx > 0.0 && offset.iter().all(|x| x.is_finite())) {
            let reason = format!(
                "the header has {counts:?} cells of {dx} Mpc from {offset:?}: expected counts up to {MOST_CELLS}"
            );
            return Err(content(&path, reason));
        }
        let planes = Self { path, file, header, is_swapped };
        let expected = header_size + header.cells[2] as u64 * planes.record();
        if size != expected {
            let reason = format!("{size} bytes, expected {expected} for {:?} cells: copy the file again", header.cells);
            return Err(content(&planes.path, reason));
        }
        Ok(planes)
    }

    /// Bytes of a plane with its two lengths.
    fn record(&self) -> u64 {
        4 * (self.header.cells[0] * self.header.cells[1]) as u64 + 8
    }

    /// Values of plane k, x fastest.
    fn read(&self, k: usize) -> Result<Vec<f64>, IcError> {
        let failed = |source| IcError::Io { path: self.path.clone(), source };
        let mut bytes = vec![0; self.record() as usize];
        let mut file = &self.file;
        file.seek(SeekFrom::Start(u64::from(HEADER_BYTES) + 8 + k as u64 * self.record())).map_err(failed)?;
        file.read_exact(&mut bytes).map_err(failed)?;
        let (words, _) = bytes.as_chunks::<4>();
        let number = |word: &[u8; 4]| {
            let bits = u32::from_ne_bytes(*word);
            if self.is_swapped { bits.swap_bytes() } else { bits }
        };
        let (length, expected) = (number(&words[0]), self.record() - 8);
        if u64::from(length) != expected {
            let reason = format!(
                "the record of plane {k} (from 0) has {length} bytes, expected {expected}: copy the file again"
            );
            return Err(content(&self.path, reason));
        }
        let values: Vec<f64> = words[1..words.len() - 1].iter().map(|w| f64::from(f32::from_bits(number(w)))).collect();
        match values.iter().position(|value| !value.is_finite()) {
            Some(n) => {
                let cell = [n % self.header.cells[0], n / self.header.cells[0], k];
                Err(content(&self.path, format!("cell {cell:?} (from 0) is {}: must be finite", values[n])))
            }
            None => Ok(values),
        }
    }
}

/// A mesh.
struct Level {
    folder: PathBuf,
    header: Header,
}

impl Level {
    fn open(&self, names: [&str; 3]) -> Result<[Planes; 3], IcError> {
        let [x, y, z] = names.map(|name| self.planes(name));
        Ok([x?, y?, z?])
    }

    /// A file on this mesh.
    fn planes(&self, name: &str) -> Result<Planes, IcError> {
        let planes = Planes::open(self.folder.join(name))?;
        let (found, expected) = (planes.header, self.header);
        if found.cells != expected.cells || found.dx != expected.dx || found.offset != expected.offset {
            let reason = format!(
                "the header has {:?} cells of {} Mpc from {:?}, other files of the folder {:?} of {} from {:?}: write all on one mesh",
                found.cells, found.dx, found.offset, expected.cells, expected.dx, expected.offset
            );
            return Err(content(&planes.path, reason));
        }
        Ok(planes)
    }

    /// Refuses particles of one mesh that differ in mass: monofonIC has what tells dark matter from gas there.
    fn check_masses(&self, ic: &LoadIc) -> Result<(), IcError> {
        if ic.trust.is_some() || !self.folder.join(MASSC).is_file() {
            return Ok(());
        }
        let file = self.planes(MASSC)?;
        // masses that differ do so everywhere
        let plane = file.read(self.header.cells[2] / 2)?;
        let (least, most) = plane.iter().fold((f64::INFINITY, 0.0), |(low, high), &m| (m.min(low), m.max(high)));
        if least > 0.0 && most <= least * (1.0 + SAME) {
            return Ok(());
        }
        let reason = format!(
            "masses of particles are {least} to {most}, expected equal ones: without their differences dark matter would have \
             the density contrast of all matter; make the universe with ic_gaussian and species_transfer, or set trust: \
             \"reason\""
        );
        Err(content(&file.path, reason))
    }

    /// Reads the planes of the gas that `mesh` has.
    ///
    /// * `region`: the cells of the file; those of `mesh` ascend, those of the file begin at the first one
    fn read_gas(
        &self,
        ic: &LoadIc,
        dark_matter: bool,
        region: [Span; 3],
        mesh: &mut UniformMesh,
    ) -> Result<(), IcError> {
        let [nx, ny, _] = mesh.cells;
        let all = |file: Planes| {
            let mut values = Vec::with_capacity(mesh.cell_count());
            for k in mesh.planes.clone() {
                let plane = file.read(region[2].steps_to(k))?;
                for j in 0..ny {
                    let row = nx * region[1].steps_to(j);
                    values.extend((0..nx).map(|i| plane[row + region[0].steps_to(i)]));
                }
            }
            Ok::<_, IcError>(values)
        };
        let [x, y, z] = self.open(VELB)?.map(all);
        let contrast = all(self.planes(CONTRAST)?)?;
        fill_with_gas(mesh, ic, dark_matter, contrast, [x?, y?, z?]);
        Ok(())
    }
}

/// All meshes, the coarsest first.
struct Meshes {
    levels: Vec<Level>,
    nested: nested::Meshes,
    gas: bool,
    dark_matter: bool,
}

impl Meshes {
    /// Reads the headers.
    fn open(path: &Path) -> Result<Self, IcError> {
        let folders = folders(path);
        let Some(base) = folders.first().cloned() else {
            return Err(content(
                path,
                "expected files \"ic_velcx\" or \"ic_velbx\", or folders \"level_NNN\" of such".into(),
            ));
        };
        let [gas, dark_matter] = [VELB[0], VELC[0]].map(|name| base.join(name).is_file());
        check_count(folders.len()).map_err(|reason| content(path, reason))?;
        let name = if dark_matter { VELC[0] } else { VELB[0] };
        let (mut levels, mut nested) = (Vec::new(), nested::Meshes::new([0, 1, 2], "Mpc"));
        for folder in folders {
            let Planes { header, path, .. } = Planes::open(folder.join(name))?;
            let pushed = nested.push(header.cells, header.dx, header.offset);
            pushed.map_err(|reason| content(&path, reason))?;
            levels.push(Level { folder, header });
        }
        Ok(Self { levels, nested, gas, dark_matter })
    }

    /// Compares the headers with the recipe.
    fn check(&self, ic: &LoadIc) -> Result<(), IcError> {
        let c = &ic.cosmology;
        let name = if self.dark_matter { VELC[0] } else { VELB[0] };
        self.levels.iter().try_for_each(|level| level.check_masses(ic))?;
        for Level { folder, header, .. } in &self.levels {
            for (what, found, expected, tolerance) in [
                ("astart", header.a, 1.0 / (1.0 + ic.z), SAME),
                ("omega_m", header.omega_m, c.omega_m, SAME),
                ("omega_v", header.omega_lambda, c.omega_lambda, SAME_LAMBDA),
                ("h0", header.h0, 100.0 * c.h, SAME),
            ] {
                if (found - expected).abs() > tolerance * expected.abs() {
                    let reason =
                        format!("the header has {what} = {found}, the recipe says {expected}: change one of them");
                    return Err(content(&folder.join(name), reason));
                }
            }
        }
        let Level { folder, header: Header { cells, dx, .. }, .. } = &self.levels[0];
        let (found, expected) = (cells[0] as f64 * dx * c.h, ic.box_mpc_h);
        if (found / expected - 1.0).abs() > SAME {
            let with_h = (found / expected / c.h - 1.0).abs() <= SAME;
            let why = if with_h { "dx looks like Mpc/h, write it in Mpc" } else { "change box_mpc_h or the file" };
            let reason = format!(
                "the header has {} cells of dx = {dx} Mpc, a box of {found} Mpc/h, the recipe says box_mpc_h = {expected}: {why}",
                cells[0]
            );
            return Err(content(&folder.join(name), reason));
        }
        self.nested.check_cells(ic, self.gas).map_err(|reason| content(&folder.join(name), reason))
    }

    fn read(&self, ic: &LoadIc, part: &Part) -> Result<UniformMesh, IcError> {
        let mut mesh = UniformMesh::without_values(ic.cells, part.planes.clone());
        if self.gas {
            let read = |n: usize, region, gas: &mut _| self.levels[n].read_gas(ic, self.dark_matter, region, gas);
            self.nested.read_gas(&mut mesh, read)?;
        }
        if self.dark_matter {
            mesh.dark_matter =
                Some(DarkMatter::Set(self.read_particles(ic, part.rows(self.nested.particles() as u64))?));
        }
        Ok(mesh)
    }

    /// Rows of the particles of all meshes, those of the coarsest first.
    fn read_particles(&self, ic: &LoadIc, rows: Range<usize>) -> Result<ParticleSet, IcError> {
        let (c, a) = (&ic.cosmology, 1.0 / (1.0 + ic.z));
        // code velocity of a displacement of 1 Mpc/h
        let rate = c.hubble_flow(a) * c.growth(a).1;
        let mut opened: Option<(usize, [Planes; 3], Option<[Planes; 3]>)> = None;
        let finest = self.levels.last().filter(|level| level.folder.join(REFMAP).is_file());
        let map = finest.map(|level| level.planes(REFMAP)).transpose()?;
        self.nested.read(rows, c.h, |n, k| {
            let (_, velocities, positions) = match opened.take() {
                Some(files) if files.0 == n => opened.insert(files),
                _ => {
                    let level = &self.levels[n];
                    let has_positions = level.folder.join(POSC[0]).is_file();
                    let positions = if has_positions { Some(level.open(POSC)?) } else { None };
                    opened.insert((n, level.open(VELC)?, positions))
                }
            };
            let read = |files: &[Planes; 3]| {
                let [x, y, z] = files.each_ref().map(|file| file.read(k));
                Ok::<_, IcError>([x?, y?, z?])
            };
            let velocity =
                read(velocities)?.map(|values| values.into_iter().map(|v| v * a / 100.0).collect::<Vec<f64>>());
            let displacement = match positions {
                Some(positions) => read(positions)?,
                None => velocity.each_ref().map(|values| values.iter().map(|v| v / rate).collect()),
            };
            let map = map.as_ref().filter(|_| n + 1 == self.levels.len());
            let followed = map.map(|map| map.read(k)).transpose()?;
            let followed = followed.map(|values| values.into_iter().map(|value| value >= 1.0).collect());
            Ok(Plane { displacement, velocity, followed })
        })
    }
}

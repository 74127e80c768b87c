//! Folders of GRAFIC files as RAMSES reads them (Bertschinger 2001, ApJS 137, 1): gas and dark matter on a mesh, or dark matter on
//! nested ones in folders `level_NNN`.
//!
//! | files | values, plane by plane along z |
//! |---|---|
//! | `ic_velcx`, `y`, `z` | peculiar velocity of dark matter in km/s: a particle for each cell that no finer mesh covers |
//! | `ic_poscx`, `y`, `z` | its displacement from the cell's centre in comoving Mpc/h; without them that of the growing mode (Zel'dovich) |
//! | `ic_velbx`, `y`, `z`, `ic_deltab` | peculiar velocity of gas in km/s, density contrast |

pub mod write;

use super::hdf5_input::Hdf5Input;
use super::reader::{Contents, Part, ReadPart, Reader, Statements};
use super::request::{LoadFormat, LoadIc};
use crate::error::IcError;
use crate::particle_set::ParticleSet;
use crate::temperature::{gas_temperature_k, specific_internal_energy};
use crate::uniform_mesh::{DarkMatter, UniformMesh};
use crate::zoom::is_within;
use comove_sim::HostParticles;
use comove_sim::kernels::point::particle::{CLASSES, id_of_class};
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

/// Relative difference at which Ω_Λ contradicts the recipe: some programs subtract the density of radiation from it.
const SAME_LAMBDA: f64 = 1e-3;

/// Most cells of a mesh along an axis.
const MOST_CELLS: i32 = 1 << 16;

const VELC: [&str; 3] = ["ic_velcx", "ic_velcy", "ic_velcz"];
const POSC: [&str; 3] = ["ic_poscx", "ic_poscy", "ic_poscz"];
const CONTRAST: &str = "ic_deltab";
const VELB: [&str; 3] = ["ic_velbx", "ic_velby", "ic_velbz"];

impl Reader for Grafic {
    fn recognises(&self, _file: &Hdf5Input) -> bool {
        false
    }

    fn contents(&self, path: &Path) -> Result<Contents, IcError> {
        let meshes = Meshes::open(path)?;
        let particles = if meshes.dark_matter { meshes.particles() as u64 } else { 0 };
        Ok(Contents { format: LoadFormat::Grafic, gas: meshes.gas, particles, off_lattice: meshes.dark_matter })
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
    let names = || VELC.into_iter().chain(POSC).chain(VELB).chain([CONTRAST]);
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
    /// First cell and number of cells along x, y, z that the next finer mesh covers.
    covered: [(usize, usize); 3],
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

    fn is_covered(&self, axis: usize, i: usize) -> bool {
        is_within(self.covered[axis], self.header.cells[axis], i)
    }

    /// Cells of plane k that no finer mesh covers.
    fn uncovered(&self, k: usize) -> usize {
        let [nx, ny, _] = self.header.cells;
        let [(_, x), (_, y), _] = self.covered;
        nx * ny - if self.is_covered(2, k) { x * y } else { 0 }
    }

    fn particles(&self) -> usize {
        self.header.cells.iter().product::<usize>() - self.covered.iter().map(|(_, count)| count).product::<usize>()
    }
}

/// All meshes, the coarsest first.
struct Meshes {
    levels: Vec<Level>,
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
        if folders.len() > 1 && (gas || !dark_matter) {
            let reason = "gas on nested meshes is not read: remove \"ic_velbx\", \"y\" and \"z\", so that dark matter has all of \
                          omega_m, or name the folder of one mesh";
            return Err(content(&base, reason.into()));
        }
        if folders.len() > CLASSES {
            let reason = format!(
                "{} nested meshes, expected at most {CLASSES}: leave out the coarsest or the finest",
                folders.len()
            );
            return Err(content(path, reason));
        }
        let name = if dark_matter { VELC[0] } else { VELB[0] };
        let mut levels: Vec<Level> = Vec::new();
        for folder in folders {
            let Planes { header, path, .. } = Planes::open(folder.join(name))?;
            // a mesh of the whole box has no border
            let is_periodic = levels.len() == 1;
            if let Some(coarser) = levels.last_mut() {
                let found = covered(&coarser.header, &header, is_periodic);
                coarser.covered = found.map_err(|reason| content(&path, reason))?;
            }
            levels.push(Level { folder, header, covered: [(0, 0); 3] });
        }
        Ok(Self { levels, gas, dark_matter })
    }

    fn particles(&self) -> usize {
        self.levels.iter().map(Level::particles).sum()
    }

    /// Compares the headers with the recipe.
    fn check(&self, ic: &LoadIc) -> Result<(), IcError> {
        let c = &ic.cosmology;
        let name = if self.dark_matter { VELC[0] } else { VELB[0] };
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
        let is_in_proportion = (0..3).all(|axis| cells[axis] * ic.cells[0] == cells[0] * ic.cells[axis]);
        if !is_in_proportion || self.gas && *cells != ic.cells {
            let reason =
                format!("the header has {cells:?} cells, the recipe says {:?}: change cells or root", ic.cells);
            return Err(content(&folder.join(name), reason));
        }
        Ok(())
    }

    fn read(&self, ic: &LoadIc, part: &Part) -> Result<UniformMesh, IcError> {
        let mut mesh = UniformMesh {
            cells: ic.cells,
            planes: part.planes.clone(),
            density: Vec::new(),
            momentum: Default::default(),
            internal_energy: Vec::new(),
            dark_matter: None,
        };
        if self.gas {
            self.read_gas(ic, &mut mesh)?;
        }
        if self.dark_matter {
            mesh.dark_matter = Some(DarkMatter::Set(self.read_particles(ic, part.rows(self.particles() as u64))?));
        }
        Ok(mesh)
    }

    /// Gas with the temperature of gas after decoupling: the files have none.
    fn read_gas(&self, ic: &LoadIc, mesh: &mut UniformMesh) -> Result<(), IcError> {
        let (level, c, a) = (&self.levels[0], &ic.cosmology, 1.0 / (1.0 + ic.z));
        let share = if self.dark_matter { c.omega_b / c.omega_m } else { 1.0 };
        let temperature_k = ic.temperature_k.unwrap_or_else(|| gas_temperature_k(c, ic.z));
        let specific = specific_internal_energy(c, a, temperature_k, ic.mean_molecular_weight, ic.gamma);
        let (contrast, velocities) = (level.planes(CONTRAST)?, level.open(VELB)?);
        for k in mesh.planes.clone() {
            let density: Vec<f64> = contrast.read(k)?.into_iter().map(|delta| share * (1.0 + delta)).collect();
            for (momentum, velocity) in mesh.momentum.iter_mut().zip(&velocities) {
                momentum.extend(velocity.read(k)?.iter().zip(&density).map(|(v, d)| v * a / 100.0 * d));
            }
            mesh.internal_energy.extend(density.iter().map(|d| specific * d));
            mesh.density.extend(density);
        }
        Ok(())
    }

    /// Rows of the particles of all meshes, those of the coarsest first.
    fn read_particles(&self, ic: &LoadIc, rows: Range<usize>) -> Result<ParticleSet, IcError> {
        let (c, a, h) = (&ic.cosmology, 1.0 / (1.0 + ic.z), ic.cosmology.h);
        // code velocity of a displacement of 1 Mpc/h
        let rate = c.hubble_flow(a) * c.growth(a).1;
        let Header { cells: base, dx: widest, offset: corner, .. } = self.levels[0].header;
        let lengths = base.map(|n| n as f64 * widest * h);
        let (mut set, mut end) = (ParticleSet::default(), 0);
        for (n, level) in self.levels.iter().enumerate() {
            let first = end;
            end += level.particles();
            if rows.end.min(end) <= rows.start.max(first) {
                continue;
            }
            let Header { cells: [nx, _, nz], dx, offset, .. } = level.header;
            let class = self.levels.len() - 1 - n;
            let velocities = level.open(VELC)?;
            let positions = if level.folder.join(POSC[0]).is_file() { Some(level.open(POSC)?) } else { None };
            let mut row = first;
            for k in 0..nz {
                let start = row;
                row += level.uncovered(k);
                if rows.end.min(row) <= rows.start.max(start) {
                    continue;
                }
                let read = |files: &[Planes; 3]| {
                    let [x, y, z] = files.each_ref().map(|file| file.read(k));
                    Ok::<_, IcError>([x?, y?, z?])
                };
                let velocity = read(&velocities)?;
                let displacement = positions.as_ref().map(read).transpose()?;
                let is_free =
                    |m: &usize| !(level.is_covered(2, k) && level.is_covered(1, m / nx) && level.is_covered(0, m % nx));
                let free = (0..velocity[0].len()).filter(is_free).zip(start..);
                for (m, row) in free.filter(|(_, row)| rows.contains(row)) {
                    for (axis, i) in [m % nx, m / nx, k].into_iter().enumerate() {
                        let v = velocity[axis][m] * a / 100.0;
                        let moved = displacement.as_ref().map_or(v / rate, |displacement| displacement[axis][m]);
                        let x = (offset[axis] - corner[axis] + (i as f64 + 0.5) * dx) * h + moved;
                        let fraction = HostParticles::fraction(x.rem_euclid(lengths[axis]), lengths[axis]);
                        set.position[axis].push(fraction.expect("in the box"));
                        set.velocity[axis].push(v as f32);
                    }
                    set.id.push(id_of_class(class, row as u64).expect("a number of a row and at most 8 meshes"));
                }
            }
        }
        Ok(set)
    }
}

/// First cell and number of cells along x, y, z of a mesh that the next finer one covers.
///
/// # Errors
/// The reason why it covers no whole cells.
fn covered(coarse: &Header, fine: &Header, is_periodic: bool) -> Result<[(usize, usize); 3], String> {
    if (2.0 * fine.dx / coarse.dx - 1.0).abs() > SAME {
        return Err(format!(
            "cells are {} Mpc wide, expected half of the {} of the next coarser mesh",
            fine.dx, coarse.dx
        ));
    }
    let mut all = [(0, 0); 3];
    for (axis, covered) in all.iter_mut().enumerate() {
        let (n, count) = (coarse.cells[axis] as f64, fine.cells[axis] / 2);
        let first = (fine.offset[axis] - coarse.offset[axis]) / coarse.dx;
        let name = ["x", "y", "z"][axis];
        if (first - first.round()).abs() > 0.01 || !fine.cells[axis].is_multiple_of(2) {
            return Err(format!(
                "{} cells along {name} begin at {} Mpc, {first:.4} cells of the next coarser mesh: expected an even number from a \
                 whole cell",
                fine.cells[axis], fine.offset[axis]
            ));
        }
        let first = first.round();
        let is_inside = first >= 0.0 && first + count as f64 <= n;
        if count as f64 > n || !(is_inside || is_periodic) {
            return Err(format!(
                "cells {first} to {} of the next coarser mesh along {name}, which has {n}: expected a mesh inside it",
                first + count as f64
            ));
        }
        *covered = (first.rem_euclid(n) as usize, count);
    }
    Ok(all)
}

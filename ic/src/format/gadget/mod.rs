//! Dark matter in HDF5 files of Gadget and of SWIFT.
//!
//! `/Header` states the particles of each type, and for Gadget epoch, box and cosmology; `PartType1` holds dark matter
//! (Springel 2005, *User guide for GADGET-2*, section 6.2; Springel et al. 2021, MNRAS 506, 2871; SWIFT documentation,
//! *Initial conditions*). Units:
//!
//! | | Gadget | SWIFT |
//! |---|---|---|
//! | lengths | `UnitLength_in_cm`/h, else Mpc/h unless `length_unit` says kpc/h; comoving | `/Units`, without h; comoving |
//! | masses | `UnitMass_in_g`/h, else 10¹⁰ M☉/h | `/Units`, without h |
//! | velocities | v_pec/√a in km/s | v_pec in `/Units` |

mod header;
mod units;

use super::hdf5_input::{Hdf5Input, Numbers, pieces};
use super::reader::{Contents, Part, Reader, Statements};
use super::request::{LoadFormat, LoadIc};
use crate::error::IcError;
use crate::particle_set::ParticleSet;
use crate::uniform_mesh::{DarkMatter, UniformMesh};
use comove_sim::HostParticles;
use header::{DARK, HEADER, Header, SWIFT_LENGTH};
use std::ops::Range;
use std::path::{Path, PathBuf};
use units::FileUnits;

/// Reader of either format.
pub(super) struct Gadget {
    pub format: LoadFormat,
}

/// By how much masses of particles may differ.
const SAME_MASS: f64 = 1e-6;

impl Reader for Gadget {
    fn recognises(&self, file: &Hdf5Input) -> bool {
        let has = |group: &str, name: &str| file.file.group(group).is_ok_and(|group| group.attr(name).is_ok());
        let is_swift = has("Units", SWIFT_LENGTH);
        has(HEADER, "NumPart_ThisFile") && is_swift == (self.format == LoadFormat::Swift)
    }

    fn contents(&self, path: &Path) -> Result<Contents, IcError> {
        let header = Header::read(&Hdf5Input::open(path)?)?;
        Ok(Contents { format: self.format, gas: false, particles: header.total[DARK], off_lattice: true })
    }

    fn statements(&self, path: &Path) -> Result<Statements, IcError> {
        header::statements(&Hdf5Input::open(path)?, self.format)
    }

    fn read(&self, ic: &LoadIc, part: &Part) -> Result<UniformMesh, IcError> {
        let files = Files::open(ic, self.format)?;
        let rows = part.rows(files.total);
        let mut set = ParticleSet::default();
        let mut first = 0;
        for (path, count) in &files.parts {
            let own = rows.start.clamp(first, first + count) - first..rows.end.clamp(first, first + count) - first;
            if !own.is_empty() {
                files.read_into(&mut set, path, *count, own)?;
            }
            first += count;
        }
        Ok(UniformMesh {
            cells: ic.cells,
            planes: part.planes.clone(),
            density: Vec::new(),
            momentum: Default::default(),
            internal_energy: Vec::new(),
            dark_matter: Some(DarkMatter::Set(set)),
        })
    }
}

/// File `n` of several, if `path` is the first: `name.n.hdf5` beside `name.0.hdf5`.
pub(super) fn sibling(path: &Path, n: usize) -> Option<PathBuf> {
    let extension = path.extension()?.to_str()?;
    let stem = path.file_stem()?.to_str()?.strip_suffix(".0")?;
    Some(path.with_file_name(format!("{stem}.{n}.{extension}")))
}

/// Checked headers of all files.
struct Files {
    /// Path and number of particles of each file.
    parts: Vec<(PathBuf, usize)>,
    total: u64,
    /// Length of the box in the unit of positions.
    box_size: f64,
    /// Name of that unit.
    length_unit: String,
    /// Code velocity of a velocity of 1 in the file.
    velocity: f64,
    /// Mass in `MassTable`, else of the first particle of `Masses`; unit of the file.
    mass: f64,
    in_table: bool,
}

impl Files {
    /// Checks the headers of all files against the recipe.
    fn open(ic: &LoadIc, format: LoadFormat) -> Result<Self, IcError> {
        let first = Hdf5Input::open(&ic.path)?;
        let header = Header::read(&first)?;
        let units = FileUnits::read(&first, ic, format)?;
        let mut parts = Vec::new();
        for n in 0..header.files {
            let path = match (n, sibling(&ic.path, n)) {
                (0, _) => ic.path.clone(),
                (_, Some(path)) => path,
                (_, None) => {
                    return Err(first.content(format!(
                        "attribute \"NumFilesPerSnapshot\" of /{HEADER} is {}: give the first of the files, name.0.hdf5",
                        header.files
                    )));
                }
            };
            if !path.exists() {
                let (all, path) = (header.files, path.display());
                let reason = format!(
                    "attribute \"NumFilesPerSnapshot\" of /{HEADER} is {all}, expected a file {path}: copy all files"
                );
                return Err(first.content(reason));
            }
            let input = if n == 0 { None } else { Some(Hdf5Input::open(&path)?) };
            let input = input.as_ref().unwrap_or(&first);
            header::check_statements(input, ic, format)?;
            units.check_box(input, ic)?;
            parts.push((path, Header::read(input)?.this_file[DARK] as usize));
        }
        let sum = parts.iter().fold(0u64, |sum, (_, count)| sum.saturating_add(*count as u64));
        let total = header.total[DARK];
        if sum != total {
            return Err(first.content(format!(
                "NumPart_ThisFile[1] of {} files sums to {sum}, expected NumPart_Total[1] = {total}",
                header.files
            )));
        }
        let mass = match header.table_mass {
            Some(mass) => mass,
            None => {
                let (path, count) = parts.iter().find(|(_, count)| *count > 0).expect("their sum is not 0");
                let input = Hdf5Input::open(path)?;
                let masses = input.dataset("PartType1/Masses", &[*count], Numbers::Floats)?;
                input.rows::<f64>(&masses, 0..1)?[0]
            }
        };
        let in_table = header.table_mass.is_some();
        units.check_density(&first, ic, (mass, in_table), total)?;
        let FileUnits { box_size, length_name: length_unit, velocity, .. } = units;
        Ok(Self { parts, total, box_size, length_unit, velocity, mass, in_table })
    }

    /// Appends rows of a file.
    fn read_into(&self, set: &mut ParticleSet, path: &Path, count: usize, rows: Range<usize>) -> Result<(), IcError> {
        let input = Hdf5Input::open(path)?;
        let [positions, velocities] = ["PartType1/Coordinates", "PartType1/Velocities"];
        let coordinates = input.dataset(positions, &[count, 3], Numbers::Floats)?;
        let speeds = input.dataset(velocities, &[count, 3], Numbers::Floats)?;
        let ids = input.dataset("PartType1/ParticleIDs", &[count], Numbers::Integers)?;
        let masses =
            if self.in_table { None } else { Some(input.dataset("PartType1/Masses", &[count], Numbers::Floats)?) };
        let digits = if coordinates.dtype().is_ok_and(|kind| kind.size() == 4) { f32::EPSILON.into() } else { 1e-12 };
        for rows in pieces(rows) {
            let start = rows.start;
            for (n, &x) in input.vectors(&coordinates, rows.clone())?.iter().enumerate() {
                let fraction = self.fraction(x, digits).ok_or_else(|| {
                    let (row, axis, Self { box_size, length_unit, .. }) = (start + n / 3, ["x", "y", "z"][n % 3], self);
                    input.content(format!(
                        "dataset \"{positions}\" has particle {row} (from 0) at {axis} = {x} {length_unit}: expected 0 to {box_size}; \
                         wrap positions into the box"
                    ))
                })?;
                set.position[n % 3].push(fraction);
            }
            for (n, &v) in input.vectors(&speeds, rows.clone())?.iter().enumerate() {
                let velocity = (v * self.velocity) as f32;
                if !velocity.is_finite() {
                    let row = start + n / 3;
                    let reason =
                        format!("dataset \"{velocities}\" has {v} for particle {row} (from 0): must be finite");
                    return Err(input.content(reason));
                }
                set.velocity[n % 3].push(velocity);
            }
            set.id.extend(input.rows::<u64>(&ids, rows.clone())?);
            if let Some(masses) = &masses {
                let found = input.rows::<f64>(masses, rows)?;
                // a mass that is no number differs as well
                let is_same = |m: f64| (m / self.mass - 1.0).abs() <= SAME_MASS;
                if let Some((n, m)) = found.iter().enumerate().find(|(_, m)| !is_same(**m)) {
                    return Err(input.content(format!(
                        "dataset \"PartType1/Masses\" has {m:e} for particle {} (from 0), expected {:e} as for the first: \
                         particles of several masses are not read yet",
                        start + n,
                        self.mass
                    )));
                }
            }
        }
        Ok(())
    }

    /// Position as a fraction of the box, in 2⁻³²; `None` outside by more than the rounding of its digits.
    fn fraction(&self, x: f64, digits: f64) -> Option<u32> {
        let margin = digits * self.box_size;
        let is_inside = (-margin..=self.box_size + margin).contains(&x);
        is_inside.then(|| HostParticles::fraction(x.clamp(0.0, self.box_size), self.box_size)).flatten()
    }
}

//! Dark matter in files of Gadget, HDF5 or binary, and of SWIFT; [`write`](mod@write) writes HDF5, gas too.
//!
//! The header states the particles of each type, and for Gadget epoch, box and cosmology; `PartType1` holds dark matter,
//! further types that of a zoom's coarser levels
//! (Springel 2005, *User guide for GADGET-2*, section 6.2; Springel et al. 2021, MNRAS 506, 2871; SWIFT documentation,
//! *Initial conditions*). Units:
//!
//! | | Gadget | SWIFT |
//! |---|---|---|
//! | lengths | `UnitLength_in_cm`/h, else Mpc/h unless `length_unit` says kpc/h; comoving | `/Units`, without h; comoving |
//! | masses | `UnitMass_in_g`/h, else 10¹⁰ M☉/h | `/Units`, without h |
//! | velocities | v_pec/√a in km/s | v_pec in `/Units` |

mod header;
mod input;
mod masses;
mod quantity;
mod records;
mod units;
pub mod write;

use super::hdf5_input::{Hdf5Input, convert, pieces};
use super::reader::{Contents, ReadPart, Reader, Statements};
use super::request::{LoadFormat, LoadIc};
use crate::error::IcError;
use crate::particle_set::ParticleSet;
use crate::uniform_mesh::{DarkMatter, UniformMesh};
use comove_sim::HostParticles;
use comove_sim::kernels::point::particle::id_of_class;
use comove_sim::parallel::{Communicator, collective_result};
use header::{Header, SWIFT_LENGTH};
use input::{HEADER, Input};
use masses::Masses;
use quantity::Quantity;
pub(super) use records::begins;
use std::ops::Range;
use std::path::{Path, PathBuf};
use units::FileUnits;

/// Reader of either format.
pub(super) struct Gadget {
    pub format: LoadFormat,
}

impl Reader for Gadget {
    fn recognises(&self, file: &Hdf5Input) -> bool {
        let has = |group: &str, name: &str| file.file.group(group).is_ok_and(|group| group.attr(name).is_ok());
        let is_swift = has("Units", SWIFT_LENGTH);
        has(HEADER, "NumPart_ThisFile") && is_swift == (self.format == LoadFormat::Swift)
    }

    fn contents(&self, path: &Path) -> Result<Contents, IcError> {
        let header = Header::read(&Input::open(path)?, self.format)?;
        Ok(Contents {
            format: self.format,
            gas: false,
            nested_cells: 0,
            particles: header.particles(),
            off_lattice: true,
        })
    }

    fn statements(&self, path: &Path) -> Result<Statements, IcError> {
        header::statements(&Input::open(path)?, self.format)
    }

    fn open<'i>(&self, ic: &'i LoadIc, communicator: &Communicator) -> Result<ReadPart<'i>, IcError> {
        let files = Files::open(ic, self.format, communicator)?;
        Ok(Box::new(move |part| {
            let mut set = ParticleSet::default();
            for (section, rows) in files.sections_of(part.rows(files.total)) {
                files.read_into(&mut set, section, rows)?;
            }
            let dark_matter = Some(DarkMatter::Set(set));
            Ok(UniformMesh { dark_matter, ..UniformMesh::without_values(ic.cells, part.planes.clone()) })
        }))
    }
}

/// File `n` of several, if `path` is the first: `name.n.hdf5` beside `name.0.hdf5`, `name.n` beside `name.0`.
pub(super) fn sibling(path: &Path, n: usize) -> Option<PathBuf> {
    let extension = path.extension()?.to_str()?;
    if extension == "0" {
        return Some(path.with_extension(n.to_string()));
    }
    let stem = path.file_stem()?.to_str()?.strip_suffix(".0")?;
    Some(path.with_file_name(format!("{stem}.{n}.{extension}")))
}

/// Particles of one type in one file.
struct Section {
    path: PathBuf,
    kind: usize,
    count: usize,
    /// Mass of each in `MassTable`; else they have an array.
    table_mass: Option<f64>,
}

/// Checked headers and masses of all files.
struct Files {
    /// In the order of rows.
    sections: Vec<Section>,
    total: u64,
    units: FileUnits,
    masses: Masses,
}

impl Files {
    /// Checks headers and masses of all files against the recipe. Collective: each rank reads a part of the masses.
    fn open(ic: &LoadIc, format: LoadFormat, communicator: &Communicator) -> Result<Self, IcError> {
        let mut files = collective_result(communicator, Self::headers(ic, format))?;
        let own = ParticleSet::rows(files.total, communicator.rank(), communicator.size());
        let mut counts = masses::Counts::default();
        let counted =
            files.sections_of(own).try_for_each(|(section, rows)| files.masses.count(&mut counts, section, rows));
        collective_result(communicator, counted)?;
        communicator.sum(&mut counts);
        collective_result(communicator, files.check_masses(ic, &counts))?;
        Ok(files)
    }

    /// Checks the headers of all files against the recipe.
    fn headers(ic: &LoadIc, format: LoadFormat) -> Result<Self, IcError> {
        let first = Input::open(&ic.path)?;
        let header = Header::read(&first, format)?;
        let units = FileUnits::read(&first, ic, format)?;
        let mut sections = Vec::new();
        let files = first.statement(HEADER, "NumFilesPerSnapshot");
        for n in 0..header.files {
            let path = match (n, sibling(&ic.path, n)) {
                (0, _) => ic.path.clone(),
                (_, Some(path)) => path,
                (_, None) => {
                    return Err(first.content(format!(
                        "{files} is {}: give the first of the files, name.0.hdf5 or name.0",
                        header.files
                    )));
                }
            };
            if !path.exists() {
                let (all, path) = (header.files, path.display());
                return Err(first.content(format!("{files} is {all}, expected a file {path}: copy all files")));
            }
            let input = if n == 0 { None } else { Some(Input::open(&path)?) };
            let input = input.as_ref().unwrap_or(&first);
            header::check_statements(input, ic, format)?;
            units.check_box(input, ic)?;
            let here = Header::read(input, format)?;
            let section = |kind: usize| Section {
                path: path.clone(),
                kind,
                count: here.this_file.get(kind).map_or(0, |count| *count as usize),
                table_mass: here.table_mass(kind),
            };
            sections.extend((0..header.total.len()).map(section).filter(|section| section.count > 0));
        }
        for (kind, &total) in header.total.iter().enumerate() {
            let counts = sections.iter().filter(|section| section.kind == kind).map(|section| section.count as u64);
            let sum = counts.fold(0, u64::saturating_add);
            if sum != total {
                return Err(first.content(format!(
                    "NumPart_ThisFile[{kind}] of {} files sums to {sum}, expected NumPart_Total[{kind}] = {total}",
                    header.files
                )));
            }
        }
        let masses = Masses::of_first(&sections)?;
        Ok(Self { sections, total: header.particles(), units, masses })
    }

    /// Finds the lightest mass, and compares the mass of all particles with that of all matter.
    ///
    /// * `counts`: of the particles of all ranks
    fn check_masses(&mut self, ic: &LoadIc, counts: &masses::Counts) -> Result<(), IcError> {
        let first = Input::open(&ic.path)?;
        self.masses.settle(counts).map_err(|why| first.content(why))?;
        let mean = self.masses.lightest() * (self.masses.total as f64 / self.total as f64);
        let mut kinds: Vec<usize> = self.sections.iter().map(|section| section.kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let of = match (kinds.as_slice(), self.sections[0].table_mass) {
            ([kind], Some(_)) => first.table_entry(*kind),
            ([kind], None) if self.masses.total == self.total => first.name(Quantity::Masses, *kind),
            _ => format!("mean mass of particles of PartType{kinds:?}"),
        };
        self.units.check_density(&first, ic, (mean, &of), self.total)
    }

    /// Sections that have these rows of all, and their own rows of those.
    fn sections_of(&self, rows: Range<usize>) -> impl Iterator<Item = (&Section, Range<usize>)> {
        let mut end = 0;
        self.sections.iter().filter_map(move |section| {
            let first = end;
            end += section.count;
            let own = rows.start.clamp(first, end) - first..rows.end.clamp(first, end) - first;
            (!own.is_empty()).then_some((section, own))
        })
    }

    /// Appends rows of a section.
    fn read_into(&self, set: &mut ParticleSet, section: &Section, rows: Range<usize>) -> Result<(), IcError> {
        let input = Input::open(&section.path)?;
        let column = |quantity| input.column(quantity, section.kind, section.count);
        let (positions, velocities) = (column(Quantity::Positions)?, column(Quantity::Velocities)?);
        let ids = column(Quantity::Ids)?;
        let classes = self.masses.classes(&input, section)?;
        set.reserve(rows.len());
        for rows in pieces(rows) {
            let start = rows.start;
            let values = positions.reals(rows.clone())?;
            let outside = |n: usize| {
                let FileUnits { box_size, length_name, .. } = &self.units;
                input.content(format!(
                    "{} has particle {} (from 0) at {} = {} {length_name}: expected 0 to {box_size}, or up to an eighth of \
                     that outside",
                    positions.name,
                    start + n / 3,
                    ["x", "y", "z"][n % 3],
                    values[n]
                ))
            };
            convert(&values, set.position.each_mut(), |&x| self.fraction(x)).map_err(outside)?;
            let values = velocities.reals(rows.clone())?;
            let infinite = |n: usize| {
                let (v, row) = (values[n], start + n / 3);
                input.content(format!("{} has {v} for particle {row} (from 0): must be finite", velocities.name))
            };
            let velocity = |v: &f64| Some((v * self.units.velocity) as f32).filter(|v| v.is_finite());
            convert(&values, set.velocity.each_mut(), velocity).map_err(infinite)?;
            let of_rows = self.masses.of_rows(&input, section, &classes, rows.clone())?;
            let rows: Vec<(u64, usize)> = ids.integers(rows)?.into_iter().zip(of_rows).collect();
            // the bits above are the class and a mark
            convert(&rows, [&mut set.id], |&(id, class)| id_of_class(class, id)).map_err(|n| {
                let (id, row) = (rows[n].0, start + n);
                input.content(format!(
                    "{} has {id} for particle {row} (from 0): must be below 2⁵⁹ = 576460752303423488; number particles anew",
                    ids.name
                ))
            })?;
        }
        Ok(())
    }

    /// Position as a fraction of the box, in 2⁻³²; `None` outside by more than an eighth of it.
    ///
    /// Programs write what displacements have moved out of the box as it is.
    fn fraction(&self, x: f64) -> Option<u32> {
        let box_size = self.units.box_size;
        let is_near = (-box_size / 8.0..=box_size * 1.125).contains(&x);
        is_near.then(|| HostParticles::fraction(x.rem_euclid(box_size), box_size)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn following_files_are_numbered() {
        let of = |name: &str| sibling(Path::new(name), 12);
        assert_eq!(of("a.b/ics.0.hdf5"), Some("a.b/ics.12.hdf5".into()));
        assert_eq!(of("a.b/ics.0"), Some("a.b/ics.12".into()));
        assert_eq!((of("ics"), of("ics.hdf5"), of("0"), of("ics.1")), (None, None, None, None));
    }
}

//! Our own initial-condition file: HDF5, datasets `[z, y, x]` in code units and attributes of the root group.
//!
//! Described in docs/snapshot-format.md.

use super::hdf5_input::{
    AT_A_TIME, Hdf5Input, Numbers, SAME, convert, described, is_number, number_of, numbers_of, pieces, text_of,
};
use super::reader::{Contents, Part, ReadPart, Reader, Statements};
use super::request::{LoadFormat, LoadIc};
use super::write_arrays;
use crate::error::IcError;
use crate::particle_set::ParticleSet;
use crate::span::Span;
use crate::uniform_mesh::{DarkMatter, Lattice, NestedGas, UniformMesh};
use comove_sim::kernels::point::particle::CLASSES;
use comove_sim::parallel::{Communicator, FIRST};
use comove_sim::shared_file::{SharedFile, allocate};
use comove_sim::{HostParticles, SimError, filters};
use hdf5::File;
use hdf5::types::VarLenUnicode;
use rayon::prelude::*;
use std::ops::Range;
use std::path::Path;

/// What a file states of itself, beside its fields.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Header {
    /// Scale factor.
    pub a: f64,
    /// Box length along x in comoving Mpc/h.
    pub box_mpc_h: f64,
    /// H0/(100 km/s/Mpc).
    pub h: f64,
    /// Matter today.
    pub omega_m: f64,
    /// Dark energy today.
    pub omega_lambda: f64,
    /// Baryons today.
    pub omega_b: f64,
    /// Mean molecular weight in hydrogen masses.
    pub mean_molecular_weight: f64,
    /// Ratio of specific heats.
    pub gamma: f64,
}

const FORMAT: &str = "comove-ic";
const DATASETS: [&str; 5] = ["density", "momentum_x", "momentum_y", "momentum_z", "internal_energy"];
/// Dark matter on a displaced lattice; the last three also of particles at given positions.
const LATTICE: [&str; 6] =
    ["displacement_x", "displacement_y", "displacement_z", "velocity_x", "velocity_y", "velocity_z"];
/// Positions of particles that are on no lattice.
const POSITIONS: [&str; 3] = ["position_x", "position_y", "position_z"];
/// Their identities.
const ID: &str = "id";

impl Header {
    /// Attribute names, values, and whether a file must have them.
    fn attributes(&self) -> [(&'static str, f64, bool); 8] {
        [
            ("a", self.a, true),
            ("box_mpc_h", self.box_mpc_h, true),
            ("h", self.h, true),
            ("omega_m", self.omega_m, true),
            ("omega_lambda", self.omega_lambda, false),
            ("omega_b", self.omega_b, false),
            ("mean_molecular_weight", self.mean_molecular_weight, false),
            ("gamma", self.gamma, false),
        ]
    }
}

/// Reader of the format.
pub(super) struct ComoveIc;

impl Reader for ComoveIc {
    fn recognises(&self, input: &Hdf5Input) -> bool {
        let attribute = input.file.attr("format");
        attribute.is_ok_and(|attribute| text_of(&attribute).is_some_and(|text| text == FORMAT))
    }

    fn contents(&self, path: &Path) -> Result<Contents, IcError> {
        Ok(Form::of(&Hdf5Input::open(path)?)?.contents)
    }

    fn statements(&self, path: &Path) -> Result<Statements, IcError> {
        let input = Hdf5Input::open(path)?;
        let one = |name: &str| Ok::<_, IcError>(input.numbers(&["/"], name)?.map(|(_, values)| values[0]));
        let on_mesh = [DATASETS[0], LATTICE[0]].into_iter().find_map(|name| input.file.dataset(name).ok());
        let cells = on_mesh.map(|dataset| dataset.shape()).and_then(|shape| <[usize; 3]>::try_from(shape).ok());
        Ok(Statements {
            a: one("a")?,
            box_length: one("box_mpc_h")?,
            length_is_without_h: false,
            h: one("h")?,
            omega_m: one("omega_m")?,
            omega_lambda: one("omega_lambda")?,
            omega_b: one("omega_b")?,
            mean_molecular_weight: one("mean_molecular_weight")?,
            gamma: one("gamma")?,
            cells: cells.map(|[z, y, x]| [x, y, z]),
        })
    }

    fn open<'i>(&self, ic: &'i LoadIc, _: &Communicator) -> Result<ReadPart<'i>, IcError> {
        Ok(Box::new(|part| read(&ic.path, ic.cells, part.clone(), &ic.header())))
    }
}

/// Datasets of a file.
struct Form {
    contents: Contents,
    /// Particles are a displaced lattice.
    on_lattice: bool,
    /// Cells of the box that nested gas fills, for each finer mesh.
    nests: Vec<[Span; 3]>,
}

/// Beginning of the names of datasets with gas on a part of the n-th finer mesh, from 1.
fn nest_prefix(n: usize) -> String {
    format!("nest_{n}_")
}

/// Attribute of the density there: the first cell along x, y, z, of those that would fill the box.
const FIRST_CELL: &str = "first_cell";

/// Cells of the box along an axis at most, at the resolution of nested gas.
const MOST_CELLS: usize = 1 << 24;

impl Form {
    fn of(input: &Hdf5Input) -> Result<Self, IcError> {
        let [on_lattice, off_lattice] = [LATTICE[0], POSITIONS[0]].map(|name| input.file.link_exists(name));
        if on_lattice && off_lattice {
            let reason = format!("datasets \"{}\" and \"{}\" exclude each other", LATTICE[0], POSITIONS[0]);
            return Err(input.content(reason));
        }
        let gas = !(on_lattice || off_lattice) || DATASETS.iter().any(|name| input.file.link_exists(name));
        let first = if on_lattice { LATTICE[0] } else { POSITIONS[0] };
        let size =
            || input.file.dataset(first).map(|dataset| dataset.size() as u64).map_err(|source| input.failed(source));
        let particles = if on_lattice || off_lattice { size()? } else { 0 };
        let nests = Self::nests(input)?;
        let nested_cells = Span::cells_of(&nests);
        let contents = Contents { format: LoadFormat::ComoveIc, gas, nested_cells, particles, off_lattice };
        Ok(Self { contents, on_lattice, nests })
    }

    fn nests(input: &Hdf5Input) -> Result<Vec<[Span; 3]>, IcError> {
        let mut nests: Vec<[Span; 3]> = Vec::new();
        let whole = |name: &str| {
            let shape = input.file.dataset(name).map(|dataset| dataset.shape()).unwrap_or_default();
            <[usize; 3]>::try_from(shape)
                .map_err(|_| input.content(format!("dataset \"{name}\" needs three axes (z, y, x)")))
        };
        let density = |nests: &[_]| format!("{}{}", nest_prefix(nests.len() + 1), DATASETS[0]);
        while input.file.link_exists(&density(&nests)) {
            let name = density(&nests);
            let [z, y, x] = whole(DATASETS[0])?.map(|n| n.saturating_mul(1 << (nests.len() + 1)));
            let [nz, ny, nx] = whole(&name)?;
            let refuse = |reason: &str| Err(input.content(format!("dataset \"{name}\": {reason}")));
            if nests.len() + 1 == CLASSES {
                return refuse("expected at most 7 nested meshes");
            }
            let attribute = input.file.dataset(&name).and_then(|dataset| dataset.attr(FIRST_CELL)).ok();
            let first = attribute.and_then(|attribute| numbers_of(&attribute).ok()).filter(|first| first.len() == 3);
            let is_cell = |x: &f64| (0.0..MOST_CELLS as f64).contains(x) && x.fract() == 0.0;
            let Some(first) = first.filter(|first| first.iter().all(is_cell)) else {
                return refuse("attribute \"first_cell\" is missing or no cell: expected the first cell along x, y, z");
            };
            let region = [0, 1, 2].map(|axis| {
                let (count, of) = ([nx, ny, nz][axis], [x, y, z][axis]);
                Span { first: first[axis] as usize, count, of }
            });
            let is_inside =
                |span: &Span| span.of <= MOST_CELLS && span.count > 0 && span.count <= span.of && span.first < span.of;
            let is_even = |span: &Span| span.first.is_multiple_of(2) && span.count.is_multiple_of(2);
            if !region.iter().all(|span| is_inside(span) && is_even(span)) {
                return refuse("expected an even number of cells from an even one on, inside the box");
            }
            let parents = region.map(Span::parents);
            if nests.last().is_some_and(|outer| (0..3).any(|axis| !outer[axis].covers(parents[axis]))) {
                return refuse("expected cells inside those of the next coarser mesh");
            }
            nests.push(region);
        }
        Ok(nests)
    }
}

/// Reads a part of a file that states what `recipe` says: planes along z of a mesh of `cells` along x, y, z.
///
/// # Errors
/// [`IcError::Io`] for a file that is not there, [`IcError::Hdf5`] for one that HDF5 refuses, [`IcError::Content`] for
/// one that lacks something or has other cells, [`IcError::Contradiction`] for one of another box, epoch or cosmology.
pub fn read(path: &Path, cells: [usize; 3], part: impl Into<Part>, recipe: &Header) -> Result<UniformMesh, IcError> {
    let part = part.into();
    let input = Hdf5Input::open(path)?;
    let content = |reason: String| input.content(reason);
    if !ComoveIc.recognises(&input) {
        return Err(content(format!("attribute \"format\" is missing or not the text \"{FORMAT}\"")));
    }
    check_attributes(path, &input.file, recipe)?;

    let Form { contents, on_lattice, nests } = Form::of(&input)?;
    let field = |name: &str, planes: &Range<usize>, cells: [usize; 3]| read_field(&input, name, planes, cells);
    let read_gas = |mesh: &mut UniformMesh, prefix: &str| {
        let one = |name: &str| field(&format!("{prefix}{name}"), &mesh.planes, mesh.cells);
        let [density, x, y, z, internal_energy] = DATASETS.map(one);
        (mesh.density, mesh.momentum, mesh.internal_energy) = (density?, [x?, y?, z?], internal_energy?);
        Ok::<_, IcError>(())
    };
    let mut mesh = UniformMesh::without_values(cells, part.planes.clone());
    if contents.gas {
        read_gas(&mut mesh, "")?;
    }
    for (n, region) in nests.into_iter().enumerate() {
        let planes = part.planes.start << (n + 1)..part.planes.end << (n + 1);
        let mut nest = NestedGas::without_values(region, &planes);
        read_gas(&mut nest.gas, &nest_prefix(n + 1))?;
        mesh.nests.push(nest);
    }
    mesh.dark_matter = if on_lattice {
        let [dx, dy, dz, vx, vy, vz] = LATTICE.map(|name| field(name, &part.planes, cells));
        Some(DarkMatter::Lattice(Lattice { displacement: [dx?, dy?, dz?], velocity: [vx?, vy?, vz?] }))
    } else if contents.off_lattice {
        let lengths = cells.map(|n| recipe.box_mpc_h * n as f64 / cells[0] as f64);
        Some(DarkMatter::Set(read_set(&input, contents.particles, &part, lengths)?))
    } else {
        None
    };
    Ok(mesh)
}

/// Reads planes of a field on a mesh of `cells`.
fn read_field(input: &Hdf5Input, name: &str, planes: &Range<usize>, cells: [usize; 3]) -> Result<Vec<f64>, IcError> {
    let content = |reason: String| input.content(reason);
    let dataset = input.file.dataset(name).map_err(|_| content(format!("dataset \"{name}\" is missing")))?;
    let (shape, [nx, ny, nz]) = (dataset.shape(), cells);
    if shape != [nz, ny, nx] {
        return Err(content(format!(
            "dataset \"{name}\" has shape {shape:?} (z, y, x), the recipe says {:?}: change cells or level",
            [nz, ny, nx]
        )));
    }
    if let Some(reason) = filters::unreadable(&dataset) {
        return Err(content(reason));
    }
    if let Some(found) = described(&dataset).filter(|found| !is_number(found)) {
        return Err(content(format!("dataset \"{name}\" holds {found}; expected floats of 32 or 64 bits")));
    }
    input.rows(&dataset, planes.clone())
}

/// Reads particles at given positions.
///
/// * `lengths`: of the box along x, y, z, Mpc/h
fn read_set(input: &Hdf5Input, total: u64, part: &Part, lengths: [f64; 3]) -> Result<ParticleSet, IcError> {
    let (shape, rows) = ([total as usize], part.rows(total));
    let refuse = |name: &str, row: usize, value: f64, reason: &str| {
        input.content(format!("dataset \"{name}\" has {value} for particle {row} (from 0): {reason}"))
    };
    let mut set = ParticleSet::default();
    set.reserve(rows.len());
    for axis in 0..3 {
        let (name, length) = (POSITIONS[axis], lengths[axis]);
        let dataset = input.dataset(name, &shape, Numbers::Floats)?;
        for piece in pieces(rows.clone()) {
            let values = input.rows::<f64>(&dataset, piece.clone())?;
            let outside = |n: usize| {
                refuse(name, piece.start + n, values[n], &format!("outside the box from 0 to {length} Mpc/h"))
            };
            convert(&values, [&mut set.position[axis]], |&x| HostParticles::fraction(x, length)).map_err(outside)?;
        }
        let name = LATTICE[3 + axis];
        let dataset = input.dataset(name, &shape, Numbers::Floats)?;
        for piece in pieces(rows.clone()) {
            let values = input.rows::<f64>(&dataset, piece.clone())?;
            let infinite = |n: usize| refuse(name, piece.start + n, values[n], "must be finite");
            convert(&values, [&mut set.velocity[axis]], |&v| Some(v as f32).filter(|v| v.is_finite()))
                .map_err(infinite)?;
        }
    }
    let dataset = input.dataset(ID, &shape, Numbers::Integers)?;
    pieces(rows).try_for_each(|piece| input.rows::<u64>(&dataset, piece).map(|ids| set.id.extend(ids)))?;
    Ok(set)
}

fn check_attributes(path: &Path, file: &File, recipe: &Header) -> Result<(), IcError> {
    for (name, expected, required) in recipe.attributes() {
        let wrong = |reason: String| IcError::Content { path: path.into(), reason };
        if !file.attr_names().map_err(|source| IcError::Hdf5 { path: path.into(), source })?.iter().any(|n| n == name) {
            match required {
                true => return Err(wrong(format!("attribute \"{name}\" is missing: expected a 64-bit float"))),
                false => continue,
            }
        }
        let found = file.attr(name).map_err(|_| None).and_then(|attribute| number_of(&attribute).map_err(Some));
        let found = found.map_err(|found| {
            let found = found.unwrap_or_else(|| "damaged".into());
            wrong(format!("attribute \"{name}\" is {found}: expected one number, a 64-bit float"))
        })?;
        if (found - expected).abs() <= SAME * expected.abs() {
            continue;
        }
        // People think of the epoch as a redshift.
        let shown = |value: f64| {
            if name == "a" { format!("{value} (z = {:.6})", 1.0 / value - 1.0) } else { value.to_string() }
        };
        let (file, recipe) = (shown(found), shown(expected));
        return Err(IcError::Contradiction { path: path.into(), name, file, recipe });
    }
    Ok(())
}

/// Writes a mesh in double precision, with particles at given positions in the precision of a run. Collective: every rank
/// writes its part to the file, which the first one creates.
///
/// # Errors
/// [`SimError::Io`] and [`SimError::Hdf5`], on all ranks; a file of that name, if any, is then untouched.
pub fn write(path: &Path, communicator: &Communicator, mesh: &UniformMesh, header: &Header) -> Result<(), IcError> {
    let has_gas = mesh.has_gas(communicator);
    let gas: &[&str] = if has_gas { &DATASETS } else { &[] };
    let lattice = mesh.lattice();
    let names: Vec<&str> = gas.iter().chain(lattice.iter().flat_map(|_| &LATTICE)).copied().collect();
    let set = match &mesh.dark_matter {
        Some(DarkMatter::Set(set)) => Some((set, set.total(communicator) as usize)),
        _ => None,
    };
    let prepare = |file: &File| {
        let mut places = preface(file, mesh.cells, header, &names)?;
        for (n, nest) in mesh.nests.iter().enumerate() {
            places.extend(allocate_nest(file, &nest_prefix(n + 1), nest.region)?);
        }
        if let Some((_, total)) = set {
            places.extend(allocate_set(file, total)?);
        }
        Ok(places)
    };
    let bytes_before = |mesh: &UniformMesh| mesh.planes.start * mesh.cells[0] * mesh.cells[1] * size_of::<f64>();
    let lattice = lattice.into_iter().flat_map(|lattice| lattice.displacement.iter().chain(&lattice.velocity));
    let of_mesh = mesh.fields().into_iter().take(gas.len()).chain(lattice);
    let of_nests = mesh.nests.iter().flat_map(|nest| nest.gas.fields().map(|values| (bytes_before(&nest.gas), values)));
    let mut fields = of_mesh.map(|values| (bytes_before(mesh), values)).chain(of_nests).enumerate();
    write_arrays(communicator, path, prepare, |file| {
        let mut put =
            fields.try_for_each(|(field, (before, values))| file.put(field, before, bytemuck::cast_slice(values)));
        if let Some((set, _)) = set {
            let lengths = mesh.cells.map(|n| header.box_mpc_h * n as f64 / mesh.cells[0] as f64);
            let first = rows_before(communicator, set.len());
            let array = names.len() + DATASETS.len() * mesh.nests.len();
            put = put.and_then(|()| put_set(file, array, first, set, lengths));
        }
        put
    })
}

/// Rows of the ranks before this one: collective.
fn rows_before(communicator: &Communicator, own: usize) -> usize {
    communicator.gather_all_of(&own)[FIRST..communicator.rank()].iter().sum()
}

/// Creates the datasets of gas on a part of a finer mesh, and returns their places.
fn allocate_nest(file: &File, prefix: &str, region: [Span; 3]) -> hdf5::Result<Vec<u64>> {
    let [nx, ny, nz] = region.map(|span| span.count);
    let names = DATASETS.map(|name| format!("{prefix}{name}"));
    let places =
        names.iter().map(|name| allocate::<f64>(file, name, &[nz, ny, nx])).collect::<hdf5::Result<Vec<u64>>>()?;
    let first = region.map(|span| span.first as u64);
    file.dataset(&names[0])?.new_attr::<u64>().shape([3]).create(FIRST_CELL)?.write(&first[..])?;
    Ok(places)
}

/// Creates the datasets of particles at given positions, and returns their places.
fn allocate_set(file: &File, total: usize) -> hdf5::Result<Vec<u64>> {
    let mut places = Vec::with_capacity(7);
    for name in POSITIONS {
        places.push(allocate::<f64>(file, name, &[total])?);
    }
    for name in &LATTICE[3..] {
        places.push(allocate::<f32>(file, name, &[total])?);
    }
    places.push(allocate::<u64>(file, ID, &[total])?);
    Ok(places)
}

/// Writes a rank's rows.
///
/// * `array`: number of the first of the datasets; `first`: the first row; `lengths`: of the box, Mpc/h
fn put_set(
    file: &SharedFile,
    array: usize,
    first: usize,
    set: &ParticleSet,
    lengths: [f64; 3],
) -> Result<(), SimError> {
    for axis in 0..3 {
        for (n, piece) in set.position[axis].chunks(AT_A_TIME).enumerate() {
            let unit = lengths[axis] / 2f64.powi(32);
            let x: Vec<f64> = piece.par_iter().map(|&x| f64::from(x) * unit).collect();
            file.put(array + axis, (first + n * AT_A_TIME) * size_of::<f64>(), bytemuck::cast_slice(&x))?;
        }
        let velocity = bytemuck::cast_slice(&set.velocity[axis]);
        file.put(array + 3 + axis, first * size_of::<f32>(), velocity)?;
    }
    file.put(array + 6, first * size_of::<u64>(), bytemuck::cast_slice(&set.id))
}

/// Writes the attributes, and returns the places of the fields.
fn preface(file: &File, [nx, ny, nz]: [usize; 3], header: &Header, names: &[&str]) -> hdf5::Result<Vec<u64>> {
    let format: VarLenUnicode = FORMAT.parse().expect("a string without zero bytes");
    file.new_attr::<VarLenUnicode>().create("format")?.write_scalar(&format)?;
    for (name, value, _) in header.attributes() {
        file.new_attr::<f64>().create(name)?.write_scalar(&value)?;
    }
    names.iter().map(|name| allocate::<f64>(file, name, &[nz, ny, nx])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::parallel::on_ranks;
    use ndarray::s;

    const HEADER: Header = Header {
        a: 0.02,
        box_mpc_h: 25.0,
        h: 0.7,
        omega_m: 0.3,
        omega_lambda: 0.7,
        omega_b: 0.045,
        mean_molecular_weight: 1.22,
        gamma: 5.0 / 3.0,
    };

    fn mesh() -> UniformMesh {
        let ramp = |from: f64| (0..24).map(|i| from + f64::from(i) / 3.0).collect::<Vec<f64>>();
        UniformMesh {
            cells: [4, 3, 2],
            planes: 0..2,
            density: ramp(1.0),
            momentum: [ramp(-5.0), ramp(0.1), ramp(7.0)],
            internal_energy: ramp(1e-3),
            nests: Vec::new(),
            dark_matter: None,
        }
    }

    #[test]
    fn a_file_comes_back_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ic.h5");
        write(&path, &Communicator::alone(), &mesh(), &HEADER).unwrap();
        assert_eq!(read(&path, mesh().cells, 0..2, &HEADER).unwrap(), mesh());
        let file = File::open(&path).unwrap();
        let density = file.dataset("density").unwrap().read::<f64, ndarray::Ix3>().unwrap();
        assert_eq!(density[[1, 2, 3]], mesh().density[23]);
        assert_eq!(density[[0, 2, 1]], mesh().density[9]);
    }

    /// Planes of a mesh with different numbers everywhere.
    fn slab(planes: Range<usize>) -> UniformMesh {
        let cells = [6, 2, 7];
        let ramp =
            |field: usize| planes.clone().flat_map(move |k| (0..12).map(move |i| (field * 1000 + k * 12 + i) as f64));
        UniformMesh {
            cells,
            planes: planes.clone(),
            density: ramp(0).collect(),
            momentum: [1, 2, 3].map(|field| ramp(field).collect()),
            internal_energy: ramp(4).collect(),
            nests: Vec::new(),
            dark_matter: None,
        }
    }

    /// By any number of ranks the same bytes, and each reads its own planes.
    #[test]
    fn slabs_make_the_file_of_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = |ranks: usize| folder.path().join(format!("{ranks}.h5"));
        write(&path(0), &Communicator::alone(), &slab(0..7), &HEADER).unwrap();
        for ranks in [1, 2, 3, 9] {
            on_ranks(ranks, |communicator| {
                let own = crate::slab::part(7, 1, communicator.rank(), ranks);
                write(&path(ranks), &communicator, &slab(own.clone()), &HEADER).unwrap();
                assert_eq!(read(&path(ranks), [6, 2, 7], own.clone(), &HEADER).unwrap(), slab(own));
            });
            assert!(std::fs::read(path(0)).unwrap() == std::fs::read(path(ranks)).unwrap(), "{ranks} ranks");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 5, "no temporary file stays");
    }

    /// What goes wrong on the first rank, which creates the file, all are told.
    #[test]
    fn all_ranks_know_that_a_file_cannot_be_written() {
        let path = Path::new("/nowhere/ic.h5");
        let ends = on_ranks(3, |communicator| {
            let own = crate::slab::part(7, 1, communicator.rank(), 3);
            write(path, &communicator, &slab(own), &HEADER).unwrap_err()
        });
        assert!(matches!(&ends[0], IcError::Sim(SimError::Io { .. })));
        assert!(ends[1..].iter().all(|end| end.to_string().starts_with("rank 0: /nowhere/ic.h5")), "{ends:?}");
        assert!(ends.iter().all(IcError::is_of_the_system));
    }

    #[test]
    fn contradictions_name_both_values() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ic.h5");
        write(&path, &Communicator::alone(), &mesh(), &HEADER).unwrap();
        let message = |header: Header| read(&path, [4, 3, 2], 0..2, &header).unwrap_err().to_string();
        let found = message(Header { box_mpc_h: 50.0, ..HEADER });
        assert!(found.contains("the file has box_mpc_h = 25, the recipe says 50"), "{found}");
        let found = message(Header { a: 0.01, ..HEADER });
        assert!(found.contains("0.02 (z = 49.000000)") && found.contains("0.01 (z = 99.000000)"), "{found}");
        assert!(message(Header { omega_m: 0.31, ..HEADER }).contains("omega_m"));
        assert!(message(Header { mean_molecular_weight: 0.6, ..HEADER }).contains("mean_molecular_weight"));
        let found = read(&path, [4, 3, 4], 0..4, &HEADER).unwrap_err().to_string();
        assert!(found.contains("[2, 3, 4] (z, y, x), the recipe says [4, 3, 4]"), "{found}");
    }

    #[test]
    fn other_files_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ic.h5");
        let message = |path: &Path| read(path, [4, 3, 2], 0..2, &HEADER).unwrap_err().to_string();
        assert!(message(&path).contains("ic.h5"));
        std::fs::write(&path, "not HDF5").unwrap();
        assert!(matches!(read(&path, [4, 3, 2], 0..2, &HEADER), Err(IcError::Hdf5 { .. })));
        File::create(&path).unwrap().close().unwrap();
        assert!(message(&path).contains("\"format\""));
        write(&path, &Communicator::alone(), &mesh(), &HEADER).unwrap();
        let file = File::open_rw(&path).unwrap();
        file.unlink("momentum_y").unwrap();
        file.close().unwrap();
        assert!(message(&path).contains("\"momentum_y\" is missing"));
        // a failed write leaves the old file alone
        let before = std::fs::read(&path).unwrap();
        std::fs::create_dir(folder.path().join(format!(".ic.h5.tmp-{}", std::process::id()))).unwrap();
        assert!(write(&path, &Communicator::alone(), &mesh(), &HEADER).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    /// Attributes of other types and shapes, of which optional ones were once taken as absent.
    #[test]
    fn attributes_are_compared_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ic.h5");
        let with = |name: &str, attribute: &dyn Fn(&File)| {
            write(&path, &Communicator::alone(), &mesh(), &HEADER).unwrap();
            let file = File::open_rw(&path).unwrap();
            file.delete_attr(name).unwrap();
            attribute(&file);
            file.close().unwrap();
            read(&path, [4, 3, 2], 0..2, &HEADER).map(drop).map_err(|error| error.to_string())
        };
        let list = |values: &'static [f64]| {
            move |file: &File| drop(file.new_attr_builder().with_data(values).create("gamma").unwrap())
        };
        let says = |found: Result<(), String>, parts: &[&str]| {
            let found = found.unwrap_err();
            assert!(parts.iter().all(|part| found.contains(part)), "{found}");
        };
        assert_eq!(with("gamma", &|_| ()), Ok(()));
        assert_eq!(with("gamma", &list(&[5.0 / 3.0])), Ok(()));
        says(with("gamma", &list(&[1.4])), &["the file has gamma = 1.4, the recipe says 1.66"]);
        says(with("gamma", &list(&[1.4, 1.4])), &["\"gamma\" is of type float64 and shape [2]", "expected one number"]);
        let text = |file: &File| {
            let value: VarLenUnicode = "5/3".parse().unwrap();
            file.new_attr::<VarLenUnicode>().create("gamma").unwrap().write_scalar(&value).unwrap();
        };
        says(with("gamma", &text), &["\"gamma\" is of type", "expected one number"]);
        let whole = |value: i64| {
            move |file: &File| file.new_attr::<i64>().create("gamma").unwrap().write_scalar(&value).unwrap()
        };
        says(with("gamma", &whole(2)), &["the file has gamma = 2, the recipe says"]);
        let single =
            |file: &File| file.new_attr::<f32>().create("gamma").unwrap().write_scalar(&(5.0f32 / 3.0)).unwrap();
        assert_eq!(with("gamma", &single), Ok(()));
        says(with("a", &|_| ()), &["attribute \"a\" is missing"]);
    }

    /// Particles at given positions, written by three ranks and read by two, with what is refused of them.
    #[test]
    fn sets_of_particles_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ic.h5");
        let total = 3000;
        let set = |rows: Range<usize>| ParticleSet {
            position: [1, 2, 3].map(|axis| rows.clone().map(|n| (n as u32).wrapping_mul(axis * 1_234_567)).collect()),
            velocity: [0.5, 0.25, -1.0].map(|v| rows.clone().map(|n| v * n as f32).collect()),
            id: rows.map(|n| (n as u64) << 33).collect(),
        };
        let with = |set: ParticleSet| UniformMesh {
            density: Vec::new(),
            momentum: Default::default(),
            internal_energy: Vec::new(),
            planes: 0..0,
            dark_matter: Some(DarkMatter::Set(set)),
            ..mesh()
        };
        on_ranks(3, |communicator| {
            let rows = ParticleSet::rows(total, communicator.rank(), 3);
            write(&path, &communicator, &with(set(rows)), &HEADER).unwrap();
        });
        for rank in 0..2 {
            let found = read(&path, mesh().cells, Part::of_planes(0..0, rank, 2), &HEADER).unwrap();
            assert_eq!(found, with(set(ParticleSet::rows(total, rank, 2))));
        }
        let input = Hdf5Input::open(&path).unwrap();
        let contents =
            Contents { format: LoadFormat::ComoveIc, gas: false, nested_cells: 0, particles: total, off_lattice: true };
        assert_eq!(Form::of(&input).unwrap().contents, contents);
        drop(input);
        let file = File::open_rw(&path).unwrap();
        file.dataset("position_y").unwrap().write_slice(&[25.0 * 0.75 + 0.1], s![77..78]).unwrap();
        file.close().unwrap();
        let outside = read(&path, mesh().cells, 0..0, &HEADER).unwrap_err().to_string();
        assert!(
            outside.contains("\"position_y\" has 18.85 for particle 77 (from 0): outside the box from 0 to 18.75"),
            "{outside}"
        );
    }

    /// Files of gzip are read.
    #[test]
    fn compressed_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ic.h5");
        let compressed = |filter: &dyn Fn(hdf5::DatasetBuilderEmptyShape) -> hdf5::DatasetBuilderEmptyShape| {
            write(&path, &Communicator::alone(), &mesh(), &HEADER).unwrap();
            let file = File::open_rw(&path).unwrap();
            file.unlink("density").unwrap();
            let dataset =
                filter(file.new_dataset::<f64>().chunk((1, 3, 4)).shape((2, 3, 4))).create("density").unwrap();
            let _ = dataset.write_raw(&mesh().density);
            drop(dataset);
            file.close().unwrap();
            read(&path, mesh().cells, 0..2, &HEADER).map_err(|error| error.to_string())
        };
        assert_eq!(compressed(&|builder| builder.shuffle().deflate(4)), Ok(mesh()));
    }
}

//! Our own initial-condition file: HDF5, datasets `[z, y, x]` in code units and attributes of the root group.
//!
//! Described in docs/snapshot-format.md.

use crate::error::IcError;
use crate::uniform_mesh::{Lattice, UniformMesh};
use comove_sim::SimError;
use comove_sim::filters;
use comove_sim::parallel::Communicator;
use comove_sim::parallel::collective_result;
use comove_sim::shared_file::{SharedFile, allocate, failure};
use hdf5::types::{FixedAscii, FixedUnicode, TypeDescriptor, VarLenAscii, VarLenUnicode};
use hdf5::{Container, File};
use ndarray::{Ix3, s};
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
/// Of dark matter, where there is some.
const LATTICE: [&str; 6] =
    ["displacement_x", "displacement_y", "displacement_z", "velocity_x", "velocity_y", "velocity_z"];
/// Relative difference at which two statements of a number contradict each other: what six printed digits allow.
const SAME: f64 = 1e-6;

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

/// Whether a file has gas, and whether it has dark matter.
///
/// # Errors
/// [`IcError::Hdf5`] for a file that HDF5 refuses.
pub fn species(path: &Path) -> Result<[bool; 2], IcError> {
    let file = File::open(path).map_err(|source| IcError::Hdf5 { path: path.into(), source })?;
    Ok(species_in(&file))
}

fn species_in(file: &File) -> [bool; 2] {
    let has_dark_matter = file.link_exists(LATTICE[0]);
    [!has_dark_matter || DATASETS.iter().any(|name| file.link_exists(name)), has_dark_matter]
}

/// Reads these planes along z of a mesh of `cells` along x, y, z that states what `recipe` says.
///
/// # Errors
/// [`IcError::Io`] for a file that is not there, [`IcError::Hdf5`] for one that HDF5 refuses, [`IcError::Content`] for
/// one that lacks something or has other cells, [`IcError::Contradiction`] for one of another box, epoch or cosmology.
pub fn read(path: &Path, cells: [usize; 3], planes: Range<usize>, recipe: &Header) -> Result<UniformMesh, IcError> {
    std::fs::metadata(path).map_err(|source| IcError::Io { path: path.into(), source })?;
    let failed = |source| IcError::Hdf5 { path: path.into(), source };
    let content = |reason: String| IcError::Content { path: path.into(), reason };
    let file = File::open(path).map_err(failed)?;
    if !file.attr("format").is_ok_and(|attribute| text_of(&attribute).is_some_and(|text| text == FORMAT)) {
        return Err(content(format!("attribute \"format\" is missing or not the text \"{FORMAT}\"")));
    }
    check_attributes(path, &file, recipe)?;

    let [nx, ny, nz] = cells;
    let [has_gas, has_dark_matter] = species_in(&file);
    let lattice: &[&str] = if has_dark_matter { &LATTICE } else { &[] };
    let gas: &[&str] = if has_gas { &DATASETS } else { &[] };
    let mut fields = Vec::with_capacity(gas.len() + lattice.len());
    for name in gas.iter().chain(lattice) {
        let dataset = file.dataset(name).map_err(|_| content(format!("dataset \"{name}\" is missing")))?;
        let shape = dataset.shape();
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
        let values = dataset.read_slice::<f64, _, Ix3>(s![planes.clone(), .., ..]).map_err(failed)?;
        fields.push(values.into_raw_vec_and_offset().0);
    }
    let mut fields = fields.into_iter();
    let mut next = || fields.next().expect("as many as names");
    let (density, momentum, internal_energy) = match has_gas {
        true => (next(), [(); 3].map(|()| next()), next()),
        false => Default::default(),
    };
    let lattice = (!lattice.is_empty())
        .then(|| Lattice { displacement: [(); 3].map(|()| next()), velocity: [(); 3].map(|()| next()) });
    Ok(UniformMesh { cells, planes, density, momentum, internal_energy, lattice })
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

/// The type of stored values; `None` for one that HDF5 knows and we do not.
fn described(container: &Container) -> Option<TypeDescriptor> {
    container.dtype().and_then(|dtype| dtype.to_descriptor()).ok()
}

fn is_number(found: &TypeDescriptor) -> bool {
    matches!(found, TypeDescriptor::Float(_) | TypeDescriptor::Integer(_) | TypeDescriptor::Unsigned(_))
}

/// A number, as a scalar or as a list of one.
///
/// # Errors
/// The type and shape of what is no number.
fn number_of(attribute: &Container) -> Result<f64, String> {
    let (found, shape) = (described(attribute), attribute.shape());
    let kind = found.as_ref().map_or_else(|| "of an unknown type".into(), |found| format!("of type {found}"));
    let described = if shape.is_empty() { kind } else { format!("{kind} and shape {shape:?}") };
    if attribute.size() != 1 || !found.is_some_and(|found| is_number(&found)) {
        return Err(described);
    }
    attribute.read_raw::<f64>().ok().and_then(|values| values.first().copied()).ok_or(described)
}

/// A text of variable or fixed length.
fn text_of(attribute: &Container) -> Option<String> {
    match described(attribute)? {
        TypeDescriptor::VarLenUnicode => attribute.read_scalar::<VarLenUnicode>().ok().map(|text| text.to_string()),
        TypeDescriptor::VarLenAscii => attribute.read_scalar::<VarLenAscii>().ok().map(|text| text.to_string()),
        TypeDescriptor::FixedAscii(_) => attribute.read_scalar::<FixedAscii<64>>().ok().map(|text| text.to_string()),
        TypeDescriptor::FixedUnicode(_) => {
            attribute.read_scalar::<FixedUnicode<64>>().ok().map(|text| text.to_string())
        }
        _ => None,
    }
}

/// Writes a mesh in double precision. Collective: every rank writes its planes to the file, which the first one creates.
///
/// # Errors
/// [`SimError::Io`] and [`SimError::Hdf5`], on all ranks; a file of that name, if any, is then untouched.
pub fn write(path: &Path, communicator: &Communicator, mesh: &UniformMesh, header: &Header) -> Result<(), IcError> {
    let lattice = mesh.lattice.as_ref();
    let has_gas = mesh.has_gas(communicator);
    let gas: &[&str] = if has_gas { &DATASETS } else { &[] };
    let names: Vec<&str> = gas.iter().chain(lattice.iter().flat_map(|_| &LATTICE)).copied().collect();
    let prepare = |file: &File| preface(file, mesh.cells, header, &names).map_err(|source| failure(path, source));
    let file = SharedFile::create(communicator, path, prepare)?;
    let before = mesh.planes.start * mesh.cells[0] * mesh.cells[1] * size_of::<f64>();
    let lattice = lattice.into_iter().flat_map(|lattice| lattice.displacement.iter().chain(&lattice.velocity));
    let of_gas = mesh.fields().into_iter().take(gas.len());
    let mut fields = of_gas.chain(lattice).enumerate();
    let put = fields.try_for_each(|(field, values)| file.put(field, before, bytemuck::cast_slice(values)));
    let renamed = file.close(communicator, put)?.map(|temporary| temporary.rename(path));
    let renamed = renamed.transpose().map_err(|source| SimError::Io { path: path.into(), source });
    Ok(collective_result(communicator, renamed).map(drop)?)
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
            lattice: None,
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
            lattice: None,
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

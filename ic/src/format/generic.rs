//! HDF5 files that monofonIC and MUSIC (Hahn & Abel 2011, MNRAS 415, 2101; Michaux et al. 2021, MNRAS 500, 663) write as format
//! `generic`: dark matter and gas on a mesh, of MUSIC also on nested ones.
//!
//! | | monofonIC | MUSIC |
//! |---|---|---|
//! | header | `/Header`: box, epoch, densities | `/header`: levels, offsets in cells of the next coarser level, numbers of cells |
//! | displacements, velocities of dark matter | `DM_dx`, `DM_vx`, … | `level_NNN_DM_dx`, `level_NNN_DM_vx`, … |
//! | density contrast, velocity of gas | `BA_delta`, `BA_vx`, … | `level_NNN_BA_rho`, `level_NNN_BA_vx`, … |
//! | boundary cells on each side | 0 | 4 |
//!
//! Indices are [x][y][z], lengths in box lengths, velocities v_pec in km/s divided by the box length in Mpc/h. monofonIC's fields
//! are Lagrangian where displacements are among them, and Eulerian otherwise.

use super::hdf5_input::{Hdf5Input, Numbers, SAME};
use super::nested::{LARGEST_DISPLACEMENT, LARGEST_VALUE, Meshes, Plane, check_count, fill_with_gas};
use super::reader::{Contents, Part, ReadPart, Reader, SAME_LAMBDA, Statements};
use super::request::{LoadFormat, LoadIc};
use crate::error::IcError;
use crate::span::Span;
use crate::uniform_mesh::{DarkMatter, UniformMesh};
use comove_sim::parallel::{Communicator, collective_result};
use hdf5::Dataset;
use ndarray::{Ix3, s};
use std::ops::Range;
use std::path::Path;

/// Reader of either program's files.
pub(super) struct Generic {
    pub format: LoadFormat,
}

/// Group of monofonIC's header.
const MONOFONIC: &str = "Header";
/// Group of MUSIC's header.
const MUSIC: &str = "header";

/// Boundary cells in MUSIC's files on each side.
const BORDER: usize = 4;

/// Levels that MUSIC may have.
const LEVELS: std::ops::RangeInclusive<f64> = 0.0..=16.0;

const AXES: [&str; 3] = ["x", "y", "z"];

impl Reader for Generic {
    fn recognises(&self, file: &Hdf5Input) -> bool {
        let has = |group: &str, name: &str| file.file.group(group).is_ok_and(|group| group.attr(name).is_ok());
        match self.format {
            LoadFormat::Music => has(MUSIC, "levelmin"),
            _ => has(MONOFONIC, "Boxsize") && has(MONOFONIC, "astart"),
        }
    }

    fn contents(&self, path: &Path) -> Result<Contents, IcError> {
        let Fields { meshes, gas, dark_matter, .. } = Fields::open(path, self.format)?;
        Ok(meshes.contents(self.format, gas, dark_matter))
    }

    fn statements(&self, path: &Path) -> Result<Statements, IcError> {
        let Fields { input, meshes, .. } = Fields::open(path, self.format)?;
        let one = |name: &str| Ok::<_, IcError>(input.numbers(&[MONOFONIC], name)?.map(|(_, values)| values[0]));
        Ok(Statements {
            a: one("astart")?,
            box_length: one("Boxsize")?,
            omega_m: one("Omega_m")?,
            omega_lambda: one("Omega_L")?,
            omega_b: one("Omega_b")?,
            cells: Some(meshes.base().cells),
            ..Statements::default()
        })
    }

    fn open<'i>(&self, ic: &'i LoadIc, communicator: &Communicator) -> Result<ReadPart<'i>, IcError> {
        let opened = Fields::open(&ic.path, self.format).and_then(|fields| fields.check(ic).map(|()| fields));
        let fields = collective_result(communicator, opened)?;
        Ok(Box::new(move |part| fields.read(ic, part)))
    }
}

/// An open file.
struct Fields {
    input: Hdf5Input,
    format: LoadFormat,
    meshes: Meshes,
    /// Beginnings of the names of datasets, of each mesh.
    prefixes: Vec<String>,
    gas: bool,
    dark_matter: bool,
}

impl Fields {
    /// Reads the header, and checks that all fields are there.
    fn open(path: &Path, format: LoadFormat) -> Result<Self, IcError> {
        let input = Hdf5Input::open(path)?;
        let names = input.file.member_names().map_err(|source| input.failed(source))?;
        let is_music = format == LoadFormat::Music;
        let (meshes, prefixes) =
            if is_music { levels(&input)? } else { (one_mesh(&input, &names)?, vec![String::new()]) };
        let has = |species: &str| names.iter().any(|name| name.starts_with(&format!("{}{species}_", prefixes[0])));
        let (gas, dark_matter) = (has("BA"), has("DM"));
        let refused = if is_music { None } else { refused(&names) };
        if let Some(reason) = refused {
            return Err(input.content(reason));
        }
        if !(gas || dark_matter) {
            return Err(input.content(without_fields(&prefixes[0])));
        }
        let fields = Self { input, format, meshes, prefixes, gas, dark_matter };
        let of_gas = |mesh, axis| [fields.name(mesh, "BA_v", axis), fields.contrast(mesh)];
        for (mesh, axis) in (0..fields.prefixes.len()).flat_map(|mesh| AXES.map(|axis| (mesh, axis))) {
            let particles = ["DM_d", "DM_v"].map(|field| fields.name(mesh, field, axis));
            let gas = of_gas(mesh, axis).into_iter().filter(|_| gas);
            let names = particles.into_iter().filter(|_| dark_matter).chain(gas);
            for name in names {
                fields.dataset(mesh, &name)?;
            }
        }
        Ok(fields)
    }

    fn name(&self, mesh: usize, field: &str, axis: &str) -> String {
        format!("{}{field}{axis}", self.prefixes[mesh])
    }

    /// Name of the density contrast of gas.
    fn contrast(&self, mesh: usize) -> String {
        let field = if self.format == LoadFormat::Music { "BA_rho" } else { "BA_delta" };
        self.name(mesh, field, "")
    }

    fn border(&self) -> usize {
        if self.format == LoadFormat::Music { BORDER } else { 0 }
    }

    fn dataset(&self, mesh: usize, name: &str) -> Result<Dataset, IcError> {
        let shape = self.meshes.get(mesh).cells.map(|n| n + 2 * self.border());
        self.input.dataset(name, &shape, Numbers::Floats)
    }

    /// Compares header and mesh with the recipe.
    fn check(&self, ic: &LoadIc) -> Result<(), IcError> {
        self.meshes.check_cells(ic, self.gas).map_err(|reason| self.input.content(reason))?;
        if self.format == LoadFormat::Music {
            return Ok(());
        }
        let c = &ic.cosmology;
        for (name, option, expected, tolerance) in [
            ("astart", "a = 1/(1 + z)", 1.0 / (1.0 + ic.z), SAME),
            ("Boxsize", "box_mpc_h", ic.box_mpc_h, SAME),
            ("Omega_m", "omega_m", c.omega_m, SAME),
            ("Omega_b", "omega_b", c.omega_b, SAME),
            ("Omega_L", "omega_lambda", c.omega_lambda, SAME_LAMBDA),
        ] {
            let statement = format!("attribute \"{name}\" of /{MONOFONIC}");
            let Some((_, found)) = self.input.numbers(&[MONOFONIC], name)? else {
                return Err(self.input.content(format!("{statement} is missing: expected {option} = {expected}")));
            };
            if (found[0] - expected).abs() <= tolerance * expected.abs() {
                continue;
            }
            return Err(self.input.content(format!(
                "{statement} is {}, the recipe says {option} = {expected}: change one of them",
                found[0]
            )));
        }
        Ok(())
    }

    fn read(&self, ic: &LoadIc, part: &Part) -> Result<UniformMesh, IcError> {
        let mut mesh = UniformMesh::without_values(ic.cells, part.planes.clone());
        if self.gas {
            self.meshes.read_gas(&mut mesh, |n, region, gas| self.read_gas(ic, n, region, gas))?;
        }
        if self.dark_matter {
            let code = ic.box_mpc_h / (1.0 + ic.z) / 100.0;
            let read = |mesh, x: usize| {
                let field = |field, unit| {
                    let [nx, ny, nz] = AXES.map(|axis| {
                        let name = self.name(mesh, field, axis);
                        let values = self.block(mesh, &name, x, 0..self.meshes.get(mesh).cells[2])?;
                        Ok::<_, IcError>(values.into_iter().map(|value| unit * value).collect())
                    });
                    Ok::<_, IcError>([nx?, ny?, nz?])
                };
                let (displacement, velocity) = (field("DM_d", ic.box_mpc_h)?, field("DM_v", code)?);
                Ok::<_, IcError>(Plane { displacement, velocity, followed: None })
            };
            let rows = part.rows(self.meshes.particles() as u64);
            mesh.dark_matter = Some(DarkMatter::Set(self.meshes.read(rows, ic.box_mpc_h, read)?));
        }
        Ok(mesh)
    }

    /// Values of cells with index `x` along x, and these along z, z fastest.
    fn block(&self, mesh: usize, name: &str, x: usize, z: Range<usize>) -> Result<Vec<f64>, IcError> {
        let (dataset, border) = (self.dataset(mesh, name)?, self.border());
        let ny = self.meshes.get(mesh).cells[1];
        let (from, count) = (border + z.start, z.len());
        let chosen = s![border + x..=border + x, border..border + ny, from..from + count];
        let values = dataset.read_slice::<f64, _, Ix3>(chosen).map_err(|source| self.input.failed(source))?;
        let values = values.into_raw_vec_and_offset().0;
        let limit = if name.contains("DM_d") { LARGEST_DISPLACEMENT } else { LARGEST_VALUE };
        self.input.below(limit, name, values, |n| [x, n / count, z.start + n % count])
    }

    /// Reads the planes along z of the gas that `gas` has.
    ///
    /// * `region`: the cells of mesh `n`
    fn read_gas(&self, ic: &LoadIc, n: usize, region: [Span; 3], gas: &mut UniformMesh) -> Result<(), IcError> {
        let field = |name: &str, unit: f64| self.planes_along_z(n, name, region, &gas.planes, unit);
        let contrast = field(&self.contrast(n), 1.0)?;
        let [x, y, z] = AXES.map(|axis| field(&self.name(n, "BA_v", axis), ic.box_mpc_h));
        fill_with_gas(gas, ic, self.dark_matter, contrast, [x?, y?, z?]);
        Ok(())
    }

    /// Values of a field of gas, times `unit`, x fastest, cells in ascending order along each axis.
    fn planes_along_z(
        &self,
        mesh: usize,
        name: &str,
        region: [Span; 3],
        planes: &Range<usize>,
        unit: f64,
    ) -> Result<Vec<f64>, IcError> {
        let [nx, ny, _] = region.map(|span| span.count);
        let mut all = vec![0.0; nx * ny * planes.len()];
        // a mesh through the face of the box has its planes in two pieces
        let follows = |k: &usize| region[2].steps_to(*k) == region[2].steps_to(planes.start) + k - planes.start;
        let split = planes.start + planes.clone().take_while(follows).count();
        for piece in [planes.start..split, split..planes.end].into_iter().filter(|piece| !piece.is_empty()) {
            let first = region[2].steps_to(piece.start);
            for x in 0..nx {
                let values = self.block(mesh, name, region[0].steps_to(x), first..first + piece.len())?;
                for y in 0..ny {
                    let line = &values[region[1].steps_to(y) * piece.len()..][..piece.len()];
                    for (z, value) in (piece.start - planes.start..).zip(line) {
                        all[(z * ny + y) * nx + x] = unit * value;
                    }
                }
            }
        }
        Ok(all)
    }
}

/// The reason why a file without fields is not read.
///
/// * `prefix`: beginning of their names
fn without_fields(prefix: &str) -> String {
    format!("neither dark matter nor gas: expected datasets \"{prefix}DM_dx\", … or \"{prefix}BA_vx\", …")
}

/// The reason why monofonIC's fields are not read, if there is one.
fn refused(names: &[String]) -> Option<String> {
    let has = |start: &str| names.iter().any(|name| name.starts_with(start));
    let is_there = |name: &str| names.iter().any(|n| n == name);
    let reason = if has("NU_") {
        "neutrinos (\"NU_…\") are not read: write the file without them, so that dark matter has all of omega_m"
    } else if is_there("BA_dx") {
        "the gas is Lagrangian (\"BA_dx\"): its density contrast is linear, and its velocities belong to cells that it has left; \
         write format = grafic2, whose gas is Eulerian, or dark matter alone with DoBaryons = no"
    } else if has("DM_") && !is_there("DM_dx") {
        "the dark matter is Eulerian (\"DM_dx\" is missing): particles have no displacements; remove generic_out_eulerian, or for \
         gas beside dark matter write format = grafic2"
    } else if is_there("DM_") {
        "dataset \"DM_\" has a mass for each particle, as with DoBaryons = yes: expected equal masses; set DoBaryons = no"
    } else {
        return None;
    };
    Some(reason.into())
}

/// monofonIC's mesh, which has the shape of its first field.
fn one_mesh(input: &Hdf5Input, names: &[String]) -> Result<Meshes, IcError> {
    let Some(first) = names.iter().find(|name| name.starts_with("DM_") || name.starts_with("BA_")) else {
        return Err(input.content(without_fields("")));
    };
    let shape = input.file.dataset(first).map(|dataset| dataset.shape()).unwrap_or_default();
    let cells = match shape[..] {
        [x, y, z] if [x, y, z].iter().all(|n| (1..=1 << 16).contains(n)) => [x, y, z],
        _ => {
            let reason =
                format!("dataset \"{first}\" has shape {shape:?}: expected fields of three axes, \"DM_dx\", …");
            return Err(input.content(reason));
        }
    };
    let mut meshes = Meshes::new([2, 1, 0], "box lengths");
    meshes.push(cells, 1.0 / cells[0] as f64, [0.0; 3]).map_err(|reason| input.content(reason))?;
    Ok(meshes)
}

/// MUSIC's meshes, and how the names of their datasets begin.
fn levels(input: &Hdf5Input) -> Result<(Meshes, Vec<String>), IcError> {
    let level = |name: &str| {
        let statement = format!("attribute \"{name}\" of /{MUSIC}");
        match input.numbers(&[MUSIC], name)? {
            Some((_, values)) if LEVELS.contains(&values[0]) => Ok(values[0] as usize),
            Some((_, values)) => Err(input.content(format!("{statement} is {}: expected 0 to 16", values[0]))),
            None => Err(input.content(format!("{statement} is missing: expected a level"))),
        }
    };
    let (coarsest, finest) = (level("levelmin")?, level("levelmax")?);
    if finest < coarsest {
        let reason = format!("attribute \"levelmax\" of /{MUSIC} is {finest}, below \"levelmin\" = {coarsest}");
        return Err(input.content(reason));
    }
    let count = finest - coarsest + 1;
    check_count(count).map_err(|reason| input.content(reason))?;
    let numbers = |what: &str| {
        let [x, y, z] = AXES.map(|axis| {
            let dataset = input.dataset(&format!("{MUSIC}/grid_{what}_{axis}"), &[count], Numbers::Integers)?;
            input.rows::<i64>(&dataset, 0..count)
        });
        Ok::<_, IcError>([x?, y?, z?])
    };
    let (offsets, lengths) = (numbers("off")?, numbers("len")?);
    let mut meshes = Meshes::new([2, 1, 0], "box lengths");
    // first cell of a level
    let mut first = [0i64; 3];
    for n in 0..count {
        let (level, cells) = (coarsest + n, lengths.each_ref().map(|lengths| lengths[n]));
        let offset = offsets.each_ref().map(|offsets| offsets[n]);
        let all = 1i64 << level;
        let is_whole = cells == [all; 3] && offset == [0; 3];
        if cells.iter().any(|n| !(1..=all).contains(n))
            || offset.iter().any(|n| n.unsigned_abs() >= all as u64)
            || n == 0 && !is_whole
        {
            let expected =
                if n == 0 { format!("all {all}³ from 0") } else { format!("at most {all} along each axis") };
            return Err(input.content(format!(
                "level {level} has {cells:?} cells (grid_len_x, y, z) from {offset:?} (grid_off_x, y, z): expected {expected}"
            )));
        }
        first = std::array::from_fn(|axis| 2 * (first[axis] + offset[axis]));
        let dx = 1.0 / all as f64;
        let corner = first.map(|first| first as f64 * dx);
        let pushed = meshes.push(cells.map(|n| n as usize), dx, corner);
        pushed.map_err(|reason| input.content(format!("level {level}: {reason}")))?;
    }
    let prefixes = (coarsest..=finest).map(|level| format!("level_{level:03}_")).collect();
    Ok((meshes, prefixes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::Cosmology;
    use hdf5::File;
    use ndarray::{Array3, arr1};

    const CELLS: [usize; 3] = [2; 3];

    fn ic(path: &Path, format: LoadFormat) -> LoadIc {
        LoadIc {
            path: path.into(),
            format: Some(format),
            length_unit: None,
            cosmology: Cosmology::flat(0.7, 0.3, 0.045, 0.8, 1.0),
            box_mpc_h: 8.0,
            cells: CELLS,
            z: 3.0,
            temperature_k: Some(100.0),
            mean_molecular_weight: 1.22,
            gamma: 5.0 / 3.0,
            baryons_only: false,
            follow: crate::Identities::default(),
            trust: None,
        }
    }

    /// A file of 2³ cells whose values are 100 x + 10 y + z, or −10⁹ in boundary cells.
    fn write(path: &Path, format: LoadFormat) {
        let file = File::create(path).unwrap();
        let (prefix, border, contrast) = match format {
            LoadFormat::Music => ("level_001_", BORDER, "rho"),
            _ => ("", 0, "delta"),
        };
        let group = file.create_group(if format == LoadFormat::Music { MUSIC } else { MONOFONIC }).unwrap();
        let attribute =
            |name: &str, value: f64| group.new_attr::<f64>().create(name).unwrap().write_scalar(&value).unwrap();
        if format == LoadFormat::Music {
            ["levelmin", "levelmax"].into_iter().for_each(|name| attribute(name, 1.0));
            for axis in AXES {
                for (name, value) in [("off", 0u32), ("len", 2)] {
                    let name = format!("grid_{name}_{axis}");
                    group.new_dataset_builder().with_data(&arr1(&[value])).create(name.as_str()).unwrap();
                }
            }
        } else {
            let numbers = [("Boxsize", 8.0), ("astart", 0.25), ("Omega_m", 0.3), ("Omega_b", 0.045), ("Omega_L", 0.7)];
            numbers.into_iter().for_each(|(name, value)| attribute(name, value));
        }
        let field = |name: String, unit: f64| {
            let all = CELLS.map(|n| n + 2 * border);
            let values = Array3::from_shape_fn(all, |(x, y, z)| {
                let is_inside = [x, y, z].iter().all(|n| (border..border + 2).contains(n));
                let number = |n: usize| n as f64 - border as f64;
                if is_inside { unit * (100.0 * number(x) + 10.0 * number(y) + number(z)) } else { -1e9 }
            });
            file.new_dataset_builder().with_data(&values).create(format!("{prefix}{name}").as_str()).unwrap();
        };
        for (n, axis) in AXES.into_iter().enumerate() {
            field(format!("DM_d{axis}"), 0.0);
            field(format!("DM_v{axis}"), (n + 1) as f64);
            field(format!("BA_v{axis}"), 1.0);
        }
        field(format!("BA_{contrast}"), 0.01);
    }

    #[test]
    fn fields_come_back_from_both_programs() {
        for format in [LoadFormat::Monofonic, LoadFormat::Music] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("ics.hdf5");
            write(&path, format);
            assert_eq!(LoadFormat::of(&path).unwrap(), format);
            let (ic, fields) = (ic(&path, format), Fields::open(&path, format).unwrap());
            fields.check(&ic).unwrap();
            let mesh = fields.read(&ic, &(0..2).into()).unwrap();
            let Some(DarkMatter::Set(set)) = &mesh.dark_matter else { panic!("no particles") };
            // row 1 is the cell after the first along z, at ¼, ¼, ¾ of the box
            assert_eq!([0, 1, 2].map(|axis| set.position[axis][1] >> 30), [1, 1, 3]);
            // km/s of a value: box length; code: a/(100 km/s)
            let speeds = [1.0, 10.0, 11.0, 100.0].map(|v| (v * 3.0 * 8.0 * 0.25 / 100.0) as f32);
            assert_eq!([1, 2, 3, 4].map(|row| set.velocity[2][row]), speeds);
            let cell = mesh.index([1, 0, 1]);
            let density: f64 = 0.15 * 2.01;
            assert!((mesh.density[cell] - density).abs() < 1e-12);
            assert!((mesh.momentum[1][cell] - density * 101.0 * 8.0 * 0.25 / 100.0).abs() < 1e-12);
            assert!(mesh.internal_energy[cell] > 0.0);
            let upper = fields.read(&ic, &(1..2).into()).unwrap();
            assert_eq!(upper.density, mesh.density[4..]);
        }
    }

    #[test]
    fn fields_that_are_no_start_are_refused() {
        let reason = |names: &[&str]| refused(&names.iter().map(|name| (*name).into()).collect::<Vec<String>>());
        assert_eq!(reason(&["DM_dx", "DM_vx", "DM_delta", "BA_vx", "BA_delta", "Header"]), None);
        for (names, expected) in [
            (&["DM_dx", "BA_dx"], "\"BA_dx\""),
            (&["DM_vx", "DM_delta"], "Eulerian"),
            (&["DM_dx", "DM_"], "\"DM_\" has a mass"),
            (&["DM_dx", "NU_vx"], "neutrinos"),
        ] {
            let said = reason(names).unwrap();
            assert!(said.contains(expected), "{said}");
        }
    }
}

//! Folders of HDF5 files as MUSIC writes them for Enzo (Bryan et al. 2014, ApJS 211, 19): dark matter and gas on one mesh.
//!
//! | files, each with a dataset of its name | values, index `[z][y][x]` |
//! |---|---|
//! | `ParticleDisplacements_x`, `y`, `z` | from the cell's centre, in box lengths |
//! | `ParticleVelocities_x`, `y`, `z` | v_pec of dark matter |
//! | `GridDensity` | (1 + δ) Ω_b/Ω_m |
//! | `GridVelocities_x`, `y`, `z` | v_pec of gas |
//!
//! The unit of velocities is 122.475 km/s · L √(Ω_m (1 + z)), L in Mpc/h.

pub mod write;

use super::hdf5_input::{Hdf5Input, Numbers};
use super::nested::{LARGEST_DISPLACEMENT, LARGEST_VALUE, Meshes, Plane, fill_with_gas};
use super::reader::{Contents, Part, ReadPart, Reader, SAME_LAMBDA, Statements};
use super::request::{LoadFormat, LoadIc};
use crate::error::IcError;
use crate::uniform_mesh::{DarkMatter, UniformMesh};
use comove_sim::Cosmology;
use comove_sim::parallel::{Communicator, collective_result};
use ndarray::{Ix3, Ix4, s};
use std::path::{Path, PathBuf};

/// Reader of the format.
pub(super) struct Enzo;

/// Relative difference at which numbers of 32 bits contradict the recipe.
const SAME: f64 = 1e-5;

/// Unit of velocities in km/s.
fn velocity_unit_km_s(cosmology: &Cosmology, a: f64, box_mpc_h: f64) -> f64 {
    122.475 * box_mpc_h * (cosmology.omega_m / a).sqrt()
}

const DISPLACEMENTS: [&str; 3] = ["ParticleDisplacements_x", "ParticleDisplacements_y", "ParticleDisplacements_z"];
const VELOCITIES: [&str; 3] = ["ParticleVelocities_x", "ParticleVelocities_y", "ParticleVelocities_z"];
const DENSITY: &str = "GridDensity";
const GAS_VELOCITIES: [&str; 3] = ["GridVelocities_x", "GridVelocities_y", "GridVelocities_z"];

/// Names of files that are not read.
const REFUSED: [(&str, &str); 5] = [
    ("ParticlePositions", "positions of particles are not read: write displacements, \"ParticleDisplacements_x\", …"),
    ("ParticleVelocities", "three components in one file are not read: write \"ParticleVelocities_x\", …"),
    ("GridVelocities", "three components in one file are not read: write \"GridVelocities_x\", …"),
    ("ParticleVelocities_x.0", NESTED),
    ("GridDensity.0", NESTED),
];
const NESTED: &str = "nested grids are not read: their places in the file are rounded to cells of the coarsest grid; write \
                      format = generic or grafic2";

impl Reader for Enzo {
    fn recognises(&self, _file: &Hdf5Input) -> bool {
        false
    }

    fn contents(&self, path: &Path) -> Result<Contents, IcError> {
        let Folder { meshes, gas, dark_matter, .. } = Folder::open(path)?;
        Ok(meshes.contents(LoadFormat::Enzo, gas, dark_matter))
    }

    fn statements(&self, path: &Path) -> Result<Statements, IcError> {
        let folder = Folder::open(path)?;
        let one = |name: &str| folder.stated(name);
        let cells = folder.meshes.base().cells;
        Ok(Statements {
            a: one("a_start")?,
            box_length: one("dx")?.map(|dx| dx * cells[0] as f64),
            length_is_without_h: true,
            h: one("h0")?,
            omega_m: one("omega_m")?,
            omega_lambda: one("omega_v")?,
            // 0 for dark matter alone
            omega_b: one("omega_b")?.filter(|_| folder.gas),
            cells: Some(cells),
            ..Statements::default()
        })
    }

    fn open<'i>(&self, ic: &'i LoadIc, communicator: &Communicator) -> Result<ReadPart<'i>, IcError> {
        let opened = Folder::open(&ic.path).and_then(|folder| folder.check(ic).map(|()| folder));
        let folder = collective_result(communicator, opened)?;
        Ok(Box::new(move |part| folder.read(ic, part)))
    }
}

/// True for a folder with files of this format.
pub(super) fn is_here(path: &Path) -> bool {
    let names = [VELOCITIES[0], DISPLACEMENTS[0], GAS_VELOCITIES[0], DENSITY];
    names.into_iter().chain(REFUSED.map(|(name, _)| name)).any(|name| path.join(name).is_file())
}

/// The files that are read.
pub(super) fn files(path: &Path) -> Vec<PathBuf> {
    let names = DISPLACEMENTS.into_iter().chain(VELOCITIES).chain([DENSITY]).chain(GAS_VELOCITIES);
    names.map(|name| path.join(name)).filter(|file| file.is_file()).collect()
}

/// Open files.
struct Folder {
    /// In the order of [`files`], with their names.
    files: Vec<(&'static str, Hdf5Input)>,
    meshes: Meshes,
    gas: bool,
    dark_matter: bool,
}

impl Folder {
    /// Opens all files, and checks that their fields are on one mesh.
    fn open(path: &Path) -> Result<Self, IcError> {
        let has = |name: &str| path.join(name).is_file();
        if let Some((name, reason)) = REFUSED.into_iter().find(|(name, _)| has(name)) {
            return Err(IcError::Content { path: path.join(name), reason: reason.into() });
        }
        let (dark_matter, gas) = (has(VELOCITIES[0]) || has(DISPLACEMENTS[0]), has(GAS_VELOCITIES[0]) || has(DENSITY));
        let of_particles = DISPLACEMENTS.into_iter().chain(VELOCITIES).filter(|_| dark_matter);
        let of_gas = [DENSITY].into_iter().chain(GAS_VELOCITIES).filter(|_| gas);
        let opened = of_particles.chain(of_gas).map(|name| Ok((name, Hdf5Input::open(&path.join(name))?)));
        let files = opened.collect::<Result<Vec<_>, IcError>>()?;
        let Some((name, first)) = files.first() else {
            let reason = "expected files \"ParticleVelocities_x\" or \"GridVelocities_x\", …".into();
            return Err(IcError::Content { path: path.into(), reason });
        };
        let missing = |_| first.content(format!("dataset \"{name}\" is missing: expected shape [1, z, y, x]"));
        let shape = first.file.dataset(name).map_err(missing)?.shape();
        let cells = match shape[..] {
            [z, y, x] | [1, z, y, x] if [x, y, z].iter().all(|n| (1..=1 << 16).contains(n)) => [x, y, z],
            _ => {
                let reason = format!("dataset \"{name}\" has shape {shape:?}: expected [1, z, y, x]");
                return Err(first.content(reason));
            }
        };
        let mut meshes = Meshes::new([0, 1, 2], "box lengths");
        meshes.push(cells, 1.0 / cells[0] as f64, [0.0; 3]).map_err(|reason| first.content(reason))?;
        let folder = Self { files, meshes, gas, dark_matter };
        folder.files.iter().try_for_each(|(name, _)| folder.dataset(name).map(drop))?;
        Ok(folder)
    }

    fn file(&self, name: &str) -> &Hdf5Input {
        let file = self.files.iter().find(|file| file.0 == name);
        &file.expect("all files of a species are open").1
    }

    fn dataset(&self, name: &str) -> Result<hdf5::Dataset, IcError> {
        let ([x, y, z], input) = (self.meshes.base().cells, self.file(name));
        let shape = [1, z, y, x];
        let has_component = input.file.dataset(name).is_ok_and(|dataset| dataset.ndim() == 4);
        input.dataset(name, &shape[usize::from(!has_component)..], Numbers::Floats)
    }

    /// A number in the first file.
    fn stated(&self, name: &str) -> Result<Option<f64>, IcError> {
        Ok(self.files[0].1.numbers(&["/"], name)?.map(|(_, values)| values[0]))
    }

    /// Compares header and mesh with the recipe.
    fn check(&self, ic: &LoadIc) -> Result<(), IcError> {
        let (first, c) = (&self.files[0].1, &ic.cosmology);
        self.meshes.check_cells(ic, self.gas).map_err(|reason| first.content(reason))?;
        let dx = ic.box_mpc_h / c.h / self.meshes.base().cells[0] as f64;
        for (name, option, expected, tolerance) in [
            ("a_start", "a = 1/(1 + z)", 1.0 / (1.0 + ic.z), SAME),
            ("h0", "h", c.h, SAME),
            ("omega_m", "omega_m", c.omega_m, SAME),
            ("omega_v", "omega_lambda", c.omega_lambda, SAME_LAMBDA),
            ("omega_b", "omega_b", c.omega_b, if self.gas { SAME } else { f64::INFINITY }),
            ("dx", "box_mpc_h/h/cells", dx, SAME),
        ] {
            if let Some(found) = self.stated(name)?
                && (found - expected).abs() > tolerance * expected.abs()
            {
                return Err(first.content(format!(
                    "attribute \"{name}\" is {found}, the recipe says {option} = {expected}: change one of them"
                )));
            }
        }
        Ok(())
    }

    fn read(&self, ic: &LoadIc, part: &Part) -> Result<UniformMesh, IcError> {
        let mut mesh = UniformMesh::without_values(ic.cells, part.planes.clone());
        let (c, a) = (&ic.cosmology, 1.0 / (1.0 + ic.z));
        let km_s = velocity_unit_km_s(c, a, ic.box_mpc_h);
        let three = |names: [&str; 3], k: usize, unit: f64| {
            let [x, y, z] = names.map(|name| self.plane(name, k, unit));
            Ok::<_, IcError>([x?, y?, z?])
        };
        if self.gas {
            let (mut contrast, mut velocity) = (Vec::new(), [const { Vec::new() }; 3]);
            for k in part.planes.clone() {
                contrast
                    .extend(self.plane(DENSITY, k, c.omega_m / c.omega_b)?.into_iter().map(|density| density - 1.0));
                velocity.iter_mut().zip(three(GAS_VELOCITIES, k, km_s)?).for_each(|(all, new)| all.extend(new));
            }
            fill_with_gas(&mut mesh, ic, self.dark_matter, contrast, velocity);
        }
        if self.dark_matter {
            let plane = |_: usize, k: usize| {
                let displacement = three(DISPLACEMENTS, k, ic.box_mpc_h)?;
                let velocity = three(VELOCITIES, k, km_s * a / 100.0)?;
                Ok::<_, IcError>(Plane { displacement, velocity, followed: None })
            };
            let rows = part.rows(self.meshes.particles() as u64);
            mesh.dark_matter = Some(DarkMatter::Set(self.meshes.read(rows, ic.box_mpc_h, plane)?));
        }
        Ok(mesh)
    }

    /// Values of plane k times `unit`, x fastest.
    fn plane(&self, name: &str, k: usize, unit: f64) -> Result<Vec<f64>, IcError> {
        let (dataset, input) = (self.dataset(name)?, self.file(name));
        let nx = self.meshes.base().cells[0];
        let values = if dataset.ndim() == 4 {
            dataset.read_slice::<f64, _, Ix4>(s![.., k..=k, .., ..]).map(|values| values.into_raw_vec_and_offset().0)
        } else {
            dataset.read_slice::<f64, _, Ix3>(s![k..=k, .., ..]).map(|values| values.into_raw_vec_and_offset().0)
        };
        let values = values.map_err(|source| input.failed(source))?;
        let limit = if DISPLACEMENTS.contains(&name) { LARGEST_DISPLACEMENT } else { LARGEST_VALUE };
        let values = input.below(limit, name, values, |n| [n % nx, n / nx, k])?;
        Ok(values.into_iter().map(|value| unit * value).collect())
    }
}

//! Writing a mesh as a folder of files for Enzo: the quantities of the module's table, in 64 bits.

use super::{DENSITY, DISPLACEMENTS, GAS_VELOCITIES, VELOCITIES, velocity_unit_km_s};
use crate::error::IcError;
use crate::format::cell_values::{Value, motion, write_each};
use crate::format::{FileHeader, write_arrays};
use crate::uniform_mesh::UniformMesh;
use comove_sim::VELOCITY_KM_S;
use comove_sim::parallel::Communicator;
use comove_sim::shared_file::allocate;
use std::path::Path;

/// Names of all files that [`write()`] makes.
pub fn names() -> impl Iterator<Item = &'static str> {
    DISPLACEMENTS.into_iter().chain(VELOCITIES).chain([DENSITY]).chain(GAS_VELOCITIES)
}

/// Writes a mesh, held entirely by this rank.
///
/// * `progress`: receives the fraction written
///
/// # Errors
/// [`IcError::Sim`]; a file of that name, if any, is then untouched.
pub fn write(folder: &Path, header: &FileHeader, mesh: &UniformMesh, progress: &dyn Fn(f64)) -> Result<(), IcError> {
    let unit = VELOCITY_KM_S / header.a / velocity_unit_km_s(&header.cosmology, header.a, header.box_mpc_h);
    let names = [GAS_VELOCITIES, VELOCITIES, DISPLACEMENTS];
    let mut files = motion(mesh, header.box_mpc_h, names, unit, header.box_mpc_h);
    if !mesh.density.is_empty() {
        files.push((DENSITY, Box::new(|n| mesh.density[n])));
    }
    write_each(files, progress, |name, value| write_file(&folder.join(name), name, header, mesh.cells, value))
}

fn write_file(
    path: &Path,
    name: &str,
    header: &FileHeader,
    cells: [usize; 3],
    value: &Value<'_>,
) -> Result<(), IcError> {
    let FileHeader { cosmology: c, a, box_mpc_h } = header;
    let [nx, ny, nz] = cells;
    let whole: [i32; 3] = cells.map(|n| n as i32);
    let prepare = |file: &hdf5::File| {
        for (name, value) in [
            ("a_start", *a),
            ("dx", box_mpc_h / c.h / nx as f64),
            ("h0", c.h),
            ("omega_b", c.omega_b),
            ("omega_m", c.omega_m),
            ("omega_v", c.omega_lambda),
            ("vfact", 1.0),
        ] {
            file.new_attr::<f32>().create(name)?.write_scalar(&(value as f32))?;
        }
        let place = allocate::<f64>(file, name, &[1, nz, ny, nx])?;
        let dataset = file.dataset(name)?;
        for (name, value) in [("Component_Rank", 1), ("Component_Size", (nx * ny * nz) as i64), ("Rank", 3)] {
            dataset.new_attr::<i64>().create(name)?.write_scalar(&value)?;
        }
        for (name, values) in
            [("Dimensions", whole), ("TopGridDims", whole), ("TopGridEnd", whole), ("TopGridStart", [0; 3])]
        {
            dataset.new_attr::<i32>().shape([3]).create(name)?.write(&values[..])?;
        }
        Ok(vec![place])
    };
    write_arrays(&Communicator::alone(), path, prepare, |file| {
        let plane = nx * ny;
        (0..nz).try_for_each(|k| {
            let values: Vec<f64> = (k * plane..(k + 1) * plane).map(value).collect();
            file.put(0, k * plane * size_of::<f64>(), bytemuck::cast_slice(&values))
        })
    })
}

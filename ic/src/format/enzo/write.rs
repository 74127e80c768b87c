//! Writing a mesh as a folder of files for Enzo: the quantities of the module's table, in 64 bits.

use super::{DENSITY, DISPLACEMENTS, GAS_VELOCITIES, VELOCITIES, velocity_unit_km_s};
use crate::error::IcError;
use crate::format::{FileHeader, write_arrays};
use crate::uniform_mesh::{Lattice, UniformMesh};
use comove_sim::VELOCITY_KM_S;
use comove_sim::parallel::Communicator;
use comove_sim::shared_file::allocate;
use std::path::Path;

/// Value of a cell by its offset.
type Value<'m> = Box<dyn Fn(usize) -> f64 + 'm>;

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
    let mut files: Vec<(&str, Value<'_>)> = Vec::new();
    if !mesh.density.is_empty() {
        files.push((DENSITY, Box::new(|n| mesh.density[n])));
        for (momentum, name) in mesh.momentum.iter().zip(GAS_VELOCITIES) {
            files.push((name, Box::new(move |n| momentum[n] / mesh.density[n] * unit)));
        }
    }
    if let Some(Lattice { displacement, velocity }) = mesh.lattice() {
        // from the centres of cells
        let half = 0.5 / mesh.cells[0] as f64;
        for axis in 0..3 {
            files.push((DISPLACEMENTS[axis], Box::new(move |n| displacement[axis][n] / header.box_mpc_h - half)));
            files.push((VELOCITIES[axis], Box::new(move |n| velocity[axis][n] * unit)));
        }
    }
    let count = files.len() as f64;
    for (n, (name, value)) in files.into_iter().enumerate() {
        write_file(&folder.join(name), name, header, mesh.cells, &value)?;
        progress((n + 1) as f64 / count);
    }
    Ok(())
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

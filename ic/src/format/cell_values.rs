//! Values of a mesh's cells in the units of files that hold one field each.

use crate::error::IcError;
use crate::uniform_mesh::{Lattice, UniformMesh};

/// Value of a cell by its offset.
pub(super) type Value<'m> = Box<dyn Fn(usize) -> f64 + 'm>;

/// A file's name and its values.
pub(super) type File<'m> = (&'static str, Value<'m>);

/// Gas velocities, and particle velocities and displacements from cell centres, for the species in the mesh.
///
/// * `names`: file names of gas velocities, particle velocities and displacements, each along x, y, z
/// * `velocity`: file units per unit of ṽ
/// * `length`: unit of displacements in Mpc/h
pub(super) fn motion<'m>(
    mesh: &'m UniformMesh,
    box_mpc_h: f64,
    names: [[&'static str; 3]; 3],
    velocity: f64,
    length: f64,
) -> Vec<File<'m>> {
    let [of_gas, of_particles, displacements] = names;
    let mut files: Vec<File<'m>> = Vec::new();
    if !mesh.density.is_empty() {
        for (momentum, name) in mesh.momentum.iter().zip(of_gas) {
            files.push((name, Box::new(move |n| momentum[n] / mesh.density[n] * velocity)));
        }
    }
    if let Some(lattice) = mesh.lattice() {
        let Lattice { displacement, velocity: speed } = lattice;
        let half = 0.5 * box_mpc_h / mesh.cells[0] as f64;
        for axis in 0..3 {
            files.push((of_particles[axis], Box::new(move |n| speed[axis][n] * velocity)));
            files.push((displacements[axis], Box::new(move |n| (displacement[axis][n] - half) / length)));
        }
    }
    files
}

/// Writes files one after the other.
///
/// * `progress`: receives the fraction written
///
/// # Errors
/// The first error of `write`.
pub(super) fn write_each(
    files: Vec<File<'_>>,
    progress: &dyn Fn(f64),
    write: impl Fn(&str, &Value<'_>) -> Result<(), IcError>,
) -> Result<(), IcError> {
    let count = files.len() as f64;
    for (n, (name, value)) in files.into_iter().enumerate() {
        write(name, &value)?;
        progress((n + 1) as f64 / count);
    }
    Ok(())
}

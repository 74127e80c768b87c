//! Writing a mesh as a folder of GRAFIC files: the quantities of the module's table, in 32 bits and native byte order.

use super::{CONTRAST, HEADER_BYTES, POSC, VELB, VELC};
use crate::error::IcError;
use crate::format::{FileHeader, write_then_rename};
use crate::uniform_mesh::{Lattice, UniformMesh};
use comove_sim::VELOCITY_KM_S;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Value of a cell by its offset.
type Value<'m> = Box<dyn Fn(usize) -> f64 + 'm>;

/// Names of all files that [`write()`] makes.
pub fn names() -> impl Iterator<Item = &'static str> {
    [CONTRAST].into_iter().chain(VELB).chain(VELC).chain(POSC)
}

/// Writes a mesh, held entirely by this rank, plane by plane. The density contrast is 0 without gas: RAMSES reads the header of
/// its file in any case.
///
/// * `share`: mean density of the gas, in the mean matter density
/// * `progress`: receives the fraction written
///
/// # Errors
/// [`IcError::Io`]; a file of that name, if any, is then untouched.
pub fn write(
    folder: &Path,
    header: &FileHeader,
    (mesh, share): (&UniformMesh, f64),
    progress: &dyn Fn(f64),
) -> Result<(), IcError> {
    let km_s = VELOCITY_KM_S / header.a;
    let contrast = move |n: usize| mesh.density.get(n).map_or(0.0, |density| density / share - 1.0);
    let mut files: Vec<(&str, Value<'_>)> = vec![(CONTRAST, Box::new(contrast))];
    if !mesh.density.is_empty() {
        for (momentum, name) in mesh.momentum.iter().zip(VELB) {
            files.push((name, Box::new(move |n| momentum[n] / mesh.density[n] * km_s)));
        }
    }
    if let Some(Lattice { displacement, velocity }) = mesh.lattice() {
        // from the centres of cells
        let half = 0.5 * header.box_mpc_h / mesh.cells[0] as f64;
        for axis in 0..3 {
            files.push((VELC[axis], Box::new(move |n| velocity[axis][n] * km_s)));
            files.push((POSC[axis], Box::new(move |n| displacement[axis][n] - half)));
        }
    }
    let count = files.len() as f64;
    for (n, (name, value)) in files.into_iter().enumerate() {
        write_file(&folder.join(name), header, mesh.cells, &value)?;
        progress((n + 1) as f64 / count);
    }
    Ok(())
}

fn write_file(path: &Path, header: &FileHeader, cells: [usize; 3], value: &Value<'_>) -> Result<(), IcError> {
    let FileHeader { cosmology: c, a, box_mpc_h } = header;
    let mut first: Vec<u8> = cells.iter().flat_map(|&n| (n as i32).to_ne_bytes()).collect();
    let width = box_mpc_h / c.h / cells[0] as f64;
    let reals = [width, 0.0, 0.0, 0.0, *a, c.omega_m, c.omega_lambda, 100.0 * c.h];
    first.extend(reals.iter().flat_map(|&real| (real as f32).to_ne_bytes()));
    debug_assert_eq!(first.len(), HEADER_BYTES as usize);
    let plane = cells[0] * cells[1];
    write_then_rename(path, |temporary| {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(temporary)?);
        let mut record = |bytes: &[u8]| {
            let length = (bytes.len() as u32).to_ne_bytes();
            [&length, bytes, &length].into_iter().try_for_each(|part| file.write_all(part))
        };
        record(&first)?;
        for k in 0..cells[2] {
            let values = (k * plane..(k + 1) * plane).flat_map(|n| (value(n) as f32).to_ne_bytes());
            record(&values.collect::<Vec<u8>>())?;
        }
        file.flush()
    })
}

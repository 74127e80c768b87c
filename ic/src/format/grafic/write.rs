//! Writing a mesh as a folder of GRAFIC files: the quantities of the module's table, in 32 bits and native byte order.

use super::{CONTRAST, HEADER_BYTES, POSC, REFMAP, VELB, VELC};
use crate::error::IcError;
use crate::format::cell_values::{Value, motion, write_each};
use crate::format::{FileHeader, write_then_rename};
use crate::temperature::specific_internal_energy;
use crate::uniform_mesh::UniformMesh;
use comove_sim::VELOCITY_KM_S;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Deviation of the gas's temperature from that of RAMSES.
const TEMPERATURE: &str = "ic_tempb";

/// T/μ in K at a = 1 of gas that RAMSES has cooled with the expansion: at a it starts with this over a².
const RAMSES_K: f64 = 1.356e-2;

/// Names of all files that [`write()`] makes.
pub fn names() -> impl Iterator<Item = &'static str> {
    [CONTRAST, TEMPERATURE, REFMAP].into_iter().chain(VELB).chain(VELC).chain(POSC)
}

/// Writes a mesh, held entirely by this rank, plane by plane. The density contrast is 0 without gas: RAMSES reads the header of
/// its file in any case.
///
/// * `share`, `gamma`: mean density of the gas, in the mean matter density; its ratio of specific heats
/// * `followed`: whether refinement follows the particle of each cell, where it does not follow all
/// * `progress`: receives the fraction written
///
/// # Errors
/// [`IcError::Io`]; a file of that name, if any, is then untouched.
pub fn write(
    folder: &Path,
    header: &FileHeader,
    (mesh, share, gamma): (&UniformMesh, f64, f64),
    followed: Option<&[bool]>,
    progress: &dyn Fn(f64),
) -> Result<(), IcError> {
    let km_s = VELOCITY_KM_S / header.a;
    let contrast = move |n: usize| mesh.density.get(n).map_or(0.0, |density| density / share - 1.0);
    let mut files = motion(mesh, header.box_mpc_h, [VELB, VELC, POSC], km_s, 1.0);
    files.push((CONTRAST, Box::new(contrast)));
    if let Some(followed) = followed {
        files.push((REFMAP, Box::new(|n| f64::from(u8::from(followed[n])))));
    }
    if !mesh.density.is_empty() {
        let of_ramses = specific_internal_energy(&header.cosmology, header.a, RAMSES_K / header.a.powi(2), 1.0, gamma);
        let deviation = move |n: usize| mesh.internal_energy[n] / mesh.density[n] / of_ramses - 1.0;
        files.push((TEMPERATURE, Box::new(deviation)));
    }
    write_each(files, progress, |name, value| write_file(&folder.join(name), header, mesh.cells, value))
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

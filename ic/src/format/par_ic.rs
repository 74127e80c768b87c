//! Writing GAMER's `PAR_IC`: raw 64-bit floats in native byte order, one attribute after the other (`PAR_IC_FORMAT` 1): mass, position
//! and velocity along x, y, z, in the code units we share with GAMER. The type is not in the file (`PAR_IC_TYPE`).

use super::hdf5_input::pieces;
use super::write_then_rename;
use crate::error::IcError;
use crate::particle_rows::{Particles, Rows};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Attributes in the order of the file.
const ATTRIBUTES: [fn(&Rows, usize) -> f64; 7] = [
    |rows, n| rows.mass[n],
    |rows, n| rows.position[n][0],
    |rows, n| rows.position[n][1],
    |rows, n| rows.position[n][2],
    |rows, n| rows.velocity[n][0],
    |rows, n| rows.velocity[n][1],
    |rows, n| rows.velocity[n][2],
];

/// Writes all particles, a bounded number at a time.
///
/// * `progress`: receives the fraction written
///
/// # Errors
/// [`IcError::Io`]; a file of that name, if any, is then untouched.
pub fn write(path: &Path, types: &[Particles<'_>], progress: &dyn Fn(f64)) -> Result<(), IcError> {
    let all: usize = types.iter().map(|particles| particles.count).sum();
    write_then_rename(path, |temporary| {
        let file = File::create(temporary)?;
        let mut written = 0;
        for particles in types {
            for piece in pieces(0..particles.count) {
                let rows = particles.rows(piece.clone());
                for (n, attribute) in ATTRIBUTES.iter().enumerate() {
                    let values: Vec<f64> = (0..piece.len()).map(|row| attribute(&rows, row)).collect();
                    let at = (n * all + written) * size_of::<f64>();
                    file.write_all_at(bytemuck::cast_slice(&values), at as u64)?;
                }
                written += piece.len();
                progress(written as f64 / all as f64);
            }
        }
        Ok(())
    })
}

//! Writing Nyx's binary particle file: numbers of particles, dimensions and further columns, then for each particle in 32 bits its
//! position in comoving Mpc, its mass in M☉ and its peculiar velocity in km/s.

use super::hdf5_input::pieces;
use super::{FileHeader, write_then_rename};
use crate::error::IcError;
use crate::particle_rows::Particles;
use comove_sim::{Units, VELOCITY_KM_S};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// Columns beside the position: mass and velocity along x, y, z.
const COLUMNS: i32 = 4;

/// Writes all particles, a bounded number at a time.
///
/// * `progress`: receives the fraction written
///
/// # Errors
/// [`IcError::Io`]; a file of that name, if any, is then untouched.
pub fn write(path: &Path, header: &FileHeader, types: &[Particles<'_>], progress: &dyn Fn(f64)) -> Result<(), IcError> {
    let FileHeader { cosmology, a, .. } = header;
    let units = Units::new(Some(*cosmology));
    let (mpc, msun, km_s) = (1.0 / cosmology.h, units.mass_msun_h() / cosmology.h, VELOCITY_KM_S / a);
    let all: usize = types.iter().map(|particles| particles.count).sum();
    write_then_rename(path, |temporary| {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(temporary)?);
        file.write_all(&(all as i64).to_ne_bytes())?;
        [3, COLUMNS].into_iter().try_for_each(|number: i32| file.write_all(&number.to_ne_bytes()))?;
        let mut written = 0;
        for particles in types {
            for piece in pieces(0..particles.count) {
                let rows = particles.rows(piece.clone());
                for n in 0..piece.len() {
                    let ([x, y, z], [vx, vy, vz]) = (rows.position[n], rows.velocity[n]);
                    let row = [x * mpc, y * mpc, z * mpc, rows.mass[n] * msun, vx * km_s, vy * km_s, vz * km_s];
                    file.write_all(bytemuck::cast_slice(&row.map(|value| value as f32)))?;
                }
                written += piece.len();
                progress(written as f64 / all as f64);
            }
        }
        file.flush()
    })
}

//! The stages of the first-order HLL scheme.

use super::{SHEET, Sheet, cell, low_faces, round_up};
use crate::layout::FIELDS;
use crate::point::eos::Eos;
use crate::point::hll::{cell_flux, hll_flux, wave_speeds};
use crate::real::Real;

impl<T: Real> Sheet<T> {
    /// F(u), velocity and sound speed of every cell.
    #[inline(always)]
    pub(super) fn cell_fluxes(&mut self, cells: usize, eos: &Eos<T>) {
        let end = round_up(cells);
        assert!(end <= SHEET);
        let [flux, speeds, ..] = &mut self.work;
        for e in 0..end {
            let of_cell = cell_flux(&cell(&self.state, e), self.shock_indicator[e], eos);
            for f in 0..FIELDS {
                flux[f][e] = of_cell.flux[f];
            }
            speeds[0][e] = of_cell.velocity;
            speeds[1][e] = of_cell.sound_speed;
        }
    }

    /// The HLL flux through the low face of every cell three from the ends, and one face more.
    #[inline(always)]
    pub(super) fn hll<const S: usize>(&mut self, cells: usize) {
        let [of_cell, [velocity, sound_speed, ..], ..] = &self.work;
        for e in low_faces::<S>(cells) {
            let speeds = wave_speeds([velocity[e - S], sound_speed[e - S]], [velocity[e], sound_speed[e]]);
            for f in 0..FIELDS {
                let (value, flux) = (&self.state[f], &of_cell[f]);
                self.flux[f][e] = hll_flux([value[e - S], value[e]], [flux[e - S], flux[e]], speeds);
            }
        }
    }
}

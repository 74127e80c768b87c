//! The stages of relaxing TVD: F^R and F^L of every cell, at half time once more, limited.

use super::{SHEET, Sheet, cell, inner, low_faces, round_up};
use crate::layout::FIELDS;
use crate::point::eos::Eos;
use crate::point::relaxing_tvd::{limited_flux, split_flux, updated, upwind_flux};
use crate::real::Real;

impl<T: Real> Sheet<T> {
    /// F^R and F^L of every cell.
    #[inline(always)]
    pub(super) fn split(&mut self, cells: usize, eos: &Eos<T>) {
        let end = round_up(cells);
        assert!(end <= SHEET);
        let [_, _, right, left] = &mut self.work;
        for e in 0..end {
            let split = split_flux(&cell(&self.state, e), self.shock_indicator[e], eos);
            for f in 0..FIELDS {
                right[f][e] = split.right[f];
                left[f][e] = split.left[f];
            }
        }
    }

    /// A first-order half step, and F^R and F^L of what it gives, one cell from the ends.
    #[inline(always)]
    pub(super) fn split_at_half_time<const S: usize>(&mut self, cells: usize, dt_over_dx: T, eos: &Eos<T>) {
        // a half for the half step, a half because the fluxes are doubled
        let step = dt_over_dx * T::from_f64(0.25);
        let [mid_right, mid_left, right, left] = &mut self.work;
        for e in inner::<S>(cells, 1) {
            let mut half = cell(&self.state, e);
            for f in 0..FIELDS {
                let low = upwind_flux(right[f][e - S], left[f][e]);
                let high = upwind_flux(right[f][e], left[f][e + S]);
                half[f] = updated(half[f], step, low, high);
            }
            let split = split_flux(&half, self.beside[e], eos);
            for f in 0..FIELDS {
                mid_right[f][e] = split.right[f];
                mid_left[f][e] = split.left[f];
            }
        }
    }

    /// The second-order flux through the low face of every cell three from the ends, and one face more.
    #[inline(always)]
    pub(super) fn limit<const S: usize>(&mut self, cells: usize) {
        for f in 0..FIELDS {
            let ([right, left, ..], flux) = (&self.work, &mut self.flux[f]);
            let (right, left) = (&right[f], &left[f]);
            for e in low_faces::<S>(cells) {
                flux[e] = limited_flux([right[e - 2 * S], right[e - S], right[e]], [left[e - S], left[e], left[e + S]]);
            }
        }
    }

    /// The first-order flux of the state as it was through the low faces of these cells.
    #[inline(always)]
    pub(super) fn lower_order<const S: usize>(&mut self, faces: &[usize]) {
        let [_, _, right, left] = &self.work;
        for &e in faces {
            for f in 0..FIELDS {
                self.flux[f][e] = upwind_flux(right[f][e - S], left[f][e]);
            }
        }
    }
}

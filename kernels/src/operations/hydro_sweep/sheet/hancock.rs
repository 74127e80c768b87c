//! The stages of PLM and PPM: primitive values, their profiles in the cells, Hancock's predictor, HLLC fluxes.

use super::{SHEET, Sheet, cell, inner, low_faces, round_up};
use crate::layout::{ENERGY, FIELDS, MOMENTUM};
use crate::point::eos::Eos;
use crate::point::hancock::face_values;
use crate::point::hll::{face_flux, first_order_flux};
use crate::point::hllc::hllc_flux;
use crate::point::ppm::{face_value, flattening, monotonised};
use crate::point::slopes::central_slope;
use crate::real::Real;

/// Where primitive values hold the velocity along the sweep and the pressure.
const VELOCITY: usize = MOMENTUM;
const PRESSURE: usize = ENERGY;

impl<T: Real> Sheet<T> {
    /// The limited slopes of every cell but the outermost, which wait where the fluxes will be.
    #[inline(always)]
    pub(super) fn slopes<const S: usize>(&mut self, cells: usize) {
        let [primitives, ..] = &self.work;
        for f in 0..FIELDS {
            let (w, slope) = (&primitives[f], &mut self.flux[f]);
            for e in inner::<S>(cells, 1) {
                slope[e] = central_slope(w[e] - w[e - S], w[e + S] - w[e], T::from_f64(2.0));
            }
        }
    }

    /// Linear profiles of the cells two from the ends.
    #[inline(always)]
    pub(super) fn lines<const S: usize>(&mut self, cells: usize) {
        let [_, _, below, above] = &mut self.work;
        for f in 0..FIELDS {
            for e in inner::<S>(cells, 2) {
                let half = T::from_f64(0.5) * self.flux[f][e];
                below[f][e] = half;
                above[f][e] = half;
            }
        }
    }

    /// Parabolic profiles of the cells two from the ends, flattened at shocks.
    #[inline(always)]
    pub(super) fn parabolas<const S: usize>(&mut self, cells: usize) {
        let [primitives, faces, below, above] = &mut self.work;
        let (velocity, pressure) = (&primitives[VELOCITY], &primitives[PRESSURE]);
        for e in inner::<S>(cells, 2) {
            let around = [pressure[e - 2 * S], pressure[e - S], pressure[e], pressure[e + S], pressure[e + 2 * S]];
            self.flattening[e] = flattening([velocity[e - S], velocity[e + S]], around);
        }
        for f in 0..FIELDS {
            let (w, slope, face) = (&primitives[f], &self.flux[f], &mut faces[f]);
            // the low faces of these cells, and one more
            let end = 2 * S + round_up(cells - 3 * S);
            assert!(end <= SHEET);
            for e in 2 * S..end {
                face[e] = face_value([w[e - S], w[e]], [slope[e - S], slope[e]]);
            }
            let (below, above) = (&mut below[f], &mut above[f]);
            for e in inner::<S>(cells, 2) {
                let [low, high] = monotonised(w[e] - face[e], face[e + S] - w[e]);
                let kept = T::one() - self.flattening[e];
                below[e] = kept * low;
                above[e] = kept * high;
            }
        }
    }

    /// The values at the faces of the cells two from the ends half a step later, in place of their profiles.
    #[inline(always)]
    pub(super) fn predict<const S: usize>(&mut self, cells: usize, dt_over_dx: T, eos: &Eos<T>) {
        let [primitives, _, low, high] = &mut self.work;
        for e in inner::<S>(cells, 2) {
            let [at_low, at_high] = face_values(&cell(primitives, e), &cell(low, e), &cell(high, e), dt_over_dx, eos);
            for f in 0..FIELDS {
                low[f][e] = at_low[f];
                high[f][e] = at_high[f];
            }
        }
    }

    /// The HLLC flux through the low face of every cell three from the ends, and one face more.
    #[inline(always)]
    pub(super) fn hllc<const S: usize>(&mut self, cells: usize, eos: &Eos<T>) {
        let [_, _, low, high] = &self.work;
        for e in low_faces::<S>(cells) {
            let flux = hllc_flux(&cell(high, e - S), &cell(low, e), eos);
            for f in 0..FIELDS {
                self.flux[f][e] = flux[f];
            }
        }
    }

    /// HLL fluxes in the place of HLLC's through faces beside a cell that an earlier pass has seen at a shock: along a shock
    /// that lies with an axis, HLLC lets odd and even rows come apart (Quirk 1994). Across the shock HLLC stays: HLL would smear
    /// what the shock leaves behind.
    #[inline(always)]
    pub(super) fn hll_along_shocks<const S: usize>(&mut self, cells: usize, eos: &Eos<T>) {
        let faces = low_faces::<S>(cells);
        let at_shock = |e: usize| self.shock_indicator[e] < T::zero();
        if !(2 * S..faces.end).fold(false, |any, e| any | at_shock(e)) {
            return;
        }
        let [_, _, low, high] = &self.work;
        for e in faces.filter(|&e| at_shock(e - S) || at_shock(e)) {
            let flux = face_flux(&cell(high, e - S), &cell(low, e), eos);
            for f in 0..FIELDS {
                self.flux[f][e] = flux[f];
            }
        }
    }

    /// The first-order fluxes through the low faces of these cells.
    #[inline(always)]
    pub(super) fn first_order_fluxes<const S: usize>(&mut self, faces: &[usize], eos: &Eos<T>) {
        self.first_order.clear();
        for &e in faces {
            let (low, high) = (cell(&self.state, e - S), cell(&self.state, e));
            let indicators = [self.shock_indicator[e - S], self.shock_indicator[e]];
            self.first_order.push(first_order_flux(&low, &high, indicators, eos));
        }
    }

    /// Puts the first-order fluxes through these faces in the place of the others.
    #[inline(always)]
    pub(super) fn take_first_order(&mut self, faces: &[usize]) {
        for (&e, first_order) in faces.iter().zip(&self.first_order) {
            for f in 0..FIELDS {
                self.flux[f][e] = first_order[f];
            }
        }
    }
}

//! A sheet of parallel pencils, swept at once.
//!
//! Cells lie flat in memory, `S` apart along the sweep. With S = 1 whole rows follow each other and the few values
//! that mix two rows are never used, so that a sweep along x needs no transposition; with S = 8 or 11 that many
//! pencils lie side by side. Either way each stage is one loop over consecutive values, which vectorizes.

use crate::layout::{ENERGY, FIELDS};
use crate::point::dual_energy::{Cell, shock_indicator};
use crate::point::eos::Eos;
use crate::point::hll::{cell_flux, hll_flux, wave_speeds};
use crate::point::relaxing_tvd::{limited_flux, split_flux, updated, upwind_flux};
use crate::real::Real;
use crate::scheme::Scheme;

/// Room for the cells of a sheet: all its arrays together stay in a core's first-level cache in single precision.
pub(super) const SHEET: usize = 272;
/// Loops run over multiples of this: no remainder on any instruction set.
const LANES: usize = 16;
/// Ghost cells that the scheme reads on each side of a cell.
pub(super) const REACH: usize = 3;

type Fields<T> = [[T; SHEET]; FIELDS];

/// The cells of a sheet, momentum along the sweep first, and what the scheme computes from them.
pub(super) struct Sheet<T> {
    /// Conserved values, updated in place.
    pub(super) state: Fields<T>,
    /// Twice the flux through the low face of each cell.
    pub(super) flux: Fields<T>,
    /// [`shock_indicator`] of each cell: of earlier passes, then with this one.
    pub(super) shock_indicator: [T; SHEET],
    /// Before the pass.
    pressure: [T; SHEET],
    right: Fields<T>,
    left: Fields<T>,
    mid_right: Fields<T>,
    mid_left: Fields<T>,
}

impl<T: Real> Sheet<T> {
    /// A sheet of gas at rest, so that the cells that round a loop up are harmless.
    pub(super) fn new() -> Box<Self> {
        let (zero, one) = ([T::zero(); SHEET], [T::one(); SHEET]);
        let fields = [zero; FIELDS];
        let state = [one, zero, zero, zero, one, one];
        Box::new(Self {
            state,
            flux: fields,
            shock_indicator: zero,
            pressure: one,
            right: fields,
            left: fields,
            mid_right: fields,
            mid_left: fields,
        })
    }

    /// Advances the cells `3S..cells − 3S` by `dt_over_dx` with a scheme; `flux` then holds the fluxes through their low faces and
    /// the high face of the last. `first_order`: the cells whose low face takes the first-order flux.
    #[inline(always)]
    pub(super) fn advance<const S: usize>(
        &mut self,
        scheme: Scheme,
        cells: usize,
        dt_over_dx: T,
        eos: &Eos<T>,
        first_order: &[usize],
    ) {
        match scheme {
            Scheme::RelaxingTvd => {
                self.split(cells, eos);
                self.survey::<S>(cells, eos);
                self.split_at_half_time::<S>(cells, dt_over_dx, eos);
                self.limit::<S>(cells);
                self.lower_order::<S>(first_order);
            }
            Scheme::Hll => {
                self.cell_fluxes(cells, eos);
                self.survey::<S>(cells, eos);
                self.hll::<S>(cells);
            }
        }
        self.update::<S>(cells, dt_over_dx);
    }

    /// F^R and F^L of every cell.
    #[inline(always)]
    fn split(&mut self, cells: usize, eos: &Eos<T>) {
        let end = round_up(cells);
        assert!(end <= SHEET);
        for e in 0..end {
            let split = split_flux(&cell(&self.state, e), self.shock_indicator[e], eos);
            for f in 0..FIELDS {
                self.right[f][e] = split.right[f];
                self.left[f][e] = split.left[f];
            }
            self.pressure[e] = split.pressure;
        }
    }

    /// What the neighbours of every cell but the outermost say about its energy.
    #[inline(always)]
    fn survey<const S: usize>(&mut self, cells: usize, eos: &Eos<T>) {
        let end = S + round_up(cells - 2 * S);
        assert!(end + S <= SHEET);
        let (energy, pressure) = (&self.state[ENERGY], &self.pressure);
        for e in S..end {
            let energies = [energy[e - S], energy[e], energy[e + S]];
            let pressures = [pressure[e - S], pressure[e], pressure[e + S]];
            self.shock_indicator[e] = shock_indicator(self.shock_indicator[e], energies, pressures, eos);
        }
    }

    /// A first-order half step, and F^R and F^L of what it gives, one cell from the ends.
    #[inline(always)]
    fn split_at_half_time<const S: usize>(&mut self, cells: usize, dt_over_dx: T, eos: &Eos<T>) {
        // a half for the half step, a half because the fluxes are doubled
        let step = dt_over_dx * T::from_f64(0.25);
        let end = S + round_up(cells - 2 * S);
        assert!(end + S <= SHEET);
        for e in S..end {
            let mut half = cell(&self.state, e);
            for f in 0..FIELDS {
                let low = upwind_flux(self.right[f][e - S], self.left[f][e]);
                let high = upwind_flux(self.right[f][e], self.left[f][e + S]);
                half[f] = updated(half[f], step, low, high);
            }
            let split = split_flux(&half, self.shock_indicator[e], eos);
            for f in 0..FIELDS {
                self.mid_right[f][e] = split.right[f];
                self.mid_left[f][e] = split.left[f];
            }
        }
    }

    /// The second-order flux through the low face of every cell three from the ends, and one face more.
    #[inline(always)]
    fn limit<const S: usize>(&mut self, cells: usize) {
        let end = 3 * S + round_up(cells - 5 * S);
        assert!(end + S <= SHEET);
        for f in 0..FIELDS {
            let (right, left, flux) = (&self.mid_right[f], &self.mid_left[f], &mut self.flux[f]);
            for e in 3 * S..end {
                flux[e] = limited_flux([right[e - 2 * S], right[e - S], right[e]], [left[e - S], left[e], left[e + S]]);
            }
        }
    }

    /// The first-order flux of the state as it was through the low faces of these cells.
    #[inline(always)]
    fn lower_order<const S: usize>(&mut self, faces: &[usize]) {
        for &e in faces {
            for f in 0..FIELDS {
                self.flux[f][e] = upwind_flux(self.right[f][e - S], self.left[f][e]);
            }
        }
    }

    /// F(u), velocity and sound speed of every cell: in `right`, and the first two of `left`.
    #[inline(always)]
    fn cell_fluxes(&mut self, cells: usize, eos: &Eos<T>) {
        let end = round_up(cells);
        assert!(end <= SHEET);
        for e in 0..end {
            let of_cell = cell_flux(&cell(&self.state, e), self.shock_indicator[e], eos);
            for f in 0..FIELDS {
                self.right[f][e] = of_cell.flux[f];
            }
            self.left[0][e] = of_cell.velocity;
            self.left[1][e] = of_cell.sound_speed;
            self.pressure[e] = of_cell.pressure;
        }
    }

    /// The HLL flux through the low face of every cell three from the ends, and one face more.
    #[inline(always)]
    fn hll<const S: usize>(&mut self, cells: usize) {
        let end = 3 * S + round_up(cells - 5 * S);
        assert!(end <= SHEET);
        let [velocity, sound_speed] = [&self.left[0], &self.left[1]];
        for e in 3 * S..end {
            let speeds = wave_speeds([velocity[e - S], sound_speed[e - S]], [velocity[e], sound_speed[e]]);
            for f in 0..FIELDS {
                let (value, flux) = (&self.state[f], &self.right[f]);
                self.flux[f][e] = hll_flux([value[e - S], value[e]], [flux[e - S], flux[e]], speeds);
            }
        }
    }

    #[inline(always)]
    fn update<const S: usize>(&mut self, cells: usize, dt_over_dx: T) {
        let step = dt_over_dx * T::from_f64(0.5);
        let end = 3 * S + round_up(cells - 6 * S);
        assert!(end + S <= SHEET);
        for f in 0..FIELDS {
            let (state, flux) = (&mut self.state[f], &self.flux[f]);
            for e in 3 * S..end {
                state[e] = updated(state[e], step, flux[e], flux[e + S]);
            }
        }
    }
}

#[inline(always)]
fn cell<T: Real>(fields: &Fields<T>, e: usize) -> Cell<T> {
    [fields[0][e], fields[1][e], fields[2][e], fields[3][e], fields[4][e], fields[5][e]]
}

#[inline(always)]
const fn round_up(cells: usize) -> usize {
    cells.div_ceil(LANES) * LANES
}

//! A sheet of parallel pencils, swept at once.
//!
//! Cells lie flat in memory, `S` apart along the sweep. With S = 1 whole rows follow each other and the few values
//! that mix two rows are never used, so that a sweep along x needs no transposition; with S = 8 or 11 that many
//! pencils lie side by side. Either way each stage is one loop over consecutive values, which vectorizes.
//!
//! A scheme is a file of stages, from the cells' values to the flux through the low face of each.

mod hancock;
mod hll;
mod relaxing_tvd;

use super::SweepParameters;
use crate::device::isa::Kernel;
use crate::layout::FIELDS;
use crate::point::dual_energy::{Cell, at_front, is_front, shock_indicator};
use crate::point::eos::Eos;
use crate::point::primitive::primitive;
use crate::point::relaxing_tvd::updated;
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
    /// The same with this pass, by one neighbour on either side, and by two.
    beside: [T; SHEET],
    seen: [T; SHEET],
    /// [`crate::point::ppm::flattening`] of each cell.
    flattening: [T; SHEET],
    /// What a scheme keeps of each cell between its stages; first of all its primitive values.
    work: [Fields<T>; 4],
    /// The first-order fluxes of a redo, face by face.
    first_order: Vec<Cell<T>>,
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
            beside: zero,
            seen: zero,
            flattening: zero,
            work: [fields; 4],
            first_order: Vec::new(),
        })
    }

    /// The primitive values of every cell.
    #[inline(always)]
    fn primitives(&mut self, cells: usize, eos: &Eos<T>) {
        let end = round_up(cells);
        assert!(end <= SHEET);
        let [primitives, ..] = &mut self.work;
        for e in 0..end {
            let w = primitive(&cell(&self.state, e), self.shock_indicator[e], eos);
            for f in 0..FIELDS {
                primitives[f][e] = w[f];
            }
        }
    }

    /// What its neighbours say about the energy of every cell but the outermost.
    #[inline(always)]
    fn survey<const S: usize>(&mut self, cells: usize, eos: &Eos<T>) {
        let [[density, along, across, other, pressure, _], ..] = &self.work;
        for e in inner::<S>(cells, 1) {
            let change = [along, across, other].map(|v| v[e + S] - v[e - S]);
            let pressures = [pressure[e - S], pressure[e], pressure[e + S]];
            self.beside[e] = shock_indicator(self.shock_indicator[e], density[e], change, pressures, eos);
        }
        for e in inner::<S>(cells, REACH) {
            let velocities = [along[e - 2 * S], along[e - S], along[e], along[e + S], along[e + 2 * S]];
            let front = is_front(velocities, density[e], pressure[e]);
            self.seen[e] = if front { at_front(self.beside[e]) } else { self.beside[e] };
        }
    }

    #[inline(always)]
    fn update<const S: usize>(&mut self, cells: usize, dt_over_dx: T) {
        let step = dt_over_dx * T::from_f64(0.5);
        for f in 0..FIELDS {
            let (state, flux) = (&mut self.state[f], &self.flux[f]);
            for e in inner::<S>(cells, REACH) {
                state[e] = updated(state[e], step, flux[e], flux[e + S]);
            }
        }
        for e in inner::<S>(cells, REACH) {
            self.shock_indicator[e] = self.seen[e];
        }
    }
}

/// The pass of a scheme over a sheet whose cells are `S` apart along the sweep.
pub(super) struct Advance<'a, T, const S: usize> {
    /// Its cells `3S..cells − 3S` are advanced; its `flux` then holds the fluxes through their low faces and the high face
    /// of the last.
    pub(super) sheet: &'a mut Sheet<T>,
    /// How many cells it holds.
    pub(super) cells: usize,
    /// Of the sweep.
    pub(super) parameters: &'a SweepParameters<T>,
    /// The cells whose low face takes the first-order flux.
    pub(super) first_order: &'a [usize],
}

impl<T: Real, const S: usize> Kernel for Advance<'_, T, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let eos = self.parameters.eos;
        let monatomic = T::from_f64(5.0 / 3.0);
        // the compiler sees a constant exponent in the one copy and leaves out the general power
        if eos.gamma == monatomic { self.run_with(&Eos { gamma: monatomic, ..eos }) } else { self.run_with(&eos) }
    }
}

impl<T: Real, const S: usize> Advance<'_, T, S> {
    #[inline(always)]
    fn run_with(self, eos: &Eos<T>) {
        let Self { sheet, cells, parameters: &SweepParameters { scheme, dt_over_dx, .. }, first_order } = self;
        sheet.primitives(cells, eos);
        sheet.survey::<S>(cells, eos);
        match scheme {
            Scheme::RelaxingTvd => {
                sheet.split(cells, eos);
                sheet.split_at_half_time::<S>(cells, dt_over_dx, eos);
                sheet.limit::<S>(cells);
                sheet.lower_order::<S>(first_order);
            }
            Scheme::Hll => {
                sheet.cell_fluxes(cells, eos);
                sheet.hll::<S>(cells);
            }
            Scheme::Ppm | Scheme::Plm => {
                sheet.first_order_fluxes::<S>(first_order, eos);
                sheet.slopes::<S>(cells);
                match scheme {
                    Scheme::Ppm => sheet.parabolas::<S>(cells),
                    _ => sheet.lines::<S>(cells),
                }
                sheet.predict::<S>(cells, dt_over_dx, eos);
                sheet.hllc::<S>(cells, eos);
                sheet.hll_along_shocks::<S>(cells, eos);
                sheet.take_first_order(first_order);
            }
        }
        sheet.update::<S>(cells, dt_over_dx);
    }
}

/// The cells from the `inner`-th to the `inner`-th before the last, `S` apart, and whole vectors of them.
#[inline(always)]
fn inner<const S: usize>(cells: usize, inner: usize) -> std::ops::Range<usize> {
    let end = inner * S + round_up(cells - 2 * inner * S);
    assert!(end + inner * S <= SHEET);
    inner * S..end
}

/// The cells whose low faces a pass needs: those three from the ends, and one more.
#[inline(always)]
fn low_faces<const S: usize>(cells: usize) -> std::ops::Range<usize> {
    let end = 3 * S + round_up(cells - 5 * S);
    assert!(end + S <= SHEET);
    3 * S..end
}

#[inline(always)]
fn cell<T: Real>(fields: &Fields<T>, e: usize) -> Cell<T> {
    [fields[0][e], fields[1][e], fields[2][e], fields[3][e], fields[4][e], fields[5][e]]
}

#[inline(always)]
const fn round_up(cells: usize) -> usize {
    cells.div_ceil(LANES) * LANES
}

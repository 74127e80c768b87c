//! One hydro sweep of one level.

use crate::book::Book;
use crate::state::State;
use crate::step::{Direction, Physics};
use comove_kernels::hydro_sweep::{SweepParameters, hydro_sweep};
use comove_kernels::{GroupReport, Real};

/// Sweeps the groups of a level over `dt`: from `state.fluid` to their slots of `state.next`, the fluxes through the
/// planes that flux correction needs to `state.fluxes`.
///
/// * `coarse`: the part of the coarser level's step that has passed, where that level is ahead; its new state must be
///   in `state.fluid`.
pub fn sweep_level<T: Real>(
    state: &mut State<T>,
    physics: &Physics<T>,
    level: usize,
    dt: f64,
    direction: Direction,
    coarse: Option<f64>,
    book: &mut Book,
) {
    let parameters = SweepParameters {
        dt_over_dx: T::of(dt / state.cell_width(level)),
        backward: direction == Direction::Backward,
        eos: physics.eos,
    };
    let mut reports = vec![GroupReport::default(); state.tables[level].len()];
    let earlier = state.history.as_ref().zip(coarse).map(|(history, passed)| history.fluid_at(passed));
    hydro_sweep(
        &state.device,
        &state.tables[level],
        &state.flux.slots[level],
        &state.fluid,
        earlier.as_ref(),
        &mut state.next,
        &mut state.fluxes,
        &parameters,
        &mut reports,
    );
    book.add_reports(state, level, &reports);
    if direction == Direction::Backward {
        book.count_cold(level, &reports);
    }
}

//! A row of cells before and after [`synchronise`], and how the difference is booked.
//!
//! Plain loops over rows of fixed length, without closures: that is what the compiler vectorises for every
//! instruction set (docs/notes-kernels.md).

use crate::layout::{DENSITY, ENERGY, FIELDS};
use crate::point::dual_energy::{is_valid, synchronise};
use crate::point::eos::Eos;
use crate::real::Real;
use crate::report::GroupReport;

/// One value of each cell of a row, for every field: `[6, N]`.
pub(crate) type Rows<T, const N: usize> = [[T; N]; FIELDS];

const COLD: u32 = 1;
const FLOORED: u32 = 2;
const INVALID: u32 = 4;

/// `N` cells whose energy and entropy scalar agree.
pub(crate) struct SynchronisedRow<T, const N: usize> {
    /// The cells as they were.
    before: Rows<T, N>,
    /// The cells now.
    pub(crate) after: Rows<T, N>,
    /// What happened to each: bits [`COLD`], [`FLOORED`], [`INVALID`].
    unusual: [u32; N],
}

impl<T: Real, const N: usize> SynchronisedRow<T, N> {
    /// Synchronises each cell.
    #[inline(always)]
    pub(crate) fn new(before: Rows<T, N>, eos: &Eos<T>) -> Self {
        let mut after = before;
        let mut unusual = [0; N];
        for i in 0..N {
            let u = [before[0][i], before[1][i], before[2][i], before[3][i], before[4][i], before[5][i]];
            let done = synchronise(&u, eos);
            for f in 0..FIELDS {
                after[f][i] = done.cell[f];
            }
            let cold = if done.cold { COLD } else { 0 };
            let floored = if done.floored { FLOORED } else { 0 };
            let invalid = if is_valid(&done.cell) { 0 } else { INVALID };
            unusual[i] = cold | floored | invalid;
        }
        Self { before, after, unusual }
    }

    /// Adds some of the cells to their group's report, in the order given: pairs of a cell's place in this row and its
    /// offset in the group ([`crate::layout::cell`]).
    #[inline(always)]
    pub(crate) fn book(&self, cells: impl Iterator<Item = (usize, usize)>, report: &mut GroupReport) {
        if self.unusual == [0; N] {
            return;
        }
        for (i, offset) in cells {
            let unusual = self.unusual[i];
            if unusual == 0 {
                continue;
            }
            let added = |field: usize| self.after[field][i].wide() - self.before[field][i].wide();
            report.cold += unusual & COLD;
            if unusual & FLOORED != 0 {
                report.floored += 1;
                report.floor_energy += added(ENERGY);
                report.floor_mass += added(DENSITY);
            } else {
                report.energy_added += added(ENERGY);
            }
            if unusual & INVALID != 0 {
                if report.invalid == 0 {
                    report.first_invalid = offset as u32;
                }
                report.invalid += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::conserved;

    #[test]
    fn books_what_each_cell_gained_under_its_kind() {
        let eos = Eos::<f64>::new(5.0 / 3.0);
        let hot = conserved(1.0, [0.1, 0.0, 0.0], 1.0, 5.0 / 3.0);
        // kinetic energy far above the rest: the scalar decides
        let cold = [2.0, 20.0, 0.0, 0.0, 100.0, 1e-3];
        let thin = [-1.0, 0.0, 0.0, 0.0, 1.0, 1.0];
        let broken = [1.0, 0.0, f64::NAN, 0.0, 1.0, 1.0];
        let cells = [hot, cold, thin, broken, cold];
        let mut before = [[0.0; 5]; FIELDS];
        for f in 0..FIELDS {
            for i in 0..5 {
                before[f][i] = cells[i][f];
            }
        }
        let row = SynchronisedRow::new(before, &eos);
        let mut report = GroupReport::default();
        row.book([0, 1, 2].into_iter().map(|i| (i, 10 + i)), &mut report);
        assert_eq!((report.cold, report.floored, report.invalid), (1, 1, 0));
        assert_eq!(report.energy_added, row.after[ENERGY][1] - 100.0);
        assert_eq!(report.floor_mass, eos.density_floor + 1.0);
        row.book([3, 4].into_iter().map(|i| (i, 10 + i)), &mut report);
        assert_eq!((report.cold, report.invalid, report.first_invalid), (2, 1, 13));
    }
}

//! A row of cells before and after [`synchronise`], and how the difference is booked.
//!
//! Plain loops over rows of fixed length, without closures: that is what the compiler vectorises for every
//! instruction set (docs/notes/hydrodynamics.md).

use crate::layout::{DENSITY, ENERGY, FIELDS, GROUP, PATCH, cell};
use crate::level::level_topology::NONE;
use crate::level::report::GroupReport;
use crate::point::dual_energy::{is_valid, synchronise};
use crate::point::eos::Eos;
use crate::real::Real;

/// One value of each cell of a row, for every field: `[6, N]`.
pub(crate) type Rows<T, const N: usize> = [[T; N]; FIELDS];

const COLD: u32 = 1;
const FLOORED: u32 = 2;
const INVALID: u32 = 4;
const NEGATIVE: u32 = 8;

/// `N` cells whose energy and entropy scalar agree.
pub(crate) struct SynchronisedRow<T, const N: usize> {
    /// The cells as they were.
    before: Rows<T, N>,
    /// The cells now.
    pub(crate) after: Rows<T, N>,
    /// What happened to each: bits [`COLD`], [`FLOORED`], [`INVALID`], [`NEGATIVE`].
    unusual: [u32; N],
}

impl<T: Real, const N: usize> SynchronisedRow<T, N> {
    /// Synchronises each cell, by its shock indicator ([`mod@crate::point::dual_energy`]).
    #[inline(always)]
    pub(crate) fn new(before: Rows<T, N>, shock_indicator: &[T; N], eos: &Eos<T>) -> Self {
        let mut after = before;
        let mut unusual = [0; N];
        for i in 0..N {
            let u = [before[0][i], before[1][i], before[2][i], before[3][i], before[4][i], before[5][i]];
            let done = synchronise(&u, shock_indicator[i], eos);
            for f in 0..FIELDS {
                after[f][i] = done.cell[f];
            }
            let cold = if done.cold { COLD } else { 0 };
            let floored = if done.floored { FLOORED } else { 0 };
            let invalid = if is_valid(&done.cell) { 0 } else { INVALID };
            let negative = if done.negative { NEGATIVE } else { 0 };
            unusual[i] = cold | floored | invalid | negative;
        }
        Self { before, after, unusual }
    }

    /// Adds the cells to their group's report, in order. `offsets`: of each in the group
    /// ([`crate::layout::cell`]), [`NONE`] for one that does not count. Whether one of them should not have occurred:
    /// see [`SynchronisedRow::marks`].
    #[inline(always)]
    pub(crate) fn book(&self, offsets: &[u32; N], report: &mut GroupReport) -> bool {
        let mut seen = 0;
        let mut cold = 0;
        let mut negative = 0;
        for i in 0..N {
            let unusual = if offsets[i] == NONE { 0 } else { self.unusual[i] };
            seen |= unusual;
            cold += unusual & COLD;
            negative += unusual & NEGATIVE;
        }
        report.cold += cold;
        report.negative += negative / NEGATIVE;
        let unexpected = seen & (FLOORED | INVALID) != 0;
        if unexpected {
            self.book_floored_and_invalid(offsets, report);
        } else if seen != 0 {
            // what is not cold keeps its energy and adds nothing
            let mut added = [0.0; N];
            for i in 0..N {
                let energy = self.after[ENERGY][i].as_f64() - self.before[ENERGY][i].as_f64();
                added[i] = if offsets[i] == NONE { 0.0 } else { energy };
            }
            for energy in added {
                report.energy_added += energy;
            }
        }
        unexpected
    }

    /// The cells that had to be floored or are not valid even so: bit i for cell i.
    #[cold]
    pub(crate) fn marks(&self, offsets: &[u32; N]) -> u16 {
        let marked = |i: &usize| offsets[*i] != NONE && self.unusual[*i] & (FLOORED | INVALID) != 0;
        (0..N).filter(marked).fold(0, |marks, i| marks | 1 << i)
    }

    /// What [`SynchronisedRow::book`] adds where cells occur that should not: the energy and those cells.
    #[cold]
    fn book_floored_and_invalid(&self, offsets: &[u32; N], report: &mut GroupReport) {
        for i in (0..N).filter(|&i| offsets[i] != NONE) {
            let energy = self.after[ENERGY][i].as_f64() - self.before[ENERGY][i].as_f64();
            if self.unusual[i] & FLOORED != 0 {
                if report.floored == 0 {
                    report.first_floored = offsets[i];
                }
                report.floored += 1;
                report.floor_energy += energy;
                report.floor_mass += self.after[DENSITY][i].as_f64() - self.before[DENSITY][i].as_f64();
            } else {
                report.energy_added += energy;
            }
            if self.unusual[i] & INVALID != 0 {
                if report.invalid == 0 {
                    report.first_invalid = offsets[i];
                }
                report.invalid += 1;
            }
        }
    }
}

/// Offsets of the cells of row (j, k) of a group, [`NONE`] for those whose patch is not a leaf.
#[inline(always)]
pub(crate) fn leaf_offsets(leaves: u8, j: usize, k: usize) -> [u32; GROUP] {
    let octant = 2 * (j / PATCH) + 4 * (k / PATCH);
    let first = cell(0, j, k) as u32;
    let mut offsets = [NONE; GROUP];
    for half in 0..2 {
        if leaves >> (octant + half) & 1 == 1 {
            for i in half * PATCH..(half + 1) * PATCH {
                offsets[i] = first + i as u32;
            }
        }
    }
    offsets
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
        let row = SynchronisedRow::new(before, &[0.0; 5], &eos);
        let mut report = GroupReport::default();
        assert!(row.book(&[10, 11, 12, NONE, NONE], &mut report));
        assert_eq!((report.cold, report.floored, report.invalid, report.negative), (1, 1, 0, 1));
        assert_eq!((report.first_floored, row.marks(&[10, 11, 12, NONE, NONE])), (12, 0b100));
        assert_eq!(report.energy_added, row.after[ENERGY][1] - 100.0);
        assert_eq!(report.floor_mass, eos.density_floor + 1.0);
        assert!(
            row.book(&[NONE, NONE, NONE, 13, 14], &mut report)
                && !row.book(&[10, 11, NONE, NONE, 14], &mut GroupReport::default())
        );
        assert_eq!((report.cold, report.invalid, report.first_invalid), (2, 1, 13));
    }
}

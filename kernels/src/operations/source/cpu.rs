//! Sources on the host processor: one task a group, row by row.

use super::SourceReport;
use crate::device::buffer::SlotWriter;
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::layout::{ENERGY, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, cell};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::operations::synchronised_row::{Rows, SynchronisedRow, leaf_offsets};
use crate::point::dual_energy::UNSEEN;
use crate::point::eos::Eos;
use crate::point::relaxation::Relaxation;
use crate::point::source::{PointSource, after};
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn apply_source<T: Real, S: PointSource<T>>(
    isa: Isa,
    tables: &LevelTopology,
    fluid: &mut [T],
    source: &S,
    eos: &Eos<T>,
) -> Vec<SourceReport> {
    let fluid = SlotWriter::new(fluid, GROUP_VALUES);
    let act = |g: usize| {
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let fluid = unsafe { fluid.slot(tables.slots[g]) };
        isa.run(GroupSource { leaves: tables.leaves[g], fluid, source, eos })
    };
    (0..tables.len()).into_par_iter().map(act).collect()
}

/// A source in one group.
struct GroupSource<'a, T, S> {
    leaves: u8,
    /// `[6, 16, 16, 16]`
    fluid: &'a mut [T],
    source: &'a S,
    eos: &'a Eos<T>,
}

compiled_here!(GroupSource<'static, f32, Relaxation<f32>>, GroupSource<'static, f64, Relaxation<f64>>);

impl<T: Real, S: PointSource<T>> Kernel for GroupSource<'_, T, S> {
    type Output = SourceReport;

    #[inline(always)]
    fn run(self) -> SourceReport {
        let monatomic = T::from_f64(5.0 / 3.0);
        // a constant exponent for the common gas, as in the sweep
        let eos = if self.eos.gamma == monatomic { Eos { gamma: monatomic, ..*self.eos } } else { *self.eos };
        let mut report = SourceReport::default();
        for row in 0..GROUP * GROUP {
            let (j, k) = (row % GROUP, row / GROUP);
            let first = cell(0, j, k);
            let leaf = leaf_offsets(self.leaves, j, k);
            let mut row: Rows<T, GROUP> = [[T::zero(); GROUP]; FIELDS];
            for i in 0..GROUP {
                let before = std::array::from_fn(|f| self.fluid[f * GROUP_CELLS + first + i]);
                let (after, part) = after(&before, self.source, &eos);
                for f in 0..FIELDS {
                    row[f][i] = after[f];
                }
                if leaf[i] != NONE {
                    report.energy += after[ENERGY].as_f64() - before[ENERGY].as_f64();
                    if part.as_f64() > report.relative_change {
                        (report.relative_change, report.cell) = (part.as_f64(), leaf[i]);
                    }
                }
            }
            let row = SynchronisedRow::new(row, &[T::from_f64(UNSEEN); GROUP], &eos);
            for f in 0..FIELDS {
                self.fluid[f * GROUP_CELLS + first..][..GROUP].copy_from_slice(&row.after[f]);
            }
            row.book(&leaf, &mut report.report);
        }
        report
    }
}

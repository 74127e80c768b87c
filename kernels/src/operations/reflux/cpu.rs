//! Flux correction on the host: parallel over coarse groups.

use super::faces::{CELLS, Changes, FaceCells, add_changes, take_changes};
use super::{CoarseFineFace, RefluxTables};
use crate::device::buffer::SlotWriter;
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::layout::{DENSITY, ENTROPY, FACE_CELLS, FIELDS, FLUX_PLANE_VALUES, GROUP_CELLS, GROUP_VALUES, PATCH};
use crate::level::report::GroupReport;
use crate::operations::synchronised_row::SynchronisedRow;
use crate::point::dual_energy::{UNSEEN, on_adiabat};
use crate::point::eos::Eos;
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn reflux<T: Real>(
    isa: Isa,
    tables: &RefluxTables,
    fluid: &mut [T],
    fluxes: &[T],
    dt_over_dx: T,
    fine_share: T,
    eos: &Eos<T>,
) -> Vec<(u32, GroupReport)> {
    let pool = SlotWriter::new(fluid, GROUP_VALUES);
    (0..tables.groups.len())
        .into_par_iter()
        .map(|n| {
            let start = if n == 0 { 0 } else { tables.groups[n - 1].end };
            let group = tables.groups[n];
            // SAFETY: every entry of `groups` names another slot.
            let fluid = unsafe { pool.slot(group.slot) };
            let faces = &tables.faces[start as usize..group.end as usize];
            (group.index, isa.run(GroupCorrection { faces, fluid, fluxes, dt_over_dx, fine_share, eos }))
        })
        .collect()
}

/// The correction of one coarse group.
struct GroupCorrection<'a, T> {
    faces: &'a [CoarseFineFace],
    /// `[6, 16, 16, 16]`
    fluid: &'a mut [T],
    /// The pool, `[plane, 6, 16, 16]`.
    fluxes: &'a [T],
    dt_over_dx: T,
    fine_share: T,
    eos: &'a Eos<T>,
}

compiled_here!(GroupCorrection<'static, f32>, GroupCorrection<'static, f64>);

impl<T: Real> Kernel for GroupCorrection<'_, T> {
    type Output = GroupReport;

    #[inline(always)]
    fn run(mut self) -> GroupReport {
        let mut changes = [[T::zero(); GROUP_CELLS]; 3];
        let mut density_before = [T::zero(); GROUP_CELLS];
        density_before.copy_from_slice(&self.fluid[DENSITY * GROUP_CELLS..][..GROUP_CELLS]);
        for f in 0..FIELDS {
            self.correct(f, &mut changes, &density_before);
        }
        let eos = *self.eos;
        let monatomic = T::from_f64(5.0 / 3.0);
        // a constant exponent for the common gas, as in the sweep
        if eos.gamma == monatomic { self.synchronise(&Eos { gamma: monatomic, ..eos }) } else { self.synchronise(&eos) }
    }
}

impl<T: Real> GroupCorrection<'_, T> {
    /// Corrects one field. A cell to which that would leave no entropy keeps its adiabat, for the density that it has by then and the one
    /// that it had before: the scalar is no conserved quantity, and its energy gain is booked with the cold cells'.
    #[inline(always)]
    fn correct(&mut self, f: usize, changes: &mut Changes<T>, density_before: &[T; GROUP_CELLS]) {
        let plane = |n: u32| &self.fluxes[n as usize * FLUX_PLANE_VALUES + f * FACE_CELLS..][..FACE_CELLS];
        add_changes(self.faces, plane, self.dt_over_dx, self.fine_share, changes);
        take_changes(self.faces, changes, |c, change| {
            let before = self.fluid[f * GROUP_CELLS + c];
            let after = before + change;
            self.fluid[f * GROUP_CELLS + c] = if f == ENTROPY && after <= T::zero() {
                on_adiabat(before, density_before[c], self.fluid[DENSITY * GROUP_CELLS + c])
            } else {
                after
            };
        });
    }

    /// Makes energy and entropy scalar agree beside every face, in order: a cell at an edge is met once a face.
    #[inline(always)]
    fn synchronise(&mut self, eos: &Eos<T>) -> GroupReport {
        let mut report = GroupReport::default();
        for face in self.faces {
            let place = FaceCells::of(face);
            let mut offsets = [0; CELLS];
            for n in 0..CELLS {
                offsets[n] = place.cell(n % PATCH, n / PATCH) as u32;
            }
            let mut cells = [[T::zero(); CELLS]; FIELDS];
            for f in 0..FIELDS {
                for n in 0..CELLS {
                    cells[f][n] = self.fluid[f * GROUP_CELLS + offsets[n] as usize];
                }
            }
            let row = SynchronisedRow::new(cells, &[T::from_f64(UNSEEN); CELLS], eos);
            for f in 0..FIELDS {
                for n in 0..CELLS {
                    self.fluid[f * GROUP_CELLS + offsets[n] as usize] = row.after[f][n];
                }
            }
            row.book(&offsets, &mut report);
        }
        report
    }
}

//! Flux correction on the host: parallel over coarse groups.

use super::{CoarseFineFace, RefluxTables};
use crate::device::buffer::SlotWriter;
use crate::device::isa::{Isa, Kernel};
use crate::layout::{
    DENSITY, ENTROPY, FACE_CELLS, FIELDS, FLUX_PLANE_VALUES, GROUP, GROUP_CELLS, GROUP_VALUES, PATCH, cell,
    octant_origin,
};
use crate::level::report::GroupReport;
use crate::operations::potential_ghosts::{face_axes, strides};
use crate::operations::synchronised_row::SynchronisedRow;
use crate::point::dual_energy::{UNSEEN, on_adiabat};
use crate::point::eos::Eos;
use crate::point::symmetric_sum;
use crate::real::Real;
use rayon::prelude::*;

/// Coarse cells beside a face.
const CELLS: usize = PATCH * PATCH;

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

/// What the faces across each axis add to the cells of a group, one field at a time.
type Changes<T> = [[T; GROUP_CELLS]; 3];

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
    /// u ∓= Δt/h (share ⟨F_fine⟩ − F_coarse) for one field, minus where the face is the cell's high one. A cell at an edge is
    /// corrected along two or three axes: their sum does not depend on the axes' order.
    ///
    /// A cell to which that would leave no entropy keeps its adiabat, for the density that it has by then and the one
    /// that it had before: the scalar is no conserved quantity, and its energy gain is booked with the cold cells'.
    #[inline(always)]
    fn correct(&mut self, f: usize, changes: &mut Changes<T>, density_before: &[T; GROUP_CELLS]) {
        for face in self.faces {
            let place = FaceCells::of(face);
            let factor = if face.high { -self.dt_over_dx } else { self.dt_over_dx };
            let quarter = T::from_f64(0.25) * self.fine_share;
            let plane = |n: u32| &self.fluxes[n as usize * FLUX_PLANE_VALUES + f * FACE_CELLS..][..FACE_CELLS];
            let (coarse, fine) = (plane(face.coarse_plane), plane(face.fine_plane));
            for b in 0..PATCH {
                let low = &fine[2 * b * GROUP..][..GROUP];
                let high = &fine[(2 * b + 1) * GROUP..][..GROUP];
                let coarse = &coarse[(place.origin[1] + b) * GROUP + place.origin[0]..][..PATCH];
                for a in 0..PATCH {
                    // along the diagonals: the same bits when the face is mirrored or its axes are exchanged
                    let four = (low[2 * a] + high[2 * a + 1]) + (low[2 * a + 1] + high[2 * a]);
                    changes[usize::from(face.axis)][place.cell(a, b)] += factor * (quarter * four - coarse[a]);
                }
            }
        }
        for face in self.faces {
            let place = FaceCells::of(face);
            for n in 0..CELLS {
                let c = place.cell(n % PATCH, n / PATCH);
                // what a face has added must not be added by the next one that meets the cell
                let [x, y, z] = changes.each_mut().map(|axis| std::mem::replace(&mut axis[c], T::zero()));
                let before = self.fluid[f * GROUP_CELLS + c];
                let after = before + symmetric_sum::of_three(x, y, z);
                self.fluid[f * GROUP_CELLS + c] = if f == ENTROPY && after <= T::zero() {
                    on_adiabat(before, density_before[c], self.fluid[DENSITY * GROUP_CELLS + c])
                } else {
                    after
                };
            }
        }
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

/// The 8×8 coarse cells beside a face, in their group.
struct FaceCells {
    /// Offset of the first.
    first: usize,
    /// Its coordinates along the face's axes a and b.
    origin: [usize; 2],
    /// Distance in memory along a and b.
    strides: [usize; 2],
}

impl FaceCells {
    #[inline(always)]
    fn of(face: &CoarseFineFace) -> Self {
        let axis = usize::from(face.axis);
        let mut corner = octant_origin(usize::from(face.octant));
        let [a, b] = face_axes(axis);
        let origin = [corner[a], corner[b]];
        corner[axis] += if face.high { PATCH - 1 } else { 0 };
        Self { first: cell(corner[0], corner[1], corner[2]), origin, strides: [strides(GROUP)[a], strides(GROUP)[b]] }
    }

    /// Offset of the cell at (a, b) of the patch's face.
    #[inline(always)]
    fn cell(&self, a: usize, b: usize) -> usize {
        self.first + a * self.strides[0] + b * self.strides[1]
    }
}

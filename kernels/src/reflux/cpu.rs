//! Flux correction on the host: parallel over coarse groups.

use super::{CoarseFineFace, RefluxTables};
use crate::buffer::SlotWriter;
use crate::isa::{Isa, Kernel};
use crate::layout::{
    DENSITY, ENTROPY, FACE_CELLS, FIELDS, FLUX_PLANE_VALUES, GROUP, GROUP_CELLS, GROUP_VALUES, PATCH, cell,
    octant_origin,
};
use crate::point::eos::Eos;
use crate::potential_ghosts::{face_axes, strides};
use crate::real::Real;
use crate::report::GroupReport;
use crate::synchronised_row::SynchronisedRow;
use rayon::prelude::*;

/// Coarse cells beside a face.
const CELLS: usize = PATCH * PATCH;

pub(super) fn reflux<T: Real>(
    isa: Isa,
    tables: &RefluxTables,
    fluid: &mut [T],
    fluxes: &[T],
    dt_over_dx: T,
    eos: &Eos<T>,
    reports: &mut [GroupReport],
) {
    let pool = SlotWriter::new(fluid, GROUP_VALUES);
    let done: Vec<(usize, GroupReport)> = (0..tables.groups.len())
        .into_par_iter()
        .map(|n| {
            let start = if n == 0 { 0 } else { tables.groups[n - 1].2 };
            let (group, slot, end) = tables.groups[n];
            // SAFETY: every entry of `groups` names another slot.
            let fluid = unsafe { pool.slot(slot) };
            let faces = &tables.faces[start..end];
            (group, isa.run(GroupCorrection { faces, fluid, fluxes, dt_over_dx, eos }))
        })
        .collect();
    for (group, report) in done {
        reports[group].add(&report);
    }
}

/// The correction of one coarse group.
struct GroupCorrection<'a, T> {
    faces: &'a [CoarseFineFace],
    /// `[6, 16, 16, 16]`
    fluid: &'a mut [T],
    /// The pool, `[plane, 6, 16, 16]`.
    fluxes: &'a [T],
    dt_over_dx: T,
    eos: &'a Eos<T>,
}

impl<T: Real> Kernel for GroupCorrection<'_, T> {
    type Output = GroupReport;

    #[inline(always)]
    fn run(mut self) -> GroupReport {
        for face in self.faces {
            self.correct(face);
        }
        let eos = *self.eos;
        let monatomic = T::of(5.0 / 3.0);
        // a constant exponent for the common gas, as in the sweep
        if eos.gamma == monatomic { self.synchronise(&Eos { gamma: monatomic, ..eos }) } else { self.synchronise(&eos) }
    }
}

impl<T: Real> GroupCorrection<'_, T> {
    /// u ∓= Δt/h (⟨F_fine⟩ − F_coarse), minus where the face is the cell's high one. A cell to which that would leave no
    /// entropy keeps its adiabat: the scalar is no conserved quantity, and its energy gain is booked with the cold
    /// cells'.
    #[inline(always)]
    fn correct(&mut self, face: &CoarseFineFace) {
        let place = Place::of(face);
        let mut before = [[T::zero(); 2]; CELLS];
        for n in 0..CELLS {
            let c = place.cell(n % PATCH, n / PATCH);
            before[n] = [self.fluid[DENSITY * GROUP_CELLS + c], self.fluid[ENTROPY * GROUP_CELLS + c]];
        }
        let factor = if face.high { -self.dt_over_dx } else { self.dt_over_dx };
        let plane = |n: u32, f: usize| {
            let first = n as usize * FLUX_PLANE_VALUES + f * FACE_CELLS;
            &self.fluxes[first..first + FACE_CELLS]
        };
        for f in 0..FIELDS {
            let (coarse, fine) = (plane(face.coarse_plane, f), plane(face.fine_plane, f));
            let fluid = &mut self.fluid[f * GROUP_CELLS..][..GROUP_CELLS];
            for b in 0..PATCH {
                let low = &fine[2 * b * GROUP..][..GROUP];
                let high = &fine[(2 * b + 1) * GROUP..][..GROUP];
                let coarse = &coarse[(place.origin[1] + b) * GROUP + place.origin[0]..][..PATCH];
                let mut change = [T::zero(); PATCH];
                for a in 0..PATCH {
                    let four = (low[2 * a] + low[2 * a + 1]) + (high[2 * a] + high[2 * a + 1]);
                    change[a] = factor * (T::of(0.25) * four - coarse[a]);
                }
                for a in 0..PATCH {
                    fluid[place.cell(a, b)] += change[a];
                }
            }
        }
        for n in 0..CELLS {
            let c = place.cell(n % PATCH, n / PATCH);
            let [density, entropy] = before[n];
            if self.fluid[ENTROPY * GROUP_CELLS + c] <= T::zero() {
                self.fluid[ENTROPY * GROUP_CELLS + c] = entropy * (self.fluid[DENSITY * GROUP_CELLS + c] / density);
            }
        }
    }

    /// Makes energy and entropy scalar agree beside every face, in order: a cell at an edge is met once a face.
    #[inline(always)]
    fn synchronise(&mut self, eos: &Eos<T>) -> GroupReport {
        let mut report = GroupReport::default();
        for face in self.faces {
            let place = Place::of(face);
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
            let row = SynchronisedRow::new(cells, eos);
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

/// Where the 8×8 coarse cells beside a face lie in their group.
struct Place {
    /// Offset of the first.
    first: usize,
    /// Its coordinates along the face's axes a and b.
    origin: [usize; 2],
    /// Distance in memory along a and b.
    strides: [usize; 2],
}

impl Place {
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

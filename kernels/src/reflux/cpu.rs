//! Flux correction on the host: parallel over coarse groups.

use super::{CoarseFineFace, RefluxTables};
use crate::buffer::SlotWriter;
use crate::layout::{
    FACE_CELLS, FIELDS, FLUX_PLANE_VALUES, GROUP, GROUP_CELLS, GROUP_VALUES, PATCH, cell, octant_origin,
};
use crate::point::dual_energy::{is_valid, synchronise};
use crate::point::eos::Eos;
use crate::real::Real;
use crate::report::GroupReport;
use rayon::prelude::*;

pub(super) fn reflux<T: Real>(
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
            let faces = &tables.faces[start..end];
            // SAFETY: every entry of `groups` names another slot.
            let fluid = unsafe { pool.slot(slot) };
            for face in faces {
                correct(face, fluid, fluxes, dt_over_dx);
            }
            let mut report = GroupReport::default();
            for face in faces {
                synchronise_face(face, fluid, eos, &mut report);
            }
            (group, report)
        })
        .collect();
    for (group, report) in done {
        reports[group].add(&report);
    }
}

/// Offsets of the 8×8 coarse cells beside a face, with their place (a, b) on it.
fn face_cells(face: &CoarseFineFace) -> impl Iterator<Item = (usize, usize, usize)> {
    let axis = usize::from(face.axis);
    let origin = octant_origin(usize::from(face.octant));
    let layer = origin[axis] + if face.high { PATCH - 1 } else { 0 };
    let (u, v) = [(1, 2), (0, 2), (0, 1)][axis];
    (0..PATCH * PATCH).map(move |n| {
        let (a, b) = (n % PATCH + origin[u], n / PATCH + origin[v]);
        let mut at = [layer; 3];
        at[u] = a;
        at[v] = b;
        (cell(at[0], at[1], at[2]), a, b)
    })
}

/// u ∓= Δt/h (⟨F_fine⟩ − F_coarse), minus where the face is the cell's high one.
fn correct<T: Real>(face: &CoarseFineFace, fluid: &mut [T], fluxes: &[T], dt_over_dx: T) {
    let plane = |n: u32| &fluxes[n as usize * FLUX_PLANE_VALUES..][..FLUX_PLANE_VALUES];
    let (coarse, fine) = (plane(face.coarse_plane), plane(face.fine_plane));
    let factor = if face.high { -dt_over_dx } else { dt_over_dx };
    for (at, a, b) in face_cells(face) {
        let (i, j) = (2 * (a % PATCH), 2 * (b % PATCH));
        for f in 0..FIELDS {
            let four = |o: usize| fine[f * FACE_CELLS + j * GROUP + i + o];
            let mean = T::of(0.25) * ((four(0) + four(1)) + (four(GROUP) + four(GROUP + 1)));
            fluid[f * GROUP_CELLS + at] += factor * (mean - coarse[f * FACE_CELLS + b * GROUP + a]);
        }
    }
}

fn synchronise_face<T: Real>(face: &CoarseFineFace, fluid: &mut [T], eos: &Eos<T>, report: &mut GroupReport) {
    for (at, _, _) in face_cells(face) {
        let before: [T; FIELDS] = std::array::from_fn(|f| fluid[f * GROUP_CELLS + at]);
        let done = synchronise(&before, eos);
        let energy = done.cell[4].wide() - before[4].wide();
        if done.floored {
            report.floored += 1;
            report.floor_energy += energy;
            report.floor_mass += done.cell[0].wide() - before[0].wide();
        } else {
            report.energy_added += energy;
        }
        if !is_valid(&done.cell) {
            if report.invalid == 0 {
                report.first_invalid = at as u32;
            }
            report.invalid += 1;
        }
        for f in 0..FIELDS {
            fluid[f * GROUP_CELLS + at] = done.cell[f];
        }
    }
}

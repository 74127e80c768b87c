//! Mass sheets on the host processor: every coarse group pulls, in a fixed order.

use crate::device::buffer::SlotWriter;
use crate::layout::{CENTRE, GROUP, GROUP_CELLS, OCTANTS, PATCH, cell, octant_origin};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::operations::group_poisson::FACE_GRADIENTS;
use crate::operations::potential_ghosts::{face_axes, face_direction, strides};
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn mass_sheet<T: Real>(tables: &LevelTopology, h: f64, potential: &[T], gradients: &[T], sheet: &mut [T]) {
    let sheet = SlotWriter::new(sheet, GROUP_CELLS);
    (0..tables.len()).into_par_iter().for_each(|g| {
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let own = unsafe { sheet.slot(tables.slots[g]) };
        for (o, &child) in tables.children_of(g).iter().enumerate() {
            let is_leaf = tables.leaves[g] >> o & 1 == 1;
            // what is refined elsewhere holds what came from there
            if is_leaf || child != NONE {
                clear(o, own);
            }
            if child != NONE {
                // SAFETY: a child has one parent and lies on another level, so no other task touches its slot.
                restrict(unsafe { sheet.slot(child) }, o, own);
            }
        }
        for o in 0..OCTANTS {
            for (face, &child) in tables.beyond_of(g, o).iter().enumerate() {
                if child != NONE {
                    let gradients = &gradients[child as usize * FACE_GRADIENTS..][..FACE_GRADIENTS];
                    add_face(tables, g, o, face, h, potential, gradients, own);
                }
            }
        }
    });
}

/// Fills a patch with zeros.
fn clear<T: Real>(octant: usize, group: &mut [T]) {
    let [x, y, z] = octant_origin(octant);
    for (j, k) in (0..PATCH).flat_map(|k| (0..PATCH).map(move |j| (j, k))) {
        group[cell(x, y + j, z + k)..][..PATCH].fill(T::zero());
    }
}

/// Adds the mean of a finer group to the patch it refines.
fn restrict<T: Real>(fine: &[T], octant: usize, coarse: &mut [T]) {
    let eighth = T::from_f64(0.125);
    let [x, y, z] = octant_origin(octant);
    for k in 0..PATCH {
        for j in 0..PATCH {
            for i in 0..PATCH {
                let row = |dy: usize, dz: usize| {
                    let first = cell(2 * i, 2 * j + dy, 2 * k + dz);
                    fine[first] + fine[first + 1]
                };
                let mean = eighth * ((row(0, 0) + row(1, 0)) + (row(0, 1) + row(1, 1)));
                coarse[cell(x + i, y + j, z + k)] += mean;
            }
        }
    }
}

/// Adds the sheet on `face` of the patch at `octant`: beyond that face lies a refined patch.
fn add_face<T: Real>(
    tables: &LevelTopology,
    g: usize,
    octant: usize,
    face: usize,
    h: f64,
    potential: &[T],
    gradients: &[T],
    sheet: &mut [T],
) {
    let (axis, upper) = (face / 2, face & 1 == 1);
    let origin = octant_origin(octant);
    // the layer of this patch at the face, and the refined patch's layer beyond it
    let layer = origin[axis] + if upper { PATCH - 1 } else { 0 };
    let within = if upper { layer + 1 < GROUP } else { layer > 0 };
    let beyond = if upper { (layer + 1) % GROUP } else { (layer + GROUP - 1) % GROUP };
    let other = tables.row(g)[if within { CENTRE } else { face_direction(face) }];
    let outside = &potential[tables.slots[g] as usize * GROUP_CELLS..][..GROUP_CELLS];
    let inside = &potential[other as usize * GROUP_CELLS..][..GROUP_CELLS];

    let [a, b] = face_axes(axis);
    let stride = strides(GROUP);
    let (inverse_h, facing) = (T::from_f64(1.0 / h), face ^ 1);
    for n in 0..PATCH {
        for m in 0..PATCH {
            let along = (origin[a] + m) * stride[a] + (origin[b] + n) * stride[b];
            let cell = along + layer * stride[axis];
            let coarse = inverse_h * (outside[cell] - inside[along + beyond * stride[axis]]);
            let fine = gradients[(facing * PATCH + n) * PATCH + m];
            sheet[cell] -= inverse_h * (coarse - fine);
        }
    }
}

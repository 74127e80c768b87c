//! Restriction, prolongation and flux correction of scalars on the host, parallel over groups.

use super::cells::ScalarCells;
use crate::device::buffer::SlotWriter;
use crate::layout::{FACE_CELLS, GROUP_CELLS, PATCH, cell, octant_origin};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::operations::reflux::RefluxTables;
use crate::operations::reflux::faces::{Changes, add_changes, take_changes};
use crate::point::symmetric_sum;
use crate::real::Real;
use rayon::prelude::*;

/// Cells of a patch.
const PATCH_CELLS: usize = PATCH * PATCH * PATCH;

pub(super) fn restrict<T: Real>(coarse: &LevelTopology, count: usize, scalars: &mut [T]) {
    let pool = SlotWriter::new(scalars, count * GROUP_CELLS);
    (0..coarse.len()).into_par_iter().for_each(|g| {
        // SAFETY: a group is written by its own iteration only, and a child has one parent, so nobody writes what is
        // read.
        let parent = unsafe { pool.slot(coarse.slots[g]) };
        for (o, &child) in coarse.children_of(g).iter().enumerate().filter(|(_, child)| **child != NONE) {
            let child = unsafe { pool.read(child) };
            let [x, y, z] = octant_origin(o);
            for n in 0..count {
                for [i, j, k] in coarse_cells() {
                    let fine = std::array::from_fn(|o| {
                        child[n * GROUP_CELLS + cell(2 * i + (o & 1), 2 * j + (o >> 1 & 1), 2 * k + (o >> 2))]
                    });
                    let mean = T::from_f64(0.125) * symmetric_sum::of_cube(fine);
                    parent[n * GROUP_CELLS + cell(x + i, y + j, z + k)] = mean;
                }
            }
        }
    });
}

pub(super) fn prolong<T: Real>(fine: &LevelTopology, new: &[usize], fluid: &[T], count: usize, scalars: &mut [T]) {
    let pool = SlotWriter::new(scalars, count * GROUP_CELLS);
    new.par_iter().for_each(|&g| {
        // SAFETY: new groups are distinct slots, each written by its own iteration; the slots read are of the coarser
        // level.
        let group = unsafe { pool.slot(fine.slots[g]) };
        let origin = octant_origin(usize::from(fine.octants[g]));
        for (n, group) in group.chunks_exact_mut(GROUP_CELLS).enumerate() {
            let scalar = |slot| &unsafe { pool.read(slot) }[n * GROUP_CELLS..][..GROUP_CELLS];
            let cells = ScalarCells { tables: fine, g, fluid, scalar, earlier: None };
            for at in coarse_cells() {
                let slopes = cells.slopes(std::array::from_fn(|a| (origin[a] + at[a]) as i32));
                for o in 0..8 {
                    let [density, fraction] = slopes.fine(o);
                    let [i, j, k] = std::array::from_fn(|a| 2 * at[a] + (o >> a & 1));
                    group[cell(i, j, k)] = density * fraction;
                }
            }
        }
    });
}

pub(super) fn reflux<T: Real>(
    tables: &RefluxTables,
    count: usize,
    scalars: &mut [T],
    fluxes: &[T],
    dt_over_dx: T,
    fine_share: T,
) {
    let pool = SlotWriter::new(scalars, count * GROUP_CELLS);
    (0..tables.groups.len()).into_par_iter().for_each(|g| {
        let start = if g == 0 { 0 } else { tables.groups[g - 1].end };
        let group = tables.groups[g];
        // SAFETY: every entry of `groups` names another slot.
        let scalars = unsafe { pool.slot(group.slot) };
        let faces = &tables.faces[start as usize..group.end as usize];
        let mut changes: Changes<T> = [[T::zero(); GROUP_CELLS]; 3];
        for (n, scalar) in scalars.chunks_exact_mut(GROUP_CELLS).enumerate() {
            let plane = |plane: u32| &fluxes[(plane as usize * count + n) * FACE_CELLS..][..FACE_CELLS];
            add_changes(faces, plane, dt_over_dx, fine_share, &mut changes);
            take_changes(faces, &mut changes, |c, change| scalar[c] += change);
        }
    });
}

/// The coarse cells of a patch, counted from its first one.
fn coarse_cells() -> impl Iterator<Item = [usize; 3]> {
    (0..PATCH_CELLS).map(|c| [c % PATCH, c / PATCH % PATCH, c / (PATCH * PATCH)])
}

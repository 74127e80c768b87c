//! Restriction on the host: parallel over coarse groups, each pulls from its children.

use crate::buffer::SlotWriter;
use crate::layout::{FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, OCTANTS, PATCH, cell, octant_origin};
use crate::point::dual_energy::synchronise;
use crate::point::eos::Eos;
use crate::real::Real;
use crate::tables::{LevelTables, NONE};
use rayon::prelude::*;

pub(super) fn restrict<T: Real>(coarse: &LevelTables, fluid: &mut [T], eos: &Eos<T>) {
    let pool = SlotWriter::new(fluid, GROUP_VALUES);
    (0..coarse.len()).into_par_iter().for_each(|g| {
        if coarse.children_of(g).iter().all(|&child| child == NONE) {
            return;
        }
        // SAFETY: a group is written by its own iteration only, and a child has one parent, so nobody writes what is read.
        let parent = unsafe { pool.slot(coarse.slots[g]) };
        for o in 0..OCTANTS {
            let child = coarse.children_of(g)[o];
            if child != NONE {
                restrict_patch(unsafe { pool.read(child) }, parent, octant_origin(o), eos);
            }
        }
    });
}

fn restrict_patch<T: Real>(child: &[T], parent: &mut [T], origin: [usize; 3], eos: &Eos<T>) {
    for k in 0..PATCH {
        for j in 0..PATCH {
            let to = cell(origin[0], origin[1] + j, origin[2] + k);
            let mut rows = [[T::zero(); PATCH]; FIELDS];
            for f in 0..FIELDS {
                let from = f * GROUP_CELLS + cell(0, 2 * j, 2 * k);
                for i in 0..PATCH {
                    rows[f][i] = mean_of_block(&child[from + 2 * i..]);
                }
            }
            for i in 0..PATCH {
                let done = synchronise(&std::array::from_fn(|f| rows[f][i]), eos);
                for f in 0..FIELDS {
                    parent[f * GROUP_CELLS + to + i] = done.cell[f];
                }
            }
        }
    }
}

/// Mean of the 2³ cells whose first is `cells[0]`, added pairwise so that mirrored input gives mirrored bits.
#[inline(always)]
fn mean_of_block<T: Real>(cells: &[T]) -> T {
    const Y: usize = GROUP;
    const Z: usize = GROUP * GROUP;
    let row = |o: usize| cells[o] + cells[o + 1];
    T::of(0.125) * ((row(0) + row(Y)) + (row(Z) + row(Z + Y)))
}

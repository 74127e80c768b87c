//! Prolongation on the host: parallel over new groups.

use crate::buffer::SlotWriter;
use crate::layout::{FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, PATCH, cell, direction, octant_origin};
use crate::point::dual_energy::synchronise;
use crate::point::eos::Eos;
use crate::point::minmod::minmod;
use crate::point::symmetric_sum;
use crate::real::Real;
use crate::tables::LevelTables;
use rayon::prelude::*;

/// A patch with one cell around it, along one axis.
const BLOCK: usize = PATCH + 2;

pub(super) fn prolong<T: Real>(fine: &LevelTables, new: &[usize], fluid: &mut [T], eos: &Eos<T>) {
    let pool = SlotWriter::new(fluid, GROUP_VALUES);
    new.par_iter().for_each(|&g| {
        // SAFETY: new groups are distinct slots, each written by its own iteration; the slots read are of the coarser
        // level.
        let group = unsafe { pool.slot(fine.slots[g]) };
        let coarse = |slot| unsafe { pool.read(slot) };
        for f in 0..FIELDS {
            let block = gather(fine, g, f, coarse);
            interpolate(&block, &mut group[f * GROUP_CELLS..][..GROUP_CELLS]);
        }
        for c in 0..GROUP_CELLS {
            let done = synchronise(&std::array::from_fn(|f| group[f * GROUP_CELLS + c]), eos);
            for f in 0..FIELDS {
                group[f * GROUP_CELLS + c] = done.cell[f];
            }
        }
    });
}

/// One field of the refined patch and the cells around it, `[k, j, i]`.
fn gather<'a, T: Real>(
    fine: &LevelTables,
    g: usize,
    field: usize,
    coarse: impl Fn(u32) -> &'a [T],
) -> [T; BLOCK * BLOCK * BLOCK] {
    let origin = octant_origin(usize::from(fine.octants[g])).map(|o| o as i32 - 1);
    let row = fine.parent_row(g);
    let outside = fine.outside[g];
    let mut block = [T::zero(); BLOCK * BLOCK * BLOCK];
    for (n, value) in block.iter_mut().enumerate() {
        let step = [n % BLOCK, n / BLOCK % BLOCK, n / (BLOCK * BLOCK)];
        let mut side = [0i32; 3];
        let mut at = [0usize; 3];
        for axis in 0..3 {
            let mut x = origin[axis] + step[axis] as i32;
            // beyond an outflow boundary: the outermost cell
            if outside >> (2 * axis) & 1 == 1 {
                x = x.max(0);
            }
            if outside >> (2 * axis + 1) & 1 == 1 {
                x = x.min(GROUP as i32 - 1);
            }
            side[axis] = x.div_euclid(GROUP as i32);
            at[axis] = x.rem_euclid(GROUP as i32) as usize;
        }
        let slot = row[direction(side[0], side[1], side[2])];
        *value = coarse(slot)[field * GROUP_CELLS + cell(at[0], at[1], at[2])];
    }
    block
}

/// Piecewise linear: fine centres lie a quarter of a coarse cell from the coarse centre.
fn interpolate<T: Real>(block: &[T; BLOCK * BLOCK * BLOCK], group: &mut [T]) {
    const STRIDES: [usize; 3] = [1, BLOCK, BLOCK * BLOCK];
    let quarter = T::of(0.25);
    for k in 0..PATCH {
        for j in 0..PATCH {
            for i in 0..PATCH {
                let centre = ((k + 1) * BLOCK + j + 1) * BLOCK + i + 1;
                let value = block[centre];
                let slope = STRIDES.map(|s| quarter * minmod(value - block[centre - s], block[centre + s] - value));
                for o in 0..8 {
                    let sign = |axis: usize| if o >> axis & 1 == 1 { slope[axis] } else { -slope[axis] };
                    let at = cell(2 * i + (o & 1), 2 * j + (o >> 1 & 1), 2 * k + (o >> 2 & 1));
                    group[at] = value + symmetric_sum::of_three(sign(0), sign(1), sign(2));
                }
            }
        }
    }
}

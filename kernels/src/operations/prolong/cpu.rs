//! Prolongation on the host: parallel over new groups.

use crate::device::buffer::SlotWriter;
use crate::layout::{ENERGY, ENTROPY, FIELDS, GROUP_CELLS, GROUP_VALUES, PATCH, cell, direction, octant_origin};
use crate::level::face_boundary::{Origin, origin, places};
use crate::level::level_topology::LevelTopology;
use crate::point::dual_energy::{Cell, energy_by_entropy, heat_factor};
use crate::point::eos::Eos;
use crate::point::slopes::interpolation_slope;
use crate::point::symmetric_sum;
use crate::real::Real;
use rayon::prelude::*;

/// A patch with one cell around it, along one axis.
const BLOCK: usize = PATCH + 2;

pub(super) fn prolong<T: Real>(fine: &LevelTopology, new: &[usize], fluid: &mut [T], eos: &Eos<T>) {
    let pool = SlotWriter::new(fluid, GROUP_VALUES);
    new.par_iter().for_each(|&g| {
        // SAFETY: new groups are distinct slots, each written by its own iteration; the slots read are of the coarser
        // level.
        let group = unsafe { pool.slot(fine.slots[g]) };
        let coarse = |slot| unsafe { pool.read(slot) };
        let blocks: [_; FIELDS] = std::array::from_fn(|f| gather(fine, g, f, coarse));
        for f in (0..FIELDS).filter(|f| *f != ENERGY) {
            interpolate(&blocks[f], &mut group[f * GROUP_CELLS..][..GROUP_CELLS]);
        }
        for c in 0..PATCH * PATCH * PATCH {
            let at = [c % PATCH, c / PATCH % PATCH, c / (PATCH * PATCH)];
            let parent = std::array::from_fn(|f| blocks[f][((at[2] + 1) * BLOCK + at[1] + 1) * BLOCK + at[0] + 1]);
            give_energy(group, at, &parent, eos);
        }
    });
}

/// The energies of the 2³ cells in one coarse cell. They have the entropy scalar's pressure. Where that is warm beside the
/// motion within the coarse cell, all pressures are changed by one factor, so that the mean energy is the coarse cell's.
fn give_energy<T: Real>(group: &mut [T], coarse: [usize; 3], parent: &Cell<T>, eos: &Eos<T>) {
    let at: [usize; 8] = std::array::from_fn(|o| {
        let [i, j, k] = std::array::from_fn(|a| 2 * coarse[a] + (o >> a & 1));
        cell(i, j, k)
    });
    let fine: [Cell<T>; 8] = at.map(|c| std::array::from_fn(|f| group[f * GROUP_CELLS + c]));
    let factor = heat_factor(parent, &fine, eos);
    for (u, c) in fine.iter().zip(at) {
        let entropy = factor * u[ENTROPY];
        let u = [u[0], u[1], u[2], u[3], u[4], entropy];
        group[ENERGY * GROUP_CELLS + c] = energy_by_entropy(&u, eos);
        group[ENTROPY * GROUP_CELLS + c] = entropy;
    }
}

/// One field of the refined patch and the cells around it, `[k, j, i]`.
fn gather<'a, T: Real>(
    fine: &LevelTopology,
    g: usize,
    field: usize,
    coarse: impl Fn(u32) -> &'a [T],
) -> [T; BLOCK * BLOCK * BLOCK] {
    let first = octant_origin(usize::from(fine.octants[g])).map(|o| o as i32 - 1);
    let [x, y, z] = [0, 1, 2].map(|axis| places::<BLOCK>(first[axis], fine.ends(g, axis)));
    let row = fine.parent_row(g);
    let mut block = [T::zero(); BLOCK * BLOCK * BLOCK];
    for (n, value) in block.iter_mut().enumerate() {
        let (x, y, z) = (&x[n % BLOCK], &y[n / BLOCK % BLOCK], &z[n / (BLOCK * BLOCK)]);
        let cells = coarse(row[direction(x.step, y.step, z.step)]);
        let cell = cells[field * GROUP_CELLS + cell(x.cell, y.cell, z.cell)];
        *value = match origin(&[(0, x), (1, y), (2, z)], field) {
            Origin::Cell => cell,
            Origin::Negated => -cell,
            Origin::Fixed(value) => value,
        };
    }
    block
}

/// Piecewise linear: fine centres lie a quarter of a coarse cell from the coarse centre.
fn interpolate<T: Real>(block: &[T; BLOCK * BLOCK * BLOCK], group: &mut [T]) {
    const STRIDES: [usize; 3] = [1, BLOCK, BLOCK * BLOCK];
    let quarter = T::from_f64(0.25);
    for k in 0..PATCH {
        for j in 0..PATCH {
            for i in 0..PATCH {
                let centre = ((k + 1) * BLOCK + j + 1) * BLOCK + i + 1;
                let value = block[centre];
                let slope = STRIDES
                    .map(|s| quarter * interpolation_slope(value - block[centre - s], block[centre + s] - value));
                for o in 0..8 {
                    let sign = |axis: usize| if o >> axis & 1 == 1 { slope[axis] } else { -slope[axis] };
                    let at = cell(2 * i + (o & 1), 2 * j + (o >> 1 & 1), 2 * k + (o >> 2 & 1));
                    group[at] = value + symmetric_sum::of_three(sign(0), sign(1), sign(2));
                }
            }
        }
    }
}

//! Prolongation on the host: parallel over new groups.

use crate::device::buffer::SlotWriter;
use crate::layout::{FIELDS, GROUP_CELLS, GROUP_VALUES, PATCH, cell, direction, octant_origin};
use crate::level::face_boundary::{Origin, origin, places};
use crate::level::level_topology::LevelTopology;
use crate::point::dual_energy::{Cell, kinetic, synchronise};
use crate::point::eos::Eos;
use crate::point::minmod::minmod;
use crate::point::symmetric_sum;
use crate::real::Real;
use rayon::prelude::*;

/// Twice what interpolated energies can lack: four times the energy of the motion of fine cells about their mean.
const MOTION: f64 = 8.0;

/// A patch with one cell around it, along one axis.
const BLOCK: usize = PATCH + 2;

pub(super) fn prolong<T: Real>(fine: &LevelTopology, new: &[usize], fluid: &mut [T], eos: &Eos<T>) {
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
        for c in 0..PATCH * PATCH * PATCH {
            synchronise_cube(group, [c % PATCH, c / PATCH % PATCH, c / (PATCH * PATCH)], eos);
        }
    });
}

/// Makes energy and entropy scalar of the 2³ cells in one coarse cell agree. Where the coarse cell moved as one they move
/// apart, and what that takes is not there in interpolated energies: the scalar decides in cells whose heat is no more
/// than [`MOTION`] times the energy of that motion.
fn synchronise_cube<T: Real>(group: &mut [T], coarse: [usize; 3], eos: &Eos<T>) {
    let at: [usize; 8] = std::array::from_fn(|o| {
        let [i, j, k] = std::array::from_fn(|a| 2 * coarse[a] + (o >> a & 1));
        cell(i, j, k)
    });
    let fine: [Cell<T>; 8] = at.map(|c| std::array::from_fn(|f| group[f * GROUP_CELLS + c]));
    let eighth = T::from_f64(0.125);
    let mean: Cell<T> = std::array::from_fn(|f| eighth * symmetric_sum::of_cube(fine.map(|u| u[f])));
    let motion = eighth * symmetric_sum::of_cube(fine.map(|u| kinetic(&u))) - kinetic(&mean);
    // what η of is the heat that this asks for; round-off of fast gas is no motion
    let shock_indicator = if motion > T::zero() { T::from_f64(MOTION) * motion / eos.eta } else { T::zero() };
    for (u, c) in fine.iter().zip(at) {
        let done = synchronise(u, shock_indicator, eos);
        for f in 0..FIELDS {
            group[f * GROUP_CELLS + c] = done.cell[f];
        }
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

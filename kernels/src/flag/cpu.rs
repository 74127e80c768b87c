//! Flags on the host: parallel over groups.

use super::FlagCriteria;
use crate::layout::{DENSITY, GROUP_CELLS, GROUP_VALUES, OCTANTS, PATCH, cell, direction, octant_origin};
use crate::real::Real;
use crate::tables::LevelTables;
use rayon::prelude::*;

pub(super) fn flag<T: Real>(
    tables: &LevelTables,
    fluid: &[T],
    criteria: &FlagCriteria<T>,
    buffer: usize,
    masks: &mut [u32],
) {
    masks.par_chunks_mut(OCTANTS).zip(&tables.slots).for_each(|(masks, &slot)| {
        let density = &fluid[slot as usize * GROUP_VALUES + DENSITY * GROUP_CELLS..][..GROUP_CELLS];
        for (o, mask) in masks.iter_mut().enumerate() {
            *mask = flag_patch(density, octant_origin(o), criteria, buffer);
        }
    });
}

fn flag_patch<T: Real>(density: &[T], origin: [usize; 3], criteria: &FlagCriteria<T>, buffer: usize) -> u32 {
    let mut mask = 0;
    for k in 0..PATCH {
        for j in 0..PATCH {
            let row = &density[cell(origin[0], origin[1] + j, origin[2] + k)..][..PATCH];
            for (i, &rho) in row.iter().enumerate() {
                if rho > criteria.density_above {
                    mask |= reach([i, j, k], buffer);
                }
            }
        }
    }
    mask
}

/// The directions whose patches lie within `buffer` cells of a cell of this patch.
fn reach(at: [usize; 3], buffer: usize) -> u32 {
    let range = at.map(|x| (-i32::from(x < buffer), i32::from(x + buffer >= PATCH)));
    let mut mask = 0;
    for z in range[2].0..=range[2].1 {
        for y in range[1].0..=range[1].1 {
            for x in range[0].0..=range[0].1 {
                mask |= 1 << direction(x, y, z);
            }
        }
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_buffer_reaches_as_many_cells_as_it_says() {
        let centre = 1 << direction(0, 0, 0);
        assert_eq!(reach([4, 4, 4], 0), centre);
        assert_eq!(reach([3, 4, 4], 3), centre);
        assert_eq!(reach([2, 4, 4], 3), centre | 1 << direction(-1, 0, 0));
        assert_eq!(reach([4, 5, 4], 3), centre | 1 << direction(0, 1, 0));
        assert_eq!(reach([0, 0, 7], 1).count_ones(), 8);
        assert_eq!(reach([4, 4, 4], 8).count_ones(), 27);
    }
}

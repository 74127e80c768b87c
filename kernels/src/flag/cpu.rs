//! Flags on the host: parallel over groups.

use super::FlagCriteria;
use crate::isa::{Isa, Kernel};
use crate::layout::{DENSITY, GROUP_CELLS, GROUP_VALUES, OCTANTS, PATCH, cell, direction, octant_origin};
use crate::real::Real;
use crate::tables::LevelTables;
use rayon::prelude::*;

pub(super) fn flag<T: Real>(
    isa: Isa,
    tables: &LevelTables,
    fluid: &[T],
    criteria: &FlagCriteria<T>,
    buffer: usize,
    masks: &mut [u32],
) {
    masks.par_chunks_mut(OCTANTS).zip(&tables.slots).for_each(|(masks, &slot)| {
        let density = &fluid[slot as usize * GROUP_VALUES + DENSITY * GROUP_CELLS..][..GROUP_CELLS];
        for (o, mask) in masks.iter_mut().enumerate() {
            *mask = isa.run(PatchFlags { density, origin: octant_origin(o), criteria, buffer });
        }
    });
}

/// The mask of one patch.
struct PatchFlags<'a, T> {
    /// `[16, 16, 16]`
    density: &'a [T],
    /// First cell of the patch.
    origin: [usize; 3],
    criteria: &'a FlagCriteria<T>,
    buffer: usize,
}

impl<T: Real> Kernel for PatchFlags<'_, T> {
    type Output = u32;

    #[inline(always)]
    fn run(self) -> u32 {
        let mut mask = 0;
        for k in 0..PATCH {
            for j in 0..PATCH {
                let row = &self.density[cell(self.origin[0], self.origin[1] + j, self.origin[2] + k)..][..PATCH];
                // most rows have no flagged cell: ask for all of them at once
                let mut any = false;
                for i in 0..PATCH {
                    any |= row[i] > self.criteria.density_above;
                }
                if any {
                    for i in (0..PATCH).filter(|&i| row[i] > self.criteria.density_above) {
                        mask |= reach([i, j, k], self.buffer);
                    }
                }
            }
        }
        mask
    }
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
    use crate::isa::Isa;
    use crate::layout::{DIRECTIONS, GROUP};
    use crate::testing::{Mesh, Noise};

    /// Every patch and direction: does a cell of the patch there lie within the buffer of a flagged cell here?
    #[test]
    fn masks_agree_with_brute_force() {
        let mesh = Mesh::new([2, 1, 1], true);
        let mut noise = Noise::new(1);
        // a handful of flagged cells in each patch at most, none in some
        let fluid = mesh.fill::<f32>(|x| [1.0 + noise.next() * (1.0 + 0.01 * x[0].floor() / 32.0), 0., 0., 0., 1., 1.]);
        let criteria = FlagCriteria { density_above: 1.996 };
        for buffer in [0, 1, 3, 8] {
            let mut masks = vec![u32::MAX; 2 * OCTANTS];
            flag(Isa::best(), &mesh.tables(0), &fluid, &criteria, buffer, &mut masks);
            assert!(masks.contains(&0) && masks.iter().any(|&mask| mask != 0), "the test needs both");
            for (n, &mask) in masks.iter().enumerate() {
                let origin = octant_origin(n % OCTANTS);
                let mut expected = 0;
                for c in 0..GROUP_CELLS {
                    let at = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
                    let here = (0..3).all(|a| (origin[a]..origin[a] + PATCH).contains(&at[a]));
                    if !here || fluid[n / OCTANTS * GROUP_VALUES + c] <= criteria.density_above {
                        continue;
                    }
                    for d in 0..DIRECTIONS {
                        let step = [d % 3, d / 3 % 3, d / 9].map(|s| s as i32 - 1);
                        // the nearest cell of the patch there
                        let near = |a: usize| {
                            let x = at[a] as i32 - origin[a] as i32;
                            (x - x.clamp(8 * step[a], 8 * step[a] + 7)).unsigned_abs() as usize <= buffer
                        };
                        expected |= u32::from((0..3).all(near)) << d;
                    }
                }
                assert_eq!(mask, expected, "buffer {buffer} patch {n}");
            }
        }
    }

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

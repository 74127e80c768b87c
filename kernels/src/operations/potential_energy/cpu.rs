//! Potential energy on the processor: partial sums, one for each cell along x of a patch, added in order at the end.

use crate::layout::{GROUP_CELLS, OCTANTS, PATCH, cell, octant_origin};
use crate::level::level_topology::LevelTopology;
use crate::operations::poisson_source::DensitySource;
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn potential_energy<T: Real>(
    tables: &LevelTopology,
    density: DensitySource<T>,
    potential: &[T],
) -> Vec<f64> {
    let of_group = |(&slot, &leaves): (&u32, &u8)| {
        let potential = &potential[slot as usize * GROUP_CELLS..][..GROUP_CELLS];
        let mut sums = [0.0; PATCH];
        let mut source = [0.0; PATCH];
        for octant in (0..OCTANTS).filter(|octant| leaves >> octant & 1 == 1) {
            let [x, y, z] = octant_origin(octant);
            for k in z..z + PATCH {
                for j in y..y + PATCH {
                    let first = cell(x, j, k);
                    density.fill(slot, first, 1.0, &mut source);
                    let terms = source.iter().zip(&potential[first..][..PATCH]).map(|(s, phi)| s * phi.as_f64());
                    sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
                }
            }
        }
        sums.iter().sum()
    };
    tables.slots.par_iter().zip(&tables.leaves[..]).map(of_group).collect()
}

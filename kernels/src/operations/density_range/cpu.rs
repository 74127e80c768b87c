//! Range of the density on the processor: eight ranges, one for each cell along x of a patch, joined at the end.

use crate::layout::{GROUP_CELLS, OCTANTS, PATCH, cell, octant_origin};
use crate::level::level_topology::LevelTopology;
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn density_range<T: Real>(tables: &LevelTopology, density: &[T]) -> Vec<[f64; 2]> {
    let of_group = |(&slot, &leaves): (&u32, &u8)| {
        let density = &density[slot as usize * GROUP_CELLS..][..GROUP_CELLS];
        let mut least = [f64::INFINITY; PATCH];
        let mut most = [f64::NEG_INFINITY; PATCH];
        for octant in (0..OCTANTS).filter(|octant| leaves >> octant & 1 == 1) {
            let [x, y, z] = octant_origin(octant);
            for k in z..z + PATCH {
                for j in y..y + PATCH {
                    for (i, rho) in density[cell(x, j, k)..][..PATCH].iter().map(|rho| rho.as_f64()).enumerate() {
                        least[i] = if rho < least[i] { rho } else { least[i] };
                        most[i] = if rho > most[i] { rho } else { most[i] };
                    }
                }
            }
        }
        [least.into_iter().fold(f64::INFINITY, f64::min), most.into_iter().fold(f64::NEG_INFINITY, f64::max)]
    };
    tables.slots.par_iter().zip(&tables.leaves[..]).map(of_group).collect()
}

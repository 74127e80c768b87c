//! Totals on the processor: eight partial sums, one for each cell along x of a patch, added in order at the end.

use super::GroupTotals;
use crate::device::isa::{Isa, Kernel};
use crate::layout::{GROUP_CELLS, GROUP_VALUES, OCTANTS, PATCH, cell, octant_origin};
use crate::level::level_topology::LevelTopology;
use crate::real::Real;
use rayon::prelude::*;

pub(super) fn totals<T: Real>(isa: Isa, tables: &LevelTopology, fluid: &[T], totals: &mut [GroupTotals]) {
    totals.par_iter_mut().enumerate().for_each(|(g, totals)| {
        let group = &fluid[tables.slots[g] as usize * GROUP_VALUES..][..GROUP_VALUES];
        *totals = isa.run(Totals { group, leaves: tables.leaves[g] });
    });
}

struct Totals<'a, T> {
    /// `[6, 16, 16, 16]`
    group: &'a [T],
    leaves: u8,
}

/// Partial sums: density, three momenta, energy, kinetic energy, thermal energy.
const SUMS: usize = 7;

impl<T: Real> Kernel for Totals<'_, T> {
    type Output = GroupTotals;

    #[inline(always)]
    fn run(self) -> GroupTotals {
        let mut sums = [[0f64; PATCH]; SUMS];
        let mut least = [f64::INFINITY; PATCH];
        let mut most = [f64::NEG_INFINITY; PATCH];
        let mut cells = 0;
        for o in (0..OCTANTS).filter(|o| self.leaves >> o & 1 == 1) {
            let [x, y, z] = octant_origin(o);
            cells += (PATCH * PATCH * PATCH) as u32;
            for k in z..z + PATCH {
                for j in y..y + PATCH {
                    let row = |f: usize| &self.group[f * GROUP_CELLS + cell(x, j, k)..][..PATCH];
                    let (density, energies) = (row(0), row(4));
                    let momenta = [row(1), row(2), row(3)];
                    for i in 0..PATCH {
                        let (rho, energy) = (density[i].as_f64(), energies[i].as_f64());
                        let p = [momenta[0][i].as_f64(), momenta[1][i].as_f64(), momenta[2][i].as_f64()];
                        let kinetic = 0.5 * (p[0] * p[0] + p[1] * p[1] + p[2] * p[2]) / rho;
                        let values = [rho, p[0], p[1], p[2], energy, kinetic, energy - kinetic];
                        for s in 0..SUMS {
                            sums[s][i] += values[s];
                        }
                        least[i] = if rho < least[i] { rho } else { least[i] };
                        most[i] = if rho > most[i] { rho } else { most[i] };
                    }
                }
            }
        }
        let [mass, px, py, pz, energy, kinetic, thermal] = sums.map(|lanes| lanes.iter().sum());
        GroupTotals {
            cells,
            mass,
            momentum: [px, py, pz],
            kinetic,
            thermal,
            energy,
            density_min: least.into_iter().fold(f64::INFINITY, f64::min),
            density_max: most.into_iter().fold(f64::NEG_INFINITY, f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_leaf_cells_only_and_alike_on_every_instruction_set() {
        let group: Vec<f32> = (0..GROUP_VALUES)
            .map(|i| {
                let e = (i % GROUP_CELLS) as f32;
                [1.0 + e / 4096.0, 0.5, -0.25, e / 8192.0, 2.0, 1.0][i / GROUP_CELLS]
            })
            .collect();
        let leaves = 0b1010_0110;
        let tables = LevelTopology { slots: vec![0].into(), leaves: vec![leaves].into(), ..Default::default() };
        let (mut mass, mut kinetic, mut least, mut cells) = (0.0, 0.0, f64::INFINITY, 0);
        for e in 0..GROUP_CELLS {
            let octant = (e % 16) / 8 + 2 * (e / 16 % 16 / 8) + 4 * (e / 256 / 8);
            if leaves >> octant & 1 == 1 {
                let rho = f64::from(group[e]);
                mass += rho;
                kinetic += 0.5 * (0.25 + 0.0625 + f64::from(group[3 * GROUP_CELLS + e]).powi(2)) / rho;
                least = rho.min(least);
                cells += 1;
            }
        }
        let mut results = Vec::new();
        for isa in Isa::available() {
            let mut all = [GroupTotals::default()];
            totals(isa, &tables, &group, &mut all);
            results.push(all[0]);
        }
        assert!(results.iter().all(|t| t == &results[0]));
        let t = results[0];
        assert_eq!((t.cells, t.density_min, t.energy), (cells, least, 2.0 * f64::from(cells)));
        // the order of 2048 additions differs
        assert!((t.mass / mass - 1.0).abs() < 1e-13 && (t.kinetic / kinetic - 1.0).abs() < 1e-13);
        assert!((t.energy - t.kinetic - t.thermal).abs() < 1e-12 * t.energy);
        assert_eq!(t.momentum[0], 0.5 * f64::from(cells));
    }
}

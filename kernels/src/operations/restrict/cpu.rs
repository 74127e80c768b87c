//! Restriction on the host: parallel over coarse groups, each pulls from its children.

use crate::device::buffer::SlotWriter;
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::layout::{ENERGY, ENTROPY, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, PATCH, cell, octant_origin};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::operations::synchronised_row::{Rows, SynchronisedRow};
use crate::point::dual_energy::{UNSEEN, energy_of_mean, kinetic};
use crate::point::eos::Eos;
use crate::point::symmetric_sum;
use crate::real::Real;
use rayon::prelude::*;

/// Coarse cells of one plane of a patch: what is synchronised at once.
const PLANE: usize = PATCH * PATCH;

pub(super) fn restrict<T: Real>(isa: Isa, coarse: &LevelTopology, fluid: &mut [T], eos: &Eos<T>) {
    let pool = SlotWriter::new(fluid, GROUP_VALUES);
    (0..coarse.len()).into_par_iter().for_each(|g| {
        // SAFETY: a group is written by its own iteration only, and a child has one parent, so nobody writes what is
        // read.
        let parent = unsafe { pool.slot(coarse.slots[g]) };
        for (o, &child) in coarse.children_of(g).iter().enumerate().filter(|(_, child)| **child != NONE) {
            let child = unsafe { pool.read(child) };
            isa.run(PatchRestriction { child, parent: &mut *parent, origin: octant_origin(o), eos });
        }
    });
}

/// The restriction of one child.
struct PatchRestriction<'a, T> {
    /// `[6, 16, 16, 16]`
    child: &'a [T],
    /// `[6, 16, 16, 16]`
    parent: &'a mut [T],
    /// First cell of the patch in the parent.
    origin: [usize; 3],
    eos: &'a Eos<T>,
}

compiled_here!(PatchRestriction<'static, f32>, PatchRestriction<'static, f64>);

impl<T: Real> Kernel for PatchRestriction<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let eos = *self.eos;
        let monatomic = T::from_f64(5.0 / 3.0);
        // a constant exponent for the common gas, as in the sweep
        if eos.gamma == monatomic {
            self.restrict(&Eos { gamma: monatomic, ..eos });
        } else {
            self.restrict(&eos);
        }
    }
}

impl<T: Real> PatchRestriction<'_, T> {
    #[inline(always)]
    fn restrict(&mut self, eos: &Eos<T>) {
        let [x, y, z] = self.origin;
        for k in 0..PATCH {
            let mut means = self.means(k);
            means[ENERGY] = self.energies(k, &means, eos);
            let plane = SynchronisedRow::new(means, &[T::from_f64(UNSEEN); PLANE], eos);
            for f in 0..FIELDS {
                for j in 0..PATCH {
                    let to = f * GROUP_CELLS + cell(x, y + j, z + k);
                    self.parent[to..to + PATCH].copy_from_slice(&plane.after[f][j * PATCH..][..PATCH]);
                }
            }
        }
    }

    /// The energies of the coarse cells of plane `k`, whose means these are.
    #[inline(always)]
    fn energies(&self, k: usize, means: &Rows<T, PLANE>, eos: &Eos<T>) -> [T; PLANE] {
        let mut energies = [T::zero(); PLANE];
        for j in 0..PATCH {
            let mut moving = [[T::zero(); GROUP]; 4];
            for n in 0..4 {
                let row = |field: usize| -> &[T; GROUP] {
                    let first = field * GROUP_CELLS + cell(0, 2 * j + n % 2, 2 * k + n / 2);
                    self.child[first..first + GROUP].try_into().expect("a row has 16 cells")
                };
                let [density, x, y, z] = [row(0), row(1), row(2), row(3)];
                for i in 0..GROUP {
                    moving[n][i] = kinetic(&[density[i], x[i], y[i], z[i], T::zero(), T::zero()]);
                }
            }
            let [a, b, c, d] = moving;
            for i in 0..PATCH {
                let (w, e, at) = (2 * i, 2 * i + 1, j * PATCH + i);
                let sum = symmetric_sum::of_cube([a[w], a[e], b[w], b[e], c[w], c[e], d[w], d[e]]);
                let mean =
                    [means[0][at], means[1][at], means[2][at], means[3][at], means[ENERGY][at], means[ENTROPY][at]];
                energies[at] = energy_of_mean(T::from_f64(0.125) * sum, &mean, eos);
            }
        }
        energies
    }

    /// Means of the 2³ cells under each coarse cell of plane `k`, the same bits in mirrored and rotated flows.
    #[inline(always)]
    fn means(&self, k: usize) -> Rows<T, PLANE> {
        let eighth = T::from_f64(0.125);
        let mut means = [[T::zero(); PLANE]; FIELDS];
        for f in 0..FIELDS {
            for j in 0..PATCH {
                let row = |y: usize, z: usize| -> &[T; GROUP] {
                    let first = f * GROUP_CELLS + cell(0, 2 * j + y, 2 * k + z);
                    self.child[first..first + GROUP].try_into().expect("a row has 16 cells")
                };
                let [a, b, c, d] = [row(0, 0), row(1, 0), row(0, 1), row(1, 1)];
                let means = &mut means[f][j * PATCH..][..PATCH];
                for i in 0..PATCH {
                    let (w, e) = (2 * i, 2 * i + 1);
                    means[i] = eighth * symmetric_sum::of_cube([a[w], a[e], b[w], b[e], c[w], c[e], d[w], d[e]]);
                }
            }
        }
        means
    }
}

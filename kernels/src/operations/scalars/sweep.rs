//! The scalars of one group through the three passes of a sweep, on the processor, after its gas.

use super::cells::ScalarCells;
use crate::layout::{
    FACE_CELLS, FLUX_PLANES, FLUX_PLANES_PER_AXIS, GROUP, GROUP_CELLS, HYDRO_BLOCK, HYDRO_GHOSTS, INTERIOR, PATCH, cell,
};
use crate::level::ghosts::{BLOCK_CELLS, EarlierFluid, block_cell};
use crate::level::level_topology::LevelTopology;
use crate::point::passive_scalar::{carried_fraction, mass_fraction};
use crate::point::relaxing_tvd::updated;
use crate::real::Real;
use std::ops::Range;

/// Distances of neighbouring cells of a block.
const STRIDES: [usize; 3] = [1, HYDRO_BLOCK, HYDRO_BLOCK * HYDRO_BLOCK];

/// The scalars of the group that is swept.
pub(crate) struct GroupScalars<'a, T> {
    pub(crate) count: usize,
    /// The pool, `[slot, count, 16, 16, 16]`.
    pub(crate) before: &'a [T],
    /// The earlier state, `[place, count, 16, 16, 16]`.
    pub(crate) earlier: &'a [T],
    /// The group's values afterwards, `[count, 16, 16, 16]`.
    pub(crate) out: &'a mut [T],
    /// `[count, 16, 16]` each.
    pub(crate) planes: [Option<&'a mut [T]>; FLUX_PLANES],
}

/// A thread's work space, of which each is a block `[22, 22, 22]`; empty until there are scalars.
#[derive(Default)]
pub(crate) struct ScalarScratch<T> {
    /// Of the gas before the sweep.
    density_before: Vec<T>,
    /// Twice the mass flux of each pass through the low face of a cell.
    mass_flux: [Vec<T>; 3],
    density: Vec<T>,
    scalar: Vec<T>,
    fraction: Vec<T>,
    /// Twice the flux of the scalar, as `mass_flux`.
    flux: Vec<T>,
}

impl<T: Real> ScalarScratch<T> {
    /// Keeps the density of the gas before the sweep, `[22, 22, 22]`.
    pub(crate) fn begin(&mut self, density: &[T]) {
        let Self { density_before, mass_flux: [x, y, z], density: now, scalar, fraction, flux } = self;
        for block in [&mut *density_before, x, y, z, now, scalar, fraction, flux] {
            block.resize(BLOCK_CELLS, T::zero());
        }
        density_before.copy_from_slice(density);
    }

    /// Keeps twice the mass flux of a pass through the low faces of consecutive cells.
    #[inline(always)]
    pub(crate) fn keep_mass_flux(&mut self, pass: usize, first: usize, flux: &[T]) {
        self.mass_flux[pass][first..first + flux.len()].copy_from_slice(flux);
    }

    /// Sweeps all scalars.
    ///
    /// * `fluid`, `earlier`: what the gas was gathered from
    /// * `dt_over_dx`, `axes`: of the sweep
    #[inline(always)]
    pub(crate) fn sweep(
        &mut self,
        tables: &LevelTopology,
        g: usize,
        fluid: &[T],
        earlier: Option<&EarlierFluid<T>>,
        dt_over_dx: T,
        axes: [usize; 3],
        scalars: &mut GroupScalars<'_, T>,
    ) {
        let values = scalars.count * GROUP_CELLS;
        for n in 0..scalars.count {
            let pool = scalars.before;
            let cells = ScalarCells {
                tables,
                g,
                fluid,
                scalar: |slot: u32| &pool[slot as usize * values + n * GROUP_CELLS..][..GROUP_CELLS],
                earlier: earlier.map(|earlier| (earlier, scalars.earlier, [n * GROUP_CELLS, values])),
            };
            cells.gather(&self.density_before, &mut self.scalar);
            self.density.copy_from_slice(&self.density_before);
            let mut ranges = [0..HYDRO_BLOCK, 0..HYDRO_BLOCK, 0..HYDRO_BLOCK];
            for (pass, axis) in axes.into_iter().enumerate() {
                ranges[axis] = INTERIOR;
                self.pass(pass, axis, &ranges, dt_over_dx * T::from_f64(0.5));
                for p in 0..FLUX_PLANES_PER_AXIS {
                    if let Some(plane) = &mut scalars.planes[axis * FLUX_PLANES_PER_AXIS + p] {
                        self.record(axis, HYDRO_GHOSTS + p * PATCH, &mut plane[n * FACE_CELLS..][..FACE_CELLS]);
                    }
                }
            }
            for k in 0..GROUP {
                for j in 0..GROUP {
                    let from = block_cell(0, HYDRO_GHOSTS, j + HYDRO_GHOSTS, k + HYDRO_GHOSTS);
                    let to = n * GROUP_CELLS + cell(0, j, k);
                    scalars.out[to..to + GROUP].copy_from_slice(&self.scalar[from..from + GROUP]);
                }
            }
        }
    }

    /// One directional pass, in place, over the cells of these ranges.
    #[inline(always)]
    fn pass(&mut self, pass: usize, axis: usize, ranges: &[Range<usize>; 3], step: T) {
        let stride = STRIDES[axis];
        let along = |range: Range<usize>| {
            let mut ranges = ranges.clone();
            ranges[axis] = range;
            ranges
        };
        let Self { mass_flux, density, scalar, fraction, flux, .. } = self;
        let mass_flux = &mass_flux[pass];
        // two cells on either side of a face
        rows(&along(INTERIOR.start - 2..INTERIOR.end + 2), |first, cells| {
            let (density, scalar) = (&density[first..][..cells], &scalar[first..][..cells]);
            let fraction = &mut fraction[first..][..cells];
            for i in 0..cells {
                fraction[i] = mass_fraction(scalar[i], density[i]);
            }
        });
        rows(&along(INTERIOR.start..INTERIOR.end + 1), |first, cells| {
            let at = |n: usize| &fraction[first + n * stride - 2 * stride..][..cells];
            let fractions = [at(0), at(1), at(2), at(3)];
            let densities = [&density[first - stride..][..cells], &density[first..][..cells]];
            let (mass_flux, flux) = (&mass_flux[first..][..cells], &mut flux[first..][..cells]);
            for i in 0..cells {
                let carried =
                    carried_fraction(mass_flux[i], step, densities.map(|row| row[i]), fractions.map(|row| row[i]));
                flux[i] = mass_flux[i] * carried;
            }
        });
        rows(&along(INTERIOR), |first, cells| {
            for i in first..first + cells {
                density[i] = updated(density[i], step, mass_flux[i], mass_flux[i + stride]);
                scalar[i] = updated(scalar[i], step, flux[i], flux[i + stride]);
            }
        });
    }

    /// Keeps the fluxes of a pass through one plane of the group, at cell `face` of the block.
    #[inline(always)]
    fn record(&self, axis: usize, face: usize, plane: &mut [T]) {
        for b in 0..GROUP {
            for a in 0..GROUP {
                let [a_block, b_block] = [a, b].map(|n| n + HYDRO_GHOSTS);
                let at = match axis {
                    0 => block_cell(0, face, a_block, b_block),
                    1 => block_cell(0, a_block, face, b_block),
                    _ => block_cell(0, a_block, b_block, face),
                };
                plane[b * GROUP + a] = T::from_f64(0.5) * self.flux[at];
            }
        }
    }
}

/// Hands out the rows of a range of cells: the first cell's place in the block, and how many.
#[inline(always)]
fn rows([x, y, z]: &[Range<usize>; 3], mut row: impl FnMut(usize, usize)) {
    for k in z.clone() {
        for j in y.clone() {
            row(block_cell(0, x.start, j, k), x.len());
        }
    }
}

//! Interpolation of the potential from the coarser level.

use super::{TimedPotential, face_axes, strides};
use crate::layout::{DIRECTIONS, FACE_CELLS, FACES, GROUP, GROUP_CELLS, PATCH, direction};
use crate::level::level_topology::NONE;
use crate::real::Real;

/// Coarse cells beyond the patch on each side: the ghost's own and one more for the parabola.
const MARGIN: usize = 2;
/// The patch with its margin, along one axis.
const WIDTH: usize = PATCH + 2 * MARGIN;
/// Coarse cells along one axis that the tangential parabolas of a face reach.
const REACH: usize = PATCH + 2;

/// Coarse values around one refined patch, `[12, 12, 12]`.
pub(super) struct CoarseBlock<T> {
    values: [T; WIDTH * WIDTH * WIDTH],
}

/// The parabola through three neighbouring coarse centres, a quarter of a cell from the middle one towards `near`.
///
/// Lagrange's weights −3/32, 15/16, 5/32 written as increments, which keeps the round-off that of the last sum.
#[inline(always)]
fn parabola<T: Real>(far: T, middle: T, near: T) -> T {
    middle + (T::from_f64(0.15625) * (near - middle) - T::from_f64(0.09375) * (far - middle))
}

/// The value one cell further on the parabola through three cells, from the last one back.
#[inline(always)]
pub(super) fn beyond<T: Real>(first: T, second: T, third: T) -> T {
    third + T::from_f64(3.0) * (first - second)
}

impl<T: Real> TimedPotential<'_, T> {
    /// The values of the group in `slot` from `cell` on.
    #[inline(always)]
    fn interpolate(&self, slot: u32, cell: usize, values: &mut [T]) {
        let first = self.places[slot as usize] as usize * GROUP_CELLS + cell;
        let (from, to) = (&self.from.host()[first..], &self.to.host()[first..]);
        for (value, (&from, &to)) in values.iter_mut().zip(from.iter().zip(to)) {
            *value = from + self.weight * (to - from);
        }
    }
}

impl<T: Real> CoarseBlock<T> {
    /// Copies the surroundings of the patch at `octant` from the groups of its parent's neighbour row, or interpolates
    /// them between the two times of `timed`, and extends them beyond the faces of the domain that the patch touches
    /// (bits of `outside`).
    #[inline(always)]
    pub(super) fn load(
        parents: &[u32; DIRECTIONS],
        octant: u8,
        outside: u8,
        potential: &[T],
        timed: Option<&TimedPotential<T>>,
    ) -> Self {
        let mut values = [T::zero(); WIDTH * WIDTH * WIDTH];
        // Along each axis the block crosses into the neighbour on the octant's side: two runs of cells, each with its
        // first block cell, length, first group cell and direction.
        let runs = [0, 1, 2].map(|axis| match octant >> axis & 1 {
            0 => [(0, MARGIN, GROUP - MARGIN, -1), (MARGIN, PATCH + MARGIN, 0, 0)],
            _ => [(0, PATCH + MARGIN, PATCH - MARGIN, 0), (PATCH + MARGIN, MARGIN, 0, 1)],
        });
        for (z, nz, k, dz) in runs[2] {
            for (y, ny, j, dy) in runs[1] {
                for (x, nx, i, dx) in runs[0] {
                    let slot = parents[direction(dx, dy, dz)];
                    assert!(slot != NONE, "no coarse group towards ({dx}, {dy}, {dz}): the octree is not nested");
                    for (m, n) in (0..nz).flat_map(|m| (0..ny).map(move |n| (m, n))) {
                        let to = &mut values[((z + m) * WIDTH + y + n) * WIDTH + x..][..nx];
                        let cell = ((k + m) * GROUP + j + n) * GROUP + i;
                        match timed {
                            None => to.copy_from_slice(&potential[slot as usize * GROUP_CELLS + cell..][..nx]),
                            Some(timed) => timed.interpolate(slot, cell, to),
                        }
                    }
                }
            }
        }
        let mut block = Self { values };
        for face in (0..FACES).filter(|face| outside >> face & 1 == 1) {
            block.extend_beyond(face);
        }
        block
    }

    /// Continues each line of cells across a face of the domain by the parabola through the last three: axis by axis,
    /// so that edges and corners are well defined.
    #[inline(always)]
    fn extend_beyond(&mut self, face: usize) {
        let axis = face / 2;
        let normal = strides(WIDTH)[axis] as isize;
        let [a, b] = face_axes(axis).map(|other| strides(WIDTH)[other]);
        let (layer, outward) = if face & 1 == 0 { (MARGIN, -normal) } else { (MARGIN + PATCH - 1, normal) };
        for n in 0..WIDTH {
            for m in 0..WIDTH {
                let outermost = layer * normal as usize + n * b + m * a;
                for step in 1..=MARGIN as isize {
                    let [to, first, second, third] =
                        [0, 1, 2, 3].map(|back| outermost.wrapping_add_signed((step - back) * outward));
                    let value = beyond(self.values[first], self.values[second], self.values[third]);
                    self.values[to] = value;
                }
            }
        }
    }

    /// Interpolates the fine ghost layer of one face, `[16, 16]`: across the face, then along its two axes.
    #[inline(always)]
    pub(super) fn face(&self, face: usize, ghosts: &mut [T]) {
        let axis = face / 2;
        let normal = strides(WIDTH)[axis];
        let [a, b] = face_axes(axis).map(|other| strides(WIDTH)[other]);
        // the coarse cell just outside, and the direction of the patch from there
        let (layer, inward) = if face & 1 == 0 { (MARGIN - 1, 1) } else { (MARGIN + PATCH, -1) };
        let mut across = [[T::zero(); REACH]; REACH];
        for n in 0..REACH {
            for m in 0..REACH {
                let at = layer * normal + (n + 1) * b + (m + 1) * a;
                let [far, near] = [-inward, inward].map(|s: isize| at.wrapping_add_signed(s * normal as isize));
                across[n][m] = parabola(self.values[far], self.values[at], self.values[near]);
            }
        }
        let mut along = [[T::zero(); GROUP]; REACH];
        for n in 0..REACH {
            for m in 0..PATCH {
                let [left, middle, right] = [across[n][m], across[n][m + 1], across[n][m + 2]];
                along[n][2 * m] = parabola(right, middle, left);
                along[n][2 * m + 1] = parabola(left, middle, right);
            }
        }
        let ghosts = &mut ghosts[..FACE_CELLS];
        for n in 0..PATCH {
            for m in 0..GROUP {
                let [below, middle, above] = [along[n][m], along[n + 1][m], along[n + 2][m]];
                ghosts[2 * n * GROUP + m] = parabola(above, middle, below);
                ghosts[(2 * n + 1) * GROUP + m] = parabola(below, middle, above);
            }
        }
    }
}

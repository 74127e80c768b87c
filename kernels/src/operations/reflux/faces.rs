//! The coarse cells beside corrected faces, and what their fluxes change there, one field at a time.

use super::CoarseFineFace;
use crate::layout::{GROUP, GROUP_CELLS, PATCH, cell, octant_origin};
use crate::operations::potential_ghosts::{face_axes, strides};
use crate::point::symmetric_sum;
use crate::real::Real;

/// Coarse cells beside a face.
pub(super) const CELLS: usize = PATCH * PATCH;

/// What the faces across each axis add to the cells of a group; all zero between two fields.
pub(crate) type Changes<T> = [[T; GROUP_CELLS]; 3];

/// Adds Δt/h (share ⟨F_fine⟩ − F_coarse) of all faces of a group, with the other sign where the face is the cell's high one.
///
/// * `plane`: the field in a flux plane, `[16, 16]`
#[inline(always)]
pub(crate) fn add_changes<'a, T: Real>(
    faces: &[CoarseFineFace],
    plane: impl Fn(u32) -> &'a [T],
    dt_over_dx: T,
    fine_share: T,
    changes: &mut Changes<T>,
) {
    for face in faces {
        let place = FaceCells::of(face);
        let factor = if face.high { -dt_over_dx } else { dt_over_dx };
        let quarter = T::from_f64(0.25) * fine_share;
        let (coarse, fine) = (plane(face.coarse_plane), plane(face.fine_plane));
        for b in 0..PATCH {
            let low = &fine[2 * b * GROUP..][..GROUP];
            let high = &fine[(2 * b + 1) * GROUP..][..GROUP];
            let coarse = &coarse[(place.origin[1] + b) * GROUP + place.origin[0]..][..PATCH];
            for a in 0..PATCH {
                // along the diagonals: the same bits when the face is mirrored or its axes are exchanged
                let four = (low[2 * a] + high[2 * a + 1]) + (low[2 * a + 1] + high[2 * a]);
                changes[usize::from(face.axis)][place.cell(a, b)] += factor * (quarter * four - coarse[a]);
            }
        }
    }
}

/// Hands every cell beside a face its change. A cell at an edge is corrected along two or three axes: their sum does not
/// depend on the axes' order; it is met once a face, from the second time on with no change.
#[inline(always)]
pub(crate) fn take_changes<T: Real>(
    faces: &[CoarseFineFace],
    changes: &mut Changes<T>,
    mut change: impl FnMut(usize, T),
) {
    for face in faces {
        let place = FaceCells::of(face);
        for n in 0..CELLS {
            let c = place.cell(n % PATCH, n / PATCH);
            // what a face has added must not be added by the next one that meets the cell
            let [x, y, z] = changes.each_mut().map(|axis| std::mem::replace(&mut axis[c], T::zero()));
            change(c, symmetric_sum::of_three(x, y, z));
        }
    }
}

/// The 8×8 coarse cells beside a face, in their group.
pub(super) struct FaceCells {
    /// Offset of the first.
    first: usize,
    /// Its coordinates along the face's axes a and b.
    origin: [usize; 2],
    /// Distance in memory along a and b.
    strides: [usize; 2],
}

impl FaceCells {
    #[inline(always)]
    pub(super) fn of(face: &CoarseFineFace) -> Self {
        let axis = usize::from(face.axis);
        let mut corner = octant_origin(usize::from(face.octant));
        let [a, b] = face_axes(axis);
        let origin = [corner[a], corner[b]];
        corner[axis] += if face.high { PATCH - 1 } else { 0 };
        Self { first: cell(corner[0], corner[1], corner[2]), origin, strides: [strides(GROUP)[a], strides(GROUP)[b]] }
    }

    /// Offset of the cell at (a, b) of the patch's face.
    #[inline(always)]
    pub(super) fn cell(&self, a: usize, b: usize) -> usize {
        self.first + a * self.strides[0] + b * self.strides[1]
    }
}

//! A group of a coarse grid with one layer of cells around it.

use super::beyond_ratio;
use crate::layout::{CENTRE, DIRECTIONS, FACE_CELLS, GROUP, PATCH, direction, offset};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::operations::potential_ghosts::{face_axes, strides};
use crate::real::Real;

/// Where the cells in each direction around a group come from.
pub(crate) struct Around<T> {
    /// Slot of the group that has them.
    slots: [u32; DIRECTIONS],
    /// The direction of that group: steps towards missing groups are omitted.
    towards: [[i32; 3]; DIRECTIONS],
    /// Factors of the values: −r per omitted step.
    factors: [T; DIRECTIONS],
}

impl<T: Real> Around<T> {
    /// Around group `g` on the grid of `width` cells along an axis: of a direction, the step along x is taken if there is a
    /// group, then from there the one along y, then the one along z.
    #[inline(always)]
    pub(crate) fn of(tables: &LevelTopology, g: usize, width: usize) -> Self {
        let beyond = T::from_f64(-beyond_ratio(width));
        let (row, outside) = (tables.row(g), tables.outside[g]);
        let mut around =
            Self { slots: [row[CENTRE]; DIRECTIONS], towards: [[0; 3]; DIRECTIONS], factors: [T::one(); DIRECTIONS] };
        for d in 0..DIRECTIONS {
            let mut taken = [0; 3];
            for (axis, step) in offset(d).into_iter().enumerate().filter(|(_, step)| *step != 0) {
                let mut further = taken;
                further[axis] = step;
                let [x, y, z] = further;
                let is_outside = outside >> (2 * axis + usize::from(step > 0)) & 1 == 1;
                if !is_outside && row[direction(x, y, z)] != NONE {
                    taken = further;
                } else {
                    around.factors[d] *= beyond;
                }
            }
            let [x, y, z] = taken;
            around.slots[d] = row[direction(x, y, z)];
            around.towards[d] = taken;
        }
        around
    }

    /// Whether there is no group in this direction.
    #[inline(always)]
    fn is_missing(&self, d: usize) -> bool {
        self.towards[d] != offset(d)
    }

    /// The neighbours across faces that cell (x, y, z) of `n`³ lacks.
    #[inline(always)]
    pub(crate) fn missing(&self, n: usize, [x, y, z]: [usize; 3]) -> usize {
        let at = |d: [i32; 3], is_there: bool| usize::from(is_there && self.is_missing(direction(d[0], d[1], d[2])));
        at([-1, 0, 0], x == 0)
            + at([1, 0, 0], x + 1 == n)
            + at([0, -1, 0], y == 0)
            + at([0, 1, 0], y + 1 == n)
            + at([0, 0, -1], z == 0)
            + at([0, 0, 1], z + 1 == n)
    }

    /// Fills `block`, `[n + 2, n + 2, n + 2]`, from `pool`, `[slots, n, n, n]`.
    #[inline(always)]
    pub(crate) fn fill(&self, n: usize, pool: &[T], block: &mut [T]) {
        let side = |p: usize| if p == 0 { -1 } else { i32::from(p > n) };
        // the first cell of a run in that group, and the length of the run
        let run = |step: i32, taken: i32| match (step, taken) {
            (0, _) => (0, n),
            (-1, 0) | (1, 1) => (0, 1),
            _ => (n - 1, 1),
        };
        for z in 0..n + 2 {
            for y in 0..n + 2 {
                let (dy, dz) = (side(y), side(z));
                for dx in -1..=1 {
                    let d = direction(dx, dy, dz);
                    let [tx, ty, tz] = self.towards[d];
                    let (first, length) = run(dx, tx);
                    let inside = |p: usize, step: i32, taken: i32| if step == 0 { p - 1 } else { run(step, taken).0 };
                    let row = (self.slots[d] as usize * n + inside(z, dz, tz)) * n + inside(y, dy, ty);
                    let from = &pool[row * n + first..][..length];
                    let start = (z * (n + 2) + y) * (n + 2) + [0, 1, n + 1][(dx + 1) as usize];
                    for (value, &from) in block[start..][..length].iter_mut().zip(from) {
                        *value = self.factors[d] * from;
                    }
                }
            }
        }
    }
}

/// Σ over the six neighbours − 6 times the value, at a place of a block that is `side` cells wide.
#[inline(always)]
pub(crate) fn laplacian<T: Real>(block: &[T], side: usize, at: usize) -> T {
    let [x, y, z] = strides(side).map(|stride| block[at - stride] + block[at + stride]);
    ((x + y) + z) - T::from_f64(6.0) * block[at]
}

/// Linear interpolation a quarter of a cell from a centre towards its neighbour.
#[inline(always)]
pub(crate) fn quarter_towards<T: Real>(centre: T, neighbour: T) -> T {
    T::from_f64(0.75) * centre + T::from_f64(0.25) * neighbour
}

/// The error at the ghost cells of faces of a group: of the group's own cells and of those around.
pub(crate) struct GhostErrors<T> {
    block: [T; SIDE * SIDE * SIDE],
}

/// Cells of the finest grid along an axis, with a layer around.
const SIDE: usize = PATCH + 2;

impl<T: Real> GhostErrors<T> {
    /// * `error`: `[slots, 8, 8, 8]`
    #[inline(always)]
    pub(crate) fn load(tables: &LevelTopology, g: usize, error: &[T]) -> Self {
        let mut block = [T::zero(); SIDE * SIDE * SIDE];
        Around::of(tables, g, PATCH).fill(PATCH, error, &mut block);
        Self { block }
    }

    /// Of a face, `[16, 16]` as its ghosts.
    #[inline(always)]
    pub(crate) fn face(&self, face: usize) -> [T; FACE_CELLS] {
        let axis = face / 2;
        let [normal, first, second] = [axis, face_axes(axis)[0], face_axes(axis)[1]].map(|axis| strides(SIDE)[axis]);
        let [inside, beyond] = if face & 1 == 0 { [1, 0] } else { [PATCH, PATCH + 1] };
        // across the face
        let mut plane = [[T::zero(); SIDE]; SIDE];
        for (b, row) in plane.iter_mut().enumerate() {
            for (a, value) in row.iter_mut().enumerate() {
                let along = b * second + a * first;
                *value = quarter_towards(self.block[along + beyond * normal], self.block[along + inside * normal]);
            }
        }
        let mut errors = [T::zero(); FACE_CELLS];
        for n in 0..GROUP {
            let (row, next) = (n / 2 + 1, if n & 1 == 0 { n / 2 } else { n / 2 + 2 });
            for m in 0..GROUP {
                let (column, beside) = (m / 2 + 1, if m & 1 == 0 { m / 2 } else { m / 2 + 2 });
                let along = |row: usize| quarter_towards(plane[row][column], plane[row][beside]);
                errors[n * GROUP + m] = quarter_towards(along(row), along(next));
            }
        }
        errors
    }
}

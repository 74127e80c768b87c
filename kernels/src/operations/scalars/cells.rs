//! A group's scalars with the ghost cells around it, cell by cell.
//!
//! Ghost cells are found as those of the gas ([`mod@crate::level::ghosts`]): copied from a group of the level, else
//! interpolated from the coarser level, there in the mass fraction. Beyond a face of the domain the gas has the mass
//! fraction of the cell inside that is copied or mirrored, also where its own state is fixed.

use crate::layout::{
    DENSITY, GROUP, GROUP_CELLS, GROUP_VALUES, HYDRO_BLOCK, HYDRO_GHOSTS, INTERIOR, PATCH, cell, direction,
};
use crate::level::face_boundary::{AxisPosition, FaceBoundary, places};
use crate::level::ghosts::{EarlierFluid, block_cell};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::point::passive_scalar::{FractionSlopes, mass_fraction};
use crate::real::Real;

/// What one scalar of the cells in and around a group is read from.
pub(crate) struct ScalarCells<'a, T, S> {
    pub(crate) tables: &'a LevelTopology,
    /// The group.
    pub(crate) g: usize,
    /// The pool, `[slot, 6, 16, 16, 16]`.
    pub(crate) fluid: &'a [T],
    /// The scalar of a slot, `[16, 16, 16]`.
    pub(crate) scalar: S,
    /// Where the coarser level is ahead: its earlier state, and offset and length of this scalar's places in the pool.
    pub(crate) earlier: Option<(&'a EarlierFluid<'a, T>, &'a [T], [usize; 2])>,
}

impl<'a, T: Real, S: Fn(u32) -> &'a [T]> ScalarCells<'a, T, S> {
    /// Fills a block, `[22, 22, 22]`.
    ///
    /// * `density`: of the gas in the same cells
    #[inline(always)]
    pub(crate) fn gather(&self, density: &[T], block: &mut [T]) {
        let first = -(HYDRO_GHOSTS as i32);
        let [x, y, z] = [0, 1, 2].map(|axis| places::<HYDRO_BLOCK>(first, self.tables.ends(self.g, axis)));
        let row = self.tables.row(self.g);
        for k in 0..HYDRO_BLOCK {
            for j in 0..HYDRO_BLOCK {
                let middle = row[direction(0, y[j].step, z[k].step)];
                let is_fixed = [y[j], z[k]].iter().any(is_fixed);
                let whole = middle != NONE && !is_fixed;
                if whole {
                    let from = &(self.scalar)(middle)[cell(0, y[j].cell, z[k].cell)..][..GROUP];
                    block[block_cell(0, HYDRO_GHOSTS, j, k)..][..GROUP].copy_from_slice(from);
                }
                for i in (0..HYDRO_BLOCK).filter(|i| !whole || !INTERIOR.contains(i)) {
                    let at = block_cell(0, i, j, k);
                    block[at] = self.value([x[i], y[j], z[k]], density[at]);
                }
            }
        }
    }

    /// ρX of the cell at these places, where the gas has that density.
    #[inline(always)]
    fn value(&self, places: [AxisPosition; 3], density: T) -> T {
        let [x, y, z] = &places;
        let slot = self.tables.row(self.g)[direction(x.step, y.step, z.step)];
        let is_fixed = places.iter().any(is_fixed);
        if slot != NONE {
            let at = cell(x.cell, y.cell, z.cell);
            let scalar = (self.scalar)(slot)[at];
            if !is_fixed {
                return scalar;
            }
            return density
                * mass_fraction(scalar, self.fluid[slot as usize * GROUP_VALUES + DENSITY * GROUP_CELLS + at]);
        }
        // of the group, from −3 to 18
        let fine = places.map(|place| place.step * GROUP as i32 + place.cell as i32);
        let octant = usize::from(self.tables.octants[self.g]);
        let coarse = std::array::from_fn(|a| (octant >> a & 1) as i32 * PATCH as i32 + (fine[a] >> 1));
        let n = (0..3).map(|a| ((fine[a] & 1) as usize) << a).sum();
        let [interpolated, fraction] = self.slopes(coarse).fine(n);
        if is_fixed { density * fraction } else { interpolated * fraction }
    }

    /// The coarse cell at (x, y, z), counted from the parent's first one, with its slopes.
    #[inline(always)]
    pub(crate) fn slopes(&self, at: [i32; 3]) -> FractionSlopes<T> {
        let beside = |axis: usize, step: i32| {
            let mut cell = at;
            cell[axis] += step;
            let [place] = places::<1>(cell[axis], self.tables.ends(self.g, axis));
            cell[axis] = place.step * GROUP as i32 + place.cell as i32;
            let [density, fraction] = self.coarse(cell);
            match place.beyond {
                Some(FaceBoundary::Fixed(state)) => [T::from_f64(state[DENSITY]), fraction],
                _ => [density, fraction],
            }
        };
        let [low, high] = [-1, 1].map(|step| std::array::from_fn(|axis| beside(axis, step)));
        FractionSlopes::new(self.coarse(at), low, high)
    }

    /// Density and mass fraction of a coarse cell inside the domain.
    #[inline(always)]
    fn coarse(&self, at: [i32; 3]) -> [T; 2] {
        let steps = at.map(|n| n.div_euclid(GROUP as i32));
        let [x, y, z] = at.map(|n| n.rem_euclid(GROUP as i32) as usize);
        let slot = self.tables.parent_row(self.g)[direction(steps[0], steps[1], steps[2])];
        assert!(slot != NONE, "group {} of this level touches no coarse group", self.g);
        let at = cell(x, y, z);
        let mut density = self.fluid[slot as usize * GROUP_VALUES + DENSITY * GROUP_CELLS + at];
        let mut scalar = (self.scalar)(slot)[at];
        if let Some((earlier, scalars, [offset, values])) = self.earlier {
            let place = earlier.places[slot as usize] as usize;
            let before = earlier.fluid.host()[place * GROUP_VALUES + DENSITY * GROUP_CELLS + at];
            density = before + earlier.weight * (density - before);
            let before = scalars[place * values + offset + at];
            scalar = before + earlier.weight * (scalar - before);
        }
        [density, mass_fraction(scalar, density)]
    }
}

/// Whether a place is beyond a face with a state of its own.
#[inline(always)]
fn is_fixed(place: &AxisPosition) -> bool {
    matches!(place.beyond, Some(FaceBoundary::Fixed(_)))
}

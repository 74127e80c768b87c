//! Flags on the host: parallel over groups.

use super::program::{Cells, evaluate};
use super::stencil::{BlockFields, LANES, Lanes, dark_matter, rough, steep};
use super::{FlagCriteria, FlagCriterion, Step};
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::device::scratch::PerThread;
use crate::layout::{
    DENSITY, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, OCTANTS, PATCH, cell, direction, octant_origin,
};
use crate::level::ghosts::{CoarseCells, gather};
use crate::level::level_topology::LevelTopology;
use crate::point::dual_energy::pressure;
use crate::point::eos::Eos;
use crate::real::Real;
use rayon::prelude::*;

/// Arrays that criteria read; see [`super::flag`].
#[derive(Clone, Copy)]
pub(super) struct Pools<'a, T> {
    pub(super) fluid: Option<&'a [T]>,
    pub(super) matter: Option<&'a [T]>,
    pub(super) followed: Option<&'a [u64]>,
}

pub(super) fn flag<T: Real>(
    isa: Isa,
    tables: &LevelTopology,
    coordinates: &[[u32; 3]],
    pools: Pools<'_, T>,
    criteria: &FlagCriteria<T>,
    buffer: usize,
    masks: &mut [u32],
) {
    let scratch = PerThread::new(|| Scratch::for_criteria(criteria));
    masks.par_chunks_mut(OCTANTS).enumerate().for_each(|(g, masks)| {
        let rows = scratch.with(|scratch| flagged_rows(isa, tables, g, coordinates[g], pools, criteria, scratch));
        for (o, mask) in masks.iter_mut().enumerate() {
            *mask = patch_mask(&rows, octant_origin(o), buffer);
        }
    });
}

/// A thread's work space: a block where some criterion reads neighbours.
pub(super) struct Scratch<T>(Option<(CoarseCells<T>, BlockFields<T>)>);

impl<T: Real> Scratch<T> {
    pub(super) fn for_criteria(criteria: &FlagCriteria<T>) -> Self {
        let reads_neighbours = criteria.met.criteria().any(FlagCriterion::reads_neighbours);
        Self(reads_neighbours.then(|| (CoarseCells::new(), BlockFields::new())))
    }
}

/// The flagged cells of group `g`.
pub(super) fn flagged_rows<T: Real>(
    isa: Isa,
    tables: &LevelTopology,
    g: usize,
    coordinate: [u32; 3],
    Pools { fluid, matter, followed }: Pools<'_, T>,
    criteria: &FlagCriteria<T>,
    scratch: &mut Scratch<T>,
) -> FlaggedRows {
    let slot = tables.slots[g] as usize;
    let group = fluid.map_or(&[][..], |fluid| &fluid[slot * GROUP_VALUES..][..GROUP_VALUES]);
    let block =
        scratch.0.as_mut().zip(fluid).map(|((coarse, block), fluid)| Gathered { tables, g, fluid, coarse, block });
    let density = match matter {
        Some(matter) => &matter[slot * GROUP_CELLS..][..GROUP_CELLS],
        None => group.get(DENSITY * GROUP_CELLS..).map_or(group, |from_density| &from_density[..GROUP_CELLS]),
    };
    let followed = followed.map_or(&[][..], |followed| &followed[slot * GROUP_CELLS..][..GROUP_CELLS]);
    isa.run(GroupFlags { group, density, followed, coordinate, criteria, block })
}

/// Flagged cells of a group: row (j, k) at `k * 16 + j`, cell i in bit i.
pub(super) type FlaggedRows = [u16; GROUP * GROUP];

/// Where a group's block is gathered from and to.
struct Gathered<'a, T> {
    tables: &'a LevelTopology,
    g: usize,
    /// `[slots, 6, 16, 16, 16]`
    fluid: &'a [T],
    coarse: &'a mut CoarseCells<T>,
    block: &'a mut BlockFields<T>,
}

/// The flagged cells of one group.
struct GroupFlags<'a, T> {
    /// `[6, 16, 16, 16]`, empty without gas
    group: &'a [T],
    /// Of gas and dark matter, `[16, 16, 16]`
    density: &'a [T],
    /// Weights of followed particles, `[16, 16, 16]`, or empty
    followed: &'a [u64],
    coordinate: [u32; 3],
    criteria: &'a FlagCriteria<T>,
    /// For criteria that read neighbours.
    block: Option<Gathered<'a, T>>,
}

compiled_here!(GroupFlags<'static, f32>, GroupFlags<'static, f64>);

impl<T: Real> Kernel for GroupFlags<'_, T> {
    type Output = FlaggedRows;

    #[inline(always)]
    fn run(self) -> FlaggedRows {
        let monatomic = T::from_f64(5.0 / 3.0);
        let eos = self.criteria.level.eos;
        // a constant exponent for the common gas, as in the sweep
        if eos.gamma == monatomic { self.flags(&Eos { gamma: monatomic, ..eos }) } else { self.flags(&eos) }
    }
}

impl<T: Real> GroupFlags<'_, T> {
    #[inline(always)]
    fn flags(mut self, eos: &Eos<T>) -> FlaggedRows {
        let mut block = self.block.take().map(|Gathered { tables, g, fluid, coarse, block }| {
            gather(tables, g, fluid, None, eos, coarse, &mut block.block);
            block
        });
        let mut sets: Vec<FlaggedRows> = Vec::with_capacity(self.criteria.met.depth());
        for step in self.criteria.met.steps() {
            match step {
                Step::Criterion(criterion) => sets.push(self.cells_that_meet(criterion, block.as_deref_mut(), eos)),
                Step::Nowhere => sets.push([0; GROUP * GROUP]),
                Step::And => join(&mut sets, |row, other| *row &= other),
                Step::Or => join(&mut sets, |row, other| *row |= other),
                Step::Not => sets.last_mut().expect("a set to complement").iter_mut().for_each(|row| *row = !*row),
            }
        }
        sets.pop().expect("a combination leaves one set")
    }

    #[inline(always)]
    fn cells_that_meet(
        &self,
        criterion: &FlagCriterion<T>,
        block: Option<&mut BlockFields<T>>,
        eos: &Eos<T>,
    ) -> FlaggedRows {
        let mut flagged = [0; GROUP * GROUP];
        let level = &self.criteria.level;
        let gathered = "gathered for criteria on neighbours";
        match criterion {
            FlagCriterion::DensityAbove(threshold) => {
                by_row(&mut flagged, |j, k| above(&self.density[cell(0, j, k)..][..LANES], *threshold));
            }
            FlagCriterion::DarkMatterAbove(threshold) => {
                by_row(&mut flagged, |j, k| above(&dark_matter(self.density, self.group, j, k), *threshold));
            }
            FlagCriterion::FollowedAbove(threshold) => {
                by_row(&mut flagged, |j, k| {
                    let weights = &self.followed[cell(0, j, k)..][..LANES];
                    above(&weights_of_followed::<T>(weights), *threshold)
                });
            }
            FlagCriterion::GradientAbove { of, threshold } => {
                block.expect(gathered).for_each_component(*of, eos, |value, scale| {
                    by_row(&mut flagged, |j, k| steep(value, scale, j, k, *threshold));
                });
            }
            FlagCriterion::LohnerAbove { of, threshold, filter } => {
                block.expect(gathered).for_each_component(*of, eos, |value, scale| {
                    by_row(&mut flagged, |j, k| rough(value, scale, j, k, *threshold, *filter));
                });
            }
            FlagCriterion::JeansCellsBelow(cells) => {
                let factor = level.jeans_factor(*cells);
                by_row(&mut flagged, |j, k| unstable(self.group, eos, j, k, factor));
            }
            FlagCriterion::Inside(region) => {
                let [x, y, z] = [0, 1, 2].map(|axis| region.distances(level, self.coordinate, axis));
                let radius_squared = region.radius * region.radius;
                by_row(&mut flagged, |j, k| {
                    let across = y[j] + z[k];
                    x.map(|along| along + across <= radius_squared)
                });
            }
            FlagCriterion::Where(program) => {
                let (group, density, block) = (self.group, self.density, block.as_deref());
                let cells = Cells { group, density, block, coordinate: self.coordinate, level };
                by_row(&mut flagged, |j, k| evaluate(program, &cells, j, k).map(|result| result > 0.0));
            }
        }
        flagged
    }
}

/// Joins the upper set into the one below it, row by row.
fn join(sets: &mut Vec<FlaggedRows>, by: impl Fn(&mut u16, u16)) {
    let upper = sets.pop().expect("two sets to join");
    let lower = sets.last_mut().expect("two sets to join");
    lower.iter_mut().zip(upper).for_each(|(row, other)| by(row, other));
}

/// Adds the cells that `met` names in each row (j, k).
#[inline(always)]
fn by_row(flagged: &mut FlaggedRows, mut met: impl FnMut(usize, usize) -> Lanes<bool>) {
    for k in 0..GROUP {
        for j in 0..GROUP {
            let met = met(j, k);
            // most rows have no flagged cell: ask for all of them at once
            let mut any = false;
            for i in 0..LANES {
                any |= met[i];
            }
            if any {
                flagged[k * GROUP + j] |= (0..LANES).fold(0, |bits, i| bits | u16::from(met[i]) << i);
            }
        }
    }
}

#[inline(always)]
fn above<T: Real>(row: &[T], threshold: T) -> Lanes<bool> {
    let mut met = [false; LANES];
    for i in 0..LANES {
        met[i] = row[i] > threshold;
    }
    met
}

#[inline(always)]
fn weights_of_followed<T: Real>(weights: &[u64]) -> Lanes<T> {
    let mut row = [T::zero(); LANES];
    for i in 0..LANES {
        row[i] = T::from_f64(weights[i] as f64);
    }
    row
}

/// P < `factor` ρ² in row (j, k).
#[inline(always)]
fn unstable<T: Real>(group: &[T], eos: &Eos<T>, j: usize, k: usize, factor: T) -> Lanes<bool> {
    let rows: [&[T]; FIELDS] = std::array::from_fn(|f| &group[f * GROUP_CELLS + cell(0, j, k)..][..LANES]);
    let mut met = [false; LANES];
    for i in 0..LANES {
        let u = [rows[0][i], rows[1][i], rows[2][i], rows[3][i], rows[4][i], rows[5][i]];
        met[i] = pressure(&u, eos) < factor * u[DENSITY] * u[DENSITY];
    }
    met
}

/// The mask of the patch whose first cell is `origin`.
fn patch_mask(rows: &FlaggedRows, origin: [usize; 3], buffer: usize) -> u32 {
    let mut mask = 0;
    for k in 0..PATCH {
        for j in 0..PATCH {
            let row = rows[(origin[2] + k) * GROUP + origin[1] + j] >> origin[0];
            for i in (0..PATCH).filter(|i| row >> i & 1 == 1) {
                mask |= reach([i, j, k], buffer);
            }
        }
    }
    mask
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

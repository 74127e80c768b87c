//! The coarse correction of a level (two-level Schwarz method): the error that relaxation between groups would take many
//! steps to move.

use crate::device_arrays::device_arrays;
use crate::gravity::level_problem::LevelProblem;
use crate::parallel::coarse_links::CoarseLinks;
use comove_kernels::coarse_correction::{CoarseGrid, OtherRanks, find_error};
use comove_kernels::{Buffer, Real};

device_arrays! {
    /// Right-hand side, error and next error on the grids of 8³, 4³, 2³ and 1 cells a group, `[slots, n, n, n]`.
    pub(super) struct CoarseGrids<T> {
        eight: [Buffer<T>; 3] = |extent| extent.refined_slots * 512,
        four: [Buffer<T>; 3] = |extent| extent.refined_slots * 64,
        two: [Buffer<T>; 3] = |extent| extent.refined_slots * 8,
        one: [Buffer<T>; 3] = |extent| extent.coarsest_slots,
    }
}

impl<T: Real> CoarseGrids<T> {
    /// The error that the last cycle found, `[slots, 8, 8, 8]`.
    pub(super) fn error(&self) -> &Buffer<T> {
        &self.eight[CoarseGrid::<T>::ERROR]
    }

    /// Finds the error of the groups' solutions `field`, which were solved with these ghosts: a V-cycle.
    pub(super) fn find_error(&mut self, problem: &LevelProblem<T>, ghosts: &Buffer<T>, field: &Buffer<T>) {
        let (tables, ranks) = (&problem.hierarchy.tables[problem.level], problem.hierarchy.ranks);
        let Self { eight, four, two, one } = self;
        let grids = [eight, four, two, one];
        let Some(links) = ranks.links.get(problem.level) else {
            return find_error(problem.device, tables, ghosts, field, grids, None);
        };
        let CoarseLinks { with_ghosts, ghosts: theirs, whole, gather, .. } = &links.coarse;
        let mut exchange = |width: usize, array: &mut Buffer<T>| {
            let links = if width == 1 { gather } else { &links.beside };
            ranks.ghost_exchange.exchange_slots(links, width.pow(3), array);
        };
        let others = OtherRanks { with_ghosts, ghosts: theirs, whole, exchange: &mut exchange };
        find_error(problem.device, tables, ghosts, field, grids, Some(others));
    }
}

//! The coarse correction of a level (two-level Schwarz method): one V-cycle for the error that relaxation between
//! groups would take many steps to move.

use crate::device_arrays::device_arrays;
use crate::gravity::level_problem::LevelProblem;
use comove_kernels::coarse_correction::{
    CoarseGrid, GRID_WIDTHS, face_residual, prolong_error, restrict_residual, smooth,
};
use comove_kernels::{Buffer, Real};

/// Weights of the sweeps before a coarser grid is used, after it, and on the coarsest grid: Chebyshev's for the errors
/// that each has to damp (docs/notes-gravity.md).
const BEFORE: [f64; 2] = [0.5759, 2.157];
const AFTER: f64 = 0.9091;
const COARSEST: [f64; 8] = [0.5047, 0.5445, 0.6374, 0.8202, 1.189, 2.036, 4.475, 12.72];

device_arrays! {
    /// Right-hand side, error and next error on the grids of 8³, 4³, 2³ and 1 cells a group, `[slots, n, n, n]`.
    pub(super) struct CoarseGrids<T> {
        eight: [Buffer<T>; 3] = |extent| extent.refined_slots * 512,
        four: [Buffer<T>; 3] = |extent| extent.refined_slots * 64,
        two: [Buffer<T>; 3] = |extent| extent.refined_slots * 8,
        one: [Buffer<T>; 3] = |extent| extent.refined_slots,
    }
}

impl<T: Real> CoarseGrids<T> {
    /// The error that the last cycle found, `[slots, 8, 8, 8]`.
    pub(super) fn error(&self) -> &Buffer<T> {
        &self.eight[CoarseGrid::<T>::ERROR]
    }

    /// Finds the error of the groups' solutions `field`, which were solved with these ghosts: a V-cycle.
    pub(super) fn find_error(&mut self, problem: &LevelProblem<T>, ghosts: &Buffer<T>, field: &Buffer<T>) {
        let (device, tables) = (problem.device, &problem.hierarchy.tables[problem.level]);
        let coarsest = GRID_WIDTHS.len() - 1;
        face_residual(device, tables, ghosts, field, BEFORE[0], self.grid(0));
        for n in 0..coarsest {
            self.sweep(problem, n, BEFORE[1]);
            self.exchange(problem, n);
            let first = if n + 1 == coarsest { COARSEST[0] } else { BEFORE[0] };
            let [fine, coarse] = self.pair(n);
            restrict_residual(device, tables, first, fine, coarse);
        }
        for weight in &COARSEST[1..] {
            self.sweep(problem, coarsest, *weight);
        }
        for n in (0..coarsest).rev() {
            self.exchange(problem, n + 1);
            let [fine, coarse] = self.pair(n);
            prolong_error(device, tables, coarse, fine);
            self.sweep(problem, n, AFTER);
        }
        self.exchange(problem, 0);
    }

    /// A sweep over a grid, whose ghosts on other ranks come first.
    fn sweep(&mut self, problem: &LevelProblem<T>, n: usize, weight: f64) {
        self.exchange(problem, n);
        smooth(problem.device, &problem.hierarchy.tables[problem.level], weight, self.grid(n));
    }

    /// Brings the errors of other ranks' groups up to date.
    fn exchange(&mut self, problem: &LevelProblem<T>, n: usize) {
        let ranks = problem.hierarchy.ranks;
        if let Some(links) = ranks.links.get(problem.level) {
            let grid = self.grid(n);
            let values = grid.values();
            let error = &mut grid.arrays[CoarseGrid::<T>::ERROR];
            ranks.ghost_exchange.exchange_slots(&links.beside, values, error);
        }
    }

    /// Grid `n` of [`GRID_WIDTHS`].
    fn grid(&mut self, n: usize) -> CoarseGrid<'_, T> {
        let arrays = [&mut self.eight, &mut self.four, &mut self.two, &mut self.one];
        let arrays = arrays.into_iter().nth(n).expect("four grids");
        CoarseGrid { width: GRID_WIDTHS[n], arrays }
    }

    /// Grid `n` and the next coarser one.
    fn pair(&mut self, n: usize) -> [CoarseGrid<'_, T>; 2] {
        let [fine, coarse] = match n {
            0 => [&mut self.eight, &mut self.four],
            1 => [&mut self.four, &mut self.two],
            _ => [&mut self.two, &mut self.one],
        };
        [CoarseGrid { width: GRID_WIDTHS[n], arrays: fine }, CoarseGrid { width: GRID_WIDTHS[n + 1], arrays: coarse }]
    }
}

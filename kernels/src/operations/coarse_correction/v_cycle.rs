//! One V-cycle over the coarse grids.

use super::{CoarseGrid, GRID_WIDTHS, face_residual, prolong_error, restrict_residual, smooth, start_sweep};
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

/// Weights of the sweeps before a coarser grid is used, after it, and on the coarsest grid: Chebyshev's for the errors
/// that each has to damp (docs/notes/gravity.md).
const BEFORE: [f64; 2] = [0.5759, 2.157];
const AFTER: f64 = 0.9091;
const COARSEST: [f64; 8] = [0.5047, 0.5445, 0.6374, 0.8202, 1.189, 2.036, 4.475, 12.72];

/// The grid of one cell a group.
const COARSEST_GRID: usize = GRID_WIDTHS.len() - 1;

/// The first of the grids that one launch may solve: that of 4³ cells.
const SMALL_GRIDS: usize = 1;

/// True for the grids whose source and error ranks send each other, the coarsest apart.
const IS_SHARED: [bool; COARSEST_GRID] = [true, false, true];

/// Ghosts and exchange of a level that ranks share. Between two messages a rank also works on the ghosts beside its groups,
/// all 26 around each: a sweep or a residual leaves one layer of cells fewer right. With the source of 8³ cells these are 8
/// layers, 7 after the sweep, 6 of the residual; 3 of the source of 4³ cells, 2 after the sweep. With the error of 2³ cells
/// they are 2 of 4³ cells, 1 after the sweep and 1 of 8³ cells, which the last sweep needs: there is none to spare. The
/// coarsest grid has all groups on every rank.
pub struct OtherRanks<'a, T> {
    /// Own groups, and the ghosts beside them. Rows name a group wherever there is one; of one that is no ghost here they
    /// may name any slot.
    pub with_ghosts: &'a LevelTopology,
    /// These ghosts alone.
    pub ghosts: &'a LevelTopology,
    /// The groups of all ranks, as far as their faces go; the coarsest grid has a slot for each.
    pub whole: &'a LevelTopology,
    /// Brings an array of the grid of so many cells a group along an axis up to date at other ranks' groups: all of them on
    /// the coarsest grid, else ghosts.
    pub exchange: &'a mut Exchange<'a, T>,
}

/// Of a grid and an array.
type Exchange<'a, T> = dyn FnMut(usize, &mut Buffer<T>) + 'a;

/// The grids of a level, and the ranks that share it.
struct VCycle<'a, T> {
    device: &'a Device,
    /// The groups that all grids but the coarsest are worked on.
    tables: &'a LevelTopology,
    /// Those of them that other ranks have the source of.
    ghosts: &'a LevelTopology,
    /// The groups that the coarsest grid is worked on.
    whole: &'a LevelTopology,
    /// In the order of [`GRID_WIDTHS`].
    grids: [&'a mut [Buffer<T>; 3]; 4],
    exchange: Option<&'a mut Exchange<'a, T>>,
}

/// Finds the error of the groups' solutions at faces by a V-cycle: on each grid two sweeps, the coarser grids, one sweep.
///
/// - `ghosts`, `potential`: as of [`face_residual`].
/// - `grids`: their arrays, in the order of [`GRID_WIDTHS`]. The error is on the first one.
/// - `others`: none where the level is of one rank.
///
/// # Panics
/// If an array is too short.
pub fn find_error<'a, T: Real>(
    device: &'a Device,
    tables: &'a LevelTopology,
    ghosts: &Buffer<T>,
    potential: &Buffer<T>,
    grids: [&'a mut [Buffer<T>; 3]; 4],
    others: Option<OtherRanks<'a, T>>,
) {
    let mut cycle = match others {
        None => VCycle { device, tables, ghosts: tables, whole: tables, grids, exchange: None },
        Some(OtherRanks { with_ghosts, ghosts, whole, exchange }) => {
            VCycle { device, tables: with_ghosts, ghosts, whole, grids, exchange: Some(exchange) }
        }
    };
    face_residual(device, tables, ghosts, potential, BEFORE[0], cycle.grid(0));
    cycle.solve(0);
}

/// The weight of the first sweep on a grid.
fn first_weight(n: usize) -> f64 {
    if n == COARSEST_GRID { COARSEST[0] } else { BEFORE[0] }
}

impl<'a, T: Real> VCycle<'a, T> {
    /// The groups that a grid is worked on.
    fn tables(&self, n: usize) -> &'a LevelTopology {
        if n == COARSEST_GRID { self.whole } else { self.tables }
    }

    /// Finds the error on grid `n`, where own groups have the source and the first sweep.
    fn solve(&mut self, n: usize) {
        if n == COARSEST_GRID {
            return self.solve_coarsest();
        }
        if n == SMALL_GRIDS && self.are_solved_at_once() {
            return;
        }
        let (device, tables, next) = (self.device, self.tables, n + 1);
        if IS_SHARED[n] {
            self.share_source(n);
        }
        self.sweep(n, BEFORE[1]);
        if !(next == COARSEST_GRID && self.exchange.is_none() && self.is_solved_at_once()) {
            let [fine, coarse] = self.pair(n);
            restrict_residual(device, tables, first_weight(next), fine, coarse);
            self.solve(next);
        }
        let [fine, coarse] = self.pair(n);
        prolong_error(device, tables, coarse, fine);
        self.sweep(n, AFTER);
        if IS_SHARED[n] {
            self.share(n, CoarseGrid::<T>::ERROR);
        }
    }

    /// Finds the error on the coarsest grid.
    fn solve_coarsest(&mut self) {
        let n = COARSEST_GRID;
        self.share(n, CoarseGrid::<T>::SOURCE);
        if self.is_solved_at_once() {
            return;
        }
        if self.exchange.is_some() {
            start_sweep(self.device, self.whole, first_weight(n), self.grid(n));
        }
        COARSEST[1..].iter().for_each(|&weight| self.sweep(n, weight));
    }

    /// Solves the coarsest grid where one launch takes less time than its sweeps: of one rank from the residual of the finer
    /// grid, else from the source.
    fn is_solved_at_once(&mut self) -> bool {
        match self.device {
            Device::Cpu(_) => false,
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => {
                let whole = self.whole;
                if !super::cuda::is_for_one_block(whole) {
                    return false;
                }
                self.grid(COARSEST_GRID).check(whole);
                let [_, _, fine, coarsest] = &mut self.grids;
                let fine = self.exchange.is_none().then_some(&**fine);
                super::cuda::solve_coarsest(device, whole, COARSEST, fine, coarsest);
                true
            }
        }
    }

    /// Solves the grids of 4³ cells and fewer of small levels of one rank, in one launch; false for others.
    fn are_solved_at_once(&mut self) -> bool {
        match self.device {
            Device::Cpu(_) => false,
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => {
                let tables = self.tables;
                if self.exchange.is_some() || !super::cuda::are_for_one_launch(device, tables) {
                    return false;
                }
                (SMALL_GRIDS..=COARSEST_GRID).for_each(|n| self.grid(n).check(tables));
                let [_, four, two, one] = &mut self.grids;
                super::cuda::solve_small_grids(device, tables, (BEFORE, AFTER, COARSEST), [four, two, one]);
                true
            }
        }
    }

    fn sweep(&mut self, n: usize, weight: f64) {
        smooth(self.device, self.tables(n), weight, self.grid(n));
    }

    /// Brings the source at other ranks' groups up to date, and makes the first sweep of it there too.
    fn share_source(&mut self, n: usize) {
        if self.exchange.is_some() {
            self.share(n, CoarseGrid::<T>::SOURCE);
            start_sweep(self.device, self.ghosts, first_weight(n), self.grid(n));
        }
    }

    fn share(&mut self, n: usize, array: usize) {
        if let Some(exchange) = &mut self.exchange {
            exchange(GRID_WIDTHS[n], &mut self.grids[n][array]);
        }
    }

    fn grid(&mut self, n: usize) -> CoarseGrid<'_, T> {
        CoarseGrid { width: GRID_WIDTHS[n], arrays: self.grids[n] }
    }

    /// Grid `n` and the next coarser one.
    fn pair(&mut self, n: usize) -> [CoarseGrid<'_, T>; 2] {
        let grids = self.grids.get_disjoint_mut([n, n + 1]).expect("a grid and a coarser one");
        let mut widths = [GRID_WIDTHS[n], GRID_WIDTHS[n + 1]].into_iter();
        grids.map(|arrays| CoarseGrid { width: widths.next().expect("two"), arrays })
    }
}

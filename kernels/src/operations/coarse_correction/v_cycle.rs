//! One V-cycle over the coarse grids.

use super::{CoarseGrid, GRID_WIDTHS, face_residual, prolong_error, restrict_residual, smooth};
use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

/// Weights of the sweeps before a coarser grid is used, after it, and on the coarsest grid: Chebyshev's for the errors
/// that each has to damp (docs/notes-gravity.md).
const BEFORE: [f64; 2] = [0.5759, 2.157];
const AFTER: f64 = 0.9091;
pub(super) const COARSEST: [f64; 8] = [0.5047, 0.5445, 0.6374, 0.8202, 1.189, 2.036, 4.475, 12.72];

/// Brings the errors of other ranks' groups up to date.
type Exchange<'e, T> = dyn FnMut(CoarseGrid<T>) + 'e;

/// The grids of a level, and the ranks that share it.
struct VCycle<'a, 'e, T> {
    device: &'a Device,
    tables: &'a LevelTopology,
    /// In the order of [`GRID_WIDTHS`].
    grids: [&'a mut [Buffer<T>; 3]; 4],
    exchange: Option<&'a mut Exchange<'e, T>>,
}

/// Finds the error of the groups' solutions at faces by a V-cycle: on each grid two sweeps, the coarser grids, one sweep.
///
/// - `ghosts`, `potential`: as of [`face_residual`].
/// - `grids`: their arrays, in the order of [`GRID_WIDTHS`]. The error is on the first one.
/// - `exchange`: brings the errors of other ranks' groups up to date; none where the level is of one rank.
///
/// # Panics
/// If an array is too short.
pub fn find_error<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    ghosts: &Buffer<T>,
    potential: &Buffer<T>,
    grids: [&mut [Buffer<T>; 3]; 4],
    exchange: Option<&mut Exchange<'_, T>>,
) {
    let mut cycle = VCycle { device, tables, grids, exchange };
    face_residual(device, tables, ghosts, potential, BEFORE[0], cycle.grid(0));
    cycle.solve(0);
    cycle.exchange(0);
}

impl<T: Real> VCycle<'_, '_, T> {
    /// Improves the error on grid `n`, where the first sweep is done.
    fn solve(&mut self, n: usize) {
        let (device, tables, next) = (self.device, self.tables, n + 1);
        if next == GRID_WIDTHS.len() {
            return COARSEST[1..].iter().for_each(|&weight| self.sweep(n, weight));
        }
        self.sweep(n, BEFORE[1]);
        self.exchange(n);
        if !self.is_solved_at_once(next) {
            let first = if next + 1 == GRID_WIDTHS.len() { COARSEST[0] } else { BEFORE[0] };
            let [fine, coarse] = self.pair(n);
            restrict_residual(device, tables, first, fine, coarse);
            self.solve(next);
        }
        self.exchange(next);
        let [fine, coarse] = self.pair(n);
        prolong_error(device, tables, coarse, fine);
        self.sweep(n, AFTER);
    }

    /// Solves the coarsest grid, if `n` is that, where one launch takes less time than its sweeps.
    fn is_solved_at_once(&mut self, n: usize) -> bool {
        if n + 1 != GRID_WIDTHS.len() || self.exchange.is_some() {
            return false;
        }
        match self.device {
            Device::Cpu(_) => false,
            #[cfg(feature = "cuda")]
            Device::Cuda(device) => {
                let tables = self.tables;
                self.pair(n - 1).iter().for_each(|grid| grid.check(tables));
                let [_, _, fine, coarsest] = &mut self.grids;
                super::cuda::solve_coarsest(device, tables, fine, coarsest)
            }
        }
    }

    fn sweep(&mut self, n: usize, weight: f64) {
        self.exchange(n);
        smooth(self.device, self.tables, weight, self.grid(n));
    }

    fn exchange(&mut self, n: usize) {
        let grid = CoarseGrid { width: GRID_WIDTHS[n], arrays: self.grids[n] };
        if let Some(exchange) = &mut self.exchange {
            exchange(grid);
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

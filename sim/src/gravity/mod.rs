//! Self-gravity: the potential of all levels, and the multi-level Poisson solve.

mod coarse_correction;
mod hierarchy;
mod level_problem;
mod level_solver;
mod poisson_solver;
mod root;

use crate::device_arrays::{ArrayBytes, Extent, device_arrays};
use crate::mesh::Mesh;
use crate::mesh::earlier_groups::EarlierGroups;
use comove_kernels::gravity_kick::{Peak, max_acceleration};
use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::slots::copy_slots;
use comove_kernels::{Buffer, Deferred, DensitySource, Device, KernelError, LevelTopology, Real, TimedPotential};
pub use hierarchy::{Hierarchy, Sharing};
pub use poisson_solver::{PoissonSolver, Purpose};
pub(crate) use root::root_bytes;

/// When, in the current step of a level, its potential was solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepPhase {
    /// Before the step.
    Start,
    /// At the kick.
    Mid,
    /// After it.
    End,
}

device_arrays! {
    /// The potential, on all levels.
    pub struct Potential<T> {
        /// φ̃ at each [`StepPhase`] of the current step of levels that have finer ones, `[places, 16, 16, 16]`; empty with
        /// uniform steps.
        earlier: [Buffer<T>; 3] = |extent| extent.earlier_groups * GROUP_CELLS,
        /// φ̃, `[slots, 16, 16, 16]`.
        pub current: Buffer<T> = |extent| extent.slots * GROUP_CELLS,
    }
}

/// The potential and its solver.
pub struct Gravity<T> {
    /// φ̃.
    pub potential: Potential<T>,
    solver: PoissonSolver<T>,
    /// Whether gravity is isolated: then the mean density attracts too.
    isolated: bool,
}

/// The levels whose potential is solved.
#[derive(Clone, Copy, Debug)]
pub enum Solve {
    /// This one and all finer ones, which are at one time ([`PoissonSolver::solve_from`]).
    From(usize),
    /// One at a time of its own, mass sheets held ([`PoissonSolver::solve_level`]).
    Level(usize),
}

impl<T: Real> Gravity<T> {
    /// Of a solver, without potential yet.
    pub(crate) fn new(device: &Device, solver: PoissonSolver<T>, isolated: bool) -> Result<Self, KernelError> {
        Ok(Self { potential: Potential::empty(device)?, solver, isolated })
    }

    /// The bytes of the arrays, in the order in which they grow.
    pub(crate) fn footprint(&self) -> Vec<ArrayBytes> {
        [self.solver.footprint(), self.potential.footprint()].concat()
    }

    /// The same where they fit a mesh.
    pub(crate) fn footprint_for(extent: &Extent) -> Vec<ArrayBytes> {
        [PoissonSolver::<T>::footprint_for(extent), Potential::<T>::footprint_for(extent)].concat()
    }

    /// Bytes of the root's work space.
    pub(crate) fn root_bytes(&self) -> usize {
        self.solver.root_bytes()
    }

    /// Bytes that a solve takes for itself.
    pub(crate) fn working_bytes(&self) -> usize {
        self.solver.working_bytes()
    }

    /// Makes the arrays fit a mesh. The potential comes last: if something does not fit, the present one can still be solved.
    pub(crate) fn fit(&mut self, device: &Device, extent: &Extent) -> Result<(), KernelError> {
        self.solver.fit(device, extent)?;
        self.potential.fit(device, extent)
    }

    /// What attracts: of these the mean, too, where gravity is isolated.
    pub(crate) fn source<'a>(&self, mut density: DensitySource<'a, T>) -> DensitySource<'a, T> {
        if self.isolated {
            density.mean = 0.0;
        }
        density
    }

    /// Solves ∇²φ = `four_pi_g` (ρ − `mean`), isolated without the mean.
    ///
    /// * `coarse`: the part of the coarser level's step that has passed by the time of these levels; none for the root
    /// * `density`: the source, with the mean density of the box
    pub(crate) fn solve(
        &mut self,
        device: &Device,
        hierarchy: &Hierarchy,
        earlier: &EarlierGroups,
        (levels, purpose): (Solve, Purpose),
        coarse: Option<f64>,
        density: DensitySource<T>,
    ) -> Result<(), KernelError> {
        let density = self.source(density);
        let Self { potential: Potential { earlier: phases, current }, solver, .. } = self;
        let coarse = coarse.map(|passed| between(phases, earlier, passed));
        match levels {
            Solve::From(base) => {
                solver.solve_from(device, hierarchy, base, purpose, coarse.as_ref(), density, current)?
            }
            Solve::Level(level) => {
                solver.solve_level(device, hierarchy, level, purpose, coarse.as_ref(), density, current)?
            }
        };
        Ok(())
    }
}

impl<T: Real> Potential<T> {
    /// Keeps the potential of a level, of the groups that finer ones interpolate from.
    pub(crate) fn keep(&mut self, device: &Device, mesh: &Mesh, level: usize, phase: StepPhase) {
        let [slots, places] = &mesh.earlier.levels[level];
        copy_slots(device, GROUP_CELLS, &self.current, slots, &mut self.earlier[phase as usize], places);
    }

    /// The potential at a fraction of the current step of a level: between start and middle or middle and end.
    pub(crate) fn at<'a>(&'a self, mesh: &'a Mesh, fraction: f64) -> TimedPotential<'a, T> {
        between(&self.earlier, &mesh.earlier, fraction)
    }

    /// The strongest acceleration in each group of a level, whose cells are so wide.
    pub(crate) fn peaks(&self, device: &Device, level: &LevelTopology, h: f64) -> Deferred<Peak> {
        max_acceleration(device, level, &self.current, None, h)
    }
}

fn between<'a, T: Real>(phases: &'a [Buffer<T>; 3], groups: &'a EarlierGroups, fraction: f64) -> TimedPotential<'a, T> {
    let [start, mid, end] = phases;
    let (from, to, weight) =
        if fraction <= 0.5 { (start, mid, 2.0 * fraction) } else { (mid, end, 2.0 * fraction - 1.0) };
    TimedPotential { from, to, places: &groups.places, weight: T::from_f64(weight) }
}

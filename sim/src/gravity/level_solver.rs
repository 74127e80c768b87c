//! The Poisson solve of one level: the root by transforms; on refined levels groups solve for themselves, and relaxation
//! steps join them.

use crate::device_arrays::device_arrays;
use crate::gravity::hierarchy::Hierarchy;
use crate::gravity::root::Root;
use crate::parallel::communicator::Communicator;
use crate::parallel::links::{CellLinks, InteriorBoundary, LevelLinks};
use crate::parallel::owners::Owners;
use crate::parameters::{self, RunParameters};
use comove_kernels::group_poisson::FACE_GRADIENTS;
use comove_kernels::potential_ghosts::GHOST_CELLS;
use comove_kernels::{
    Buffer, Device, DeviceTable, GhostOrigin, GroupSolver, Guess, Iterations, KernelError, Parity, PoissonSource, Real,
    TimedPotential, relax_groups,
};

/// What relaxation reads of others' groups of even and of odd parity.
const ACROSS: [fn(&LevelLinks) -> &CellLinks; 2] = [|links| &links.faces[0], |links| &links.faces[1]];

/// How far the alternating relaxation overshoots its boundary values: the best of 1.0, 1.2, … 1.7 by measurement
/// (docs/notes-gravity.md).
const OVERRELAXATION: f64 = 1.4;

/// The order in which the groups of a level take each other's values in a sibling relaxation step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SiblingOrder {
    /// Groups of even parity, then those of odd parity from their new values; boundary values are over-relaxed.
    Alternating,
    /// All at once from the old values, as in the paper.
    Jacobi,
}

/// Whether the boundary values of the level's last solve are still in the ghost array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Held {
    Yes,
    No,
}

device_arrays! {
    /// Work space at the faces of groups.
    pub(super) struct FaceValues<T> {
        /// Boundary values of the level in hand, `[groups, 6, 16, 16]`.
        ghosts: Buffer<T> = |extent| extent.fullest_refined * GHOST_CELLS,
        /// ∂φ/∂n on the faces of refined groups, `[slots, 6, 8, 8]`.
        pub(super) gradients: Buffer<T> = |extent| extent.refined_slots * FACE_GRADIENTS,
    }
}

/// ∇²field = source on one level.
pub(super) struct LevelProblem<'a, T> {
    pub(super) device: &'a Device,
    pub(super) hierarchy: &'a Hierarchy<'a>,
    pub(super) level: usize,
    /// The coarser level's potential where the field holds another.
    pub(super) coarse: Option<&'a TimedPotential<'a, T>>,
    pub(super) source: PoissonSource<'a, T>,
}

/// The solvers of the levels.
#[derive(Debug)]
pub(super) struct LevelSolver<T> {
    pub(super) root: Root<T>,
    group: GroupSolver<T>,
    order: SiblingOrder,
    pub(super) faces: FaceValues<T>,
}

impl<T: Real> LevelSolver<T> {
    pub(super) fn new(
        device: &Device,
        communicator: &Communicator,
        owners: &Owners,
        parameters: &RunParameters,
        isolated: bool,
        root_groups: [u32; 3],
    ) -> Result<Self, KernelError> {
        let (group, order) = match parameters.group_solver {
            parameters::GroupSolver::Sine => (GroupSolver::sine(), SiblingOrder::Alternating),
            parameters::GroupSolver::Sor => {
                (GroupSolver::Sor { tolerance: parameters.sor_tolerance }, SiblingOrder::Jacobi)
            }
        };
        let root = Root::new(device, communicator, owners, isolated, root_groups)?;
        Ok(Self { root, group, order, faces: FaceValues::empty(device)? })
    }

    /// Solves a level, a refined one with boundary values from the coarser level and then relaxed `steps` times; its ghosts
    /// on other ranks follow.
    pub(super) fn solve(&mut self, problem: &LevelProblem<T>, steps: u32, field: &mut Buffer<T>) -> Iterations {
        let LevelProblem { device, hierarchy, level, source, .. } = problem;
        if *level == 0 {
            self.root.solve(device, hierarchy, source, field);
            return Iterations::default();
        }
        let mut iterations = self.solve_groups(problem, None, GhostOrigin::Coarse, Guess::Flat, field);
        iterations.add(self.relax(problem, steps, Held::Yes, field));
        hierarchy.ranks.refresh(*level, |links| &links.cells, field);
        iterations
    }

    /// Solves `steps` times with boundary values from the neighbours' solutions (paper, sibling relaxation).
    pub(super) fn relax(
        &mut self,
        problem: &LevelProblem<T>,
        steps: u32,
        held: Held,
        field: &mut Buffer<T>,
    ) -> Iterations {
        let mut iterations = Iterations::default();
        for step in 0..steps {
            match self.order {
                SiblingOrder::Jacobi => {
                    let ranks = problem.hierarchy.ranks;
                    ACROSS.iter().for_each(|&across| ranks.refresh(problem.level, across, field));
                    iterations.add(self.solve_groups(problem, None, GhostOrigin::Sibling, Guess::Held, field));
                }
                SiblingOrder::Alternating => {
                    let none_held = step == 0 && held == Held::No;
                    let origin = if none_held { GhostOrigin::Sibling } else { GhostOrigin::Relaxed(OVERRELAXATION) };
                    for parity in [Parity::Even, Parity::Odd] {
                        iterations.add(self.relax_half(problem, parity, origin, field));
                    }
                }
            }
        }
        iterations
    }

    /// Solves the groups of one parity with boundary values from the other's solutions. Where messages take time, groups
    /// that read no ghosts are solved while these are on their way.
    fn relax_half(
        &mut self,
        problem: &LevelProblem<T>,
        parity: Parity,
        origin: GhostOrigin,
        field: &mut Buffer<T>,
    ) -> Iterations {
        let LevelProblem { hierarchy, level, .. } = *problem;
        let (tables, ranks) = (&hierarchy.tables[level], hierarchy.ranks);
        let mut iterations = Iterations::default();
        let mut solve = |groups: &DeviceTable<u32>, field: &mut Buffer<T>| {
            iterations.add(self.solve_groups(problem, Some(groups), origin, Guess::Held, field));
        };
        // a group's neighbours have the other parity
        let across = ACROSS[parity.other() as usize];
        let links = ranks.links.get(level).filter(|links| ranks.ghost_exchange.is_carried(across(links)));
        match links.map(|links| &links.edges(tables).faces[parity as usize]) {
            Some(InteriorBoundary { inner, outer }) => {
                ranks.refresh_while(level, across, field, |field| solve(inner, field));
                solve(outer, field);
            }
            None => {
                ranks.refresh(level, across, field);
                solve(tables.half(parity), field);
            }
        }
        iterations
    }

    /// Solves some groups, or all, with boundary values from `origin`.
    fn solve_groups(
        &mut self,
        problem: &LevelProblem<T>,
        groups: Option<&DeviceTable<u32>>,
        origin: GhostOrigin,
        guess: Guess,
        field: &mut Buffer<T>,
    ) -> Iterations {
        let LevelProblem { device, hierarchy, level, coarse, source } = problem;
        let (tables, h) = (&hierarchy.tables[*level], hierarchy.width(*level));
        let FaceValues { ghosts, gradients } = &mut self.faces;
        let solver = &self.group;
        relax_groups(device, tables, groups, origin, *coarse, solver, guess, source, ghosts, h, field, Some(gradients))
    }
}

//! One level of the potential: the root by transforms; on refined levels groups solve for themselves, and cycles of a
//! coarse correction and a relaxation join them. Until these are done, groups know their faces alone.

use crate::device_arrays::{ArrayBytes, Extent, device_arrays};
use crate::gravity::coarse_correction::CoarseGrids;
use crate::gravity::level_problem::LevelProblem;
use crate::gravity::root::Root;
use crate::parallel::communicator::Communicator;
use crate::parallel::link_lists::CellLinks;
use crate::parallel::links::{InteriorBoundary, LevelLinks};
use crate::parallel::owners::Owners;
use comove_kernels::face_relaxation::{Relaxation, relax_faces, start_faces};
use comove_kernels::group_poisson::FACE_GRADIENTS;
use comove_kernels::potential_ghosts::GHOST_CELLS;
use comove_kernels::{
    Buffer, Device, DeviceTable, GhostOrigin, KernelError, Parity, Real, SineTables, group_poisson, potential_ghosts,
};

/// What relaxation reads of others' groups of even and of odd parity.
const ACROSS: [fn(&LevelLinks) -> &CellLinks; 2] = [|links| &links.faces[0], |links| &links.faces[1]];

/// Over-relaxation of boundary values after a coarse correction: better than none by measurement
/// (docs/notes/gravity.md).
const OVERRELAXATION: f64 = 1.1;

device_arrays! {
    /// Work space at the faces of groups.
    pub(super) struct FaceValues<T> {
        /// Boundary values of the level in hand, `[groups, 6, 16, 16]`.
        ghosts: Buffer<T> = |extent| extent.fullest_refined * GHOST_CELLS,
        /// Contribution of the groups' own matter at their faces, `[groups, 6, 16, 16]`.
        own: Buffer<T> = |extent| extent.fullest_refined * GHOST_CELLS,
        /// ∂φ/∂n on the faces of refined groups, `[slots, 6, 8, 8]`.
        pub(super) gradients: Buffer<T> = |extent| extent.refined_slots * FACE_GRADIENTS,
    }
}

/// The solvers of the levels.
#[derive(Debug)]
pub(super) struct LevelSolver<T> {
    pub(super) root: Root<T>,
    sine: SineTables<T>,
    pub(super) faces: FaceValues<T>,
    grids: CoarseGrids<T>,
}

impl<T: Real> LevelSolver<T> {
    pub(super) fn new(
        device: &Device,
        communicator: &Communicator,
        owners: &Owners,
        isolated: bool,
        root_groups: [u32; 3],
    ) -> Result<Self, KernelError> {
        let root = Root::new(device, communicator, owners, isolated, root_groups)?;
        let (faces, grids) = (FaceValues::empty(device)?, CoarseGrids::empty(device)?);
        Ok(Self { root, sine: SineTables::new(), faces, grids })
    }

    /// The bytes of the work space of refined levels.
    pub(super) fn footprint(&self) -> Vec<ArrayBytes> {
        [self.faces.footprint(), self.grids.footprint()].concat()
    }

    /// Bytes of the work space for a mesh.
    pub(super) fn footprint_for(extent: &Extent) -> Vec<ArrayBytes> {
        [FaceValues::<T>::footprint_for(extent), CoarseGrids::<T>::footprint_for(extent)].concat()
    }

    /// Makes the work space fit a mesh.
    pub(super) fn fit(&mut self, device: &Device, extent: &Extent) -> Result<(), KernelError> {
        self.faces.fit(device, extent)?;
        self.grids.fit(device, extent)
    }

    /// Solves a level, a refined one from the coarser level and with so many cycles; its ghosts on other ranks follow.
    pub(super) fn solve(&mut self, problem: &LevelProblem<T>, cycles: u32, field: &mut Buffer<T>) {
        self.solve_from(GhostOrigin::Coarse, problem, cycles, field);
    }

    /// Solves a level whose source or coarser level has new mass sheets in it, from the solution before.
    pub(super) fn solve_again(&mut self, problem: &LevelProblem<T>, cycles: u32, field: &mut Buffer<T>) {
        self.solve_from(GhostOrigin::Sibling, problem, cycles, field);
    }

    fn solve_from(&mut self, origin: GhostOrigin, problem: &LevelProblem<T>, cycles: u32, field: &mut Buffer<T>) {
        let LevelProblem { device, hierarchy, level, coarse, source } = problem;
        if *level == 0 {
            return self.root.solve(device, hierarchy, source, field);
        }
        let (tables, h) = (&hierarchy.tables[*level], hierarchy.width(*level));
        let FaceValues { ghosts, own, .. } = &mut self.faces;
        if cycles == 0 {
            potential_ghosts(device, tables, origin, field, *coarse, ghosts);
        } else {
            start_faces(device, tables, origin, *coarse, &self.sine, source, h, ghosts, own, field);
            hierarchy.ranks.refresh(*level, ACROSS[Parity::Even as usize], field);
        }
        for _ in 0..cycles {
            self.cycle(problem, field);
        }
        let FaceValues { ghosts, gradients, .. } = &mut self.faces;
        group_poisson(device, tables, &self.sine, source, ghosts, h, field, Some(gradients));
        hierarchy.ranks.refresh(*level, |links| &links.cells, field);
    }

    /// A coarse correction, and a relaxation step of even groups and then of odd ones.
    fn cycle(&mut self, problem: &LevelProblem<T>, field: &mut Buffer<T>) {
        problem.hierarchy.ranks.refresh(problem.level, ACROSS[Parity::Odd as usize], field);
        self.grids.find_error(problem, &self.faces.ghosts, field);
        for parity in [Parity::Even, Parity::Odd] {
            self.relax_half(problem, parity, field);
        }
    }

    /// Relaxes the groups of one parity with the other's faces: even groups first, so that the odd ones' neighbours have
    /// the error already. Where messages take time, groups that read no ghosts are relaxed while these are on their way.
    fn relax_half(&mut self, problem: &LevelProblem<T>, parity: Parity, field: &mut Buffer<T>) {
        let LevelProblem { device, hierarchy, level, .. } = *problem;
        let (tables, ranks) = (&hierarchy.tables[level], hierarchy.ranks);
        let neighbours_corrected = parity == Parity::Odd;
        let relaxation = Relaxation { factor: OVERRELAXATION, error: self.grids.error(), neighbours_corrected };
        let FaceValues { ghosts, own, .. } = &mut self.faces;
        let mut relax = |groups: &DeviceTable<u32>, field: &mut Buffer<T>| {
            relax_faces(device, tables, groups, &relaxation, &self.sine, own, ghosts, field);
        };
        if parity == Parity::Even {
            return relax(tables.half(parity), field);
        }
        let across = ACROSS[Parity::Even as usize];
        let links = ranks.links.get(level).filter(|links| ranks.ghost_exchange.is_carried(across(links)));
        match links.map(|links| &links.edges(tables).odd) {
            Some(InteriorBoundary { inner, outer }) => {
                ranks.refresh_while(level, across, field, |field| relax(inner, field));
                relax(outer, field);
            }
            None => {
                ranks.refresh(level, across, field);
                relax(tables.half(parity), field);
            }
        }
    }
}

//! The multi-level Poisson solve (paper, section 2.3).

use crate::boundary::GravityBoundary;
use crate::device_arrays::{ArrayBytes, Extent, device_arrays};
use crate::gravity::hierarchy::Hierarchy;
use crate::gravity::level_problem::LevelProblem;
use crate::gravity::level_solver::LevelSolver;
use crate::parallel::communicator::Communicator;
use crate::parallel::links::coarsest_slots;
use crate::parallel::owners::Owners;
use crate::parameters::RunParameters;
use comove_kernels::group_poisson::FACE_GRADIENTS;
use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::messages::MessageSizes;
use comove_kernels::{
    Buffer, DensitySource, Device, KernelError, LevelTopology, PoissonSource, Real, TimedPotential, mass_sheet,
};

/// Cycles of a solve that kicks particles, which feel the error as a force on themselves, and of one for gas alone.
const CYCLES_OF_PARTICLES: u32 = 4;
const CYCLES_OF_GAS: u32 = 2;

device_arrays! {
    /// The pseudo mass sheets at coarse–fine faces.
    pub(super) struct MassSheets<T> {
        /// −4πGξ, `[slots, 16, 16, 16]`.
        sheet: Buffer<T> = |extent| extent.corrected_slots * GROUP_CELLS,
    }
}

/// What a potential is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A kick of its level.
    Kick,
    /// Boundary values and mass sheets of other solves.
    Boundary,
}

/// Options, solvers and work space of the Poisson solve.
#[derive(Debug)]
pub struct PoissonSolver<T> {
    /// Cycles of a solve for a kick.
    cycles: u32,
    /// How often the potential is solved again with mass sheets.
    sheet_passes: u32,
    solver: LevelSolver<T>,
    sheets: MassSheets<T>,
}

/// The levels that are solved together, at one time.
#[derive(Clone, Copy)]
struct Span<'a, T> {
    device: &'a Device,
    hierarchy: &'a Hierarchy<'a>,
    /// The coarsest.
    base: usize,
    /// The potential of the level below `base`, where the pool holds another.
    coarse: Option<&'a TimedPotential<'a, T>>,
}

impl<'a, T: Real> Span<'a, T> {
    fn levels(&self) -> std::ops::Range<usize> {
        self.base..self.hierarchy.tables.len()
    }

    /// The equation on one of the levels.
    fn problem(&self, level: usize, source: PoissonSource<'a, T>) -> LevelProblem<'a, T> {
        let coarse = self.coarse.filter(|_| level == self.base);
        LevelProblem { device: self.device, hierarchy: self.hierarchy, level, coarse, source }
    }
}

impl<T: Real> PoissonSolver<T> {
    /// Solvers for a root level of `root_groups` groups along x, y, z, with the options of a run, shared as its `owners`
    /// say.
    ///
    /// * `has_particles`: whether there is dark matter, which decides the default of `poisson_cycles`
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn new(
        device: &Device,
        communicator: &Communicator,
        owners: &Owners,
        parameters: &RunParameters,
        has_particles: bool,
        root_groups: [u32; 3],
    ) -> Result<Self, KernelError> {
        let isolated = parameters.gravity_boundary == GravityBoundary::Isolated;
        let by_default = if has_particles { CYCLES_OF_PARTICLES } else { CYCLES_OF_GAS };
        Ok(Self {
            cycles: parameters.poisson_cycles.unwrap_or(by_default),
            sheet_passes: parameters.sheet_passes,
            solver: LevelSolver::new(device, communicator, owners, isolated, root_groups)?,
            sheets: MassSheets::empty(device)?,
        })
    }

    /// Switches to the Green's function for particles, whose mass is `share` of all matter, in a periodic box.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn serve_particles(&mut self, share: f64) -> Result<(), KernelError> {
        self.solver.root.serve_particles(share)
    }

    /// Bytes of the longest messages of a root solve to each of so many ranks and from it.
    pub(crate) fn needs(&self, ranks: usize) -> Vec<MessageSizes> {
        self.solver.root.needs(ranks)
    }

    /// The bytes of the work space of refined levels: a slot has 1.5 values a cell, a group of the fullest refined level
    /// 0.75.
    pub(crate) fn footprint(&self) -> Vec<ArrayBytes> {
        [self.solver.footprint(), self.sheets.footprint()].concat()
    }

    /// The same where it fits a mesh.
    pub(crate) fn footprint_for(extent: &Extent) -> Vec<ArrayBytes> {
        [LevelSolver::<T>::footprint_for(extent), MassSheets::<T>::footprint_for(extent)].concat()
    }

    /// Bytes that a solve takes for itself.
    pub(crate) fn working_bytes(&self) -> usize {
        self.solver.root.working_bytes()
    }

    /// Bytes of the root's work space: 8 a root cell (isolated: 40).
    pub(crate) fn root_bytes(&self) -> usize {
        self.solver.root.bytes()
    }

    /// Makes the work space fit a mesh, so that no solve has to.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn fit(&mut self, device: &Device, extent: &Extent) -> Result<(), KernelError> {
        self.solver.fit(device, extent)?;
        self.sheets.fit(device, extent)
    }

    /// [`PoissonSolver::fit`] for a field of so many slots.
    fn fit_to(&mut self, device: &Device, hierarchy: &Hierarchy, slots: usize) -> Result<(), KernelError> {
        let groups: Vec<usize> = hierarchy.tables.iter().map(LevelTopology::len).collect();
        let slots = [slots, coarsest_slots(hierarchy.ranks.links)];
        self.fit(device, &Extent::of_levels(&groups, slots, self.sheet_passes > 0))
    }

    /// Solves ∇²φ = 4πG (ρ − ⟨ρ⟩) on every level: periodic, with ⟨φ⟩ = 0 on the root, or isolated, with φ = 0 at
    /// infinity and 0 for ⟨ρ⟩.
    ///
    /// - `density`: the fluid pool, `[slots, 6, 16, 16, 16]`, cells under finer ones holding their means, with 4πG
    ///   (comoving: 3/2 Ω_m a) and the box mean (isolated: 0).
    /// - `potential`: `[slots, 16, 16, 16]`, comoving φ̃.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`] if the work space cannot grow to the pools' size.
    ///
    /// # Panics
    /// If the pools and tables disagree in shape, or the octree is not properly nested.
    pub fn solve(
        &mut self,
        device: &Device,
        hierarchy: &Hierarchy,
        density: DensitySource<T>,
        potential: &mut Buffer<T>,
    ) -> Result<(), KernelError> {
        self.solve_from(device, hierarchy, 0, Purpose::Kick, None, density, potential)
    }

    /// Solves level `base` and all finer ones, which are at one time, sheets and all, with the potential of the level
    /// below `base` and its sheets given.
    ///
    /// - `coarse`: the potential of the level below `base` at that time, where `potential` holds another; none for the
    ///   root.
    ///
    /// Otherwise as [`PoissonSolver::solve`].
    ///
    /// # Errors
    /// As [`PoissonSolver::solve`].
    ///
    /// # Panics
    /// As [`PoissonSolver::solve`].
    pub fn solve_from(
        &mut self,
        device: &Device,
        hierarchy: &Hierarchy,
        base: usize,
        purpose: Purpose,
        coarse: Option<&TimedPotential<T>>,
        density: DensitySource<T>,
        potential: &mut Buffer<T>,
    ) -> Result<(), KernelError> {
        self.fit_to(device, hierarchy, potential.len() / GROUP_CELLS)?;
        let span = Span { device, hierarchy, base, coarse };
        // the potential without sheets, from coarse to fine
        let passes = if span.levels().len() > 1 { self.sheet_passes } else { 0 };
        let without = if passes > 0 { Purpose::Boundary } else { purpose };
        for level in span.levels() {
            let problem = span.problem(level, PoissonSource::Density(density));
            self.solver.solve(&problem, self.cycles(without), potential);
        }
        // sheets from fine to coarse, and the potential with them, from coarse to fine
        for _ in 0..passes {
            self.find_mass_sheets(&span, potential);
            for level in span.levels() {
                let problem = span.problem(level, self.sheets.source(density, level + 1 < span.levels().end));
                self.solver.solve_again(&problem, self.cycles(purpose), potential);
            }
        }
        Ok(())
    }

    /// Cycles of a solve: half as many where it serves other solves alone.
    fn cycles(&self, purpose: Purpose) -> u32 {
        match purpose {
            Purpose::Kick => self.cycles,
            Purpose::Boundary => self.cycles.div_ceil(2),
        }
    }

    /// The pseudo mass sheets, from fine to coarse.
    fn find_mass_sheets(&mut self, span: &Span<T>, potential: &Buffer<T>) {
        let Hierarchy { tables, ranks, .. } = span.hierarchy;
        let (gradients, sheet) = (&mut self.solver.faces.gradients, &mut self.sheets.sheet);
        for level in span.levels().rev() {
            let h = span.hierarchy.width(level);
            if let Some(links) = ranks.links.get(level) {
                ranks.ghost_exchange.exchange_slots(&links.gradients, FACE_GRADIENTS, gradients);
                // what own groups mean to patches of other ranks
                mass_sheet(span.device, &links.parents, h, potential, gradients, sheet);
                ranks.ghost_exchange.exchange_cells(&links.patches, 1, sheet);
            }
            mass_sheet(span.device, &tables[level], h, potential, gradients, sheet);
        }
    }

    /// Solves one level at a time of its own, with the sheets of its last solve together with finer levels held. A
    /// refined level starts from the coarser one, not from its own potential of a time before (docs/notes/gravity.md).
    ///
    /// - `coarse`: the coarser level's potential at that time; none for the root.
    /// - `potential`: `[slots, 16, 16, 16]`; the level's slots are overwritten.
    ///
    /// # Errors
    /// As [`PoissonSolver::solve`].
    ///
    /// # Panics
    /// As [`PoissonSolver::solve`].
    pub fn solve_level(
        &mut self,
        device: &Device,
        hierarchy: &Hierarchy,
        level: usize,
        purpose: Purpose,
        coarse: Option<&TimedPotential<T>>,
        density: DensitySource<T>,
        potential: &mut Buffer<T>,
    ) -> Result<(), KernelError> {
        self.fit_to(device, hierarchy, potential.len() / GROUP_CELLS)?;
        let source = self.sheets.source(density, self.sheet_passes > 0 && level + 1 < hierarchy.tables.len());
        let problem = LevelProblem { device, hierarchy, level, coarse, source };
        self.solver.solve(&problem, self.cycles(purpose), potential);
        Ok(())
    }
}

impl<T: Real> MassSheets<T> {
    /// What the potential obeys: the density, and the sheets at the faces of finer groups.
    fn source<'a>(&'a self, density: DensitySource<'a, T>, with_sheets: bool) -> PoissonSource<'a, T> {
        match with_sheets {
            true => PoissonSource::DensityAndField(density, &self.sheet),
            false => PoissonSource::Density(density),
        }
    }
}

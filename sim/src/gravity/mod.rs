//! The multi-level Poisson solve (paper, section 2.3).

use crate::boundary::GravityBoundary;
use crate::parallel::communicator::Communicator;
use crate::parallel::exchange::GhostExchange;
use crate::parallel::links::{CellLinks, InteriorBoundary, LevelLinks};
use crate::parallel::owners::Owners;
use crate::parallel::root::SharedRoot;
use crate::parameters::{GroupSolver, RunParameters};
use comove_kernels as kernels;
use comove_kernels::group_poisson::FACE_GRADIENTS;
use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::messages::MessageSizes;
use comove_kernels::potential_ghosts::GHOST_CELLS;
use comove_kernels::slots::clear_slots;
use comove_kernels::{
    Buffer, DensitySource, Device, DeviceTable, GhostOrigin, Guess, Iterations, KernelError, LevelTopology, Parity,
    PoissonSource, Real, RootPoisson, TimedPotential, add_correction, mass_sheet, relax_groups,
};

/// What the solve needs to know of the octree, from [`crate::mesh::neighbours`].
#[derive(Clone, Copy, Debug)]
pub struct Hierarchy<'a> {
    /// One table a level.
    pub tables: &'a [LevelTopology],
    /// Slot of each root group, `[groups z, y, x]`.
    pub root_slots: &'a DeviceTable<u32>,
    /// Cell width of the root level in code length.
    pub h: f64,
    /// The ranks that share the octree.
    pub ranks: Sharing<'a>,
}

/// Ranks that solve together, and what they send each other about each level; no links where a rank is alone.
#[derive(Clone, Copy, Debug)]
pub struct Sharing<'a> {
    /// Between them.
    pub ghost_exchange: &'a GhostExchange,
    /// By level.
    pub links: &'a [LevelLinks],
}

impl Sharing<'_> {
    /// Brings the ghosts of a level up to date that have to do with a field, `[slots, 16, 16, 16]`.
    fn refresh<T: Real>(&self, level: usize, which: fn(&LevelLinks) -> &CellLinks, field: &mut Buffer<T>) {
        self.refresh_while(level, which, field, |_| ());
    }

    /// The same, with `meanwhile` done while messages are on their way.
    fn refresh_while<T: Real>(
        &self,
        level: usize,
        which: fn(&LevelLinks) -> &CellLinks,
        field: &mut Buffer<T>,
        mut meanwhile: impl FnMut(&mut Buffer<T>),
    ) {
        match self.links.get(level) {
            Some(links) => self.ghost_exchange.exchange_cells_while(which(links), 1, field, meanwhile),
            None => meanwhile(field),
        }
    }

    /// The groups of a parity apart by whether they read ghosts across faces, where it is worth solving some of them while
    /// these are on their way.
    fn apart(&self, level: usize, tables: &LevelTopology, parity: Parity) -> Option<&InteriorBoundary> {
        let links = self.links.get(level)?;
        let across = ACROSS[parity.other() as usize](links);
        self.ghost_exchange.is_carried(across).then(|| &links.edges(tables).faces[parity as usize])
    }
}

impl Hierarchy<'_> {
    /// Groups of each level.
    fn groups(&self) -> Vec<usize> {
        self.tables.iter().map(LevelTopology::len).collect()
    }

    /// Cell width of a level.
    fn width(&self, level: usize) -> f64 {
        self.h / (1u64 << level) as f64
    }
}

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

/// Options, solvers and work space of the Poisson solve.
#[derive(Debug)]
pub struct Gravity<T> {
    sibling_steps: [u32; 3],
    mass_sheet: bool,
    root: Root<T>,
    group: kernels::GroupSolver<T>,
    order: SiblingOrder,
    /// Correction ζ, `[slots, 16, 16, 16]`.
    correction: Buffer<T>,
    /// −4πGξ, the source of ζ, `[slots, 16, 16, 16]`.
    sheet: Buffer<T>,
    /// ∂φ/∂n on the faces of refined groups, `[slots, 6, 8, 8]`.
    gradients: Buffer<T>,
    /// Boundary values of the level in hand, `[groups, 6, 16, 16]`.
    ghosts: Buffer<T>,
}

/// The root's solver.
#[derive(Debug)]
enum Root<T> {
    /// Of a rank that has the whole root.
    Alone(RootPoisson),
    /// Of ranks that share it.
    Shared(Box<SharedRoot<T>>),
}

impl<T: Real> Root<T> {
    fn solve(&mut self, device: &Device, hierarchy: &Hierarchy, source: &PoissonSource<T>, field: &mut Buffer<T>) {
        let Hierarchy { tables, root_slots, h, ranks } = hierarchy;
        match self {
            Self::Alone(root) => root.solve(device, root_slots, source, *h, field),
            Self::Shared(root) => root.solve(ranks.ghost_exchange, device, &tables[0].slots, source, *h, field),
        }
        ranks.refresh(0, |links| &links.cells, field);
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Alone(root) => root.bytes(),
            Self::Shared(root) => root.bytes(),
        }
    }

    fn working_bytes(&self) -> usize {
        match self {
            Self::Alone(root) => root.working_bytes(),
            Self::Shared(root) => root.working_bytes(),
        }
    }
}

impl<T: Real> Gravity<T> {
    /// Solvers for a root level of `root_groups` groups along x, y, z, with the options of a run, shared as its `owners`
    /// say.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn new(
        device: &Device,
        communicator: &Communicator,
        owners: &Owners,
        parameters: &RunParameters,
        root_groups: [u32; 3],
    ) -> Result<Self, KernelError> {
        let isolated = parameters.gravity_boundary == GravityBoundary::Isolated;
        let groups = root_groups.map(|n| n as usize);
        let (group, order) = match parameters.group_solver {
            GroupSolver::Sine => (kernels::GroupSolver::sine(), SiblingOrder::Alternating),
            GroupSolver::Sor => {
                (kernels::GroupSolver::Sor { tolerance: parameters.sor_tolerance }, SiblingOrder::Jacobi)
            }
        };
        Ok(Self {
            sibling_steps: parameters.sibling_steps,
            mass_sheet: parameters.mass_sheet,
            root: match communicator.size() {
                1 if isolated => Root::Alone(RootPoisson::isolated(device, groups)?),
                1 => Root::Alone(RootPoisson::new(device, groups)?),
                ranks => {
                    let place = (communicator.rank(), ranks);
                    Root::Shared(Box::new(SharedRoot::new(device, place, owners, root_groups, isolated)?))
                }
            },
            group,
            order,
            correction: Buffer::zeros(device, 0)?,
            sheet: Buffer::zeros(device, 0)?,
            gradients: Buffer::zeros(device, 0)?,
            ghosts: Buffer::zeros(device, 0)?,
        })
    }

    /// Bytes of the longest messages of a root solve to each of so many ranks and from it.
    pub fn needs(&self, ranks: usize) -> Vec<MessageSizes> {
        match &self.root {
            Root::Alone(_) => vec![MessageSizes::default(); ranks],
            Root::Shared(root) => root.needs(ranks),
        }
    }

    /// [`Gravity::work_bytes`] with pools of so many slots and a tree with so many groups on each level.
    pub fn work_bytes_for(groups: &[usize], slots: usize, mass_sheet: bool) -> [usize; 4] {
        lengths(groups, slots, mass_sheet && groups.len() > 1).map(|values| values * T::BYTES)
    }

    /// Bytes of the refined levels' work space: boundary values, gradients, correction and sheet. A slot has 2.1 values a
    /// cell, a group of the fullest refined level 0.375.
    pub fn work_bytes(&self) -> [usize; 4] {
        [&self.ghosts, &self.gradients, &self.correction, &self.sheet].map(|buffer| buffer.len() * T::BYTES)
    }

    /// Bytes that a solve takes for itself.
    pub fn working_bytes(&self) -> usize {
        self.root.working_bytes()
    }

    /// Bytes of the root's work space: 8 a root cell (isolated: 40).
    pub fn root_bytes(&self) -> usize {
        self.root.bytes()
    }

    /// Makes the work space fit pools of so many slots and a tree with so many groups on each level, so that no solve
    /// has to.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn fit(&mut self, device: &Device, groups: &[usize], slots: usize) -> Result<(), KernelError> {
        self.grow(device, groups, slots, self.mass_sheet && groups.len() > 1)
    }

    /// Solves ∇²φ = 4πG (ρ − ⟨ρ⟩) on every level: periodic, with ⟨φ⟩ = 0 on the root, or isolated, with φ = 0 at
    /// infinity and 0 for ⟨ρ⟩.
    ///
    /// - `density`: the fluid pool, `[slots, 6, 16, 16, 16]`, cells under finer ones holding their means, with 4πG
    ///   (comoving: 3/2 Ω_m a) and the box mean (isolated: 0).
    /// - `potential`: `[slots, 16, 16, 16]`, comoving φ̃.
    ///
    /// Returns the iterations of the refined levels (zero with the exact solver).
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
    ) -> Result<Iterations, KernelError> {
        self.solve_from(device, hierarchy, 0, None, density, potential)
    }

    /// Solves level `base` and all finer ones, which are at one time, sheets and all, with the potential of the level
    /// below `base` and its sheets given: there ζ vanishes.
    ///
    /// - `coarse`: the potential of the level below `base` at that time, where `potential` holds another; none for the
    ///   root.
    ///
    /// Otherwise as [`Gravity::solve`].
    ///
    /// # Errors
    /// As [`Gravity::solve`].
    ///
    /// # Panics
    /// As [`Gravity::solve`].
    pub fn solve_from(
        &mut self,
        device: &Device,
        hierarchy: &Hierarchy,
        base: usize,
        coarse: Option<&TimedPotential<T>>,
        density: DensitySource<T>,
        potential: &mut Buffer<T>,
    ) -> Result<Iterations, KernelError> {
        let levels = hierarchy.tables.len();
        let correct = self.mass_sheet && levels > base + 1;
        self.grow(device, &hierarchy.groups(), potential.len() / GROUP_CELLS, correct)?;
        let Self { sibling_steps, root, group, order, correction, sheet, gradients, ghosts, .. } = self;
        let [after_potential, after_correction, at_end] = *sibling_steps;
        let ranks = hierarchy.ranks;
        let mut iterations = Iterations::default();
        let at = |level: usize| LevelSolve {
            device,
            tables: &hierarchy.tables[level],
            solver: group,
            order: *order,
            h: hierarchy.width(level),
            coarse: coarse.filter(|_| level == base),
            level,
            ranks,
        };

        // 1. the uncorrected potential, from coarse to fine
        let source = PoissonSource::Density(density);
        for level in base..levels {
            if level == 0 {
                root.solve(device, hierarchy, &source, potential);
                continue;
            }
            iterations.add(at(level).solve_from_coarse(&source, potential, ghosts, gradients));
            iterations.add(at(level).relax(after_potential, Held::Yes, &source, potential, ghosts, gradients));
            ranks.refresh(level, |links| &links.cells, potential);
        }

        if correct {
            // 2. the pseudo mass sheets, from fine to coarse
            for level in (base..levels).rev() {
                let h = hierarchy.width(level);
                if let Some(links) = ranks.links.get(level) {
                    ranks.ghost_exchange.exchange_slots(&links.gradients, FACE_GRADIENTS, gradients);
                    // what own groups mean to patches of other ranks
                    mass_sheet(device, &links.parents, h, potential, gradients, sheet);
                    ranks.ghost_exchange.exchange_cells(&links.patches, 1, sheet);
                }
                mass_sheet(device, &hierarchy.tables[level], h, potential, gradients, sheet);
            }
            // 3. the correction, from coarse to fine
            let source = PoissonSource::Field(sheet);
            if base > 0 {
                let coarser = ranks.links.get(base - 1).map_or(&hierarchy.tables[base - 1].slots, |links| &links.slots);
                clear_slots(device, GROUP_CELLS, correction, coarser);
            }
            for level in base..levels {
                if level == 0 {
                    root.solve(device, hierarchy, &source, correction);
                    continue;
                }
                let solve = LevelSolve { coarse: None, ..at(level) };
                iterations.add(solve.solve_from_coarse(&source, correction, ghosts, gradients));
                iterations.add(solve.relax(after_correction, Held::Yes, &source, correction, ghosts, gradients));
                ranks.refresh(level, |links| &links.cells, correction);
            }
        }

        // 4. the corrected potential, from coarse to fine; it obeys the equation with the sheets in it
        for level in base..levels {
            let mut source = PoissonSource::Density(density);
            if correct {
                add_correction(device, &hierarchy.tables[level], correction, potential);
                if level + 1 < levels {
                    source = PoissonSource::DensityAndField(density, sheet);
                }
            }
            if level > 0 {
                iterations.add(at(level).relax(at_end, Held::No, &source, potential, ghosts, gradients));
            }
            ranks.refresh(level, |links| &links.cells, potential);
        }
        Ok(iterations)
    }

    /// Solves one level at a time of its own, with the sheets of its last solve together with finer levels held. A
    /// refined level starts from the coarser one and takes the `sibling_steps` after φ: from its own potential of
    /// a time before, relaxation is too slow to follow what changes over many groups (docs/notes-gravity.md).
    ///
    /// - `coarse`: the coarser level's potential at that time; none for the root.
    /// - `potential`: `[slots, 16, 16, 16]`; the level's slots are overwritten.
    ///
    /// # Errors
    /// As [`Gravity::solve`].
    ///
    /// # Panics
    /// As [`Gravity::solve`].
    pub fn solve_level(
        &mut self,
        device: &Device,
        hierarchy: &Hierarchy,
        level: usize,
        coarse: Option<&TimedPotential<T>>,
        density: DensitySource<T>,
        potential: &mut Buffer<T>,
    ) -> Result<Iterations, KernelError> {
        let correct = self.mass_sheet && level + 1 < hierarchy.tables.len();
        self.grow(device, &hierarchy.groups(), potential.len() / GROUP_CELLS, correct)?;
        let Self { sibling_steps: [steps, ..], root, group, order, sheet, gradients, ghosts, .. } = self;
        let source = match correct {
            true => PoissonSource::DensityAndField(density, sheet),
            false => PoissonSource::Density(density),
        };
        if level == 0 {
            root.solve(device, hierarchy, &source, potential);
            return Ok(Iterations::default());
        }
        let (tables, h, ranks) = (&hierarchy.tables[level], hierarchy.width(level), hierarchy.ranks);
        let solve = LevelSolve { device, tables, solver: group, order: *order, h, coarse, level, ranks };
        let mut iterations = solve.solve_from_coarse(&source, potential, ghosts, gradients);
        iterations.add(solve.relax(*steps, Held::Yes, &source, potential, ghosts, gradients));
        ranks.refresh(level, |links| &links.cells, potential);
        Ok(iterations)
    }

    /// Makes the work space fit the pools.
    fn grow(&mut self, device: &Device, groups: &[usize], slots: usize, correct: bool) -> Result<(), KernelError> {
        let [ghosts, gradients, correction, sheet] = lengths(groups, slots, correct);
        self.ghosts.grow(device, ghosts)?;
        self.gradients.grow(device, gradients)?;
        self.correction.grow(device, correction)?;
        self.sheet.grow(device, sheet)
    }
}

/// Values in the work space: boundary values, gradients, correction and sheet.
fn lengths(groups: &[usize], slots: usize, correct: bool) -> [usize; 4] {
    let fullest = groups.iter().skip(1).max().unwrap_or(&0);
    let gradients = if groups.len() > 1 { slots * FACE_GRADIENTS } else { 0 };
    let correction = if correct { slots * GROUP_CELLS } else { 0 };
    [fullest * GHOST_CELLS, gradients, correction, correction]
}

/// Whether the boundary values of the level's last solve still lie in the ghost array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Yes,
    No,
}

/// One refined level and how its groups are solved.
struct LevelSolve<'a, T> {
    device: &'a Device,
    tables: &'a LevelTopology,
    solver: &'a kernels::GroupSolver<T>,
    order: SiblingOrder,
    h: f64,
    /// The coarser level's potential where the field holds another.
    coarse: Option<&'a TimedPotential<'a, T>>,
    level: usize,
    ranks: Sharing<'a>,
}

impl<T: Real> LevelSolve<'_, T> {
    /// Solves with boundary values from the coarser level.
    fn solve_from_coarse(
        &self,
        source: &PoissonSource<T>,
        field: &mut Buffer<T>,
        ghosts: &mut Buffer<T>,
        gradients: &mut Buffer<T>,
    ) -> Iterations {
        self.solve(None, GhostOrigin::Coarse, Guess::Flat, source, field, ghosts, gradients)
    }

    /// Solves `steps` times with boundary values from the neighbours' solutions (paper, sibling relaxation).
    fn relax(
        &self,
        steps: u32,
        held: Held,
        source: &PoissonSource<T>,
        field: &mut Buffer<T>,
        ghosts: &mut Buffer<T>,
        gradients: &mut Buffer<T>,
    ) -> Iterations {
        let mut iterations = Iterations::default();
        for step in 0..steps {
            match self.order {
                SiblingOrder::Jacobi => {
                    ACROSS.iter().for_each(|&across| self.ranks.refresh(self.level, across, field));
                    let origin = GhostOrigin::Sibling;
                    iterations.add(self.solve(None, origin, Guess::Held, source, field, ghosts, gradients));
                }
                SiblingOrder::Alternating => {
                    let none_held = step == 0 && held == Held::No;
                    let origin = if none_held { GhostOrigin::Sibling } else { GhostOrigin::Relaxed(OVERRELAXATION) };
                    for parity in [Parity::Even, Parity::Odd] {
                        iterations.add(self.relax_half(parity, origin, source, field, ghosts, gradients));
                    }
                }
            }
        }
        iterations
    }

    /// Solves the groups of one parity with boundary values from the other's solutions: where that is worth it, those that
    /// read no ghosts while these are on their way.
    fn relax_half(
        &self,
        parity: Parity,
        origin: GhostOrigin,
        source: &PoissonSource<T>,
        field: &mut Buffer<T>,
        ghosts: &mut Buffer<T>,
        gradients: &mut Buffer<T>,
    ) -> Iterations {
        let mut iterations = Iterations::default();
        let mut solve = |groups: &DeviceTable<u32>, field: &mut Buffer<T>| {
            iterations.add(self.solve(Some(groups), origin, Guess::Held, source, field, ghosts, gradients));
        };
        // a group's neighbours have the other parity
        let across = ACROSS[parity.other() as usize];
        match self.ranks.apart(self.level, self.tables, parity) {
            Some(InteriorBoundary { inner, outer }) => {
                self.ranks.refresh_while(self.level, across, field, |field| solve(inner, field));
                solve(outer, field);
            }
            None => {
                self.ranks.refresh(self.level, across, field);
                solve(self.tables.half(parity), field);
            }
        }
        iterations
    }

    /// Solves some groups, or all, with boundary values from `origin`.
    fn solve(
        &self,
        groups: Option<&DeviceTable<u32>>,
        origin: GhostOrigin,
        guess: Guess,
        source: &PoissonSource<T>,
        field: &mut Buffer<T>,
        ghosts: &mut Buffer<T>,
        gradients: &mut Buffer<T>,
    ) -> Iterations {
        let Self { device, tables, solver, h, coarse, .. } = *self;
        relax_groups(device, tables, groups, origin, coarse, solver, guess, source, ghosts, h, field, Some(gradients))
    }
}

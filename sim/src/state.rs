//! The state on a device: octree, pools of slots, tables.

use crate::boundary::GravityBoundary;
use crate::error::SimError;
use crate::gravity::{Gravity, Hierarchy};
use crate::host_state::HostState;
use crate::level_history::LevelHistory;
use crate::octree::{Key, Octree, flux_planes::FluxTables, neighbours};
use crate::parameters::{RunParameters, TimeSteps};
use comove_kernels::layout::{FACES, FLUX_PLANE_VALUES, GROUP, GROUP_CELLS, GROUP_VALUES, cell_coordinate};
use comove_kernels::{
    Buffer, DensitySource, Device, Eos, FaceBoundary, Iterations, KernelError, LevelTables, Marks, Real, Table,
    TimedPotential, prolong,
};
use rayon::prelude::*;

/// [`Gravity::solve_from`] or [`Gravity::solve_level`].
type Solve<T> = fn(
    &mut Gravity<T>,
    &Device,
    &Hierarchy,
    usize,
    Option<&TimedPotential<T>>,
    DensitySource<T>,
    &mut Buffer<T>,
) -> Result<Iterations, KernelError>;

/// A run's state on its device. Groups sit in slots of the pools; a group keeps its slot as long as it exists.
pub struct State<T> {
    /// Where the pools live.
    pub device: Device,
    /// The groups.
    pub tree: Octree,
    /// Pool slot of each group, level by level in key order.
    pub slots: Vec<Vec<u32>>,
    /// Neighbour tables of each level.
    pub tables: Vec<LevelTables>,
    /// Flux planes and coarse–fine faces.
    pub flux: FluxTables,
    /// Conserved, comoving, `[slots, 6, 16, 16, 16]`.
    pub fluid: Buffer<T>,
    /// Where a sweep writes, then swapped with `fluid`. Same shape.
    pub next: Buffer<T>,
    /// Fluxes of the last sweep, `[planes, 6, 16, 16]`.
    pub fluxes: Buffer<T>,
    /// Cells that the last sweep could not advance, and room for a redo.
    pub marks: Marks,
    /// φ̃, `[slots, 16, 16, 16]`; empty without gravity.
    pub potential: Buffer<T>,
    /// What finer levels interpolate in time; with individual time steps only.
    pub history: Option<LevelHistory<T>>,
    /// Steps that each level has taken since the levels finer than it were decided; with uniform steps the root counts
    /// for all.
    pub steps_since_regrid: Vec<u32>,
    /// Cell width of the root level, code length.
    pub root_cell_width: f64,
    faces: [FaceBoundary; FACES],
    /// Whether gravity is isolated: then the mean density attracts too.
    isolated: bool,
    free: Vec<u32>,
    gravity: Option<Gravity<T>>,
    root_slots: Table<u32>,
}

impl<T: Real> State<T> {
    /// Puts a host state on a device.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if it does not fit.
    pub fn from_host(
        device: Device,
        host: &HostState,
        root_cell_width: f64,
        parameters: &RunParameters,
    ) -> Result<Self, SimError> {
        let tree = host.tree.clone();
        let groups = tree.group_count();
        let mut slots = Vec::with_capacity(tree.level_count());
        for level in 0..tree.level_count() {
            let first = tree.first_of_level(level) as u32;
            slots.push((first..first + tree.level(level).len() as u32).collect());
        }
        let fluid = Buffer::from_host(&device, host.fluid.par_iter().map(|&v| T::of(v)).collect())?;
        let root_groups = tree.root_groups().map(|n| n as usize);
        let gravity = parameters.gravity.then(|| Gravity::new(&device, parameters, root_groups)).transpose()?;
        let individual = parameters.time_steps == TimeSteps::Individual;
        let mut state = Self {
            history: individual.then(|| LevelHistory::new(&device)).transpose()?,
            steps_since_regrid: vec![0; usize::from(parameters.max_level) + 1],
            tables: Vec::new(),
            root_slots: Table::default(),
            flux: FluxTables::default(),
            potential: Buffer::zeros(&device, 0)?,
            next: Buffer::zeros(&device, groups * GROUP_VALUES)?,
            fluxes: Buffer::zeros(&device, 0)?,
            marks: Marks::new(&device, groups)?,
            gravity,
            faces: parameters.boundary.for_kernels(parameters.gamma),
            isolated: parameters.gravity_boundary == GravityBoundary::Isolated,
            free: Vec::new(),
            device,
            tree,
            slots,
            fluid,
            root_cell_width,
        };
        state.derive_tables();
        state.fit_pools(groups)?;
        Ok(state)
    }

    /// Copies the state to the host.
    pub fn to_host(&self) -> HostState {
        let mut host = HostState::zeros(self.tree.clone());
        host.potential = vec![0.0; if self.potential.is_empty() { 0 } else { self.tree.group_count() * GROUP_CELLS }];
        let slots: Vec<u32> = self.slots.iter().flatten().copied().collect();
        copy_groups(&self.fluid, &slots, &mut host.fluid, GROUP_VALUES);
        copy_groups(&self.potential, &slots, &mut host.potential, GROUP_CELLS);
        host
    }

    /// Cell width of a level, code length.
    pub fn cell_width(&self, level: usize) -> f64 {
        self.root_cell_width / f64::from(1u32 << level)
    }

    /// Levels that have groups.
    pub fn level_count(&self) -> usize {
        self.tree.level_count()
    }

    /// The cell on its level's lattice of an offset in a group.
    pub fn locate(&self, level: usize, group: usize, cell: usize) -> [usize; 3] {
        let key = self.tree.level(level)[group];
        let at = cell_coordinate(cell);
        std::array::from_fn(|axis| key.coordinate[axis] as usize * GROUP + at[axis])
    }

    /// Bytes of all device arrays.
    pub fn device_bytes(&self) -> usize {
        let values = self.fluid.len() + self.next.len() + self.fluxes.len() + self.potential.len();
        let history = self.history.as_ref().map_or(0, LevelHistory::bytes);
        values * T::BYTES + self.marks.bytes() + self.gravity.as_ref().map_or(0, Gravity::bytes) + history
    }

    /// Moves to another tree: kept groups stay where they are, removed ones free their slots (their parents already
    /// hold the restricted values), new ones are interpolated from their parents, coarse levels first.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if the new tree does not fit; the state is then of no further use.
    pub fn adopt_tree(&mut self, tree: Octree, eos: &Eos<T>) -> Result<(), SimError> {
        self.fit_pools(tree.group_count())?;
        let mut free = std::mem::take(&mut self.free);
        for (level, (keys, slots)) in self.tree_levels().enumerate() {
            let stays = places_of(keys, tree.level(level));
            free.extend(stays.iter().zip(slots).filter(|(place, _)| place.is_none()).map(|(_, &slot)| slot));
        }
        free.sort_unstable_by(|a, b| b.cmp(a));

        let mut slots = Vec::with_capacity(tree.level_count());
        let mut new = Vec::with_capacity(tree.level_count());
        for level in 0..tree.level_count() {
            let mut new_here = Vec::new();
            let old_places = places_of(tree.level(level), self.tree.level(level));
            let level_slots = old_places.into_iter().enumerate().map(|(g, old)| match old {
                Some(old) => self.slots[level][old],
                None => {
                    new_here.push(g);
                    free.pop().expect("the pools fit the new tree")
                }
            });
            slots.push(level_slots.collect());
            new.push(new_here);
        }
        self.free = free;
        self.tree = tree;
        self.slots = slots;
        self.derive_tables();
        self.fit_tables()?;
        for level in 1..self.level_count() {
            prolong::prolong(&self.device, &self.tables[level], &new[level], &mut self.fluid, eos);
        }
        Ok(())
    }

    /// Takes a tree whose groups already sit in these slots of the pools.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if what depends on the tree does not fit.
    ///
    /// # Panics
    /// If a slot lies beyond the pools.
    pub(crate) fn place(&mut self, tree: Octree, slots: Vec<Vec<u32>>) -> Result<(), SimError> {
        let mut used = vec![false; self.next.len() / GROUP_VALUES];
        for &slot in slots.iter().flatten() {
            used[slot as usize] = true;
        }
        self.free = (0..used.len() as u32).rev().filter(|&slot| !used[slot as usize]).collect();
        self.tree = tree;
        self.slots = slots;
        self.derive_tables();
        self.fit_tables()
    }

    /// Solves ∇²φ = `four_pi_g` (ρ − `mean_density`) on all levels, isolated without the mean; nothing to do without
    /// gravity.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if the work space does not fit.
    pub fn solve_gravity(&mut self, four_pi_g: f64, mean_density: f64) -> Result<(), SimError> {
        self.solve_gravity_from(0, None, four_pi_g, mean_density)
    }

    /// The same for level `base` and finer ones, which are at one time: `coarse` is the part of the coarser level's
    /// step that has passed by then, none for the root ([`Gravity::solve_from`]).
    ///
    /// # Errors
    /// As [`State::solve_gravity`].
    pub fn solve_gravity_from(
        &mut self,
        base: usize,
        coarse: Option<f64>,
        four_pi_g: f64,
        mean_density: f64,
    ) -> Result<(), SimError> {
        self.solve_by(Gravity::solve_from, base, coarse, four_pi_g, mean_density)
    }

    /// Solves one level at a time of its own, mass sheets held ([`Gravity::solve_level`]).
    ///
    /// # Errors
    /// As [`State::solve_gravity`].
    pub fn solve_level_gravity(
        &mut self,
        level: usize,
        coarse: Option<f64>,
        four_pi_g: f64,
        mean_density: f64,
    ) -> Result<(), SimError> {
        self.solve_by(Gravity::solve_level, level, coarse, four_pi_g, mean_density)
    }

    /// Gives a solve of level `level` what it needs of this state.
    fn solve_by(
        &mut self,
        solve: Solve<T>,
        level: usize,
        coarse: Option<f64>,
        four_pi_g: f64,
        mean_density: f64,
    ) -> Result<(), SimError> {
        let Some(gravity) = &mut self.gravity else { return Ok(()) };
        let hierarchy = Hierarchy { tables: &self.tables, root_slots: &self.root_slots, h: self.root_cell_width };
        let density =
            DensitySource { fluid: &self.fluid, four_pi_g, mean: if self.isolated { 0.0 } else { mean_density } };
        let coarse = self.history.as_ref().zip(coarse).map(|(history, passed)| history.potential_at(passed));
        solve(gravity, &self.device, &hierarchy, level, coarse.as_ref(), density, &mut self.potential)?;
        Ok(())
    }

    fn derive_tables(&mut self) {
        let tables = neighbours::build_tables(&self.tree, &self.slots, self.faces);
        let old = std::mem::replace(&mut self.tables, tables);
        self.tables.iter_mut().zip(old).for_each(|(new, old)| new.keep(old));
        let root_slots = neighbours::root_slots(&self.tree, &self.slots);
        let old = std::mem::replace(&mut self.root_slots, root_slots);
        self.root_slots.keep(old);
        let old = std::mem::replace(&mut self.flux, FluxTables::build(&self.tree, &self.tables));
        self.flux.keep(old);
    }

    fn tree_levels(&self) -> impl Iterator<Item = (&[Key], &[u32])> {
        (0..self.tree.level_count()).map(|l| (self.tree.level(l), self.slots[l].as_slice()))
    }

    /// Lengthens the pools to hold `groups` groups, with an eighth to spare once they must grow.
    fn fit_pools(&mut self, groups: usize) -> Result<(), SimError> {
        let used = self.next.len() / GROUP_VALUES;
        if groups > used {
            let capacity = groups + groups / 8;
            self.fluid.grow(&self.device, capacity * GROUP_VALUES)?;
            self.next.grow(&self.device, capacity * GROUP_VALUES)?;
            self.marks.grow(&self.device, capacity)?;
            self.free.extend(used as u32..capacity as u32);
        }
        if self.gravity.is_some() {
            self.potential.grow(&self.device, self.next.len() / GROUP_VALUES * GROUP_CELLS)?;
        }
        self.fit_tables()
    }

    /// Makes what depends on the tree's shape fit the tables.
    fn fit_tables(&mut self) -> Result<(), SimError> {
        self.fluxes.grow(&self.device, self.flux.planes * FLUX_PLANE_VALUES)?;
        if let Some(history) = &mut self.history {
            let capacity = self.next.len() / GROUP_VALUES;
            let gravity = self.gravity.is_some();
            history.fit(&self.device, &self.tables, capacity, self.flux.planes, gravity)?;
        }
        Ok(())
    }
}

/// Where each of some sorted keys stands among others.
fn places_of(keys: &[Key], among: &[Key]) -> Vec<Option<usize>> {
    let mut next = 0;
    keys.iter()
        .map(|key| {
            while among.get(next).is_some_and(|other| other < key) {
                next += 1;
            }
            (among.get(next) == Some(key)).then_some(next)
        })
        .collect()
}

/// Copies the values of slots, widened, to their groups' places in key order; nothing into an empty array.
fn copy_groups<T: Real>(pool: &Buffer<T>, slots: &[u32], host: &mut [f64], values: usize) {
    let mut places: Vec<Option<&mut [f64]>> = (0..pool.len() / values).map(|_| None).collect();
    for (group, &slot) in host.chunks_exact_mut(values).zip(slots) {
        places[slot as usize] = Some(group);
    }
    pool.for_each_part(values, |first, part| {
        let part = part.par_chunks_exact(values);
        places[first / values..].par_iter_mut().zip(part).for_each(|(place, from)| {
            if let Some(to) = place {
                to.iter_mut().zip(from).for_each(|(to, value)| *to = value.wide());
            }
        });
    });
}

//! The state on a device: octree, pools of slots, tables.

mod adopt;
pub mod diagnosis;
mod history;
pub mod memory;
pub mod saved_state;

use crate::boundary::GravityBoundary;
use crate::error::SimError;
use crate::error::shortage::Shortage;
use crate::gas::level_history::LevelHistory;
use crate::gravity::{Gravity, Hierarchy, Sharing};
use crate::mesh::host_state::HostState;
use crate::mesh::{Key, Octree, flux_planes::FluxTables};
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::Communicator;
use crate::parallel::exchange::GhostExchange;
use crate::parallel::links::need;
use crate::parallel::share::Share;
use crate::parameters::RunParameters;
use crate::records::CellBudgetAdjustment;
use comove_kernels::layout::{FACES, FIELDS, FLUX_PLANE_VALUES, GROUP, GROUP_CELLS, GROUP_VALUES, cell_coordinate};
use comove_kernels::messages::MessageSizes;
use comove_kernels::{
    Buffer, DensitySource, Device, DeviceTable, Eos, FaceBoundary, Iterations, KernelError, LevelTopology, Real,
    TimedPotential, TroubledCells, prolong,
};
use memory::{Before, Footprint, Kind, Layout, Memories};
use rayon::prelude::*;
use saved_state::SavedState;
use std::sync::Arc;

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
    /// The groups; where ranks share a tree, those that this one owns.
    pub tree: Octree,
    /// The ranks that share the tree.
    pub communicator: Arc<Communicator>,
    /// What they send each other about groups.
    pub ghost_exchange: GhostExchange,
    /// What this rank knows of the others' groups.
    pub share: Share,
    /// Pool slot of each group, level by level in key order.
    pub slots: Vec<Vec<u32>>,
    /// Neighbour tables of each level.
    pub tables: Vec<LevelTopology>,
    /// Flux planes and coarse–fine faces.
    pub flux: FluxTables,
    /// Conserved, comoving, `[slots, 6, 16, 16, 16]`.
    pub fluid: Buffer<T>,
    /// Where a sweep writes, then swapped with `fluid`. Same shape.
    pub next: Buffer<T>,
    /// Fluxes of the last sweep, `[planes, 6, 16, 16]`.
    pub fluxes: Buffer<T>,
    /// Cells that the last sweep could not advance, and room for a redo.
    pub marks: TroubledCells,
    /// φ̃, `[slots, 16, 16, 16]`; empty without gravity.
    pub potential: Buffer<T>,
    /// What finer levels interpolate in time; with individual time steps only.
    pub history: Option<LevelHistory<T>>,
    /// Steps that each level has taken since the levels finer than it were decided; with uniform steps the root counts
    /// for all.
    pub steps_since_regrid: Vec<u32>,
    /// What `max_cells` did at the last regrid.
    pub raised: Option<CellBudgetAdjustment>,
    /// Cell width of the root level, code length.
    pub root_cell_width: f64,
    /// The state at the start of the present root step, once one has been needed.
    pub(crate) saved: Option<SavedState<T>>,
    /// Slots that every pool has.
    pub(crate) capacity: usize,
    kind: Kind,
    pub(crate) faces: [FaceBoundary; FACES],
    /// Whether gravity is isolated: then the mean density attracts too.
    isolated: bool,
    pub(crate) free: Vec<u32>,
    gravity: Option<Gravity<T>>,
    root_slots: DeviceTable<u32>,
}

impl<T: Real> State<T> {
    /// Puts a host state on a device.
    ///
    /// # Errors
    /// [`SimError::OutOfMemory`] if it does not fit, before anything is taken.
    pub fn from_host(
        device: Device,
        host: &HostState,
        root_cell_width: f64,
        parameters: &RunParameters,
    ) -> Result<Self, SimError> {
        let layout = Layout::in_order(host.tree.clone(), parameters.boundary.for_kernels(parameters.gamma));
        Self::on_layout(device, Arc::new(Communicator::alone()), host, layout, root_cell_width, parameters)
    }

    /// The same with the groups of `host` in the first slots of a layout.
    pub(crate) fn on_layout(
        device: Device,
        communicator: Arc<Communicator>,
        host: &HostState,
        layout: Layout,
        root_cell_width: f64,
        parameters: &RunParameters,
    ) -> Result<Self, SimError> {
        let faces = parameters.boundary.for_kernels(parameters.gamma);
        let kind = Kind::of(parameters);
        let groups = layout.slot_count();
        let root_groups = host.tree.root_groups().map(|n| n as usize);
        let root = memory::root_bytes(&device, root_groups, parameters, (communicator.rank(), communicator.size()));
        let peak = Footprint::of::<T>(&layout, groups, kind, root).total() + device.working_bytes(groups);
        // the host state makes room for the first snapshot
        let held = (host.fluid.len() + host.potential.len()) * size_of::<f64>();
        let snapshot = memory::snapshot_bytes(&device, groups, T::BYTES).saturating_sub(held);
        let room = check_room(&device, [0, peak, snapshot], &[], &layout);
        collective_result(&communicator, room)?;

        let gravity = kind
            .gravity
            .then(|| Gravity::new(&device, &communicator, &layout.share.owners, parameters, host.tree.root_groups()));
        let gravity = gravity.transpose();
        let gravity = collective_result(&communicator, gravity.map_err(SimError::from))?;
        let least = match &gravity {
            Some(gravity) => gravity.needs(communicator.size()),
            None => vec![MessageSizes::default(); communicator.size()],
        };
        let ghost_exchange = GhostExchange::new(&device, &communicator, least)?;
        let fluid = Buffer::from_host(&device, host.fluid.par_iter().map(|&v| T::from_f64(v)).collect())?;
        let mut state = Self {
            history: kind.individual.then(|| LevelHistory::new(&device)).transpose()?,
            steps_since_regrid: vec![0; usize::from(parameters.max_level) + 1],
            raised: None,
            tables: Vec::new(),
            root_slots: DeviceTable::default(),
            flux: FluxTables::default(),
            potential: Buffer::zeros(&device, 0)?,
            next: Buffer::zeros(&device, 0)?,
            fluxes: Buffer::zeros(&device, 0)?,
            marks: TroubledCells::new(&device, 0)?,
            saved: None,
            gravity,
            kind,
            faces,
            isolated: parameters.gravity_boundary == GravityBoundary::Isolated,
            free: Vec::new(),
            capacity: 0,
            device,
            communicator,
            ghost_exchange,
            tree: layout.tree.clone(),
            share: layout.share.clone(),
            slots: Vec::new(),
            fluid,
            root_cell_width,
        };
        let fitted = state.fit(&layout, groups);
        collective_result(&state.communicator, fitted)?;
        state.ghost_exchange.fit(&state.needs(&layout))?;
        state.take(layout);
        state.refresh_all();
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

    /// The slot of a group that is own or has a ghost.
    pub fn slot_of(&self, key: Key) -> Option<u32> {
        let level = usize::from(key.level);
        let ghosts = self.share.ghosts.get(level).map_or(&[][..], Vec::as_slice);
        let ghost = || ghosts.binary_search_by_key(&key, |ghost| ghost.0).ok().map(|at| ghosts[at].1);
        self.tree.find(key).map(|group| self.slots[level][group]).or_else(ghost)
    }

    /// Groups of each level, of all ranks together.
    pub fn groups(&self) -> &[usize] {
        &self.share.groups
    }

    /// Brings the ghosts of a level up to date after its fluid has changed; nothing to do for a rank that is alone.
    pub fn refresh(&mut self, level: usize) {
        if let Some(links) = self.share.links.get(level) {
            self.ghost_exchange.exchange_cells(&links.cells, FIELDS, &mut self.fluid);
        }
    }

    /// The same of what the level's own next sweep reads, and not the finer level's.
    pub fn refresh_for_sweep(&mut self, level: usize) {
        if let Some(links) = self.share.links.get(level) {
            self.ghost_exchange.exchange_cells(&links.sweep, FIELDS, &mut self.fluid);
        }
    }

    /// [`State::refresh`] of all levels.
    pub fn refresh_all(&mut self) {
        (0..self.level_count()).for_each(|level| self.refresh(level));
    }

    /// Sends the fluxes (of the last sweep, or with individual time steps summed) through faces of the next finer level to
    /// the ranks that own the coarse groups.
    pub fn send_fluxes(&mut self, level: usize) {
        let fluxes = self.history.as_mut().map_or(&mut self.fluxes, |history| &mut history.register);
        let links = &self.flux.links[level];
        self.ghost_exchange.exchange_slots(links, FLUX_PLANE_VALUES, fluxes);
    }

    /// Bytes of the longest messages about a layout to other ranks and from them, by rank.
    pub(crate) fn needs(&self, layout: &Layout) -> Vec<MessageSizes> {
        let mut needs = vec![MessageSizes::default(); self.communicator.size()];
        layout.share.links.iter().for_each(|links| links.need(&mut needs, T::BYTES));
        layout.flux.links.iter().for_each(|links| need(&mut needs, &links.peers, FLUX_PLANE_VALUES * T::BYTES));
        needs
    }

    /// Bytes of all device arrays.
    pub fn device_bytes(&self) -> usize {
        self.footprint().total()
    }

    /// Bytes of each of the device arrays.
    pub fn footprint(&self) -> Footprint {
        let bytes = |buffer: &Buffer<T>| buffer.len() * T::BYTES;
        let tables = self.tables.iter().map(LevelTopology::bytes).sum::<usize>();
        let past = self.history.as_ref();
        Footprint {
            fluid: bytes(&self.fluid),
            next: bytes(&self.next),
            marks: self.marks.bytes(),
            work: self.gravity.as_ref().map_or([0; 4], Gravity::work_bytes),
            fluxes: bytes(&self.fluxes),
            past: past.map_or(0, LevelHistory::bytes),
            register: past.map_or(0, |history| bytes(&history.register)),
            potential: bytes(&self.potential),
            saved: self.saved.as_ref().map_or(0, SavedState::bytes),
            root: self.gravity.as_ref().map_or(0, Gravity::root_bytes),
            messages: self.ghost_exchange.bytes(),
            tables: tables + self.flux.bytes() + self.root_slots.bytes() + past.map_or(0, LevelHistory::table_bytes),
        }
    }

    /// What the arrays would take on another tree, a saved state among them.
    pub fn footprint_on(&self, tree: Octree) -> Footprint {
        let (slots, ..) = self.slots_on(&tree);
        let share = Share::alone(&tree);
        let layout = Layout::new(tree, slots, share, self.faces);
        self.wanted(&layout, self.capacities(&layout)[0])
    }

    /// Moves to another tree: kept groups stay where they are, removed ones free their slots (their parents already
    /// hold the restricted values), new ones are interpolated from their parents, coarse levels first. Of ranks that share
    /// a tree, those that have more than their part of a level give groups to others.
    ///
    /// * `from`: the finest level that stays in any case, with all coarser ones, where and as it is
    ///
    /// # Errors
    /// [`SimError::OutOfMemory`] if the new tree will not fit, before anything has moved. [`SimError::Kernel`] if it did not
    /// although it should have, because another process was faster: then some pools are longer than others, and the state
    /// is good for a snapshot and for nothing else.
    pub fn adopt_tree(&mut self, tree: Octree, from: usize, eos: &Eos<T>) -> Result<(), SimError> {
        if !self.share.is_alone() {
            return self.adopt_share(tree, from, eos);
        }
        let (slots, free, new) = self.slots_on(&tree);
        let used = self.capacity.max(tree.group_count());
        let stay = (0..tree.level_count().min(self.level_count()))
            .take_while(|&level| tree.level(level) == self.tree.level(level))
            .count();
        let (share, kept) = (Share::alone(&tree), stay - 1);
        // loops in loops on threads that are awake
        let layout = self.device.install(|| Layout::after(self.before(), kept, tree, slots, share, self.faces));
        let capacity = self.room_for(&layout)?;
        self.fit(&layout, capacity)?;
        self.free = (used as u32..capacity as u32).rev().chain(free).collect();
        self.take(layout);
        for level in 1..self.level_count() {
            prolong::prolong(&self.device, &self.tables[level], &new[level], &mut self.fluid, eos);
        }
        Ok(())
    }

    /// What the next layout follows.
    pub(crate) fn before(&self) -> Before<'_> {
        let groups = self.share.level_groups(&self.tree, &self.slots);
        Before { groups, tables: &self.tables, flux: &self.flux }
    }

    /// The slots of another tree's groups, those that then stay free (the first at the end), and its new groups level by
    /// level. Where the pools have too few, slots behind them are used.
    fn slots_on(&self, tree: &Octree) -> (Vec<Vec<u32>>, Vec<u32>, Vec<Vec<usize>>) {
        let mut free = self.free.clone();
        for (level, (keys, slots)) in self.tree_levels().enumerate() {
            let stays = places_of(keys, tree.level(level));
            free.extend(stays.iter().zip(slots).filter(|(place, _)| place.is_none()).map(|(_, &slot)| slot));
        }
        free.sort_unstable_by(|a, b| b.cmp(a));
        let mut beyond = self.capacity as u32..;
        let mut slots = Vec::with_capacity(tree.level_count());
        let mut new = Vec::with_capacity(tree.level_count());
        for level in 0..tree.level_count() {
            let mut new_here = Vec::new();
            let old_places = places_of(tree.level(level), self.tree.level(level));
            let level_slots = old_places.into_iter().enumerate().map(|(g, old)| match old {
                Some(old) => self.slots[level][old],
                None => {
                    new_here.push(g);
                    free.pop().or_else(|| beyond.next()).expect("fewer than 2³² groups")
                }
            });
            slots.push(level_slots.collect());
            new.push(new_here);
        }
        (slots, free, new)
    }

    /// Takes a tree whose groups already sit in these slots of the pools.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if what depends on the tree does not fit.
    ///
    /// # Panics
    /// If a slot lies beyond the pools.
    pub(crate) fn place(&mut self, tree: Octree, slots: Vec<Vec<u32>>, share: Share) -> Result<(), SimError> {
        let mut used = vec![false; self.capacity];
        let ghosts = share.ghosts.iter().flatten().map(|(_, slot)| slot);
        for &slot in slots.iter().flatten().chain(ghosts) {
            used[slot as usize] = true;
        }
        let layout = Layout::new(tree, slots, share, self.faces);
        let fitted = self.fit(&layout, self.capacity);
        collective_result(&self.communicator, fitted)?;
        self.ghost_exchange.fit(&self.needs(&layout))?;
        self.free = (0..used.len() as u32).rev().filter(|&slot| !used[slot as usize]).collect();
        self.take(layout);
        Ok(())
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
        let hierarchy = Hierarchy {
            tables: &self.tables,
            root_slots: &self.root_slots,
            h: self.root_cell_width,
            ranks: Sharing { ghost_exchange: &self.ghost_exchange, links: &self.share.links },
        };
        let density =
            DensitySource { fluid: &self.fluid, four_pi_g, mean: if self.isolated { 0.0 } else { mean_density } };
        let coarse = self.history.as_ref().zip(coarse).map(|(history, passed)| history.potential_at(passed));
        solve(gravity, &self.device, &hierarchy, level, coarse.as_ref(), density, &mut self.potential)?;
        Ok(())
    }

    /// Is from now on where a layout says, with the copies on a GPU of what has not changed.
    pub(crate) fn take(&mut self, layout: Layout) {
        let Layout { tree, slots, tables, flux, root_slots, share, .. } = layout;
        (self.tree, self.slots, self.share) = (tree, slots, share);
        let old = std::mem::replace(&mut self.tables, tables);
        self.tables.iter_mut().zip(old).for_each(|(new, old)| new.keep(old));
        let old = std::mem::replace(&mut self.root_slots, root_slots);
        self.root_slots.keep(old);
        let old = std::mem::replace(&mut self.flux, flux);
        self.flux.keep(old);
    }

    fn tree_levels(&self) -> impl Iterator<Item = (&[Key], &[u32])> {
        (0..self.tree.level_count()).map(|l| (self.tree.level(l), self.slots[l].as_slice()))
    }

    /// Slots that the pools may have for a layout, the first choice first: once they must grow, an eighth more than are
    /// needed.
    fn capacities(&self, layout: &Layout) -> [usize; 2] {
        match layout.slot_count() {
            groups if groups <= self.capacity => [self.capacity; 2],
            groups => [groups + groups / 8, groups],
        }
    }

    /// What the arrays take once they fit a layout.
    fn wanted(&self, layout: &Layout, capacity: usize) -> Footprint {
        let now = self.footprint();
        let messages = self.ghost_exchange.bytes_for(&self.needs(layout));
        Footprint { messages, ..Footprint::of::<T>(layout, capacity, self.kind, now.root) }.grown_from(&now)
    }

    /// The slots that the pools will have for a layout.
    ///
    /// # Errors
    /// [`SimError::OutOfMemory`].
    pub(crate) fn room_for(&self, layout: &Layout) -> Result<usize, SimError> {
        let now = self.footprint();
        let groups: Vec<usize> = self.tables.iter().map(LevelTopology::len).collect();
        let snapshot = memory::snapshot_bytes(&self.device, layout.tree.group_count(), T::BYTES);
        let check = |capacity: usize| {
            let peak = self.wanted(layout, capacity).peak_from(&now) + self.working_bytes(layout);
            check_room(&self.device, [now.total(), peak, snapshot], &groups, layout)
        };
        let [roomy, tight] = self.capacities(layout);
        check(roomy).map(|()| roomy).or_else(|_| check(tight).map(|()| tight))
    }

    /// Bytes that operations take for themselves.
    fn working_bytes(&self, layout: &Layout) -> usize {
        let gravity = self.gravity.as_ref().map_or(0, Gravity::working_bytes);
        self.device.working_bytes(layout.slot_count()) + gravity
    }

    /// Makes everything long enough for a layout and pools of `capacity` slots. The potential comes last: if something
    /// does not fit, the present one can still be solved.
    pub(crate) fn fit(&mut self, layout: &Layout, capacity: usize) -> Result<(), SimError> {
        let Self { device, kind, .. } = self;
        let device = &*device;
        let grows = capacity > self.capacity;
        self.fluid.grow(device, capacity * GROUP_VALUES)?;
        self.next.grow(device, capacity * GROUP_VALUES)?;
        self.marks.grow(device, capacity)?;
        if let Some(gravity) = &mut self.gravity {
            gravity.fit(device, &layout.groups(), capacity)?;
        }
        self.fluxes.grow(device, layout.flux.planes * FLUX_PLANE_VALUES)?;
        if let Some(history) = &mut self.history {
            history.fit(device, layout.read_slots(), capacity, layout.flux.planes, kind.gravity)?;
        }
        if kind.gravity {
            self.potential.grow(device, capacity * GROUP_CELLS)?;
        }
        if grows {
            // tables reach a GPU with their first use
            let tables = self.wanted(layout, capacity).tables;
            self.device.keep_ready(self.working_bytes(layout) + tables)?;
        }
        self.capacity = capacity;
        Ok(())
    }
}

/// Whether a layout fits where so many bytes are taken and at most `peak` of the device will be, and leaves room for a
/// snapshot on the host.
fn check_room(
    device: &Device,
    [taken, peak, snapshot]: [usize; 3],
    groups: &[usize],
    layout: &Layout,
) -> Result<(), SimError> {
    match Memories::of(device).lack(taken, peak, snapshot) {
        None => Ok(()),
        Some((bound, needed, available)) => {
            let (groups, wanted) = (groups.to_vec(), layout.groups());
            Err(SimError::OutOfMemory(Box::new(Shortage { groups, wanted, needed, available, bound })))
        }
    }
}

/// Where each of some sorted keys stands among others.
pub(crate) fn places_of(keys: &[Key], among: &[Key]) -> Vec<Option<usize>> {
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
                to.iter_mut().zip(from).for_each(|(to, value)| *to = value.as_f64());
            }
        });
    });
}

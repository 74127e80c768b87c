//! The state of a run on its device: mesh, gas, gravity, and what ranks exchange.

mod adopt;
pub(crate) mod diagnosis;
mod hash;
mod host;
pub(crate) mod layout;
pub mod memory;
mod saved_state;
mod subcycling;

use crate::boundary::GravityBoundary;
use crate::dark_matter::{DarkMatter, HostParticles};
use crate::device_arrays::ArrayBytes;
use crate::error::{OverfullCell, SimError};
use crate::gas::Gas;
use crate::gas::conserved_fields::ConservedFields;
use crate::gravity::{Gravity, Hierarchy, PoissonSolver, Purpose, Sharing, Solve, root_bytes};
use crate::mesh::earlier_groups::EarlierGroups;
use crate::mesh::host_state::HostState;
use crate::mesh::{Key, Mesh};
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::{Communicator, FIRST};
use crate::parallel::deposits::Deposits;
use crate::parallel::exchange::Exchange;
use crate::parallel::link_lists::need;
use crate::parameters::{Coordinates, RunParameters};
use crate::records::CellBudgetAdjustment;
use comove_kernels::layout::{FACE_CELLS, FIELDS, GROUP, cell_coordinate};
use comove_kernels::messages::MessageSizes;
use comove_kernels::{Buffer, DensitySource, Device, Real};
use layout::Layout;
use memory::{Footprint, Kind, Species, check_room, snapshot_bytes};
use saved_state::SavedState;
use std::ops::Range;
use std::sync::Arc;

/// What is said where gas is missed.
pub(crate) const HAS_GAS: &str = "a state with gas";

/// A run's state on its device.
pub struct State<T> {
    /// Where the arrays are.
    pub device: Device,
    /// The octree, in slots of the pools.
    pub mesh: Mesh,
    /// Its gas, if it has some.
    pub gas: Option<Gas<T>>,
    /// Its dark matter, if it has some.
    pub dark_matter: Option<DarkMatter<T>>,
    /// Its potential; none without gravity.
    pub gravity: Option<Gravity<T>>,
    /// The ranks that share the tree.
    pub exchange: Exchange,
    /// What regrids remember.
    pub regrid: RegridMemory,
    /// Cell width of the root level, code length.
    pub root_cell_width: f64,
    pool: SlotPool,
    kind: Kind,
    /// The state at the start of the present root step, once one has been needed.
    saved: Option<SavedState<T>>,
}

/// What regrids remember.
#[derive(Clone, Debug)]
pub struct RegridMemory {
    /// Steps that each level has taken since the levels finer than it were decided; with uniform steps the root counts
    /// for all.
    pub steps_since: Vec<u32>,
    /// How many of its cells gas and particles may have travelled in them; a step taken in parts counts as often.
    pub travelled: Vec<f64>,
    /// The Courant number of the present root step's sweeps, as far as it was known at the start, or what particles cross in
    /// the time of one, if that is more.
    pub courant_number: f64,
    /// What `max_cells` did at the last regrid.
    pub raised: Option<CellBudgetAdjustment>,
}

impl RegridMemory {
    fn new(levels: usize) -> Self {
        Self { steps_since: vec![0; levels], travelled: vec![0.0; levels], courant_number: 0.0, raised: None }
    }

    /// Goes on with what a checkpoint has kept of its levels, which may be fewer or more.
    pub(crate) fn go_on(&mut self, steps_since: &[u32], travelled: &[f64]) {
        self.steps_since.iter_mut().zip(steps_since).for_each(|(now, then)| *now = *then);
        self.travelled.iter_mut().zip(travelled).for_each(|(now, then)| *now = *then);
    }

    /// Counts a step of a level, of so many sweeps.
    pub(crate) fn count_step(&mut self, level: usize, sweeps: u32) {
        self.steps_since[level] += 1;
        self.travelled[level] += f64::from(sweeps) * self.courant_number;
    }
}

/// The slots of the pools.
#[derive(Default)]
struct SlotPool {
    /// Slots that every pool has.
    capacity: usize,
    /// Those that no group has; the next to be taken is at the end.
    free: Vec<u32>,
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
        let particles = host.particles.as_ref();
        // a rank may have no groups
        let gas = communicator.any(!host.fluid.is_empty());
        let kind = Kind::of(parameters, Species { gas, particles: 0 });
        let kind = particles.map_or(kind, |particles| kind.with_particles(particles.len()));
        let all = particles.map(|particles| particles.header_of_all(&communicator));
        let total = all.map_or(0, |all| all.particles);
        let slots = layout.slot_count();
        let root_groups = host.tree.root_groups();
        let ranks = (communicator.rank(), communicator.size());
        let root = root_bytes(&device, root_groups.map(|n| n as usize), parameters, ranks);
        let peak = Footprint::of::<T>(&layout, slots, kind, root).total() + device.working_bytes(slots);
        // the host state makes room for the first snapshot
        let scalars = host.scalars.iter().map(Vec::len).sum::<usize>();
        let held = (host.fluid.len() + host.potential.len() + scalars) * size_of::<f64>()
            + particles.map_or(0, HostParticles::bytes);
        let written = kind.particles + gathered(&communicator, total);
        let written = Species { gas, particles: written };
        let snapshot = snapshot_bytes(&device, slots, kind.scalars, written, T::BYTES).saturating_sub(held);
        let room = check_room(&device, [0, peak, snapshot], Vec::new(), &layout);
        collective_result(&communicator, room)?;

        let owners = &layout.share.owners;
        let lengths = host.tree.cells(0).map(|n| n as f64 * root_cell_width);
        let solver = || -> Result<_, SimError> {
            let has_particles = all.is_some();
            let mut solver =
                PoissonSolver::new(&device, &communicator, owners, parameters, has_particles, root_groups)?;
            if let Some(all) = all.filter(|_| parameters.coordinates == Coordinates::Comoving) {
                // of all matter, whose mean density is 1
                let volume: f64 = lengths.iter().product();
                solver.serve_particles(if gas { all.mass() / volume } else { 1.0 })?;
            }
            Ok(solver)
        };
        let solver = collective_result(&communicator, kind.gravity.then(solver).transpose())?;
        let none = || vec![MessageSizes::default(); ranks.1];
        let least = solver.as_ref().map_or_else(none, |solver| solver.needs(ranks.1));
        let isolated = parameters.gravity_boundary == GravityBoundary::Isolated;
        let mut state = Self {
            mesh: Mesh::of_tree(layout.mesh.tree.clone(), layout.mesh.faces),
            gas: gas.then(|| Gas::from_host(&device, host, &parameters.scalars)).transpose()?,
            dark_matter: particles
                .zip(all)
                .map(|(particles, all)| DarkMatter::from_host(&device, particles, all, lengths, &host.tree))
                .transpose()?,
            gravity: solver.map(|solver| Gravity::new(&device, solver, isolated)).transpose()?,
            exchange: Exchange::new(&device, communicator, layout.share.clone(), least)?,
            regrid: RegridMemory::new(usize::from(parameters.max_level) + 1),
            root_cell_width,
            pool: SlotPool::default(),
            kind,
            saved: None,
            device,
        };
        let fitted = state.fit(&layout, slots);
        collective_result(&state.exchange.communicator, fitted)?;
        state.exchange.ghosts.fit(&state.needs(&layout))?;
        state.take(layout);
        state.sort_particles(0)?;
        let particles = state.dark_matter.as_ref();
        if let Some(strays) =
            particles.and_then(|particles| particles.strays(&state.device, &state.exchange.communicator))
        {
            let value = strays.count.to_string();
            return Err(SimError::Parameter { name: "particles", value, reason: strays.to_string() });
        }
        state.refresh_all();
        Ok(state)
    }

    /// The gas of a state that has some.
    ///
    /// # Panics
    /// Without gas.
    pub fn gas(&self) -> &Gas<T> {
        self.gas.as_ref().expect(HAS_GAS)
    }

    /// The same to write to.
    ///
    /// # Panics
    /// Without gas.
    pub fn gas_mut(&mut self) -> &mut Gas<T> {
        self.gas.as_mut().expect(HAS_GAS)
    }

    /// Cell width of a level, code length.
    pub fn cell_width(&self, level: usize) -> f64 {
        self.root_cell_width / f64::from(1u32 << level)
    }

    /// Levels that have groups.
    pub fn level_count(&self) -> usize {
        self.mesh.tree.level_count()
    }

    /// Groups of each level, of all ranks together.
    pub fn groups(&self) -> &[usize] {
        &self.exchange.share.groups
    }

    /// The slot of a group that is own or has a ghost.
    pub(crate) fn slot_of(&self, key: Key) -> Option<u32> {
        self.mesh.slot_of(key).or_else(|| self.exchange.ghost_slot(key))
    }

    /// Brings the ghosts of a level up to date after its gas has changed; nothing to do for a rank that is alone.
    pub fn refresh(&mut self, level: usize) {
        for fields in self.gas.iter_mut().flat_map(Gas::fields_mut) {
            fields.refresh(&self.exchange, level, |links| &links.cells);
        }
    }

    /// Makes what sweeps have written the present state.
    pub(crate) fn swap(&mut self) {
        self.gas.iter_mut().flat_map(Gas::fields_mut).for_each(ConservedFields::swap);
    }

    /// [`State::refresh`] of all levels.
    pub fn refresh_all(&mut self) {
        (0..self.level_count()).for_each(|level| self.refresh(level));
    }

    /// Volume of the box, code length³.
    pub(crate) fn volume(&self) -> f64 {
        self.mesh.tree.cells(0).iter().map(|&n| n as f64 * self.root_cell_width).product()
    }

    /// Sends particles of level `from` and finer ones, which are at one time, to the ranks, levels and groups that they are
    /// in: collective.
    ///
    /// # Errors
    /// [`SimError::Kernel`] where a rank has no room for those that come, on all of them.
    pub(crate) fn sort_particles(&mut self, from: usize) -> Result<(), SimError> {
        if let Some(dark_matter) = &mut self.dark_matter {
            dark_matter.exchange_and_sort(&self.device, &self.exchange, from)?;
            self.kind = self.kind.with_room_for(dark_matter.capacity());
        }
        Ok(())
    }

    /// Deposits the particles that refinement follows on some levels, which are at one time, in place of the mass of all, where there
    /// are others: collective.
    pub(crate) fn count_followed(&mut self, levels: Range<usize>) {
        if let Some(dark_matter) = &mut self.dark_matter {
            dark_matter.count_followed(&self.device, &self.exchange, &self.mesh, levels);
        }
    }

    /// Checks that the deposits of no cell have exceeded 64 bits: collective; waits for the device.
    ///
    /// # Errors
    /// [`SimError::CellMass`], on all ranks.
    pub(crate) fn check_cell_masses(&self) -> Result<(), SimError> {
        let Some(dark_matter) = &self.dark_matter else { return Ok(()) };
        let cell = dark_matter.overflow().map(|(slot, offset)| {
            let key = self.key_of(slot).expect("deposits are in groups of the mesh");
            let at = cell_coordinate(offset);
            let centre = |axis: usize| (key.coordinate[axis] as usize * GROUP + at[axis]) as f64 + 0.5;
            let width = self.cell_width(usize::from(key.level));
            OverfullCell {
                level: key.level,
                place: [0, 1, 2].map(|axis| centre(axis) * width),
                class: dark_matter.header().heaviest_class(),
            }
        });
        let cells = self.exchange.communicator.gather_all_of(&cell);
        cells.into_iter().flatten().next().map_or(Ok(()), |cell| Err(SimError::CellMass(cell)))
    }

    /// The group of a slot in which own particles may deposit mass.
    fn key_of(&self, slot: u32) -> Option<Key> {
        let own = self.mesh.tree.keys().zip(self.mesh.slots.iter().flatten().copied());
        let share = &self.exchange.share;
        let others = share.ghosts.iter().flatten().copied();
        let mut all = own.chain(others).chain(share.deposits.iter().flat_map(Deposits::groups));
        all.find(|(_, other)| *other == slot).map(|(key, _)| key)
    }

    /// Finds the density of all matter on some levels, which are at one time: none without dark matter.
    pub(crate) fn find_matter_density(&mut self, levels: Range<usize>) -> Option<&Buffer<T>> {
        let Self { device, mesh, gas, dark_matter, root_cell_width, exchange, .. } = self;
        let dark_matter = dark_matter.as_mut()?;
        let fluid = gas.as_ref().map(|gas| &gas.fluid.values);
        dark_matter.find_density(device, exchange, mesh, levels, fluid, *root_cell_width);
        Some(dark_matter.density())
    }

    /// Solves ∇²φ = `four_pi_g` (ρ − `mean_density`) on all levels, isolated without the mean; nothing to do without
    /// gravity.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if the work space does not fit.
    pub fn solve_gravity(&mut self, four_pi_g: f64, mean_density: f64) -> Result<(), SimError> {
        self.solve_gravity_on((Solve::From(0), Purpose::Kick), None, four_pi_g, mean_density)
    }

    /// Solves ∇²φ = `four_pi_g` (ρ − `mean_density`) on some levels, for a kick or for boundary values of other solves.
    ///
    /// * `coarse`: the part of the coarser level's step that has passed by their time; `None` for the root.
    ///
    /// # Errors
    /// As [`State::solve_gravity`].
    pub fn solve_gravity_on(
        &mut self,
        (levels, purpose): (Solve, Purpose),
        coarse: Option<f64>,
        four_pi_g: f64,
        mean_density: f64,
    ) -> Result<(), SimError> {
        if self.gravity.is_none() {
            return Ok(());
        }
        self.find_matter_density(match levels {
            Solve::From(base) => base..self.level_count(),
            Solve::Level(level) => level..level + 1,
        });
        let Self { device, mesh, gas, dark_matter, gravity, exchange, kind, .. } = self;
        let Some(gravity) = gravity else { return Ok(()) };
        let hierarchy = Hierarchy {
            tables: &mesh.tables,
            root_slots: &mesh.root_slots,
            h: self.root_cell_width,
            ranks: Sharing { ghost_exchange: &exchange.ghosts, links: &exchange.share.links },
        };
        let density = matter(gas.as_ref(), dark_matter.as_ref(), four_pi_g, mean_density);
        let coarse = coarse.filter(|_| kind.subcycled);
        Ok(gravity.solve(device, &hierarchy, &mesh.earlier, (levels, purpose), coarse, density)?)
    }

    /// Gas and dark matter, the density of both as it was last found.
    pub(crate) fn matter(&self, four_pi_g: f64, mean_density: f64) -> DensitySource<'_, T> {
        matter(self.gas.as_ref(), self.dark_matter.as_ref(), four_pi_g, mean_density)
    }

    /// Bytes of the longest messages about a layout to other ranks and from them, by rank.
    fn needs(&self, layout: &Layout) -> Vec<MessageSizes> {
        let mut needs = vec![MessageSizes::default(); self.exchange.communicator.size()];
        layout.share.links.iter().for_each(|links| links.need(&mut needs, self.widest(), T::BYTES));
        layout.share.deposits.iter().for_each(|deposits| deposits.need(&mut needs));
        let of_plane = self.widest() * FACE_CELLS * T::BYTES;
        layout.mesh.flux.links.iter().for_each(|links| need(&mut needs, &links.peers, of_plane));
        needs
    }

    /// Most values that a message has of a cell.
    fn widest(&self) -> usize {
        self.gas.iter().flat_map(Gas::fields).map(|fields| fields.count).fold(FIELDS, usize::max)
    }

    /// Bytes of all device arrays.
    pub fn device_bytes(&self) -> usize {
        self.footprint().total()
    }

    /// Bytes of each of the device arrays.
    pub fn footprint(&self) -> Footprint {
        let mut arrays: Vec<ArrayBytes> = self.gas.iter().flat_map(Gas::footprint).collect();
        arrays.extend(self.dark_matter.iter().flat_map(DarkMatter::footprint));
        arrays.extend(self.gravity.iter().flat_map(Gravity::footprint));
        Footprint {
            arrays,
            saved: self.saved.as_ref().map_or(0, SavedState::bytes),
            particles: self.dark_matter.as_ref().map_or(0, DarkMatter::particle_bytes),
            root: self.gravity.as_ref().map_or(0, Gravity::root_bytes),
            messages: self.exchange.ghosts.bytes(),
            tables: self.mesh.table_bytes()
                + self.exchange.share.table_bytes()
                + self.mesh.earlier.bytes()
                + self.dark_matter.as_ref().map_or(0, DarkMatter::table_bytes),
        }
    }

    /// Slots that the pools may have for a layout, the first choice first: once they must grow, an eighth more than are
    /// needed.
    fn capacities(&self, layout: &Layout) -> [usize; 2] {
        match layout.slot_count() {
            groups if groups <= self.pool.capacity => [self.pool.capacity; 2],
            groups => [groups + groups / 8, groups],
        }
    }

    /// What the arrays take once they fit a layout and have room for so many particles.
    fn wanted(&self, layout: &Layout, capacity: usize, particles: usize) -> Footprint {
        let now = self.footprint();
        let messages = self.exchange.ghosts.bytes_for(&self.needs(layout));
        let kind = self.kind.with_room_for(particles);
        Footprint { messages, ..Footprint::of::<T>(layout, capacity, kind, now.root) }.grown_from(&now)
    }

    /// The slots that the pools will have for a layout, where there is also to be room for so many particles.
    ///
    /// # Errors
    /// [`SimError::OutOfMemory`].
    fn room_for(&self, layout: &Layout, particles: usize) -> Result<usize, SimError> {
        let now = self.footprint();
        let groups = layout.mesh.tree.group_count();
        let total = self.dark_matter.as_ref().map_or(0, |dark_matter| dark_matter.header().particles);
        let written = particles + gathered(&self.exchange.communicator, total);
        let written = Species { gas: self.gas.is_some(), particles: written };
        let snapshot = snapshot_bytes(&self.device, groups, self.kind.scalars, written, T::BYTES);
        let check = |capacity: usize| {
            let peak = self.wanted(layout, capacity, particles).peak_from(&now) + self.working_bytes(layout);
            check_room(&self.device, [now.total(), peak, snapshot], self.mesh.groups(), layout).map(|()| capacity)
        };
        let [roomy, tight] = self.capacities(layout);
        check(roomy).or_else(|_| check(tight))
    }

    /// Bytes that operations take for themselves.
    fn working_bytes(&self, layout: &Layout) -> usize {
        let gravity = self.gravity.as_ref().map_or(0, Gravity::working_bytes);
        self.device.working_bytes(layout.slot_count()) + gravity
    }

    /// Makes everything long enough for a layout and pools of `capacity` slots.
    fn fit(&mut self, layout: &Layout, capacity: usize) -> Result<(), SimError> {
        let extent = self.kind.extent(layout, capacity);
        if let Some(gas) = &mut self.gas {
            gas.fit(&self.device, &extent)?;
        }
        if let Some(dark_matter) = &mut self.dark_matter {
            dark_matter.fit(&self.device, &extent)?;
        }
        if let Some(gravity) = &mut self.gravity {
            gravity.fit(&self.device, &extent)?;
        }
        if capacity > self.pool.capacity {
            // tables reach a GPU with their first use
            let tables = self.wanted(layout, capacity, self.kind.particles).tables;
            self.device.keep_ready(self.working_bytes(layout) + tables)?;
        }
        self.pool.capacity = capacity;
        Ok(())
    }

    /// Takes a layout that everything fits, with the copies on a GPU of tables that have not changed.
    fn take(&mut self, layout: Layout) {
        if let Some(dark_matter) = &mut self.dark_matter {
            dark_matter.take_mesh(layout.locator(self.pool.capacity));
        }
        let earlier = match self.kind.subcycled {
            true => EarlierGroups::new(layout.read_slots(), self.pool.capacity),
            false => EarlierGroups::default(),
        };
        let mesh = Mesh { earlier, ..layout.mesh };
        let old = std::mem::replace(&mut self.mesh, mesh);
        self.mesh.keep(old);
        self.exchange.share = layout.share;
    }
}

/// Gas and dark matter, the density of both being found.
fn matter<'a, T: Real>(
    gas: Option<&'a Gas<T>>,
    dark_matter: Option<&'a DarkMatter<T>>,
    four_pi_g: f64,
    mean: f64,
) -> DensitySource<'a, T> {
    match (dark_matter, gas) {
        (Some(dark_matter), _) => DensitySource::of_matter(dark_matter.density(), four_pi_g, mean),
        (None, Some(gas)) => DensitySource::of_fluid(&gas.fluid.values, four_pi_g, mean),
        (None, None) => unreachable!("a run has gas or dark matter"),
    }
}

/// Particles of so many that come to this rank when a snapshot is written, beside its own.
fn gathered(communicator: &Communicator, total: u64) -> usize {
    let gathers = communicator.size() > 1 && communicator.rank() == FIRST;
    if gathers { total as usize } else { 0 }
}

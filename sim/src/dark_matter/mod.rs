//! Dark matter: collisionless particles on the levels of the octree.
//!
//! A particle belongs to the finest level that has a group where it is, but within one coarse cell inside a face between levels
//! to the coarser one. It takes that level's steps: half a drift, the kick with the potential that the gas is kicked with, half a
//! drift. It changes levels where both have arrived at one time.
//! A level sees particles of other levels where they are at its own time, on straight lines.

mod exchange;
mod host;

pub(crate) use exchange::{Transfer, distribute, gather, locator};
pub use host::{DarkMatterHeader, HostParticles};

use host::FRACTIONS;

use crate::device_arrays::{ArrayBytes, Extent, device_arrays};
use crate::error::{SimError, Strays};
use crate::mesh::morton_map::MortonMap;
use crate::mesh::{Mesh, Octree};
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::Communicator;
use crate::parallel::exchange::Exchange;
use crate::parallel::owners::Owners;
use crate::records::DarkMatterRecord;
use comove_kernels::Deferred;
use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::overflow::Overflow;
use comove_kernels::particles::{self, COLUMNS, Part, ParticleSums, Particles};
use comove_kernels::point::particle::{WeightUnit, mass_of_class};
use comove_kernels::{Buffer, Device, GroupLocator, KernelError, Real, TimedPotential};
use std::ops::Range;
use std::sync::OnceLock;

device_arrays! {
    /// Mass on all levels.
    struct Matter<T> {
        /// Weights of particles, `[slots, 16, 16, 16]`.
        particle_weights: Buffer<u64> = |extent| extent.matter_slots * GROUP_CELLS,
        /// Density of gas and particles, `[slots, 16, 16, 16]`.
        matter_density: Buffer<T> = |extent| extent.matter_slots * GROUP_CELLS,
    }
}

/// The dark matter of a run; of a rank among others the particles in its own groups.
#[derive(Debug)]
pub struct DarkMatter<T> {
    particles: Particles,
    /// Numbers and masses of the particles of all ranks.
    all: DarkMatterHeader,
    locator: GroupLocator,
    /// The number of each level's first particle, and of them all.
    firsts: Vec<usize>,
    /// The part of the root step that each level's particles have behind them.
    passed: Vec<f64>,
    /// Δt of the root step.
    root_dt: f64,
    /// Lengths of the box along x, y, z, code length.
    box_lengths: [f64; 3],
    /// How close particles may not come to faces of the box that are not periodic, in 2⁻³² of its length; 0 along periodic axes.
    edges: [u32; 3],
    matter: Matter<T>,
    /// Cell whose weights have exceeded 64 bits.
    overflow: Overflow,
    /// Sums over the particles of each level and mass class, computed at first use.
    sums: OnceLock<Vec<Vec<ParticleSums>>>,
}

/// The particles at the start of a root step.
pub(crate) struct SavedParticles {
    columns: [Buffer<u32>; COLUMNS],
    /// Particles that there is room for.
    capacity: usize,
    firsts: Vec<usize>,
}

/// Root cells that are to be between particles and faces of the box that are not periodic: the cells whose potential a particle
/// feels, and what it may move in a step.
const EDGE_CELLS: f64 = 2.0;

/// Factors of a drift over this time.
fn drift_factors(box_lengths: [f64; 3], time: f64) -> [f64; 3] {
    box_lengths.map(|length| time / length * FRACTIONS)
}

/// Sums of all ranks from those of each: collective.
fn reduced(mut sums: Vec<ParticleSums>, communicator: &Communicator) -> Vec<ParticleSums> {
    if communicator.size() == 1 {
        return sums;
    }
    let mut words: Vec<i128> = sums.iter().flat_map(ParticleSums::words).collect();
    communicator.sum_wide(&mut words);
    let mut invalid: Vec<u64> = sums.iter().map(|sums| sums.invalid).collect();
    communicator.sum(&mut invalid);
    for ((sums, words), invalid) in sums.iter_mut().zip(words.chunks_exact(4)).zip(invalid) {
        let fastest = communicator.max(f64::from(sums.fastest)) as f32;
        *sums = sums.with_words(words.try_into().expect("four words"));
        (sums.fastest, sums.invalid) = (fastest, invalid);
    }
    sums
}

impl SavedParticles {
    pub(crate) fn bytes(&self) -> usize {
        Self::bytes_for(self.capacity)
    }

    /// The same for so many particles.
    pub(crate) fn bytes_for(count: usize) -> usize {
        count * COLUMNS * size_of::<u32>()
    }
}

impl<T: Real> DarkMatter<T> {
    /// Puts particles on a device, with nothing beside them yet.
    ///
    /// * `all`: header of all ranks' particles
    /// * `root`: the tree of the root level
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn from_host(
        device: &Device,
        host: &HostParticles,
        all: DarkMatterHeader,
        box_lengths: [f64; 3],
        root: &Octree,
    ) -> Result<Self, KernelError> {
        let (cells, periodic) = (root.cells(0), root.periodic());
        let edge = |axis: usize| (EDGE_CELLS * FRACTIONS / cells[axis] as f64) as u32;
        Ok(Self {
            all,
            particles: Particles::from_host(device, host.columns())?,
            locator: GroupLocator::default(),
            firsts: vec![0, host.len()],
            passed: vec![0.0],
            root_dt: 0.0,
            box_lengths,
            edges: [0, 1, 2].map(|axis| if periodic[axis] { 0 } else { edge(axis) }),
            matter: Matter::empty(device)?,
            overflow: Overflow::none(device, all.weight())?,
            sums: OnceLock::new(),
        })
    }

    /// What a header says of them.
    pub(crate) fn header(&self) -> DarkMatterHeader {
        self.all
    }

    /// Copies them to the host.
    pub(crate) fn to_host(&self) -> HostParticles {
        HostParticles::of_columns(self.all.particle_mass, self.particles.columns.each_ref().map(Buffer::to_host))
    }

    /// How many particles, of this rank.
    pub fn len(&self) -> usize {
        self.particles.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.particles.is_empty()
    }

    /// Mass of all ranks' particles.
    pub fn mass(&self) -> f64 {
        self.all.mass()
    }

    pub(crate) fn footprint(&self) -> Vec<ArrayBytes> {
        self.matter.footprint()
    }

    pub(crate) fn footprint_for(extent: &Extent) -> Vec<ArrayBytes> {
        Matter::<T>::footprint_for(extent)
    }

    /// Makes the arrays fit a mesh.
    pub(crate) fn fit(&mut self, device: &Device, extent: &Extent) -> Result<(), KernelError> {
        self.matter.fit(device, extent)
    }

    /// Takes another mesh, on which particles are then to be [sorted](Self::sort).
    pub(crate) fn take_mesh(&mut self, locator: GroupLocator) {
        self.locator = locator;
    }

    /// Which particles other ranks are to have on another mesh, whose levels up to `kept` are the same: collective.
    ///
    /// * `locator`: of that mesh
    pub(crate) fn transfer_to(
        &self,
        device: &Device,
        (communicator, owners): (&Communicator, &Owners),
        locator: &GroupLocator,
        kept: usize,
    ) -> Transfer {
        // some of level `kept` may have left it, and wait for the coarser level; those of finer ones are in its groups
        let finer = self.firsts[kept + 1];
        let ranges = [(self.firsts[kept]..finer, kept), (finer..self.len(), 0)];
        exchange::transfer(device, (communicator, owners), locator, &self.particles, &ranges, kept)
    }

    /// How many particles there are in each own group, where ranks share the mesh.
    pub(crate) fn of_groups(&self, device: &Device, mesh: &Mesh) -> Vec<MortonMap> {
        let counts = particles::count_in_groups(device, &self.locator, &self.particles);
        let mut counts = counts.as_slice();
        let mut of_level = |level: usize| {
            let (keys, mut places) = (mesh.tree.level(level), MortonMap::default());
            keys.iter().zip(counts).for_each(|(key, &count)| *places.entry(key.morton()) = count);
            // behind them those that wait on the level
            counts = &counts[keys.len() + 1..];
            places
        };
        (0..mesh.tree.level_count()).map(&mut of_level).collect()
    }

    /// Makes room for so many particles.
    pub(crate) fn reserve(&mut self, device: &Device, capacity: usize) -> Result<(), KernelError> {
        self.particles.reserve(device, capacity)
    }

    /// Particles that there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.particles.capacity()
    }

    /// Particles that there will be room for once this has happened.
    pub(crate) fn capacity_after(&self, transfer: &Transfer) -> usize {
        match transfer.count_after(self.len()) {
            count if count <= self.capacity() => self.capacity(),
            count => Particles::roomy(count),
        }
    }

    /// Gives particles to other ranks and takes theirs, which are then to be [sorted](Self::sort).
    pub(crate) fn change_hands(&mut self, device: &Device, transfer: Transfer) -> Result<(), KernelError> {
        self.sums.take();
        transfer.apply(device, &mut self.particles)
    }

    /// Sends particles of level `from` and finer ones, which are at one time, to the ranks, levels and groups that they are
    /// in: collective.
    ///
    /// # Errors
    /// [`SimError::Kernel`] where a rank has no room for those that come, on all of them.
    pub(crate) fn exchange_and_sort(&mut self, device: &Device, ranks: &Exchange, from: usize) -> Result<(), SimError> {
        let (communicator, owners) = (&*ranks.communicator, &ranks.share.owners);
        if communicator.size() > 1 {
            let range = (self.firsts[from]..self.len(), from);
            let transfer =
                exchange::transfer(device, (communicator, owners), &self.locator, &self.particles, &[range], from);
            let changed = self.change_hands(device, transfer).map_err(SimError::from);
            collective_result(communicator, changed)?;
        }
        self.sort(device, from);
        Ok(())
    }

    /// Sorts own particles of level `from` and finer ones, which are at one time, by the levels and groups that they are in.
    pub(crate) fn sort(&mut self, device: &Device, from: usize) {
        self.sums.take();
        let time = self.passed[from];
        let first = self.firsts[from];
        self.firsts.truncate(from);
        self.firsts.extend(particles::sort(device, &self.locator, &mut self.particles, first, from));
        self.passed.resize(self.firsts.len() - 1, time);
    }

    /// Begins a root step of Δt.
    pub(crate) fn begin(&mut self, dt: f64) {
        self.root_dt = dt;
        self.passed.fill(0.0);
    }

    /// The particles of some levels.
    fn of(&self, levels: Range<usize>) -> Range<usize> {
        self.firsts[levels.start]..self.firsts[levels.end]
    }

    /// Moves the particles of some levels over a part of the root step.
    pub(crate) fn drift(&mut self, device: &Device, levels: Range<usize>, part: f64) {
        let factors = drift_factors(self.box_lengths, part * self.root_dt);
        let range = self.of(levels.clone());
        particles::drift(device, &mut self.particles, range, factors);
        self.passed[levels].iter_mut().for_each(|passed| *passed += part);
    }

    /// Finds the density of all matter on some levels, which are at one time: collective.
    ///
    /// * `fluid`: conserved, `[slots, 6, 16, 16, 16]`, if there is gas; `root_width`: of the root's cells, code length
    pub(crate) fn find_density(
        &mut self,
        device: &Device,
        ranks: &Exchange,
        mesh: &Mesh,
        levels: Range<usize>,
        fluid: Option<&Buffer<T>>,
        root_width: f64,
    ) {
        for level in levels {
            self.deposit(device, ranks, mesh, level, self.all.weight_unit());
            let unit = self.all.density_of_weight(root_width / f64::from(1u32 << level));
            let Matter { particle_weights, matter_density } = &mut self.matter;
            particles::matter_density(device, &mesh.tables[level], particle_weights, unit, fluid, matter_density);
        }
    }

    /// Deposits the particles that refinement follows on some levels, which are at one time, in place of the mass of all, where there
    /// are others: collective.
    pub(crate) fn count_followed(&mut self, device: &Device, ranks: &Exchange, mesh: &Mesh, levels: Range<usize>) {
        if let Some(unit) = self.all.unit_of_followed() {
            levels.for_each(|level| self.deposit(device, ranks, mesh, level, unit));
        }
    }

    /// Deposits particles in the cells of a level, of all ranks' groups: collective.
    fn deposit(&mut self, device: &Device, ranks: &Exchange, mesh: &Mesh, level: usize, unit: WeightUnit) {
        let now = self.passed[level];
        let of_level = |of: usize| -> Part {
            let time = (now - self.passed[of]) * self.root_dt;
            let range = self.firsts[of]..self.firsts[of + 1];
            Part { range, level: of, factors: drift_factors(self.box_lengths, time) }
        };
        let parts: Vec<Part> = (level.saturating_sub(1)..self.passed.len()).map(of_level).collect();
        let Self { particles, locator, matter: Matter { particle_weights, .. }, overflow, .. } = self;
        let links = ranks.share.deposits.as_ref().map(|deposits| deposits.links(level));
        let tables = links.map_or(&mesh.tables[level], |links| &links.tables);
        particles::deposit(device, locator, (level, tables), particles, &parts, unit, (particle_weights, overflow));
        if let Some(links) = links {
            ranks.ghosts.add_weights(&links.cells, (particle_weights, overflow));
        }
    }

    /// Weights of particles, `[slots, 16, 16, 16]`, as last deposited.
    pub(crate) fn weights(&self) -> &Buffer<u64> {
        &self.matter.particle_weights
    }

    /// Slot and offset of a cell whose weights have exceeded 64 bits; waits for the device.
    pub(crate) fn overflow(&self) -> Option<(u32, usize)> {
        self.overflow.cell().map(|cell| ((cell / GROUP_CELLS) as u32, cell % GROUP_CELLS))
    }

    /// The density of gas and particles, `[slots, 16, 16, 16]`, as it was last found.
    pub(crate) fn density(&self) -> &Buffer<T> {
        &self.matter.matter_density
    }

    /// Accelerates the particles of a level over `dt`.
    ///
    /// * `coarse`: the next coarser level's potential, where the pool holds another time's
    /// * `width`: of the level's cells, code length
    pub(crate) fn kick(
        &mut self,
        device: &Device,
        level: usize,
        potential: &Buffer<T>,
        coarse: Option<&TimedPotential<T>>,
        (width, dt): (f64, f64),
    ) {
        self.sums.take();
        let range = self.of(level..level + 1);
        let factor = -0.5 * dt / width;
        particles::kick(device, &self.locator, level, &mut self.particles, range, potential, coarse, factor);
    }

    /// Sums over all ranks' particles of each level and class, `[levels][classes]`: collective.
    fn sums(&self, device: &Device, communicator: &Communicator) -> &[Vec<ParticleSums>] {
        let classes = self.all.heaviest_class() + 1;
        let of_level = |level: usize| particles::sums(device, &self.particles, self.of(level..level + 1), classes);
        self.sums.get_or_init(|| {
            // all levels are at work before the first is waited for
            let of_levels: Vec<_> = (0..self.passed.len()).map(of_level).collect();
            let sums = reduced(of_levels.into_iter().flat_map(Deferred::wait).collect(), communicator);
            sums.chunks_exact(classes).map(<[_]>::to_vec).collect()
        })
    }

    /// Largest |v| along an axis of all ranks' particles of each level: collective.
    pub(crate) fn fastest(&self, device: &Device, communicator: &Communicator) -> Vec<f64> {
        let of_level = |classes: &Vec<ParticleSums>| classes.iter().map(|sums| sums.fastest).fold(0.0, f32::max);
        self.sums(device, communicator).iter().map(of_level).map(f64::from).collect()
    }

    /// What a record says of them: collective.
    ///
    /// # Errors
    /// How many have no velocity, or an impossible one.
    pub(crate) fn record(&self, device: &Device, communicator: &Communicator) -> Result<DarkMatterRecord, u64> {
        let sums = self.sums(device, communicator);
        let mut of_levels: Vec<u64> = self.firsts.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect();
        communicator.sum(&mut of_levels);
        match sums.iter().flatten().map(|sums| sums.invalid).sum() {
            0 => {}
            invalid => return Err(invalid),
        }
        let sum = |of: &dyn Fn(&ParticleSums) -> f64| -> f64 {
            let mass = |class: usize| self.all.particle_mass * f64::from(mass_of_class(class));
            let of_class = |class: usize| mass(class) * sums.iter().map(|level| of(&level[class])).sum::<f64>();
            (0..=self.all.heaviest_class()).map(of_class).sum()
        };
        Ok(DarkMatterRecord {
            particles: of_levels,
            mass: self.mass(),
            momentum: [0, 1, 2].map(|axis| sum(&|sums| sums.momentum()[axis])),
            kinetic: 0.5 * sum(&ParticleSums::square),
        })
    }

    /// How many particles of all ranks are too close to faces of the box that are not periodic, and the one of them with the
    /// lowest identity: none if it is periodic. Collective.
    pub(crate) fn strays(&self, device: &Device, communicator: &Communicator) -> Option<Strays> {
        if self.edges == [0; 3] {
            return None;
        }
        let mut count = [particles::near_edges(device, &self.particles, self.edges)];
        let host = (count[0] > 0).then(|| self.to_host());
        communicator.sum(&mut count);
        let [count] = count;
        if count == 0 {
            return None;
        }
        let first = host.and_then(|host| {
            let is_near =
                |n: &usize| (0..3).any(|axis| particles::is_near_edge(host.position[axis][*n], self.edges[axis]));
            let first = (0..host.len()).filter(is_near).min_by_key(|&n| host.id[n])?;
            Some((host.id[first], [0, 1, 2].map(|axis| host.position[axis][first])))
        });
        let (id, position) = communicator.gather_all_of(&first).into_iter().flatten().min().expect("one of them");
        let place = [0, 1, 2].map(|axis| f64::from(position[axis]) * (self.box_lengths[axis] / FRACTIONS));
        Some(Strays { count, id, place })
    }

    /// A hash of this rank's particles.
    pub(crate) fn hash(&self, device: &Device) -> u64 {
        particles::hash(device, &self.particles)
    }

    /// A copy, in the room of another.
    pub(crate) fn save(&self, device: &Device, room: Option<SavedParticles>) -> Result<SavedParticles, KernelError> {
        let mut columns = match room {
            Some(room) => room.columns,
            None => {
                let mut columns = Vec::with_capacity(COLUMNS);
                for _ in 0..COLUMNS {
                    columns.push(Buffer::zeros(device, 0)?);
                }
                columns.try_into().expect("eight columns")
            }
        };
        let capacity = self.capacity();
        for (to, from) in columns.iter_mut().zip(&self.particles.columns) {
            to.resize(device, self.len(), capacity)?;
            to.copy_from(from);
        }
        Ok(SavedParticles { columns, capacity, firsts: self.firsts.clone() })
    }

    /// Goes back to a copy; the mesh is the one of that time.
    pub(crate) fn restore(&mut self, device: &Device, saved: &SavedParticles) {
        self.sums.take();
        // a place in a tree that is left
        self.overflow = Overflow::none(device, self.all.weight()).expect("there was room for it before");
        let room = self.particles.resize(device, saved.columns[0].len());
        room.expect("there was room for them before");
        self.particles.columns.iter_mut().zip(&saved.columns).for_each(|(to, from)| to.copy_from(from));
        self.firsts.clone_from(&saved.firsts);
        self.passed = vec![0.0; self.firsts.len() - 1];
    }

    /// Bytes of the tables that they look up.
    pub(crate) fn table_bytes(&self) -> usize {
        self.locator.bytes()
    }

    /// Bytes of the particles, with room to sort them.
    pub(crate) fn particle_bytes(&self) -> usize {
        self.particles.bytes()
    }
}

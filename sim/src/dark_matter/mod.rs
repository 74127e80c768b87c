//! Dark matter: collisionless particles on the levels of the octree.
//!
//! A particle belongs to the finest level that has a group where it is. It takes that level's steps: half a drift, the kick
//! with the potential that the gas is kicked with, half a drift. It changes levels where both have arrived at one time.
//! A level sees particles of other levels where they are at its own time, on straight lines.

mod host;

pub use host::{DarkMatterHeader, HostParticles};

use host::{FRACTIONS, density_of_weight};

use crate::device_arrays::{ArrayBytes, Extent, device_arrays};
use crate::mesh::{Mesh, Octree};
use crate::records::DarkMatterRecord;
use comove_kernels::layout::GROUP_CELLS;
use comove_kernels::particles::{self, COLUMNS, Part, ParticleSums, Particles};
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

/// The dark matter of a run.
#[derive(Debug)]
pub struct DarkMatter<T> {
    particles: Particles,
    /// Mass of each: mean density · code length³.
    particle_mass: f64,
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
    /// Sums over the particles of each level, once they have been asked for.
    sums: OnceLock<Vec<ParticleSums>>,
}

/// The particles at the start of a root step.
pub(crate) struct SavedParticles {
    columns: [Buffer<u32>; COLUMNS],
    firsts: Vec<usize>,
}

/// Root cells that are to be between particles and faces of the box that are not periodic: the cells whose potential a particle
/// feels, and what it may move in a step.
const EDGE_CELLS: f64 = 2.0;

/// Particles that are about to leave the box.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Strays {
    /// How many.
    pub count: u64,
    /// The identity of one.
    pub id: u64,
    /// Where it is, code length.
    pub place: [f64; 3],
}

impl std::fmt::Display for Strays {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { count, id, place: [x, y, z] } = self;
        write!(f, "particle {id} at ({x}, {y}, {z})")?;
        if *count > 1 {
            write!(f, " and {} others", count - 1)?;
        }
        write!(f, " within two root cells of a face of the box that is not periodic: take a larger box")
    }
}

/// Factors of a drift over this time.
fn drift_factors(box_lengths: [f64; 3], time: f64) -> [f64; 3] {
    box_lengths.map(|length| time / length * FRACTIONS)
}

impl SavedParticles {
    pub(crate) fn bytes(&self) -> usize {
        Self::bytes_for(self.columns[0].len())
    }

    /// The same for so many particles.
    pub(crate) fn bytes_for(count: usize) -> usize {
        count * COLUMNS * size_of::<u32>()
    }
}

impl<T: Real> DarkMatter<T> {
    /// Puts particles on a device, with nothing beside them yet.
    ///
    /// * `root`: the tree of the root level
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn from_host(
        device: &Device,
        host: &HostParticles,
        box_lengths: [f64; 3],
        root: &Octree,
    ) -> Result<Self, KernelError> {
        let (cells, periodic) = (root.cells(0), root.periodic());
        let edge = |axis: usize| (EDGE_CELLS * FRACTIONS / cells[axis] as f64) as u32;
        Ok(Self {
            particles: Particles::from_host(device, host.columns())?,
            particle_mass: host.particle_mass,
            locator: GroupLocator::default(),
            firsts: vec![0, host.len()],
            passed: vec![0.0],
            root_dt: 0.0,
            box_lengths,
            edges: [0, 1, 2].map(|axis| if periodic[axis] { 0 } else { edge(axis) }),
            matter: Matter::empty(device)?,
            sums: OnceLock::new(),
        })
    }

    /// Copies them to the host.
    pub(crate) fn to_host(&self) -> HostParticles {
        HostParticles::of_columns(self.particle_mass, self.particles.columns.each_ref().map(Buffer::to_host))
    }

    /// How many particles.
    pub fn len(&self) -> usize {
        self.particles.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.particles.is_empty()
    }

    /// Particles of each level.
    pub fn of_levels(&self) -> Vec<u64> {
        self.firsts.windows(2).map(|pair| (pair[1] - pair[0]) as u64).collect()
    }

    /// Mass of all particles.
    pub fn mass(&self) -> f64 {
        self.len() as f64 * self.particle_mass
    }

    /// Mass of each particle.
    pub fn particle_mass(&self) -> f64 {
        self.particle_mass
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
    pub(crate) fn take_mesh(&mut self, mesh: &Mesh, capacity: usize) {
        self.locator = mesh.locator(capacity);
    }

    /// Sends particles of level `from` and finer ones, which are at one time, to the levels and groups that they are in.
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

    /// Finds the density of all matter on some levels, which are at one time.
    ///
    /// * `fluid`: conserved, `[slots, 6, 16, 16, 16]`; `root_width`: of the root's cells, code length
    pub(crate) fn find_density(
        &mut self,
        device: &Device,
        mesh: &Mesh,
        levels: Range<usize>,
        fluid: &Buffer<T>,
        root_width: f64,
    ) {
        let Self { particles, locator, matter: Matter { particle_weights, matter_density }, .. } = self;
        for level in levels {
            let now = self.passed[level];
            let of_level = |of: usize| -> Part {
                let time = (now - self.passed[of]) * self.root_dt;
                let range = self.firsts[of]..self.firsts[of + 1];
                Part { range, level: of, factors: drift_factors(self.box_lengths, time) }
            };
            let parts: Vec<Part> = (level.saturating_sub(1)..self.passed.len()).map(of_level).collect();
            let unit = density_of_weight(self.particle_mass, root_width / f64::from(1u32 << level));
            let tables = &mesh.tables[level];
            particles::deposit(device, locator, (level, tables), particles, &parts, particle_weights);
            particles::matter_density(device, tables, particle_weights, unit, fluid, matter_density);
        }
    }

    /// The weights of particles, `[slots, 16, 16, 16]`, as they were last found.
    pub(crate) fn weights(&self) -> &Buffer<u64> {
        &self.matter.particle_weights
    }

    /// The density of a weight of 1 in a cell of this width.
    pub(crate) fn density_of_weight(&self, width: f64) -> f64 {
        density_of_weight(self.particle_mass, width)
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

    /// Sums over the particles of each level.
    pub(crate) fn sums(&self, device: &Device) -> &[ParticleSums] {
        let of_level = |level: usize| particles::sums(device, &self.particles, self.of(level..level + 1));
        self.sums.get_or_init(|| (0..self.passed.len()).map(of_level).collect())
    }

    /// What a record says of them.
    ///
    /// # Errors
    /// How many have no velocity, or an impossible one.
    pub(crate) fn record(&self, device: &Device) -> Result<DarkMatterRecord, u64> {
        let sums = self.sums(device);
        match sums.iter().map(|sums| sums.invalid).sum() {
            0 => {}
            invalid => return Err(invalid),
        }
        let sum = |of: &dyn Fn(&ParticleSums) -> f64| self.particle_mass * sums.iter().map(of).sum::<f64>();
        Ok(DarkMatterRecord {
            particles: self.of_levels(),
            mass: self.mass(),
            momentum: [0, 1, 2].map(|axis| sum(&|sums| sums.momentum()[axis])),
            kinetic: 0.5 * sum(&ParticleSums::square),
        })
    }

    /// How many particles are too close to faces of the box that are not periodic, and the one of them with the lowest identity:
    /// none if it is periodic.
    pub(crate) fn strays(&self, device: &Device) -> Option<Strays> {
        if self.edges == [0; 3] {
            return None;
        }
        let count = particles::near_edges(device, &self.particles, self.edges);
        let host = (count > 0).then(|| self.to_host())?;
        let is_near = |n: &usize| (0..3).any(|axis| particles::is_near_edge(host.position[axis][*n], self.edges[axis]));
        let first = (0..host.len()).filter(is_near).min_by_key(|&n| host.id[n]).expect("one of them");
        let place = [0, 1, 2].map(|axis| host.coordinate(first, axis, self.box_lengths[axis]));
        Some(Strays { count, id: host.id[first], place })
    }

    /// A hash of all particles.
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
                    columns.push(Buffer::zeros(device, self.len())?);
                }
                columns.try_into().expect("eight columns")
            }
        };
        columns.iter_mut().zip(&self.particles.columns).for_each(|(to, from)| to.copy_from(from));
        Ok(SavedParticles { columns, firsts: self.firsts.clone() })
    }

    /// Goes back to a copy; the mesh is the one of that time.
    pub(crate) fn restore(&mut self, saved: &SavedParticles) {
        self.sums.take();
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

//! Collisionless particles on an octree: drift, mass in cells, kick, order.
//!
//! Particles are columns, sorted by the group that they are at home in ([`sort`]), and so by level: what a level's step
//! moves is one range of them. Every operation but the sort leaves them in place. Masses in cells and sums are integers,
//! so no result depends on the order of particles within a group, which differs from device to device.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod exchange;
#[cfg(test)]
mod tests;

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::deferred::Deferred;
use crate::device::error::KernelError;
use crate::device::overflow::Overflow;
use crate::layout::{GROUP_CELLS, GROUP_VALUES};
use crate::level::group_locator::GroupLocator;
use crate::level::level_topology::LevelTopology;
use crate::operations::potential_ghosts::TimedPotential;
use crate::point::particle::WeightUnit;
use crate::real::Real;
pub use exchange::{count_in_groups, foreign, put, take};
use std::ops::Range;

/// Numbers of a particle: its position (fractions of the box in 2⁻³²), the bits of its velocity (single precision), its
/// identity (lower and upper half).
pub const COLUMNS: usize = 8;

/// Particles whose sums are taken together.
pub(crate) const BLOCK: usize = 4096;

/// A speed that no particle has, 200,000 km/s at a = 1, and below which sums fit: what is faster counts as
/// [`ParticleSums::invalid`].
const IMPOSSIBLE: f32 = 2000.0;

/// Σv and Σv² are counted in these parts of one.
const MOMENTUM_UNIT: f64 = 16_777_216.0; // 2²⁴
const SQUARE_UNIT: f64 = 268_435_456.0; // 2²⁸

/// Particles on a device. Their masses follow from their identities ([`crate::point::particle::class_of`]).
#[derive(Debug)]
pub struct Particles {
    /// `[8][particles]`, see [`COLUMNS`].
    pub columns: [Buffer<u32>; COLUMNS],
    /// The same: the group of each particle, and where a column is sorted to.
    pub spare: Buffer<u32>,
    /// Work space of the sort: where it puts each particle, or which come to a place.
    pub target: Buffer<u32>,
    /// Particles that there is room for.
    capacity: usize,
}

impl Particles {
    /// Puts columns on a device.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn from_host(device: &Device, columns: [Vec<u32>; COLUMNS]) -> Result<Self, KernelError> {
        let count = columns[0].len();
        assert!(columns.iter().all(|column| column.len() == count), "columns of one length");
        let mut on_device = Vec::new();
        for column in columns {
            on_device.push(Buffer::from_host(device, column)?);
        }
        let columns = on_device.try_into().expect("eight columns");
        let [spare, target] = [Buffer::zeros(device, count)?, Buffer::zeros(device, count)?];
        Ok(Self { columns, spare, target, capacity: count })
    }

    /// Particles that there is room for.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Makes room for so many.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`]; some columns may then have room for more than others.
    pub fn reserve(&mut self, device: &Device, capacity: usize) -> Result<(), KernelError> {
        self.set_len(device, self.len(), capacity.max(self.capacity))
    }

    /// Makes them so many, those at the end of any bits; takes an eighth more room where there is less.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`], with as many as before.
    pub fn resize(&mut self, device: &Device, count: usize) -> Result<(), KernelError> {
        if count > self.capacity {
            self.reserve(device, Self::roomy(count))?;
        }
        self.set_len(device, count, self.capacity)
    }

    /// The room that is taken for so many once they have outgrown theirs.
    pub fn roomy(count: usize) -> usize {
        count + count / 8
    }

    fn set_len(&mut self, device: &Device, count: usize, capacity: usize) -> Result<(), KernelError> {
        let Self { columns, spare, target, .. } = self;
        for array in columns.iter_mut().chain([spare, target]) {
            array.resize(device, count, capacity)?;
        }
        self.capacity = capacity;
        Ok(())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.columns[0].len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        Self::bytes_for(self.capacity)
    }

    /// The same for so many particles.
    pub fn bytes_for(count: usize) -> usize {
        count * (COLUMNS + 2) * size_of::<u32>()
    }

    fn check(&self, range: &Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len(), "particles {range:?} of {}", self.len());
    }
}

/// Moves particles by their velocity.
///
/// * `factors`: time over the length of the box along x, y, z, times 2³²
///
/// # Panics
/// If there are not so many particles.
pub fn drift(device: &Device, particles: &mut Particles, range: Range<usize>, factors: [f64; 3]) {
    particles.check(&range);
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::drift(particles, range, factors)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::drift(device, particles, range, factors),
    }
}

/// Particles of one level.
#[derive(Clone, Debug)]
pub struct Part {
    /// Which they are.
    pub range: Range<usize>,
    /// Their level.
    pub level: usize,
    /// How far they are from the time at which they are wanted: factors as of [`drift`], zero for those at that time.
    pub factors: [f64; 3],
}

/// Shares the particles' mass among the cells of a level (cloud in cell): `mass`, `[slots, 16, 16, 16]`, is overwritten in the
/// level's slots with the sum of weights, of which a particle of class 0 has [`WeightUnit::whole`]. Each particle is a cube of
/// one cell of the level, or of its own level where that is coarser. What falls on cells that the level does not have is left out.
///
/// * `tables`: of level `level`
/// * `parts`: all particles in the level's groups and in cells beside them; of levels no coarser than the next coarser one
/// * `overflow`: set where the sum of a cell exceeds 64 bits
///
/// # Panics
/// If shapes disagree.
pub fn deposit(
    device: &Device,
    locator: &GroupLocator,
    (level, tables): (usize, &LevelTopology),
    particles: &Particles,
    parts: &[Part],
    unit: WeightUnit,
    (mass, overflow): (&mut Buffer<u64>, &mut Overflow),
) {
    parts.iter().for_each(|part| particles.check(&part.range));
    assert!(parts.iter().all(|part| part.level + 1 >= level), "particles of much coarser levels");
    check_pool(tables, mass.len());
    match device {
        Device::Cpu(cpu) => {
            let to = (mass.host_mut(), overflow.cell.host_mut());
            cpu.install(|| cpu::deposit(locator, level, tables, particles, parts, unit, to));
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => {
            cuda::deposit(device, locator, level, tables, particles, parts, unit, (mass, overflow));
        }
    }
}

/// The density of gas, if there is some, and particles in the cells of a level: `density`, `[slots, 16, 16, 16]`, is overwritten in
/// the level's slots.
///
/// * `mass`: what [`deposit`] has left; `unit`: density per weight
/// * `fluid`: conserved, `[slots, 6, 16, 16, 16]`
///
/// # Panics
/// If shapes disagree.
pub fn matter_density<T: Real>(
    device: &Device,
    tables: &LevelTopology,
    mass: &Buffer<u64>,
    unit: f64,
    fluid: Option<&Buffer<T>>,
    density: &mut Buffer<T>,
) {
    check_pool(tables, mass.len());
    check_pool(tables, density.len());
    fluid.iter().for_each(|fluid| check_pool(tables, fluid.len() / GROUP_VALUES * GROUP_CELLS));
    match device {
        Device::Cpu(cpu) => {
            let fluid = fluid.map(Buffer::host);
            cpu.install(|| cpu::matter_density(tables, mass.host(), unit, fluid, density.host_mut()));
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::matter_density(device, tables, mass, unit, fluid, density),
    }
}

/// Weight b of second cells in the gradient that particles of refined levels feel. With 1/2 it makes up, for long waves and to the
/// fourth order, for what clouds, differences and the 7-point Laplacian lose. On the root of comoving runs the Green's function
/// does (`root_poisson/periodic_green.rs`). The twin of `particles.cu`.
const SECOND_CELLS: f64 = 0.5;

/// Weights of the differences of first and of second cells on a level.
#[inline(always)]
fn cell_weights<T: Real>(level: usize) -> [T; 2] {
    let b = if level > 0 { SECOND_CELLS } else { 0.0 };
    [1.0 + b, 0.5 * b].map(T::from_f64)
}

/// Accelerates particles of a level: v += `factor` Σ w ((1 + b)(φ₁ − φ₋₁) − (b/2)(φ₂ − φ₋₂)) over the eight cells that share a
/// particle's mass, with the potentials of the cells before and behind along each axis. On the root, and where the patch that
/// holds the particle is refined (mass sheets are near), b is 0; elsewhere 1/2, but along axes on which the level lacks a second
/// cell of one of the eight. All eight have the same b, so the particle exerts no force on itself. Where a first cell is
/// missing, or where the level is not, the next coarser one takes its place.
///
/// * `potential`: `[slots, 16, 16, 16]`; `coarse`: the next coarser level's where that pool holds another time's
/// * `factor`: −Δt/(2h), h being the width of the level's cells
///
/// # Panics
/// If there are not so many particles.
pub fn kick<T: Real>(
    device: &Device,
    locator: &GroupLocator,
    level: usize,
    particles: &mut Particles,
    range: Range<usize>,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    factor: f64,
) {
    particles.check(&range);
    match device {
        Device::Cpu(cpu) => {
            cpu.install(|| cpu::kick(locator, level, particles, range, potential.host(), coarse, factor));
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::kick(device, locator, level, particles, range, potential, coarse, factor),
    }
}

/// Sorts the particles from number `first` on by their home groups ([`GroupLocator::home`]), of levels from `from` on; one that has
/// left these levels goes to the end of level `from`. Returns the number of the first particle of each of these levels, and behind
/// them that of all.
///
/// # Panics
/// If there are fewer.
pub fn sort(
    device: &Device,
    locator: &GroupLocator,
    particles: &mut Particles,
    first: usize,
    from: usize,
) -> Vec<usize> {
    particles.check(&(first..particles.len()));
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::sort(locator, particles, first, from)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::sort(device, locator, particles, first, from),
    }
}

/// Sums over particles, the same in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ParticleSums {
    /// Σv along x, y, z, in 2⁻²⁴.
    momentum: [i128; 3],
    /// Σv², in 2⁻²⁸.
    square: u128,
    /// The largest |v| along an axis.
    pub fastest: f32,
    /// Particles that have no velocity, or an impossible one.
    pub invalid: u64,
}

impl ParticleSums {
    /// Σv along x, y, z.
    pub fn momentum(&self) -> [f64; 3] {
        self.momentum.map(|sum| sum as f64 / MOMENTUM_UNIT)
    }

    /// Σv².
    pub fn square(&self) -> f64 {
        self.square as f64 / SQUARE_UNIT
    }

    /// Σv along x, y, z and Σv² as whole numbers.
    pub fn words(&self) -> [i128; 4] {
        let [x, y, z] = self.momentum;
        [x, y, z, self.square as i128]
    }

    /// With such numbers in place of its own.
    #[must_use]
    pub fn with_words(self, [x, y, z, square]: [i128; 4]) -> Self {
        Self { momentum: [x, y, z], square: square as u128, ..self }
    }

    fn of(blocks: &[BlockSums]) -> Self {
        blocks.iter().fold(Self::default(), |sum, block| Self {
            momentum: std::array::from_fn(|axis| sum.momentum[axis] + i128::from(block.momentum[axis])),
            square: sum.square + u128::from(block.square),
            fastest: sum.fastest.max(block.fastest),
            invalid: sum.invalid + u64::from(block.invalid),
        })
    }
}

/// The same of [`BLOCK`] particles: the twin of `particles.cu`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
struct BlockSums {
    momentum: [i64; 3],
    square: u64,
    fastest: f32,
    invalid: u32,
}

impl BlockSums {
    #[inline(always)]
    fn add(&mut self, velocity: [f32; 3]) {
        let [x, y, z] = velocity.map(f32::abs);
        let fastest = x.max(y).max(z);
        if !(x < IMPOSSIBLE && y < IMPOSSIBLE && z < IMPOSSIBLE) {
            self.invalid += 1;
            return;
        }
        self.fastest = self.fastest.max(fastest);
        let mut square = 0.0;
        for axis in 0..3 {
            let v = f64::from(velocity[axis]);
            self.momentum[axis] += (v * MOMENTUM_UNIT).round_ties_even() as i64;
            square += v * v;
        }
        self.square += (square * SQUARE_UNIT).round_ties_even() as u64;
    }
}

/// Sums over the particles in a range, of each of the lightest classes.
///
/// # Panics
/// If there are not so many particles.
pub fn sums(device: &Device, particles: &Particles, range: Range<usize>, classes: usize) -> Deferred<ParticleSums> {
    particles.check(&range);
    match device {
        Device::Cpu(cpu) => {
            let of_class = |class| ParticleSums::of(&cpu.install(|| cpu::sums(particles, range.clone(), class)));
            Deferred::ready((0..classes).map(of_class).collect())
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::sums(device, particles, range, classes),
    }
}

/// The identity of which this is the upper half, without the lower one: enough for the class.
#[inline(always)]
fn of_upper_half(upper_half: u32) -> u64 {
    u64::from(upper_half) << 32
}

/// How many particles are closer to an end of the box than so much along some axis, in 2⁻³² of its length.
///
/// # Panics
/// If half the box or more is that close.
pub fn near_edges(device: &Device, particles: &Particles, edges: [u32; 3]) -> u64 {
    assert!(edges.iter().all(|&edge| edge < 1 << 31), "edges of {edges:?}");
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::near_edges(particles, edges)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::near_edges(device, particles, edges).into_iter().map(u64::from).sum(),
    }
}

/// Whether a coordinate is closer to an end of the box.
#[inline(always)]
pub fn is_near_edge(x: u32, edge: u32) -> bool {
    x.wrapping_add(edge) < 2 * edge
}

/// A hash of all particles, the same in any order.
pub fn hash(device: &Device, particles: &Particles) -> u64 {
    match device {
        Device::Cpu(cpu) => cpu.install(|| cpu::hash(particles)),
        #[cfg(feature = "cuda")]
        Device::Cuda(device) => cuda::hash(device, particles).into_iter().fold(0, u64::wrapping_add),
    }
}

/// The hash of one particle.
#[inline(always)]
fn hash_of(columns: [u32; COLUMNS]) -> u64 {
    let mut hash = 0u64;
    for column in columns {
        hash = (hash ^ u64::from(column)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        hash ^= hash >> 29;
    }
    hash
}

fn check_pool(tables: &LevelTopology, values: usize) {
    let slots = tables.slots.iter().max().map_or(0, |&slot| slot as usize + 1);
    assert!(values >= slots * GROUP_CELLS, "a pool has no slot {slots}");
}

//! Particles on a GPU: one thread a particle.

use super::{BLOCK, BlockSums, COLUMNS, Part, ParticleSums, Particles};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::{Array, Pointer};
use crate::device::cuda::{CudaDevice, launch};
use crate::device::deferred::Deferred;
use crate::device::overflow::Overflow;
use crate::layout::FIELDS;
use crate::level::group_locator::GroupLocator;
use crate::level::level_topology::LevelTopology;
use crate::operations::potential_ghosts::TimedPotential;
use crate::point::particle::WeightUnit;
use crate::real::Real;
use std::ops::Range;

/// Threads of a block.
pub(super) const THREADS: u32 = 256;
/// Levels between particles and a level on which most of them share their cells.
const MUCH_FINER: usize = 4;
/// Threads of the one block that adds up counts.
const SCAN_THREADS: u32 = 1024;

/// The `Locator` of `group_locator.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Locator {
    root: [u32; 3],
    slots: u32,
    root_slots: Pointer<u32>,
    children: Pointer<u32>,
    numbers: Pointer<u32>,
    buffers: Pointer<u32>,
}

impl Locator {
    pub(super) fn of(device: &CudaDevice, locator: &GroupLocator) -> Self {
        Self {
            root: locator.root,
            slots: locator.slots,
            root_slots: locator.root_slots.on(device),
            children: locator.children.on(device),
            numbers: locator.numbers.on(device),
            buffers: locator.buffers.on(device),
        }
    }
}

/// The `Columns` of `particles.cu`: those of a range.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Columns {
    columns: [Pointer<u32>; COLUMNS],
    pub(super) count: u64,
}

impl Columns {
    pub(super) fn of(particles: &Particles, range: &Range<usize>) -> Self {
        let columns = particles.columns.each_ref().map(|column| column.pointer_to(range.start));
        Self { columns, count: range.len() as u64 }
    }

    pub(super) fn blocks(&self) -> usize {
        (self.count as usize).div_ceil(THREADS as usize)
    }
}

/// The `Drift` of `particles.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Drift {
    factors: [f64; 3],
}

pub(super) fn drift(device: &CudaDevice, particles: &Particles, range: Range<usize>, factors: [f64; 3]) {
    let columns = Columns::of(particles, &range);
    // SAFETY: the parameters are the kernel's; the columns have so many values.
    unsafe {
        launch!(device, f32, "drift_particles", columns.blocks(), THREADS, 0; columns, Drift { factors });
    }
}

pub(super) fn deposit(
    device: &CudaDevice,
    locator: &GroupLocator,
    level: usize,
    tables: &LevelTopology,
    particles: &Particles,
    parts: &[Part],
    unit: WeightUnit,
    (mass, overflow): (&Buffer<u64>, &Overflow),
) {
    let locator = Locator::of(device, locator);
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pool, checked by the caller.
    unsafe {
        launch!(device, f32, "clear_mass", tables.len(), THREADS, 0; tables.slots.on(device), mass.pointer());
    }
    for Part { range, level: own, factors } in parts {
        let columns = Columns::of(particles, range);
        let drift = Drift { factors: *factors };
        let kernel = match *own {
            own if own >= level + MUCH_FINER => "deposit_finer_particles",
            own if own >= level => "deposit_particles",
            _ => "deposit_coarser_particles",
        };
        // SAFETY: as above.
        unsafe {
            launch!(device, f32, kernel, columns.blocks(), THREADS, 0;
                locator, level as i32, columns, drift, unit, mass.pointer(), overflow.pointer());
        }
    }
}

pub(super) fn matter_density<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    mass: &Buffer<u64>,
    unit: f64,
    fluid: Option<&Buffer<T>>,
    density: &Buffer<T>,
) {
    let fluid = fluid.map_or(Pointer::NULL, Buffer::pointer);
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pools, checked by the caller.
    unsafe {
        launch!(device, T, "matter_density", tables.len(), THREADS, 0;
            tables.slots.on(device), mass.pointer(), unit, fluid, FIELDS as i32, density.pointer());
    }
}

/// The `Potential` of `particles.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Potential<T> {
    pool: Pointer<T>,
    from: Pointer<T>,
    to: Pointer<T>,
    places: Pointer<u32>,
    weight: T,
}

pub(super) fn kick<T: Real>(
    device: &CudaDevice,
    locator: &GroupLocator,
    level: usize,
    particles: &Particles,
    range: Range<usize>,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    factor: f64,
) {
    let columns = Columns::of(particles, &range);
    let potential = Potential {
        pool: potential.pointer(),
        from: coarse.map_or(Pointer::NULL, |coarse| coarse.from.pointer()),
        to: coarse.map_or(Pointer::NULL, |coarse| coarse.to.pointer()),
        places: coarse.map_or(Pointer::NULL, |coarse| coarse.places.on(device)),
        weight: coarse.map_or(T::zero(), |coarse| coarse.weight),
    };
    // SAFETY: the parameters are the kernel's; slots of the locator are in the pool.
    unsafe {
        launch!(device, T, "kick_particles", columns.blocks(), THREADS, 0;
            Locator::of(device, locator), level as i32, columns, potential, factor);
    }
}

pub(super) fn sort(
    device: &CudaDevice,
    locator: &GroupLocator,
    particles: &mut Particles,
    first: usize,
    from: usize,
) -> Vec<usize> {
    let range = first..particles.len();
    let columns = Columns::of(particles, &range);
    let lowest = locator.first[from];
    let groups = locator.groups() as u32 - lowest;
    let last_of_from = locator.first[from + 1] - 1;
    let levels = locator.levels() - from;
    let counts = Array::<u32>::work_space(device, groups as usize);
    counts.clear(0);
    let firsts = Array::<u32>::work_space(device, levels);
    let [numbers, targets] = [&particles.spare, &particles.target].map(|array| array.pointer_to(first));
    // SAFETY: the parameters are the kernels'; numbers of groups are those of the locator, and a target is a particle's own.
    unsafe {
        launch!(device, f32, "count_particles", columns.blocks(), THREADS, 0;
            Locator::of(device, locator), locator.levels() as i32 - 1, columns, lowest, last_of_from, numbers, targets,
            counts.pointer());
        launch!(device, f32, "scan_counts", 1, SCAN_THREADS, 0;
            counts.pointer(), groups, first as u32, locator.first.on(device), from as i32, levels as i32,
            firsts.pointer());
        launch!(device, f32, "find_targets", columns.blocks(), THREADS, 0;
            columns.count, numbers, counts.pointer(), targets);
    }
    let Particles { columns: all, spare, target, .. } = particles;
    for column in all {
        // SAFETY: as above.
        unsafe {
            launch!(device, f32, "scatter_column", columns.blocks(), THREADS, 0;
                columns.count, column.pointer_to(first), target.pointer_to(first), spare.pointer());
        }
        match first {
            0 => std::mem::swap(column, spare),
            // SAFETY: as above.
            _ => unsafe {
                launch!(device, f32, "copy_column", columns.blocks(), THREADS, 0;
                    columns.count, spare.pointer_to(first), column.pointer_to(first));
            },
        }
    }
    firsts.to_host().into_iter().map(|first| first as usize).chain([range.end]).collect()
}

pub(super) fn sums(
    device: &CudaDevice,
    particles: &Particles,
    range: Range<usize>,
    classes: usize,
) -> Deferred<ParticleSums> {
    let columns = Columns::of(particles, &range);
    let blocks = range.len().div_ceil(BLOCK);
    let sums = Array::<BlockSums>::work_space(device, blocks * classes);
    // SAFETY: the parameters are the kernel's; there is room for every block's sums.
    unsafe {
        launch!(device, f32, "sum_particles", blocks * classes, THREADS, 0; columns, blocks as u32, sums.pointer());
    }
    let of_class =
        move |of_blocks: &[BlockSums], class: usize| ParticleSums::of(&of_blocks[class * blocks..][..blocks]);
    sums.read_later(move |of_blocks| (0..classes).map(|class| of_class(of_blocks, class)).collect())
}

/// The `Edges` of `particles.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Edges {
    widths: [u32; 3],
}

pub(super) fn near_edges(device: &CudaDevice, particles: &Particles, widths: [u32; 3]) -> Vec<u32> {
    let columns = Columns::of(particles, &(0..particles.len()));
    let blocks = particles.len().div_ceil(BLOCK);
    let counts = Array::<u32>::work_space(device, blocks);
    // SAFETY: the parameters are the kernel's; there is room for every block's count.
    unsafe {
        launch!(device, f32, "count_near_edges", blocks, THREADS, 0; columns, Edges { widths }, counts.pointer());
    }
    counts.to_host()
}

pub(super) fn hash(device: &CudaDevice, particles: &Particles) -> Vec<u64> {
    let columns = Columns::of(particles, &(0..particles.len()));
    let blocks = particles.len().div_ceil(BLOCK);
    let hashes = Array::<u64>::work_space(device, blocks);
    // SAFETY: as above.
    unsafe {
        launch!(device, f32, "hash_particles", blocks, THREADS, 0; columns, hashes.pointer());
    }
    hashes.to_host()
}

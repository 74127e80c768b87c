//! Flags on a GPU: the steps of the combination as an array of equal entries, all programs one after another.

use super::program::{Instruction, REGISTERS};
use super::{FlagCriteria, FlagCriterion, FlagLevel, Quantity, Region, Step};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::{Array, Pointer};
use crate::device::cuda::{CudaDevice, launch};
use crate::layout::{FACE_CELLS, GROUP, OCTANTS};
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::point::eos::Eos;
use crate::real::Real;

/// Threads of a block: one for each place in a plane of the group.
const THREADS: u32 = FACE_CELLS as u32;
/// Cells of a group with the two ghost cells that stencils read.
const STENCIL_CELLS: usize = (GROUP + 4) * (GROUP + 4) * (GROUP + 4);

/// The `Criterion` of `flag.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Criterion<T> {
    kind: u32,
    of: u32,
    threshold: T,
    filter: T,
    region: Region,
    first: u32,
    count: u32,
}

/// The `FlagLevel` of `level.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Gas<T> {
    level: f64,
    cell_width: f64,
    a: f64,
    mean_density: f64,
    mean_gas_density: f64,
    cells: [f64; 3],
    periodic: u32,
    eos: Eos<T>,
}

impl<T: Real> Gas<T> {
    fn of(level: &FlagLevel<T>) -> Self {
        Self {
            level: level.level as f64,
            cell_width: level.cell_width,
            a: level.a,
            mean_density: level.mean_density,
            mean_gas_density: level.mean_gas_density,
            cells: level.cells.map(|cells| cells as f64),
            periodic: (0..3).fold(0, |bits, axis| bits | u32::from(level.periodic[axis]) << axis),
            eos: level.eos,
        }
    }
}

/// The masks of all patches, `[groups, 8]`.
///
/// * `pools`: of the fluid and of matter, where there are any
pub(super) fn flag<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    coordinates: &[[u32; 3]],
    pools: [Option<&Buffer<T>>; 2],
    followed: Option<&Buffer<u64>>,
    criteria: &FlagCriteria<T>,
    buffer: usize,
) -> Vec<u32> {
    let mut programs = Vec::new();
    let steps = criteria.met.steps().iter();
    let entries: Vec<Criterion<T>> = steps.map(|step| entry(step, &criteria.level, &mut programs)).collect();
    let shared = criteria.met.criteria().map(work_bytes).max().unwrap_or(0);
    let [fluid, matter] = pools.map(|pool| pool.map_or(Pointer::NULL, Buffer::pointer));
    let followed = followed.map_or(Pointer::NULL, Buffer::pointer);
    let coordinates = Array::work_space_of(device, coordinates);
    let count = entries.len() as i32;
    let entries = Array::work_space_of(device, &entries);
    let programs = Array::<Instruction>::work_space_of(device, &programs);
    let masks = Array::work_space(device, tables.len() * OCTANTS);
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pool, each group has a coordinate and room
    // for eight masks, entries name instructions of the list, and these registers below REGISTERS; the stack of sets
    // stays within STACK, which is that of the kernel.
    unsafe {
        launch!(device, T, "flag", tables.len(), THREADS, shared as u32;
            Level::of(device, tables), Gas::of(&criteria.level), coordinates.pointer(), fluid, matter, followed,
            entries.pointer(), count, programs.pointer(), buffer as i32, masks.pointer());
    }
    masks.to_host()
}

/// A step as the kernel takes it; its program joins the others.
fn entry<T: Real>(step: &Step<T>, level: &FlagLevel<T>, programs: &mut Vec<Instruction>) -> Criterion<T> {
    let zero = T::zero();
    let nowhere = Region { min: [0.0; 3], max: [0.0; 3], radius: 0.0 };
    let plain = Criterion { kind: 0, of: 0, threshold: zero, filter: zero, region: nowhere, first: 0, count: 0 };
    let number = |of: &Quantity| match of {
        Quantity::Density => 0,
        Quantity::Pressure => 1,
        Quantity::Velocity => 2,
    };
    let criterion = match step {
        Step::Criterion(criterion) => criterion,
        Step::Nowhere => return Criterion { kind: 8, ..plain },
        Step::And => return Criterion { kind: 9, ..plain },
        Step::Or => return Criterion { kind: 10, ..plain },
        Step::Not => return Criterion { kind: 11, ..plain },
    };
    match criterion {
        FlagCriterion::DensityAbove(threshold) => Criterion { threshold: *threshold, ..plain },
        FlagCriterion::GradientAbove { of, threshold } => {
            Criterion { kind: 1, of: number(of), threshold: *threshold, ..plain }
        }
        FlagCriterion::LohnerAbove { of, threshold, filter } => {
            Criterion { kind: 2, of: number(of), threshold: *threshold, filter: *filter, ..plain }
        }
        FlagCriterion::JeansCellsBelow(cells) => Criterion { kind: 3, threshold: level.jeans_factor(*cells), ..plain },
        FlagCriterion::Inside(region) => Criterion { kind: 4, region: *region, ..plain },
        FlagCriterion::Where(program) => {
            let first = programs.len() as u32;
            programs.extend_from_slice(program.instructions());
            Criterion { kind: 5, first, count: programs.len() as u32 - first, ..plain }
        }
        FlagCriterion::DarkMatterAbove(threshold) => Criterion { kind: 6, threshold: *threshold, ..plain },
        FlagCriterion::FollowedAbove(threshold) => Criterion { kind: 7, threshold: *threshold, ..plain },
    }
}

/// Shared memory that a criterion works in.
fn work_bytes<T: Real>(criterion: &FlagCriterion<T>) -> usize {
    match criterion {
        FlagCriterion::GradientAbove { of, .. } | FlagCriterion::LohnerAbove { of, .. } => {
            let blocks = if *of == Quantity::Velocity { 2 } else { 1 };
            blocks * STENCIL_CELLS * T::BYTES
        }
        FlagCriterion::Where(program) => {
            let last = program.instructions().iter().map(|instruction| usize::from(instruction.to)).max();
            (last.map_or(0, |last| last + 1)).min(REGISTERS) * FACE_CELLS * size_of::<f64>()
        }
        FlagCriterion::DensityAbove(_)
        | FlagCriterion::DarkMatterAbove(_)
        | FlagCriterion::FollowedAbove(_)
        | FlagCriterion::JeansCellsBelow(_)
        | FlagCriterion::Inside(_) => 0,
    }
}

//! Group solves on a GPU: one block a group, its working set in shared memory.

use super::{GroupSolver, Guess, Iterations, sor};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::{Array, Pointer};
use crate::device::cuda::{CudaDevice, launch};
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::operations::poisson_source::{DeviceSource, PoissonSource};
use crate::operations::potential_ghosts::{GhostRequest, THREADS};
use crate::real::Real;

/// Where the solution goes: the `Solution` of `group.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Solution<T> {
    potential: Pointer<T>,
    gradients: Pointer<T>,
    h: f64,
}

/// The `SorOptions` of `sor.cu`.
#[derive(Clone, Copy)]
#[repr(C)]
struct SorOptions<T> {
    tolerance: f64,
    omega: T,
    from_held: i32,
    iterations: Pointer<u32>,
}

/// Gathers the ghosts that `request` asks for, or takes those that are there, and solves the same groups, so many.
pub(super) fn group_poisson<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    (request, groups): (GhostRequest<T>, usize),
    solver: &GroupSolver<T>,
    guess: Guess,
    source: &PoissonSource<T>,
    h: f64,
    potential: &Buffer<T>,
    gradients: Option<&Buffer<T>>,
) -> Iterations {
    let level = Level::of(device, tables);
    let source = DeviceSource::new(source);
    let gradients = gradients.map_or(Pointer::NULL, Buffer::pointer);
    let solution = Solution { potential: potential.pointer(), gradients, h };
    match solver {
        GroupSolver::Sine(sine) => {
            let (inverse, sines) = (sine.inverse.on(device), sine.sines);
            let kernel = if device.exact() { "group_poisson_sine_exact" } else { "group_poisson_sine" };
            // SAFETY: the parameters are the kernel's; the pools hold every slot that the tables name and the ghosts
            // every group, checked by the caller.
            unsafe {
                launch!(device, T, kernel, groups, THREADS, 0;
                    level, request, source, solution, inverse, sines);
            }
            Iterations::default()
        }
        GroupSolver::Sor { tolerance } => {
            let iterations = Array::work_space(device, tables.len());
            iterations.clear(0);
            let options = SorOptions::<T> {
                tolerance: *tolerance,
                omega: sor::omega(),
                from_held: i32::from(guess == Guess::Held),
                iterations: iterations.pointer(),
            };
            let shared = sor::SHARED_VALUES * T::BYTES;
            // SAFETY: as above.
            unsafe {
                launch!(device, T, "group_poisson_sor", groups, THREADS, shared as u32;
                    level, request, source, solution, options);
            }
            iterations.to_host().into_iter().fold(Iterations::default(), |mut sum, n: u32| {
                sum.add(Iterations { total: u64::from(n), most: n });
                sum
            })
        }
    }
}

//! Ghost values on a GPU.

use super::{GhostOrigin, TimedPotential};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Pointer;
use crate::device::cuda::{CudaDevice, launch};
use crate::layout::FACE_CELLS;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

/// Threads of every block that gathers ghosts: one a place of a face.
pub(crate) const THREADS: u32 = FACE_CELLS as u32;

/// Which ghosts, and what they come from: the `GhostRequest` of `potential_ghosts.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct GhostRequest<T> {
    potential: Pointer<T>,
    from: Pointer<T>,
    to: Pointer<T>,
    places: Pointer<u32>,
    held: Pointer<T>,
    weight: T,
    origin: i32,
}

impl<T: Real> GhostRequest<T> {
    /// Ghosts from `origin`, or those in `held` if there is none.
    pub(crate) fn new(
        device: &CudaDevice,
        origin: Option<GhostOrigin>,
        potential: &Buffer<T>,
        coarse: Option<&TimedPotential<T>>,
        held: Option<&Buffer<T>>,
    ) -> Self {
        Self {
            potential: potential.pointer(),
            from: coarse.map_or(Pointer::NULL, |coarse| coarse.from.pointer()),
            to: coarse.map_or(Pointer::NULL, |coarse| coarse.to.pointer()),
            places: coarse.map_or(Pointer::NULL, |coarse| coarse.places.on(device)),
            held: held.map_or(Pointer::NULL, Buffer::pointer),
            weight: coarse.map_or(T::zero(), |coarse| coarse.weight),
            origin: match origin {
                Some(GhostOrigin::Coarse) => 0,
                Some(GhostOrigin::Sibling) => 1,
                None => 2,
            },
        }
    }
}

pub(super) fn potential_ghosts<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    origin: GhostOrigin,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    ghosts: &Buffer<T>,
) {
    let request = GhostRequest::new(device, Some(origin), potential, coarse, Some(ghosts));
    // SAFETY: the parameters are the kernel's; the ghosts of every group fit, checked by the caller, and the tables
    // name slots of the pool.
    unsafe {
        launch!(device, T, "potential_ghosts", tables.len(), THREADS, 0; Level::of(device, tables), request);
    }
}

//! Ghost values on a GPU.

use super::{GhostCorrection, GhostOrigin, TimedPotential};
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Pointer;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::device_table::DeviceTable;
use crate::layout::FACE_CELLS;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

/// Threads of every block that gathers ghosts: one a place of a face.
pub(crate) const THREADS: u32 = FACE_CELLS as u32;

/// Which ghosts of which groups, and what they come from: the `GhostRequest` of `potential_ghosts.cuh`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct GhostRequest<T> {
    potential: Pointer<T>,
    from: Pointer<T>,
    to: Pointer<T>,
    places: Pointer<u32>,
    held: Pointer<T>,
    groups: Pointer<u32>,
    error: Pointer<T>,
    relaxation: T,
    neighbours_corrected: T,
    weight: T,
    origin: i32,
}

impl<T: Real> GhostRequest<T> {
    /// Ghosts from `origin`, or those in `held` if there is none, and of how many groups: a block each.
    pub(crate) fn new(
        device: &CudaDevice,
        tables: &LevelTopology,
        groups: Option<&DeviceTable<u32>>,
        origin: Option<GhostOrigin>,
        potential: &Buffer<T>,
        coarse: Option<&TimedPotential<T>>,
        correction: Option<&GhostCorrection<T>>,
        held: Option<&Buffer<T>>,
    ) -> (Self, usize) {
        let neighbours_corrected = correction.is_some_and(|correction| correction.neighbours_have_it);
        let request = Self {
            potential: potential.pointer(),
            from: coarse.map_or(Pointer::NULL, |coarse| coarse.from.pointer()),
            to: coarse.map_or(Pointer::NULL, |coarse| coarse.to.pointer()),
            places: coarse.map_or(Pointer::NULL, |coarse| coarse.places.on(device)),
            held: held.map_or(Pointer::NULL, Buffer::pointer),
            groups: groups.map_or(Pointer::NULL, |groups| groups.on(device)),
            error: correction.map_or(Pointer::NULL, |correction| correction.error.pointer()),
            neighbours_corrected: T::from_f64(f64::from(neighbours_corrected)),
            relaxation: match origin {
                Some(GhostOrigin::Relaxed(factor)) => T::from_f64(factor),
                _ => T::zero(),
            },
            weight: coarse.map_or(T::zero(), |coarse| coarse.weight),
            origin: match origin {
                Some(GhostOrigin::Coarse) => 0,
                Some(GhostOrigin::Sibling) => 1,
                Some(GhostOrigin::Relaxed(_)) => 2,
                None => 3,
            },
        };
        (request, groups.map_or(tables.len(), |groups| groups.len()))
    }
}

pub(super) fn potential_ghosts<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    groups: Option<&DeviceTable<u32>>,
    origin: GhostOrigin,
    potential: &Buffer<T>,
    coarse: Option<&TimedPotential<T>>,
    correction: Option<&GhostCorrection<T>>,
    ghosts: &Buffer<T>,
) {
    let (request, count) =
        GhostRequest::new(device, tables, groups, Some(origin), potential, coarse, correction, Some(ghosts));
    // SAFETY: the parameters are the kernel's; the ghosts of every group fit, checked by the caller, and the tables
    // name slots of the pool.
    unsafe {
        launch!(device, T, "potential_ghosts", count, THREADS, 0; Level::of(device, tables), request);
    }
}

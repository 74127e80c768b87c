//! Sources on a GPU: one block a group.

use super::SourceReport;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::deferred::Deferred;
use crate::layout::FACE_CELLS;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::point::eos::Eos;
use crate::point::source::PointSource;
use crate::real::Real;

pub(super) fn apply_source<T: Real, S: PointSource<T>>(
    device: &CudaDevice,
    tables: &LevelTopology,
    fluid: &Buffer<T>,
    source: &S,
    eos: &Eos<T>,
) -> Deferred<SourceReport> {
    let reports = Array::<SourceReport>::work_space(device, tables.len());
    // SAFETY: the parameters are the kernel's; the tables name slots of the pool, checked by the caller.
    unsafe {
        launch!(device, T, S::KERNEL, tables.len(), FACE_CELLS as u32, 0;
            Level::of(device, tables), fluid.pointer(), *eos, reports.pointer(), *source);
    }
    reports.read_later(<[_]>::to_vec)
}

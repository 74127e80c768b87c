//! Range of the density on a GPU: one block a group.

use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::deferred::Deferred;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

const THREADS: u32 = 256;

pub(super) fn density_range<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    density: &Buffer<T>,
) -> Deferred<[f64; 2]> {
    let ranges = Array::<[f64; 2]>::work_space(device, tables.len());
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pool, and there is room for each group.
    unsafe {
        launch!(device, T, "density_range", tables.len(), THREADS, 0;
            Level::of(device, tables), density.pointer(), ranges.pointer());
    }
    ranges.read_later(<[_]>::to_vec)
}

//! Hashes on a GPU.

use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

const THREADS: u32 = 256;

pub(super) fn state_hash<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    values: usize,
    pool: &Buffer<T>,
) -> Vec<u64> {
    let hashes = Array::work_space(device, tables.len());
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pool, and there is a hash for each group.
    unsafe {
        launch!(device, T, "state_hash", tables.len(), THREADS, 0;
            tables.slots.on(device), values as i32, pool.pointer(), hashes.pointer());
    }
    hashes.to_host()
}

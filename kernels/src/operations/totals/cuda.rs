//! Totals on a GPU.

use super::GroupTotals;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

const THREADS: u32 = 256;

pub(super) fn totals<T: Real>(device: &CudaDevice, tables: &LevelTopology, fluid: &Buffer<T>) -> Vec<GroupTotals> {
    let totals = Array::work_space(device, tables.len());
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pool, and there is room for each group.
    unsafe {
        launch!(device, T, "totals", tables.len(), THREADS, 0;
            Level::of(device, tables), fluid.pointer(), totals.pointer());
    }
    totals.to_host()
}

//! Totals on a GPU.

use super::GroupTotals;
use crate::buffer::Buffer;
use crate::cuda::array::Array;
use crate::cuda::level::Level;
use crate::cuda::{CudaDevice, launch};
use crate::real::Real;
use crate::tables::LevelTables;

const THREADS: u32 = 256;

pub(super) fn totals<T: Real>(device: &CudaDevice, tables: &LevelTables, fluid: &Buffer<T>) -> Vec<GroupTotals> {
    let totals = Array::room(device, tables.len()).expect("room for a result of each group");
    // SAFETY: the parameters are the kernel's; slots of the tables lie in the pool, and there is room for each group.
    unsafe {
        launch!(device, T, "totals", tables.len(), THREADS, 0;
            Level::of(device, tables), fluid.pointer(), totals.pointer());
    }
    totals.to_host()
}

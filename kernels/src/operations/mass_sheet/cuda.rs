//! Mass sheets on a GPU: one block a group.

use crate::device::buffer::Buffer;
use crate::device::cuda::{CudaDevice, launch};
use crate::layout::FACE_CELLS;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::real::Real;

/// Threads of a block: one a column of cells.
const THREADS: u32 = FACE_CELLS as u32;

pub(super) fn mass_sheet<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    h: f64,
    potential: &Buffer<T>,
    gradients: &Buffer<T>,
    sheet: &Buffer<T>,
) {
    // SAFETY: the parameters are the kernel's; the tables name slots of the pools, and a child's slot is none of this
    // level's.
    unsafe {
        launch!(device, T, "mass_sheet", tables.len(), THREADS, 0;
            Level::of(device, tables), h, potential.pointer(), gradients.pointer(), sheet.pointer());
    }
}

//! Restriction on a GPU: one block a patch, those without children return at once.

use crate::device::buffer::Buffer;
use crate::device::cuda::{CudaDevice, launch};
use crate::layout::OCTANTS;
use crate::level::cuda::Level;
use crate::level::level_topology::{LevelTopology, NONE};
use crate::point::eos::Eos;
use crate::real::Real;

/// Threads of a block: half of a patch's cells.
const THREADS: u32 = 256;

pub(super) fn restrict<T: Real>(device: &CudaDevice, coarse: &LevelTopology, fluid: &Buffer<T>, eos: &Eos<T>) {
    if coarse.children.iter().all(|&child| child == NONE) {
        return;
    }
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pool, each patch has a child of its own.
    unsafe {
        launch!(device, T, "restrict", coarse.len() * OCTANTS, THREADS, 0;
            Level::of(device, coarse), fluid.pointer(), *eos);
    }
}

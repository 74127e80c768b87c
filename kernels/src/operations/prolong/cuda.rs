//! Prolongation on a GPU.

use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::point::eos::Eos;
use crate::real::Real;

const THREADS: u32 = 128;
/// Blocks that share a group, so that few new groups fill the device too.
const BLOCKS: usize = 4;

pub(super) fn prolong<T: Real>(
    device: &CudaDevice,
    fine: &LevelTopology,
    new: &[usize],
    fluid: &Buffer<T>,
    eos: &Eos<T>,
) {
    let groups: Vec<u32> = new.iter().map(|&g| g as u32).collect();
    let groups = Array::work_space_of(device, &groups);
    // SAFETY: the parameters are the kernel's; the groups are the level's, as the caller checked, and slots of the
    // tables are in the pool.
    unsafe {
        launch!(device, T, "prolong", new.len() * BLOCKS, THREADS, 0;
            Level::of(device, fine), BLOCKS as i32, groups.pointer(), fluid.pointer(), *eos);
    }
}

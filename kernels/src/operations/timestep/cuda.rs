//! Signal speeds on a GPU.

use super::SignalSpeed;
use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::deferred::Deferred;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::point::eos::Eos;
use crate::real::Real;

const THREADS: u32 = 256;

pub(super) fn signal_speed<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    fluid: &Buffer<T>,
    eos: &Eos<T>,
) -> Deferred<SignalSpeed> {
    let speeds = Array::<SignalSpeed>::work_space(device, tables.len());
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pool, and there is a speed for each group.
    unsafe {
        launch!(device, T, "signal_speed", tables.len(), THREADS, 0;
            Level::of(device, tables), fluid.pointer(), *eos, speeds.pointer());
    }
    speeds.read_later(<[_]>::to_vec)
}

//! Signal speeds on a GPU.

use super::SignalSpeed;
use crate::buffer::Buffer;
use crate::cuda::array::Array;
use crate::cuda::level::Level;
use crate::cuda::{CudaDevice, launch};
use crate::point::eos::Eos;
use crate::reading::Reading;
use crate::real::Real;
use crate::tables::LevelTables;

const THREADS: u32 = 256;

pub(super) fn signal_speed<T: Real>(
    device: &CudaDevice,
    tables: &LevelTables,
    fluid: &Buffer<T>,
    eos: &Eos<T>,
) -> Reading<SignalSpeed> {
    let speeds = Array::<SignalSpeed>::room(device, tables.len()).expect("room for a result of each group");
    // SAFETY: the parameters are the kernel's; slots of the tables lie in the pool, and there is a speed for each group.
    unsafe {
        launch!(device, T, "signal_speed", tables.len(), THREADS, 0;
            Level::of(device, tables), fluid.pointer(), *eos, speeds.pointer());
    }
    speeds.read_later(<[_]>::to_vec)
}

//! Potential energy on a GPU: one block a group.

use crate::device::buffer::Buffer;
use crate::device::cuda::array::Array;
use crate::device::cuda::{CudaDevice, launch};
use crate::device::deferred::Deferred;
use crate::level::cuda::Level;
use crate::level::level_topology::LevelTopology;
use crate::operations::poisson_source::{DensitySource, DeviceSource, PoissonSource};
use crate::real::Real;

const THREADS: u32 = 256;

pub(super) fn potential_energy<T: Real>(
    device: &CudaDevice,
    tables: &LevelTopology,
    density: DensitySource<T>,
    potential: &Buffer<T>,
) -> Deferred<f64> {
    let sums = Array::<f64>::work_space(device, tables.len());
    // SAFETY: the parameters are the kernel's; slots of the tables are in the pools, and there is room for each group.
    unsafe {
        launch!(device, T, "potential_energy", tables.len(), THREADS, 0;
            Level::of(device, tables), DeviceSource::new(&PoissonSource::Density(density)), potential.pointer(),
            sums.pointer());
    }
    sums.read_later(<[_]>::to_vec)
}

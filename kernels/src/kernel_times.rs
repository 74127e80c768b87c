//! Waiting for a device, and where its time goes.

use crate::device::Device;
use std::collections::BTreeMap;
use std::ops::AddAssign;

/// What all launches of a kernel took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KernelTime {
    /// Launches.
    pub launches: u64,
    /// Blocks of all launches.
    pub blocks: u64,
    /// Between the events before and after them.
    pub milliseconds: f64,
}

impl AddAssign for KernelTime {
    fn add_assign(&mut self, other: Self) {
        self.launches += other.launches;
        self.blocks += other.blocks;
        self.milliseconds += other.milliseconds;
    }
}

impl Device {
    /// Waits for everything that a GPU was told to do; a processor has done it.
    pub fn wait(&self) {
        match self {
            Self::Cpu(_) => {}
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.synchronize(),
        }
    }

    /// The time of each kernel of a GPU so far, with `COMOVE_CUDA_PROFILE` in the environment; nothing otherwise.
    pub fn kernel_times(&self) -> BTreeMap<String, KernelTime> {
        match self {
            Self::Cpu(_) => BTreeMap::new(),
            #[cfg(feature = "cuda")]
            Self::Cuda(device) => device.kernel_times(),
        }
    }
}

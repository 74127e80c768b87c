//! The host's processor as a device.

use crate::device::error::KernelError;
use std::sync::Arc;

/// The host processor: a thread pool shared by all clones.
#[derive(Clone)]
pub struct CpuDevice {
    pool: Arc<rayon::ThreadPool>,
    /// See [`Device::limited_to`].
    pub(crate) memory_limit: Option<u64>,
}

impl std::fmt::Debug for CpuDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cpu({} threads)", self.pool.current_num_threads())
    }
}

impl CpuDevice {
    pub(crate) fn new(threads: usize) -> Result<Self, KernelError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("comove-{i}"))
            .build()
            .map_err(|e| KernelError::NoDevice("cpu".into(), e.to_string()))?;
        Ok(Self { pool: Arc::new(pool), memory_limit: None })
    }

    /// Its threads.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Runs `work` inside this device's thread pool, so that its parallel loops use these threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }
}

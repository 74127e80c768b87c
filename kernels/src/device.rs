//! Where arrays live and operations run: a value that is carried along, never a global.

use crate::error::KernelError;
use std::sync::Arc;

/// A computing device. Every operation of this crate matches on it once.
#[derive(Clone, Debug)]
pub enum Device {
    /// The host's processor, with a pool of threads of its own.
    Cpu(CpuDevice),
}

/// The host processor: a thread pool shared by all clones.
#[derive(Clone)]
pub struct CpuDevice {
    pool: Arc<rayon::ThreadPool>,
}

impl std::fmt::Debug for CpuDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cpu({} threads)", self.pool.current_num_threads())
    }
}

impl CpuDevice {
    /// Runs `work` inside this device's thread pool, so that its parallel loops use these threads.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }
}

impl Device {
    /// The host processor with `threads` threads (0: one per core).
    ///
    /// # Errors
    /// [`KernelError::NoDevice`] if the threads cannot be started.
    pub fn cpu(threads: usize) -> Result<Self, KernelError> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("comove-{i}"))
            .build()
            .map_err(|e| KernelError::NoDevice("cpu".into(), e.to_string()))?;
        Ok(Self::Cpu(CpuDevice { pool: Arc::new(pool) }))
    }

    /// The device of a command line: `auto`, `cpu` or `cuda:N`.
    ///
    /// # Errors
    /// [`KernelError::UnknownDevice`] for another name, [`KernelError::NoDevice`] where the device is missing.
    pub fn from_name(name: &str, threads: usize) -> Result<Self, KernelError> {
        match name {
            "auto" | "cpu" => Self::cpu(threads),
            _ if name == "cuda" || name.strip_prefix("cuda:").is_some_and(|n| n.parse::<u32>().is_ok()) => Err(
                KernelError::NoDevice(name.into(), "this version computes on the CPU only; use --device cpu".into()),
            ),
            _ => Err(KernelError::UnknownDevice(name.into())),
        }
    }

    /// Runs `work` with this device's threads as the ones that parallel loops use.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match self {
            Self::Cpu(cpu) => cpu.install(work),
        }
    }

    /// Threads of the host that work for this device.
    pub fn threads(&self) -> usize {
        match self {
            Self::Cpu(cpu) => cpu.pool.current_num_threads(),
        }
    }

    /// A short description for records and progress lines.
    pub fn name(&self) -> String {
        match self {
            Self::Cpu(_) => format!("CPU, {} threads, {}", self.threads(), crate::isa::name()),
        }
    }

    /// The class within which bits are reproducible: kind of device, FFT library and its version.
    ///
    /// The CPU kernels use only IEEE operations in a fixed order (no fused multiply-add, no fast-math), so their bits
    /// do not depend on the instruction set; the FFT library chooses its algorithm by instruction set, so that is
    /// named.
    pub fn class(&self) -> String {
        match self {
            Self::Cpu(_) => format!("cpu-{}; rustfft 6.4 {}", std::env::consts::ARCH, crate::isa::name()),
        }
    }
}

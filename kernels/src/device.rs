//! Where arrays live and operations run: a value that is carried along, never a global.

use crate::error::KernelError;
use crate::reading::Moment;
use std::sync::Arc;

/// A computing device. Every operation of this crate matches on it once.
#[derive(Clone, Debug)]
pub enum Device {
    /// The host's processor, with a pool of threads of its own.
    Cpu(CpuDevice),
    /// A GPU.
    #[cfg(feature = "cuda")]
    Cuda(crate::cuda::CudaDevice),
}

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
        Ok(Self::Cpu(CpuDevice::new(threads)?))
    }

    /// The device of a command line: `auto`, `cpu` or `cuda:N`.
    ///
    /// # Errors
    /// [`KernelError::UnknownDevice`] for another name, [`KernelError::NoDevice`] where the device is missing.
    pub fn from_name(name: &str, threads: usize) -> Result<Self, KernelError> {
        let ordinal = match name {
            "cuda" => Some(0),
            _ => name.strip_prefix("cuda:").and_then(|number| number.parse().ok()),
        };
        match (name, ordinal) {
            ("cpu", _) => Self::cpu(threads),
            ("auto", _) => Self::cuda(0, threads).or_else(|_| Self::cpu(threads)),
            (_, Some(ordinal)) => Self::cuda(ordinal, threads),
            _ => Err(KernelError::UnknownDevice(name.into())),
        }
    }

    /// The GPU of this number, and so many threads of the host for what is left to it. With `COMOVE_CUDA_EXACT` in the
    /// environment its sweeps compute as the CPU does, to the last bit.
    ///
    /// # Errors
    /// [`KernelError::NoDevice`] where there is none, or in a program without CUDA.
    #[cfg(feature = "cuda")]
    pub fn cuda(ordinal: u32, threads: usize) -> Result<Self, KernelError> {
        let exact = std::env::var_os("COMOVE_CUDA_EXACT").is_some();
        Ok(Self::Cuda(crate::cuda::CudaDevice::new(ordinal, CpuDevice::new(threads)?, exact)?))
    }

    /// The GPU of this number.
    ///
    /// # Errors
    /// [`KernelError::NoDevice`]: this program was built without CUDA.
    #[cfg(not(feature = "cuda"))]
    pub fn cuda(ordinal: u32, _threads: usize) -> Result<Self, KernelError> {
        let reason = "this program was built without CUDA: build it with --features cuda, or use --device cpu";
        Err(KernelError::NoDevice(format!("cuda:{ordinal}"), reason.into()))
    }

    /// Runs `work` with this device's threads as the ones that parallel loops use.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.host().install(work)
    }

    /// The host's threads that work for this device.
    pub(crate) fn host(&self) -> &CpuDevice {
        match self {
            Self::Cpu(cpu) => cpu,
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => cuda.host(),
        }
    }

    /// Whether both are the same piece of hardware.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Cpu(_), Self::Cpu(_)) => true,
            #[cfg(feature = "cuda")]
            (Self::Cuda(one), Self::Cuda(other)) => one == other,
            #[cfg(feature = "cuda")]
            _ => false,
        }
    }

    /// The address of a GPU on its machine's bus, the same for all processes.
    pub fn bus(&self) -> Option<String> {
        match self {
            Self::Cpu(_) => None,
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => Some(cuda.bus()),
        }
    }

    /// Threads of the host that work for this device.
    pub fn threads(&self) -> usize {
        self.host().pool.current_num_threads()
    }

    /// So many groups that an operation on them, or on more, takes a time proportional to their number, within a sixteenth:
    /// at its end some threads or multiprocessors have nothing left to do.
    pub fn plenty(&self) -> usize {
        const ROUNDS: usize = 16;
        let at_once = match self {
            Self::Cpu(_) => self.threads(),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => cuda.multiprocessors() as usize,
        };
        // with one alone none is ever idle
        (ROUNDS * (at_once - 1)).max(1)
    }

    /// The moment when everything that was asked of the device so far is done.
    pub fn now(&self) -> Moment {
        match self {
            Self::Cpu(_) => Moment::host(),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => Moment::of(cuda.event()),
        }
    }

    /// A short description for records and progress lines.
    pub fn name(&self) -> String {
        match self {
            Self::Cpu(_) => format!("CPU, {} threads, {}", self.threads(), crate::isa::name()),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => format!("{}, {} host threads", cuda.name(), self.threads()),
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
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => {
                let [major, minor] = cuda.capability();
                let exact = if cuda.exact() { " exact" } else { "" };
                format!("cuda sm_{major}{minor}{exact}; {}", crate::root_poisson::cuda_fft_name())
            }
        }
    }
}

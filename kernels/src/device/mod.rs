//! Where arrays live and operations run: a value that is carried along, never a global.
//!
//! | module | what it holds |
//! |---|---|
//! | `mod.rs`, `cpu`, `cuda` | [`Device`]: the processor, or a GPU |
//! | [`buffer`], [`device_table`] | arrays on a device; numbers that kernels read |
//! | [`deferred`], [`device_event`] | results that the host reads later; points in time of a device's work |
//! | [`messages`] | messages between ranks: boxes of cells, or rows of arrays, packed and unpacked |
//! | [`overflow`] | sums of integers that exceed 64 bits |
//! | [`isa`] | a kernel, compiled for every instruction set of the processor |
//! | [`memory`], [`gpus`], [`kernel_times`] | free memory; the GPUs of this machine; the time of each kernel |

pub mod buffer;
pub(crate) mod cpu;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod deferred;
pub(crate) mod device_event;
pub(crate) mod device_table;
pub(crate) mod error;
pub(crate) mod gpu;
pub mod gpus;
pub mod isa;
pub(crate) mod kernel_times;
pub mod memory;
pub mod messages;
pub mod overflow;
pub(crate) mod scratch;

pub use cpu::CpuDevice;
use device_event::DeviceEvent;
use error::KernelError;
use kernel_times::KernelTime;
use std::collections::BTreeMap;

/// A computing device. Every operation of this crate matches on it once.
#[derive(Clone, Debug)]
pub enum Device {
    /// The host's processor, with a pool of threads of its own.
    Cpu(CpuDevice),
    /// A GPU.
    #[cfg(feature = "cuda")]
    Cuda(crate::device::cuda::CudaDevice),
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
        Ok(Self::Cuda(crate::device::cuda::CudaDevice::new(ordinal, CpuDevice::new(threads)?, exact)?))
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
        self.host().threads()
    }

    /// So many groups that an operation on them, or on more, takes a time proportional to their number, within a sixteenth:
    /// at its end some threads or multiprocessors have nothing left to do.
    pub fn saturating_group_count(&self) -> usize {
        const ROUNDS: usize = 16;
        let at_once = match self {
            Self::Cpu(_) => self.threads(),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => cuda.multiprocessors() as usize,
        };
        // with one alone none is ever idle
        (ROUNDS * (at_once - 1)).max(1)
    }

    /// The end of all work that the device has been given so far.
    pub fn now(&self) -> DeviceEvent {
        match self {
            Self::Cpu(_) => DeviceEvent::host(),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => DeviceEvent::of(cuda.event()),
        }
    }

    /// A short description for records and progress lines.
    pub fn name(&self) -> String {
        match self {
            Self::Cpu(_) => format!("CPU, {} threads, {}", self.threads(), crate::device::isa::name()),
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
            Self::Cpu(_) => format!("cpu-{}; rustfft 6.4 {}", std::env::consts::ARCH, crate::device::isa::name()),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => {
                let [major, minor] = cuda.capability();
                let exact = if cuda.exact() { " exact" } else { "" };
                format!("cuda sm_{major}{minor}{exact}; {}", cuda::cufft::class())
            }
        }
    }

    /// Waits for all work that a GPU has been given; the processor works synchronously.
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

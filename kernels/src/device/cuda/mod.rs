//! CUDA devices through the driver: context, kernels, memory.
//!
//! | module | what it holds |
//! |---|---|
//! | `mod.rs` | a device: its context, stream, kernels, and how they are launched |
//! | [`array`] | memory on it |
//! | [`cufft`] | Fourier transforms, by a library that is opened at run time |
//! | [`peers`] | memory that other GPUs write to |
//! | `profile` | where a GPU spends its time |
//! | `*.cuh` | the same for the CUDA side: precisions, layouts, tables |
//!
//! Everything runs in one stream, so operations follow each other without the host waiting. The host waits where it
//! reads: [`array::Array::to_host`].
//!
//! A kernel is found by its name in all embedded fat binaries (one for each `.cu`), with `_f32` or `_f64` behind it.

pub(crate) mod array;
pub(crate) mod cufft;
pub(crate) mod peers;
mod profile;

use crate::device::cpu::CpuDevice;
use crate::device::error::KernelError;
use crate::device::gpu::Gpu;
use crate::device::kernel_times::KernelTime;
use crate::real::Real;
use cust::context::{Context, CurrentContext};
use cust::event::{Event, EventFlags};
use cust::module::Module;
use cust::stream::{Stream, StreamFlags};
use cust::sys;
use std::collections::{BTreeMap, HashMap};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, PoisonError};

include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// A GPU. Clones share it.
#[derive(Clone)]
pub struct CudaDevice {
    shared: Arc<Shared>,
    /// See [`crate::Device::limited_to`].
    pub(crate) memory_limit: Option<u64>,
}

struct Shared {
    // dropped in this order: what lives in the context before it
    functions: Mutex<HashMap<String, Function>>,
    staging: Mutex<array::Staging>,
    /// For copies that are read later, while they are not needed.
    spare: Mutex<Vec<array::Staging>>,
    modules: Vec<Module>,
    stream: Stream,
    context: Context,
    /// Where arrays are taken from and freed to.
    pool: sys::CUmemoryPool,
    ordinal: u32,
    name: String,
    capability: [i32; 2],
    multiprocessors: u32,
    /// Support for cooperative launches.
    launches_together: bool,
    shared_bytes_per_block: usize,
    host: CpuDevice,
    /// Waits after every kernel, so that a failure names it: with `COMOVE_CUDA_CHECKS` set.
    checks: bool,
    /// Time by kernel, told at the end: with `COMOVE_CUDA_PROFILE` set.
    profile: Option<profile::Profile>,
    /// Sweeps and group solves compute as the CPU does, to the last bit: with `COMOVE_CUDA_EXACT` set.
    exact: bool,
}

/// A kernel, and the dynamic shared memory that it has been allowed.
#[derive(Clone, Copy)]
struct Function {
    raw: sys::CUfunction,
    shared_bytes: u32,
}

/// Number of a kernel's blocks, and how they are launched.
#[derive(Clone, Copy)]
pub(crate) enum Blocks {
    /// In any order.
    Apart(usize),
    /// All at once, so that they can wait for each other (`all_blocks.cuh`): a cooperative launch of at most one block per
    /// multiprocessor. The kernel must work with any number of blocks, and a block must fit on a multiprocessor.
    Together(usize),
}

impl From<usize> for Blocks {
    fn from(blocks: usize) -> Self {
        Self::Apart(blocks)
    }
}

// SAFETY: handles of a context may be used from any thread that makes the context current, which every method here does.
unsafe impl Send for Shared {}
unsafe impl Sync for Shared {}

impl std::fmt::Debug for CudaDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cuda({}: {})", self.shared.ordinal, self.shared.name)
    }
}

impl PartialEq for CudaDevice {
    fn eq(&self, other: &Self) -> bool {
        self.shared.ordinal == other.shared.ordinal
    }
}

/// The version of CUDA that the driver speaks (major, minor) and its GPUs; why there are none otherwise.
///
/// # Errors
/// A line for people.
pub(crate) fn summaries() -> Result<([i32; 2], Vec<Gpu>), String> {
    start_driver()?;
    let version = cust::CudaApiVersion::get().map_err(|e| format!("the NVIDIA driver reports no version ({e:?})"))?;
    let count = cust::device::Device::num_devices().map_err(|e| format!("the NVIDIA driver finds no GPU ({e:?})"))?;
    let summary = |ordinal: u32| {
        let device = cust::device::Device::get_device(ordinal)?;
        Ok(Gpu {
            ordinal,
            name: device.name()?,
            memory: device.total_memory()? as u64,
            capability: capability(device)?,
        })
    };
    let all: Result<Vec<_>, cust::error::CudaError> = (0..count).map(summary).collect();
    Ok(([version.major(), version.minor()], all.map_err(|e| format!("the NVIDIA driver reports {e:?}"))?))
}

fn start_driver() -> Result<(), String> {
    cust::init(cust::CudaFlags::empty()).map_err(|e| match e {
        cust::error::CudaError::NoDevice => "no NVIDIA driver or GPU was found on this machine".into(),
        other => format!("the NVIDIA driver does not start ({other:?})"),
    })
}

fn capability(device: cust::device::Device) -> cust::error::CudaResult<[i32; 2]> {
    use cust::device::DeviceAttribute::{ComputeCapabilityMajor, ComputeCapabilityMinor};
    Ok([device.get_attribute(ComputeCapabilityMajor)?, device.get_attribute(ComputeCapabilityMinor)?])
}

impl CudaDevice {
    /// The GPU of this number, with the kernels loaded; `host` does what is left to the host. `exact`: sweeps compute as
    /// the CPU does, to the last bit, at half the speed.
    ///
    /// # Errors
    /// [`KernelError::NoDevice`].
    pub(crate) fn new(ordinal: u32, host: CpuDevice, exact: bool) -> Result<Self, KernelError> {
        let name = format!("cuda:{ordinal}");
        let missing = |reason: String| KernelError::NoDevice(name.clone(), reason);
        start_driver().map_err(missing)?;
        let count = cust::device::Device::num_devices().map_err(|e| missing(format!("{e:?}")))?;
        if ordinal >= count {
            return Err(missing(format!("this machine has {count} GPU(s), counted from 0")));
        }
        Self::open(ordinal, host, exact).map_err(|e| missing(format!("{e:?}")))
    }

    fn open(ordinal: u32, host: CpuDevice, exact: bool) -> cust::error::CudaResult<Self> {
        let device = cust::device::Device::get_device(ordinal)?;
        let context = Context::new(device)?;
        let pool = keep_freed_memory(device);
        let modules = MODULES.iter().map(|(name, binary)| load(name, binary)).collect::<Result<_, _>>()?;
        Ok(Self {
            memory_limit: None,
            shared: Arc::new(Shared {
                functions: Mutex::default(),
                staging: Mutex::new(array::Staging::new(array::Staging::BYTES)),
                spare: Mutex::default(),
                modules,
                stream: Stream::new(StreamFlags::NON_BLOCKING, None)?,
                context,
                pool,
                ordinal,
                name: device.name()?,
                capability: capability(device)?,
                shared_bytes_per_block: most_shared_memory(device),
                multiprocessors: device.get_attribute(cust::device::DeviceAttribute::MultiprocessorCount)? as u32,
                launches_together: launches_together(device),
                host,
                checks: std::env::var_os("COMOVE_CUDA_CHECKS").is_some(),
                profile: profile::Profile::wanted(),
                exact,
            }),
        })
    }

    /// The host's threads that work for it.
    pub(crate) fn host(&self) -> &CpuDevice {
        &self.shared.host
    }

    /// As the driver calls it.
    pub(crate) fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its address on the machine's bus, the same for all processes.
    pub(crate) fn bus(&self) -> String {
        let mut address = [0u8; 32];
        let device = cust::device::Device::get_device(self.shared.ordinal).expect("the device is there");
        // SAFETY: the pointer is valid for so many bytes.
        let result = unsafe { sys::cuDeviceGetPCIBusId(address.as_mut_ptr().cast(), 32, device.as_raw()) };
        unwrap("tell its place", result);
        String::from_utf8_lossy(address.split(|&c| c == 0).next().unwrap_or_default()).into_owned()
    }

    /// Compute capability, major and minor.
    pub(crate) fn capability(&self) -> [i32; 2] {
        self.shared.capability
    }

    /// Shared memory that a block may have at most, in bytes.
    pub(crate) fn shared_bytes_per_block(&self) -> usize {
        self.shared.shared_bytes_per_block
    }

    /// Whether sweeps compute as the CPU does.
    pub(crate) fn exact(&self) -> bool {
        self.shared.exact
    }

    /// True on a GPU with cooperative launches ([`Blocks::Together`]).
    pub(crate) fn launches_together(&self) -> bool {
        self.shared.launches_together
    }

    /// Streaming multiprocessors.
    pub(crate) fn multiprocessors(&self) -> u32 {
        self.shared.multiprocessors
    }

    /// Free and total memory in bytes. Freed arrays that the device keeps for the next ones count as used.
    pub fn memory(&self) -> [u64; 2] {
        self.activate();
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are valid for the call.
        unwrap("ask for free memory", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) });
        [free as u64, total as u64]
    }

    /// Bytes of freed arrays that the device keeps for the next ones.
    pub(crate) fn unused_bytes(&self) -> u64 {
        let [reserved, used] = self.pool_bytes();
        reserved.saturating_sub(used)
    }

    /// Bytes that the memory pool holds, and those of them that are arrays.
    fn pool_bytes(&self) -> [u64; 2] {
        use sys::CUmemPool_attribute_enum::{
            CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT as RESERVED, CU_MEMPOOL_ATTR_USED_MEM_CURRENT as USED,
        };
        // arrays are freed in the stream
        self.synchronize();
        [RESERVED, USED].map(|attribute| {
            let mut bytes = 0u64;
            // SAFETY: the pool is the device's; both attributes are a u64.
            let result = unsafe { sys::cuMemPoolGetAttribute(self.shared.pool, attribute, (&raw mut bytes).cast()) };
            unwrap("tell what its memory pool holds", result);
            bytes
        })
    }

    /// Has `allocate` put the start of so many bytes where the pointer leads; if there is no room, once more after giving
    /// back what freed arrays hold, which may be as much, in pieces.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    fn allocate(
        &self,
        bytes: usize,
        allocate: impl Fn(*mut sys::CUdeviceptr) -> sys::cudaError_enum,
    ) -> Result<sys::CUdeviceptr, KernelError> {
        const OUT_OF_MEMORY: sys::cudaError_enum = sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY;
        self.activate();
        let mut start = 0;
        let mut result = allocate(&mut start);
        if result == OUT_OF_MEMORY {
            self.give_back(0);
            result = allocate(&mut start);
        }
        if result == OUT_OF_MEMORY {
            return Err(KernelError::OutOfMemory { device: self.name().into(), bytes });
        }
        unwrap("allocate", result);
        Ok(start)
    }

    /// See [`crate::Device::keep_ready`].
    pub(crate) fn keep_ready(&self, bytes: usize) -> Result<(), KernelError> {
        drop(array::Array::<u8>::room(self, bytes)?);
        self.give_back(bytes);
        Ok(())
    }

    /// Gives back what the process holds unused beyond so many bytes.
    pub(crate) fn give_back(&self, kept: usize) {
        let [_, used] = self.pool_bytes();
        // SAFETY: the pool is the device's.
        unwrap("trim its memory pool", unsafe { sys::cuMemPoolTrimTo(self.shared.pool, used as usize + kept) });
    }

    /// Makes the device the one that this thread's calls are for.
    pub(crate) fn activate(&self) {
        CurrentContext::set_current(&self.shared.context).expect("the context lives as long as the device");
    }

    /// The one stream.
    pub(crate) fn stream(&self) -> sys::CUstream {
        self.shared.stream.as_inner()
    }

    /// Waits for everything launched so far.
    ///
    /// # Panics
    /// If a kernel has failed: a bug.
    pub fn synchronize(&self) {
        self.activate();
        self.shared.stream.synchronize().unwrap_or_else(|e| panic!("the GPU failed: {e:?}"));
    }

    /// The time of each kernel so far, if it is measured.
    pub(crate) fn kernel_times(&self) -> BTreeMap<String, KernelTime> {
        self.shared.profile.as_ref().map(profile::Profile::kernels).unwrap_or_default()
    }

    /// Page-locked host memory of at least so many bytes, for a copy that is read later.
    fn take_staging(&self, bytes: usize) -> array::Staging {
        let mut spare = self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let found = spare.iter().position(|staging| staging.bytes() >= bytes);
        found.map_or_else(|| array::Staging::new(bytes.next_power_of_two()), |n| spare.swap_remove(n))
    }

    /// Takes it back. A copy to it may still be under way: the next one follows it in the stream.
    fn put_back(&self, staging: array::Staging) {
        self.shared.spare.lock().unwrap_or_else(PoisonError::into_inner).push(staging);
    }

    /// Lends the host memory that copies pass through.
    fn with_staging<R>(&self, work: impl FnOnce(&array::Staging) -> R) -> R {
        work(&self.shared.staging.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Launches `kernel` in the precision of `T` on `blocks`; nothing for none. Write it as [`launch!`].
    ///
    /// # Safety
    /// `arguments` point to the kernel's parameters, in order and of its types, and what these point to on the device is
    /// as the kernel expects.
    pub(crate) unsafe fn launch<T: Real>(
        &self,
        kernel: &str,
        blocks: impl Into<Blocks>,
        threads: u32,
        shared_bytes: u32,
        arguments: &mut [*mut c_void],
    ) {
        let (blocks, are_together) = match blocks.into() {
            Blocks::Apart(blocks) => (blocks, false),
            Blocks::Together(blocks) => {
                let most = if self.shared.launches_together { self.shared.multiprocessors as usize } else { 1 };
                let blocks = blocks.min(most);
                (blocks, blocks > 1)
            }
        };
        if blocks == 0 {
            return;
        }
        self.activate();
        let function = self.function(&format!("{kernel}_f{}", 8 * T::BYTES), shared_bytes);
        let before = self.shared.profile.as_ref().map(|_| self.event());
        let (grid, stream) = (u32::try_from(blocks).expect("fewer than 2³² blocks"), self.stream());
        let arguments = arguments.as_mut_ptr();
        // SAFETY: by the caller's promise; the arguments are copied before the call returns.
        let result = unsafe {
            match are_together {
                true => {
                    sys::cuLaunchCooperativeKernel(function, grid, 1, 1, threads, 1, 1, shared_bytes, stream, arguments)
                }
                false => sys::cuLaunchKernel(
                    function,
                    grid,
                    1,
                    1,
                    threads,
                    1,
                    1,
                    shared_bytes,
                    stream,
                    arguments,
                    std::ptr::null_mut(),
                ),
            }
        };
        assert!(
            result as u32 == 0,
            "{kernel} on {blocks} blocks of {threads} threads with {shared_bytes} B of shared memory: {result:?}"
        );
        if let (Some(profile), Some(before)) = (&self.shared.profile, before) {
            let after = self.event();
            after.synchronize().unwrap_or_else(|e| panic!("{kernel} failed: {e:?}"));
            let milliseconds = after.elapsed_time_f32(&before).expect("both events have passed");
            profile.add(kernel, blocks, f64::from(milliseconds));
        }
        if self.shared.checks {
            self.shared.stream.synchronize().unwrap_or_else(|e| panic!("{kernel} failed: {e:?}"));
        }
    }

    /// An event behind all that was launched so far.
    pub(crate) fn event(&self) -> Event {
        self.activate();
        let event = Event::new(EventFlags::DEFAULT).expect("an event is made");
        event.record(&self.shared.stream).expect("the stream takes an event");
        event
    }

    /// The kernel of this name, allowed so much dynamic shared memory.
    fn function(&self, name: &str, shared_bytes: u32) -> sys::CUfunction {
        /// Dynamic shared memory that needs no leave.
        const USUAL: u32 = 48 << 10;
        let mut functions = self.shared.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = functions.get(name).filter(|known| known.shared_bytes >= shared_bytes) {
            return known.raw;
        }
        let found = self.shared.modules.iter().find_map(|module| module.get_function(name).ok());
        let raw = found.unwrap_or_else(|| panic!("no module has a kernel {name}")).to_raw();
        if shared_bytes > USUAL {
            let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function was just found.
            unwrap(name, unsafe { sys::cuFuncSetAttribute(raw, attribute, shared_bytes as i32) });
        }
        functions.insert(name.into(), Function { raw, shared_bytes: shared_bytes.max(USUAL) });
        raw
    }
}

/// Loads a module: the embedded one, or for work on a kernel that of the same name in the folder `COMOVE_CUDA_MODULES`.
fn load(name: &str, embedded: &[u8]) -> cust::error::CudaResult<Module> {
    let folder = std::env::var_os("COMOVE_CUDA_MODULES").map(std::path::PathBuf::from);
    match folder.and_then(|folder| std::fs::read(folder.join(format!("{name}.fatbin"))).ok()) {
        Some(other) => Module::from_fatbin(other, &[]),
        None => Module::from_fatbin(embedded, &[]),
    }
}

/// Bytes of shared memory that a block may have if a kernel asks for it.
fn most_shared_memory(device: cust::device::Device) -> usize {
    attribute(device, sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) as usize
}

/// True for a GPU with cooperative launches.
fn launches_together(device: cust::device::Device) -> bool {
    attribute(device, sys::CUdevice_attribute_enum::CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0
}

fn attribute(device: cust::device::Device, which: sys::CUdevice_attribute_enum) -> i32 {
    let mut value = 0;
    // SAFETY: the pointer is valid for the call.
    unwrap(&format!("tell its {which:?}"), unsafe { sys::cuDeviceGetAttribute(&mut value, which, device.as_raw()) });
    value
}

/// Memory of freed arrays stays with the process for the next ones: allocating then costs no call into the system. The
/// pool that holds it.
fn keep_freed_memory(device: cust::device::Device) -> sys::CUmemoryPool {
    let mut pool = std::ptr::null_mut();
    let mut all = u64::MAX;
    let attribute = sys::CUmemPool_attribute_enum::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
    // SAFETY: both pointers are valid for the calls; the attribute takes a u64.
    unsafe {
        unwrap("find the memory pool", sys::cuDeviceGetDefaultMemPool(&mut pool, device.as_raw()));
        unwrap("set up the memory pool", sys::cuMemPoolSetAttribute(pool, attribute, (&raw mut all).cast()));
    }
    pool
}

/// # Panics
/// If a call into the driver failed where only a bug can make it fail.
pub(crate) fn unwrap(what: &str, result: sys::cudaError_enum) {
    assert!(result as u32 == 0, "the GPU failed to {what}: {result:?}");
}

/// `launch!(device, T, "kernel", blocks, threads, shared bytes; argument, …)`: the arguments by value, in the kernel's
/// order. Unsafe as [`CudaDevice::launch`].
macro_rules! launch {
    ($device:expr, $real:ty, $kernel:expr, $blocks:expr, $threads:expr, $shared:expr; $($argument:expr),* $(,)?) => {
        $device.launch::<$real>(
            $kernel,
            $blocks,
            $threads,
            $shared,
            &mut [$((&$argument as *const _ as *mut std::ffi::c_void)),*],
        )
    };
}
pub(crate) use launch;

//! Memory of a GPU that other GPUs of the machine write to.

use super::{CudaDevice, unwrap};
use crate::device::error::KernelError;
use cust::sys;

/// Memory that can be shared: not of the pool that arrays come from. Its bits are zero at first.
#[derive(Debug)]
pub(crate) struct PeerMemory {
    device: CudaDevice,
    start: sys::CUdeviceptr,
    bytes: usize,
}

impl PeerMemory {
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn new(device: &CudaDevice, bytes: usize) -> Result<Self, KernelError> {
        // SAFETY: the pointer is valid for the call.
        let start = device.allocate(bytes, |start| unsafe { sys::cuMemAlloc_v2(start, bytes) })?;
        // SAFETY: the bytes were just allocated.
        unwrap("clear", unsafe { sys::cuMemsetD8Async(start, 0, bytes, device.stream()) });
        device.synchronize();
        Ok(Self { device: device.clone(), start, bytes })
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// What another process opens; nothing where the system does not let it.
    pub(crate) fn handle(&self) -> Vec<u8> {
        self.device.activate();
        let mut handle = sys::CUipcMemHandle { reserved: [0; 64] };
        // SAFETY: the pointer is valid for the call, and the memory was allocated by `new`.
        let result = unsafe { sys::cuIpcGetMemHandle(&mut handle, self.start) };
        if result as u32 == 0 { handle.reserved.map(|c| c as u8).to_vec() } else { Vec::new() }
    }
}

impl Drop for PeerMemory {
    fn drop(&mut self) {
        self.device.activate();
        // SAFETY: allocated by `new`; the others have closed it. An error here has been reported before.
        unsafe { sys::cuMemFree_v2(self.start) };
    }
}

/// Another rank's shared memory, open for writing.
#[derive(Debug)]
pub(crate) struct Opened {
    start: sys::CUdeviceptr,
    /// The device whose calls opened it, if it is another process's.
    mapped_on: Option<CudaDevice>,
}

impl Opened {
    /// Of the same GPU and process: nothing to open.
    pub(crate) fn own(start: u64) -> Self {
        Self { start, mapped_on: None }
    }

    /// Of another process, by the handle; none if it cannot be reached.
    pub(crate) fn of_process(device: &CudaDevice, handle: &[u8]) -> Option<Self> {
        const LAZY_ENABLE_PEER_ACCESS: u32 = 1;
        let reserved: [u8; 64] = handle.try_into().ok()?;
        let handle = sys::CUipcMemHandle { reserved: reserved.map(|c| c as _) };
        device.activate();
        let mut start = 0;
        // SAFETY: the pointer is valid for the call; a handle that means nothing is refused.
        let result = unsafe { sys::cuIpcOpenMemHandle_v2(&mut start, handle, LAZY_ENABLE_PEER_ACCESS) };
        (result as u32 == 0).then(|| Self { start, mapped_on: Some(device.clone()) })
    }

    pub(crate) fn start(&self) -> u64 {
        self.start
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(device) = &self.mapped_on {
            device.activate();
            // SAFETY: opened by `of_process`, and nothing of this device writes to it any more.
            unsafe { sys::cuIpcCloseMemHandle(self.start) };
        }
    }
}

/// The machine, as it was last booted: processes that agree on it see the same GPUs.
pub(crate) fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    format!("{} {}", read("/proc/sys/kernel/random/boot_id"), read("/proc/sys/kernel/hostname"))
}

//! Device arrays. [`Buffer::to_host`] and [`Buffer::from_host`] are the only movers of data.

use crate::device::Device;
#[cfg(feature = "cuda")]
use crate::device::cuda::array::{Array, Pointer};
use crate::device::error::KernelError;
use std::marker::PhantomData;

/// An array on a device.
#[derive(Debug)]
pub enum Buffer<T> {
    /// Host memory.
    Cpu(Vec<T>),
    /// Memory of a GPU.
    #[cfg(feature = "cuda")]
    Cuda(Array<T>),
}

impl<T: Copy + Default + Send + Sync> Buffer<T> {
    /// `len` default values (zero for numbers).
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn zeros(device: &Device, len: usize) -> Result<Self, KernelError> {
        let mut buffer = match device {
            Device::Cpu(_) => Self::Cpu(Vec::new()),
            #[cfg(feature = "cuda")]
            Device::Cuda(cuda) => Self::Cuda(Array::zeros(cuda, 0)?),
        };
        buffer.grow(device, len)?;
        Ok(buffer)
    }

    /// A copy of host data.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn from_host(device: &Device, data: Vec<T>) -> Result<Self, KernelError> {
        match device {
            Device::Cpu(_) => Ok(Self::Cpu(data)),
            #[cfg(feature = "cuda")]
            Device::Cuda(cuda) => Ok(Self::Cuda(Array::of(cuda, &data)?)),
        }
    }

    /// Lengthens the array to `len` values, keeping what is there; shorter lengths are ignored.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`], with the array unchanged.
    pub fn grow(&mut self, device: &Device, len: usize) -> Result<(), KernelError> {
        match self {
            Self::Cpu(data) => {
                if len > data.len() {
                    let bytes = (len - data.len()) * size_of::<T>();
                    data.try_reserve_exact(len - data.len())
                        .map_err(|_| KernelError::OutOfMemory { device: device.name(), bytes })?;
                    data.resize(len, T::default());
                }
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(array) => {
                if len > array.len() {
                    let mut longer = Array::room(array.device(), len)?;
                    longer.copy_start_from(array);
                    longer.clear(array.len());
                    *array = longer;
                }
            }
        }
        Ok(())
    }

    /// Makes the array `len` values long, keeping what is there of them. It shrinks in place, and grows in place within a
    /// `capacity` that it had before; else it takes that much.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`], with the array unchanged.
    pub fn resize(&mut self, device: &Device, len: usize, capacity: usize) -> Result<(), KernelError> {
        assert!(len <= capacity, "{len} values in room for {capacity}");
        match self {
            Self::Cpu(data) => {
                let more = capacity.saturating_sub(data.len());
                let lacks = |_| KernelError::OutOfMemory { device: device.name(), bytes: more * size_of::<T>() };
                data.try_reserve_exact(more).map_err(lacks)?;
                data.resize(len, T::default());
            }
            #[cfg(feature = "cuda")]
            Self::Cuda(array) => array.resize(len, capacity)?,
        }
        Ok(())
    }

    /// Copies the array to the host.
    pub fn to_host(&self) -> Vec<T> {
        match self {
            Self::Cpu(data) => data.clone(),
            #[cfg(feature = "cuda")]
            Self::Cuda(array) => array.to_host(),
        }
    }

    /// The array on the host, no longer on the device.
    pub fn into_host(self) -> Vec<T> {
        match self {
            Self::Cpu(data) => data,
            #[cfg(feature = "cuda")]
            Self::Cuda(array) => array.to_host(),
        }
    }

    /// Calls `work` with the array on the host part by part, in order, and the index of each part's first value. From a GPU
    /// the next part is copied meanwhile. The lengths of parts and of the array are multiples of `unit`.
    ///
    /// # Panics
    /// If the array has another length, or `work` uses a GPU.
    pub fn for_each_part(&self, unit: usize, mut work: impl FnMut(usize, &[T])) {
        assert!(self.len().is_multiple_of(unit), "{} values in parts of {unit}", self.len());
        match self {
            Self::Cpu(data) => work(0, data),
            #[cfg(feature = "cuda")]
            Self::Cuda(array) => array.for_each_part(unit, work),
        }
    }

    /// Overwrites this array with another of the same length on the same device.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn copy_from(&mut self, other: &Self) {
        assert_eq!(self.len(), other.len(), "arrays of different lengths");
        self.copy_start_from(other);
    }

    /// Overwrites the start of this array with a shorter or equally long one on the same device.
    ///
    /// # Panics
    /// If the other is longer.
    pub fn copy_start_from(&mut self, other: &Self) {
        match (self, other) {
            (Self::Cpu(to), Self::Cpu(from)) => to[..from.len()].copy_from_slice(from),
            #[cfg(feature = "cuda")]
            (Self::Cuda(to), Self::Cuda(from)) => to.copy_start_from(from),
            #[cfg(feature = "cuda")]
            _ => panic!("arrays of different devices"),
        }
    }

    /// Values in the array.
    pub fn len(&self) -> usize {
        match self {
            Self::Cpu(data) => data.len(),
            #[cfg(feature = "cuda")]
            Self::Cuda(array) => array.len(),
        }
    }

    /// Whether the array has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The array in host memory.
    ///
    /// # Panics
    /// If it is on a GPU.
    pub fn host(&self) -> &[T] {
        match self {
            Self::Cpu(data) => data,
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => panic!("an array of a GPU used as one of the host"),
        }
    }

    /// The array in host memory, to change.
    ///
    /// # Panics
    /// If it is on a GPU.
    pub fn host_mut(&mut self) -> &mut [T] {
        match self {
            Self::Cpu(data) => data,
            #[cfg(feature = "cuda")]
            Self::Cuda(_) => panic!("an array of a GPU used as one of the host"),
        }
    }

    /// The start of the array on a GPU, for a kernel.
    ///
    /// # Panics
    /// If it is in host memory.
    #[cfg(feature = "cuda")]
    pub(crate) fn pointer(&self) -> Pointer<T> {
        match self {
            Self::Cpu(_) => panic!("an array of the host used as one of a GPU"),
            Self::Cuda(array) => array.pointer(),
        }
    }

    /// The same of the values from `first` on.
    ///
    /// # Panics
    /// If it is in host memory or shorter.
    #[cfg(feature = "cuda")]
    pub(crate) fn pointer_to(&self, first: usize) -> Pointer<T> {
        match self {
            Self::Cpu(_) => panic!("an array of the host used as one of a GPU"),
            Self::Cuda(array) => array.pointer_to(first),
        }
    }
}

/// Write access to the slots of a pool from many threads, each slot from one thread only.
///
/// A level's groups sit in slots scattered over the pool, so a parallel loop over groups writes to disjoint but
/// unordered pieces: more than `par_chunks_mut` can express.
pub(crate) struct SlotWriter<'a, T> {
    start: *mut T,
    slots: usize,
    stride: usize,
    lifetime: PhantomData<&'a mut [T]>,
}

// SAFETY: the writer hands out non-overlapping slices only, by the contract of `slot`.
unsafe impl<T: Send> Sync for SlotWriter<'_, T> {}

impl<'a, T> SlotWriter<'a, T> {
    /// Slots of `stride` values each.
    pub(crate) fn new(pool: &'a mut [T], stride: usize) -> Self {
        Self { start: pool.as_mut_ptr(), slots: pool.len() / stride, stride, lifetime: PhantomData }
    }

    /// The values of one slot.
    ///
    /// # Safety
    /// No two live slices of the same slot. Callers loop over [`crate::LevelTopology::slots`], which are distinct by
    /// construction (checked when the tables are made).
    #[allow(clippy::mut_from_ref)]
    pub(crate) unsafe fn slot(&self, slot: u32) -> &'a mut [T] {
        let slot = slot as usize;
        assert!(slot < self.slots, "slot {slot} of a pool of {}", self.slots);
        // SAFETY: in bounds by the assertion; exclusive by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(slot * self.stride), self.stride) }
    }

    /// The values of a slot that nobody writes meanwhile.
    ///
    /// # Safety
    /// No live slice from [`SlotWriter::slot`] of the same slot.
    pub(crate) unsafe fn read(&self, slot: u32) -> &'a [T] {
        let slot = slot as usize;
        assert!(slot < self.slots, "slot {slot} of a pool of {}", self.slots);
        // SAFETY: in bounds by the assertion; not written by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.add(slot * self.stride), self.stride) }
    }
}

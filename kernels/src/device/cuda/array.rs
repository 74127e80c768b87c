//! Arrays in a GPU's memory.

use super::{CudaDevice, unwrap};
use crate::device::deferred::Deferred;
use crate::device::error::KernelError;
use cust::sys;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;

/// `len` values in the memory of a GPU, freed with the array. Allocation, copies and kernels follow each other in the
/// device's stream.
pub struct Array<T> {
    device: CudaDevice,
    /// Zero for an empty array.
    start: sys::CUdeviceptr,
    len: usize,
    /// Values that there is room for.
    capacity: usize,
    of: PhantomData<T>,
}

/// What a kernel gets of an array: where it starts. Passed by value.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Pointer<T>(sys::CUdeviceptr, PhantomData<*const T>);

impl<T> Pointer<T> {
    /// Of no array.
    pub(crate) const NULL: Self = Self(0, PhantomData);

    /// On the device, for a library.
    pub(crate) fn address(self) -> sys::CUdeviceptr {
        self.0
    }
}

impl<T> std::fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values on {:?}", self.len, self.device)
    }
}

impl<T: Copy> Array<T> {
    /// Room for `len` values of any bits.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn room(device: &CudaDevice, len: usize) -> Result<Self, KernelError> {
        let bytes = len * size_of::<T>();
        let start = match bytes {
            0 => 0,
            // SAFETY: the pointer is valid for the call.
            _ => device.allocate(bytes, |start| unsafe { sys::cuMemAllocAsync(start, bytes, device.stream()) })?,
        };
        Ok(Self { device: device.clone(), start, len, capacity: len, of: PhantomData })
    }

    /// `len` values with all bits zero.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn zeros(device: &CudaDevice, len: usize) -> Result<Self, KernelError> {
        let array = Self::room(device, len)?;
        array.clear(0);
        Ok(array)
    }

    /// A copy of host values.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub(crate) fn of(device: &CudaDevice, values: &[T]) -> Result<Self, KernelError> {
        let mut array = Self::room(device, values.len())?;
        array.copy_from_host(values);
        Ok(array)
    }

    /// Room in the memory that the process holds for an operation: [`crate::Device::keep_ready`] has reserved it.
    ///
    /// # Panics
    /// If less than [`crate::Device::working_bytes`] was reserved and the GPU has no more.
    pub(crate) fn work_space(device: &CudaDevice, len: usize) -> Self {
        Self::room(device, len).unwrap_or_else(|e| panic!("more work space than was reserved: {e}"))
    }

    /// The same with a copy of host values.
    pub(crate) fn work_space_of(device: &CudaDevice, values: &[T]) -> Self {
        let mut array = Self::work_space(device, values.len());
        array.copy_from_host(values);
        array
    }

    /// Makes it so long, with any bits beyond what it holds; takes room for `capacity` values where there is less.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`], with the array unchanged.
    pub(crate) fn resize(&mut self, len: usize, capacity: usize) -> Result<(), KernelError> {
        if capacity > self.capacity {
            let mut longer = Self::room(&self.device, capacity)?;
            longer.copy_start_from(self);
            *self = longer;
        }
        self.len = len;
        Ok(())
    }

    /// Overwrites all values.
    pub(crate) fn copy_from_host(&mut self, values: &[T]) {
        assert_eq!(self.len, values.len(), "arrays of different lengths");
        if !values.is_empty() {
            self.device.activate();
            let (from, bytes) = (values.as_ptr().cast::<c_void>(), size_of_val(values));
            // SAFETY: as many bytes on both sides; the driver has read pageable host memory when the call returns.
            let result = unsafe { sys::cuMemcpyHtoDAsync_v2(self.start, from, bytes, self.device.stream()) };
            unwrap("copy to the device", result);
        }
    }

    /// A copy of all values on the host; waits for all work launched before.
    pub(crate) fn to_host(&self) -> Vec<T> {
        let mut values = Vec::with_capacity(self.len);
        self.for_each_part(1, |_, part| values.extend_from_slice(part));
        values
    }

    /// `look` applied to a copy of all values, which follows all work launched before.
    pub(crate) fn read_later<R>(&self, look: impl FnOnce(&[T]) -> Vec<R> + 'static) -> Deferred<R>
    where
        T: 'static,
    {
        if self.len == 0 {
            return Deferred::ready(look(&[]));
        }
        let (device, len) = (self.device.clone(), self.len);
        device.activate();
        let staging = device.take_staging(len * size_of::<T>());
        // SAFETY: the staging area has so many bytes. What was copied to it before is not read any more.
        let copied =
            unsafe { sys::cuMemcpyDtoHAsync_v2(staging.start(), self.start, len * size_of::<T>(), device.stream()) };
        unwrap("copy to the host", copied);
        let copied = device.event();
        let staging = Lent { staging: Some(staging), device };
        Deferred::later(move || {
            copied.synchronize().unwrap_or_else(|e| panic!("the GPU failed: {e:?}"));
            // SAFETY: so many values have been copied to it, and it is aligned for any number.
            look(unsafe { std::slice::from_raw_parts(staging.start().cast::<T>().cast_const(), len) })
        })
    }

    /// Calls `work` with all values on the host part by part, in order, and the index of each part's first one, while the
    /// next is copied. The lengths of parts and of the array are multiples of `unit`.
    ///
    /// # Panics
    /// If `work` reads values of the same device.
    pub(crate) fn for_each_part(&self, unit: usize, mut work: impl FnMut(usize, &[T])) {
        self.device.activate();
        self.device.with_staging(|staging| {
            let half = staging.bytes() / 2;
            let most = half / (unit * size_of::<T>()) * unit;
            assert!(most > 0, "{unit} values do not fit {half} bytes");
            let copy = |first: usize| {
                let (len, place) = (most.min(self.len - first), first / most % 2);
                let from = self.start + (first * size_of::<T>()) as u64;
                // SAFETY: each half of the staging area, which is aligned for any number, holds `most` values; it is not
                // read before the event behind the copy has passed, nor written again before it has been looked at.
                let (to, copied) = unsafe {
                    let to = staging.start().cast::<u8>().add(place * half);
                    (to, sys::cuMemcpyDtoHAsync_v2(to.cast(), from, len * size_of::<T>(), self.device.stream()))
                };
                unwrap("copy to the host", copied);
                (self.device.event(), to.cast::<T>().cast_const(), len)
            };
            let mut next = (self.len > 0).then(|| copy(0));
            let mut first = 0;
            while let Some((copied, start, len)) = next {
                copied.synchronize().unwrap_or_else(|e| panic!("the GPU failed: {e:?}"));
                next = (first + len < self.len).then(|| copy(first + len));
                // SAFETY: so many values have been copied to it, and the other half is being written.
                work(first, unsafe { std::slice::from_raw_parts(start, len) });
                first += len;
            }
        });
    }

    /// Overwrites the first values with all of another array.
    pub(crate) fn copy_start_from(&mut self, other: &Self) {
        assert!(other.len <= self.len, "{} values do not fit {}", other.len, self.len);
        if other.len > 0 {
            self.device.activate();
            let bytes = other.len * size_of::<T>();
            // SAFETY: both arrays have so many bytes.
            let result = unsafe { sys::cuMemcpyDtoDAsync_v2(self.start, other.start, bytes, self.device.stream()) };
            unwrap("copy on the device", result);
        }
    }

    /// Sets all bits from value `first` on to zero.
    pub(crate) fn clear(&self, first: usize) {
        self.clear_part(first..self.len);
    }

    /// Sets all bits of some values to zero.
    pub(crate) fn clear_part(&self, part: Range<usize>) {
        assert!(part.end <= self.len, "values to {} of {}", part.end, self.len);
        let bytes = part.len() * size_of::<T>();
        if bytes > 0 {
            self.device.activate();
            let start = self.start + (part.start * size_of::<T>()) as u64;
            // SAFETY: the bytes belong to the array.
            unwrap("clear", unsafe { sys::cuMemsetD8Async(start, 0, bytes, self.device.stream()) });
        }
    }

    /// Values.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// What a kernel gets.
    pub(crate) fn pointer(&self) -> Pointer<T> {
        Pointer(self.start, PhantomData)
    }

    /// Of the values from `first` on.
    pub(crate) fn pointer_to(&self, first: usize) -> Pointer<T> {
        assert!(first <= self.len, "value {first} of {}", self.len);
        Pointer(self.start + (first * size_of::<T>()) as u64, PhantomData)
    }

    /// Where it lives.
    pub(crate) fn device(&self) -> &CudaDevice {
        &self.device
    }
}

impl<T> Drop for Array<T> {
    fn drop(&mut self) {
        if self.start != 0 {
            self.device.activate();
            // SAFETY: allocated in this stream, and nobody else holds it. An error here has been reported before.
            unsafe { sys::cuMemFreeAsync(self.start, self.device.stream()) };
        }
    }
}

/// Page-locked memory that goes back to its device when it is dropped.
struct Lent {
    staging: Option<Staging>,
    device: CudaDevice,
}

impl Lent {
    fn start(&self) -> *mut c_void {
        self.staging.as_ref().expect("it is there until it is dropped").start()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.device.put_back(self.staging.take().expect("it is there until it is dropped"));
    }
}

/// Page-locked host memory, which copies from the device reach without another copy by the driver, and kernels directly.
#[derive(Debug)]
pub(crate) struct Staging {
    start: *mut c_void,
    bytes: usize,
}

// SAFETY: memory that belongs to its holder alone.
unsafe impl Send for Staging {}

impl Staging {
    /// Of the area that large copies pass through.
    pub(super) const BYTES: usize = 32 << 20;

    /// So many bytes in the present context.
    pub(super) fn new(bytes: usize) -> Self {
        Self::allocated(bytes)
            .unwrap_or_else(|result| panic!("the GPU failed to allocate page-locked memory: {result:?}"))
    }

    fn allocated(bytes: usize) -> Result<Self, sys::cudaError_enum> {
        let mut start = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        let result = unsafe { sys::cuMemAllocHost_v2(&mut start, bytes) };
        if result as u32 == 0 { Ok(Self { start, bytes }) } else { Err(result) }
    }

    /// So many zeros.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`] of the host.
    pub(crate) fn with_room(device: &CudaDevice, bytes: usize) -> Result<Self, KernelError> {
        device.activate();
        let lacks = |_| KernelError::OutOfMemory { device: "the host, page-locked".into(), bytes };
        let staging = Self::allocated(bytes).map_err(lacks)?;
        // SAFETY: so many bytes were just allocated.
        unsafe { staging.start.cast::<u8>().write_bytes(0, bytes) };
        Ok(staging)
    }

    /// Its bytes, which no device may be writing.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: so many bytes, all of them written at first; the caller has waited for the device.
        unsafe { std::slice::from_raw_parts(self.start.cast(), self.bytes) }
    }

    /// The same to change; no device may be reading them.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.cast(), self.bytes) }
    }

    /// For kernels.
    pub(crate) fn address(&self) -> u64 {
        self.start as u64
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    fn start(&self) -> *mut c_void {
        self.start
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`; nobody else holds it. An error here has been reported before.
        unsafe { sys::cuMemFreeHost(self.start) };
    }
}

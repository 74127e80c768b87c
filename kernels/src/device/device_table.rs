//! Tables that operations read.

use std::fmt::{Debug, Formatter};
use std::ops::Deref;
use std::sync::Arc;
#[cfg(feature = "cuda")]
use {crate::device::cuda, std::sync::OnceLock};

/// A table that never changes: a slice on the host, copied to a GPU at its first use there. Clones share both.
pub struct DeviceTable<N>(Arc<Numbers<N>>);

struct Numbers<N> {
    host: Vec<N>,
    #[cfg(feature = "cuda")]
    device: OnceLock<cuda::array::Array<N>>,
}

impl<N> From<Vec<N>> for DeviceTable<N> {
    fn from(host: Vec<N>) -> Self {
        Self(Arc::new(Numbers {
            host,
            #[cfg(feature = "cuda")]
            device: OnceLock::new(),
        }))
    }
}

#[cfg(feature = "cuda")]
impl<N: Copy> DeviceTable<N> {
    /// Its start on a GPU, copied there at first.
    ///
    /// # Panics
    /// If it does not fit or is on another GPU.
    pub(crate) fn on(&self, device: &cuda::CudaDevice) -> cuda::array::Pointer<N> {
        let on_device = || cuda::array::Array::work_space_of(device, &self.0.host);
        let array = self.0.device.get_or_init(on_device);
        assert!(array.device() == device, "a table is on another GPU");
        array.pointer()
    }
}

impl<N> DeviceTable<N> {
    /// Bytes that it takes on a device.
    pub fn bytes(&self) -> usize {
        size_of_val(self.0.host.as_slice())
    }
}

impl<N: PartialEq> DeviceTable<N> {
    /// Becomes `old`, with its copy on a GPU, if the two are equal.
    pub fn keep(&mut self, old: Self) {
        if *self == old {
            *self = old;
        }
    }
}

impl<N> Deref for DeviceTable<N> {
    type Target = [N];

    fn deref(&self) -> &[N] {
        &self.0.host
    }
}

impl<N> FromIterator<N> for DeviceTable<N> {
    fn from_iter<I: IntoIterator<Item = N>>(numbers: I) -> Self {
        numbers.into_iter().collect::<Vec<N>>().into()
    }
}

impl<'a, N> IntoIterator for &'a DeviceTable<N> {
    type Item = &'a N;
    type IntoIter = std::slice::Iter<'a, N>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.host.iter()
    }
}

impl<N> Default for DeviceTable<N> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<N> Clone for DeviceTable<N> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<N: Debug> Debug for DeviceTable<N> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.0.host.fmt(f)
    }
}

impl<N: PartialEq> PartialEq for DeviceTable<N> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.host == other.0.host
    }
}

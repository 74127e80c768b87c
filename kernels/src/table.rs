//! Numbers that operations read.

use std::fmt::{Debug, Formatter};
use std::ops::Deref;
#[cfg(feature = "cuda")]
use {crate::cuda, std::sync::OnceLock};

/// Numbers that do not change once they are made: on the host, where the table is used as a slice, and on a GPU from
/// their first use there on.
pub struct Table<N> {
    host: Vec<N>,
    #[cfg(feature = "cuda")]
    device: OnceLock<cuda::array::Array<N>>,
}

impl<N> From<Vec<N>> for Table<N> {
    fn from(host: Vec<N>) -> Self {
        Self {
            host,
            #[cfg(feature = "cuda")]
            device: OnceLock::new(),
        }
    }
}

#[cfg(feature = "cuda")]
impl<N: Copy> Table<N> {
    /// Where it starts on a GPU, copied there if it has not been.
    ///
    /// # Panics
    /// If it does not fit or lies on another GPU.
    pub(crate) fn on(&self, device: &cuda::CudaDevice) -> cuda::array::Pointer<N> {
        let array = self.device.get_or_init(|| cuda::array::Array::of(device, &self.host).expect("room for a table"));
        assert!(array.device() == device, "a table is on another GPU");
        array.pointer()
    }
}

impl<N> Table<N> {
    /// Bytes that it takes on a device.
    pub fn bytes(&self) -> usize {
        size_of_val(self.host.as_slice())
    }
}

impl<N: PartialEq> Table<N> {
    /// Becomes `old`, with its copy on a GPU, if that holds the same numbers.
    pub fn keep(&mut self, old: Self) {
        if *self == old {
            *self = old;
        }
    }
}

impl<N> Deref for Table<N> {
    type Target = [N];

    fn deref(&self) -> &[N] {
        &self.host
    }
}

impl<N> FromIterator<N> for Table<N> {
    fn from_iter<I: IntoIterator<Item = N>>(numbers: I) -> Self {
        numbers.into_iter().collect::<Vec<N>>().into()
    }
}

impl<'a, N> IntoIterator for &'a Table<N> {
    type Item = &'a N;
    type IntoIter = std::slice::Iter<'a, N>;

    fn into_iter(self) -> Self::IntoIter {
        self.host.iter()
    }
}

impl<N> Default for Table<N> {
    fn default() -> Self {
        Vec::new().into()
    }
}

impl<N: Clone> Clone for Table<N> {
    fn clone(&self) -> Self {
        self.host.clone().into()
    }
}

impl<N: Debug> Debug for Table<N> {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        self.host.fmt(f)
    }
}

impl<N: PartialEq> PartialEq for Table<N> {
    fn eq(&self, other: &Self) -> bool {
        self.host == other.host
    }
}

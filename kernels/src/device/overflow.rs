//! Sums of unsigned integers in cells that may exceed 64 bits.

use crate::device::Device;
use crate::device::buffer::Buffer;
use crate::device::error::KernelError;

/// A cell of a pool whose sum has exceeded 64 bits: none, or one of them.
#[derive(Debug)]
pub struct Overflow(pub(crate) Buffer<u64>);

impl Overflow {
    /// None so far.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn none(device: &Device) -> Result<Self, KernelError> {
        Buffer::zeros(device, 1).map(Self)
    }

    /// The last of these cells in the pool, `[slots, 16, 16, 16]`; waits for the device.
    pub fn cell(&self) -> Option<usize> {
        (self.0.to_host()[0] as usize).checked_sub(1)
    }
}

/// Adds weights to cells in succession; the place of one whose sum has exceeded 64 bits.
#[inline(always)]
pub(crate) fn add_weights(mass: &mut [u64], weights: &[u64]) -> Option<usize> {
    let mut any = false;
    for (mass, weight) in mass.iter_mut().zip(weights) {
        *mass = mass.wrapping_add(*weight);
        any |= *mass < *weight;
    }
    if any { mass.iter().zip(weights).rposition(|(mass, weight)| mass < weight) } else { None }
}

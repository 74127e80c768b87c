//! Sums of unsigned integers in cells that may exceed 64 bits.

use crate::device::Device;
use crate::device::buffer::Buffer;
#[cfg(feature = "cuda")]
use crate::device::cuda::array::Pointer;
use crate::device::error::KernelError;

/// A cell of a pool whose sum has exceeded 64 bits: none, or one of them.
#[derive(Debug)]
pub struct Overflow {
    /// The number behind that of the cell, or 0.
    pub(crate) cell: Buffer<u64>,
    /// False where no sum can exceed 64 bits.
    is_possible: bool,
}

impl Overflow {
    /// None so far.
    ///
    /// * `most`: upper bound of any sum; a GPU does not look at sums that this keeps below 64 bits
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn none(device: &Device, most: u128) -> Result<Self, KernelError> {
        Ok(Self { cell: Buffer::zeros(device, 1)?, is_possible: most > u128::from(u64::MAX) })
    }

    /// The last of these cells in the pool, `[slots, 16, 16, 16]`; waits for the device.
    pub fn cell(&self) -> Option<usize> {
        let is_looked_for = self.is_possible || matches!(self.cell, Buffer::Cpu(_));
        if is_looked_for { (self.cell.to_host()[0] as usize).checked_sub(1) } else { None }
    }

    /// Of the cell, null where no sum can exceed 64 bits.
    #[cfg(feature = "cuda")]
    pub(crate) fn pointer(&self) -> Pointer<u64> {
        if self.is_possible { self.cell.pointer() } else { Pointer::NULL }
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

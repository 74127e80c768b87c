//! The state at the start of a root step, to come back to: after a side branch, or when a step must be taken again.

use crate::error::SimError;
use crate::octree::Octree;
use crate::state::State;
use comove_kernels::{Buffer, KernelError, Real};

/// Tree, slots, regrid counters and fluid of a [`State`] on its device.
pub struct SavedState<T> {
    tree: Octree,
    slots: Vec<Vec<u32>>,
    steps_since_regrid: Vec<u32>,
    /// The pool, `[slots, 6, 16, 16, 16]`.
    fluid: Buffer<T>,
}

impl<T: Real> SavedState<T> {
    /// A copy of a state's tree and fluid.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn of(state: &State<T>) -> Result<Self, KernelError> {
        let fluid = Buffer::zeros(&state.device, state.fluid.len())?;
        let mut saved =
            Self { tree: state.tree.clone(), slots: state.slots.clone(), steps_since_regrid: Vec::new(), fluid };
        saved.take(state)?;
        Ok(saved)
    }

    /// Overwrites the copy with a state as it is now.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    pub fn take(&mut self, state: &State<T>) -> Result<(), KernelError> {
        if self.tree != state.tree {
            self.tree = state.tree.clone();
        }
        self.slots.clone_from(&state.slots);
        self.steps_since_regrid.clone_from(&state.steps_since_regrid);
        self.fluid.grow(&state.device, state.fluid.len())?;
        self.fluid.copy_from(&state.fluid);
        Ok(())
    }

    /// Puts the copy back. Pools that have grown since keep their length.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if what depends on the tree does not fit.
    pub fn restore(&self, state: &mut State<T>) -> Result<(), SimError> {
        if state.tree != self.tree || state.slots != self.slots {
            state.place(self.tree.clone(), self.slots.clone())?;
        }
        state.steps_since_regrid.clone_from(&self.steps_since_regrid);
        state.fluid.copy_start_from(&self.fluid);
        Ok(())
    }

    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.fluid.len() * T::BYTES
    }
}

//! The state at the start of a root step, to come back to: after a side branch, when a step must be taken again, or when
//! there is no room to go on.

use crate::error::SimError;
use crate::mesh::Octree;
use crate::parallel::share::Share;
use crate::records::CellBudgetAdjustment;
use crate::state::State;
use comove_kernels::{Buffer, KernelError, Real};

/// Tree, slots, what regrids remember and fluid of a [`State`] on its device.
pub struct SavedState<T> {
    tree: Octree,
    slots: Vec<Vec<u32>>,
    share: Share,
    steps_since_regrid: Vec<u32>,
    raised: Option<CellBudgetAdjustment>,
    /// The pool, `[slots, 6, 16, 16, 16]`.
    fluid: Buffer<T>,
}

impl<T: Real> SavedState<T> {
    /// Bytes on the device.
    pub fn bytes(&self) -> usize {
        self.fluid.len() * T::BYTES
    }
}

impl<T: Real> State<T> {
    /// Keeps the state as it is now, in place of what was kept before.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`]; the state is as it was, and nothing is kept.
    pub fn save(&mut self) -> Result<(), KernelError> {
        // too short a copy goes before a longer one comes
        let before = self.saved.take().filter(|saved| saved.fluid.len() == self.fluid.len()).map(|saved| saved.fluid);
        let mut fluid = before.map_or_else(|| Buffer::zeros(&self.device, self.fluid.len()), Ok)?;
        fluid.copy_from(&self.fluid);
        let (tree, slots, share) = (self.tree.clone(), self.slots.clone(), self.share.clone());
        let (steps_since_regrid, raised) = (self.steps_since_regrid.clone(), self.raised);
        self.saved = Some(SavedState { tree, slots, share, steps_since_regrid, raised, fluid });
        Ok(())
    }

    /// Goes back to what was kept, which stays there. Pools that have grown since keep their length.
    ///
    /// # Errors
    /// [`SimError::Kernel`] if what depends on the tree does not fit.
    ///
    /// # Panics
    /// If nothing was kept.
    pub fn restore(&mut self) -> Result<(), SimError> {
        let saved = self.saved.take().expect("the state was saved");
        let same = self.tree == saved.tree && self.slots == saved.slots && self.share.ghosts == saved.share.ghosts;
        let same = !self.communicator.any(!same);
        let placed =
            if same { Ok(()) } else { self.place(saved.tree.clone(), saved.slots.clone(), saved.share.clone()) };
        self.steps_since_regrid.clone_from(&saved.steps_since_regrid);
        self.raised = saved.raised;
        self.fluid.copy_start_from(&saved.fluid);
        self.saved = Some(saved);
        placed
    }
}

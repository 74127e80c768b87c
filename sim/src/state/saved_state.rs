//! The state at the start of a root step, to come back to: after a side branch, when a step must be retried, or when
//! there is no room to go on.

use crate::dark_matter::SavedParticles;
use crate::error::SimError;
use crate::gas::Gas;
use crate::mesh::Octree;
use crate::parallel::share::Share;
use crate::state::{RegridMemory, State};
use comove_kernels::{Buffer, KernelError, Real};

/// Tree, slots, what regrids remember, gas and particles of a [`State`] on its device.
pub(super) struct SavedState<T> {
    tree: Octree,
    slots: Vec<Vec<u32>>,
    share: Share,
    regrid: RegridMemory,
    /// Values of the gas's fields, `[slots, n, 16, 16, 16]`: of the fluid, and of scalars.
    gas: Vec<Buffer<T>>,
    particles: Option<SavedParticles>,
}

impl<T: Real> SavedState<T> {
    /// Bytes on the device.
    pub(super) fn bytes(&self) -> usize {
        self.gas.iter().map(Buffer::len).sum::<usize>() * T::BYTES
            + self.particles.as_ref().map_or(0, SavedParticles::bytes)
    }
}

impl<T: Real> State<T> {
    /// Keeps the state as it is now, in place of what was kept before.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`]; the state is as it was, and nothing is kept.
    pub fn save(&mut self) -> Result<(), KernelError> {
        let room = self.saved.take().map(|saved| (saved.gas, saved.particles));
        let (gas, particles) = room.unwrap_or_default();
        let mut gas = gas.into_iter();
        let fields = self.gas.iter().flat_map(Gas::fields);
        let gas = fields.map(|now| now.save(&self.device, gas.next())).collect::<Result<_, _>>()?;
        let particles = self.dark_matter.as_ref().map(|now| now.save(&self.device, particles)).transpose()?;
        let (tree, slots) = (self.mesh.tree.clone(), self.mesh.slots.clone());
        let (share, regrid) = (self.exchange.share.clone(), self.regrid.clone());
        self.saved = Some(SavedState { tree, slots, share, regrid, gas, particles });
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
        let same = self.mesh.tree == saved.tree
            && self.mesh.slots == saved.slots
            && self.exchange.share.ghosts == saved.share.ghosts;
        let placed = match self.exchange.communicator.any(!same) {
            true => self.place(saved.tree.clone(), saved.slots.clone(), saved.share.clone()),
            false => Ok(()),
        };
        self.regrid = saved.regrid.clone();
        let fields = self.gas.iter_mut().flat_map(Gas::fields_mut);
        fields.zip(&saved.gas).for_each(|(now, saved)| now.restore(saved));
        if let (Some(now), Some(saved)) = (&mut self.dark_matter, &saved.particles) {
            now.restore(&self.device, saved);
        }
        self.saved = Some(saved);
        placed
    }
}

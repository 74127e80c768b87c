//! A rank among those that share a run: messages, and what it knows of the others' groups.

use crate::error::SimError;
use crate::mesh::Key;
use crate::mesh::Octree;
use crate::parallel::communicator::Communicator;
use crate::parallel::ghost_exchange::GhostExchange;
use crate::parallel::link_lists::CellLinks;
use crate::parallel::links::LevelLinks;
use crate::parallel::load_balancer::SweepTime;
use crate::parallel::share::Share;
use crate::records::RanksRecord;
use comove_kernels::messages::MessageSizes;
use comove_kernels::{Buffer, Device, DeviceTable, LevelTopology, Real};
use std::sync::Arc;

/// What a rank shares with the others; nothing but itself where it is alone.
pub struct Exchange {
    /// Between the ranks.
    pub communicator: Arc<Communicator>,
    /// What they send each other about groups.
    pub ghosts: GhostExchange,
    /// What this rank knows of the others' groups.
    pub share: Share,
}

impl Exchange {
    /// Without room for messages: collective.
    ///
    /// * `least`: by rank, what is sent whatever the tree
    ///
    /// # Errors
    /// [`SimError::Kernel`] where there is no room for a few bytes.
    pub(crate) fn new(
        device: &Device,
        communicator: Arc<Communicator>,
        share: Share,
        least: Vec<MessageSizes>,
    ) -> Result<Self, SimError> {
        let ghosts = GhostExchange::new(device, &communicator, least)?;
        Ok(Self { communicator, ghosts, share })
    }

    /// What is sent and received about a level; nothing for a rank that is alone.
    pub(crate) fn links(&self, level: usize) -> Option<&LevelLinks> {
        self.share.links.get(level)
    }

    /// Brings ghosts of a level up to date after `pool`, `[slots, fields, 16, 16, 16]`, has changed.
    pub(crate) fn refresh<T: Real>(
        &self,
        level: usize,
        which: fn(&LevelLinks) -> &CellLinks,
        fields: usize,
        pool: &mut Buffer<T>,
    ) {
        if let Some(links) = self.links(level) {
            self.ghosts.exchange_cells(which(links), fields, pool);
        }
    }

    /// The slots of a level, ghosts included.
    pub(crate) fn slots<'a>(&'a self, level: usize, tables: &'a LevelTopology) -> &'a DeviceTable<u32> {
        self.links(level).map_or(&tables.slots, |links| &links.slots)
    }

    /// The slot of another rank's group that has a ghost.
    pub(crate) fn ghost_slot(&self, key: Key) -> Option<u32> {
        let ghosts = self.share.ghosts.get(usize::from(key.level))?;
        ghosts.binary_search_by_key(&key, |ghost| ghost.0).ok().map(|at| ghosts[at].1)
    }

    /// What the ranks did in a step: [`Share::record`].
    pub(crate) fn record(&mut self, own: &Octree, level_steps: &[u32], sweeps: &[SweepTime]) -> Option<RanksRecord> {
        self.share.record(&self.ghosts, own, level_steps, sweeps)
    }
}

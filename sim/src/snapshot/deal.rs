//! What a run starts from, and how the fields of a file come from the first rank to the owners of their groups.

use super::contents;
use super::digest::Stored;
use super::read::StoredSnapshot;
use super::{Snapshot, SnapshotHeader, gamer};
use crate::error::SimError;
use crate::fields::Field;
use crate::host_state::HostState;
use crate::octree::Octree;
use crate::parallel::agree::agree;
use crate::parallel::blocks::Blocks;
use crate::parallel::communicator::Communicator;
use crate::parallel::scatter::FIRST;
use crate::parameters::Precision;
use comove_kernels::Real;
use comove_kernels::layout::{GROUP_CELLS, GROUP_VALUES};

/// What a run starts from.
#[derive(Clone, Copy)]
pub enum StartFrom<'a> {
    /// A snapshot in memory. Ranks that share a run each have some of its groups, or the first all of them.
    Memory(&'a Snapshot),
    /// A snapshot in a file. The function is told the fraction that is read.
    File(&'a StoredSnapshot, &'a dyn Fn(f64)),
}

impl<'a> From<&'a Snapshot> for StartFrom<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self::Memory(snapshot)
    }
}

impl StartFrom<'_> {
    /// What the snapshot says of itself.
    pub fn header(&self) -> &SnapshotHeader {
        match self {
            Self::Memory(snapshot) => &snapshot.header,
            Self::File(stored, _) => &stored.header,
        }
    }

    /// Its groups.
    pub fn tree(&self) -> &Octree {
        match self {
            Self::Memory(snapshot) => &snapshot.state.tree,
            Self::File(stored, _) => stored.tree(),
        }
    }

    /// Brings every rank the fluid of its own groups from the file that the first rank has. Collective.
    ///
    /// * `blocks`: of the groups of the file, by their owners
    /// * `own`: with the tree of own groups, and zeros
    ///
    /// # Errors
    /// As [`Snapshot::read`], on all ranks.
    pub(crate) fn deal(
        &self,
        communicator: &Communicator,
        blocks: &Blocks,
        own: &mut HostState,
    ) -> Result<(), SimError> {
        let is_double = matches!(self, Self::File(stored, _) if stored.precision() == Precision::Double);
        let fields: Vec<&Field> = contents::stored_fields(false).collect();
        match communicator.any(communicator.rank() == FIRST && is_double) {
            true => self.deal_as::<f64>(communicator, blocks, &fields, own)?,
            false => self.deal_as::<f32>(communicator, blocks, &fields, own)?,
        }
        let verified = match self {
            Self::File(stored, _) if communicator.rank() == FIRST => stored.verify_others(&fields),
            _ => Ok(()),
        };
        agree(communicator, verified)
    }

    fn deal_as<T: Real + Stored + Into<f64>>(
        &self,
        communicator: &Communicator,
        blocks: &Blocks,
        fields: &[&Field],
        own: &mut HostState,
    ) -> Result<(), SimError> {
        match self {
            Self::Memory(_) => {
                let give = |_: usize, _: usize| unreachable!("the first rank reads the file");
                deal::<T>(communicator, blocks, fields, give, own)
            }
            Self::File(stored, report) => deal(communicator, blocks, fields, stored.giver::<T>(fields, report), own),
        }
    }
}

/// Brings every rank these fields of its own groups. Collective.
///
/// * `give`: on the first rank, gives the next so many groups of a field, `[groups, 4096]` in file order
pub(super) fn deal<T: Real + Stored + Into<f64>>(
    communicator: &Communicator,
    blocks: &Blocks,
    fields: &[&Field],
    give: impl FnMut(usize, usize) -> Result<Vec<T>, SimError>,
    own: &mut HostState,
) -> Result<(), SimError> {
    blocks.deal(communicator, fields.len(), give, |field, groups, rows| match fields[field].index {
        Some(index) => {
            let fluid = &mut own.fluid[groups.start * GROUP_VALUES..groups.end * GROUP_VALUES];
            gamer::from_patches(rows, fluid, GROUP_VALUES, index * GROUP_CELLS);
        }
        None => {
            let potential = &mut own.potential[groups.start * GROUP_CELLS..groups.end * GROUP_CELLS];
            gamer::from_patches(rows, potential, GROUP_CELLS, 0);
        }
    })
}

//! What a run starts from, and how the fields of a file come from the ranks that read them to the owners of their groups.

use super::digest::{BlockDigests, Stored};
use super::read::{StoredSnapshot, content_digest};
use super::{Snapshot, SnapshotHeader, gamer};
use crate::error::SimError;
use crate::gas::fields::Field;
use crate::io::blocks::{Blocks, GROUPS};
use crate::io::shared_file::told_path;
use crate::mesh::Octree;
use crate::mesh::host_state::HostState;
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::Communicator;
use crate::parallel::communicator::FIRST;
use crate::parameters::Precision;
use comove_kernels::Real;
use comove_kernels::layout::{GROUP_CELLS, OCTANTS};
use std::io;
use std::path::Path;

/// What a run starts from.
#[derive(Clone, Copy)]
pub enum StartFrom<'a> {
    /// A snapshot in memory. Ranks that share a run each have some of its groups, or the first all of them.
    Memory(&'a Snapshot),
    /// A snapshot in a file, which ranks that share a run all see under its path. The function is told the fraction that is
    /// read.
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

    /// Brings every rank the fluid of its own groups from the file that the first rank has open and all can read.
    /// Collective.
    ///
    /// * `blocks`: of the groups of the file, by their owners
    /// * `own`: with the tree of own groups, and zeros
    ///
    /// # Errors
    /// As [`Snapshot::read`], on all ranks.
    pub(crate) fn distribute(
        &self,
        communicator: &Communicator,
        blocks: &Blocks,
        own: &mut HostState,
    ) -> Result<(), SimError> {
        let fields = |stored: &StoredSnapshot| stored.header.fields.stored(false, false).collect::<Vec<_>>();
        match self {
            Self::File(stored, report) => {
                told_path(communicator, stored.path());
                collective_result::<_, SimError>(communicator, Ok(()))?;
                stored.distribute(communicator, blocks, &fields(stored), report, own)
            }
            Self::Memory(_) => {
                let path = told_path(communicator, Path::new(""));
                let stored = collective_result(communicator, StoredSnapshot::open_without_tree(&path))?;
                stored.distribute(communicator, blocks, &fields(&stored), &|_| (), own)
            }
        }
    }
}

impl StoredSnapshot {
    /// Brings every rank these fields of its own groups, of a file that all ranks read, and verifies all of its fields.
    /// Collective.
    ///
    /// * `report`: is told the fraction that this rank has read of its part
    ///
    /// # Errors
    /// As [`Snapshot::read`], on all ranks.
    pub(super) fn distribute(
        &self,
        communicator: &Communicator,
        blocks: &Blocks,
        fields: &[Field],
        report: &dyn Fn(f64),
        own: &mut HostState,
    ) -> Result<(), SimError> {
        match self.precision() {
            Precision::Single => self.distribute_as::<f32>(communicator, blocks, fields, report, own),
            Precision::Double => self.distribute_as::<f64>(communicator, blocks, fields, report, own),
        }
    }

    /// Collective.
    ///
    /// # Errors
    /// [`SimError::Io`] on all ranks where one of them sees another file than the first has, as in folders that every node has
    /// for itself.
    fn is_the_first_ranks(&self, communicator: &Communicator) -> Result<(), SimError> {
        let path = self.path();
        let own = collective_result(communicator, content_digest(path))?.into_bytes();
        let same = communicator.broadcast(FIRST, own.clone()) == own;
        let other = || {
            io::Error::other(
                "differs from the file that the first process sees; run all processes on one shared folder",
            )
        };
        collective_result(
            communicator,
            if same { Ok(()) } else { Err(SimError::Io { path: path.into(), source: other() }) },
        )
    }

    fn distribute_as<T: Real + Stored + Into<f64>>(
        &self,
        communicator: &Communicator,
        blocks: &Blocks,
        fields: &[Field],
        report: &dyn Fn(f64),
        own: &mut HostState,
    ) -> Result<(), SimError> {
        let rows: Result<Vec<_>, _> = self.datasets(fields).iter().map(|name| self.rows::<T>(name)).collect();
        let rows = collective_result(communicator, rows)?;
        self.is_the_first_ranks(communicator)?;
        let bytes_of = |groups: usize| groups * GROUP_CELLS * <T as Stored>::BYTES;
        let mut digests = BlockDigests::new(bytes_of(self.groups_of_file()), bytes_of(GROUPS));
        let mut done = 0;
        let mut read = |field: usize, block: usize| {
            let values = rows[field].at(block * GROUPS * OCTANTS..(block + 1) * GROUPS * OCTANTS)?;
            digests.add(block, bytemuck::cast_slice(&values));
            done += 1;
            report(f64::from(done) / (rows.len() * blocks.here().len()) as f64);
            Ok(values)
        };
        blocks.distribute(communicator, fields.len(), &mut read, |field, groups, values| {
            let (array, of_group, offset) = own.values_mut(fields[field].storage);
            let array = &mut array[groups.start * of_group..groups.end * of_group];
            gamer::from_patches(values, array, of_group, offset);
        })?;
        let mut others = (fields.len()..rows.len()).flat_map(|field| blocks.here().map(move |block| (field, block)));
        collective_result(communicator, others.try_for_each(|(field, block)| read(field, block).map(drop)))?;
        let digests = digests.whole(communicator, rows.len()).unwrap_or_default();
        collective_result(communicator, rows.iter().zip(&digests).try_for_each(|(rows, digest)| rows.compare(digest)))
    }
}

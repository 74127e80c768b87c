//! A snapshot as one of several ranks has it: the whole octree, and the cells and particles below some of the root's groups.
//!
//! A snapshot in memory is the part of a rank without others, so that there is one way to look at either. Sums that go into
//! results are taken over units that no cut divides (patches, lines, planes), and added in the order of the whole.

use crate::error::AnalysisError;
use crate::messages;
use bytemuck::Pod;
use comove_sim::kernels::layout::GROUP;
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::Communicator;
use comove_sim::snapshot::{Pieces, SnapshotPart};
use comove_sim::{HostParticles, Key, Octree, Snapshot, SnapshotHeader};
use std::ops::Range;
use std::sync::Arc;

/// What a rank has of a snapshot.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// Its header, and the groups of this rank alone.
    pub snapshot: &'a Snapshot,
    /// All groups.
    pub tree: &'a Octree,
    /// Who has which, if not this rank all.
    pieces: Option<Arc<Pieces>>,
    rank: usize,
}

impl<'a> From<&'a Snapshot> for Part<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self { snapshot, tree: &snapshot.state.tree, pieces: None, rank: 0 }
    }
}

impl<'a> From<&'a SnapshotPart> for Part<'a> {
    fn from(part: &'a SnapshotPart) -> Self {
        let pieces = Some(Arc::clone(&part.pieces));
        Self { snapshot: &part.snapshot, tree: &part.tree, pieces, rank: part.rank }
    }
}

/// What a rank without others finds.
pub(crate) fn alone<R>(
    snapshot: &Snapshot,
    find: impl FnOnce(&Communicator, &Part) -> Result<Option<R>, AnalysisError>,
) -> Result<R, AnalysisError> {
    let found = find(&Communicator::alone(), &snapshot.into())?;
    Ok(found.expect("a rank without others is the first"))
}

impl<'a> Part<'a> {
    /// The same of another snapshot on the same octree.
    pub(crate) fn of(&self, snapshot: &'a Snapshot) -> Self {
        Self { snapshot, ..self.clone() }
    }

    /// What the snapshot says of itself.
    pub fn header(&self) -> &'a SnapshotHeader {
        &self.snapshot.header
    }

    /// Dark-matter particles in the groups of this rank.
    ///
    /// # Errors
    /// [`AnalysisError::MissingField`].
    pub(crate) fn particles(&self) -> Result<&'a HostParticles, AnalysisError> {
        let missing = AnalysisError::MissingField { name: "particles", reason: "its particles were not read" };
        self.snapshot.state.particles.as_ref().ok_or(missing)
    }

    /// This rank.
    pub(crate) fn rank(&self) -> usize {
        self.rank
    }

    /// The leaf patches of this rank, by the indices of their groups among its own, in key order.
    pub fn leaf_patches(&self) -> impl Iterator<Item = LeafPatch> + '_ {
        (0..self.tree.level_count()).flat_map(|level| {
            let first = self.snapshot.state.tree.first_of_level(level);
            self.tree.leaf_patches_of(level, self.groups(self.rank, level), first)
        })
    }

    /// The groups of a rank in the list of a level.
    pub(crate) fn groups(&self, rank: usize, level: usize) -> Range<usize> {
        match &self.pieces {
            Some(pieces) => pieces.range(rank, level),
            None => 0..self.tree.level(level).len(),
        }
    }

    /// The leaf patches of a level that a rank has.
    pub(crate) fn leaf_patch_count(&self, rank: usize, level: usize) -> usize {
        // all groups that refine patches of its groups are its own too
        8 * self.groups(rank, level).len() - self.groups(rank, level + 1).len()
    }

    /// The rank of a root group, by its place in key order, and of all that lies below it.
    pub(crate) fn rank_of(&self, root: usize) -> usize {
        self.pieces.as_ref().map_or(0, |pieces| pieces.rank_of(root))
    }

    /// Other ranks with root groups within `radius` (code length) of a position, across all faces of the box; may include
    /// ranks slightly further away.
    pub(crate) fn other_ranks_within(&self, position: [f64; 3], radius: f64) -> Vec<usize> {
        let mut found = Vec::new();
        let Some(pieces) = &self.pieces else { return found };
        let (groups, width) = (self.tree.root_groups().map(i64::from), self.snapshot.cell_width(0) * GROUP as f64);
        // each group once, and round-off leaves none out
        let range = |a: usize| {
            let reach = radius / width + 1e-9;
            let first = (position[a] / width - reach).floor() as i64;
            first..=((position[a] / width + reach).floor() as i64).min(first + groups[a] - 1)
        };
        for z in range(2) {
            for y in range(1) {
                for x in range(0) {
                    let at = [x, y, z];
                    let key = Key::new(0, std::array::from_fn(|a| at[a].rem_euclid(groups[a]) as u32));
                    let rank = pieces.rank_of(self.tree.find(key).expect("level 0 covers the box"));
                    if rank != self.rank && !found.contains(&rank) {
                        found.push(rank);
                    }
                }
            }
        }
        found
    }

    /// Whether this rank has a root group and all that lies below it.
    pub(crate) fn has(&self, root: usize) -> bool {
        self.groups(self.rank, 0).contains(&root)
    }

    /// The index among its own of a group that this rank has, by its place in its level's list.
    pub(crate) fn own(&self, level: usize, place: usize) -> usize {
        self.snapshot.state.tree.first_of_level(level) + place - self.groups(self.rank, level).start
    }

    /// A value for each leaf patch of every rank, on the first one in key order: collective.
    ///
    /// * `own`: in the order of [`Part::leaf_patches`]
    pub(crate) fn gather_of_patches<T: Pod>(&self, communicator: &Communicator, own: Vec<T>) -> Option<Vec<T>> {
        let mut of_ranks = messages::gather(communicator, own)?;
        if of_ranks.len() == 1 {
            return of_ranks.pop();
        }
        let mut all = Vec::with_capacity(of_ranks.iter().map(Vec::len).sum());
        let mut taken = vec![0; of_ranks.len()];
        for level in 0..self.tree.level_count() {
            for (rank, (values, taken)) in of_ranks.iter().zip(&mut taken).enumerate() {
                let end = *taken + self.leaf_patch_count(rank, level);
                all.extend_from_slice(&values[*taken..end]);
                *taken = end;
            }
        }
        Some(all)
    }
}

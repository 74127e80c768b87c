//! A part of a snapshot: its whole octree, and the fields and particles of the groups below some of the root's, which a rank
//! reads from the file by itself.

use super::contents;
use super::digest::Stored;
use super::gamer;
use super::read::StoredSnapshot;
use super::{Snapshot, SnapshotHeader};
use crate::error::SimError;
use crate::io::blocks::GROUPS;
use crate::mesh::host_state::HostState;
use crate::mesh::{Key, Octree};
use crate::parallel::collective_result::collective_result;
use crate::parallel::communicator::Communicator;
use crate::parallel::communicator::FIRST;
use crate::parameters::Precision;
use comove_kernels::Real;
use comove_kernels::layout::{GROUP_CELLS, OCTANTS};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// An octree in one piece for each rank: some neighbouring groups of the root, in key order, and all that lies below them.
/// So a piece is one range of groups on every level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Where each level's list is cut, `[levels][ranks + 1]`.
    cuts: Vec<Vec<usize>>,
}

impl Pieces {
    /// Pieces with about equally many groups; some are empty where there are more ranks than groups of the root.
    pub fn even(tree: &Octree, ranks: usize) -> Self {
        let root = tree.level(0);
        let mut groups_before = vec![0; root.len() + 1];
        for level in 0..tree.level_count() {
            // both along the Morton curve
            let mut at = 0;
            for &key in tree.level(level) {
                at += root[at..].iter().take_while(|&&group| group != root_above(key)).count();
                groups_before[at + 1] += 1;
            }
        }
        (0..root.len()).for_each(|n| groups_before[n + 1] += groups_before[n]);
        let all = groups_before[root.len()];
        let cut = |rank: usize| {
            let above = groups_before.partition_point(|&groups| groups * ranks < all * rank);
            // the nearer one of the two around an even part
            let distance = |n: usize| (groups_before[n] * ranks).abs_diff(all * rank);
            if above > 0 && distance(above - 1) < distance(above) { above - 1 } else { above }
        };
        let of_root: Vec<usize> = (0..=ranks).map(cut).collect();
        let in_level = |level: usize, cut: usize| match root.get(cut) {
            Some(&group) => tree.level(level).partition_point(|&key| root_above(key) < group),
            None => tree.level(level).len(),
        };
        let levels = 0..tree.level_count();
        Self { cuts: levels.map(|level| of_root.iter().map(|&cut| in_level(level, cut)).collect()).collect() }
    }

    /// The groups of a rank in the list of a level.
    pub fn range(&self, rank: usize, level: usize) -> Range<usize> {
        self.cuts.get(level).map_or(0..0, |cuts| cuts[rank]..cuts[rank + 1])
    }

    /// The rank of a root group, by its place in key order, and of all that lies below it.
    pub fn rank_of(&self, root: usize) -> usize {
        // of equal cuts all but the last belong to empty pieces
        self.cuts[0].partition_point(|&cut| cut <= root) - 1
    }

    /// Groups of a rank on all levels.
    pub fn group_count(&self, rank: usize) -> usize {
        (0..self.cuts.len()).map(|level| self.range(rank, level).len()).sum()
    }
}

/// The root group above a group, or itself.
fn root_above(key: Key) -> Key {
    Key::new(0, key.coordinate.map(|c| c >> key.level))
}

/// What one rank has of a snapshot.
#[derive(Clone, Debug)]
pub struct SnapshotPart {
    /// Its header, and the fields and particles of this rank's groups.
    pub snapshot: Snapshot,
    /// All groups.
    pub tree: Octree,
    /// Who has which.
    pub pieces: Arc<Pieces>,
    /// This rank.
    pub rank: usize,
}

impl SnapshotPart {
    /// Reads every rank's part of a file, which all of them see under this path, and which the first one knows to be what
    /// was written: its octree is verified once more, its fields are not. Collective.
    ///
    /// * `report`: is told the fraction of its fields that this rank has read
    ///
    /// # Errors
    /// As [`Snapshot::read`], on all ranks.
    pub fn read(communicator: &Communicator, path: &Path, report: &dyn Fn(f64)) -> Result<Self, SimError> {
        let rank = communicator.rank();
        let stored = if rank == FIRST { StoredSnapshot::open(path) } else { StoredSnapshot::open_without_tree(path) };
        let mut stored = collective_result(communicator, stored)?;
        stored.tree = shared(communicator, &stored.tree);
        let pieces = Pieces::even(&stored.tree, communicator.size());
        let ranges: Vec<_> = (0..stored.tree.level_count()).map(|level| pieces.range(rank, level)).collect();
        let snapshot = collective_result(communicator, stored.read_groups(&ranges, report))?;
        Ok(Self { snapshot, tree: stored.tree, pieces: pieces.into(), rank })
    }

    /// Bytes of its fields, its particles and the octree in memory.
    pub fn bytes(&self) -> usize {
        self.snapshot.bytes() + self.tree.group_count() * size_of::<Key>()
    }
}

/// The first rank's octree, for all; on the others its box and levels have to be right.
fn shared(communicator: &Communicator, tree: &Octree) -> Octree {
    let groups: Vec<u64> = tree.groups().iter().map(|&n| n as u64).collect();
    let groups = communicator.broadcast(FIRST, bytemuck::cast_slice(&groups).to_vec());
    let groups: Vec<u64> = bytemuck::pod_collect_to_vec(&groups);
    let keys: Vec<u64> = tree.keys().map(|key| key.morton()).collect();
    let keys = communicator.broadcast(FIRST, bytemuck::cast_slice(&keys).to_vec());
    if communicator.rank() == FIRST {
        return tree.clone();
    }
    let mut keys = bytemuck::pod_collect_to_vec::<u8, u64>(&keys).into_iter();
    let level = |(level, &n): (usize, &u64)| {
        keys.by_ref().take(n as usize).map(|position| Key::from_morton(level as u8, position)).collect()
    };
    let levels = groups.iter().enumerate().map(level).collect();
    Octree::share(tree.root_groups(), tree.periodic(), levels)
}

impl StoredSnapshot {
    /// Reads the fields and particles of some groups, given as ranges in the lists of the levels; no digest is verified.
    fn read_groups(&self, ranges: &[Range<usize>], report: &dyn Fn(f64)) -> Result<Snapshot, SimError> {
        let keys = ranges.iter().enumerate().map(|(level, range)| self.tree.level(level)[range.clone()].to_vec());
        let own = Octree::share(self.tree.root_groups(), self.tree.periodic(), keys.collect());
        let potential = vec![0.0; if self.has_potential() { own.group_count() * GROUP_CELLS } else { 0 }];
        let dark_matter = vec![0.0; if self.has_dark_matter() { own.group_count() * GROUP_CELLS } else { 0 }];
        let mut state = HostState { potential, dark_matter, ..HostState::zeros_of(own, &self.header.fields) };
        match self.precision() {
            Precision::Single => self.read_groups_as::<f32>(ranges, report, &mut state)?,
            Precision::Double => self.read_groups_as::<f64>(ranges, report, &mut state)?,
        }
        let in_key_order = |(level, range): (usize, &Range<usize>)| {
            let first = self.tree.first_of_level(level);
            first + range.start..first + range.end
        };
        let groups: Vec<_> = ranges.iter().enumerate().map(in_key_order).collect();
        state.particles = self.particles_of_groups(&groups)?;
        Ok(Snapshot { header: SnapshotHeader::clone(&self.header), state })
    }

    fn read_groups_as<T: Real + Stored + Into<f64>>(
        &self,
        ranges: &[Range<usize>],
        report: &dyn Fn(f64),
        state: &mut HostState,
    ) -> Result<(), SimError> {
        let fields = self.stored_fields();
        let all = fields.len() * state.tree.group_count();
        let mut read = 0;
        for field in fields {
            let rows = self.rows::<T>(&contents::dataset(&field))?;
            let mut own = 0;
            for (level, range) in ranges.iter().enumerate() {
                let first = self.tree.first_of_level(level);
                for start in range.clone().step_by(GROUPS) {
                    let groups = range.end.min(start + GROUPS) - start;
                    let values = rows.at((first + start) * OCTANTS..(first + start + groups) * OCTANTS)?;
                    let (array, of_group, offset) = state.values_mut(field.storage);
                    let array = &mut array[own * of_group..(own + groups) * of_group];
                    gamer::from_patches(&values, array, of_group, offset);
                    own += groups;
                    read += groups;
                    report(read as f64 / all as f64);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dark_matter::HostParticles;
    use crate::gas::fields::FieldSet;
    use crate::mesh::PERIODIC;
    use crate::parallel::on_ranks;
    use crate::parameters::Coordinates;

    fn tree() -> Octree {
        let refined = [[1, 0, 0], [1, 1, 0], [5, 2, 1], [0, 3, 2]].map(|c| Key::new(1, c));
        let finer = [[3, 0, 1], [10, 5, 3]].map(|c| Key::new(2, c));
        Octree::with_groups([3, 2, 2], PERIODIC, refined.into_iter().chain(finer))
    }

    /// Every group is in one piece, that of its root group; pieces are as even as root groups allow.
    #[test]
    fn pieces_cut_no_root_group() {
        let tree = tree();
        for ranks in [1, 2, 3, 5, 12, 40] {
            let pieces = Pieces::even(&tree, ranks);
            for level in 0..tree.level_count() {
                let mut end = 0;
                for rank in 0..ranks {
                    let range = pieces.range(rank, level);
                    assert_eq!(range.start, end);
                    end = range.end;
                    for &key in &tree.level(level)[range] {
                        assert_eq!(pieces.rank_of(tree.find(root_above(key)).unwrap()), rank, "{ranks} ranks, {key:?}");
                    }
                }
                assert_eq!(end, tree.level(level).len());
            }
            let most = (0..ranks).map(|rank| pieces.group_count(rank)).max().unwrap();
            // the largest root group has four groups with it
            assert!(most <= tree.group_count().div_ceil(ranks) + 3, "{ranks} ranks: {most}");
        }
    }

    /// Particles throughout the box of [`tree`], with shuffled identities.
    fn particles() -> HostParticles {
        let value = |n: u64, axis: u64| (n * 0x9e37_79b9 + axis * 0x85eb_ca6b).wrapping_mul(n + 7) as u32;
        let mut particles = HostParticles { particle_mass: 0.5, ..HostParticles::default() };
        for n in 0..3000 {
            (0..3).for_each(|axis| particles.position[axis].push(value(n, axis as u64)));
            (0..3).for_each(|axis| particles.velocity[axis].push(n as f32 + axis as f32));
            particles.id.push(n * 7919 % 3001);
        }
        particles
    }

    /// Each particle is in the part with the finest group around it; parts keep the order of the file.
    fn same_particles(whole: &Snapshot, parts: &[SnapshotPart]) {
        let Some(all) = &whole.state.particles else {
            assert!(parts.iter().all(|part| part.snapshot.state.particles.is_none()));
            return;
        };
        let mut found = 0;
        for part in parts {
            let own = part.snapshot.state.particles.as_ref().unwrap();
            let groups = |n: &usize| {
                let key = whole.state.tree.keys().nth(all.leaf_patch(&whole.state.tree, *n).0).unwrap();
                part.snapshot.state.tree.index(key).is_some()
            };
            let expected: Vec<usize> = (0..all.len()).filter(groups).collect();
            assert_eq!(own.id, expected.iter().map(|&n| all.id[n]).collect::<Vec<u64>>());
            for axis in 0..3 {
                let [position, velocity] = [0, 1].map(|_| expected.iter().copied());
                assert_eq!(own.position[axis], position.map(|n| all.position[axis][n]).collect::<Vec<u32>>());
                assert_eq!(own.velocity[axis], velocity.map(|n| all.velocity[axis][n]).collect::<Vec<f32>>());
            }
            found += own.len();
        }
        assert_eq!(found, all.len());
    }

    /// The parts of a file together are its snapshot, whatever the number of ranks; what is wrong is said on all.
    #[test]
    fn parts_are_the_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.h5");
        for (precision, with_potential) in [(Precision::Single, true), (Precision::Double, false)] {
            let mut state = HostState::zeros(tree());
            state.fluid.iter_mut().enumerate().for_each(|(n, value)| *value = n as f64);
            let cells = if with_potential { state.tree.group_count() * GROUP_CELLS } else { 0 };
            state.potential = (0..cells).map(|n| -(n as f64)).collect();
            let mut header = SnapshotHeader { precision, ..SnapshotHeader::initial(Coordinates::Plain) };
            if with_potential {
                header.fields = FieldSet::with_scalars(["metals"]).unwrap();
                state.scalars = vec![(0..cells).map(|n| 0.5 * n as f64).collect()];
            }
            if with_potential {
                let particles = particles().in_file_order(&state.tree);
                header.dark_matter = Some(particles.header());
                state.particles = Some(particles);
                state.dark_matter = (0..cells).map(|n| 0.25 * n as f64).collect();
            }
            let whole = Snapshot { header, state };
            whole.write(&path).unwrap();
            for ranks in [1, 2, 3, 5, 17] {
                let parts = on_ranks(ranks, |communicator| SnapshotPart::read(&communicator, &path, &|_| ()).unwrap());
                for part in &parts {
                    assert_eq!((&part.tree, &part.snapshot.header), (&whole.state.tree, &whole.header));
                    for (own, key) in part.snapshot.state.tree.keys().enumerate() {
                        let group = whole.state.tree.index(key).unwrap();
                        assert_eq!(part.snapshot.state.group(own), whole.state.group(group));
                        assert_eq!(part.snapshot.state.potential(own), whole.state.potential(group));
                        let scalar = |state: &HostState, group: usize| {
                            state
                                .scalars
                                .iter()
                                .map(|s| s[group * GROUP_CELLS..][..GROUP_CELLS].to_vec())
                                .collect::<Vec<_>>()
                        };
                        assert_eq!(scalar(&part.snapshot.state, own), scalar(&whole.state, group));
                        let dark_matter = |state: &HostState, group: usize| {
                            state.dark_matter.get(group * GROUP_CELLS..(group + 1) * GROUP_CELLS).map(<[f64]>::to_vec)
                        };
                        assert_eq!(dark_matter(&part.snapshot.state, own), dark_matter(&whole.state, group));
                    }
                }
                same_particles(&whole, &parts);
                let groups: usize = parts.iter().map(|part| part.snapshot.state.tree.group_count()).sum();
                assert_eq!(groups, whole.state.tree.group_count());
            }
        }
        let nowhere = folder.path().join("y.h5");
        let errors = on_ranks(2, |communicator| SnapshotPart::read(&communicator, &nowhere, &|_| ()).unwrap_err());
        assert!(errors.iter().all(|error| error.to_string().contains("y.h5")), "{errors:?}");
    }
}

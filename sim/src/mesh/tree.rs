//! The octree as sorted key lists.

use crate::mesh::key::Key;
use comove_kernels::layout::{GROUP, GROUP_CELLS, OCTANTS, PATCH, octant_origin};
use rayon::prelude::*;
use std::ops::Range;

/// A box that is periodic along all axes.
pub const PERIODIC: [bool; 3] = [true; 3];
/// A box that is periodic along none.
pub const CLOSED: [bool; 3] = [false; 3];

/// The octant (bit 0 x, bit 1 y, bit 2 z) of each patch of a group in the order of files, GAMER's; the table is its own
/// inverse.
pub(crate) const OCTANT_OF_ROW: [usize; OCTANTS] = [0, 1, 2, 4, 3, 6, 5, 7];

/// The groups of every level, sorted by key. Level 0 covers the box; a finer group exists if and only if the patch it
/// refines is not a leaf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Octree {
    /// Groups along each axis of the root level.
    root: [u32; 3],
    periodic: [bool; 3],
    levels: Vec<Vec<Key>>,
}

impl Octree {
    /// The root level alone: `root` groups along each axis, in a box that is periodic along some.
    pub fn new(root: [u32; 3], periodic: [bool; 3]) -> Self {
        let mut keys: Vec<Key> = (0..root[2])
            .flat_map(|z| (0..root[1]).flat_map(move |y| (0..root[0]).map(move |x| Key::new(0, [x, y, z]))))
            .collect();
        keys.sort_unstable();
        Self { root, periodic, levels: vec![keys] }
    }

    /// A share of a tree: some groups of it, level by level in key order, with the levels that the tree has.
    pub fn share(root: [u32; 3], periodic: [bool; 3], levels: Vec<Vec<Key>>) -> Self {
        Self { root, periodic, levels }
    }

    /// A tree with these refined groups, in any order; empty levels at the end are dropped.
    ///
    /// # Panics
    /// If a group's parent is missing or a group is outside the box: the caller's bug.
    pub fn with_groups(root: [u32; 3], periodic: [bool; 3], refined: impl IntoIterator<Item = Key>) -> Self {
        let mut tree = Self::new(root, periodic);
        for key in refined {
            let level = usize::from(key.level);
            assert!(level > 0, "level 0 is always complete");
            if tree.levels.len() <= level {
                tree.levels.resize(level + 1, Vec::new());
            }
            tree.levels[level].push(key);
        }
        for level in 1..tree.levels.len() {
            tree.levels[level].sort_unstable();
            tree.levels[level].dedup();
        }
        tree.checked()
    }

    /// The tree with the same root and these groups of the finer levels, each in key order; empty levels at the end are
    /// dropped.
    ///
    /// # Panics
    /// As [`Octree::with_groups`].
    #[must_use]
    pub fn with_finer(&self, finer: impl IntoIterator<Item = Vec<Key>>) -> Self {
        let levels = std::iter::once(self.levels[0].clone()).chain(finer).collect();
        Self { levels, ..*self }.checked()
    }

    /// Without empty levels at the end, if every group has its parent.
    fn checked(mut self) -> Self {
        while self.levels.last().is_some_and(Vec::is_empty) {
            self.levels.pop();
        }
        self.levels.par_windows(2).for_each(|pair| {
            // both along the Morton curve: one walk finds all parents
            let mut coarser = pair[0].iter().peekable();
            for key in &pair[1] {
                let parent = key.parent().expect("a refined level has parents");
                while coarser.next_if(|&&group| group < parent).is_some() {}
                assert!(coarser.peek() == Some(&&parent), "{key:?} has no parent");
            }
        });
        self
    }

    /// The tree without the levels above `finest`.
    #[must_use]
    pub fn without_finer(&self, finest: u8) -> Self {
        let levels = self.levels.iter().take(usize::from(finest) + 1).cloned().collect();
        Self { levels, ..*self }
    }

    /// Groups along each axis of the root level.
    pub fn root_groups(&self) -> [u32; 3] {
        self.root
    }

    /// Whether the root level is all here, and not only a rank's part of it.
    pub fn is_whole(&self) -> bool {
        self.level(0).len() == self.root.into_iter().map(|n| n as usize).product::<usize>()
    }

    /// Cells along each axis of level `level`, were it complete.
    pub fn cells(&self, level: usize) -> [usize; 3] {
        self.root.map(|n| (n as usize * GROUP) << level)
    }

    /// Along which axes the box is periodic.
    pub fn periodic(&self) -> [bool; 3] {
        self.periodic
    }

    /// Levels that have groups.
    pub fn level_count(&self) -> usize {
        self.levels.len()
    }

    /// The sorted keys of a level; empty above the finest.
    pub fn level(&self, level: usize) -> &[Key] {
        self.levels.get(level).map_or(&[], Vec::as_slice)
    }

    /// All keys in key order: level by level, each along its Morton curve.
    pub fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.levels.iter().flatten().copied()
    }

    /// Groups of all levels.
    pub fn group_count(&self) -> usize {
        self.levels.iter().map(Vec::len).sum()
    }

    /// Number of groups on the levels coarser than `level`: where its groups start in key order.
    pub fn first_of_level(&self, level: usize) -> usize {
        self.levels.iter().take(level).map(Vec::len).sum()
    }

    /// Where a group stands in its level's list.
    pub fn find(&self, key: Key) -> Option<usize> {
        self.level(usize::from(key.level)).binary_search(&key).ok()
    }

    /// Where a group stands in key order over all levels.
    pub fn index(&self, key: Key) -> Option<usize> {
        self.find(key).map(|i| self.first_of_level(usize::from(key.level)) + i)
    }

    /// Bit o is set where the patch at octant o of `key` is a leaf.
    pub fn leaves(&self, key: Key) -> u8 {
        (0..OCTANTS).filter(|&o| self.find(key.child(o)).is_none()).fold(0, |mask, o| mask | 1 << o)
    }

    /// The group `offset` groups away at the same level, wrapped around along periodic axes; `None` beyond other faces.
    /// The group need not exist in the tree.
    pub fn neighbour(&self, key: Key, offset: [i32; 3]) -> Option<Key> {
        let mut coordinate = [0; 3];
        for axis in 0..3 {
            let n = i64::from(self.root[axis]) << key.level;
            let c = i64::from(key.coordinate[axis]) + i64::from(offset[axis]);
            if !self.periodic[axis] && !(0..n).contains(&c) {
                return None;
            }
            // most stay inside, and a remainder takes long
            coordinate[axis] = if (0..n).contains(&c) { c } else { c.rem_euclid(n) } as u32;
        }
        Some(Key::new(key.level, coordinate))
    }

    /// Leaf cells of each level.
    pub fn leaf_cells(&self) -> Vec<u64> {
        leaf_cells(&self.groups())
    }

    /// Groups of each level.
    pub fn groups(&self) -> Vec<usize> {
        self.levels.iter().map(Vec::len).collect()
    }

    /// The fraction of the box that each level covers (leaf or not); 1 for level 0.
    pub fn volume_fractions(&self) -> Vec<f64> {
        volume_fractions(self.root, &self.groups())
    }

    /// Every leaf patch: index of its group in key order, octant, level, and its first cell on the level's lattice.
    pub fn leaf_patches(&self) -> impl Iterator<Item = LeafPatch> + '_ {
        (0..self.level_count())
            .flat_map(move |level| self.leaf_patches_of(level, 0..self.level(level).len(), self.first_of_level(level)))
    }

    /// The leaf patches of some groups of a level, the first of which has the index `first` in some array.
    pub fn leaf_patches_of(
        &self,
        level: usize,
        groups: Range<usize>,
        first: usize,
    ) -> impl Iterator<Item = LeafPatch> + '_ {
        (first..).zip(&self.level(level)[groups]).flat_map(move |(group, &key)| {
            let leaves = self.leaves(key);
            (0..OCTANTS).filter(move |o| leaves >> o & 1 == 1).map(move |octant| {
                let origin = octant_origin(octant);
                let first_cell = std::array::from_fn(|a| key.coordinate[a] as usize * GROUP + origin[a]);
                LeafPatch { group, octant, level, first_cell }
            })
        })
    }
}

/// Leaf cells of each level of a tree with so many groups on each.
pub(crate) fn leaf_cells(groups: &[usize]) -> Vec<u64> {
    let refined = |level: usize| groups.get(level + 1).map_or(0, |&finer| finer * (PATCH * PATCH * PATCH));
    groups.iter().enumerate().map(|(level, &n)| (n * GROUP_CELLS - refined(level)) as u64).collect()
}

/// The fraction of a box of so many root groups that each level covers, by its number of groups.
pub(crate) fn volume_fractions(root: [u32; 3], groups: &[usize]) -> Vec<f64> {
    let volume = |level: usize| root.map(|n| f64::from(n) * f64::from(1u32 << level)).into_iter().product::<f64>();
    groups.iter().enumerate().map(|(level, &n)| n as f64 / volume(level)).collect()
}

/// A patch without children, as [`Octree::leaf_patches`] gives it.
#[derive(Clone, Copy, Debug)]
pub struct LeafPatch {
    /// Index of its group in key order: the first index of a [`crate::HostState`] array.
    pub group: usize,
    /// Which octant of its group.
    pub octant: usize,
    /// Its level.
    pub level: usize,
    /// Its first cell on the level's lattice.
    pub first_cell: [usize; 3],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_tile_the_box_once() {
        let refined = [Key::new(1, [0, 0, 0]), Key::new(1, [1, 0, 0]), Key::new(2, [1, 1, 0])];
        let tree = Octree::with_groups([2, 1, 1], PERIODIC, refined);
        let volume: f64 = tree.leaf_cells().iter().enumerate().map(|(l, n)| *n as f64 / 8f64.powi(l as i32)).sum();
        assert_eq!(volume, 2.0 * 4096.0);
        assert_eq!(tree.leaf_patches().count() * 512, tree.leaf_cells().iter().sum::<u64>() as usize);
        assert_eq!(tree.leaves(Key::new(0, [0, 0, 0])), 0b1111_1100);
        assert_eq!(tree.neighbour(Key::new(1, [0, 0, 0]), [-1, 0, 0]), Some(Key::new(1, [3, 0, 0])));
    }
}

//! The order of patches and cells in the file: GAMER's.
//!
//! A row of a `/Tree` or `/GridData` array is a patch of 8³ cells; row numbers are patch identities (GID). Rows run
//! level by level; every eight rows are the patches of one group, the groups of a level in key order. Inside a group
//! the patches are *not* in Morton order. Cells of a patch are `[z, y, x]`, x fastest.

use crate::dark_matter::HostParticles;
use crate::error::SimError;
use crate::mesh::{CLOSED, Key, OCTANT_OF_ROW, Octree, PERIODIC};
use comove_kernels::layout::{GROUP, GROUP_CELLS, OCTANTS, PATCH, cell, octant_origin};
use rayon::prelude::*;
use serde::{Deserialize, Deserializer, Serialize};

/// Length of the per-level arrays, and the most levels a file can hold. Corners count cells of the finest of these.
pub(super) const LEVELS: usize = 16;

/// Groups per axis that keys can count (see [`Key`]).
const MAX_GROUPS: u64 = 1 << 21;

/// What `/Tree/Corner` does not say of an octree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct TreeShape {
    /// Groups of the root level along x, y, z.
    pub(super) root_groups: [u32; 3],
    /// Along which axes the box is periodic.
    #[serde(alias = "boundary", deserialize_with = "periodic")]
    pub(super) periodic: [bool; 3],
    /// Groups of each level, none of them 0.
    pub(super) groups: Vec<usize>,
}

impl TreeShape {
    /// The shape of a tree.
    pub(super) fn of(tree: &Octree) -> Self {
        let groups = (0..tree.level_count()).map(|level| tree.level(level).len()).collect();
        Self { root_groups: tree.root_groups(), periodic: tree.periodic(), groups }
    }

    /// Checks that the file's 32-bit corners and its per-level arrays can hold the tree.
    ///
    /// # Errors
    /// [`SimError::Parameter`] with the limit.
    pub(super) fn check(&self) -> Result<(), SimError> {
        let error = |name, value: String, reason: String| Err(SimError::Parameter { name, value, reason });
        let levels = self.groups.len();
        if levels == 0 || levels > LEVELS || self.groups.contains(&0) {
            return error("levels", format!("{:?}", self.groups), format!("a snapshot holds 1 to {LEVELS} levels"));
        }
        let widest = u64::from(self.root_groups.into_iter().max().unwrap_or(0));
        let corner_limit = (i32::MAX as u64 / GROUP as u64) >> (LEVELS - 1);
        if self.root_groups.contains(&0) || widest > corner_limit || widest << (levels - 1) > MAX_GROUPS {
            let limit = corner_limit.min(MAX_GROUPS >> (levels - 1)) * GROUP as u64;
            let reason = format!("with {levels} levels a snapshot holds 16 to {limit} root cells along each axis");
            return error("root cells", format!("{:?}", self.root_groups.map(|n| u64::from(n) * 16)), reason);
        }
        let patches = self.groups.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
        if patches.and_then(|n| n.checked_mul(OCTANTS)).is_none_or(|n| n > i32::MAX as usize) {
            return error("patches", format!("{:?}", self.groups), "a snapshot holds at most 2³¹ patches".into());
        }
        Ok(())
    }

    /// Groups of all levels.
    pub(super) fn group_count(&self) -> usize {
        self.groups.iter().sum()
    }
}

/// The axes, or the name of the boundary on all faces that format 1 has there.
fn periodic<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[bool; 3], D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Named {
        Periodic,
        Outflow,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Axes([bool; 3]),
        All(Named),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Axes(axes) => axes,
        Either::All(Named::Periodic) => PERIODIC,
        Either::All(Named::Outflow) => CLOSED,
    })
}

/// Cells of the finest countable level along a cell of `level`.
pub(super) fn cell_scale(level: usize) -> i32 {
    1 << (LEVELS - 1 - level)
}

/// Lower corner of a group's patch in file order, in cells of the finest countable level.
fn patch_corner(key: Key, row: usize) -> [i32; 3] {
    let origin = octant_origin(OCTANT_OF_ROW[row]);
    let scale = cell_scale(usize::from(key.level));
    std::array::from_fn(|axis| (key.coordinate[axis] as i32 * GROUP as i32 + origin[axis] as i32) * scale)
}

/// The part of `/Tree/Corner` of some groups, `[patches, 3]`: lower corners (x, y, z) in cells of the finest countable
/// level.
pub(super) fn corners(groups: impl Iterator<Item = Key>) -> Vec<i32> {
    groups.flat_map(|key| (0..OCTANTS).flat_map(move |row| patch_corner(key, row))).collect()
}

/// The part of `/Tree/Son` of some groups of a tree, `[patches]`: the first row of the group that refines each patch, −1
/// for leaves.
pub(super) fn sons(tree: &Octree, groups: impl Iterator<Item = Key>) -> Vec<i32> {
    let son = |key: Key, row: usize| {
        let child = tree.index(key.child(OCTANT_OF_ROW[row]));
        child.map_or(-1, |group| (group * OCTANTS) as i32)
    };
    groups.flat_map(|key| (0..OCTANTS).map(move |row| (key, row))).map(|(key, row)| son(key, row)).collect()
}

/// The octree of a file's corners, as they are read.
pub(super) struct TreeReader<'a> {
    /// Checked.
    shape: &'a TreeShape,
    /// What has been read: the last level may be incomplete.
    levels: Vec<Vec<Key>>,
}

impl<'a> TreeReader<'a> {
    pub(super) fn new(shape: &'a TreeShape) -> Self {
        Self { shape, levels: vec![Vec::new()] }
    }

    /// Takes the corners of the groups that come next, `[patches, 3]`; all together are as many as the shape says.
    ///
    /// # Errors
    /// What is wrong with the first row that is not where a tree has it.
    pub(super) fn take(&mut self, corners: &[i32]) -> Result<(), String> {
        let (rows, _) = corners.as_chunks::<3>();
        for patches in rows.chunks_exact(OCTANTS) {
            if self.levels[self.levels.len() - 1].len() == self.shape.groups[self.levels.len() - 1] {
                self.levels.push(Vec::new());
            }
            let level = self.levels.len() - 1;
            let key = key_at(self.shape, level, patches)?;
            if self.levels[level].last().is_some_and(|last| *last >= key) {
                return Err(format!("{key:?} is out of order"));
            }
            let parent = key.parent();
            if parent.is_some_and(|parent| self.levels[level - 1].binary_search(&parent).is_err()) {
                return Err(format!("{key:?} has no parent"));
            }
            self.levels[level].push(key);
        }
        Ok(())
    }

    /// The octree of all of them.
    ///
    /// # Errors
    /// That its root is incomplete.
    pub(super) fn tree(self) -> Result<Octree, String> {
        let Self { shape: TreeShape { root_groups, periodic, .. }, levels } = self;
        // Distinct keys inside the box: level 0 is complete if it has enough of them.
        let root: u64 = root_groups.iter().map(|&n| u64::from(n)).product();
        if levels[0].len() as u64 != root {
            return Err(format!("level 0 has {} groups instead of {root}", levels[0].len()));
        }
        Ok(Octree::share(*root_groups, *periodic, levels))
    }
}

/// The group whose patches have these corners.
fn key_at(shape: &TreeShape, level: usize, patches: &[[i32; 3]]) -> Result<Key, String> {
    let width = GROUP as i32 * cell_scale(level);
    let wrong = || format!("no group of level {level} has its first corner at {:?}", patches[0]);
    let mut coordinate = [0; 3];
    for axis in 0..3 {
        coordinate[axis] = u32::try_from(patches[0][axis] / width).map_err(|_| wrong())?;
        if u64::from(coordinate[axis]) >= u64::from(shape.root_groups[axis]) << level {
            return Err(wrong());
        }
    }
    let key = Key::new(level as u8, coordinate);
    match patches.iter().enumerate().find(|&(row, corner)| *corner != patch_corner(key, row)) {
        None => Ok(key),
        Some((row, corner)) => Err(format!("patch {row} of {key:?} has its corner at {corner:?}")),
    }
}

/// How many particles each patch of a tree has, `[patches]`.
///
/// # Panics
/// If they are not in the order of the file: the caller's bug.
pub(super) fn particle_counts(particles: &HostParticles, tree: &Octree) -> Vec<i32> {
    let row = |n: usize| {
        let (group, octant) = particles.leaf_patch(tree, n);
        group * OCTANTS + OCTANT_OF_ROW[octant]
    };
    let rows: Vec<usize> = (0..particles.len()).into_par_iter().map(row).collect();
    assert!(rows.is_sorted(), "particles in the order of the file");
    let mut counts = vec![0; tree.group_count() * OCTANTS];
    rows.into_iter().for_each(|row| counts[row] += 1);
    counts
}

/// Where each line of eight cells along x begins: in a group's eight file rows, and in the group.
fn lines() -> impl Iterator<Item = (usize, usize)> {
    (0..GROUP_CELLS / PATCH).map(|line| {
        let [x, y, z] = octant_origin(OCTANT_OF_ROW[line / (PATCH * PATCH)]);
        (line * PATCH, cell(x, y + line % PATCH, z + line / PATCH % PATCH))
    })
}

/// Fills `rows` with a field in file order, `[patches, 8, 8, 8]`, from its value at (group, cell of the group).
pub(super) fn to_patches<T, F>(rows: &mut [T], value: F)
where
    T: Copy + Send,
    F: Fn(usize, usize) -> T + Sync,
{
    rows.par_chunks_exact_mut(GROUP_CELLS).enumerate().for_each(|(group, rows)| {
        for (row, first) in lines() {
            for i in 0..PATCH {
                rows[row + i] = value(group, first + i);
            }
        }
    });
}

/// Puts a field in file order, `[patches, 8, 8, 8]`, into an array of groups, `[groups, values]`, at `offset` of each.
pub(super) fn from_patches<T>(rows: &[T], groups: &mut [f64], values: usize, offset: usize)
where
    T: Copy + Into<f64> + Sync,
{
    groups.par_chunks_exact_mut(values).zip(rows.par_chunks_exact(GROUP_CELLS)).for_each(|(group, rows)| {
        let field = &mut group[offset..offset + GROUP_CELLS];
        for (row, first) in lines() {
            for i in 0..PATCH {
                field[first + i] = rows[row + i].into();
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three_levels() -> Octree {
        let refined = [Key::new(1, [1, 0, 0]), Key::new(1, [0, 1, 0]), Key::new(1, [3, 1, 5]), Key::new(2, [7, 2, 11])];
        Octree::with_groups([2, 1, 3], CLOSED, refined)
    }

    #[test]
    fn tree_comes_back_from_its_corners() {
        let tree = three_levels();
        let shape = TreeShape::of(&tree);
        shape.check().unwrap();
        for groups in [1, 3, 5, 100] {
            assert_eq!(read_back(&shape, &corners(tree.keys()), groups).unwrap(), tree);
        }
    }

    /// The tree of corners that come so many groups at a time.
    fn read_back(shape: &TreeShape, corners: &[i32], groups: usize) -> Result<Octree, String> {
        let mut reader = TreeReader::new(shape);
        corners.chunks(3 * OCTANTS * groups).try_for_each(|corners| reader.take(corners))?;
        reader.tree()
    }

    /// A patch's son is the group whose first corner is the patch's own.
    #[test]
    fn sons_begin_where_their_parents_do() {
        let tree = three_levels();
        let (corners, sons) = (corners(tree.keys()), sons(&tree, tree.keys()));
        let corner = |row: usize| &corners[3 * row..3 * row + 3];
        let refined: Vec<usize> = (0..sons.len()).filter(|&row| sons[row] >= 0).collect();
        assert_eq!(refined.len(), 4);
        assert!(refined.iter().all(|&row| corner(row) == corner(sons[row] as usize)));
    }

    /// Every single corner that is moved is found, and no corner brings a panic.
    #[test]
    fn moved_corners_are_refused() {
        let tree = three_levels();
        let (shape, corners) = (TreeShape::of(&tree), corners(tree.keys()));
        for i in 0..corners.len() {
            for value in [-1, 1, i32::MAX, i32::MIN, corners[i] + PATCH as i32 * cell_scale(0)] {
                let mut moved = corners.clone();
                moved[i] = if value == moved[i] { value + 1 } else { value };
                assert!(read_back(&shape, &moved, 4).is_err(), "corner {i} = {value}");
            }
        }
    }

    #[test]
    fn shapes_that_no_file_holds_are_refused() {
        let shape =
            |root_groups, groups: &[usize]| TreeShape { root_groups, periodic: PERIODIC, groups: groups.to_vec() };
        assert!(shape([1, 1, 1], &[1; 16]).check().is_ok());
        for wrong in [
            shape([1, 1, 1], &[1; 17]),
            shape([1, 1, 1], &[]),
            shape([1, 1, 1], &[1, 0, 1]),
            shape([0, 1, 1], &[1]),
            shape([4096, 1, 1], &[4096]),
            shape([256, 1, 1], &[256; 16]),
            shape([1, 1, 1], &[usize::MAX, usize::MAX]),
            shape([1, 1, 1], &[1 << 28]),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn cells_come_back_from_patches() {
        let mut rows = vec![0f32; 2 * GROUP_CELLS];
        to_patches(&mut rows, |group, cell| (group * GROUP_CELLS + cell) as f32);
        const PATCH_CELLS: usize = PATCH * PATCH * PATCH;
        // second patch of a group in the file: x from 8; fourth: z from 8
        assert_eq!(rows[PATCH_CELLS], cell(8, 0, 0) as f32);
        assert_eq!(rows[3 * PATCH_CELLS + 1], cell(1, 0, 8) as f32);
        let mut groups = vec![0.0; 2 * (GROUP_CELLS + 3)];
        from_patches(&rows, &mut groups, GROUP_CELLS + 3, 3);
        assert!((0..GROUP_CELLS).all(|c| groups[GROUP_CELLS + 6 + c] == (GROUP_CELLS + c) as f64));
    }
}

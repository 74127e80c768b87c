//! The identity of a patch group.

use comove_kernels::layout::GROUP;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::hash::{Hash, Hasher};

/// A patch group's identity: its level and its integer coordinate, which counts groups (16 cells) along each axis.
///
/// At level ℓ, group (i, j, k) covers cells 16i … 16i+15 and so on. The child of octant `o` is group `2c + o` at level
/// ℓ+1, so parents, children and neighbours follow by arithmetic. Keys sort by level, then along the Morton curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// Refinement level, 0 for the root.
    pub level: u8,
    /// Group coordinate along x, y, z; each below 2²¹.
    pub coordinate: [u32; 3],
}

/// Keys that one thread converts sooner than several.
const FEW: usize = 4096;

impl Key {
    /// The group at `coordinate` of `level`.
    pub const fn new(level: u8, coordinate: [u32; 3]) -> Self {
        Self { level, coordinate }
    }

    /// Position along the Morton curve of the level: the bits of the coordinates interleaved, x lowest.
    pub fn morton(&self) -> u64 {
        let [x, y, z] = self.coordinate.map(spread);
        x | y << 1 | z << 2
    }

    /// The group of `level` at a position along its Morton curve: the inverse of [`Key::morton`].
    pub fn from_morton(level: u8, position: u64) -> Self {
        Self { level, coordinate: [gather(position), gather(position >> 1), gather(position >> 2)] }
    }

    /// Groups of `level` in key order, each once.
    pub fn sorted(level: u8, groups: &[Self]) -> Vec<Self> {
        // positions compare faster than keys
        let mut positions: Vec<u64> = groups.par_iter().with_min_len(FEW).map(Self::morton).collect();
        positions.par_sort_unstable();
        positions.dedup();
        positions.par_iter().with_min_len(FEW).map(|&position| Self::from_morton(level, position)).collect()
    }

    /// The group that contains this group's region one level coarser; `None` on the root.
    pub fn parent(&self) -> Option<Self> {
        let level = self.level.checked_sub(1)?;
        Some(Self { level, coordinate: self.coordinate.map(|c| c / 2) })
    }

    /// Which octant (bit 0 x, bit 1 y, bit 2 z) of its parent this group is.
    pub fn octant(&self) -> usize {
        let [x, y, z] = self.coordinate;
        (x & 1 | (y & 1) << 1 | (z & 1) << 2) as usize
    }

    /// The group that refines the patch at octant `o`.
    pub fn child(&self, o: usize) -> Self {
        let o = o as u32;
        let [x, y, z] = self.coordinate;
        Self { level: self.level + 1, coordinate: [2 * x + (o & 1), 2 * y + (o >> 1 & 1), 2 * z + (o >> 2 & 1)] }
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        // along the curve the axis decides whose coordinates differ in the highest bit, of equal ones the last
        let differing = |axis: usize| self.coordinate[axis] ^ other.coordinate[axis];
        let lower = |a: u32, b: u32| a < b && a < a ^ b;
        let mut axis = 2;
        for earlier in [1, 0] {
            if lower(differing(axis), differing(earlier)) {
                axis = earlier;
            }
        }
        (self.level, self.coordinate[axis]).cmp(&(other.level, other.coordinate[axis]))
    }
}

/// In one number, as regrids look up many keys; the level is where the coordinates of those that there are have no bits.
impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [x, y, z] = self.coordinate.map(u64::from);
        state.write_u64(u64::from(self.level) << 59 ^ x << 40 ^ y << 20 ^ z);
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Two zero bits between each two of the lowest 21 bits.
fn spread(c: u32) -> u64 {
    let mut x = u64::from(c) & 0x1f_ffff;
    x = (x | x << 32) & 0x001f_0000_0000_ffff;
    x = (x | x << 16) & 0x001f_0000_ff00_00ff;
    x = (x | x << 8) & 0x100f_00f0_0f00_f00f;
    x = (x | x << 4) & 0x10c3_0c30_c30c_30c3;
    (x | x << 2) & 0x1249_2492_4924_9249
}

/// Every third bit, from the lowest: the inverse of [`spread`].
fn gather(position: u64) -> u32 {
    let mut x = position & 0x1249_2492_4924_9249;
    x = (x | x >> 2) & 0x10c3_0c30_c30c_30c3;
    x = (x | x >> 4) & 0x100f_00f0_0f00_f00f;
    x = (x | x >> 8) & 0x001f_0000_ff00_00ff;
    x = (x | x >> 16) & 0x001f_0000_0000_ffff;
    ((x | x >> 32) & 0x1f_ffff) as u32
}

/// A cell of the octree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellPlace {
    /// Level.
    pub level: u8,
    /// Cell on the level's lattice.
    pub cell: [usize; 3],
}

impl CellPlace {
    /// The group that it is in.
    pub fn group(&self) -> Key {
        Key::new(self.level, self.cell.map(|c| (c / GROUP) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn child_and_parent_are_inverse(x in 0u32..1 << 20, y in 0u32..1 << 20, z in 0u32..1 << 20, o in 0usize..8) {
            let key = Key::new(3, [x, y, z]);
            prop_assert_eq!(key.child(o).parent(), Some(key));
            prop_assert_eq!(key.child(o).octant(), o);
            prop_assert_eq!(key.child(o).morton(), key.morton() * 8 + o as u64);
            prop_assert_eq!(Key::from_morton(3, key.morton()), key);
            for other in [Key::new(3, [y, x, z]), Key::new(3, [x ^ 5, y, z >> 1]), key, Key::new(2, [z, y, x])] {
                prop_assert_eq!(key.cmp(&other), (3, key.morton()).cmp(&(other.level, other.morton())));
            }
        }
    }
}

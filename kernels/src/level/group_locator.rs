//! Finds the group at a place of the box: what particles, which move through all levels, look up.

use crate::device::device_table::DeviceTable;
use crate::layout::{GROUP, OCTANTS};
use crate::level::level_topology::NONE;

/// An octree as a walk from the root to a group. Slots that are not here are [`NONE`].
///
/// With several ranks the walk also passes through groups that have no slot here. They have numbers from `slots` on in place of
/// one; a root group that this rank does not know of is one of them. Own groups are numbered from 1, and each level has one
/// number behind its own groups, for particles that [`crate::particles::sort`] leaves on it; all groups of other ranks have
/// number 0.
#[derive(Clone, Debug, Default)]
pub struct GroupLocator {
    /// Groups of the root level along x, y, z.
    pub root: [u32; 3],
    /// Where slots of the pools end.
    pub slots: u32,
    /// Slot of each root group, `[z, y, x]`.
    pub root_slots: DeviceTable<u32>,
    /// Slots of the groups that refine the eight patches of the group in each slot, `[slots, 8]`.
    pub children: DeviceTable<u32>,
    /// The number of the group in each slot, counted level by level in key order.
    pub numbers: DeviceTable<u32>,
    /// The number of each level's first group, and of the groups in all.
    pub first: DeviceTable<u32>,
}

impl GroupLocator {
    /// Levels that have groups.
    pub fn levels(&self) -> usize {
        self.first.len() - 1
    }

    /// Groups of all levels.
    pub fn groups(&self) -> usize {
        self.first[self.levels()] as usize
    }

    /// Bytes that its own tables take on a device, but for the few of the levels.
    pub fn bytes(&self) -> usize {
        self.children.bytes() + self.numbers.bytes()
    }

    /// The same with so many slots, and groups without a slot.
    pub fn bytes_for(slots: usize) -> usize {
        slots * (OCTANTS + 1) * size_of::<u32>()
    }

    /// Whether another rank owns the group in a slot, or of a number that [`GroupLocator::finest`] gives in place of one.
    #[inline(always)]
    pub fn is_foreign(&self, slot: u32) -> bool {
        self.numbers[slot as usize] == 0
    }

    /// Cells of a level along each axis, were it complete.
    #[inline(always)]
    pub(crate) fn cells(&self, level: usize) -> [u32; 3] {
        self.root.map(|n| (n * GROUP as u32) << level)
    }

    /// The slot of a group of a level by its coordinate.
    #[inline(always)]
    pub(crate) fn slot(&self, level: usize, group: [u32; 3]) -> u32 {
        let [x, y, z] = group.map(|c| c >> level);
        let mut slot = self.root_slots[((z * self.root[1] + y) * self.root[0] + x) as usize];
        for finer in (0..level).rev() {
            if slot == NONE {
                break;
            }
            let [x, y, z] = group.map(|c| c >> finer & 1);
            slot = self.children[slot as usize * OCTANTS + (x | y << 1 | z << 2) as usize];
        }
        if slot < self.slots { slot } else { NONE }
    }

    /// Slot and level of the finest group, of levels up to `most`, that contains a position (fractions of the box in 2⁻³²).
    #[inline(always)]
    pub fn finest(&self, position: [u32; 3], most: usize) -> (u32, usize) {
        // the position in root groups, in units of 2⁻³²
        let at = [0, 1, 2].map(|a| u64::from(position[a]) * u64::from(self.root[a]));
        let [x, y, z] = at.map(|x| (x >> 32) as u32);
        let mut slot = self.root_slots[((z * self.root[1] + y) * self.root[0] + x) as usize];
        for level in 0..most {
            let [x, y, z] = at.map(|x| (x >> (31 - level)) as usize & 1);
            let child = self.children[slot as usize * OCTANTS + (x | y << 1 | z << 2)];
            if child == NONE {
                return (slot, level);
            }
            slot = child;
        }
        (slot, most)
    }

    /// The part of the finest group that contains a position.
    pub(crate) fn leaf(&self, position: [u32; 3]) -> Leaf {
        let (slot, level) = self.finest(position, self.levels() - 1);
        let refined = (0..OCTANTS).filter(|o| self.children[slot as usize * OCTANTS + o] != NONE);
        let mut leaf = Leaf {
            slot,
            root: self.root.map(u64::from),
            shift: 31 - level as u32,
            first: [0; 3],
            refined: refined.fold(0, |refined, octant| refined | 1 << octant),
        };
        leaf.first = leaf.patch(position).map(|c| c & !1);
        leaf
    }
}

/// The patches of a group that are not refined: the group that particles there are at home in.
#[derive(Clone, Copy)]
pub(crate) struct Leaf {
    /// The group's slot.
    pub(crate) slot: u32,
    root: [u64; 3],
    /// From positions times `root` to patches of the level.
    shift: u32,
    /// Its first patch.
    first: [u32; 3],
    /// The bits of octants that are refined.
    refined: u8,
}

impl Leaf {
    /// The patch of its level that a position is in.
    #[inline(always)]
    fn patch(&self, position: [u32; 3]) -> [u32; 3] {
        let patch = |axis: usize| ((u64::from(position[axis]) * self.root[axis]) >> self.shift) as u32;
        [patch(0), patch(1), patch(2)]
    }

    /// Whether a position is in one of these patches.
    #[inline(always)]
    pub(crate) fn contains(&self, position: [u32; 3]) -> bool {
        let patch = self.patch(position);
        let octant = |axis: usize| patch[axis].wrapping_sub(self.first[axis]);
        let (x, y, z) = (octant(0), octant(1), octant(2));
        (x | y | z) < 2 && self.refined >> (x | y << 1 | z << 2) & 1 == 0
    }
}

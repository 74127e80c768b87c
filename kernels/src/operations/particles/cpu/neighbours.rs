//! A group and those around it: for particles that are few in their group.

use crate::layout::{DIRECTIONS, GROUP, OCTANTS, PATCH, cell};
use crate::level::group_locator::GroupLocator;
use crate::level::level_topology::NONE;

/// The slots of the groups around and including one, looked up when they are first asked for.
pub(super) struct Neighbours<'a> {
    locator: &'a GroupLocator,
    level: usize,
    group: [u32; 3],
    slots: [Option<u32>; DIRECTIONS],
}

impl<'a> Neighbours<'a> {
    pub(super) fn new(locator: &'a GroupLocator, level: usize, group: [u32; 3]) -> Self {
        Self { locator, level, group, slots: [None; DIRECTIONS] }
    }

    /// Cells of the level along each axis.
    pub(super) fn cells(&self) -> [u32; 3] {
        self.locator.cells(self.level)
    }

    /// Slot and offset of a cell that is counted from the group's first one, up to a group's width beyond it.
    #[inline(always)]
    pub(super) fn find(&mut self, at: [i32; 3]) -> (u32, usize) {
        let slot = self.slot(at.map(|x| x.div_euclid(GROUP as i32)));
        let [i, j, k] = at.map(|x| x.rem_euclid(GROUP as i32) as usize);
        (slot, cell(i, j, k))
    }

    /// Whether the patch that contains a cell is refined; cells are counted as in [`Self::find`].
    pub(super) fn is_refined(&mut self, at: [i32; 3]) -> bool {
        let slot = self.slot(at.map(|x| x.div_euclid(GROUP as i32)));
        let octant = (0..3).fold(0, |octant, axis| octant | ((at[axis] as usize / PATCH) & 1) << axis);
        slot != NONE && self.locator.children[slot as usize * OCTANTS + octant] != NONE
    }

    /// The slot of the group that is so many groups further, each −1, 0 or 1.
    #[inline(always)]
    pub(super) fn slot(&mut self, step: [i32; 3]) -> u32 {
        let direction = (13 + step[0] + 3 * step[1] + 9 * step[2]) as usize;
        match self.slots[direction] {
            Some(slot) => slot,
            None => self.look_up(step, direction),
        }
    }

    #[cold]
    fn look_up(&mut self, step: [i32; 3], direction: usize) -> u32 {
        let group = std::array::from_fn(|axis| {
            let groups = i64::from(self.locator.root[axis] << self.level);
            (i64::from(self.group[axis]) + i64::from(step[axis])).rem_euclid(groups) as u32
        });
        let slot = self.locator.slot(self.level, group);
        self.slots[direction] = Some(slot);
        slot
    }
}

/// The neighbours of the last groups of a level that particles were in: of siblings all eight.
pub(super) struct LastNeighbours<'a> {
    locator: &'a GroupLocator,
    level: usize,
    of: [Option<Neighbours<'a>>; OCTANTS],
}

impl<'a> LastNeighbours<'a> {
    pub(super) fn new(locator: &'a GroupLocator, level: usize) -> Self {
        Self { locator, level, of: Default::default() }
    }

    pub(super) fn of(&mut self, group: [u32; 3]) -> &mut Neighbours<'a> {
        let [x, y, z] = group.map(|c| c as usize & 1);
        let last = &mut self.of[x | y << 1 | z << 2];
        if last.as_ref().is_none_or(|last| last.group != group) {
            *last = None;
        }
        last.get_or_insert_with(|| Neighbours::new(self.locator, self.level, group))
    }
}

//! Finds the group at a place of the box: what particles, which move through all levels, look up.

use crate::device::device_table::DeviceTable;
use crate::layout::{CENTRE, DIRECTIONS, GROUP, OCTANTS, direction, offset};
use crate::level::level_topology::NONE;

/// Width of the buffer inside the faces of a level, in 2⁻³² of a group: two cells. Particles there belong to the next coarser
/// level. So no cloud of a level, one of its cells wide, crosses its faces.
const BUFFER: u32 = 2 << 28;

/// Sides of a group, by direction, where particles in the buffer belong to the next coarser level: a face, edge or corner with a
/// missing neighbour, and an edge or corner that such a face or edge is part of.
///
/// * `is_missing`: whether the level lacks the neighbour in a direction within the domain
pub fn buffer_sides(is_missing: impl Fn([i32; 3]) -> bool) -> u32 {
    (0..DIRECTIONS).filter(|&d| d != CENTRE && is_missing(offset(d))).fold(0, |sides, d| sides | SIDES_OF[d])
}

/// By the direction of a missing neighbour: the sides that it makes buffers, which have its steps.
const SIDES_OF: [u32; DIRECTIONS] = {
    let mut sides_of = [0; DIRECTIONS];
    let mut n = 0;
    while n < DIRECTIONS * DIRECTIONS {
        let (step, side) = (offset(n / DIRECTIONS), offset(n % DIRECTIONS));
        let mut has_steps = true;
        let mut axis = 0;
        while axis < 3 {
            has_steps &= step[axis] == 0 || step[axis] == side[axis];
            axis += 1;
        }
        sides_of[n / DIRECTIONS] |= (has_steps as u32) << (n % DIRECTIONS);
        n += 1;
    }
    sides_of
};

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
    /// [`buffer_sides`] of the group in each slot. A rank has the sides of its own groups and of their children, and 0 for
    /// other groups, whose owners decide.
    pub buffers: DeviceTable<u32>,
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
        self.children.bytes() + self.numbers.bytes() + self.buffers.bytes()
    }

    /// The same with so many slots, and groups without a slot.
    pub fn bytes_for(slots: usize) -> usize {
        slots * (OCTANTS + 2) * size_of::<u32>()
    }

    /// Whether another rank owns the group in a slot, or of a number that [`GroupLocator::home`] gives in place of one.
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

    /// Slot and level of the group that a particle at a position (fractions of the box in 2⁻³²) belongs to: the finest one that
    /// contains the position, or its parent where the position is in the buffer of a face of the level.
    #[inline(always)]
    pub fn home(&self, position: [u32; 3]) -> (u32, usize) {
        // the position in root groups, in units of 2⁻³²
        let at = [0, 1, 2].map(|a| u64::from(position[a]) * u64::from(self.root[a]));
        let [x, y, z] = at.map(|x| (x >> 32) as u32);
        let mut slot = self.root_slots[((z * self.root[1] + y) * self.root[0] + x) as usize];
        let (mut parent, mut level) = (slot, 0);
        while level + 1 < self.levels() {
            let [x, y, z] = at.map(|x| (x >> (31 - level)) as usize & 1);
            let child = self.children[slot as usize * OCTANTS + (x | y << 1 | z << 2)];
            if child == NONE {
                break;
            }
            (parent, slot, level) = (slot, child, level + 1);
        }
        if level > 0 && is_in_buffer(self.buffers[slot as usize], at.map(|x| (x << level) as u32)) {
            return (parent, level - 1);
        }
        (slot, level)
    }

    /// The region of the group that [`Self::home`] has given for a position.
    pub(crate) fn home_region(&self, (slot, level): (u32, usize), position: [u32; 3]) -> HomeRegion {
        let refined = (0..OCTANTS).filter(|o| self.children[slot as usize * OCTANTS + o] != NONE);
        let root = self.root.map(u64::from);
        HomeRegion {
            root,
            level: level as u32,
            group: [0, 1, 2].map(|a| ((u64::from(position[a]) * root[a]) >> (32 - level)) as u32),
            refined: refined.fold(0, |refined, octant| refined | 1 << octant),
            sides: if level > 0 { self.buffers[slot as usize] } else { 0 },
        }
    }
}

/// True where a place in a group, in 2⁻³² of the group's width, is in the buffer of one of `sides`.
#[inline(always)]
fn is_in_buffer(sides: u32, place: [u32; 3]) -> bool {
    let side = |x: u32| i32::from(x >= BUFFER.wrapping_neg()) - i32::from(x < BUFFER);
    sides != 0 && sides >> direction(side(place[0]), side(place[1]), side(place[2])) & 1 == 1
}

/// The patches of a group that are not refined, without the buffers at the faces of its level. Particles in buffers of the
/// next finer level, which belong to the group too, are elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct HomeRegion {
    root: [u64; 3],
    level: u32,
    /// The group's coordinate on its level.
    group: [u32; 3],
    /// The bits of octants that are refined.
    refined: u8,
    /// Its [`buffer_sides`].
    sides: u32,
}

impl HomeRegion {
    /// True for positions in the region.
    #[inline(always)]
    pub(crate) fn contains(&self, position: [u32; 3]) -> bool {
        let [x, y, z] = [0, 1, 2].map(|a| u64::from(position[a]) * self.root[a]);
        let shift = 32 - self.level;
        if (x >> shift) as u32 != self.group[0]
            || (y >> shift) as u32 != self.group[1]
            || (z >> shift) as u32 != self.group[2]
        {
            return false;
        }
        let place = [x, y, z].map(|x| (x << self.level) as u32);
        let [x, y, z] = place.map(|x| x >> 31);
        self.refined >> (x | y << 1 | z << 2) & 1 == 0 && !is_in_buffer(self.sides, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Mesh, Noise};

    /// A particle belongs to the finest level that is everywhere within two cells, by brute force; faces of the box are no
    /// faces of levels.
    #[test]
    fn a_particle_belongs_to_a_level_that_surrounds_it() {
        let (mut in_buffer, mut of_levels) = (0, [0; 4]);
        let mut noise = Noise::new(1);
        let box_of = |n: [i32; 3]| (0..n[0] * n[1] * n[2]).map(move |i| [i % n[0], i / n[0] % n[1], i / n[0] / n[1]]);
        // most of the root refined once, from face to face, and an uneven part of that twice
        let nested = |periodic: bool| {
            let once = box_of([7, 4, 4]).filter(|c| c[0] + c[1] < 9).collect();
            let twice = box_of([5, 4, 5]).map(|c| [c[0] + 3, c[1] + 1, c[2] + 2]).filter(|c| c[1] != 3 || c[2] < 5);
            Mesh::new([4, 2, 2], periodic).with_level(once).with_level(twice.collect())
        };
        for mesh in [Mesh::random(&mut noise, 3), Mesh::random(&mut noise, 3), nested(true), nested(false)] {
            let locator = mesh.locator();
            for _ in 0..4000 {
                let position = [(); 3].map(|()| (2f64.powi(31) * (noise.next() + 1.0)) as u32);
                let surrounds = |level: usize, cells: i64| {
                    let at: [i64; 3] =
                        std::array::from_fn(|a| (i64::from(position[a]) * i64::from(mesh.root[a])) << level);
                    let group = at.map(|x| (x >> 32) as i32);
                    (0..DIRECTIONS).map(offset).all(|side| {
                        let moved = |a: usize| at[a] + i64::from(side[a]) * (cells << 28);
                        let step = std::array::from_fn(|a| (moved(a) >> 32) as i32 - group[a]);
                        mesh.slot(level, group, step) != NONE
                    })
                };
                let finest = |cells: i64| (0..mesh.levels.len()).rev().find(|&level| surrounds(level, cells)).unwrap();
                let (slot, level) = locator.home(position);
                assert_eq!(level, finest(2), "{position:?}");
                let group = std::array::from_fn(|a| {
                    ((u64::from(position[a]) * u64::from(locator.root[a])) >> (32 - level)) as i32
                });
                assert_eq!(slot, mesh.slot(level, group, [0; 3]));
                let is_in_buffer = finest(0) != level;
                assert_eq!(locator.home_region((slot, level), position).contains(position), !is_in_buffer);
                in_buffer += usize::from(is_in_buffer);
                of_levels[level] += 1;
            }
        }
        assert!(in_buffer > 1000 && of_levels[2] > 100, "{in_buffer} {of_levels:?}");
    }

    /// A missing neighbour across an edge makes that edge and its corners buffers; one across a face, the face with its edges
    /// and corners.
    #[test]
    fn sides_have_buffers_where_a_neighbour_is_missing() {
        let count = |missing: [i32; 3]| buffer_sides(|step| step == missing).count_ones();
        assert_eq!([count([1, 0, 0]), count([0, -1, 1]), count([1, 1, -1]), buffer_sides(|_| false)], [9, 3, 1, 0]);
        assert_eq!(buffer_sides(|_| true), (1 << DIRECTIONS) - 1 - (1 << direction(0, 0, 0)));
        let sides = buffer_sides(|step| step == [-1, 0, 0]);
        let place = |x: f64| (x * 2f64.powi(28)) as u32;
        for (x, expected) in [(0.0, true), (1.999, true), (2.0, false), (15.0, false)] {
            assert_eq!(is_in_buffer(sides, [place(x), place(8.0), place(15.5)]), expected, "{x}");
        }
        let edge = buffer_sides(|step| step == [1, 0, 1]);
        let is_in = |x: f64, z: f64| is_in_buffer(edge, [place(x), place(0.1), place(z)]);
        assert!(is_in(14.1, 15.9) && !is_in(13.9, 15.9) && !is_in(14.1, 8.0) && !is_in(14.1, 1.0));
    }
}

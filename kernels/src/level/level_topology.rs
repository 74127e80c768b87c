//! The octree as the kernels see it: slots of neighbours, parents and children.

use crate::device::device_table::DeviceTable;
use crate::layout::{CENTRE, DIRECTIONS, FACES, OCTANTS};
use crate::level::face_boundary::{Ends, FaceBoundary};
use rayon::iter::Either;
use rayon::prelude::*;
use std::sync::OnceLock;

/// No group there: the region is interpolated from the coarser level.
pub const NONE: u32 = u32::MAX;

/// The groups of one level and those around them. Derived data, rebuilt by `comove-sim` at a regrid.
///
/// With several ranks these are the groups that a rank owns. Those around them may be ghosts, copies of other ranks'
/// groups in slots of the same pools, and a patch may be refined by a group that another rank owns: it is no leaf then,
/// and has no child here.
///
/// Where a direction leaves the domain through a boundary that is not periodic, its components across that boundary are
/// dropped (the row names the group inside); [`LevelTopology::outside`] marks such a boundary, and
/// [`LevelTopology::faces`] what is beyond it.
#[derive(Clone, Debug, Default)]
pub struct LevelTopology {
    /// Slot of each group, in key order.
    pub slots: DeviceTable<u32>,
    /// Slots of the 27 groups around and including each group, [`NONE`] where there is none. `[groups, 27]`.
    pub neighbours: DeviceTable<u32>,
    /// Slots of the 27 groups around each group's parent; all [`NONE`] on level 0. Only the eight on the side of the
    /// group's octant are read, along each axis the parent's own and the next one there: the others may be [`NONE`] too.
    /// `[groups, 27]`.
    pub parents: DeviceTable<u32>,
    /// Which octant of its parent each group is.
    pub octants: DeviceTable<u8>,
    /// Bits 0–5: the group touches the domain's −x, +x, −y, +y, −z, +z boundary and that boundary is not periodic.
    pub outside: DeviceTable<u8>,
    /// What is beyond the domain's −x, +x, −y, +y, −z, +z face, where it is not periodic.
    pub faces: [FaceBoundary; FACES],
    /// Bit o: the patch at octant o is a leaf.
    pub leaves: DeviceTable<u8>,
    /// Slots of the groups that refine each group's eight patches, [`NONE`] for leaves and where another rank owns that
    /// group. `[groups, 8]`.
    pub children: DeviceTable<u32>,
    /// Slots of the groups that refine the patches across each face (−x, +x, −y, …) of each of a group's patches,
    /// inside the group or beside it; [`NONE`] where such a patch is a leaf or lies outside the domain. Only the
    /// gradients of these groups are read ([`mod@crate::operations::mass_sheet`]): of one that another rank owns this is a slot of
    /// that pool alone, which may lie behind the last slot of the others. `[groups, 8, 6]`.
    pub beyond: DeviceTable<u32>,
    /// The groups of even and of odd [`Parity`], found when they are first asked for ([`LevelTopology::half`]).
    pub halves: OnceLock<[DeviceTable<u32>; 2]>,
}

impl LevelTopology {
    /// The ends of group `g` along `axis`.
    #[inline(always)]
    pub(crate) fn ends(&self, g: usize, axis: usize) -> Ends {
        [2 * axis, 2 * axis + 1].map(|face| (self.outside[g] >> face & 1 == 1).then_some(self.faces[face]))
    }

    /// Takes over what has not changed from tables of before, with its copies on a GPU.
    pub fn keep(&mut self, old: Self) {
        if self.octants == old.octants {
            self.halves = old.halves;
        }
        self.slots.keep(old.slots);
        self.neighbours.keep(old.neighbours);
        self.parents.keep(old.parents);
        self.octants.keep(old.octants);
        self.outside.keep(old.outside);
        self.leaves.keep(old.leaves);
        self.children.keep(old.children);
        self.beyond.keep(old.beyond);
    }

    /// Bytes that they take on a device.
    pub fn bytes(&self) -> usize {
        let slots = [&self.slots, &self.neighbours, &self.parents, &self.children, &self.beyond];
        let octants = [&self.octants, &self.outside, &self.leaves];
        let halves = self.len() * size_of::<u32>();
        slots.map(DeviceTable::bytes).iter().sum::<usize>()
            + octants.map(DeviceTable::bytes).iter().sum::<usize>()
            + halves
    }

    /// Groups of the level.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether the level has no groups.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// The neighbour row of group `g`.
    pub fn row(&self, g: usize) -> &[u32; DIRECTIONS] {
        self.neighbours[g * DIRECTIONS..][..DIRECTIONS].try_into().expect("a row has 27 entries")
    }

    /// The neighbour row of group `g`'s parent.
    pub fn parent_row(&self, g: usize) -> &[u32; DIRECTIONS] {
        self.parents[g * DIRECTIONS..][..DIRECTIONS].try_into().expect("a row has 27 entries")
    }

    /// The slots of group `g`'s children, [`NONE`] also where another rank owns them: `leaves` tells which patches are
    /// leaves.
    pub fn children_of(&self, g: usize) -> &[u32; OCTANTS] {
        self.children[g * OCTANTS..][..OCTANTS].try_into().expect("a group has eight patches")
    }

    /// The slots of the groups that refine the patches across the six faces of group `g`'s patch at `octant`.
    pub fn beyond_of(&self, g: usize, octant: usize) -> &[u32; FACES] {
        self.beyond[(g * OCTANTS + octant) * FACES..][..FACES].try_into().expect("a patch has six faces")
    }

    /// The groups of one parity, in key order.
    pub fn half(&self, parity: Parity) -> &DeviceTable<u32> {
        let groups = |parity: Parity| {
            let octants = self.octants.iter().enumerate();
            octants.filter(|(_, octant)| parity.contains(**octant)).map(|(g, _)| g as u32).collect()
        };
        &self.halves.get_or_init(|| [Parity::Even, Parity::Odd].map(groups))[parity as usize]
    }

    /// The places of the groups of a list, or of all: what an operation on the processor loops over.
    pub(crate) fn places<'a>(&self, list: Option<&'a [u32]>) -> impl IndexedParallelIterator<Item = usize> + use<'a> {
        match list {
            None => Either::Left((0..self.len()).into_par_iter()),
            Some(list) => Either::Right(list.par_iter().map(|&g| g as usize)),
        }
    }

    /// Checks what parallel writers rely on.
    ///
    /// # Panics
    /// If a list of groups does not rise or names one that there is not.
    pub(crate) fn check_list(&self, list: Option<&[u32]>) {
        let list = list.unwrap_or_default();
        let rises = list.windows(2).all(|pair| pair[0] < pair[1]);
        assert!(rises && list.last().is_none_or(|&last| (last as usize) < self.len()), "groups of the level: {list:?}");
    }

    /// Whether some of group `g`'s ghost cells come from the coarser level.
    pub fn has_coarse_neighbour(&self, g: usize) -> bool {
        self.row(g).contains(&NONE)
    }

    /// Checks what the parallel writers rely on.
    ///
    /// # Panics
    /// If shapes disagree, a slot appears twice, a row's centre is not the group itself, a leaf is refined by a group, or
    /// one that refines a patch is not what is beyond a face of the patch beside it.
    pub fn check(&self) {
        let n = self.len();
        assert!(self.neighbours.len() == n * DIRECTIONS && self.parents.len() == n * DIRECTIONS);
        assert!(self.octants.len() == n && self.outside.len() == n && self.leaves.len() == n);
        assert!(self.children.len() == n * OCTANTS && self.beyond.len() == n * OCTANTS * FACES);
        let mut taken = vec![false; self.slots.iter().max().map_or(0, |&last| last as usize + 1)];
        let twice = self.slots.iter().any(|&slot| std::mem::replace(&mut taken[slot as usize], true));
        assert!(!twice, "a slot holds two groups");
        assert!((0..n).all(|g| self.row(g)[CENTRE] == self.slots[g]), "a row's centre is another group");
        (0..n).into_par_iter().for_each(|g| {
            for (o, &child) in self.children_of(g).iter().enumerate() {
                let is_leaf = self.leaves[g] >> o & 1 == 1;
                assert!(!is_leaf || child == NONE, "patch {o} of group {g} is a leaf and has a child");
                for axis in 0..3 {
                    // the face between this patch and its sibling along the axis, seen from there
                    let (sibling, face) = (o ^ 1 << axis, 2 * axis + (o >> axis & 1));
                    let known = is_leaf || child != NONE;
                    let named = self.beyond_of(g, sibling)[face];
                    assert!(!known || named == child, "beyond face {face} of patch {sibling} of group {g}");
                }
            }
        });
    }
}

/// Groups of a level by the parity of their coordinates' sum: no two groups of one parity share a face.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parity {
    /// Even sum.
    Even,
    /// Odd sum.
    Odd,
}

impl Parity {
    /// That of the groups that share faces with those of this one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Even => Self::Odd,
            Self::Odd => Self::Even,
        }
    }

    /// Whether the group at this octant of its parent is one of them: a group's coordinate is twice its parent's plus
    /// the octant's.
    pub(crate) fn contains(self, octant: u8) -> bool {
        octant.count_ones() % 2 == self as u32
    }
}

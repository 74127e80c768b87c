//! Which flux planes a sweep must keep, and the faces at which flux correction uses them.

use super::key::Key;
use super::tree::Octree;
use crate::parallel::known::Known;
use crate::parallel::links::{SlotLinks, links_of_slots};
use crate::parallel::reads::{face_entry, face_offset};
use comove_kernels::layout::{FACES, FLUX_PLANES};
use comove_kernels::reflux::{CoarseFineFace, RefluxGroup, RefluxTables};
use comove_kernels::tables::NONE;
use comove_kernels::{LevelTables, Table};
use rayon::prelude::*;

/// Flux planes of all levels and the coarse–fine faces between them. Derived data, rebuilt at a regrid.
///
/// Planes are numbered level by level, and none serves two pairs of levels (a coarse face has a group of its own level
/// behind it or lies inside one, a fine face has none), so a regrid of finer levels leaves the numbers of coarser ones
/// alone: sums of fluxes go on across it.
#[derive(Clone, Debug, Default)]
pub struct FluxTables {
    /// Planes in all.
    pub planes: usize,
    /// Per level: how many planes there are up to those of its faces towards the next coarser level.
    upwards: Vec<u32>,
    /// Per level: the plane of each group's nine places, [`NONE`] where no flux is kept. `[groups, 9]`.
    pub slots: Vec<Table<u32>>,
    /// Per level: the planes that its sweeps write, those of `slots`.
    pub written: Vec<Table<u32>>,
    /// Per level: the planes, its own and the finer level's, of the faces between the two.
    pub between: Vec<Table<u32>>,
    /// Per level: its faces towards the next finer level.
    pub reflux: Vec<RefluxTables>,
    /// Per level: planes of the finer level's groups that are sent to the ranks that own the coarse groups.
    pub links: Vec<SlotLinks>,
}

impl FluxTables {
    /// Visits every face of every fine group that has no group of its own level behind it: there a whole face of the
    /// fine group (16×16 cells) lies on one face of a coarse leaf patch (8×8).
    ///
    /// `tables` are the octree's, level by level ([`super::neighbours::build_tables`]).
    pub fn build(tree: &Octree, tables: &[LevelTables]) -> Self {
        Self::default().rebuilt(0, tree, &Known::default(), tables)
    }

    /// The same where the groups and slots of the levels up to `kept` are those of these tables.
    ///
    /// * `known`: groups of other ranks. Where the coarse side of a face is theirs, the fine side's plane is sent; where the
    ///   fine side is, there is a plane for what they send.
    #[must_use]
    pub fn rebuilt(&self, kept: usize, tree: &Octree, known: &Known, tables: &[LevelTables]) -> Self {
        let levels = tree.level_count();
        let mut planes = Planes {
            first: kept,
            slots: (kept..levels).map(|l| vec![NONE; tree.level(l).len() * FLUX_PLANES]).collect(),
            count: self.upwards.get(kept).copied().unwrap_or(0),
        };
        // that level's planes towards coarser ones stay
        if let Some(slots) = self.slots.get(kept) {
            let stays = |plane: &u32| if *plane < planes.count { *plane } else { NONE };
            planes.slots[0] = slots.iter().map(stays).collect();
        }
        let mut upwards = self.upwards.get(..kept).map_or(Vec::new(), <[u32]>::to_vec);
        upwards.push(planes.count);
        let mut reflux_tables = Vec::with_capacity(levels - kept);
        let mut links = Vec::with_capacity(levels - kept);
        for level in kept + 1..levels {
            let on_group = |fine: usize| {
                (0..FACES).filter_map(move |face| Meeting::of_own(tree, known, &tables[level], level, fine, face))
            };
            let of_others = known.level(level).par_iter().flat_map_iter(|group| {
                (0..FACES).filter_map(|face| Meeting::of_other(tree, &tables[level - 1], group.key, group.rank, face))
            });
            let own = (0..tree.level(level).len()).into_par_iter().flat_map_iter(on_group);
            let mut meetings: Vec<Meeting> = own.chain(of_others).collect();
            // planes that are sent and received in an order that both sides know
            let mut others: Vec<usize> = (0..meetings.len()).filter(|&n| meetings[n].other.is_some()).collect();
            others.sort_unstable_by_key(|&n| (meetings[n].other, meetings[n].key, meetings[n].face));
            for &n in &others {
                if meetings[n].fine.is_none() {
                    meetings[n].fine_plane = planes.add();
                }
            }
            let mut faces: Vec<(usize, CoarseFineFace)> = Vec::with_capacity(meetings.len());
            for meeting in &mut meetings {
                let Meeting { axis, high, octant, .. } = *meeting;
                if let Some(fine) = meeting.fine {
                    meeting.fine_plane = planes.at(level, fine * FLUX_PLANES + meeting.fine_place);
                }
                if let Some(coarse) = meeting.coarse {
                    let coarse_plane = planes.at(level - 1, coarse * FLUX_PLANES + meeting.coarse_place);
                    let face = CoarseFineFace { axis, high, octant, coarse_plane, fine_plane: meeting.fine_plane };
                    faces.push((coarse, face));
                }
            }
            let of_side = |received: bool| {
                let those = others.iter().map(|&n| &meetings[n]).filter(|meeting| meeting.fine.is_none() == received);
                those.filter_map(|meeting| Some((meeting.other?, meeting.fine_plane))).collect::<Vec<_>>()
            };
            links.push(links_of_slots(&of_side(false), &of_side(true)));
            faces.sort_unstable_by_key(|(coarse, face)| (*coarse, face.octant, face.axis, face.high));
            let mut groups: Vec<RefluxGroup> = Vec::new();
            for (n, &(coarse, _)) in faces.iter().enumerate() {
                let (index, end) = (coarse as u32, n as u32 + 1);
                match groups.last_mut() {
                    Some(last) if last.index == index => last.end = end,
                    _ => groups.push(RefluxGroup { index, slot: tables[level - 1].slots[coarse], end }),
                }
            }
            let faces = faces.into_iter().map(|(_, face)| face).collect();
            reflux_tables.push(RefluxTables { faces, groups: groups.into() });
            upwards.push(planes.count);
        }
        reflux_tables.push(RefluxTables::default());
        links.push(SlotLinks::default());
        let written = |slots: &Vec<u32>| slots.iter().copied().filter(|&plane| plane != NONE).collect();
        let between = |(reflux, links): (&RefluxTables, &SlotLinks)| {
            let of_faces = reflux.faces.iter().flat_map(|face| [face.coarse_plane, face.fine_plane]);
            let mut planes: Vec<u32> = of_faces.chain(links.send.list().iter().copied()).collect();
            planes.sort_unstable();
            planes.dedup();
            planes.into()
        };
        let after = |kept_tables: &[Table<u32>], new: Vec<Table<u32>>| {
            kept_tables.iter().take(kept).cloned().chain(new).collect::<Vec<_>>()
        };
        Self {
            planes: planes.count as usize,
            upwards,
            written: after(&self.written, planes.slots.iter().map(written).collect()),
            between: after(&self.between, reflux_tables.iter().zip(&links).map(between).collect()),
            slots: after(&self.slots, planes.slots.into_iter().map(Table::from).collect()),
            reflux: self.reflux.iter().take(kept).cloned().chain(reflux_tables).collect(),
            links: self.links.iter().take(kept).cloned().chain(links).collect(),
        }
    }

    /// Bytes that they take on a device.
    pub fn bytes(&self) -> usize {
        let lists = [&self.slots, &self.written, &self.between];
        lists.into_iter().flatten().map(Table::bytes).sum::<usize>()
            + self.reflux.iter().map(RefluxTables::bytes).sum::<usize>()
    }

    /// Takes over what has not changed from tables of before, with its copies on a GPU.
    pub fn keep(&mut self, old: Self) {
        let lists = [(&mut self.slots, old.slots), (&mut self.written, old.written), (&mut self.between, old.between)];
        for (new, old) in lists {
            new.iter_mut().zip(old).for_each(|(new, old)| new.keep(old));
        }
        for (new, old) in self.reflux.iter_mut().zip(old.reflux) {
            new.faces.keep(old.faces);
            new.groups.keep(old.groups);
        }
    }
}

/// A face of a fine group that lies on a face of a coarse leaf patch.
struct Meeting {
    /// The fine group.
    key: Key,
    /// Of it: −x, +x, −y, …
    face: usize,
    /// Place of the coarse group, if it is own.
    coarse: Option<usize>,
    /// Which of the coarse group's nine places the face lies on.
    coarse_place: usize,
    /// Place of the fine group, if it is own.
    fine: Option<usize>,
    fine_place: usize,
    /// The rank that owns the one that is not.
    other: Option<u32>,
    /// The plane of the fine side, once it is known.
    fine_plane: u32,
    /// As the coarse patch sees it.
    axis: u8,
    high: bool,
    octant: u8,
}

impl Meeting {
    /// At this face of an own group, if a coarse leaf lies behind it.
    fn of_own(
        tree: &Octree,
        known: &Known,
        tables: &LevelTables,
        level: usize,
        fine: usize,
        face: usize,
    ) -> Option<Self> {
        if tables.row(fine)[face_entry(face)] != NONE {
            return None;
        }
        let key = tree.level(level)[fine];
        let behind = tree.neighbour(key, face_offset(face))?;
        let parent = behind.parent().expect("refined levels have parents");
        let coarse = tree.find(parent);
        let other = coarse.is_none().then(|| known.find(parent).expect("proper nesting"));
        Some(Self { coarse, fine: Some(fine), other, ..Self::new(key, face, behind.octant()) })
    }

    /// At this face of another rank's group, if an own leaf lies behind it.
    ///
    /// * `coarser`: tables of the coarser level
    fn of_other(tree: &Octree, coarser: &LevelTables, key: Key, rank: u32, face: usize) -> Option<Self> {
        let behind = tree.neighbour(key, face_offset(face))?;
        let coarse = tree.find(behind.parent().expect("refined levels have parents"))?;
        let is_leaf = coarser.leaves[coarse] >> behind.octant() & 1 == 1;
        is_leaf.then(|| Self { coarse: Some(coarse), other: Some(rank), ..Self::new(key, face, behind.octant()) })
    }

    /// Of a fine group's face and the patch at `octant` behind it, owned by nobody yet.
    fn new(key: Key, face: usize, octant: usize) -> Self {
        let (axis, high) = (face / 2, face & 1 == 1);
        Self {
            key,
            face,
            coarse: None,
            // the coarse patch sees the fine group on the other side
            coarse_place: axis * 3 + (octant >> axis & 1) + usize::from(!high),
            fine: None,
            fine_place: axis * 3 + if high { 2 } else { 0 },
            other: None,
            fine_plane: NONE,
            axis: axis as u8,
            high: !high,
            octant: octant as u8,
        }
    }
}

/// Flux planes as they are given out.
struct Planes {
    /// The first level that has them.
    first: usize,
    slots: Vec<Vec<u32>>,
    count: u32,
}

impl Planes {
    /// The plane at a place, made if new.
    fn at(&mut self, level: usize, place: usize) -> u32 {
        let slot = &mut self.slots[level - self.first][place];
        if *slot == NONE {
            *slot = self.count;
            self.count += 1;
        }
        *slot
    }

    /// One for what another rank sends.
    fn add(&mut self) -> u32 {
        self.count += 1;
        self.count - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::octree::neighbours::{build_finer_tables, build_tables};
    use crate::octree::{CLOSED, Key, PERIODIC, nest};
    use proptest::prelude::*;

    #[test]
    fn planes_keep_their_numbers_when_finer_levels_change() {
        let coarse = (0..8).map(|o| Key::new(1, [1 + (o & 1), 1 + (o >> 1 & 1), 1 + (o >> 2)]));
        let build = |finest: &[[u32; 3]]| {
            let finest = finest.iter().map(|&c| Key::new(2, c));
            let tree = Octree::with_groups([2; 3], PERIODIC, coarse.clone().chain(finest));
            let slots: Vec<Vec<u32>> = (0..tree.level_count())
                .map(|l| (0..tree.level(l).len()).map(|n| (tree.first_of_level(l) + n) as u32).collect())
                .collect();
            FluxTables::build(&tree, &build_tables(&tree, &slots, Default::default()))
        };
        let (none, some, others) = (build(&[]), build(&[[3, 3, 3], [4, 3, 3]]), build(&[[3, 4, 3]]));
        assert!(some.planes > others.planes && others.planes > none.planes);
        for tables in [some, others] {
            assert_eq!(tables.slots[0], none.slots[0]);
            assert_eq!(tables.reflux[0].faces, none.reflux[0].faces);
            let kept = |(new, old): (&u32, &u32)| new == old || (*old == NONE && *new as usize >= none.planes);
            assert!(tables.slots[1].iter().zip(&none.slots[1]).all(kept));
        }
    }

    proptest! {
        /// Tables made from those of a tree with the same coarse levels are those made from nothing.
        #[test]
        fn finer_tables_can_be_made_alone(
            coarse in prop::collection::vec([0u32..8, 0u32..8, 0u32..8], 1..6),
            before in prop::collection::vec([0u32..32, 0u32..32, 0u32..32], 0..8),
            after in prop::collection::vec([0u32..32, 0u32..32, 0u32..32], 0..8),
        ) {
            for periodic in [PERIODIC, CLOSED] {
                let tree = |finest: &[[u32; 3]]| {
                    let coarse = coarse.iter().map(|&c| Key::new(2, c)).collect();
                    let finest = finest.iter().map(|&c| Key::new(4, c)).collect();
                    let groups = nest([2; 3], periodic, vec![Vec::new(), Vec::new(), coarse, Vec::new(), finest]);
                    Octree::with_groups([2; 3], periodic, groups.into_iter().skip(1).flatten())
                };
                let slots = |tree: &Octree, step: u32| -> Vec<Vec<u32>> {
                    let slot = |level: usize, n: usize| {
                        // of levels that stay the slots stay, of others they change
                        let step = if level < 2 { 3 } else { step };
                        step * (tree.first_of_level(level) + n) as u32 + 5
                    };
                    (0..tree.level_count()).map(|l| (0..tree.level(l).len()).map(|n| slot(l, n)).collect()).collect()
                };
                let (old, new) = (tree(&before), tree(&after));
                let (old_slots, new_slots) = (slots(&old, 7), slots(&new, 4));
                let stay = (0..2).take_while(|&l| old.level(l) == new.level(l)).count();
                let old_tables = build_tables(&old, &old_slots, Default::default());
                let old_flux = FluxTables::build(&old, &old_tables);
                let tables = build_finer_tables(&old_tables[..stay], &new, &new_slots, Default::default());
                let expected = build_tables(&new, &new_slots, Default::default());
                prop_assert_eq!(format!("{tables:?}"), format!("{expected:?}"));
                let flux = old_flux.rebuilt(stay - 1, &new, &Known::default(), &tables);
                prop_assert_eq!(format!("{flux:?}"), format!("{:?}", FluxTables::build(&new, &expected)));
            }
        }
    }

    #[test]
    fn one_refined_patch_has_six_faces() {
        let tree = Octree::with_groups([2, 2, 2], PERIODIC, [Key::new(1, [1, 1, 1])]);
        let slots = vec![(0..8).collect(), vec![8]];
        let tables = FluxTables::build(&tree, &build_tables(&tree, &slots, Default::default()));
        assert_eq!(tables.reflux[0].faces.len(), 6);
        assert_eq!(tables.slots[1].iter().filter(|&&s| s != NONE).count(), 6);
        // three faces lie inside the parent group (planes at cell 8), three between it and its neighbours (plane at
        // cell 0 of those): six coarse planes in all
        assert_eq!(tables.planes, 12);
        assert_eq!(tables.reflux[0].groups.last().expect("faces").end, 6);
    }
}

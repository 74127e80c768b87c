//! Which flux planes a sweep must keep, and the faces at which flux correction uses them.

use crate::mesh::key::Key;
use crate::mesh::sites::{LevelGroups, Sites};
use crate::mesh::stencil::{face_entry, face_offset};
use crate::mesh::tree::Octree;
use crate::parallel::link_lists::{SlotLinks, links_of_slots};
use crate::parallel::remote_groups::{RemoteGroup, RemoteGroups};
use comove_kernels::layout::{FACES, FLUX_PLANES};
use comove_kernels::level_topology::NONE;
use comove_kernels::reflux::{CoarseFineFace, RefluxGroup, RefluxTables};
use comove_kernels::{DeviceTable, LevelTopology};
use rayon::prelude::*;

/// Flux planes of all levels and the coarse–fine faces between them. Derived data, rebuilt at a regrid.
///
/// Planes are numbered level by level, and none serves two pairs of levels (a coarse face has a group of its own level
/// behind it or is inside one, a fine face has none), so a regrid of finer levels leaves the numbers of coarser ones
/// alone: sums of fluxes go on across it.
#[derive(Clone, Debug, Default)]
pub struct FluxTables {
    /// Planes in all.
    pub planes: usize,
    /// Per level: how many planes there are up to those of its faces towards the next coarser level.
    upwards: Vec<u32>,
    /// Per level: the plane of each group's nine places, [`NONE`] where no flux is kept. `[groups, 9]`.
    pub slots: Vec<DeviceTable<u32>>,
    /// Per level: the planes that its sweeps write, those of `slots`.
    pub written: Vec<DeviceTable<u32>>,
    /// Per level: the planes, its own and the finer level's, of the faces between the two.
    pub between: Vec<DeviceTable<u32>>,
    /// Per level: its faces towards the next finer level.
    pub reflux: Vec<RefluxTables>,
    /// Per level: planes of the finer level's groups that are sent to the ranks that own the coarse groups.
    pub links: Vec<SlotLinks>,
}

impl FluxTables {
    /// Visits every face of every fine group that has no group of its own level behind it: there a whole face of the
    /// fine group (16×16 cells) is on one face of a coarse leaf patch (8×8).
    ///
    /// `tables` are the octree's, level by level ([`crate::mesh::neighbours::build_tables`]).
    pub fn build(tree: &Octree, tables: &[LevelTopology]) -> Self {
        let groups =
            |level: usize| LevelGroups { own: tree.level(level), slots: &tables[level].slots, ..Default::default() };
        let sites: Vec<Sites> = (0..tree.level_count()).into_par_iter().map(|level| groups(level).sites()).collect();
        Self::default().rebuilt(0, tree, &RemoteGroups::default(), &sites, tables)
    }

    /// The same where the groups and slots of the levels up to `kept` are those of these tables.
    ///
    /// * `sites`: of the groups of these levels and finer ones
    /// * `known`: groups of other ranks. Where the coarse side of a face is theirs, the fine side's plane is sent; where the
    ///   fine side is, there is a plane for what they send.
    #[must_use]
    pub fn rebuilt(
        &self,
        kept: usize,
        tree: &Octree,
        known: &RemoteGroups,
        sites: &[Sites],
        tables: &[LevelTopology],
    ) -> Self {
        let levels = kept..tree.level_count();
        let pair = |fine: usize| Pair::of(tree, known, &sites[fine - 1], tables, fine);
        let mut pairs: Vec<Pair> = (kept + 1..levels.end).into_par_iter().map(pair).collect();
        // that level's planes towards coarser ones stay
        let mut count = self.upwards.get(kept).copied().unwrap_or(0);
        let mut upwards = self.upwards.get(..kept).map_or(Vec::new(), <[u32]>::to_vec);
        upwards.push(count);
        for pair in &mut pairs {
            pair.first = count;
            count += pair.count();
            upwards.push(count);
        }
        let slots = |level: usize| {
            let mut slots = vec![NONE; tree.level(level).len() * FLUX_PLANES];
            if let Some(before) = self.slots.get(level).filter(|_| level == kept) {
                let stays = |plane: &u32| if *plane < upwards[kept] { *plane } else { NONE };
                slots.iter_mut().zip(before).for_each(|(slot, plane)| *slot = stays(plane));
            }
            if let Some(pair) = level.checked_sub(kept + 1).map(|n| &pairs[n]) {
                pair.fine_planes().for_each(|(place, plane)| slots[place] = plane);
            }
            if let Some(pair) = pairs.get(level - kept) {
                pair.coarse_planes().for_each(|(place, plane)| slots[place] = plane);
            }
            let written = slots.iter().copied().filter(|&plane| plane != NONE).collect();
            (slots.into(), written)
        };
        let of_levels: Vec<(DeviceTable<u32>, DeviceTable<u32>)> = levels.clone().into_par_iter().map(slots).collect();
        let (slots, written): (Vec<_>, Vec<_>) = of_levels.into_iter().unzip();
        let reflux =
            |level: usize| pairs.get(level - kept).map_or_else(Default::default, |pair| pair.reflux(&tables[level]));
        let reflux: Vec<RefluxTables> = levels.clone().into_par_iter().map(reflux).collect();
        let between = |level: usize| pairs.get(level - kept).map_or_else(Default::default, Pair::planes);
        let links = |level: usize| pairs.get(level - kept).map_or_else(Default::default, Pair::links);
        fn after<N: Clone>(before: &[N], kept: usize, new: impl IntoIterator<Item = N>) -> Vec<N> {
            before.iter().take(kept).cloned().chain(new).collect()
        }
        Self {
            planes: count as usize,
            written: after(&self.written, kept, written),
            between: after(&self.between, kept, levels.clone().map(between)),
            slots: after(&self.slots, kept, slots),
            reflux: after(&self.reflux, kept, reflux),
            links: after(&self.links, kept, levels.map(links)),
            upwards,
        }
    }

    /// Bytes that they take on a device.
    pub fn bytes(&self) -> usize {
        let lists = [&self.slots, &self.written, &self.between];
        lists.into_iter().flatten().map(DeviceTable::bytes).sum::<usize>()
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

/// Where a level meets the next coarser one, and the planes of that: first those that other ranks send, then one for each
/// face of an own fine group, then those of coarse groups.
struct Pair {
    meetings: Vec<Meeting>,
    /// Which of them are with other ranks, in an order that both sides know.
    others: Vec<u32>,
    /// By the places where coarse groups' planes may be: the plane, counted from the first of these; [`NONE`] without one.
    coarse: Vec<u32>,
    /// Planes of the coarse side.
    coarse_count: u32,
    /// Planes of the fine side, those that others send among them.
    fine: u32,
    /// The number of the first plane.
    first: u32,
}

impl Pair {
    /// Of level `level` and the next coarser one.
    ///
    /// * `coarser`: where the groups of that are
    fn of(tree: &Octree, known: &RemoteGroups, coarser: &Sites, tables: &[LevelTopology], level: usize) -> Self {
        let on_group = |fine: usize| {
            (0..FACES).filter_map(move |face| Meeting::of_own(tree, known, coarser, &tables[level], level, fine, face))
        };
        let of_others = known.level(level).par_iter().flat_map_iter(|group| {
            (0..FACES).filter_map(|face| Meeting::of_other(tree, coarser, &tables[level - 1], group, face))
        });
        let own = (0..tree.level(level).len()).into_par_iter().flat_map_iter(on_group);
        let mut meetings: Vec<Meeting> = own.chain(of_others).collect();
        let with_others = (0..meetings.len() as u32).filter(|&n| meetings[n as usize].other.is_some());
        let mut others: Vec<u32> = with_others.collect();
        others.sort_unstable_by_key(|&n| {
            let Meeting { other, key, face, .. } = &meetings[n as usize];
            (*other, *key, *face)
        });
        let mut fine = 0..;
        let mut number = |meeting: &mut Meeting| meeting.fine_plane = fine.next().expect("fewer than 2³² planes");
        for &n in &others {
            if meetings[n as usize].fine.is_none() {
                number(&mut meetings[n as usize]);
            }
        }
        meetings.iter_mut().filter(|meeting| meeting.fine.is_some()).for_each(&mut number);
        // numbered in the order of their places, each once
        let mut coarse = vec![NONE; tree.level(level - 1).len() * FLUX_PLANES];
        meetings.iter().filter_map(|meeting| meeting.coarse).for_each(|place| coarse[place as usize] = 0);
        let mut coarse_count = 0;
        for plane in coarse.iter_mut().filter(|plane| **plane != NONE) {
            *plane = coarse_count;
            coarse_count += 1;
        }
        Self { fine: meetings.len() as u32, meetings, others, coarse, coarse_count, first: 0 }
    }

    /// Planes that the pair has.
    fn count(&self) -> u32 {
        self.fine + self.coarse_count
    }

    /// All of them.
    fn planes(&self) -> DeviceTable<u32> {
        (self.first..self.first + self.count()).collect()
    }

    /// MortonMap of own fine groups, with their planes.
    fn fine_planes(&self) -> impl Iterator<Item = (usize, u32)> {
        self.meetings.iter().filter_map(|meeting| Some((meeting.fine? as usize, self.first + meeting.fine_plane)))
    }

    /// MortonMap of own coarse groups, with their planes.
    fn coarse_planes(&self) -> impl Iterator<Item = (usize, u32)> {
        let first = self.first + self.fine;
        self.coarse.iter().enumerate().filter(|(_, plane)| **plane != NONE).map(move |(place, n)| (place, first + n))
    }

    /// What flux correction of the coarse level does.
    fn reflux(&self, coarser: &LevelTopology) -> RefluxTables {
        let face = |meeting: &Meeting| {
            let Meeting { axis, high, octant, .. } = *meeting;
            let place = meeting.coarse?;
            let coarse = self.fine + self.coarse[place as usize];
            let [coarse_plane, fine_plane] = [coarse, meeting.fine_plane].map(|n| self.first + n);
            Some((place / FLUX_PLANES as u32, CoarseFineFace { axis, high, octant, coarse_plane, fine_plane }))
        };
        let mut faces: Vec<(u32, CoarseFineFace)> = self.meetings.par_iter().filter_map(face).collect();
        let order = |group: u32, octant: u8, axis: u8, high: bool| {
            u64::from(group) << 8 | u64::from(octant) << 5 | u64::from(axis) << 1 | u64::from(high)
        };
        faces.par_sort_unstable_by_key(|(group, face)| order(*group, face.octant, face.axis, face.high));
        let mut groups: Vec<RefluxGroup> = Vec::new();
        for (&(index, _), end) in faces.iter().zip(1..) {
            match groups.last_mut() {
                Some(last) if last.index == index => last.end = end,
                _ => groups.push(RefluxGroup { index, slot: coarser.slots[index as usize], end }),
            }
        }
        RefluxTables { faces: faces.into_iter().map(|(_, face)| face).collect(), groups: groups.into() }
    }

    /// Planes of fine groups that are sent to the owners of the coarse ones, and that come from others.
    fn links(&self) -> SlotLinks {
        let of_side = |received: bool| {
            let those = self.others.iter().map(|&n| &self.meetings[n as usize]);
            let those = those.filter(|meeting| meeting.fine.is_none() == received);
            those.filter_map(|meeting| Some((meeting.other?, self.first + meeting.fine_plane))).collect::<Vec<_>>()
        };
        links_of_slots(&of_side(false), &of_side(true))
    }
}

/// The place of a group among the own ones.
fn own_place(sites: &Sites, key: Key) -> Option<usize> {
    sites.get(&key).filter(|site| site.place != NONE).map(|site| site.place as usize)
}

/// A face of a fine group on a face of a coarse leaf patch.
struct Meeting {
    /// The fine group.
    key: Key,
    /// Of it: −x, +x, −y, …
    face: usize,
    /// Where the coarse group's plane belongs in [`FluxTables::slots`], if it is own.
    coarse: Option<u32>,
    /// The same of the fine group.
    fine: Option<u32>,
    /// The rank that owns the one that is not.
    other: Option<u32>,
    /// The plane of the fine side, counted within the pair of levels.
    fine_plane: u32,
    /// As the coarse patch sees it.
    axis: u8,
    high: bool,
    octant: u8,
}

impl Meeting {
    /// At this face of an own group, if a coarse leaf is behind it.
    ///
    /// * `coarser`: where the groups of the coarser level are
    fn of_own(
        tree: &Octree,
        known: &RemoteGroups,
        coarser: &Sites,
        tables: &LevelTopology,
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
        let coarse = own_place(coarser, parent);
        let other = coarse.is_none().then(|| known.find(parent).expect("proper nesting"));
        let fine_place = 3 * (face / 2) + if face & 1 == 1 { 2 } else { 0 };
        let fine = Some((fine * FLUX_PLANES + fine_place) as u32);
        Some(Self { fine, other, ..Self::new(key, face, behind.octant(), coarse) })
    }

    /// At this face of another rank's group, if an own leaf is behind it.
    ///
    /// * `coarser`, `tables`: of the coarser level
    fn of_other(
        tree: &Octree,
        coarser: &Sites,
        tables: &LevelTopology,
        group: &RemoteGroup,
        face: usize,
    ) -> Option<Self> {
        let behind = tree.neighbour(group.key, face_offset(face))?;
        let coarse = own_place(coarser, behind.parent().expect("refined levels have parents"))?;
        let is_leaf = tables.leaves[coarse] >> behind.octant() & 1 == 1;
        is_leaf.then(|| Self { other: Some(group.rank), ..Self::new(group.key, face, behind.octant(), Some(coarse)) })
    }

    /// Of a fine group's face and the patch behind it, at `octant` of a coarse group: where that stands, if it is own.
    fn new(key: Key, face: usize, octant: usize, coarse: Option<usize>) -> Self {
        let (axis, high) = (face / 2, face & 1 == 1);
        // the coarse patch sees the fine group on the other side
        let coarse_place = axis * 3 + (octant >> axis & 1) + usize::from(!high);
        Self {
            key,
            face,
            coarse: coarse.map(|coarse| (coarse * FLUX_PLANES + coarse_place) as u32),
            fine: None,
            other: None,
            fine_plane: NONE,
            axis: axis as u8,
            high: !high,
            octant: octant as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mesh::neighbours::build_tables;
    use crate::mesh::{CLOSED, Key, PERIODIC, nest};
    use crate::parallel::share::Share;
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
                let old_flux = FluxTables::build(&old, &build_tables(&old, &old_slots, Default::default()));
                let tables = build_tables(&new, &new_slots, Default::default());
                let share = Share::alone(&new);
                let sites: Vec<Sites> = share.level_groups(&new, &new_slots).iter().map(LevelGroups::sites).collect();
                let flux = old_flux.rebuilt(stay - 1, &new, &RemoteGroups::default(), &sites, &tables);
                prop_assert_eq!(format!("{flux:?}"), format!("{:?}", FluxTables::build(&new, &tables)));
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
        // three faces are inside the parent group (planes at cell 8), three between it and its neighbours (plane at
        // cell 0 of those): six coarse planes in all
        assert_eq!(tables.planes, 12);
        assert_eq!(tables.reflux[0].groups.last().expect("faces").end, 6);
    }
}

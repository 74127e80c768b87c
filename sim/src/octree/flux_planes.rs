//! Which flux planes a sweep must keep, and the faces at which flux correction uses them.

use super::tree::Octree;
use comove_kernels::layout::{FACES, FLUX_PLANES, direction};
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
}

impl FluxTables {
    /// Visits every face of every fine group that has no group of its own level behind it: there a whole face of the
    /// fine group (16×16 cells) lies on one face of a coarse leaf patch (8×8).
    ///
    /// `tables` are the octree's, level by level ([`super::neighbours::build_tables`]).
    pub fn build(tree: &Octree, tables: &[LevelTables]) -> Self {
        Self::default().rebuilt(0, tree, tables)
    }

    /// The same where the groups and slots of the levels up to `kept` are those of these tables.
    #[must_use]
    pub fn rebuilt(&self, kept: usize, tree: &Octree, tables: &[LevelTables]) -> Self {
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
        for level in kept + 1..levels {
            let on_group =
                |fine: usize| (0..FACES).filter_map(move |face| Meeting::at(tree, &tables[level], level, fine, face));
            let meetings: Vec<Meeting> = (0..tree.level(level).len()).into_par_iter().flat_map_iter(on_group).collect();
            let mut faces: Vec<(usize, CoarseFineFace)> = meetings
                .into_iter()
                .map(|meeting| {
                    let Meeting { coarse, coarse_place, fine, fine_place, axis, high, octant } = meeting;
                    let face = CoarseFineFace {
                        axis,
                        high,
                        octant,
                        coarse_plane: planes.at(level - 1, coarse * FLUX_PLANES + coarse_place),
                        fine_plane: planes.at(level, fine * FLUX_PLANES + fine_place),
                    };
                    (coarse, face)
                })
                .collect();
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
        let written = |slots: &Vec<u32>| slots.iter().copied().filter(|&plane| plane != NONE).collect();
        let between = |reflux: &RefluxTables| {
            let mut planes: Vec<u32> =
                reflux.faces.iter().flat_map(|face| [face.coarse_plane, face.fine_plane]).collect();
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
            between: after(&self.between, reflux_tables.iter().map(between).collect()),
            slots: after(&self.slots, planes.slots.into_iter().map(Table::from).collect()),
            reflux: self.reflux.iter().take(kept).cloned().chain(reflux_tables).collect(),
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
    coarse: usize,
    /// Which of the coarse group's nine places the face lies on.
    coarse_place: usize,
    fine: usize,
    fine_place: usize,
    /// As the coarse patch sees it.
    axis: u8,
    high: bool,
    octant: u8,
}

impl Meeting {
    /// At this face (−x, +x, −y, …) of a group, if a coarse leaf lies behind it.
    fn at(tree: &Octree, tables: &LevelTables, level: usize, fine: usize, face: usize) -> Option<Self> {
        let (axis, high) = (face / 2, face & 1 == 1);
        let mut offset = [0; 3];
        offset[axis] = if high { 1 } else { -1 };
        let [x, y, z] = offset;
        if tables.row(fine)[direction(x, y, z)] != NONE {
            return None;
        }
        let behind = tree.neighbour(tree.level(level)[fine], offset)?;
        let parent = behind.parent().expect("refined levels have parents");
        let octant = behind.octant();
        Some(Self {
            coarse: tree.find(parent).expect("proper nesting"),
            // the coarse patch sees the fine group on the other side
            coarse_place: axis * 3 + (octant >> axis & 1) + usize::from(!high),
            fine,
            fine_place: axis * 3 + if high { 2 } else { 0 },
            axis: axis as u8,
            high: !high,
            octant: octant as u8,
        })
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
                let flux = old_flux.rebuilt(stay - 1, &new, &tables);
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

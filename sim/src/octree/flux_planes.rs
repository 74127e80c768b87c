//! Which flux planes a sweep must keep, and the faces at which flux correction uses them.

use super::tree::Octree;
use comove_kernels::Table;
use comove_kernels::layout::FLUX_PLANES;
use comove_kernels::reflux::{CoarseFineFace, RefluxGroup, RefluxTables};
use comove_kernels::tables::NONE;

/// Flux planes of all levels and the coarse–fine faces between them. Derived data, rebuilt at a regrid.
///
/// Planes are numbered level by level, and none serves two pairs of levels (a coarse face has a group of its own level
/// behind it or lies inside one, a fine face has none), so a regrid of finer levels leaves the numbers of coarser ones
/// alone: sums of fluxes go on across it.
#[derive(Clone, Debug, Default)]
pub struct FluxTables {
    /// Planes in all.
    pub planes: usize,
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
    /// `pool` is the pool slot of each group, level by level in key order.
    pub fn build(tree: &Octree, pool: &[Vec<u32>]) -> Self {
        let levels = tree.level_count();
        let mut planes =
            Planes { slots: (0..levels).map(|l| vec![NONE; tree.level(l).len() * FLUX_PLANES]).collect(), count: 0 };
        let mut reflux_tables = vec![RefluxTables::default(); levels];
        for level in 1..levels {
            let mut faces = Vec::new();
            for (fine, &key) in tree.level(level).iter().enumerate() {
                for axis in 0..3 {
                    for high in [false, true] {
                        let mut offset = [0; 3];
                        offset[axis] = if high { 1 } else { -1 };
                        let Some(behind) = tree.neighbour(key, offset) else { continue };
                        if tree.find(behind).is_some() {
                            continue;
                        }
                        let parent = behind.parent().expect("refined levels have parents");
                        let coarse = tree.find(parent).expect("proper nesting");
                        let octant = behind.octant();
                        // the coarse patch sees the fine group on the other side
                        let coarse_place = axis * 3 + (octant >> axis & 1) + usize::from(!high);
                        let fine_place = axis * 3 + if high { 2 } else { 0 };
                        let face = CoarseFineFace {
                            axis: axis as u8,
                            high: !high,
                            octant: octant as u8,
                            coarse_plane: planes.at(level - 1, coarse * FLUX_PLANES + coarse_place),
                            fine_plane: planes.at(level, fine * FLUX_PLANES + fine_place),
                        };
                        faces.push((coarse, face));
                    }
                }
            }
            faces.sort_by_key(|(coarse, face)| (*coarse, face.octant, face.axis, face.high));
            let mut groups: Vec<RefluxGroup> = Vec::new();
            for (n, &(coarse, _)) in faces.iter().enumerate() {
                let (index, end) = (coarse as u32, n as u32 + 1);
                match groups.last_mut() {
                    Some(last) if last.index == index => last.end = end,
                    _ => groups.push(RefluxGroup { index, slot: pool[level - 1][coarse], end }),
                }
            }
            let faces = faces.into_iter().map(|(_, face)| face).collect();
            reflux_tables[level - 1] = RefluxTables { faces, groups: groups.into() };
        }
        let written = |slots: &Vec<u32>| slots.iter().copied().filter(|&plane| plane != NONE).collect();
        let between = |reflux: &RefluxTables| {
            let mut planes: Vec<u32> =
                reflux.faces.iter().flat_map(|face| [face.coarse_plane, face.fine_plane]).collect();
            planes.sort_unstable();
            planes.dedup();
            planes.into()
        };
        Self {
            planes: planes.count as usize,
            written: planes.slots.iter().map(written).collect(),
            between: reflux_tables.iter().map(between).collect(),
            slots: planes.slots.into_iter().map(Table::from).collect(),
            reflux: reflux_tables,
        }
    }
}

/// Flux planes as they are given out.
struct Planes {
    slots: Vec<Vec<u32>>,
    count: u32,
}

impl Planes {
    /// The plane at a place, made if new.
    fn at(&mut self, level: usize, place: usize) -> u32 {
        let slot = &mut self.slots[level][place];
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
    use crate::octree::{Key, PERIODIC};

    #[test]
    fn planes_keep_their_numbers_when_finer_levels_change() {
        let coarse = (0..8).map(|o| Key::new(1, [1 + (o & 1), 1 + (o >> 1 & 1), 1 + (o >> 2)]));
        let build = |finest: &[[u32; 3]]| {
            let finest = finest.iter().map(|&c| Key::new(2, c));
            let tree = Octree::with_groups([2; 3], PERIODIC, coarse.clone().chain(finest));
            let slots: Vec<Vec<u32>> = (0..tree.level_count())
                .map(|l| (0..tree.level(l).len()).map(|n| (tree.first_of_level(l) + n) as u32).collect())
                .collect();
            FluxTables::build(&tree, &slots)
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

    #[test]
    fn one_refined_patch_has_six_faces() {
        let tree = Octree::with_groups([2, 2, 2], PERIODIC, [Key::new(1, [1, 1, 1])]);
        let slots = vec![(0..8).collect(), vec![8]];
        let tables = FluxTables::build(&tree, &slots);
        assert_eq!(tables.reflux[0].faces.len(), 6);
        assert_eq!(tables.slots[1].iter().filter(|&&s| s != NONE).count(), 6);
        // three faces lie inside the parent group (planes at cell 8), three between it and its neighbours (plane at
        // cell 0 of those): six coarse planes in all
        assert_eq!(tables.planes, 12);
        assert_eq!(tables.reflux[0].groups.last().expect("faces").end, 6);
    }
}

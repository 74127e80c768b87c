//! An octree like that of a run with a root of 256³ in which gas has collapsed, and the one after it.

use comove_kernels::layout::OCTANTS;
use comove_sim::mesh::{Octree, PERIODIC};
use comove_sim::refinement::wanted_tree;
use rayon::prelude::*;

/// Groups along each axis of the root.
pub(crate) const ROOT: u32 = 16;
pub(crate) const LEVELS: usize = 4;

/// Clumps scattered by a sequence of low discrepancy.
const CLUMPS: u32 = 700;

/// By what part clumps grow or shrink from one tree to the next.
const GROWTH: f64 = 0.012;

/// Where gas has collapsed, and how far from there level 1 reaches, in box units.
struct Clump {
    centre: [f64; 3],
    reach: f64,
}

impl Clump {
    fn new(n: u32, growth: f64) -> Self {
        let growth = if n.is_multiple_of(2) { growth } else { -growth };
        Self {
            centre: [0.819_172_5, 0.671_043_6, 0.549_700_5].map(|step| step * f64::from(n) % 1.0),
            reach: 0.042 / f64::from(n).powf(0.1) * (1.0 + growth),
        }
    }

    /// Whether the cells of a patch of this level flag.
    fn flags(&self, level: usize, centre: [f64; 3]) -> bool {
        let apart = (0..3).map(|a| (centre[a] - self.centre[a]).abs()).map(|d| d.min(1.0 - d).powi(2)).sum::<f64>();
        apart.sqrt() < self.reach * 0.36f64.powi(level as i32)
    }
}

/// A tree, and the masks of its patches, which ask for it and nothing else.
pub(crate) struct Collapsed {
    pub(crate) tree: Octree,
    #[allow(dead_code)] // one of the benchmarks flags
    pub(crate) masks: Vec<Vec<u32>>,
}

impl Collapsed {
    /// A tree and the next one, which has a few per cent of other groups.
    pub(crate) fn twice() -> [Self; 2] {
        let [before, after] = [0.0, GROWTH].map(Self::new);
        let groups = before.tree.groups();
        assert!((25_000..68_000).contains(&before.tree.group_count()), "groups of the levels: {groups:?}");
        let stay = before.tree.keys().filter(|&key| after.tree.find(key).is_some()).count();
        let changed = before.tree.group_count() + after.tree.group_count() - 2 * stay;
        let part = changed as f64 / before.tree.group_count() as f64;
        assert!((0.02..0.08).contains(&part), "{part} of all come or go");
        [before, after]
    }

    fn new(growth: f64) -> Self {
        let clumps: Vec<Clump> = (1..=CLUMPS).map(|n| Clump::new(n, growth)).collect();
        let mut tree = Octree::new([ROOT; 3], PERIODIC);
        let mut masks: Vec<Vec<u32>> = Vec::new();
        for _ in 0..=LEVELS {
            masks = (0..tree.level_count().min(LEVELS)).map(|level| masks_of(&clumps, &tree, level)).collect();
            tree = wanted_tree(&tree, &masks, LEVELS, 0);
        }
        Self { tree, masks }
    }
}

/// The masks of a level's patches: all neighbours of the patches that flag.
fn masks_of(clumps: &[Clump], tree: &Octree, level: usize) -> Vec<u32> {
    let patches = f64::from((2 * ROOT) << level);
    let of_group = |key: &comove_sim::Key| {
        let patch = |o: usize| key.child(o).coordinate.map(|c| (f64::from(c) + 0.5) / patches);
        let flags = |centre: [f64; 3]| clumps.iter().any(|clump| clump.flags(level, centre));
        (0..OCTANTS).map(|o| if flags(patch(o)) { (1 << 27) - 1 } else { 0 }).collect::<Vec<u32>>()
    };
    tree.level(level).par_iter().flat_map_iter(of_group).collect()
}

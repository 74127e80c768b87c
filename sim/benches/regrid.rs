//! Time of a regrid's work on the host, part by part, for an octree like that of `recipes/lcdm_100mpc.rhai` at z = 0:
//! about 12,000 groups on five levels, around many clumps. With the threads of the machine.

use comove_kernels::layout::OCTANTS;
use comove_sim::octree::flux_planes::FluxTables;
use comove_sim::octree::neighbours::build_tables;
use comove_sim::octree::{Octree, PERIODIC, nest};
use comove_sim::refinement::wanted_tree;
use divan::Bencher;

/// Groups along each axis of the root.
const ROOT: u32 = 8;
const LEVELS: usize = 4;

fn main() {
    divan::main();
}

/// Where gas has collapsed, and how far from there a level reaches, in box units.
struct Clumps(Vec<[f64; 3]>);

impl Clumps {
    /// Scattered by a sequence of low discrepancy.
    fn new() -> Self {
        Self((1..=300).map(|n| [0.819_172_5, 0.671_043_6, 0.549_700_5].map(|step| step * f64::from(n) % 1.0)).collect())
    }

    /// Whether the cells of a patch of this level flag.
    fn flag(&self, level: usize, centre: [f64; 3]) -> bool {
        let reach = |n: usize| 0.062 / (n as f64 + 1.0).powf(0.1) * 0.42f64.powi(level as i32);
        let distance = |from: &[f64; 3]| {
            (0..3).map(|a| (centre[a] - from[a]).abs()).map(|d| d.min(1.0 - d).powi(2)).sum::<f64>().sqrt()
        };
        self.0.iter().enumerate().any(|(n, clump)| distance(clump) < reach(n))
    }

    /// The masks of a level's patches: all neighbours of the patches that flag.
    fn masks(&self, tree: &Octree, level: usize) -> Vec<u32> {
        let patches = f64::from((2 * ROOT) << level);
        let centre = |patch: [u32; 3]| patch.map(|c| (f64::from(c) + 0.5) / patches);
        let patches = tree.level(level).iter().flat_map(|key| (0..OCTANTS).map(|o| key.child(o).coordinate));
        patches.map(|patch| if self.flag(level, centre(patch)) { (1 << 27) - 1 } else { 0 }).collect()
    }

    fn all_masks(&self, tree: &Octree) -> Vec<Vec<u32>> {
        (0..tree.level_count().min(LEVELS)).map(|level| self.masks(tree, level)).collect()
    }

    fn tree(&self) -> Octree {
        let mut tree = Octree::new([ROOT; 3], PERIODIC);
        for _ in 0..LEVELS {
            tree = wanted_tree(&tree, &self.all_masks(&tree), LEVELS, 0);
        }
        tree
    }
}

fn slots(tree: &Octree) -> Vec<Vec<u32>> {
    let first = |level| tree.first_of_level(level) as u32;
    (0..tree.level_count()).map(|l| (first(l)..first(l) + tree.level(l).len() as u32).collect()).collect()
}

/// From flags to the tree that they ask for.
#[divan::bench(args = [0, 2])]
fn tree_from_flags(bencher: Bencher, kept: usize) {
    let clumps = Clumps::new();
    let tree = clumps.tree();
    let groups: Vec<usize> = (0..tree.level_count()).map(|l| tree.level(l).len()).collect();
    assert!((10_000..14_000).contains(&tree.group_count()), "groups of the levels: {groups:?}");
    let masks = clumps.all_masks(&tree);
    bencher.bench_local(|| wanted_tree(&tree, &masks, LEVELS, kept));
}

#[divan::bench]
fn nesting(bencher: Bencher) {
    let tree = Clumps::new().tree();
    let sets = || (0..=LEVELS).map(|l| tree.level(l).to_vec()).collect::<Vec<_>>();
    bencher.with_inputs(sets).bench_local_values(|sets| nest([ROOT; 3], PERIODIC, sets));
}

#[divan::bench]
fn neighbours(bencher: Bencher) {
    let tree = Clumps::new().tree();
    let slots = slots(&tree);
    bencher.bench_local(|| build_tables(&tree, &slots, Default::default()));
}

#[divan::bench]
fn flux_planes(bencher: Bencher) {
    let tree = Clumps::new().tree();
    let slots = slots(&tree);
    let tables = build_tables(&tree, &slots, Default::default());
    bencher.bench_local(|| FluxTables::build(&tree, &tables));
}

//! Time of a regrid's work on the host, part by part, for an octree like that of a run with a root of 256³ in which a few
//! per cent of the groups come and go. With the threads of the machine.

mod clumps;

use clumps::{Collapsed, LEVELS, ROOT};
use comove_kernels::LevelTopology;
use comove_sim::mesh::FluxTables;
use comove_sim::mesh::read_slots;
use comove_sim::mesh::{Key, Octree, PERIODIC, nest};
use comove_sim::mesh::{LevelGroups, Sites};
use comove_sim::mesh::{build_tables, rebuilt_tables};
use comove_sim::parallel::RemoteGroups;
use comove_sim::parallel::Share;
use comove_sim::refinement::wanted_tree;
use divan::Bencher;
use rayon::prelude::*;
use std::collections::HashMap;

fn main() {
    comove_kernels::memory::keep_freed();
    divan::main();
}

/// A tree with the slots of its groups.
struct Placed {
    tree: Octree,
    slots: Vec<Vec<u32>>,
    share: Share,
}

impl Placed {
    /// Groups that were there keep their slots, others come behind them.
    fn after(before: &Octree, tree: Octree) -> Self {
        let places: HashMap<Key, u32> = before.keys().zip(0..).collect();
        let mut next = before.group_count() as u32..;
        let mut slot = |key: &Key| places.get(key).copied().unwrap_or_else(|| next.next().expect("a slot"));
        let slots = (0..tree.level_count()).map(|level| tree.level(level).iter().map(&mut slot).collect()).collect();
        Self { slots, share: Share::alone(&tree), tree }
    }

    fn groups(&self) -> Vec<LevelGroups<'_>> {
        self.share.level_groups(&self.tree, &self.slots)
    }

    fn sites(&self) -> Vec<Sites> {
        self.groups().par_iter().map(LevelGroups::sites).collect()
    }
}

/// What there is before a regrid, and what comes.
struct Regrid {
    before: Placed,
    tables: Vec<LevelTopology>,
    flux: FluxTables,
    after: Placed,
}

impl Regrid {
    fn new() -> Self {
        let [before, after] = Collapsed::twice().map(|collapsed| collapsed.tree);
        let after = Placed::after(&before, after);
        let before = Placed::after(&before, before.clone());
        let tables = build_tables(&before.tree, &before.slots, Default::default());
        Self { flux: FluxTables::build(&before.tree, &tables), tables, before, after }
    }

    fn tables(&self) -> Vec<LevelTopology> {
        let Self { before, tables, after, .. } = self;
        let (old, new, sites) = (before.groups(), after.groups(), after.sites());
        rebuilt_tables(&after.tree, (&old, tables), &new, &sites, 0, Default::default())
    }
}

/// From flags to the tree that they ask for.
#[divan::bench(args = [0, 2])]
fn tree_from_flags(bencher: Bencher, kept: usize) {
    let [Collapsed { tree, masks }, _] = Collapsed::twice();
    bencher.bench_local(|| wanted_tree(&tree, &masks, LEVELS, kept));
}

#[divan::bench]
fn nesting(bencher: Bencher) {
    let [Collapsed { tree, .. }, _] = Collapsed::twice();
    let sets = || (0..=LEVELS).map(|l| tree.level(l).to_vec()).collect::<Vec<_>>();
    bencher.with_inputs(sets).bench_local_values(|sets| nest([ROOT; 3], PERIODIC, sets));
}

/// Where groups are, and the tables.
#[divan::bench]
fn tables(bencher: Bencher) {
    let regrid = Regrid::new();
    bencher.bench_local(|| regrid.tables());
}

#[divan::bench]
fn flux_planes(bencher: Bencher) {
    let regrid = Regrid::new();
    let (tables, sites) = (regrid.tables(), regrid.after.sites());
    bencher.bench_local(|| regrid.flux.rebuilt(0, &regrid.after.tree, &RemoteGroups::default(), &sites, &tables));
}

/// Slots of the groups that finer ones interpolate from.
#[divan::bench]
fn slots_to_read(bencher: Bencher) {
    let tables = Regrid::new().tables();
    let slots: Vec<_> = tables.iter().map(|level| level.slots.clone()).collect();
    bencher.bench_local(|| read_slots(&tables, &slots));
}

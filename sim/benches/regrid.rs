//! Time of a regrid's work on the host, part by part, for an octree like that of a run with a root of 256³ in which a few
//! per cent of the groups come and go. With the threads of the machine.

mod clumps;

use clumps::{Collapsed, LEVELS, ROOT};
use comove_kernels::LevelTables;
use comove_sim::level_history::read_slots;
use comove_sim::octree::flux_planes::FluxTables;
use comove_sim::octree::neighbours::{LevelGroups, Sites, build_tables, rebuilt_tables};
use comove_sim::octree::{Octree, PERIODIC, nest};
use comove_sim::parallel::known::Known;
use comove_sim::parallel::share::Share;
use comove_sim::refinement::wanted_tree;
use divan::Bencher;
use rayon::prelude::*;
use std::collections::HashMap;

fn main() {
    comove_kernels::memory::keep_freed();
    divan::main();
}

/// Slots in key order, and those of the next tree: of groups that stay the same, of others behind them.
fn slots(before: &Octree, after: &Octree) -> [Vec<Vec<u32>>; 2] {
    let places: HashMap<_, _> = before.keys().zip(0..).collect();
    let mut next = before.group_count() as u32..;
    let slots = |tree: &Octree, mut slot: Box<dyn FnMut(comove_sim::Key) -> u32 + '_>| {
        (0..tree.level_count()).map(|level| tree.level(level).iter().map(|&key| slot(key)).collect()).collect()
    };
    [
        slots(before, Box::new(|key| places[&key])),
        slots(after, Box::new(|key| places.get(&key).copied().unwrap_or_else(|| next.next().expect("a slot")))),
    ]
}

/// What there is before a regrid: tables and flux planes, and the tree and slots that come.
struct Before {
    old: (Octree, Vec<Vec<u32>>),
    tables: Vec<LevelTables>,
    flux: FluxTables,
    tree: Octree,
    slots: Vec<Vec<u32>>,
}

impl Before {
    fn new() -> Self {
        let [Collapsed { tree: before, .. }, Collapsed { tree, .. }] = Collapsed::twice();
        let [slots_before, slots] = slots(&before, &tree);
        let tables = build_tables(&before, &slots_before, Default::default());
        Self { flux: FluxTables::build(&before, &tables), tables, old: (before, slots_before), tree, slots }
    }

    fn tables(&self) -> Vec<LevelTables> {
        let [before, now] = [(&self.old.0, &self.old.1), (&self.tree, &self.slots)];
        let shares = [before, now].map(|(tree, _)| Share::alone(tree));
        let before = shares[0].level_groups(before.0, before.1);
        let now = shares[1].level_groups(now.0, now.1);
        let sites: Vec<Sites> = now.par_iter().map(LevelGroups::sites).collect();
        rebuilt_tables(&self.tree, (&before, &self.tables), &now, &sites, 0, Default::default())
    }
}

/// From flags to the tree that they ask for.
#[divan::bench(args = [0, 2])]
fn tree_from_flags(bencher: Bencher, kept: usize) {
    let [before, after] = Collapsed::twice();
    println!("groups {:?}, then {:?}", before.tree.groups(), after.tree.groups());
    bencher.bench_local(|| wanted_tree(&before.tree, &before.masks, LEVELS, kept));
}

#[divan::bench]
fn nesting(bencher: Bencher) {
    let [Collapsed { tree, .. }, _] = Collapsed::twice();
    let sets = || (0..=LEVELS).map(|l| tree.level(l).to_vec()).collect::<Vec<_>>();
    bencher.with_inputs(sets).bench_local_values(|sets| nest([ROOT; 3], PERIODIC, sets));
}

#[divan::bench]
fn tables(bencher: Bencher) {
    let before = Before::new();
    bencher.bench_local(|| before.tables());
}

#[divan::bench]
fn flux_planes(bencher: Bencher) {
    let before = Before::new();
    let tables = before.tables();
    let share = Share::alone(&before.tree);
    let sites: Vec<Sites> = share.level_groups(&before.tree, &before.slots).iter().map(LevelGroups::sites).collect();
    bencher.bench_local(|| before.flux.rebuilt(0, &before.tree, &Known::default(), &sites, &tables));
}

/// Slots of the groups that finer ones interpolate from.
#[divan::bench]
fn slots_to_read(bencher: Bencher) {
    let tables = Before::new().tables();
    let slots: Vec<_> = tables.iter().map(|level| level.slots.clone()).collect();
    bencher.bench_local(|| read_slots(&tables, &slots));
}

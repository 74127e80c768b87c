//! What a regrid of ranks does on the host before anything moves, part by part, for an octree like that of a run with a root
//! of 256³ in which a few per cent of the groups come and go:
//!
//!     cargo bench -p comove-sim --bench regrid_of_ranks -- 2
//!
//! Ranks are threads, each with one that works for it; the first one's times are shown, the medians of some turns.

mod clumps;

use clumps::{Collapsed, ROOT};
use comove_kernels::{Device, LevelTopology};
use comove_sim::mesh::FluxTables;
use comove_sim::mesh::rebuilt_tables;
use comove_sim::mesh::{Key, Octree};
use comove_sim::mesh::{LevelGroups, Sites};
use comove_sim::parallel::Communicator;
use comove_sim::parallel::LoadBalancer;
use comove_sim::parallel::Owners;
use comove_sim::parallel::Share;
use std::collections::HashMap;
use std::time::Instant;

const TURNS: usize = 21;
const THREADS: usize = 1;

/// What a rank owns of a tree.
fn share_of(tree: &Octree, owners: &Owners, rank: usize) -> Octree {
    let own = |level: usize| tree.level(level).iter().copied().filter(|&key| owners.of(key) == rank).collect();
    Octree::share(tree.root_groups(), tree.periodic(), (0..tree.level_count()).map(own).collect())
}

/// Groups of others and their slots, by level.
type Ghosts = Vec<Vec<(Key, u32)>>;

/// What a rank has between two regrids.
struct Rank {
    own: Octree,
    slots: Vec<Vec<u32>>,
    share: Share,
    tables: Vec<LevelTopology>,
    flux: FluxTables,
}

impl Rank {
    /// Of nothing yet.
    fn new(owners: &Owners) -> Self {
        let own = Octree::share([ROOT; 3], [true; 3], Vec::new());
        let share = Share { owners: owners.clone(), ..Share::alone(&own) };
        Self { own, slots: Vec::new(), share, tables: Vec::new(), flux: FluxTables::default() }
    }

    /// After a regrid to these own groups, with the milliseconds of its parts.
    fn regrid(&self, communicator: &Communicator, own: &Octree) -> (Self, Vec<(&'static str, f64)>) {
        let own = own.clone();
        let mut times = Vec::new();
        let mut began = Instant::now();
        let mut done = |part, began: &mut Instant| {
            times.push((part, began.elapsed().as_secs_f64() * 1e3));
            *began = Instant::now();
        };
        let mut share = self.share.of(communicator, self.share.owners.clone(), &own, 0);
        done("announcements", &mut began);
        let ghosts = share.wanted_ghosts(&own, 0);
        done("relations", &mut began);
        let (slots, ghosts) = self.placed(&own, ghosts);
        share.ghosts = ghosts;
        began = Instant::now();
        let groups = share.level_groups(&own, &slots);
        let sites: Vec<Sites> = groups.iter().map(LevelGroups::sites).collect();
        done("sites", &mut began);
        let before = self.share.level_groups(&self.own, &self.slots);
        let tables = rebuilt_tables(&own, (&before, &self.tables), &groups, &sites, 0, Default::default());
        done("tables", &mut began);
        share.link(&own, &tables, &sites, 0);
        done("links", &mut began);
        let flux = self.flux.rebuilt(0, &own, &share.known, &sites, &tables);
        done("flux planes", &mut began);
        (Self { own, slots, share, tables, flux }, times)
    }

    /// Slots of own groups and ghosts: those that stay keep theirs.
    fn placed(&self, own: &Octree, ghosts: Vec<Vec<Key>>) -> (Vec<Vec<u32>>, Ghosts) {
        let owned = self.own.keys().zip(self.slots.iter().flatten().copied());
        let old: HashMap<Key, u32> = owned.chain(self.share.ghosts.iter().flatten().copied()).collect();
        let mut beyond = old.values().max().map_or(0, |last| last + 1)..;
        let mut slot = |key: &Key| old.get(key).copied().unwrap_or_else(|| beyond.next().expect("a slot"));
        let slots = (0..own.level_count()).map(|level| own.level(level).iter().map(&mut slot).collect()).collect();
        let ghosts = ghosts.into_iter().map(|keys| keys.into_iter().map(|key| (key, slot(&key))).collect()).collect();
        (slots, ghosts)
    }
}

fn main() {
    comove_kernels::memory::keep_freed();
    let ranks = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(2);
    let trees = &Collapsed::twice().map(|collapsed| collapsed.tree);
    println!("groups {:?}, then {:?} on {ranks} ranks", trees[0].groups(), trees[1].groups());
    std::thread::scope(|scope| {
        for communicator in Communicator::threads(ranks) {
            scope.spawn(move || {
                let rank = communicator.rank();
                let even = Owners::even(ranks, trees[0].root_groups());
                let (own, parts) = (share_of(&trees[0], &even, rank), LoadBalancer::default().parts(ranks));
                let owners = even.balanced(&communicator, &own, 0, &parts, &|_| 1);
                let [before, after] = trees.each_ref().map(|tree| share_of(tree, &owners, rank));
                let before = Rank::new(&owners).regrid(&communicator, &before).0;
                let device = Device::cpu(THREADS).expect("threads");
                let turn = |_| device.install(|| before.regrid(&communicator, &after).1);
                let turns: Vec<_> = (0..TURNS).map(turn).collect();
                if rank == 0 {
                    for (n, (part, _)) in turns[0].iter().enumerate() {
                        let mut times: Vec<f64> = turns.iter().map(|turn| turn[n].1).collect();
                        times.sort_by(f64::total_cmp);
                        println!("{part:14} {:8.3} ms", times[TURNS / 2]);
                    }
                }
            });
        }
    });
}

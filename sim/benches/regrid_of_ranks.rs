//! What a regrid of ranks does on the host before anything moves, part by part, for clumps nested four levels deep:
//!
//!     RAYON_NUM_THREADS=1 cargo bench -p comove-sim --bench regrid_of_ranks -- 2
//!
//! Ranks are threads; the first one's times are shown, of the best of some turns.

use comove_sim::kernels::FaceBoundary;
use comove_sim::octree::flux_planes::FluxTables;
use comove_sim::octree::{Key, Octree, PERIODIC, nest};
use comove_sim::parallel::communicator::Communicator;
use comove_sim::parallel::known::Known;
use comove_sim::parallel::owners::Owners;
use comove_sim::parallel::share::Share;
use comove_sim::parallel::tables::level_tables;
use std::time::Instant;

const ROOT: u32 = 8;
const TURNS: usize = 5;
/// By level from 1 on: clumps that reach it, and groups asked for around the centre of each.
const CLUMPS: [(usize, usize); 4] = [(120, 30), (100, 50), (40, 35), (10, 10)];

/// Clumps at random places, the same every time.
fn clumps() -> Octree {
    let mut state = 12345u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let centres: Vec<[f64; 3]> = (0..CLUMPS[0].0).map(|_| [random(), random(), random()]).collect();
    let mut wanted = vec![Vec::new()];
    for (n, (clumps, groups)) in CLUMPS.into_iter().enumerate() {
        let side = f64::from(ROOT << (n + 1));
        let width = 1.6 * (groups as f64).cbrt() / side;
        let mut around = |centre: &[f64; 3]| {
            let at = centre.map(|x| ((x + width * (random() - 0.5)).rem_euclid(1.0) * side) as u32);
            Key::new(n as u8 + 1, at)
        };
        wanted
            .push(centres[..clumps].iter().flat_map(|c| (0..groups).map(|_| around(c)).collect::<Vec<_>>()).collect());
    }
    let nested = nest([ROOT; 3], PERIODIC, wanted);
    Octree::with_groups([ROOT; 3], PERIODIC, nested.into_iter().skip(1).flatten())
}

/// What a rank owns of a tree.
fn share_of(tree: &Octree, owners: &Owners, rank: usize) -> Octree {
    let own = |level: usize| tree.level(level).iter().copied().filter(|&key| owners.of(key) == rank).collect();
    Octree::share(tree.root_groups(), tree.periodic(), (0..tree.level_count()).map(own).collect())
}

/// Milliseconds of the parts, one turn.
fn turn(communicator: &Communicator, tree: &Octree, owners: &Owners, own: &Octree) -> Vec<(&'static str, f64)> {
    let mut times = Vec::new();
    let mut began = Instant::now();
    let mut done = |part| {
        times.push((part, began.elapsed().as_secs_f64() * 1e3));
        began = Instant::now();
    };
    let mut share = Share {
        known: Known::default().told(communicator, owners, own, 0),
        owners: owners.clone(),
        groups: tree.groups(),
        ..Share::alone(own)
    };
    done("announcements");
    let ghosts = share.wanted_ghosts(own, 0);
    done("relations");
    let mut next = 0..;
    let slots: Vec<Vec<u32>> =
        (0..own.level_count()).map(|level| next.by_ref().take(own.level(level).len()).collect()).collect();
    share.ghosts = ghosts.into_iter().map(|keys| keys.into_iter().zip(next.by_ref()).collect()).collect();
    let of_all = share.slots(own, &slots);
    done("slots");
    share.link(own, &of_all, 0);
    done("links");
    let faces = [FaceBoundary::Outflow; 6];
    let levels = 0..own.level_count();
    let tables: Vec<_> = levels.map(|level| level_tables(own, &share.known, level, &of_all, faces)).collect();
    done("tables");
    let _ = FluxTables::default().rebuilt(0, own, &share.known, &tables);
    done("flux planes");
    times
}

fn main() {
    let ranks = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(2);
    let tree = &clumps();
    println!("groups {:?} on {ranks} ranks", tree.groups());
    std::thread::scope(|scope| {
        for communicator in Communicator::threads(ranks) {
            scope.spawn(move || {
                let rank = communicator.rank();
                let even = Owners::even(ranks, tree.root_groups());
                let owners = even.balanced(&communicator, &share_of(tree, &even, rank), 0, &[]);
                let own = share_of(tree, &owners, rank);
                let turns: Vec<_> = (0..TURNS).map(|_| turn(&communicator, tree, &owners, &own)).collect();
                if rank == 0 {
                    for (n, (part, _)) in turns[0].iter().enumerate() {
                        let best = turns.iter().map(|turn| turn[n].1).fold(f64::INFINITY, f64::min);
                        println!("{part:14} {best:8.3} ms");
                    }
                }
            });
        }
    });
}

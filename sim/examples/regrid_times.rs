use comove_sim::octree::{Key, Octree, PERIODIC, flux_planes::FluxTables, nest};
use comove_sim::parallel::communicator::Communicator;
use comove_sim::parallel::known::Known;
use comove_sim::parallel::links::Relations;
use comove_sim::parallel::owners::Owners;
use comove_sim::parallel::share::Share;
use comove_sim::parallel::tables::level_tables;
use comove_sim::kernels::FaceBoundary;
use std::time::Instant;

fn main() {
    // clumps that are nested: finer ones around fewer centres
    let mut state = 12345u64;
    let mut random = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as f64 / (1u64 << 31) as f64
    };
    let centres: Vec<[f64; 3]> = (0..120).map(|_| [random(), random(), random()]).collect();
    let mut wanted = vec![Vec::new()];
    for (level, (n, groups)) in [(120, 30), (100, 50), (40, 35), (10, 10)].into_iter().enumerate() {
        let level = level + 1;
        let side = (8 << level) as f64;
        let mut keys = Vec::new();
        for c in &centres[..n] {
            for _ in 0..groups {
                let w = 1.6 * (groups as f64).cbrt() / side;
                let at = c.map(|x| ((x + w * (random() - 0.5)).rem_euclid(1.0) * side) as u32);
                keys.push(Key::new(level as u8, at));
            }
        }
        wanted.push(keys);
    }
    let nested = nest([8; 3], PERIODIC, wanted);
    let tree = Octree::with_groups([8; 3], PERIODIC, nested.into_iter().skip(1).flatten());
    println!("groups {:?}", tree.groups());
    let ranks: usize = std::env::args().nth(1).map_or(2, |n| n.parse().unwrap());
    let tree = &tree;
    std::thread::scope(|scope| {
        for communicator in Communicator::threads(ranks) {
            scope.spawn(move || {
                let rank = communicator.rank();
                let even = Owners::even(ranks, [8; 3]);
                let share_of = |owners: &Owners| {
                    let own = |level: usize| tree.level(level).iter().copied().filter(|&key| owners.of(key) == rank).collect();
                    Octree::share(tree.root_groups(), tree.periodic(), (0..tree.level_count()).map(own).collect())
                };
                let owners = even.balanced(&communicator, &share_of(&even), 0, &[]);
                let own = share_of(&owners);
                let say = |what: &str, began: Instant| {
                    if rank == 0 {
                        println!("{what:30} {:8.3} ms", began.elapsed().as_secs_f64() * 1e3);
                    }
                };
                for _ in 0..3 {
                    let began = Instant::now();
                    let known = Known::default().told(&communicator, &owners, &own, 0);
                    say("told", began);
                    let began = Instant::now();
                    let mut share = Share { known, owners: owners.clone(), ghosts: Vec::new(), groups: tree.groups(), links: Vec::new(), relations: Vec::new(), moved: 0 };
                    let ghosts = share.wanted_ghosts(&own, 0);
                    say("wanted ghosts", began);
                    let began = Instant::now();
                    for level in 0..own.level_count() {
                        let _ = Relations::of(&own, &share.known, level);
                    }
                    say("  relations of all levels", began);
                    let mut next = 0..;
                    let slots: Vec<Vec<u32>> = (0..own.level_count()).map(|level| next.by_ref().take(own.level(level).len()).collect()).collect();
                    share.ghosts = ghosts.into_iter().map(|keys| keys.into_iter().zip(next.by_ref()).collect()).collect();
                    let began = Instant::now();
                    let of_all = share.slots(&own, &slots);
                    say("slots", began);
                    let began = Instant::now();
                    share.link(&own, &of_all, 0);
                    say("link", began);
                    let began = Instant::now();
                    let tables: Vec<_> = (0..own.level_count()).map(|level| level_tables(&own, &share.known, level, &of_all, [FaceBoundary::Outflow; 6])).collect();
                    say("level tables", began);
                    let began = Instant::now();
                    let _ = FluxTables::default().rebuilt(0, &own, &share.known, &tables);
                    say("flux", began);
                    if rank == 0 {
                        println!("own {:?} ghosts {}", own.groups(), share.ghost_count());
                    }
                }
            });
        }
    });
}

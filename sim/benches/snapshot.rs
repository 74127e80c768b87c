//! Time to write and to read a snapshot of 4,096 groups (16.8 million cells, 537 MB in single precision), in a folder of
//! `TMPDIR`. The rate is in cells. First, what memory writing takes beside the snapshot itself, which does not grow with it.
//!
//! Of several ranks, which are threads here, the time is that for which a run waits: until the system has the file.

use comove_kernels::layout::{GROUP_CELLS, GROUP_VALUES};
use comove_sim::mesh::PERIODIC;
use comove_sim::parallel::Owners;
use comove_sim::parallel::on_ranks;
use comove_sim::{Coordinates, HostState, Key, Octree, Snapshot, SnapshotHeader};
use divan::Bencher;
use divan::counter::ItemsCount;

fn main() {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    for groups in [8, 16] {
        let snapshot = snapshot_of(groups);
        // from here on the peak counts
        let resident = std::fs::write("/proc/self/clear_refs", "5").ok().and_then(|()| memory("VmRSS:"));
        snapshot.write(&folder.path().join("x.h5")).expect("a writable folder");
        let peak = memory("VmHWM:").zip(resident).map(|(peak, before)| (peak - before) / 1024);
        let peak = peak.map_or("not known here".into(), |mib| format!("{mib} MiB"));
        println!("{} cells in {} MiB: written with {peak} more", cells(&snapshot), snapshot.bytes() >> 20);
    }
    divan::main();
}

/// A number of kB that the system says of this process.
fn memory(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

fn cells(snapshot: &Snapshot) -> usize {
    snapshot.state.tree.group_count() * GROUP_CELLS
}

fn snapshot() -> Snapshot {
    snapshot_of(16)
}

/// Gas at rest whose density and pressure vary from cell to cell, with a potential, in so many groups a side.
fn snapshot_of(groups: u32) -> Snapshot {
    let mut state = HostState::zeros(Octree::new([groups; 3], PERIODIC));
    for (n, group) in state.fluid.chunks_exact_mut(GROUP_VALUES).enumerate() {
        for cell in 0..GROUP_CELLS {
            let density = 1.0 + f64::from(((n * GROUP_CELLS + cell) % 1009) as u32) / 1024.0;
            group[cell] = density;
            group[4 * GROUP_CELLS + cell] = 1.5 * density;
            group[5 * GROUP_CELLS + cell] = 1.0;
        }
    }
    state.potential = vec![-1.0; state.tree.group_count() * GROUP_CELLS];
    Snapshot { header: SnapshotHeader::initial(Coordinates::Plain), state }
}

#[divan::bench(sample_count = 3)]
fn write(bencher: Bencher) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let snapshot = snapshot();
    let cells = ItemsCount::new(cells(&snapshot));
    bencher.counter(cells).bench_local(|| snapshot.write(&folder.path().join("x.h5")).expect("a writable folder"));
}

#[divan::bench(sample_count = 3)]
fn read(bencher: Bencher) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("x.h5");
    let snapshot = snapshot();
    let cells = ItemsCount::new(cells(&snapshot));
    snapshot.write(&path).expect("a writable folder");
    bencher.counter(cells).bench_local(|| Snapshot::read(&path).expect("the file just written"));
}

/// What ranks that share the root along Hilbert's curve have of a snapshot.
fn shares(snapshot: &Snapshot, ranks: usize) -> Vec<Snapshot> {
    let Snapshot { header, state } = snapshot;
    let owners = Owners::even(ranks, state.tree.root_groups());
    let share = |rank: usize| {
        let keys: Vec<Key> = state.tree.keys().filter(|&key| owners.of(key) == rank).collect();
        let places: Vec<usize> = keys.iter().map(|&key| state.tree.index(key).expect("a group")).collect();
        let of = |values: &[f64], length: usize| {
            places.iter().flat_map(|place| values[place * length..][..length].iter().copied()).collect()
        };
        let tree = Octree::share(state.tree.root_groups(), PERIODIC, vec![keys]);
        let state = HostState {
            fluid: of(&state.fluid, GROUP_VALUES),
            potential: of(&state.potential, GROUP_CELLS),
            ..HostState::without_fields(tree)
        };
        Snapshot { header: header.clone(), state }
    };
    (0..ranks).map(share).collect()
}

#[divan::bench(sample_count = 5, args = [1, 2, 4, 8])]
fn write_by_ranks(bencher: Bencher, ranks: usize) {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("x.h5");
    let snapshot = snapshot();
    let cells = ItemsCount::new(cells(&snapshot));
    let shares = shares(&snapshot, ranks);
    bencher.counter(cells).bench_local(|| {
        on_ranks(ranks, |communicator| {
            let written = shares[communicator.rank()].write_by(&communicator, &path);
            written.expect("a writable folder")
        })
    });
}

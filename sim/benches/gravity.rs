//! Time of a whole multi-level Poisson solve in single precision: a 64³ root with three refined levels, each over the
//! middle of the coarser one. The rate is in cells of all levels. Also the time of the neighbour tables.

#[path = "../tests/integration/potentials/mod.rs"]
mod potentials;

use comove_kernels::layout::GROUP_CELLS;
use comove_sim::RunParameters;
use comove_sim::mesh::build_tables;
use divan::Bencher;
use divan::counter::ItemsCount;
use potentials::{Case, refine_where};

fn main() {
    divan::main();
}

fn bench(bencher: Bencher, threads: usize, parameters: &RunParameters) {
    let tree = refine_where([4; 3], 3, |level, corner, width| {
        let half = 0.3 / f64::from(1u32 << level);
        corner.iter().all(|&c| c < 0.5 + half && c + width > 0.5 - half)
    });
    // one clump in the middle
    let density = |position: [f64; 3]| {
        let r2: f64 = position.iter().map(|x| (x - 0.5).powi(2)).sum();
        0.2 + 1e-3 / (r2 + 1e-4)
    };
    let mut case = Case::<f32>::with_density(threads, tree, density);
    let cells = case.tree.group_count() * GROUP_CELLS;
    let mut gravity = case.gravity(parameters);
    bencher.counter(ItemsCount::new(cells)).bench_local(|| case.solve_with(&mut gravity));
}

#[divan::bench(args = [1, 2], sample_count = 10)]
fn default_options(bencher: Bencher, threads: usize) {
    bench(bencher, threads, &RunParameters::default());
}

#[divan::bench(args = [1, 2], sample_count = 10)]
fn two_cycles(bencher: Bencher, threads: usize) {
    bench(bencher, threads, &RunParameters { poisson_cycles: Some(2), ..RunParameters::default() });
}

/// Tables of 126,360 groups on four complete levels, with the threads of the machine.
#[divan::bench(sample_count = 5)]
fn tables(bencher: Bencher) {
    let tree = refine_where([6; 3], 3, |_, _, _| true);
    let slots: Vec<Vec<u32>> = (0..tree.level_count())
        .map(|l| (0..tree.level(l).len()).map(|n| (tree.first_of_level(l) + n) as u32).collect())
        .collect();
    bencher
        .counter(ItemsCount::new(tree.group_count()))
        .bench_local(|| build_tables(&tree, &slots, Default::default()));
}

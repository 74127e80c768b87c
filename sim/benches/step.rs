//! A whole refined step with gravity, regrid and records: cell updates per second, single precision, by threads.
//!
//! `cargo bench -p comove-sim --bench step`; with `-- profile` it prints instead where the time goes and the memory per
//! cell.

#[path = "../tests/integration/common/mod.rs"]
mod common;

use comove_kernels::Device;
use comove_sim::Criterion;
use comove_sim::{Precision, RunParameters, Simulation};

/// A 64³ root with two refined levels in the densest fifth of the box.
fn simulation(threads: usize) -> Simulation {
    let parameters = RunParameters {
        refine: vec![Criterion::DensityAbove { thresholds: vec![1.45, 1.75] }],
        ..common::cosmological_parameters(Precision::Single)
    };
    let device = Device::cpu(threads).expect("threads");
    let mut simulation = Simulation::start(device, &common::cosmological(4), parameters).expect("start");
    simulation.step().expect("step");
    simulation
}

#[divan::bench(args = [1, 2], sample_count = 8, sample_size = 1)]
fn amr_step(bencher: divan::Bencher, threads: usize) {
    let cells = simulation(threads).summary().cells;
    bencher
        .counter(divan::counter::ItemsCount::new(cells))
        .with_inputs(|| simulation(threads))
        .bench_local_refs(|simulation| simulation.step().expect("step"));
}

fn profile() {
    for threads in [1, 2] {
        let mut simulation = simulation(threads);
        for _ in 0..8 {
            simulation.step().expect("step");
        }
        let summary = simulation.summary();
        let (t, updates) = (summary.timing, summary.cell_updates as f64);
        println!(
            "{threads} threads: {:.2}e6 cell updates/s/core, groups {:?}, {:.0} bytes a cell",
            updates / t.total() / 1e6 / threads as f64,
            simulation.groups(),
            summary.bytes_per_cell
        );
        for (part, seconds) in t.parts() {
            let ns = seconds / updates * 1e9 * threads as f64;
            println!("  {part:31} {:5.1}%  {ns:6.1} ns a cell and core", 100.0 * seconds / t.total());
        }
    }
}

fn main() {
    if std::env::args().any(|a| a == "profile") {
        profile();
    } else {
        divan::main();
    }
}

//! Root steps of the method paper's campaign, whole, from one of its outputs.

use crate::Bench;
use comove_sim::TimeSteps;
use comove_sim::kernels::{Device, Scheme};
use comove_sim::{Criterion, RunParameters, Simulation, Snapshot};
use serde_json::json;
use std::path::Path;

/// `from`: the number of steps and the snapshot, `N:FILE`. The first step finds memory and tables to be made.
pub(crate) fn all(bench: &mut Bench, from: &str) {
    let (steps, file) = from.split_once(':').unwrap_or_else(|| panic!("steps={from}: steps=N:FILE is wanted"));
    let steps: usize = steps.parse().expect("a number of steps");
    let snapshot = Snapshot::read(Path::new(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let redshift = snapshot.header.redshift();
    let mut simulation = Simulation::start(bench.device.clone(), &snapshot, campaign(bench.scheme))
        .unwrap_or_else(|e| panic!("{file}: {e}"));
    for _ in 0..steps {
        let record = simulation.step().unwrap_or_else(|e| panic!("{file}: {e}"));
        let seconds = record.cell_updates as f64 / record.cell_updates_per_second;
        let rate = record.cell_updates_per_second;
        println!(
            "z = {redshift:.2}: {:.3e} cell updates in {:.1} ms, {rate:.3e} a second",
            record.cell_updates as f64,
            1e3 * seconds
        );
        bench.write(&json!({
            "part": "steps",
            "from_z": redshift,
            "threads": bench.device.threads(),
            "device": bench.device.name(),
            "on_gpu": !matches!(bench.device, Device::Cpu(_)),
            "seconds": seconds,
            "record": record,
        }));
    }
}

/// As in `recipes/lcdm_100mpc.rhai`.
fn campaign(scheme: Scheme) -> RunParameters {
    RunParameters {
        max_level: 5,
        time_steps: TimeSteps::Individual,
        refine: vec![Criterion::DensityAbove { thresholds: (1..=5).map(|power| 8f64.powi(power)).collect() }],
        ..RunParameters::default()
    }
    .with_scheme(scheme)
}

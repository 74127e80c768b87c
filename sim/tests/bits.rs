//! A run's bits depend neither on threads, nor on outputs, nor on where it was interrupted.

mod common;

use common::{cosmological, cosmological_parameters};
use comove_kernels::Device;
use comove_sim::{Precision, Simulation, Snapshot};

const STEPS: u64 = 14;

/// Runs from a snapshot to step `STEPS`; the state hash of every step.
fn run(from: &Snapshot, threads: usize, precision: Precision, outputs: bool) -> (Vec<String>, Snapshot) {
    let device = Device::cpu(threads).expect("threads");
    let mut simulation = Simulation::start(device, from, cosmological_parameters(precision)).expect("start");
    let mut hashes = Vec::new();
    while simulation.step_number() < STEPS {
        if outputs {
            let target = 0.7 * simulation.now() + 0.3 * simulation.next_stop();
            let output = simulation.output_at(target).expect("output");
            assert_eq!(output.header.a, target);
        }
        hashes.push(simulation.step().expect("step").state_hash);
    }
    (hashes, simulation.checkpoint().expect("checkpoint"))
}

#[test]
fn threads_outputs_and_restarts_leave_the_bits_alone() {
    let initial = cosmological(2);
    for precision in [Precision::Single, Precision::Double] {
        let (one, end) = run(&initial, 1, precision, false);
        assert!(end.state.tree.level_count() == 3, "the test needs refinement");
        let (two, _) = run(&initial, 2, precision, false);
        assert_eq!(one, two, "1 and 2 threads");
        let (with_outputs, _) = run(&initial, 2, precision, true);
        assert_eq!(one, with_outputs, "with outputs");
        for stop in [1usize, 6, 11] {
            let device = Device::cpu(2).expect("threads");
            let parameters = cosmological_parameters(precision);
            let mut simulation = Simulation::start(device, &initial, parameters).expect("start");
            for _ in 0..stop {
                simulation.step().expect("step");
            }
            let checkpoint = simulation.checkpoint().expect("checkpoint");
            drop(simulation);
            let (rest, resumed_end) = run(&checkpoint, 1, precision, false);
            assert_eq!(one[stop..], rest[..], "restart at step {stop}");
            assert_eq!(resumed_end.state.fluid, end.state.fluid);
            assert_eq!(resumed_end.state.potential, end.state.potential);
            assert_eq!(resumed_end.header.restart, end.header.restart, "ledger after a restart at step {stop}");
        }
    }
}

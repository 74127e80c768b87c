//! A run's bits depend neither on threads, nor on outputs, nor on where it was interrupted.

use crate::common;

use common::{cosmological, cosmological_parameters};
use comove_sim::TimeSteps;
use comove_sim::{Precision, RunParameters, Simulation, Snapshot};

/// Runs from a snapshot to step `steps`; the state hash of every step.
fn run(from: &Snapshot, threads: usize, parameters: &RunParameters, steps: u64) -> (Vec<String>, Snapshot) {
    let mut simulation = Simulation::start(common::device(threads), from, parameters.clone()).expect("start");
    let mut hashes = Vec::new();
    while simulation.step_number() < steps {
        hashes.push(simulation.step().expect("step").state_hash);
    }
    (hashes, simulation.checkpoint().expect("checkpoint"))
}

/// The same with an output in every step, and with checkpoints at `stops`.
fn run_with_outputs(
    from: &Snapshot,
    threads: usize,
    parameters: &RunParameters,
    steps: u64,
    stops: &[usize],
) -> (Vec<String>, Vec<Snapshot>) {
    let mut simulation = Simulation::start(common::device(threads), from, parameters.clone()).expect("start");
    let (mut hashes, mut checkpoints) = (Vec::new(), Vec::new());
    while simulation.step_number() < steps {
        if stops.contains(&hashes.len()) {
            checkpoints.push(simulation.checkpoint().expect("checkpoint"));
        }
        let target = 0.7 * simulation.now() + 0.3 * simulation.next_stop();
        let output = simulation.output_at(target).expect("output");
        assert_eq!(output.header.a, target);
        hashes.push(simulation.step().expect("step").state_hash);
    }
    (hashes, checkpoints)
}

fn threads_outputs_and_restarts_leave_the_bits_alone(
    initial: &Snapshot,
    parameters: &RunParameters,
    steps: u64,
    stops: &[usize],
) {
    let (one, end) = run(initial, 1, parameters, steps);
    assert!(end.state.tree.level_count() == 3, "the test needs refinement");
    let (two, checkpoints) = run_with_outputs(initial, 2, parameters, steps, stops);
    assert_eq!(one, two, "1 thread, and 2 with outputs and checkpoints");
    for (&stop, checkpoint) in stops.iter().zip(&checkpoints) {
        let (rest, resumed_end) = run(checkpoint, 1, parameters, steps);
        assert_eq!(one[stop..], rest[..], "restart at step {stop}");
        assert_eq!(resumed_end.state.fluid, end.state.fluid);
        assert_eq!(resumed_end.state.potential, end.state.potential);
        assert_eq!(resumed_end.header.restart, end.header.restart, "ledger after a restart at step {stop}");
    }
    assert_eq!(checkpoints.len(), stops.len());
}

#[test]
fn of_uniform_steps() {
    for (precision, groups) in [(Precision::Single, 2), (Precision::Double, 1)] {
        let parameters = cosmological_parameters(precision);
        threads_outputs_and_restarts_leave_the_bits_alone(&cosmological(groups), &parameters, 12, &[1, 8]);
    }
}

/// Regrids fall into the middle of root steps.
#[test]
fn of_individual_steps() {
    for precision in [Precision::Single, Precision::Double] {
        let time_steps = TimeSteps::Individual;
        let parameters = RunParameters { time_steps, regrid_every: 3, ..cosmological_parameters(precision) };
        threads_outputs_and_restarts_leave_the_bits_alone(&cosmological(1), &parameters, 12, &[1, 8]);
    }
}

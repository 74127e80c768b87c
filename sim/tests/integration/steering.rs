//! What a run is told on its way: it holds from the next step on, and in a checkpoint.

use crate::common;

use common::{cosmological, cosmological_parameters};
use comove_sim::TimeSteps;
use comove_sim::records::{StepLimit, StepRecord};
use comove_sim::{Precision, RunParameters, Simulation, Snapshot, Steering};

/// What a run is told after a step.
fn told(record: &StepRecord) -> Steering {
    match record.step {
        4..=6 => Steering { max_level: Some(0), ..Steering::default() },
        8..=11 => Steering { dt_max: Some(0.5 * record.dt), threshold_factor: Some(1.1), ..Steering::default() },
        _ => Steering::default(),
    }
}

/// Steps to step `steps`, told after every one; the records, and the end.
fn run(from: &Snapshot, parameters: &RunParameters, steps: u64) -> (Vec<StepRecord>, Snapshot) {
    let mut simulation = Simulation::start(common::device(2), from, parameters.clone()).expect("start");
    let mut records = Vec::new();
    while simulation.step_number() < steps {
        let record = simulation.step().expect("step");
        simulation.steer(told(&record)).expect("within the parameters");
        records.push(record);
    }
    (records, simulation.checkpoint().expect("checkpoint"))
}

fn steered(time_steps: TimeSteps) {
    let parameters = RunParameters { time_steps, regrid_every: 2, ..cosmological_parameters(Precision::Single) };
    let (records, end) = run(&cosmological(1), &parameters, 14);
    let levels = |step: usize| records[step - 1].groups.len();
    assert!(levels(5) == 2 && levels(6) == 1 && levels(8) == 2 && levels(14) == 3, "the finer levels go and come back");
    let by_dt: Vec<u64> = records.iter().filter(|r| r.limit == StepLimit::Steered).map(|r| r.step).collect();
    assert_eq!(by_dt, [9, 10, 11, 12]);
    assert_eq!(records[9].dt, 0.5 * records[8].dt);
    let free = RunParameters { time_steps, ..parameters.clone() };
    let mut unsteered = Simulation::start(common::device(2), &cosmological(1), free).expect("start");
    let hashes: Vec<String> = (0..6).map(|_| unsteered.step().expect("step").state_hash).collect();
    assert!(hashes[..4].iter().eq(records[..4].iter().map(|r| &r.state_hash)) && hashes[5] != records[5].state_hash);
    for stop in [5, 9] {
        let (_, checkpoint) = run(&cosmological(1), &parameters, stop);
        let (rest, resumed) = run(&checkpoint, &parameters, 14);
        let same = |r: &StepRecord| (r.state_hash.clone(), r.steering);
        assert!(rest.iter().map(same).eq(records[stop as usize..].iter().map(same)), "restart at step {stop}");
        assert_eq!(resumed.header.restart, end.header.restart);
    }
}

#[test]
fn of_uniform_steps() {
    steered(TimeSteps::Uniform);
}

#[test]
fn of_individual_steps() {
    steered(TimeSteps::Individual);
}

#[test]
fn a_run_is_not_steered_beyond_its_parameters() {
    let parameters = cosmological_parameters(Precision::Single);
    let mut simulation = Simulation::start(common::device(1), &cosmological(1), parameters).expect("start");
    let next = simulation.next_stop();
    for (wrong, message) in [
        (Steering { max_level: Some(5), ..Steering::default() }, "max_level = 5"),
        (Steering { dt_max: Some(1e-300), ..Steering::default() }, "is too short to advance the time"),
    ] {
        let error = simulation.steer(wrong).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    assert_eq!((simulation.steering(), simulation.next_stop()), (Steering::default(), next));
}

//! A run's bits do not depend on how many ranks share its octree, nor on who owns what.

mod common;

use common::{cosmological, cosmological_parameters};
use comove_sim::parallel::{Communicator, Ranks};
use comove_sim::parameters::TimeSteps;
use comove_sim::{Criterion, Precision, RunParameters, Simulation, Snapshot};

/// What one run leaves: every step's record without its times, and the state at the end.
struct Outcome {
    records: Vec<String>,
    end: Snapshot,
}

/// Runs `steps` steps on so many ranks, with owners at random if a number is given.
fn run(from: &Snapshot, ranks: usize, scattered: Option<u64>, parameters: &RunParameters, steps: u64) -> Outcome {
    let rank = |communicator: Communicator| {
        let first = communicator.rank() == 0;
        let ranks = match scattered {
            Some(seed) => Ranks::of(communicator).scattered(seed),
            None => Ranks::of(communicator),
        };
        let mut simulation = Simulation::start_on(common::device(1), ranks, from, parameters.clone()).expect("start");
        let mut records = Vec::new();
        while simulation.step_number() < steps {
            let mut record = simulation.step().expect("step");
            (record.timing, record.cell_updates_per_second, record.device_bytes) = Default::default();
            records.push(serde_json::to_string(&record).expect("a record"));
        }
        let end = simulation.checkpoint().expect("checkpoint");
        first.then_some(Outcome { records, end })
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = Communicator::threads(ranks)
            .into_iter()
            .map(|communicator| scope.spawn(move || rank(communicator)))
            .collect();
        let outcomes: Vec<Option<Outcome>> = threads.into_iter().map(|thread| thread.join().expect("a rank")).collect();
        outcomes.into_iter().flatten().next().expect("the first rank")
    })
}

fn same(one: &Outcome, other: &Outcome, what: &str) {
    for (n, (a, b)) in one.records.iter().zip(&other.records).enumerate() {
        assert_eq!(a, b, "step {} with {what}", n + 1);
    }
    assert_eq!(one.records.len(), other.records.len());
    assert!(one.end.state.tree == other.end.state.tree, "the octree with {what}");
    assert!(one.end.state.fluid == other.end.state.fluid, "the fluid with {what}");
    assert!(one.end.state.potential == other.end.state.potential, "the potential with {what}");
    assert_eq!(one.end.header.restart, other.end.header.restart, "restart data with {what}");
}

fn deep(parameters: RunParameters) -> RunParameters {
    let refine = vec![Criterion::DensityAbove { thresholds: vec![1.5, 1.8, 2.1] }];
    RunParameters { max_level: 3, refine, ..parameters }
}

fn of(time_steps: TimeSteps, precision: Precision, steps: u64) {
    let parameters = RunParameters { time_steps, regrid_every: 3, ..deep(cosmological_parameters(precision)) };
    let initial = cosmological(2);
    let alone = run(&initial, 1, None, &parameters, steps);
    assert_eq!(
        alone.end.state.tree.level_count(),
        4,
        "the test needs four levels: {:?}",
        alone.end.state.tree.groups()
    );
    let cases: Vec<(usize, Option<u64>)> = match std::env::var("CASE") {
        Ok(c) => serde_json::from_str(&c).unwrap(),
        _ => vec![(2, None), (3, None), (4, None), (3, Some(7))],
    };
    for (ranks, scattered) in cases {
        let shared = run(&initial, ranks, scattered, &parameters, steps);
        same(&alone, &shared, &format!("{ranks} ranks, scattered {scattered:?}"));
    }
}

#[test]
fn of_uniform_steps() {
    of(TimeSteps::Uniform, Precision::Single, 8);
}

#[test]
fn of_individual_steps() {
    of(TimeSteps::Individual, Precision::Double, 8);
}

#[test]
fn without_refinement() {
    let parameters = RunParameters { max_level: 0, refine: Vec::new(), ..cosmological_parameters(Precision::Single) };
    let initial = cosmological(2);
    let alone = run(&initial, 1, None, &parameters, 2);
    for (ranks, scattered) in [(2, None), (3, Some(1)), (5, None)] {
        let shared = run(&initial, ranks, scattered, &parameters, 2);
        same(&alone, &shared, &format!("{ranks} ranks, scattered {scattered:?}"));
    }
}

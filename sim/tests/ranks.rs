//! A run's bits do not depend on how many ranks share its octree, nor on who owns what, nor on how many it is continued by.

mod common;

use common::{cosmological, cosmological_parameters};
use comove_sim::parallel::{Communicator, Ranks};
use comove_sim::parameters::TimeSteps;
use comove_sim::records::{RanksRecord, StepRecord};
use comove_sim::{Criterion, Precision, RunParameters, Simulation, Snapshot};

/// So many ranks, which own what a curve says or, by a number, what chance says.
#[derive(Clone, Copy, Debug)]
struct Team {
    ranks: usize,
    scattered: Option<u64>,
}

const ALONE: Team = Team { ranks: 1, scattered: None };

const fn curve(ranks: usize) -> Team {
    Team { ranks, scattered: None }
}

const fn chance(ranks: usize, seed: u64) -> Team {
    Team { ranks, scattered: Some(seed) }
}

/// What one run leaves.
struct Outcome {
    records: Vec<StepRecord>,
    output: Snapshot,
    end: Snapshot,
}

/// Runs to step `steps`, with an output in the next.
fn run(from: &Snapshot, team: Team, parameters: &RunParameters, steps: u64) -> Outcome {
    let rank = |communicator: Communicator| {
        let first = communicator.rank() == 0;
        let ranks = match team.scattered {
            Some(seed) => Ranks::of(communicator).scattered(seed),
            None => Ranks::of(communicator),
        };
        let device = common::device_of(ranks.communicator.rank(), 1);
        let mut simulation = Simulation::start_on(device, ranks, from, parameters.clone()).expect("start");
        let mut records = Vec::new();
        while simulation.step_number() < steps {
            records.push(simulation.step().expect("step"));
        }
        let target = 0.7 * simulation.now() + 0.3 * simulation.next_stop();
        let output = simulation.output_at(target).expect("output");
        let end = simulation.checkpoint().expect("checkpoint");
        first.then_some(Outcome { records, output, end })
    };
    std::thread::scope(|scope| {
        let start = |communicator| scope.spawn(move || rank(communicator));
        let threads: Vec<_> = Communicator::threads(team.ranks).into_iter().map(start).collect();
        let outcomes: Vec<Option<Outcome>> = threads.into_iter().map(|thread| thread.join().expect("a rank")).collect();
        outcomes.into_iter().flatten().next().expect("the first rank")
    })
}

/// What a record says of the run, and not of the machine.
fn of_the_run(record: &StepRecord) -> StepRecord {
    let mut record = record.clone();
    (record.timing, record.cell_updates_per_second, record.device_bytes, record.ranks) = Default::default();
    record
}

fn assert_same_state(one: &Snapshot, other: &Snapshot, what: &str) {
    assert!(one.state.tree == other.state.tree, "the octree of {what}");
    assert!(one.state.fluid == other.state.fluid, "the fluid of {what}");
    assert!(one.state.potential == other.state.potential, "the potential of {what}");
    assert_eq!(one.header, other.header, "the header of {what}");
}

/// The last steps of `one` are those of `other`, and both end alike.
fn assert_same(one: &Outcome, other: &Outcome, what: &str) {
    for (a, b) in one.records.iter().rev().zip(other.records.iter().rev()) {
        assert_eq!(of_the_run(a), of_the_run(b), "{what}");
    }
    assert_same_state(&one.output, &other.output, what);
    assert_same_state(&one.end, &other.end, what);
}

/// Steps in which groups changed hands.
fn rebalances(outcome: &Outcome) -> usize {
    let moved = |record: &&StepRecord| record.ranks.as_ref().is_some_and(|ranks| ranks.moved_groups > 0);
    outcome.records.iter().filter(moved).count()
}

fn refined(time_steps: TimeSteps, precision: Precision) -> RunParameters {
    RunParameters {
        time_steps,
        regrid_every: 2,
        max_level: 3,
        refine: vec![Criterion::DensityAbove { thresholds: vec![1.5, 1.8, 2.1] }],
        ..cosmological_parameters(precision)
    }
}

fn ranks_leave_the_bits_alone(parameters: &RunParameters, steps: u64, teams: &[Team]) {
    let initial = cosmological(2);
    let alone = run(&initial, ALONE, parameters, steps);
    assert_eq!(
        alone.end.state.tree.level_count(),
        4,
        "the test needs four levels: {:?}",
        alone.end.state.tree.groups()
    );
    for &team in teams {
        let shared = run(&initial, team, parameters, steps);
        assert_same(&alone, &shared, &format!("{team:?}"));
        let rebalances = rebalances(&shared);
        assert!(rebalances >= 3, "the test needs three rebalances, and there were {rebalances} with {team:?}");
    }
    // continued by others than have begun
    let begun = run(&initial, teams[0], parameters, steps / 2);
    for team in [ALONE, curve(3)] {
        let rest = run(&begun.end, team, parameters, steps);
        assert_same(&alone, &rest, &format!("a restart with {team:?}"));
    }
}

#[test]
fn of_uniform_steps() {
    let parameters = refined(TimeSteps::Uniform, Precision::Single);
    ranks_leave_the_bits_alone(&parameters, 10, &[chance(2, 1), curve(3), curve(4)]);
}

#[test]
fn of_individual_steps() {
    let parameters = refined(TimeSteps::Individual, Precision::Double);
    ranks_leave_the_bits_alone(&parameters, 6, &[chance(4, 3), curve(2)]);
}

/// Marks of one rank's cells reach groups of others, boundaries are made from what is inside, and a limit of cells is
/// kept by all together.
#[test]
fn of_shocks_in_a_closed_box() {
    let snapshot = common::initial_on([3, 2, 2], comove_sim::octree::CLOSED, None, 1.0, |x| {
        let far = (0..3).map(|a| (x[a] - [0.55, 0.3, 0.35][a]).powi(2)).sum::<f64>();
        (1.0 + 0.5 * (-40.0 * far).exp(), [40.0 * (8.0 * x[0]).sin(), -30.0 * (9.0 * x[1]).cos(), 0.0], 1e-3)
    });
    let parameters = RunParameters {
        boundary: comove_sim::Boundaries::all(comove_sim::Boundary::Reflecting),
        regrid_every: 2,
        max_cells: Some(110 * 4096),
        ..common::plain_parameters(Precision::Single, 2, vec![1.1, 1.4])
    };
    let alone = run(&snapshot, ALONE, &parameters, 6);
    let redone: u64 = alone.records.iter().map(|record| record.ladder.redone_cells).sum();
    assert!(redone > 100, "the test needs redos: {redone}");
    assert!(alone.records.iter().any(|record| record.raised.is_some()), "the test needs its limit of cells");
    for team in [curve(2), chance(3, 5)] {
        assert_same(&alone, &run(&snapshot, team, &parameters, 6), &format!("{team:?}"));
    }
}

#[test]
fn of_more_ranks_than_groups() {
    let parameters = RunParameters { max_level: 0, refine: Vec::new(), ..cosmological_parameters(Precision::Single) };
    for groups in [1, 2] {
        let initial = cosmological(groups);
        let alone = run(&initial, ALONE, &parameters, 2);
        for team in [curve(2), chance(3, 1), curve(9)] {
            assert_same(&alone, &run(&initial, team, &parameters, 2), &format!("{groups} groups a side, {team:?}"));
        }
    }
}

/// Each rank has its part of every level, and no more ghosts than surround it.
#[test]
fn ranks_share_evenly() {
    let parameters = refined(TimeSteps::Uniform, Precision::Single);
    let shared = run(&cosmological(2), curve(2), &parameters, 4);
    for record in &shared.records {
        let RanksRecord { imbalance, traffic, count, .. } = record.ranks.as_ref().expect("two ranks");
        assert!(*count == 2 && traffic.len() == 2 && traffic.iter().all(|of_rank| of_rank.bytes > 0));
        assert!(*imbalance < 0.06, "step {}: {imbalance}", record.step);
    }
}

//! What a run takes is known before it takes it; where it does not fit the run stops, and continues with the same bits.

use crate::common;

use common::{cosmological, cosmological_parameters, device};
use comove_kernels::Device;
use comove_kernels::layout::GROUP_CELLS;
use comove_sim::Clock;
use comove_sim::State;
use comove_sim::TimeSteps;
use comove_sim::error::{Bound, Shortage};
use comove_sim::memory::{self, Species};
use comove_sim::records::StepRecord;
use comove_sim::refinement::{RefinementContext, wanted};
use comove_sim::{
    Boundaries, Boundary, Criterion, GravityBoundary, Precision, RunParameters, SimError, Simulation, Snapshot,
};
use std::collections::BTreeSet;

const GAS: Species = Species { gas: true, particles: 0 };

fn parameters(time_steps: TimeSteps) -> RunParameters {
    RunParameters { time_steps, regrid_every: 3, ..cosmological_parameters(Precision::Single) }
}

fn shortage(error: SimError) -> Shortage {
    match error {
        SimError::OutOfMemory(shortage) => *shortage,
        other => panic!("{other}"),
    }
}

/// Through trees that grow, shrink and move every array becomes as long as was said, with and without gravity.
#[test]
fn every_array_is_as_long_as_predicted() {
    let snapshot = cosmological(2);
    for (time_steps, gravity) in
        [(TimeSteps::Uniform, true), (TimeSteps::Individual, true), (TimeSteps::Individual, false)]
    {
        let with = |thresholds: Vec<f64>| RunParameters {
            gravity,
            refine: vec![Criterion::DensityAbove { thresholds }],
            ..parameters(time_steps)
        };
        let start = with(Vec::new());
        let width = snapshot.cell_width(0);
        let mut state = State::<f32>::from_host(device(2), &snapshot.state, width, &start).expect("a state");
        let clock = Clock::new(snapshot.header.a, 0.0, snapshot.header.cosmology);
        let mut sizes = Vec::new();
        for thresholds in [[1.8, 2.0], [1.8, 1.9], [1.5, 1.6], [1.4, 9.0], [9.0, 9.0], [1.3, 1.5], [1.29, 1.3]] {
            let parameters = with(thresholds.to_vec());
            let tree = wanted(&state, &RefinementContext::of(&state, &parameters, &clock, 1.0), 0).tree;
            let predicted = state.footprint_on(tree.clone());
            state.adopt_tree(tree, 0, &parameters.eos()).expect("room");
            state.save().expect("room");
            state.solve_gravity(1.0, 1.0).expect("room");
            assert_eq!(state.footprint(), predicted, "{time_steps:?}");
            assert_eq!(state.device_bytes(), predicted.total());
            sizes.push(predicted.total());
        }
        assert!(state.level_count() == 3 && sizes[6] > 2 * sizes[0], "{sizes:?}");
    }
}

/// A run without and with limits that the refinement comes up against at one time or another: the numbers, and whether
/// the state that is left goes on like the run without. The numbers of steps after which runs stopped.
fn stop_and_go_on(parameters: &RunParameters, initial: &Snapshot, with_output: bool) -> BTreeSet<usize> {
    const STEPS: usize = 14;
    const LIMITS: u64 = 6;
    let start = |device, from: &Snapshot| Simulation::start(device, from, parameters.clone());
    let mut whole = start(device(2), initial).expect("start");
    let records: Vec<_> = (0..STEPS).map(|_| whole.step().expect("step")).collect();
    let bytes: Vec<u64> = records.iter().map(|record| record.device_bytes).collect();
    let (least, most) = (bytes[0], *bytes.last().expect("steps"));
    assert!(most > least + least / 4, "the tree must grow: {bytes:?}");

    // an array that grows is there twice for a moment, and operations need something for themselves
    let working = device(1).working_bytes(0) as u64;
    let mut roomy = start(device(2).limited_to(most + most / 3 + working), initial).expect("start");
    for record in &records {
        assert_eq!(roomy.step().expect("room").state_hash, record.state_hash);
    }

    let mut stops = BTreeSet::new();
    for limit in (0..LIMITS).map(|n| working + least + (most - least) * n / LIMITS) {
        let Ok(limited) = start(device(2).limited_to(limit), initial) else { continue };
        let (reached, checkpoint) = stop(limited, limit, &records, with_output);
        stops.insert(reached);
        let mut rest = start(device(2), &checkpoint).expect("start");
        for record in &records[reached..] {
            assert_eq!(rest.step().expect("step").state_hash, record.state_hash, "stopped after {reached} steps");
        }
        let [rest, whole] = [&mut rest, &mut whole].map(|run| run.checkpoint().expect("a checkpoint").header.restart);
        assert_eq!(rest, whole);
    }
    assert!(stops.len() > 2, "{stops:?}");
    stops
}

/// Runs up against a limit; the steps taken by then, and a checkpoint.
fn stop(mut limited: Simulation, limit: u64, records: &[StepRecord], with_output: bool) -> (usize, Snapshot) {
    let mut reached = 0;
    let error = loop {
        if with_output {
            let target = 0.01 * limited.now() + 0.99 * limited.next_stop();
            if let Err(error) = limited.output_at(target) {
                break error;
            }
        }
        match limited.step() {
            Ok(record) => {
                assert!(record.device_bytes <= limit && record.state_hash == records[reached].state_hash);
                reached += 1;
            }
            Err(error) => break error,
        }
    };
    assert!(error.is_out_of_memory());
    let shortage = shortage(error);
    println!("outputs {with_output}: after {reached} steps {shortage}");
    assert!(shortage.bound == Bound::Limit && shortage.available == limit && shortage.needed > limit);
    assert!(shortage.wanted.iter().sum::<usize>() > shortage.groups.iter().sum());
    assert_eq!(limited.step_number() as usize, reached);

    // asking again changes nothing
    assert!(limited.step().is_err_and(|error| error.is_out_of_memory()));
    (reached, limited.checkpoint().expect("a checkpoint"))
}

#[test]
fn a_uniform_run_stops_and_goes_on() {
    for retries in [2, 0] {
        stop_and_go_on(&RunParameters { retries, ..parameters(TimeSteps::Uniform) }, &cosmological(1), false);
    }
}

/// The root's regrids lie at the end of every fourth step, those of level 1 also in the middle of steps, and of outputs in
/// these.
#[test]
fn an_individual_run_stops_and_goes_on() {
    for (retries, with_output) in [(2, false), (0, true)] {
        let parameters = RunParameters { retries, regrid_every: 4, ..parameters(TimeSteps::Individual) };
        let stops = stop_and_go_on(&parameters, &cosmological(1), with_output);
        assert!(stops.iter().any(|reached| reached % 4 != 3), "within a root step: {stops:?}");
    }
}

/// A run with `max_cells` raises the thresholds of its finest level, or leaves it out, so that it never has more; a restart
/// keeps to the same bits, limits of memory decide nothing, and where nothing is too much nothing changes.
#[test]
fn the_finest_thresholds_rise_to_stay_within_max_cells() {
    const STEPS: usize = 12;
    let initial = cosmological(1);
    for time_steps in [TimeSteps::Uniform, TimeSteps::Individual] {
        let with = |max_cells| RunParameters { max_cells, ..parameters(time_steps) };
        let run = |from: &Snapshot, max_cells: Option<u64>, steps: usize| {
            let mut simulation = Simulation::start(device(2), from, with(max_cells)).expect("start");
            let records: Vec<_> = (0..steps).map(|_| simulation.step().expect("step")).collect();
            (records, simulation.checkpoint().expect("checkpoint"))
        };
        let cells = |record: &StepRecord| (record.groups.iter().sum::<usize>() * GROUP_CELLS) as u64;
        let hashes = |records: &[StepRecord]| records.iter().map(|r| r.state_hash.clone()).collect::<Vec<_>>();
        let (free, _) = run(&initial, None, STEPS);
        let most = free.iter().map(cells).max().expect("steps");
        assert_eq!(hashes(&run(&initial, Some(most), STEPS).0), hashes(&free), "{time_steps:?}");

        // less than the finest level, and less than half of level 1, wants
        for max_cells in [2 * most / 3, 4096 * 5] {
            let (records, end) = run(&initial, Some(max_cells), STEPS);
            assert!(records.iter().all(|record| cells(record) <= max_cells));
            let last = records.last().expect("steps");
            let raised = last.raised.expect("raised");
            println!("{time_steps:?}: {:?} for {max_cells} cells, {raised}", last.groups);
            assert!(hashes(&records) != hashes(&free));
            match max_cells > 4096 * 9 {
                true => {
                    assert!(raised.level == 2 && raised.factor.is_some_and(|factor| factor > 1.0));
                    assert!(cells(last) > max_cells / 3);
                }
                false => assert!(raised.level == 1),
            }
            let (first, checkpoint) = run(&initial, Some(max_cells), 5);
            let (rest, end_of_rest) = run(&checkpoint, Some(max_cells), STEPS - 5);
            assert_eq!([hashes(&first), hashes(&rest)].concat(), hashes(&records));
            assert!(rest.iter().zip(&records[5..]).all(|(rest, whole)| rest.raised == whole.raised));
            assert_eq!(end_of_rest.header.restart, end.header.restart);
        }
    }
    let alone = Simulation::start(
        device(1),
        &initial,
        RunParameters { max_cells: Some(4095), ..parameters(TimeSteps::Uniform) },
    );
    assert!(
        alone
            .err()
            .expect("refused")
            .to_string()
            .contains("max_cells = 4095: must be at least 4096, the cells of the root level")
    );
}

/// What a plan says of a root alone is what the state on it takes, and of a tree what a run on it takes from its start.
#[test]
fn a_plan_says_what_a_run_takes() {
    for (boundary, groups) in [(GravityBoundary::Periodic, [2, 1, 1]), (GravityBoundary::Isolated, [1, 2, 1])] {
        let periodic = [boundary == GravityBoundary::Periodic; 3];
        let snapshot = common::initial_on(groups, periodic, None, 1.0, |_| (1.0, [0.0; 3], 1.0));
        let boundaries = if periodic[0] { Boundary::Periodic } else { Boundary::Outflow };
        let parameters = RunParameters {
            gravity: true,
            gravity_boundary: boundary,
            boundary: Boundaries::all(boundaries),
            ..common::plain_parameters(Precision::Double, 1, vec![2.0])
        };
        let cpu = Device::cpu(1).expect("threads");
        let mut state = State::<f64>::from_host(cpu.clone(), &snapshot.state, 1.0, &parameters).expect("a state");
        state.save().expect("room");
        let taken = state.device_bytes() + cpu.working_bytes(2);
        assert_eq!(memory::device_bytes(&cpu, &state.mesh.tree, &parameters, GAS), taken);
        let cells = groups.map(|n| n as usize * 16);
        assert_eq!(memory::root_device_bytes(&cpu, cells, &parameters, GAS), taken as f64);
        assert!(memory::root_device_bytes(&cpu, [1 << 20; 3], &parameters, GAS) > 1e20);
    }
}

/// A start that does not fit says so before it takes anything: the root alone, or what the criteria ask for on it.
#[test]
fn a_start_that_does_not_fit_is_refused() {
    let snapshot = cosmological(2);
    let start = |limit: u64| Simulation::start(device(1).limited_to(limit), &snapshot, parameters(TimeSteps::Uniform));
    let root = shortage(start(1 << 20).err().expect("no room"));
    assert_eq!((root.groups.len(), root.wanted.as_slice()), (0, &[8][..]));
    let refined = shortage(start(root.needed).err().expect("no room"));
    assert_eq!(refined.groups, [8]);
    assert!(refined.wanted.len() == 2 && refined.wanted[1] > 0);
    let text = refined.to_string();
    for part in ["level 1", "32768 + ", "on levels 0–1", "GiB are the limit of this run"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(refined.cells_that_fit() < refined.cells());
}

//! The upper rungs of the robustness ladder: steps retried, for floors or for speed, floors, and the stop when they
//! become too many.

use crate::common;

use common::{initial, plain_parameters};
use comove_kernels::Scheme;
use comove_sim::TimeSteps;
use comove_sim::error::Fault;
use comove_sim::{Precision, RunParameters, SimError, Simulation, Snapshot};
use std::f64::consts::TAU;

/// Streams that part at x = 0: gas that expands, cools and, with a floor this high, is floored at any time step.
fn parting() -> Snapshot {
    initial(1, [true; 3], None, 1.0, |x| (1.0, [0.3 * (TAU * x[0]).sin(), 0.0, 0.0], 0.6))
}

fn parameters(retries: u32, floor_budget: f64) -> RunParameters {
    // how many steps are floored depends on the scheme
    let plain = plain_parameters(Precision::Single, 0, Vec::new()).with_scheme(Scheme::RelaxingTvd);
    RunParameters { retries, floor_budget, pressure_floor: 0.55, ..plain }
}

fn start(snapshot: &Snapshot, parameters: RunParameters) -> Simulation {
    Simulation::start(common::device(1), snapshot, parameters).expect("start")
}

/// A step in parts ends where it would have ended; steps whose floors no retry helps are taken again ever more rarely;
/// and what decides that survives a restart.
#[test]
fn retries_in_vain_become_rare_and_change_no_time() {
    const STEPS: u64 = 14;
    let run = |simulation: &mut Simulation| -> Vec<(u64, u32, String)> {
        let mut steps = Vec::new();
        while simulation.step_number() < STEPS {
            let (before, next) = (simulation.now(), simulation.next_stop());
            let record = simulation.step().expect("within the budget");
            assert_eq!(simulation.now(), next, "step {}", record.step);
            // time is a sum of few terms: some roundings
            let advanced = record.dt * f64::from(1u32 << record.ladder.retries);
            assert!((advanced - (next - before)).abs() < 1e-14, "step {}", record.step);
            steps.push((record.ladder.floored_cells, record.ladder.retries, record.state_hash));
        }
        steps
    };
    let mut simulation = start(&parting(), parameters(2, 1.0));
    let all = run(&mut simulation);
    let floored = all.iter().filter(|step| step.0 > 0).count() as u64;
    let retried = all.iter().filter(|step| step.1 > 0).count() as u64;
    // of 6 to 10 floored steps those numbered 1, 3, 6
    assert!((6..11).contains(&floored) && retried == 3, "{floored} steps floored, {retried} taken again");
    for stop in [3, 8] {
        let mut simulation = start(&parting(), parameters(2, 1.0));
        while simulation.step_number() < stop {
            simulation.step().expect("within the budget");
        }
        let checkpoint = simulation.checkpoint().expect("checkpoint");
        assert_eq!(run(&mut start(&checkpoint, parameters(2, 1.0))), all[stop as usize..], "restart at step {stop}");
    }
}

/// Past the budget, a thousandth of the cells of four sweeps, the run stops and names the cell, its neighbours and what was tried.
#[test]
fn too_many_floors_stop_the_run_with_the_cell_named() {
    let mut simulation = start(&parting(), parameters(1, 1e-3));
    let error = loop {
        match simulation.step() {
            Ok(record) => assert!(record.ladder.floored_cells <= 16 && record.step < 10),
            Err(error) => break error,
        }
    };
    let text = error.to_string();
    let SimError::Unphysical { step, fault: Fault::Floored { cells, allowed }, cell, .. } = error else {
        panic!("{text}");
    };
    assert!(step == simulation.step_number() + 1 && cells > allowed && allowed == 16, "{text}");
    // the gas that expands lies about x = 0, in the outermost cells along x
    assert!(cell.place.level == 0 && (cell.place.cell[0] < 4 || cell.place.cell[0] > 11), "{text}");
    assert!((cell.gas.pressure / 0.55 - 1.0).abs() < 1e-5 && (cell.gas.density - 1.0).abs() < 0.2, "{text}");
    let across = cell.neighbours[2].expect("a periodic box");
    // the flow is the same along y
    assert!(across.density == cell.gas.density && across.velocity == cell.gas.velocity, "{text}");
    for part in ["the step taken in 2 parts", "floor_budget allows 16", "-x: density", "+z: density"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}

/// Cells that are no numbers are not repaired but named.
#[test]
fn numbers_that_are_none_stop_the_run() {
    let mut snapshot = parting();
    snapshot.state.fluid[16 * 16 * 7 + 16 * 6 + 5] = f64::NAN;
    let error = start(&snapshot, plain_parameters(Precision::Double, 0, Vec::new())).step().expect_err("no numbers");
    let text = error.to_string();
    let SimError::Unphysical { step: 1, fault: Fault::Invalid { cells }, cell, .. } = error else { panic!("{text}") };
    // everything within reach of the scheme
    assert!(cells > 1 && cell.place.cell.iter().zip([5, 6, 7]).all(|(a, b)| a.abs_diff(b) <= 6), "{text}");
}

/// A dense ball at rest that bursts into gas twenty times thinner: its surface soon moves faster than any sound wave
/// that Δt was chosen for, and within the same root step, because the finest level takes four.
#[test]
fn individual_steps_in_which_signals_get_too_fast_are_taken_again() {
    let ball = |x: [f64; 3]| x.iter().map(|x| (x - 0.5).powi(2)).sum::<f64>() < 0.04;
    let snapshot = initial(1, [true; 3], None, 1.0, |x| {
        let (density, pressure) = if ball(x) { (1.0, 1.0) } else { (0.05, 0.05) };
        (density, [0.0; 3], pressure)
    });
    // with which the unwatched run goes wrong, but is finite
    let scheme = Scheme::RelaxingTvd;
    let max_courant = scheme.max_courant();
    let courant_numbers = |time_steps: TimeSteps, retries: u32| -> Vec<(u32, f64)> {
        let parameters = RunParameters {
            time_steps,
            retries,
            ..plain_parameters(Precision::Single, 2, vec![0.5, 0.5]).with_scheme(scheme)
        };
        let mut simulation = start(&snapshot, parameters);
        (0..3)
            .map(|_| simulation.step().expect("step").ladder)
            .map(|ladder| (ladder.retries, ladder.courant_number))
            .collect()
    };
    let unwatched = courant_numbers(TimeSteps::Individual, 0);
    assert!(unwatched[0].0 == 0 && unwatched[0].1 > max_courant, "{unwatched:?}");
    let watched = courant_numbers(TimeSteps::Individual, 2);
    assert!(watched[0].0 > 0 && watched.iter().all(|step| step.1 > 0.1 && step.1 <= max_courant), "{watched:?}");
    assert!(courant_numbers(TimeSteps::Uniform, 2).iter().all(|&step| step == (0, 0.0)));
}

//! Individual against uniform time steps: the same physics with fewer cell updates.
//!
//! The comparisons print what they measure: `cargo test --release -p comove-sim --test individual_steps -- --nocapture`.

use crate::common;

use common::{cosmological, cosmological_parameters, initial, plain_parameters};
use comove_kernels::Scheme;
use comove_kernels::layout::{DENSITY, GROUP, GROUP_CELLS};
use comove_sim::Criterion;
use comove_sim::TimeSteps;
use comove_sim::mesh::CLOSED;
use comove_sim::{Boundaries, Boundary, HostState, Precision, RunParameters, Simulation, Snapshot};
use std::f64::consts::TAU;
use std::time::Instant;

const BOTH: [TimeSteps; 2] = [TimeSteps::Uniform, TimeSteps::Individual];

/// How a run got to its end.
struct Outcome {
    end: HostState,
    steps: u64,
    finest_steps: u64,
    cell_updates: u64,
    seconds: f64,
    regrids: u64,
    mass_drift: f64,
    /// Largest residual of the energy ledger on the way.
    residual: f64,
    levels: usize,
}

/// Runs to exactly `target`.
fn run_to(snapshot: &Snapshot, parameters: &RunParameters, target: f64) -> Outcome {
    let mut simulation = Simulation::start(common::device(2), snapshot, parameters.clone()).expect("start");
    let started = Instant::now();
    let (mut finest_steps, mut regrids, mut residual, mut mass_drift, mut levels) = (0, 0, 0.0f64, 0.0, 0);
    while simulation.next_stop() < target {
        let record = simulation.step().expect("step");
        finest_steps += u64::from(*record.level_steps.last().expect("levels"));
        regrids += u64::from(record.regridded);
        residual = residual.max(record.energy_residual.abs());
        mass_drift = record.mass_drift;
        levels = levels.max(record.groups.len());
    }
    let seconds = started.elapsed().as_secs_f64();
    let summary = simulation.summary();
    let end = simulation.output_at(target).expect("output").state;
    let (steps, cell_updates) = (simulation.step_number(), summary.cell_updates);
    Outcome { end, steps, finest_steps, cell_updates, seconds, regrids, mass_drift, residual, levels }
}

/// Density of every root cell with its centre in a box of unit length.
fn root_density(state: &HostState) -> Vec<([f64; 3], f64)> {
    let n = state.tree.cells(0)[0] as f64;
    let mut cells = Vec::new();
    for (g, key) in state.tree.level(0).iter().enumerate() {
        for (c, &density) in state.field(g, DENSITY).iter().enumerate() {
            let at = [c % GROUP, c / GROUP % GROUP, c / (GROUP * GROUP)];
            let x = std::array::from_fn(|a| (f64::from(key.coordinate[a]) * GROUP as f64 + at[a] as f64 + 0.5) / n);
            cells.push((x, density));
        }
    }
    assert_eq!(cells.len(), state.tree.level(0).len() * GROUP_CELLS);
    cells
}

/// Mean |ρ_a − ρ_b| over the root cells.
fn distance(a: &HostState, b: &HostState) -> f64 {
    let (a, b) = (root_density(a), root_density(b));
    a.iter().zip(&b).map(|((_, a), (_, b))| (a - b).abs()).sum::<f64>() / a.len() as f64
}

fn report(name: &str, time_steps: TimeSteps, run: &Outcome, what: &str) {
    println!(
        "{name}, {time_steps:?}: {what}, {} root and {} finest steps, {} levels, {} regrids, {:.1} million updates in \
         {:.2} s, mass {:.1e}, energy residual {:.1e}",
        run.steps,
        run.finest_steps,
        run.levels,
        run.regrids,
        run.cell_updates as f64 * 1e-6,
        run.seconds,
        run.mass_drift,
        run.residual,
    );
}

/// A shock tube whose shock, contact and rarefaction are followed by two levels: the profiles of both kinds of step
/// differ by less than half of what halving Δt does to them.
#[test]
fn a_shock_is_the_same_with_fewer_updates() {
    let snapshot =
        initial(1, CLOSED, None, 1.0, |x| if x[0] < 0.4 { (1.0, [0.0; 3], 1.0) } else { (0.125, [0.0; 3], 0.1) });
    // the bounds of this file are those of relaxing TVD, whose errors in time are larger
    let parameters = |time_steps, courant| RunParameters {
        scheme: Scheme::RelaxingTvd,
        time_steps,
        courant,
        boundary: Boundaries::all(Boundary::Outflow),
        ..plain_parameters(Precision::Double, 2, vec![0.15, 0.2])
    };
    let runs = BOTH.map(|time_steps| run_to(&snapshot, &parameters(time_steps, 0.4), 0.15));
    let halved = run_to(&snapshot, &parameters(TimeSteps::Uniform, 0.2), 0.15);
    for (time_steps, run) in BOTH.into_iter().zip(&runs) {
        let what = format!("L1(rho) {:.2e} from half the step", distance(&run.end, &halved.end));
        report("shock tube", time_steps, run, &what);
        assert!(run.levels == 3 && run.regrids > 0, "the refinement follows the shock");
    }
    let apart = distance(&runs[0].end, &runs[1].end);
    println!("shock tube: L1(rho) between the two {apart:.2e}");
    assert!(apart < 0.5 * distance(&runs[0].end, &halved.end), "{apart:e}");
    assert!(runs[1].cell_updates < runs[0].cell_updates);
}

/// A growing Jeans mode, amplitude 1 %, refined around its crest by two levels, for 2.5 e-folds.
///
/// The root takes six steps then, and its truncation error is what the two kinds of step differ by: 2.8e-3 of the
/// amplitude, 1.6e-4 with half the Δt (bounds: a third more, and second order).
#[test]
fn a_jeans_mode_grows_alike() {
    // σ² = 4πGρ − c²k²: of the two terms the second is half the first
    let (four_pi_g, amplitude) = (4.0, 0.01);
    let sigma = (0.5f64 * four_pi_g).sqrt();
    let pressure = 0.5 * four_pi_g / (TAU * TAU) / common::GAMMA;
    let snapshot = initial(1, [true; 3], None, 1.0, |x| {
        let phase = TAU * x[0];
        let density = 1.0 + amplitude * phase.cos();
        let velocity = -amplitude * sigma / TAU * phase.sin();
        (density, [velocity, 0.0, 0.0], pressure * density.powf(common::GAMMA))
    });
    let target = 2.5 / sigma;
    let grown = amplitude * 2.5f64.exp();
    let parameters = |time_steps, max_level, courant| RunParameters {
        time_steps,
        courant,
        gravity: true,
        four_pi_g,
        refine: vec![Criterion::DensityAbove { thresholds: vec![1.004, 1.008] }],
        ..plain_parameters(Precision::Double, max_level, Vec::new())
    };
    let amplitude = |state: &HostState| {
        let cells = root_density(state);
        2.0 * cells.iter().map(|(x, density)| density * (TAU * x[0]).cos()).sum::<f64>() / cells.len() as f64
    };
    let unrefined = run_to(&snapshot, &parameters(TimeSteps::Uniform, 0, 0.5), target);
    let error = |run: &Outcome| amplitude(&run.end) / grown - 1.0;
    report("Jeans mode, root alone", TimeSteps::Uniform, &unrefined, &format!("growth {:+.2e}", error(&unrefined)));
    let apart = [0.5, 0.25].map(|courant| {
        let runs = BOTH.map(|time_steps| run_to(&snapshot, &parameters(time_steps, 2, courant), target));
        for (time_steps, run) in BOTH.into_iter().zip(&runs) {
            report("Jeans mode", time_steps, run, &format!("growth {:+.2e}", error(run)));
            assert!(run.mass_drift.abs() < 1e-13, "{time_steps:?} mass {:e}", run.mass_drift);
            assert!(run.levels == 3);
        }
        distance(&runs[0].end, &runs[1].end) / grown
    });
    println!("Jeans mode: L1(rho) between the two {:.2e}, then {:.2e} of the amplitude", apart[0], apart[1]);
    assert!(apart[0] < 3.7e-3 && apart[1] < apart[0] / 4.0, "{apart:?}");
}

/// The collapsing cosmological state: expansion limits the root's step here, and both kinds of step come equally close to a
/// run with half the Δt (1.2e-4). The two differ from each other by 2.0e-4.
#[test]
fn a_collapse_goes_alike() {
    let snapshot = cosmological(1);
    let parameters = |time_steps, halved: f64| RunParameters {
        scheme: Scheme::RelaxingTvd,
        time_steps,
        courant: 0.5 / halved,
        max_delta_a: 0.02 / halved,
        gravity_courant: 0.5 / halved,
        poisson_cycles: None,
        ..cosmological_parameters(Precision::Double)
    };
    let target = 0.1;
    let runs = BOTH.map(|time_steps| run_to(&snapshot, &parameters(time_steps, 1.0), target));
    let halved = run_to(&snapshot, &parameters(TimeSteps::Uniform, 2.0), target);
    for (time_steps, run) in BOTH.into_iter().zip(&runs) {
        let what = format!("L1(rho) {:.2e} from half the step", distance(&run.end, &halved.end));
        report("collapse", time_steps, run, &what);
        assert!(run.mass_drift.abs() < 1e-12, "{time_steps:?} mass {:e}", run.mass_drift);
        assert!(run.residual < 1e-11, "{time_steps:?} energy residual {:e}", run.residual);
    }
    let apart = distance(&runs[0].end, &runs[1].end);
    println!("collapse: L1(rho) between the two {apart:.2e}");
    let [uniform, individual] = [0, 1].map(|n| distance(&runs[n].end, &halved.end));
    assert!(uniform < 1.4e-4 && individual < 1.4e-4 && apart < 2.2e-4, "{apart:e} {individual:e} {uniform:e}");
}

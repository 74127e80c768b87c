//! Conservation and uniformity across refinement boundaries.

use crate::common;

use common::{cosmological, cosmological_parameters, initial, plain_parameters};
use comove_kernels::layout::{DENSITY, ENERGY, MOMENTUM};
use comove_sim::TimeSteps;
use comove_sim::mesh::{CLOSED, PERIODIC};
use comove_sim::{Boundaries, Boundary, HostState, Key, Octree, Precision, RunParameters, Simulation, Snapshot};

fn start(snapshot: &Snapshot, parameters: RunParameters) -> Simulation {
    Simulation::start(common::device(2), snapshot, parameters).expect("start")
}

/// The same gas everywhere on a tree with coarse–fine boundaries of every kind (faces, edges, corners, across the box
/// edge) stays the same, bit for bit.
#[test]
fn uniform_flow_stays_uniform() {
    for (precision, boundary, time_steps) in [
        (Precision::Single, Boundary::Periodic, TimeSteps::Uniform),
        (Precision::Double, Boundary::Periodic, TimeSteps::Uniform),
        (Precision::Double, Boundary::Outflow, TimeSteps::Uniform),
        (Precision::Single, Boundary::Periodic, TimeSteps::Individual),
        (Precision::Double, Boundary::Outflow, TimeSteps::Individual),
    ] {
        let gas = |_| (1.25, [0.5, -0.25, 0.125], 0.75);
        let periodic = if boundary == Boundary::Periodic { PERIODIC } else { CLOSED };
        let mut snapshot = initial(2, periodic, None, 1.0, gas);
        let refined = [[0, 0, 0], [1, 1, 0], [2, 1, 1], [3, 3, 3], [3, 2, 3]].map(|c| Key::new(1, c));
        let root = snapshot.state.clone();
        let tree = Octree::with_groups([2; 3], periodic, refined);
        snapshot.state = HostState::zeros(tree);
        for group in 0..snapshot.state.tree.group_count() {
            for f in 0..6 {
                let start = (group * 6 + f) * 4096;
                snapshot.state.fluid[start..start + 4096].fill(root.fluid[f * 4096]);
            }
        }
        snapshot.header.role = comove_sim::Role::Output; // keep the tree as it is
        snapshot.header.restart = serde_json::json!({
            "initial": comove_sim::records::Sums::default(), "ledger": comove_sim::records::Ledger::default(),
            "peak_kinetic": 1.0, "acceleration": null, "steps_since_regrid": []
        });
        let mut parameters = plain_parameters(precision, 1, vec![1e30]);
        parameters.regrid_every = 4;
        parameters.boundary = Boundaries::all(boundary);
        parameters.time_steps = time_steps;
        let mut simulation = start(&snapshot, parameters);
        for _ in 0..3 {
            simulation.step().expect("step");
        }
        let end = simulation.checkpoint().expect("checkpoint").state;
        for f in [DENSITY, MOMENTUM, MOMENTUM + 1, MOMENTUM + 2, ENERGY] {
            for group in 0..end.tree.group_count() {
                let expected = root.fluid[f * 4096];
                let worst = end.field(group, f).iter().map(|v| (v - expected).abs()).fold(0.0, f64::max);
                // ghost cells' energies come from the scalar, by a power that is right to four units in the last place
                let units = if f == ENERGY { 2.0 } else { 1.0 };
                let round_off = units * if precision == Precision::Single { 4e-7 } else { 1e-15 };
                assert!(
                    worst <= round_off,
                    "{precision:?} {boundary:?} {time_steps:?} field {f} group {group}: {worst:e}"
                );
            }
        }
    }
}

/// A dense blob moves across refinement boundaries that follow it: mass, momentum and energy to round-off.
#[test]
fn a_moving_blob_conserves() {
    for (precision, tolerance, time_steps) in [
        (Precision::Single, 2e-7, TimeSteps::Uniform),
        (Precision::Double, 2e-14, TimeSteps::Uniform),
        (Precision::Single, 2e-7, TimeSteps::Individual),
        (Precision::Double, 2e-14, TimeSteps::Individual),
    ] {
        let snapshot = initial(2, PERIODIC, None, 1.0, |x| {
            let r2: f64 = x.iter().map(|x| (x - 0.45).powi(2)).sum();
            (1.0 + 3.0 * (-r2 / 0.01).exp(), [1.0, 0.7, -0.4], 0.6)
        });
        let parameters = RunParameters { time_steps, ..plain_parameters(precision, 2, vec![1.2, 2.0]) };
        let mut simulation = start(&snapshot, parameters);
        let mut changed = 0;
        let mut last = None;
        let steps = if time_steps == TimeSteps::Uniform { 24 } else { 8 };
        for _ in 0..steps {
            let record = simulation.step().expect("step");
            assert!(record.groups.len() == 3, "the blob stays refined");
            changed += usize::from(record.regridded);
            last = Some(record);
        }
        let (record, initial) = (last.expect("steps"), simulation.summary().initial.expect("known sums"));
        assert!(changed >= 2, "the refinement follows the blob");
        assert!(record.mass_drift.abs() < tolerance, "{precision:?} mass {:e}", record.mass_drift);
        for axis in 0..3 {
            let drift = (record.sums.momentum[axis] - initial.momentum[axis]) / initial.mass;
            assert!(drift.abs() < tolerance, "{precision:?} momentum {drift:e}");
        }
        let energy = (record.sums.energy - initial.energy - record.ledger.regrid_energy) / initial.energy;
        assert!(energy.abs() < tolerance * 2.0, "{precision:?} energy {energy:e}");
        assert_eq!(record.ledger.entropy_energy, 0.0, "the gas is warm");
    }
}

/// Under gravity, in cold gas: mass to round-off, and the energy ledger closes.
#[test]
fn a_collapse_keeps_mass_and_closes_its_energy_ledger() {
    for (precision, mass, energy, time_steps, steps, groups) in [
        (Precision::Single, 1e-6, 1e-4, TimeSteps::Uniform, 20, 1),
        // in the second half groups vanish, too
        (Precision::Double, 1e-12, 1e-11, TimeSteps::Uniform, 40, 1),
        (Precision::Single, 1e-6, 1e-4, TimeSteps::Individual, 15, 2),
        (Precision::Double, 1e-12, 1e-11, TimeSteps::Individual, 15, 1),
    ] {
        let parameters = RunParameters { time_steps, ..cosmological_parameters(precision) };
        let mut simulation = start(&cosmological(groups), parameters);
        let (mut levels, mut groups, mut vanished) = (0, Vec::new(), false);
        for _ in 0..steps {
            let record = simulation.step().expect("step");
            levels = levels.max(record.groups.len());
            vanished |= record.groups.iter().zip(&groups).any(|(now, before)| now < before);
            groups.clone_from(&record.groups);
            assert!(record.mass_drift.abs() < mass, "{precision:?} {}: mass {:e}", record.step, record.mass_drift);
            let residual = record.energy_residual;
            assert!(residual.abs() < energy, "{precision:?} step {}: energy residual {residual:e}", record.step);
        }
        assert!(levels == 3 && (steps < 40 || vanished), "{levels} levels, groups vanish: {vanished}");
        let summary = simulation.summary();
        println!("{precision:?} {time_steps:?}: {:.0} bytes a cell", summary.bytes_per_cell);
        assert!(summary.bytes_per_cell <= if precision == Precision::Single { 120.0 } else { 240.0 });
    }
}

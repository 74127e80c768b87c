//! Under gravity momentum and energy are kept to the truncation error only: both converge with resolution.
//!
//! The energy equation of Layzer and Irvine in supercomoving variables (γ = 5/3) is d(E + W)/d ln a = W, where E is the
//! gas's total energy and W = ½∫(ρ̃ − ⟨ρ̃⟩)φ̃ dV: the gas's energy changes by gravity's work alone, and W grows with a
//! where nothing moves.

use crate::common;

use common::{cosmological, cosmological_parameters};
use comove_kernels::layout::{DENSITY, PATCH, octant_origin};
use comove_sim::{Precision, RunParameters, Simulation, Snapshot};

/// W of a snapshot with its potential, by leaf cells.
fn potential_energy(snapshot: &Snapshot, mean: f64) -> f64 {
    let state = &snapshot.state;
    let mut total = 0.0;
    for patch in state.tree.leaf_patches() {
        let density = state.field(patch.group, DENSITY);
        let potential = state.potential(patch.group).expect("gravity is on");
        let [x, y, z] = octant_origin(patch.octant);
        let mut sum = 0.0;
        for n in 0..PATCH * PATCH * PATCH {
            let at = [z + n / (PATCH * PATCH), y + n / PATCH % PATCH, x + n % PATCH];
            sum += (density[at] - mean) * potential[at];
        }
        total += 0.5 * sum * snapshot.cell_width(patch.level).powi(3);
    }
    total
}

/// Net momentum over M v_rms and the Layzer–Irvine residual over the largest |W|, from a = 0.05 to 0.065.
fn drift(groups: u32) -> (f64, f64) {
    let initial = cosmological(groups);
    let parameters = RunParameters {
        max_delta_a: 0.03 / f64::from(groups),
        poisson_cycles: None,
        ..cosmological_parameters(Precision::Double)
    };
    let mut simulation = Simulation::start(common::device(2), &initial, parameters).expect("start");
    let start = simulation.summary().initial.expect("known sums");
    let mass = start.mass;
    let mean = mass / initial.header.box_length.powi(3);
    let energy = |simulation: &mut Simulation| potential_energy(&simulation.checkpoint().expect("room"), mean);
    let (mut last, mut a) = (energy(&mut simulation), initial.header.a);
    let (first, mut expected, mut largest, mut levels) = (last, 0.0, 0.0f64, 0);
    let mut drift = (0.0, 0.0);
    while simulation.now() < 0.065 {
        let record = simulation.step().expect("step");
        let now = energy(&mut simulation);
        expected += 0.5 * (now + last) * (record.a / a).ln();
        (last, a) = (now, record.a);
        largest = largest.max(now.abs());
        levels = levels.max(record.groups.len());
        let booked = record.ledger.entropy_energy + record.ledger.floor_energy + record.ledger.regrid_energy;
        let residual = (record.sums.energy - start.energy - booked) + (now - first) - expected;
        let [x, y, z] = std::array::from_fn(|axis| record.sums.momentum[axis] - start.momentum[axis]);
        let momentum = (x * x + y * y + z * z).sqrt() / (2.0 * mass * record.sums.kinetic).sqrt();
        drift = (momentum, residual / largest);
    }
    assert_eq!(levels, 3, "the test needs refinement");
    drift
}

#[test]
fn momentum_and_energy_converge_under_gravity() {
    const GROUPS: [u32; 2] = [2, 3];
    let [coarse, fine] = GROUPS.map(|groups| {
        let (momentum, energy) = drift(groups);
        println!("{} root cells: momentum {momentum:.2e} of M v_rms, energy {energy:.2e} of |W|", groups * 16);
        (momentum, energy.abs())
    });
    let order = |coarse: f64, fine: f64| (coarse / fine).ln() / (f64::from(GROUPS[1]) / f64::from(GROUPS[0])).ln();
    let orders = [order(coarse.0, fine.0), order(coarse.1, fine.1)];
    println!("order of convergence from 32 to 48: momentum {:.2}, energy {:.2}", orders[0], orders[1]);
    // relaxing TVD is of first order at extrema, where mass diffuses without work
    assert!(orders[0] > 1.5 && orders[1] > 0.7, "{orders:?}");
}

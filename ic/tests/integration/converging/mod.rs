//! Runs of the converging flow and what they needed of the robustness ladder.

use comove_ic::problems::{ConvergingFlow, Problem};
use comove_sim::kernels::layout::{ENERGY, FIELDS, GROUP, GROUP_CELLS, cell_coordinate, octant_origin};
use comove_sim::kernels::{Device, Scheme};
use comove_sim::mesh::PERIODIC;
use comove_sim::{Coordinates, HostState, Octree, Precision, Role, RunParameters, SimError, Simulation};
use comove_sim::{Snapshot, SnapshotHeader};

/// A run on a root of `cells`³, refined once or more where gas is denser than twice and four times the mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) scheme: Scheme,
    pub(crate) mach: f64,
    pub(crate) cells: usize,
    pub(crate) max_level: u8,
    pub(crate) precision: Precision,
    /// Pressure of cold gas from the entropy scalar.
    pub(crate) scalar: bool,
    /// First-order redo, so many retries and a floor budget; else floors wherever the scheme asks for them.
    pub(crate) ladder: Option<u32>,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) steps: u64,
    pub(crate) cell_updates: u64,
    /// Largest and mean fraction of leaf cells whose energy did not exceed the kinetic one.
    pub(crate) negative: [f64; 2],
    pub(crate) redone: u64,
    pub(crate) retries: u64,
    pub(crate) floored: u64,
    pub(crate) floored_in_sweeps: u64,
    /// Mean |ρ − ρ_exact| at half the crossing time.
    pub(crate) density_error: f64,
    /// Volume fraction whose P/ρ^γ is off by more than a tenth then.
    pub(crate) off_adiabat: f64,
    /// Drift of mass, of momentum (of the largest there is) and of energy beyond what the ledger books.
    pub(crate) drift: [f64; 3],
}

/// Runs a case to three times the crossing time: streams cross on all planes, edges and at the focus.
pub(crate) fn run(case: Case) -> Result<Outcome, SimError> {
    let flow = ConvergingFlow {
        root: case.cells,
        levels: case.max_level,
        precision: case.precision,
        mach: case.mach,
        ..ConvergingFlow::default()
    };
    let parameters = RunParameters {
        dual_energy: case.scalar,
        first_order_redo: case.ladder.is_some(),
        retries: case.ladder.unwrap_or(0),
        floor_budget: if case.ladder.is_some() { RunParameters::default().floor_budget } else { 1.0 },
        ..flow.setup().parameters.with_scheme(case.scheme)
    };
    let mut simulation = Simulation::start(Device::cpu(2)?, &start(&flow), parameters)?;
    let half_way = flow.setup().end;
    let mut outcome = Outcome::default();
    while simulation.now() < 3.0 * flow.crossing_time() {
        if simulation.now() < half_way && simulation.next_stop() >= half_way {
            let state = simulation.output_at(half_way)?.state;
            (outcome.density_error, outcome.off_adiabat) = errors(&flow, &state, half_way);
        }
        let record = simulation.step()?;
        outcome.steps += 1;
        outcome.cell_updates += record.cell_updates;
        let negative = record.ladder.negative_fraction;
        outcome.negative = [outcome.negative[0].max(negative), outcome.negative[1] + negative];
        outcome.redone += record.ladder.redone_cells;
        outcome.retries += u64::from(record.ladder.retries);
        outcome.floored += record.ladder.floored_cells;
        outcome.floored_in_sweeps += record.ladder.floored_in_sweeps;
        let initial = simulation.summary().initial.expect("known sums");
        let gained = (0..3).map(|a| record.sums.momentum[a] - initial.momentum[a]);
        let momentum = gained.map(f64::abs).fold(0.0, f64::max) / (initial.mass * case.mach);
        for (drift, now) in outcome.drift.iter_mut().zip([record.mass_drift, momentum, record.energy_residual]) {
            *drift = drift.max(now.abs());
        }
    }
    outcome.negative[1] /= outcome.steps as f64;
    Ok(outcome)
}

fn start(flow: &ConvergingFlow) -> Snapshot {
    let mut state = HostState::zeros(Octree::new([(flow.root / GROUP) as u32; 3], PERIODIC));
    let width = 1.0 / flow.root as f64;
    for (g, key) in state.tree.clone().keys().enumerate() {
        for c in 0..GROUP_CELLS {
            let at = cell_coordinate(c);
            let x = std::array::from_fn(|a| (f64::from(key.coordinate[a] * 16) + at[a] as f64 + 0.5) * width);
            let gas = flow.initial(x, width);
            let [u, v, w] = gas.velocity;
            let energy = 0.5 * gas.density * (u * u + v * v + w * w) + gas.pressure / (flow.gamma - 1.0);
            let entropy = gas.pressure / gas.density.powf(flow.gamma - 1.0);
            let values = [gas.density, gas.density * u, gas.density * v, gas.density * w, energy, entropy];
            for (f, value) in values.into_iter().enumerate() {
                state.fluid[(g * FIELDS + f) * GROUP_CELLS + c] = value;
            }
        }
    }
    let header = SnapshotHeader {
        role: Role::Initial,
        a: 1.0,
        time: 0.0,
        step: 0,
        box_length: 1.0,
        coordinates: Coordinates::Plain,
        cosmology: None,
        gamma: flow.gamma,
        mean_molecular_weight: 1.22,
        eta: 1e-2,
        precision: Precision::Double,
        fields: comove_sim::fields::FieldSet::default(),
        restart: serde_json::Value::Null,
        recipe: String::new(),
        provenance: serde_json::Value::Null,
        dark_matter: None,
    };
    Snapshot { header, state }
}

/// The volume mean over the leaves of |ρ − ρ_exact|, and the volume whose P/ρ^γ is off by more than a tenth, the pressure
/// being total less kinetic energy.
fn errors(flow: &ConvergingFlow, state: &HostState, t: f64) -> (f64, f64) {
    let mut sums = (0.0, 0.0);
    for patch in state.tree.leaf_patches() {
        let n = state.tree.cells(patch.level)[0] as f64;
        let origin = octant_origin(patch.octant);
        for local in 0..512 {
            let at = [local % 8, local / 8 % 8, local / 64];
            let x = std::array::from_fn(|a| ((patch.first_cell[a] + at[a]) as f64 + 0.5) / n);
            let value =
                |f: usize| state.field(patch.group, f)[[origin[2] + at[2], origin[1] + at[1], origin[0] + at[0]]];
            let momentum_squared: f64 = (1..4).map(|f| value(f) * value(f)).sum();
            let internal = value(ENERGY) - 0.5 * momentum_squared / value(0);
            let adiabat = (flow.gamma - 1.0) * internal / value(0).powf(flow.gamma);
            let volume = n.powi(-3);
            sums.0 += (value(0) - flow.exact(x, t).expect("before the crossing").density).abs() * volume;
            sums.1 += if (adiabat / flow.adiabat() - 1.0).abs() > 0.1 { volume } else { 0.0 };
        }
    }
    sums
}

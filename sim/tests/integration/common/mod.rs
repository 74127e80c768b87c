//! Starting states for the tests of whole runs.
#![allow(dead_code)]

use comove_kernels::Device;
use comove_kernels::layout::{GROUP, GROUP_CELLS, GROUP_VALUES};
use comove_sim::RunParameters;
use comove_sim::fields::FieldSet;
use comove_sim::mesh::PERIODIC;
use comove_sim::{Coordinates, Cosmology, Criterion, HostState, Octree, Precision, Role, Snapshot, SnapshotHeader};

/// The device that these tests run on: the CPU with so many threads, or what `COMOVE_TEST_DEVICE` names.
pub(crate) fn device(threads: usize) -> Device {
    device_of(0, threads)
}

/// The device of a rank: the names in `COMOVE_TEST_DEVICE`, between commas, in turn.
pub(crate) fn device_of(rank: usize, threads: usize) -> Device {
    let names = std::env::var("COMOVE_TEST_DEVICE").unwrap_or("cpu".into());
    let name = names.split(',').cycle().nth(rank).expect("a name");
    Device::from_name(name, threads).expect("the device is there")
}

pub(crate) const GAMMA: f64 = 5.0 / 3.0;

/// Density, velocity and pressure at a point of the unit box.
pub(crate) type Gas = (f64, [f64; 3], f64);

/// A root mesh of `groups` groups a side with the gas of `gas` at cell centres.
pub(crate) fn initial(
    groups: u32,
    periodic: [bool; 3],
    cosmology: Option<Cosmology>,
    a: f64,
    gas: impl Fn([f64; 3]) -> Gas,
) -> Snapshot {
    initial_on([groups; 3], periodic, cosmology, a, gas)
}

/// The same with another number of groups along each axis; positions are in units of the box's x length.
pub(crate) fn initial_on(
    groups: [u32; 3],
    periodic: [bool; 3],
    cosmology: Option<Cosmology>,
    a: f64,
    gas: impl Fn([f64; 3]) -> Gas,
) -> Snapshot {
    let mut state = HostState::zeros(Octree::new(groups, periodic));
    let n = f64::from(groups[0]) * GROUP as f64;
    for (g, key) in state.tree.clone().keys().enumerate() {
        for c in 0..GROUP_CELLS {
            let at = [c % GROUP, c / GROUP % GROUP, c / (GROUP * GROUP)];
            let x = std::array::from_fn(|i| (f64::from(key.coordinate[i]) * GROUP as f64 + at[i] as f64 + 0.5) / n);
            let (density, v, pressure) = gas(x);
            let kinetic = 0.5 * density * (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
            let entropy = pressure / density.powf(GAMMA - 1.0);
            let values =
                [density, density * v[0], density * v[1], density * v[2], kinetic + pressure / (GAMMA - 1.0), entropy];
            for (f, value) in values.into_iter().enumerate() {
                state.fluid[g * GROUP_VALUES + f * GROUP_CELLS + c] = value;
            }
        }
    }
    let comoving = cosmology.is_some();
    Snapshot {
        header: SnapshotHeader {
            role: Role::Initial,
            a,
            time: 0.0,
            step: 0,
            box_length: if comoving { 50.0 } else { 1.0 },
            coordinates: if comoving { Coordinates::Comoving } else { Coordinates::Plain },
            cosmology,
            gamma: GAMMA,
            mean_molecular_weight: 1.22,
            eta: 1e-2,
            precision: Precision::Single,
            fields: FieldSet::default(),
            dark_matter: None,
            restart: serde_json::Value::Null,
            recipe: String::new(),
            provenance: serde_json::Value::Null,
        },
        state,
    }
}

/// A few plane waves with cold gas and velocities of the growing mode's sign: collapses within a few e-folds of a.
pub(crate) fn cosmological(groups: u32) -> Snapshot {
    cosmological_on([groups; 3])
}

/// The same on a root of so many groups along each axis.
pub(crate) fn cosmological_on(groups: [u32; 3]) -> Snapshot {
    let cosmology = Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0);
    let tau = std::f64::consts::TAU;
    initial_on(groups, PERIODIC, Some(cosmology), 0.05, |x| {
        let [u, v, w] = x.map(|x| tau * x);
        let density = 1.0 + 0.3 * (u.sin() + v.sin() + w.sin()) + 0.1 * (2.0 * u + 0.3).sin() * (w + v).cos();
        let velocity = [u, v, w].map(|p| 0.05 * p.cos() * 50.0 / tau * 0.3);
        (density, velocity, 1e-7)
    })
}

/// Parameters of a refined cosmological run, with one cycle a solve for comparisons of bits; physics needs more.
pub(crate) fn cosmological_parameters(precision: Precision) -> RunParameters {
    RunParameters {
        precision,
        max_level: 2,
        refine: vec![Criterion::DensityAbove { thresholds: vec![1.75, 2.2] }],
        max_delta_a: 0.05,
        poisson_cycles: Some(1),
        ..RunParameters::default()
    }
}

/// Parameters of a hydrodynamic run in non-comoving coordinates.
pub(crate) fn plain_parameters(precision: Precision, max_level: u8, thresholds: Vec<f64>) -> RunParameters {
    RunParameters {
        precision,
        coordinates: Coordinates::Plain,
        gravity: false,
        max_level,
        refine: vec![Criterion::DensityAbove { thresholds }],
        ..RunParameters::default()
    }
}

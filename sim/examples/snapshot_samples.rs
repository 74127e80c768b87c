//! Writes small snapshots of known fields for the tests that read them with other programs.
//!
//! `cargo run --release -p comove-sim --example snapshot_samples -- DIR` leaves in DIR
//!
//! | file | what it holds |
//! |---|---|
//! | `cosmological.h5` | z = 3, double precision, three levels on a root of 32 × 48 × 32 cells, particles |
//! | `cold.h5` | z = 49, single precision, gas so cold that its thermal energy is lost in the total energy |
//! | `plain.h5` | non-comoving coordinates, outflow boundaries, no potential |
//!
//! `scripts/tests/test_snapshot_yt.py` states the same functions of position once more, on its own.

use comove_kernels::layout::{DENSITY, ENERGY, ENTROPY, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, MOMENTUM, cell};
use comove_sim::fields::FieldSet;
use comove_sim::mesh::{CLOSED, PERIODIC};
use comove_sim::{Coordinates, Cosmology, HostParticles, HostState, Key, Octree, Precision, Role};
use comove_sim::{SimError, Snapshot, SnapshotHeader};
use std::f64::consts::TAU;
use std::path::Path;

/// Density, velocity, pressure and potential of a cell.
struct Gas {
    density: f64,
    velocity: [f64; 3],
    pressure: f64,
    potential: f64,
}

/// A state on `tree` from the gas at (centre of the cell, width of the cell), both in units of the box along x.
fn state(tree: Octree, gamma: f64, gas: impl Fn([f64; 3], f64) -> Gas) -> HostState {
    let mut state = HostState::zeros(tree);
    state.potential = vec![0.0; state.tree.group_count() * GROUP_CELLS];
    let keys: Vec<Key> = state.tree.keys().collect();
    for (group, key) in keys.into_iter().enumerate() {
        let width = 1.0 / state.tree.cells(usize::from(key.level))[0] as f64;
        for (k, j, i) in (0..GROUP).flat_map(|k| (0..GROUP).flat_map(move |j| (0..GROUP).map(move |i| (k, j, i)))) {
            let centre = [i, j, k].into_iter().zip(key.coordinate);
            let centre: Vec<f64> = centre.map(|(n, c)| (f64::from(c) * 16.0 + n as f64 + 0.5) * width).collect();
            let gas = gas([centre[0], centre[1], centre[2]], width);
            let at = |field| (group * FIELDS + field) * GROUP_CELLS + cell(i, j, k);
            let square: f64 = gas.velocity.iter().map(|v| v * v).sum();
            state.fluid[at(DENSITY)] = gas.density;
            for axis in 0..3 {
                state.fluid[at(MOMENTUM + axis)] = gas.density * gas.velocity[axis];
            }
            state.fluid[at(ENERGY)] = gas.pressure / (gamma - 1.0) + 0.5 * gas.density * square;
            state.fluid[at(ENTROPY)] = gas.pressure / gas.density.powf(gamma - 1.0);
            state.potential[group * GROUP_CELLS + cell(i, j, k)] = gas.potential;
        }
    }
    state
}

/// Mean of sin(2π n x) over a cell: restricted values are means of finer ones, and the box mean is exact.
fn mean_sine(n: f64, x: f64, width: f64) -> f64 {
    let half = 0.5 * TAU * n * width;
    (TAU * n * x).sin() * half.sin() / half
}

fn header(a: f64, precision: Precision) -> SnapshotHeader {
    SnapshotHeader {
        role: Role::Output,
        a,
        time: 1.5,
        step: 12,
        box_length: 20.0,
        coordinates: Coordinates::Comoving,
        cosmology: Some(Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)),
        gamma: 5.0 / 3.0,
        mean_molecular_weight: 1.22,
        eta: 1e-2,
        precision,
        fields: FieldSet::default(),
        restart: serde_json::Value::Null,
        recipe: "// a sample\n".into(),
        provenance: serde_json::json!({ "program": "snapshot_samples" }),
        dark_matter: None,
    }
}

fn cosmological() -> Snapshot {
    let level_1 = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [2, 3, 1], [3, 5, 3], [0, 2, 3]].map(|c| Key::new(1, c));
    let level_2 = [[0, 0, 0], [3, 2, 1], [5, 7, 2], [6, 10, 7]].map(|c| Key::new(2, c));
    let tree = Octree::with_groups([2, 3, 2], PERIODIC, level_1.into_iter().chain(level_2));
    let mut header = header(0.25, Precision::Double);
    header.fields = FieldSet::with_scalars(["metals"]).expect("a name");
    let gas = |[x, y, z]: [f64; 3], width| {
        let density = 1.0
            + 0.4 * mean_sine(1.0, x, width)
            + 0.2 * mean_sine(2.0, y / 1.5, width / 1.5)
            + 0.1 * mean_sine(3.0, z, width);
        Gas {
            density,
            velocity: [3.0 + x, -2.0 + 2.0 * y, 1.0 - 3.0 * z],
            pressure: density * (2.0 + x + 0.5 * y + 0.25 * z),
            potential: x - 2.0 * y + 3.0 * z,
        }
    };
    let mut state = state(tree, header.gamma, gas);
    // a mass fraction of x/100, by the velocity
    let groups = state.fluid.chunks_exact(GROUP_VALUES);
    let metals =
        |group: &[f64]| (0..GROUP_CELLS).map(|c| 0.01 * (group[GROUP_CELLS + c] - 3.0 * group[c])).collect::<Vec<_>>();
    state.scalars = vec![groups.flat_map(metals).collect()];
    let particles = particles().in_file_order(&state.tree);
    header.dark_matter = Some(particles.header());
    state.dark_matter = state.potential.iter().map(|potential| 10.0 + potential).collect();
    state.particles = Some(particles);
    Snapshot { state, header }
}

/// 11³ particles of mass 2.5 that fill the box of 20 × 30 × 20 evenly, each velocity a function of the position.
fn particles() -> HostParticles {
    let mut particles = HostParticles { particle_mass: 2.5, ..HostParticles::default() };
    for n in 0..1331u32 {
        let x = [n % 11, n / 11 % 11, n / 121].map(|i| (f64::from(i) + 0.25) / 11.0);
        let velocity = [1.0 + x[0], -2.0 + x[1], 0.5 * x[2]];
        for axis in 0..3 {
            particles.position[axis].push(HostParticles::fraction(x[axis], 1.0).expect("in the box"));
            particles.velocity[axis].push(velocity[axis] as f32);
        }
        particles.id.push(u64::from(n));
    }
    particles
}

fn cold() -> Snapshot {
    let header = header(0.02, Precision::Single);
    let gas = |[x, y, z]: [f64; 3], _| Gas {
        density: 1.0 + 0.5 * x + 0.25 * y,
        velocity: [30.0 + 10.0 * z, -20.0, 5.0],
        pressure: 1e-6 * (1.0 + x + 2.0 * y + 3.0 * z),
        potential: 0.0,
    };
    let tree = Octree::new([2, 2, 2], PERIODIC);
    Snapshot { state: state(tree, header.gamma, gas), header }
}

fn plain() -> Snapshot {
    let mut header = header(1.0, Precision::Double);
    (header.coordinates, header.cosmology) = (Coordinates::Plain, None);
    (header.time, header.box_length, header.gamma) = (0.25, 4.0, 1.4);
    let gas = |[x, y, z]: [f64; 3], _| Gas {
        density: 1.0 + x,
        velocity: [0.5, -y, z],
        pressure: 0.7 + x + y,
        potential: 0.0,
    };
    let tree = Octree::with_groups([4, 1, 1], CLOSED, [Key::new(1, [3, 1, 0])]);
    let mut state = state(tree, header.gamma, gas);
    state.potential.clear();
    Snapshot { header, state }
}

fn main() -> Result<(), SimError> {
    let folder = std::env::args().nth(1).expect("usage: snapshot_samples DIR");
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder).map_err(|source| SimError::Io { path: folder.into(), source })?;
    cosmological().write(&folder.join("cosmological.h5"))?;
    cold().write(&folder.join("cold.h5"))?;
    plain().write(&folder.join("plain.h5"))?;
    Ok(())
}

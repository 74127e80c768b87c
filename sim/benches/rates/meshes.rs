//! Octrees to measure on, and a step's hydro on those whose ghost cells are interpolated, all or some.

use crate::{Bench, Work};
use comove_sim::State;
use comove_sim::TimeSteps;
use comove_sim::gravity::StepPhase;
use comove_sim::kernels::Deferred;
use comove_sim::kernels::hydro_sweep::{SweepOutput, SweepParameters, SweepTargets};
use comove_sim::kernels::layout::{FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES};
use comove_sim::kernels::timestep::{SignalSpeed, signal_speed};
use comove_sim::kernels::{Device, Eos, Real, Scheme};
use comove_sim::mesh::{PERIODIC, nest};
use comove_sim::step::StepDiagnostics;
use comove_sim::{HostState, Key, Octree, RunParameters, Snapshot};
use std::ops::Range;
use std::path::Path;

pub(crate) fn all(bench: &mut Bench) {
    let many = if bench.smoke { 8 } else { 4096 };
    let tree = lone_children(many);
    let mut state = state::<f32>(&bench.device, &tree, true, false);
    hydro(bench, "all ghost cells interpolated", &mut state, 1..2, None, 0.05);
    drop(state);
    hierarchy(bench, "clumps", &clumps(if bench.smoke { 2 } else { 8 }), None);
}

/// On the octree and the gas of a snapshot.
pub(crate) fn of_snapshot(bench: &mut Bench, file: &str) {
    let snapshot = Snapshot::read(Path::new(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
    let name = format!("campaign at z = {:.2}", snapshot.header.redshift());
    hierarchy(bench, &name, &snapshot.state.tree.clone(), Some(snapshot.state));
}

/// A step's hydro on all levels of an octree and on the fullest one, with ghost cells of the coarser level now, as uniform
/// steps take them, and between two times, as individual steps do.
fn hierarchy(bench: &mut Bench, name: &str, tree: &Octree, gas: Option<HostState>) {
    let levels = 0..tree.level_count();
    let fullest = levels.clone().max_by_key(|&level| tree.level(level).len()).expect("there is a root");
    let mut state = match gas {
        Some(gas) => on_device::<f32>(&bench.device, &gas, true, false),
        None => state::<f32>(&bench.device, tree, true, false),
    };
    let share = |level: usize| {
        let tables = &state.mesh.tables[level];
        let some = (0..tables.len()).filter(|&g| tables.has_coarse_neighbour(g)).count();
        some as f64 / tables.len() as f64
    };
    let shares: Vec<f64> = levels.clone().map(share).collect();
    let groups: Vec<usize> = levels.clone().map(|level| tree.level(level).len()).collect();
    println!("{name}: groups {groups:?}, share of them that interpolates ghost cells {shares:.3?}");
    bench.write(&serde_json::json!({ "part": "meshes", "mesh": name, "groups": groups, "interpolating": shares }));
    for level in levels.clone() {
        state.keep_start(level);
    }
    let courant = dt_over_dx(&state, fullest);
    hydro(bench, &format!("{name}, all levels"), &mut state, levels.clone(), None, courant);
    hydro(bench, &format!("{name}, level {fullest}"), &mut state, fullest..fullest + 1, None, courant);
    hydro(bench, &format!("{name}, all levels, between times"), &mut state, levels, Some(0.25), courant);
}

/// Measures both sweeps of these levels, fluxes through coarse–fine faces and reports included, and the reduction for
/// the time step.
pub(crate) fn hydro<T: Real>(
    bench: &mut Bench,
    mesh: &str,
    state: &mut State<T>,
    levels: Range<usize>,
    passed: Option<f64>,
    dt_over_dx: f64,
) {
    let items = levels.clone().map(|level| state.mesh.tables[level].len()).sum();
    let part = if mesh == "uniform" { "launches" } else { "meshes" };
    let work = Work { part, operation: "hydro of a step", mesh, precision: T::NAME, unit: "group", items };
    let scheme = bench.scheme;
    bench.measure(work, || {
        // as a run does: what an operation reports is read while the next one works
        let mut open = None;
        for (axes, level) in [[0, 1, 2], [2, 1, 0]].into_iter().flat_map(|axes| levels.clone().map(move |l| (axes, l)))
        {
            let SweepOutput { marked, reports } =
                sweep((state, scheme), level, axes, passed, SweepTargets::All, dt_over_dx);
            open.replace(reports).map(Deferred::wait);
            marked.wait();
        }
        let speeds: Vec<_> = levels.clone().map(|level| speeds(state, level)).collect();
        open.map(Deferred::wait);
        speeds.into_iter().for_each(|speeds| drop(speeds.wait()));
    });
}

/// A sweep of a level from `fluid` to `next`, always of the same gas.
pub(crate) fn sweep<T: Real>(
    (state, scheme): (&mut State<T>, Scheme),
    level: usize,
    axes: [usize; 3],
    passed: Option<f64>,
    which: SweepTargets,
    dt_over_dx: f64,
) -> SweepOutput {
    let parameters = SweepParameters { scheme, dt_over_dx: T::from_f64(dt_over_dx), axes, eos: Eos::new(5.0 / 3.0) };
    state.sweep(level, passed.filter(|_| level > 0), which, &parameters, &mut StepDiagnostics::default())
}

/// The reduction for the time step.
pub(crate) fn speeds<T: Real>(state: &State<T>, level: usize) -> Deferred<SignalSpeed> {
    signal_speed(&state.device, &state.mesh.tables[level], &state.gas().fluid.values, &Eos::new(5.0 / 3.0))
}

/// Δt/h at a Courant number of 0.4.
fn dt_over_dx<T: Real>(state: &State<T>, level: usize) -> f64 {
    0.4 / speeds(state, level).wait().iter().map(|fastest| fastest.speed).fold(0.0, f64::max)
}

/// A smooth flow of Mach 0.1 to 1 in every group of a tree, on the device; with gravity its potential too.
pub(crate) fn state<T: Real>(device: &Device, tree: &Octree, individual: bool, gravity: bool) -> State<T> {
    let mut gas = HostState::zeros(tree.clone());
    let group = flow();
    gas.fluid.chunks_exact_mut(GROUP_VALUES).for_each(|values| values.copy_from_slice(&group));
    on_device(device, &gas, individual, gravity)
}

fn on_device<T: Real>(device: &Device, gas: &HostState, individual: bool, gravity: bool) -> State<T> {
    let time_steps = if individual { TimeSteps::Individual } else { TimeSteps::Uniform };
    let max_level = gas.tree.level_count() as u8;
    let parameters = RunParameters { max_level, time_steps, gravity, ..RunParameters::default() };
    let h = 1.0 / gas.tree.cells(0)[0] as f64;
    let mut state = State::from_host(device.clone(), gas, h, &parameters).expect("the device has room");
    if gravity {
        state.solve_gravity(1.0, 1.0).expect("room for the solve");
        for level in 0..state.level_count() {
            state.keep_start(level);
            state.keep_potential(level, StepPhase::Mid);
            state.keep_potential(level, StepPhase::End);
        }
    }
    state
}

/// The values of a group.
fn flow() -> Vec<f64> {
    let mut group = vec![0.0; GROUP_VALUES];
    for e in 0..GROUP_CELLS {
        let phase = |stride: usize| (e / stride % GROUP) as f64 * std::f64::consts::TAU / GROUP as f64;
        let (x, y, z) = (phase(1), phase(GROUP), phase(GROUP * GROUP));
        let density = 1.0 + 0.3 * x.sin() * y.cos();
        let v = [0.5 * z.sin(), 0.3 * x.cos(), 0.1 + 0.4 * y.sin()];
        let pressure = 0.6 * density.powf(5.0 / 3.0);
        let kinetic = 0.5 * density * v.iter().map(|v| v * v).sum::<f64>();
        let energy = pressure * 1.5 + kinetic;
        let u = [density, density * v[0], density * v[1], density * v[2], energy, 0.6 * density];
        for f in 0..FIELDS {
            group[f * GROUP_CELLS + e] = u[f];
        }
    }
    group
}

/// Extents of a box of so many groups, as near to a cube as their number allows.
pub(crate) fn extents(groups: usize) -> [u32; 3] {
    let divisor =
        |n: usize, most: f64| (1..=n).rev().find(|&d| n.is_multiple_of(d) && d as f64 <= most + 1e-9).unwrap_or(1);
    let x = divisor(groups, (groups as f64).cbrt());
    let y = divisor(groups / x, ((groups / x) as f64).sqrt());
    [x, y, groups / x / y].map(|n| n as u32)
}

/// A refined level of so many groups, as few apart as they can be: complete if they are a multiple of eight.
pub(crate) fn refined(groups: usize) -> Octree {
    let root = extents(groups.div_ceil(8));
    let complete = Octree::new(root, PERIODIC);
    Octree::with_groups(root, PERIODIC, complete.keys().flat_map(|key| (0..8).map(move |o| key.child(o))).take(groups))
}

/// One refined patch in every group of a root level, none beside another: all their ghost cells are interpolated.
pub(crate) fn lone_children(groups: usize) -> Octree {
    let root = extents(groups);
    Octree::with_groups(root, PERIODIC, Octree::new(root, PERIODIC).keys().map(|key| key.child(0)))
}

/// Four refined levels in 400 spheres of a few sizes at random: with a root of 8³ groups nearly as many on each as the
/// campaign of the method paper has at z = 0, which is 512, 3600, 4400, 1050 and 36.
pub(crate) fn clumps(root: u32) -> Octree {
    let mut noise = 1u64;
    let mut random = || {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (noise >> 11) as f64 / (1u64 << 53) as f64
    };
    let spheres: Vec<([f64; 3], f64)> =
        (0..400).map(|_| ([random(), random(), random()], 0.065 * (1.0 - 0.999 * random()).powf(-0.15))).collect();
    let shares = [1.0, 0.42, 0.15, 0.04];
    let mut wanted = vec![Vec::new()];
    for (level, share) in (1u8..).zip(shares) {
        let patches = root << level;
        let centre = |c: u32| (f64::from(c) + 0.5) / f64::from(patches);
        let mut inside = Vec::new();
        for (centre_of, size) in &spheres {
            let radius = size * share;
            let reach = (radius * f64::from(patches)).ceil() as i64;
            let around = centre_of.map(|x| (x * f64::from(patches)) as i64);
            // smaller than a patch: too small to be seen on this level
            if radius * f64::from(patches) < 0.5 {
                continue;
            }
            let along = |axis: usize| {
                (around[axis] - reach..=around[axis] + reach).map(|c| c.rem_euclid(i64::from(patches)) as u32)
            };
            let apart = |axis: usize, c: u32| {
                let d = (centre(c) - centre_of[axis]).abs();
                d.min(1.0 - d).powi(2)
            };
            for x in along(0) {
                for y in along(1) {
                    let near = |z: &u32| apart(0, x) + apart(1, y) + apart(2, *z) <= radius * radius;
                    inside.extend(along(2).filter(near).map(|z| Key::new(level, [x, y, z])));
                }
            }
        }
        wanted.push(inside);
    }
    let nested = nest([root; 3], PERIODIC, wanted);
    Octree::with_groups([root; 3], PERIODIC, nested.into_iter().skip(1).flatten())
}

//! Hydro kernels on a uniform periodic 64³ level, on one and two threads:
//! `cargo bench -p comove-kernels --bench hydro`.
//!
//! An item is a cell: the step's items per second are cell updates (a forward and a backward sweep of one cell).

use comove_kernels::hydro_sweep::{SweepParameters, SweepTargets, hydro_sweep};
use comove_kernels::layout::{CENTRE, DIRECTIONS, FIELDS, FLUX_PLANES, GROUP, GROUP_CELLS, GROUP_VALUES};
use comove_kernels::level_topology::NONE;
use comove_kernels::state_hash::state_hash;
use comove_kernels::timestep::signal_speed;
use comove_kernels::totals::{GroupTotals, totals};
use comove_kernels::{Buffer, Device, Eos, LevelTopology, Real, TroubledCells};
use divan::Bencher;
use divan::counter::ItemsCount;

/// Groups along each axis.
const N: usize = 4;

fn main() {
    divan::main();
}

/// A periodic level of N³ groups in row-major slots.
fn tables() -> LevelTopology {
    let slot = |x: usize, y: usize, z: usize| ((z % N * N + y % N) * N + x % N) as u32;
    let n = N * N * N;
    let mut neighbours = Vec::new();
    for g in 0..n {
        let (x, y, z) = (g % N, g / N % N, g / N / N);
        for d in 0..DIRECTIONS {
            neighbours.push(slot(x + N + d % 3 - 1, y + N + d / 3 % 3 - 1, z + N + d / 9 - 1));
        }
    }
    LevelTopology {
        slots: (0..n as u32).collect(),
        neighbours: neighbours.into(),
        parents: vec![NONE; n * DIRECTIONS].into(),
        octants: vec![0; n].into(),
        outside: vec![0; n].into(),
        leaves: vec![0xff; n].into(),
        ..LevelTopology::default()
    }
}

/// A smooth flow of Mach 0.1 to 1, `cold`: times a hundred, so that the entropy scalar decides everywhere.
fn flow<T: Real>(tables: &LevelTopology, cold: bool) -> Vec<T> {
    let mut fluid = vec![T::zero(); tables.len() * GROUP_VALUES];
    for g in 0..tables.len() {
        for e in 0..GROUP_CELLS {
            let phase = |axis: usize| {
                let group = [g % N, g / N % N, g / N / N][axis] * GROUP;
                let cell = [e % GROUP, e / GROUP % GROUP, e / GROUP / GROUP][axis];
                (group + cell) as f64 * std::f64::consts::TAU / (N * GROUP) as f64
            };
            let density = 1.0 + 0.3 * phase(0).sin() * phase(1).cos();
            let speed = if cold { 100.0 } else { 1.0 };
            let v = [speed * 0.5 * phase(2).sin(), speed * 0.3 * phase(0).cos(), speed * (0.1 + 0.4 * phase(1).sin())];
            let pressure = 0.6 * density.powf(5.0 / 3.0);
            let kinetic = 0.5 * density * v.iter().map(|v| v * v).sum::<f64>();
            let u = [density, density * v[0], density * v[1], density * v[2], pressure * 1.5 + kinetic, 0.6 * density];
            for f in 0..FIELDS {
                fluid[g * GROUP_VALUES + f * GROUP_CELLS + e] = T::from_f64(u[f]);
            }
        }
    }
    fluid
}

/// One refined patch in every group of the uniform level, none beside another: all their ghost cells are interpolated.
fn isolated(coarse: &LevelTopology) -> LevelTopology {
    let n = coarse.len();
    let slots: Vec<u32> = (n as u32..2 * n as u32).collect();
    let mut neighbours = vec![NONE; n * DIRECTIONS];
    for g in 0..n {
        neighbours[g * DIRECTIONS + CENTRE] = slots[g];
    }
    let parents = coarse.neighbours.clone();
    LevelTopology { slots: slots.into(), neighbours: neighbours.into(), parents, ..coarse.clone() }
}

/// Times a forward and a backward sweep of the groups of `tables`, which lie in `fluid`.
fn step<T: Real>(bencher: Bencher, threads: usize, tables: &LevelTopology, fluid: Vec<T>, gamma: f64, dt_over_dx: f64) {
    let device = Device::cpu(threads).unwrap();
    let mut a = Buffer::from_host(&device, fluid.clone()).unwrap();
    let mut b = Buffer::from_host(&device, fluid).unwrap();
    let mut fluxes = Buffer::zeros(&device, 0).unwrap();
    let mut marks = TroubledCells::new(&device, a.len() / GROUP_VALUES).unwrap();
    let flux_slots = vec![NONE; tables.len() * FLUX_PLANES].into();
    let forward = SweepParameters {
        scheme: comove_kernels::Scheme::default(),
        dt_over_dx: T::from_f64(dt_over_dx),
        axes: [0, 1, 2],
        eos: Eos::new(gamma),
    };
    let backward = SweepParameters { axes: [2, 1, 0], ..forward };
    let all = SweepTargets::All;
    bencher.counter(ItemsCount::new(tables.len() * GROUP_CELLS)).bench_local(|| {
        let _ =
            hydro_sweep(&device, tables, &flux_slots, &a, None, &mut b, &mut fluxes, &mut marks, None, all, &forward);
        let _ =
            hydro_sweep(&device, tables, &flux_slots, &b, None, &mut a, &mut fluxes, &mut marks, None, all, &backward);
    });
}

#[divan::bench(args = [1, 2], sample_count = 20, sample_size = 1)]
fn step_single(bencher: Bencher, threads: usize) {
    let tables = tables();
    step::<f32>(bencher, threads, &tables, flow(&tables, false), 5.0 / 3.0, 0.2);
}

#[divan::bench(args = [1, 2], sample_count = 20, sample_size = 1)]
fn step_single_cold(bencher: Bencher, threads: usize) {
    let tables = tables();
    step::<f32>(bencher, threads, &tables, flow(&tables, true), 5.0 / 3.0, 0.002);
}

#[divan::bench(args = [1], sample_count = 20, sample_size = 1)]
fn step_single_other_gamma(bencher: Bencher, threads: usize) {
    let tables = tables();
    step::<f32>(bencher, threads, &tables, flow(&tables, false), 1.4, 0.2);
}

#[divan::bench(args = [1], sample_count = 20, sample_size = 1)]
fn step_single_isolated(bencher: Bencher, threads: usize) {
    let coarse = tables();
    let mut fluid = flow::<f32>(&coarse, false);
    fluid.extend_from_within(..);
    step(bencher, threads, &isolated(&coarse), fluid, 5.0 / 3.0, 0.1);
}

#[divan::bench(args = [1], sample_count = 20, sample_size = 1)]
fn step_double(bencher: Bencher, threads: usize) {
    let tables = tables();
    step::<f64>(bencher, threads, &tables, flow(&tables, false), 5.0 / 3.0, 0.2);
}

#[divan::bench(args = [1], sample_count = 20, sample_size = 1)]
fn signal_speed_single(bencher: Bencher, threads: usize) {
    let (device, tables) = (Device::cpu(threads).unwrap(), tables());
    let fluid = Buffer::from_host(&device, flow::<f32>(&tables, false)).unwrap();
    let eos = Eos::new(5.0 / 3.0);
    bencher
        .counter(ItemsCount::new(tables.len() * GROUP_CELLS))
        .bench_local(|| signal_speed(&device, &tables, &fluid, &eos).wait());
}

#[divan::bench(args = [1], sample_count = 20, sample_size = 1)]
fn totals_single(bencher: Bencher, threads: usize) {
    let (device, tables) = (Device::cpu(threads).unwrap(), tables());
    let fluid = Buffer::from_host(&device, flow::<f32>(&tables, false)).unwrap();
    let mut sums = vec![GroupTotals::default(); tables.len()];
    bencher
        .counter(ItemsCount::new(tables.len() * GROUP_CELLS))
        .bench_local(|| totals(&device, &tables, &fluid, &mut sums));
}

#[divan::bench(args = [1], sample_count = 20, sample_size = 1)]
fn state_hash_single(bencher: Bencher, threads: usize) {
    let (device, tables) = (Device::cpu(threads).unwrap(), tables());
    let fluid = Buffer::from_host(&device, flow::<f32>(&tables, false)).unwrap();
    let mut hashes = vec![0; tables.len()];
    bencher
        .counter(ItemsCount::new(tables.len() * GROUP_CELLS))
        .bench_local(|| state_hash(&device, &tables, GROUP_VALUES, &fluid, &mut hashes));
}

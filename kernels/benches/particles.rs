//! Time of a particle's step on a uniform periodic level of 8³ groups with one particle a cell, in single precision: half a
//! drift, mass in cells, density of matter, kick, half a drift, sort. Particles move by up to half a cell a step.

use comove_kernels::layout::{GROUP_CELLS, GROUP_VALUES};
use comove_kernels::overflow::Overflow;
use comove_kernels::particles::{self, COLUMNS, Particles};
use comove_kernels::point::particle::WeightUnit;
use comove_kernels::{Buffer, Device, GroupLocator, LevelTopology};
use divan::Bencher;
use divan::counter::ItemsCount;

/// Groups along an axis.
const SIDE: usize = 8;
const GROUPS: usize = SIDE * SIDE * SIDE;
const COUNT: usize = GROUPS * GROUP_CELLS;

fn main() {
    divan::main();
}

/// Reproducible noise.
fn noise(count: usize, seed: u32) -> Vec<u32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state ^ state >> 15
    };
    (0..count).map(|_| next()).collect()
}

struct Case {
    device: Device,
    locator: GroupLocator,
    tables: LevelTopology,
    particles: Particles,
    mass: Buffer<u64>,
    overflow: Overflow,
    density: Buffer<f32>,
    fluid: Buffer<f32>,
    potential: Buffer<f32>,
}

impl Case {
    fn new(threads: usize) -> Self {
        let device = Device::cpu(threads).expect("threads start");
        let slots: Vec<u32> = (0..GROUPS as u32).collect();
        let locator = GroupLocator {
            root: [SIDE as u32; 3],
            slots: GROUPS as u32,
            root_slots: slots.clone().into(),
            children: vec![u32::MAX; 8 * GROUPS].into(),
            numbers: slots.clone().into(),
            buffers: vec![0; GROUPS].into(),
            first: vec![0, GROUPS as u32].into(),
        };
        let columns: [Vec<u32>; COLUMNS] = std::array::from_fn(|column| match column {
            3..6 => noise(COUNT, column as u32).iter().map(|&n| (n as f32 * 2f32.powi(-31) - 1.0).to_bits()).collect(),
            _ => noise(COUNT, 17 * column as u32),
        });
        let zeros = |values: usize| Buffer::zeros(&device, values).expect("room");
        let mut case = Self {
            locator,
            tables: LevelTopology { slots: slots.into(), ..LevelTopology::default() },
            particles: Particles::from_host(&device, columns).expect("room"),
            mass: Buffer::zeros(&device, COUNT).expect("room"),
            overflow: Overflow::none(&device, u128::MAX).expect("room"),
            density: zeros(COUNT),
            fluid: zeros(GROUPS * GROUP_VALUES),
            potential: zeros(COUNT),
            device,
        };
        case.sort();
        case
    }

    /// Up to a quarter of a cell.
    fn drift(&mut self) {
        let factor = 0.25 * 2f64.powi(32) / (SIDE * 16) as f64;
        particles::drift(&self.device, &mut self.particles, 0..COUNT, [factor; 3]);
    }

    fn deposit(&mut self) {
        let Self { device, locator, tables, particles, mass, overflow, density, fluid, .. } = self;
        particles::deposit(
            device,
            locator,
            (0, tables),
            particles,
            &[particles::Part { range: 0..COUNT, level: 0, factors: [0.0; 3] }],
            WeightUnit::default(),
            (mass, overflow),
        );
        particles::matter_density(device, tables, mass, 1e-12, Some(fluid), density);
    }

    fn kick(&mut self) {
        let Self { device, locator, particles, potential, .. } = self;
        particles::kick(device, locator, 0, particles, 0..COUNT, potential, None, 1.0);
    }

    fn sort(&mut self) {
        particles::sort(&self.device, &self.locator, &mut self.particles, 0, 0);
    }
}

fn run(bencher: Bencher, threads: usize, part: fn(&mut Case)) {
    let mut case = Case::new(threads);
    bencher.counter(ItemsCount::new(COUNT)).bench_local(|| part(&mut case));
}

const THREADS: [usize; 2] = [1, 2];

#[divan::bench(args = THREADS, sample_count = 10)]
fn drift(bencher: Bencher, threads: usize) {
    run(bencher, threads, Case::drift);
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn deposit(bencher: Bencher, threads: usize) {
    run(bencher, threads, Case::deposit);
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn kick(bencher: Bencher, threads: usize) {
    run(bencher, threads, Case::kick);
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn sort(bencher: Bencher, threads: usize) {
    run(bencher, threads, |case| {
        case.drift();
        case.sort();
    });
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn step(bencher: Bencher, threads: usize) {
    run(bencher, threads, |case| {
        case.drift();
        case.deposit();
        case.kick();
        case.drift();
        case.sort();
    });
}

//! Time of the parts of a Poisson solve, single precision, on a periodic level of 8³ groups. Divide by 2,097,152 cells.

use comove_kernels::group_poisson::FACE_GRADIENTS;
use comove_kernels::layout::{DENSITY, DIRECTIONS, GROUP_CELLS, GROUP_VALUES, MOMENTUM, direction};
use comove_kernels::potential_ghosts::GHOST_CELLS;
use comove_kernels::{
    Buffer, DensitySource, Device, Eos, GhostOrigin, LevelTopology, PoissonSource, RootPoisson, SineTables,
    gravity_kick, group_poisson, potential_ghosts,
};
use divan::Bencher;
use divan::counter::ItemsCount;

/// Groups along an axis.
const SIDE: usize = 8;
const GROUPS: usize = SIDE * SIDE * SIDE;
const THREADS: [usize; 2] = [1, 2];

fn main() {
    divan::main();
}

/// A complete periodic level whose groups are their own parents' neighbours: the shape of the work, not a real octree.
fn level() -> LevelTopology {
    let row = |g: usize| {
        let mut row = [0; DIRECTIONS];
        for d in 0..27 {
            let [x, y, z] = [(1, d % 3), (SIDE, d / 3 % 3), (SIDE * SIDE, d / 9)]
                .map(|(stride, step)| (g / stride % SIDE + SIDE + step - 1) % SIDE);
            row[direction(d as i32 % 3 - 1, d as i32 / 3 % 3 - 1, d as i32 / 9 - 1)] =
                ((z * SIDE + y) * SIDE + x) as u32;
        }
        row
    };
    let rows: Vec<u32> = (0..GROUPS).flat_map(row).collect();
    LevelTopology {
        slots: (0..GROUPS as u32).collect(),
        neighbours: rows.clone().into(),
        parents: rows.into(),
        octants: (0..GROUPS).map(|g| (g % 8) as u8).collect(),
        outside: vec![0; GROUPS].into(),
        leaves: vec![0xff; GROUPS].into(),
        ..LevelTopology::default()
    }
}

struct Case {
    device: Device,
    tables: LevelTopology,
    fluid: Buffer<f32>,
    potential: Buffer<f32>,
    ghosts: Buffer<f32>,
    gradients: Buffer<f32>,
}

impl Case {
    fn new(threads: usize) -> Self {
        let device = Device::cpu(threads).expect("threads start");
        let mut fluid = vec![0.0; GROUPS * GROUP_VALUES];
        let mut noise = 1u32;
        for group in fluid.chunks_exact_mut(GROUP_VALUES) {
            for cell in 0..GROUP_CELLS {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                group[DENSITY * GROUP_CELLS + cell] = 0.5 + (noise >> 8) as f32 / 16_777_216.0;
                group[MOMENTUM * GROUP_CELLS + cell] = 0.1;
                group[4 * GROUP_CELLS + cell] = 2.0;
                group[5 * GROUP_CELLS + cell] = 1.0;
            }
        }
        let fluid = Buffer::from_host(&device, fluid).expect("room");
        let [potential, ghosts, gradients] = [GROUP_CELLS, GHOST_CELLS, FACE_GRADIENTS]
            .map(|values| Buffer::zeros(&device, GROUPS * values).expect("room"));
        let mut case = Self { device, tables: level(), fluid, potential, ghosts, gradients };
        case.root();
        case.ghosts(GhostOrigin::Sibling);
        case
    }

    fn root(&mut self) {
        let source = PoissonSource::Density(DensitySource::of_fluid(&self.fluid, 1.0, 1.0));
        let slots = self.tables.slots.clone();
        let mut root = RootPoisson::new(&self.device, [SIDE; 3]).expect("room");
        root.solve(&self.device, &slots, &source, 0.1, &mut self.potential);
    }

    fn ghosts(&mut self, origin: GhostOrigin) {
        potential_ghosts(&self.device, &self.tables, origin, &self.potential, None, &mut self.ghosts);
    }

    fn solve(&mut self, sine: &SineTables<f32>) {
        let source = PoissonSource::Density(DensitySource::of_fluid(&self.fluid, 1.0, 1.0));
        let Self { device, tables, potential, ghosts, gradients, .. } = self;
        group_poisson(device, tables, sine, &source, ghosts, 0.1, potential, Some(gradients));
    }
}

fn cells() -> ItemsCount {
    ItemsCount::new(GROUPS * GROUP_CELLS)
}

#[divan::bench(args = THREADS, sample_count = 20)]
fn sine(bencher: Bencher, threads: usize) {
    let mut case = Case::new(threads);
    let sine = SineTables::new();
    bencher.counter(cells()).bench_local(|| case.solve(&sine));
}

#[divan::bench(args = THREADS, sample_count = 20)]
fn ghosts_from_siblings(bencher: Bencher, threads: usize) {
    let mut case = Case::new(threads);
    bencher.counter(cells()).bench_local(|| case.ghosts(GhostOrigin::Sibling));
}

#[divan::bench(args = THREADS, sample_count = 20)]
fn ghosts_from_coarse(bencher: Bencher, threads: usize) {
    let mut case = Case::new(threads);
    bencher.counter(cells()).bench_local(|| case.ghosts(GhostOrigin::Coarse));
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn root_transform(bencher: Bencher, threads: usize) {
    let device = Device::cpu(threads).expect("threads start");
    transform(bencher, threads, RootPoisson::new(&device, [SIDE; 3]).expect("room"));
}

#[divan::bench(args = THREADS, sample_count = 5)]
fn isolated_root_transform(bencher: Bencher, threads: usize) {
    let device = Device::cpu(threads).expect("threads start");
    transform(bencher, threads, RootPoisson::isolated(&device, [SIDE; 3]).expect("room"));
}

#[divan::bench(args = THREADS, sample_count = 1)]
fn isolated_root_table(bencher: Bencher, threads: usize) {
    let device = Device::cpu(threads).expect("threads start");
    bencher.bench_local(|| RootPoisson::isolated(&device, [SIDE; 3]).expect("room").bytes());
}

fn transform(bencher: Bencher, threads: usize, mut root: RootPoisson) {
    let mut case = Case::new(threads);
    let slots = case.tables.slots.clone();
    bencher.counter(cells()).bench_local(|| {
        let source = PoissonSource::Density(DensitySource::of_fluid(&case.fluid, 1.0, 1.0));
        root.solve(&case.device, &slots, &source, 0.1, &mut case.potential);
    });
}

#[divan::bench(args = THREADS, sample_count = 10)]
fn kick(bencher: Bencher, threads: usize) {
    let mut case = Case::new(threads);
    let eos = Eos::new(5.0 / 3.0);
    bencher.counter(cells()).bench_local(|| {
        let Case { device, tables, potential, fluid, .. } = &mut case;
        gravity_kick(device, tables, potential, None, fluid, 0.1, 1e-6, &eos).wait()
    });
}

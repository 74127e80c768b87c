//! Poisson solvers of one mesh and of one group against their discrete equations, and the kick against its
//! bookkeeping.

use comove_kernels::face_relaxation::{Relaxation, relax_faces, start_faces};
use comove_kernels::group_poisson::FACE_GRADIENTS;
use comove_kernels::layout::{
    CENTRE, DENSITY, DIRECTIONS, ENERGY, ENTROPY, FACE_CELLS, FACES, GROUP, GROUP_CELLS, GROUP_VALUES, MOMENTUM, cell,
};
use comove_kernels::level_topology::NONE;
use comove_kernels::potential_ghosts::GHOST_CELLS;
use comove_kernels::{
    Buffer, Device, DeviceTable, Eos, GhostOrigin, LevelTopology, Parity, PoissonSource, Real, RootPoisson, SineTables,
    gravity_kick, group_poisson, max_acceleration,
};
use std::f64::consts::TAU;

/// Reproducible noise in [-1, 1).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn device(threads: usize) -> Device {
    Device::cpu(threads).expect("threads start")
}

fn buffer<T: Real>(values: impl IntoIterator<Item = f64>) -> Buffer<T> {
    Buffer::Cpu(values.into_iter().map(T::from_f64).collect())
}

/// The only group of a periodic root level, its own neighbour on every side.
fn lone_group() -> LevelTopology {
    LevelTopology {
        slots: vec![0].into(),
        neighbours: vec![0; DIRECTIONS].into(),
        parents: vec![NONE; DIRECTIONS].into(),
        octants: vec![0].into(),
        outside: vec![0].into(),
        leaves: vec![0b0111_1111].into(),
        ..LevelTopology::default()
    }
}

/// A plane wave is an eigenvector of the discrete operator: the solution is exact to round-off, on a mesh whose axes
/// differ and whose slots are shuffled.
#[test]
fn a_plane_wave_on_the_root() {
    let groups = [3, 1, 2];
    let cells = groups.map(|n| n * GROUP);
    let slots: DeviceTable<u32> = vec![4, 0, 5, 1, 3, 2].into();
    let (k, h) = ([5.0, 3.0, 7.0], 0.37);
    let phase: [f64; 3] = std::array::from_fn(|a| TAU * k[a] / cells[a] as f64);
    let eigenvalue = -phase.iter().map(|p| 2.0 - 2.0 * p.cos()).sum::<f64>() / (h * h);
    let mut source = vec![0.0; 6 * GROUP_CELLS];
    for (group, &slot) in slots.iter().enumerate() {
        let corner = [group % 3, 0, group / 3].map(|n| n * GROUP);
        for c in 0..GROUP_CELLS {
            let at = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
            let angle: f64 = (0..3).map(|a| phase[a] * (corner[a] + at[a]) as f64).sum();
            source[slot as usize * GROUP_CELLS + c] = 5.0 + (angle + 0.3).cos(); // the mean is removed
        }
    }
    let expected: Vec<f64> = source.iter().map(|s| (s - 5.0) / eigenvalue).collect();
    let source = buffer::<f64>(source);
    let solve = |threads: usize| {
        let mut potential = buffer::<f64>(vec![9.0; 6 * GROUP_CELLS]);
        let device = device(threads);
        let mut root = RootPoisson::new(&device, groups).expect("room");
        root.solve(&device, &slots, &PoissonSource::Field(&source), h, &mut potential);
        potential.to_host()
    };
    let potential = solve(1);
    for (a, b) in potential.iter().zip(&expected) {
        assert!((a - b).abs() < 1e-13 / eigenvalue.abs(), "{a} {b}");
    }
    assert_eq!(potential, solve(3), "bits depend on the number of threads");
}

/// Noise on an isolated mesh whose axes differ: the discrete equation holds in every cell that has its neighbours, and
/// a far cell sees −1/(4πr) of every source, none of them twice.
#[test]
fn an_isolated_root() {
    let groups = [3, 1, 2];
    let [nx, ny, nz] = groups.map(|n| n * GROUP);
    let slots: DeviceTable<u32> = vec![4, 0, 5, 1, 3, 2].into();
    let h = 0.37;
    let place = |[x, y, z]: [usize; 3]| {
        let slot = slots[(z / GROUP * groups[1] + y / GROUP) * groups[0] + x / GROUP] as usize;
        slot * GROUP_CELLS + cell(x % GROUP, y % GROUP, z % GROUP)
    };
    let solve = |source: &[f64], threads: usize| {
        let source = buffer::<f64>(source.iter().copied());
        let mut potential = buffer::<f64>(vec![9.0; 6 * GROUP_CELLS]);
        let device = device(threads);
        let mut root = RootPoisson::isolated(&device, groups).expect("room");
        root.solve(&device, &slots, &PoissonSource::Field(&source), h, &mut potential);
        potential.to_host()
    };
    let mut noise = Noise(5);
    let source: Vec<f64> = (0..6 * GROUP_CELLS).map(|_| 1.0 + noise.next()).collect();
    let potential = solve(&source, 1);
    for z in 1..nz - 1 {
        for (x, y) in (1..nx - 1).flat_map(|x| (1..ny - 1).map(move |y| (x, y))) {
            let mut sum = -6.0 * potential[place([x, y, z])];
            for (dx, dy, dz) in [(0, 1, 1), (2, 1, 1), (1, 0, 1), (1, 2, 1), (1, 1, 0), (1, 1, 2)] {
                sum += potential[place([x + dx - 1, y + dy - 1, z + dz - 1])];
            }
            // the potential is 60 times the source·h²: so many of its roundings
            let error = sum / (h * h) - source[place([x, y, z])];
            assert!(error.abs() < 1e-11, "{x} {y} {z}: {error:e}");
        }
    }
    assert_eq!(potential, solve(&source, 3), "bits depend on the number of threads");

    let mut source = vec![0.0; 6 * GROUP_CELLS];
    source[place([0, 2, 1])] = 3.0;
    let potential = solve(&source, 2);
    for [x, y, z] in [[nx - 1, 0, 0], [nx - 1, ny - 1, nz - 1], [30, 9, nz - 1]] {
        let r = [x as f64, y as f64 - 2.0, z as f64 - 1.0].iter().map(|d| d * d).sum::<f64>().sqrt();
        let expected = -3.0 * h * h / (2.0 * TAU * r);
        // the lattice's next term is at most 1/(4r²) of it
        assert!((potential[place([x, y, z])] / expected - 1.0).abs() < 0.25 / (r * r), "{x} {y} {z}");
    }
}

/// Source, boundary values and solution of one group.
struct Solution<T> {
    potential: Vec<T>,
    gradients: Vec<T>,
}

fn solve_group<T: Real>(source: &[f64], ghosts: &[f64], h: f64) -> Solution<T> {
    let source = buffer::<T>(source.iter().copied());
    let mut potential = buffer::<T>(vec![0.0; GROUP_CELLS]);
    let mut gradients = buffer::<T>(vec![0.0; FACE_GRADIENTS]);
    group_poisson(
        &device(1),
        &lone_group(),
        &SineTables::new(),
        &PoissonSource::Field(&source),
        &buffer(ghosts.iter().copied()),
        h,
        &mut potential,
        Some(&mut gradients),
    );
    Solution { potential: potential.to_host(), gradients: gradients.to_host() }
}

/// Noise as source and as boundary values about `offset`.
fn noisy_group(offset: f64) -> (Vec<f64>, Vec<f64>) {
    let mut noise = Noise(7);
    let source = (0..GROUP_CELLS).map(|_| noise.next()).collect();
    (source, (0..GHOST_CELLS).map(|_| offset + noise.next()).collect())
}

/// The neighbour of a cell across a face, ghosts included.
fn neighbour(potential: &[f64], ghosts: &[f64], at: [usize; 3], face: usize) -> f64 {
    let (axis, upper) = (face / 2, face % 2 == 1);
    if at[axis] == if upper { GROUP - 1 } else { 0 } {
        let [a, b] = [[1, 2], [0, 2], [0, 1]][axis];
        return ghosts[face * FACE_CELLS + at[b] * GROUP + at[a]];
    }
    let mut other = at;
    other[axis] = if upper { at[axis] + 1 } else { at[axis] - 1 };
    potential[cell(other[0], other[1], other[2])]
}

/// The exact solver leaves a residual of round-off, and its face gradients add up to the source (Gauss).
#[test]
fn sine_transforms_solve_the_discrete_equation() {
    let (h, (source, ghosts)) = (0.25, noisy_group(1e3));
    let Solution { potential, gradients } = solve_group::<f64>(&source, &ghosts, h);
    for c in 0..GROUP_CELLS {
        let at = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
        let sum: f64 = (0..FACES).map(|face| neighbour(&potential, &ghosts, at, face) - potential[c]).sum();
        // a dozen roundings of values near 1000
        assert!((sum / (h * h) - source[c]).abs() < 12.0 * 1e3 * f64::EPSILON / (h * h), "cell {at:?}");
    }
    let flux: f64 = gradients.iter().sum::<f64>() * (2.0 * h).powi(2);
    let mass: f64 = source.iter().sum::<f64>() * h.powi(3);
    assert!((flux - mass).abs() < 1e-11, "{flux} {mass}");
}

/// Single precision against double: a few roundings of the solution, however large the mean boundary value.
#[test]
fn single_precision_follows_double() {
    for offset in [0.0, 1e3] {
        let (source, ghosts) = noisy_group(offset);
        // what single precision is given
        let ghosts: Vec<f64> = ghosts.iter().map(|&g| f64::from(g as f32)).collect();
        let double = solve_group::<f64>(&source, &ghosts, 0.5);
        let single = solve_group::<f32>(&source, &ghosts, 0.5);
        let tolerance = f64::from(f32::EPSILON) * (offset + 8.0);
        for (a, b) in single.potential.iter().zip(&double.potential) {
            assert!((a.as_f64() - b).abs() < tolerance, "{a} {b}");
        }
    }
}

/// A potential of one wave in a periodic group, at rest on a mean density.
fn wave<T: Real>() -> (Buffer<T>, Buffer<T>) {
    let potential =
        (0..GROUP_CELLS).map(|c| (TAU * (c % GROUP) as f64 / 16.0).sin() + (TAU * (c / 256) as f64 / 16.0).cos());
    let mut noise = Noise(3);
    let mut fluid = vec![0.0; GROUP_VALUES];
    for c in 0..GROUP_CELLS {
        let density = 2.0 + noise.next();
        let momentum = [noise.next(), noise.next(), noise.next()];
        let kinetic = momentum.iter().map(|m| m * m).sum::<f64>() / (2.0 * density);
        fluid[DENSITY * GROUP_CELLS + c] = density;
        for axis in 0..3 {
            fluid[(MOMENTUM + axis) * GROUP_CELLS + c] = momentum[axis];
        }
        fluid[ENERGY * GROUP_CELLS + c] = kinetic + 1.5;
        fluid[ENTROPY * GROUP_CELLS + c] = density.powf(-2.0 / 3.0);
    }
    (buffer(potential), buffer(fluid))
}

/// Momentum gains ρ g dt with the analytic difference quotient; the energy gained is the work, to round-off; the
/// reports count leaf cells only.
#[test]
fn a_kick_books_its_work() {
    let (potential, mut fluid) = wave::<f64>();
    let before = fluid.to_host();
    let (h, dt) = (1.0 / 16.0, 0.01);
    let eos = Eos::new(5.0 / 3.0);
    let kicks = gravity_kick(&device(1), &lone_group(), &potential, None, &mut fluid, h, dt, &eos).wait();
    let report = kicks[0].report;
    let after = fluid.host();
    let quotient = (TAU / 16.0).sin() / h; // of a sine wave, in place of 2π
    let (mut gained, mut largest) = (0.0, 0.0f64);
    for c in 0..GROUP_CELLS {
        let [i, j, k] = [c % GROUP, c / GROUP % GROUP, c / GROUP / GROUP];
        let g = [-quotient * (TAU * i as f64 / 16.0).cos(), 0.0, quotient * (TAU * k as f64 / 16.0).sin()];
        for axis in 0..3 {
            let m = (MOMENTUM + axis) * GROUP_CELLS + c;
            assert!((after[m] - before[m] - before[c] * g[axis] * dt).abs() < 1e-14);
        }
        if i < 8 || j < 8 || k < 8 {
            gained += after[ENERGY * GROUP_CELLS + c] - before[ENERGY * GROUP_CELLS + c];
            largest = largest.max((g[0] * g[0] + g[2] * g[2]).sqrt());
        }
    }
    let booked = kicks[0].work + report.energy_added + report.floor_energy;
    assert!(kicks[0].work.abs() > 0.1 && (gained - booked).abs() < 1e-12, "{gained} {booked}");
    assert!((kicks[0].peak.acceleration - largest).abs() < 1e-12 * largest);
    let peaks = max_acceleration(&device(1), &lone_group(), &potential, None, h).wait();
    assert_eq!(peaks[0], kicks[0].peak);
    assert_eq!(report.invalid, 0);
}

/// A NaN in a leaf cell is counted and located; in a refined cell it is not this level's to report.
#[test]
fn invalid_leaf_cells_are_located() {
    for (bad, count) in [(cell(3, 9, 1), 1), (cell(12, 9, 8), 0)] {
        let (potential, mut fluid) = wave::<f32>();
        fluid.host_mut()[ENERGY * GROUP_CELLS + bad] = f32::NAN;
        let eos = Eos::new(5.0 / 3.0);
        let kicks = gravity_kick(&device(1), &lone_group(), &potential, None, &mut fluid, 0.1, 0.1, &eos).wait();
        let report = kicks[0].report;
        assert_eq!((report.invalid, report.first_invalid), (count, if count > 0 { bad as u32 } else { 0 }));
    }
}

/// The cells of a slot at a face, in the order of ghosts.
fn at_face<T: Real>(slot: &[T], face: usize) -> impl Iterator<Item = f64> + '_ {
    (0..FACE_CELLS).map(move |c| {
        let (m, n, layer) = (c % GROUP, c / GROUP, if face & 1 == 0 { 0 } else { GROUP - 1 });
        let at = match face / 2 {
            0 => cell(layer, m, n),
            1 => cell(m, layer, n),
            _ => cell(m, n, layer),
        };
        slot[at].as_f64()
    })
}

/// Solutions at faces are those of all cells, and relaxed ghosts take the error and overshoot, those alone that have a
/// neighbour.
fn faces_follow<T: Real>(tolerance: f64) {
    let (source, boundary) = noisy_group(5.0);
    // a neighbour towards +x alone, which is the group itself
    let mut neighbours = vec![NONE; DIRECTIONS];
    neighbours[CENTRE] = 0;
    neighbours[CENTRE + 1] = 0;
    let tables = LevelTopology { neighbours: neighbours.into(), ..lone_group() };
    let (device, sine, h) = (device(1), SineTables::new(), 0.3);
    let mut potential = buffer::<T>((0..GROUP_CELLS).map(|c| boundary[c % GHOST_CELLS]));
    let [mut ghosts, mut own] = [0.0; 2].map(|value| buffer::<T>(vec![value; GHOST_CELLS]));
    let field = buffer::<T>(source.iter().copied());
    let matter = PoissonSource::Field(&field);
    let origin = GhostOrigin::Sibling;
    start_faces(&device, &tables, origin, None, &sine, &matter, h, &mut ghosts, &mut own, &mut potential);

    let check = |ghosts: &Buffer<T>, potential: &Buffer<T>| {
        let ghosts: Vec<f64> = ghosts.host().iter().map(|ghost| ghost.as_f64()).collect();
        let whole = solve_group::<f64>(&source, &ghosts, h).potential;
        for face in 0..FACES {
            let found = &potential.host()[face * FACE_CELLS..][..FACE_CELLS];
            for (found, expected) in found.iter().zip(at_face(&whole, face)) {
                assert!((found.as_f64() - expected).abs() < tolerance, "{face}: {found:?} {expected}");
            }
        }
    };
    check(&ghosts, &potential);

    let faces: Vec<f64> = potential.host().iter().map(|face| face.as_f64()).collect();
    let held: Vec<f64> = ghosts.host().iter().map(|ghost| ghost.as_f64()).collect();
    // constant but for the layer beside a face without neighbour, so the error is 0.1 at most ghosts
    let error = buffer::<T>(vec![0.1; 512]);
    for neighbours_corrected in [true, false] {
        let (mut ghosts, mut potential) = (buffer::<T>(held.iter().copied()), buffer::<T>(faces.iter().copied()));
        let relaxation = Relaxation { factor: 1.4, error: &error, neighbours_corrected };
        // the group is even: no odd one changes
        for parity in [Parity::Even, Parity::Odd] {
            let groups = tables.half(parity);
            relax_faces(&device, &tables, groups, &relaxation, &sine, &own, &mut ghosts, &mut potential);
        }
        for (n, ghost) in ghosts.host().iter().enumerate() {
            let (face, m, row) = (n / FACE_CELLS, n % GROUP, n / GROUP % GROUP);
            let expected = match face {
                1 => {
                    held[n]
                        + 0.1
                        + 1.4 * (faces[n - FACE_CELLS] - held[n] - if neighbours_corrected { 0.1 } else { 0.0 })
                }
                _ => held[n],
            };
            let is_at_edge = face == 1 && [m, row].iter().any(|c| [0, GROUP - 1].contains(c));
            let is_close = (ghost.as_f64() - expected).abs() < 1e-6;
            assert!(is_close || is_at_edge, "{n}: {ghost:?} {expected}");
        }
        check(&ghosts, &potential);
    }
}

#[test]
fn faces_are_those_of_all_cells() {
    faces_follow::<f64>(1e-12);
    faces_follow::<f32>(2e-5);
}

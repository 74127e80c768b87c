//! Dark matter beside gas: bits, conservation, and a plane wave that collapses as it must.

use crate::common;

use common::{cosmological_parameters, initial, initial_on};
use comove_sim::fields::FieldSet;
use comove_sim::kernels::layout::{GROUP_CELLS, GROUP_VALUES, PATCH, cell, octant_origin};
use comove_sim::kernels::point::particle::{id_of_class, marked};
use comove_sim::mesh::PERIODIC;
use comove_sim::records::{Ledger, StepRecord};
use comove_sim::{
    Cosmology, Criterion, HostParticles, HostState, Precision, RunParameters, Simulation, Snapshot, TimeSteps,
};
use std::f64::consts::TAU;

/// The gas's share of the matter.
const GAS: f64 = 0.16;

/// A particle for each cell of a lattice in a box as `snapshot`'s, moved from its centre; both in code length and velocity.
fn with_particles(
    mut snapshot: Snapshot,
    cells: [usize; 3],
    gas: f64,
    moved: impl Fn([f64; 3]) -> ([f64; 3], [f64; 3]),
) -> Snapshot {
    let lengths = snapshot.box_lengths();
    let count = cells.iter().product::<usize>();
    let volume: f64 = lengths.iter().product();
    let mut particles =
        HostParticles { particle_mass: (1.0 - gas) * volume / count as f64, ..HostParticles::default() };
    for n in 0..count {
        let at = [n % cells[0], n / cells[0] % cells[1], n / (cells[0] * cells[1])];
        let q = std::array::from_fn(|a| (at[a] as f64 + 0.5) / cells[a] as f64 * lengths[a]);
        let (displacement, velocity) = moved(q);
        for a in 0..3 {
            let x = (q[a] + displacement[a]).rem_euclid(lengths[a]);
            particles.position[a].push(HostParticles::fraction(x, lengths[a]).unwrap());
            particles.velocity[a].push(velocity[a] as f32);
        }
        particles.id.push(n as u64);
    }
    snapshot.header.dark_matter = Some(particles.header());
    snapshot.state.particles = Some(particles.in_file_order(&snapshot.state.tree));
    snapshot
}

/// Waves along all axes that collapse soon, in gas and dark matter alike.
pub(crate) fn waves(groups: u32) -> Snapshot {
    waves_on(groups, [16 * groups as usize; 3])
}

/// The same with particles on a lattice of its own.
fn waves_on(groups: u32, cells: [usize; 3]) -> Snapshot {
    let cosmology = Cosmology::flat(0.7, 0.3, 0.3 * GAS, 0.9, 1.0);
    let a = 0.1;
    let rate = cosmology.hubble_flow(a) * cosmology.growth(a).1;
    let amplitude = [0.5, 0.4, 0.3];
    let lengths = 50.0;
    let psi = move |x: [f64; 3]| [0, 1, 2].map(|n: usize| -amplitude[n] * lengths / TAU * (TAU * x[n]).sin());
    let gas = move |x: [f64; 3]| {
        let delta: f64 = (0..3).map(|n| amplitude[n] * (TAU * x[n]).cos()).sum();
        let density = GAS * (1.0 + 0.5 * delta);
        (density, psi(x).map(|psi| rate * psi), 1e-4 * density)
    };
    let snapshot = initial(groups, PERIODIC, Some(cosmology), a, gas);
    with_particles(snapshot, cells, GAS, |q| {
        let psi = psi(q.map(|x| x / lengths));
        (psi, psi.map(|psi| rate * psi))
    })
}

/// The same waves in dark matter alone.
pub(crate) fn waves_without_gas(groups: u32) -> Snapshot {
    without_gas(waves(groups))
}

/// The same in three mass classes: one particle a root cell in the middle half of the box, of 8 and 64 times the mass around.
pub(crate) fn zoom(groups: u32) -> Snapshot {
    let side = 16 * groups as usize;
    let mut start = without_gas(waves_on(groups, [side; 3]));
    let mut all = HostParticles { particle_mass: particles_of(&start).particle_mass, ..HostParticles::default() };
    for class in 0..3 {
        let cells = side >> class;
        let lattice = without_gas(waves_on(groups, [cells; 3]));
        let particles = particles_of(&lattice);
        for n in 0..particles.len() {
            let number = particles.id[n] as usize;
            let at = [number % cells, number / cells % cells, number / (cells * cells)];
            let from_middle = at.map(|c| ((c as f64 + 0.5) / cells as f64 - 0.5).abs()).into_iter().fold(0.0, f64::max);
            let own = [0.0..0.25, 0.25..0.375, 0.375..0.5][class].contains(&from_middle);
            if own {
                (0..3).for_each(|a| all.position[a].push(particles.position[a][n]));
                (0..3).for_each(|a| all.velocity[a].push(particles.velocity[a][n]));
                all.id.push(id_of_class(class, particles.id[n]).unwrap());
            }
        }
    }
    start.header.dark_matter = Some(all.header());
    start.state.particles = Some(all.in_file_order(&start.state.tree));
    start
}

fn particles_of(snapshot: &Snapshot) -> &HostParticles {
    snapshot.state.particles.as_ref().expect("dark matter")
}

/// Criteria that refine a zoom by the number of its lightest particles as well.
pub(crate) fn counting() -> Vec<Criterion> {
    vec![Criterion::ParticlesAbove { thresholds: vec![2.0, 1.5] }]
}

fn without_gas(snapshot: Snapshot) -> Snapshot {
    let Snapshot { mut header, mut state } = snapshot;
    let particles = state.particles.as_mut().expect("dark matter");
    particles.particle_mass /= 1.0 - GAS;
    header.dark_matter = Some(particles.header());
    header.fields = FieldSet::without_gas();
    state.fluid.clear();
    Snapshot { header, state }
}

pub(crate) fn parameters(time_steps: TimeSteps, precision: Precision) -> RunParameters {
    let refine = vec![Criterion::OverdensityAbove { thresholds: vec![3.0, 12.0] }];
    RunParameters { time_steps, refine, max_level: 2, regrid_every: 3, ..cosmological_parameters(precision) }
}

fn run(from: &Snapshot, threads: usize, parameters: &RunParameters, steps: u64) -> (Vec<String>, Simulation) {
    let mut simulation = Simulation::start(common::device(threads), from, parameters.clone()).expect("start");
    let mut hashes = Vec::new();
    while simulation.step_number() < steps {
        hashes.push(simulation.step().expect("step").state_hash);
    }
    (hashes, simulation)
}

#[test]
fn the_bits_depend_neither_on_threads_nor_on_restarts_nor_on_outputs() {
    let folder = tempfile::tempdir().unwrap();
    for (start, time_steps, precision, more) in [
        (waves(1), TimeSteps::Uniform, Precision::Double, Vec::new()),
        (waves(2), TimeSteps::Individual, Precision::Single, Vec::new()),
        (waves_without_gas(2), TimeSteps::Individual, Precision::Single, Vec::new()),
        (zoom(2), TimeSteps::Individual, Precision::Single, counting()),
    ] {
        let mut parameters = parameters(time_steps, precision);
        parameters.refine.extend(more);
        let (one, mut simulation) = run(&start, 1, &parameters, 9);
        let end = simulation.checkpoint().unwrap();
        let whole = simulation.summary();
        assert!(whole.initial.is_some_and(|initial| (initial.mass / 50f64.powi(3) - 1.0).abs() < 1e-6), "{whole:?}");
        assert_eq!(end.state.tree.level_count(), 3, "the test needs refinement");
        assert_eq!(run(&start, 2, &parameters, 9).0, one, "two threads");
        let (_, mut simulation) = run(&start, 2, &parameters, 5);
        let target = 0.6 * simulation.now() + 0.4 * simulation.next_stop();
        simulation.output_at(target).unwrap();
        let path = folder.path().join("x.h5");
        simulation.checkpoint().unwrap().write(&path).unwrap();
        let read = Snapshot::read(&path).unwrap();
        assert_eq!(read.state.particles, simulation.checkpoint().unwrap().state.particles);
        assert_eq!(read.state.fluid.is_empty(), start.state.fluid.is_empty());
        assert_eq!(Some(simulation.step().unwrap().state_hash), one.get(5).cloned(), "after an output");
        let (rest, mut simulation) = run(&read, 1, &parameters, 9);
        assert_eq!(rest, one[5..], "after a restart from the file");
        let summary = simulation.summary();
        assert_eq!((summary.initial, summary.sums, summary.gas), (whole.initial, whole.sums, whole.gas));
        assert_eq!(simulation.checkpoint().unwrap().state.particles, end.state.particles);
    }
}

/// Mass is that of the particles, momentum stays what it was, and both species feel the same force.
#[test]
fn mass_and_momentum_stay() {
    for time_steps in [TimeSteps::Uniform, TimeSteps::Individual] {
        let start = waves(2);
        let mut simulation =
            Simulation::start(common::device(2), &start, parameters(time_steps, Precision::Single)).expect("start");
        let mut finest = 0;
        for _ in 0..14 {
            let record = simulation.step().expect("step");
            let dark = record.dark_matter.expect("dark matter");
            assert_eq!(dark.particles.iter().sum::<u64>(), 32768);
            let volume = 50f64.powi(3);
            let gas = record.gas.expect("gas").sums;
            assert_eq!(record.sums, gas + dark.sums());
            let summary = simulation.summary();
            assert_eq!((summary.sums, summary.gas.map(|gas| gas.sums)), (record.sums, Some(gas)));
            assert!((record.sums.mass - volume).abs() < 1e-6 * volume && gas.mass < 0.5 * volume);
            // against the speed that all particles have
            let scale = (2.0 * dark.kinetic * dark.mass).sqrt();
            for axis in 0..3 {
                let momentum = record.sums.momentum[axis];
                assert!(momentum.abs() < 1e-3 * scale, "{time_steps:?} {momentum} of {scale}");
            }
            finest = record.groups.len();
        }
        assert_eq!(finest, 3);
    }
}

/// Extreme densities of a record are those of all matter in the leaf cells, and of the gas those of the gas.
#[test]
fn records_have_the_extreme_densities_of_all_matter() {
    for (start, time_steps) in [
        (waves(2), TimeSteps::Uniform),
        (waves(2), TimeSteps::Individual),
        (waves_without_gas(2), TimeSteps::Individual),
    ] {
        let mut simulation =
            Simulation::start(common::device(2), &start, parameters(time_steps, Precision::Single)).expect("start");
        let record = (0..9).map(|_| simulation.step().expect("step")).last().expect("steps");
        assert_eq!(record.groups.len(), 3, "the test needs refinement");
        let HostState { tree, fluid, dark_matter, .. } = simulation.checkpoint().expect("checkpoint").state;
        let (mut matter, mut gas) = ([f64::INFINITY, 0.0f64], [f64::INFINITY, 0.0f64]);
        let wider = |range: &mut [f64; 2], rho: f64| *range = [range[0].min(rho), range[1].max(rho)];
        for patch in tree.leaf_patches() {
            let origin = octant_origin(patch.octant);
            for n in 0..PATCH.pow(3) {
                let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
                let [i, j, k] = std::array::from_fn(|a| origin[a] + inside[a]);
                let of_gas = fluid.get(patch.group * GROUP_VALUES + cell(i, j, k)).copied();
                of_gas.iter().for_each(|rho| wider(&mut gas, *rho));
                wider(&mut matter, of_gas.unwrap_or(0.0) + dark_matter[patch.group * GROUP_CELLS + cell(i, j, k)]);
            }
        }
        // each of two densities is rounded once more in the file
        let close = |found: f64, expected: f64| (found - expected).abs() <= 3e-7 * expected;
        let found = [record.density_min, record.density_max].map(|density| density.expect("a density"));
        assert!(close(found[0], matter[0]) && close(found[1], matter[1]), "{time_steps:?} {found:?} {matter:?}");
        assert_eq!(record.gas.map(|gas| [gas.density_min, gas.density_max]), (!fluid.is_empty()).then_some(gas));
        assert!(found[1] > 2.0 && found[1] > 2.0 * gas[1], "the test needs dark matter that counts: {found:?}");
    }
}

/// d(E + K + W)/d ln a = W (Layzer 1963; Irvine 1961), E being the gas's energy, K and W the kinetic energy of particles and the
/// potential one of all matter.
#[test]
fn kinetic_and_potential_energy_obey_layzer_and_irvine() {
    for (time_steps, groups, bound) in [(TimeSteps::Uniform, 1, 0.02), (TimeSteps::Individual, 2, 0.01)] {
        let start = waves(groups);
        let parameters =
            RunParameters { max_delta_a: 0.02, poisson_cycles: None, ..parameters(time_steps, Precision::Single) };
        let mut simulation = Simulation::start(common::device(2), &start, parameters).expect("start");
        let kinetic = |record: &StepRecord| {
            let Ledger { entropy_energy, floor_energy, regrid_energy, .. } = &record.ledger;
            (record.a.ln(), record.sums.energy - entropy_energy - floor_energy - regrid_energy)
        };
        let mut before: Option<(f64, f64)> = None;
        let mut seen: Vec<(f64, f64, f64)> = Vec::new();
        while simulation.now() < 0.2 {
            let record = simulation.step().expect("step");
            let now = kinetic(&record);
            let potential = record.potential.expect("gravity");
            // between the ends of the step, where the potential was solved
            if let Some(before) = before {
                let part = (potential.a.ln() - before.0) / (now.0 - before.0);
                seen.push((potential.a.ln(), before.1 + part * (now.1 - before.1), potential.energy));
            }
            before = Some(now);
        }
        assert_eq!(simulation.checkpoint().expect("room").state.tree.level_count(), 3, "the test needs refinement");
        let [(_, k0, w0), .., (_, k1, w1)] = seen[..] else { panic!("steps") };
        let integral: f64 = seen.windows(2).map(|s| 0.5 * (s[0].2 + s[1].2) * (s[1].0 - s[0].0)).sum();
        let residual = (k1 + w1 - k0 - w0 - integral) / w1.abs();
        println!(
            "{time_steps:?}: residual {residual:+.4} of |W| in {} steps; K {k0:.3e} to {k1:.3e}, W {w0:.3e} to {w1:.3e}",
            seen.len()
        );
        assert!(residual.abs() < bound, "{residual}");
    }
}

/// Positions and velocities at `end` of sheets of matter in an Einstein–de Sitter universe that were in the given ones at `start`,
/// in code units: the field of a sheet in a periodic box of length `length` is known, and sheets pass through each other.
fn sheets(start: f64, end: f64, length: f64, mut x: Vec<f64>, mut v: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    const STEPS: usize = 4000;
    let count = x.len() as f64;
    let mut order: Vec<usize> = (0..x.len()).collect();
    let a = |step: f64| start * (end / start).powf(step / STEPS as f64);
    for step in 0..STEPS {
        let [from, middle, to] = [0.0, 0.5, 1.0].map(|part| a(step as f64 + part));
        // ∫dt̃ = ∫da a^(−3/2)
        let drift = |x: &mut [f64], v: &[f64], [from, to]: [f64; 2]| {
            let time = 2.0 * (from.powf(-0.5) - to.powf(-0.5));
            x.iter_mut().zip(v).for_each(|(x, v)| *x = (*x + time * v).rem_euclid(length));
        };
        drift(&mut x, &v, [from, middle]);
        order.sort_unstable_by(|&i, &j| x[i].total_cmp(&x[j]));
        let mean = x.iter().sum::<f64>() / count;
        // ∂φ/∂x = 3/2 a (mass to the left − x + …), without a mean over the box; ∫a dt̃ = ∫da a^(−1/2)
        let kick = 1.5 * 2.0 * (to.sqrt() - from.sqrt());
        for (rank, &i) in order.iter().enumerate() {
            v[i] -= kick * ((rank as f64 + 0.5) / count * length - x[i] + mean - 0.5 * length);
        }
        drift(&mut x, &v, [middle, to]);
    }
    (x, v)
}

/// A plane wave of nothing but dark matter, as good as: particles are where Zel'dovich (1970) has them until they cross, and
/// then where sheets are.
#[test]
fn a_plane_wave_collapses_as_it_must() {
    const LENGTH: f64 = 50.0;
    let cosmology = Cosmology::flat(0.7, 1.0, 0.01, 1.0, 1.0);
    let gas = 0.01;
    let (a, a_cross, a_end, a_last) = (0.02, 0.5, 0.45, 0.7);
    let displacement = |q: f64, a: f64| -a / a_cross * LENGTH / TAU * (TAU * q / LENGTH).sin();
    // of code time: da/dt̃ = a^(3/2)
    let velocity = |q: f64, a: f64| displacement(q, a) / a * a.powf(1.5);
    // an odd number for each particle
    let q: Vec<f64> = (0..9 * 128).map(|n| (n as f64 + 0.5) / (9.0 * 128.0) * LENGTH).collect();
    let x = q.iter().map(|&q| (q + displacement(q, a)).rem_euclid(LENGTH)).collect();
    let (x, v) = sheets(a, a_last, LENGTH, x, q.iter().map(|&q| velocity(q, a)).collect());
    for (levels, time_steps) in [(0, TimeSteps::Uniform), (2, TimeSteps::Uniform), (2, TimeSteps::Individual)] {
        let wave = |x: [f64; 3]| {
            (gas * (1.0 + a / a_cross * (TAU * x[0]).cos()), [velocity(LENGTH * x[0], a), 0.0, 0.0], 1e-6)
        };
        let snapshot = initial_on([4, 1, 1], PERIODIC, Some(cosmology), a, wave);
        let start = with_particles(snapshot, [128, 16, 16], gas, |q| {
            ([displacement(q[0], a), 0.0, 0.0], [velocity(q[0], a), 0.0, 0.0])
        });
        let refine = vec![Criterion::OverdensityAbove { thresholds: vec![2.0, 4.0] }];
        let max_level = levels;
        let parameters = RunParameters { max_level, refine, time_steps, max_delta_a: 0.02, ..RunParameters::default() };
        let mut simulation = Simulation::start(common::device(2), &start, parameters).expect("start");
        let mut at = |end: f64| {
            while simulation.next_stop() < end {
                simulation.step().expect("step");
            }
            let end = simulation.output_at(end).expect("output");
            assert_eq!(end.state.tree.level_count(), usize::from(levels) + 1);
            end.state.particles.expect("particles")
        };
        let moved = |particles: &HostParticles, n: usize, from: f64| {
            let moved = particles.coordinate(n, 0, LENGTH) - from;
            moved - LENGTH * (moved / LENGTH).round()
        };
        let particles = at(a_end);
        let (mut worst, mut slip) = (0.0f64, 0.0f64);
        for n in 0..particles.len() {
            let q = (particles.id[n] % 128) as f64 * LENGTH / 128.0 + LENGTH / 256.0;
            worst = worst.max((moved(&particles, n, q) - displacement(q, a_end)).abs());
            slip = slip.max((f64::from(particles.velocity[0][n]) - velocity(q, a_end)).abs());
        }
        let largest = [displacement(12.5, a_end), velocity(12.5, a_end)].map(f64::abs);
        println!(
            "{levels} levels, {time_steps:?}: position {:.4}, velocity {:.4}",
            worst / largest[0],
            slip / largest[1]
        );
        assert!(
            worst < 0.01 * largest[0] && slip < 0.03 * largest[1],
            "{levels} levels: {worst} {slip} of {largest:?}"
        );
        let particles = at(a_last);
        let mut squares = [0.0; 2];
        for n in 0..particles.len() {
            let sheet = 9 * (particles.id[n] % 128) as usize + 4;
            squares[0] += moved(&particles, n, x[sheet]).powi(2);
            squares[1] += (f64::from(particles.velocity[0][n]) - v[sheet]).powi(2);
        }
        let fastest = v.iter().fold(0.0, |fastest: f64, v| fastest.max(v.abs()));
        let [position, speed] = squares.map(|square| (square / particles.len() as f64).sqrt());
        let (position, speed) = (position / LENGTH, speed / fastest);
        println!("against sheets, rms: {position:.4} of the box, {speed:.4} of the largest velocity");
        // two levels: 0.00055 and 0.0103; where second cells do not count, 0.0007 and 0.009
        assert!(position < 0.0008 && speed < 0.011, "{levels} levels: {position} {speed}");
    }
}

/// A patch is refined where a cell in it or within the flag buffer has more particles, as clouds of one cell count them; and
/// without dark matter nothing can be counted.
#[test]
fn cells_of_many_particles_are_refined() {
    const CELLS: usize = 32;
    let refine = vec![Criterion::ParticlesAbove { thresholds: vec![2.5] }];
    let start = waves(2);
    let particles = start.state.particles.as_ref().expect("particles");
    let mut counts = vec![0.0; CELLS.pow(3)];
    for n in 0..particles.len() {
        // its cloud's lower corner in cells, and the part in the upper one of two cells
        let place = [0, 1, 2].map(|axis| particles.coordinate(n, axis, CELLS as f64) - 0.5 + CELLS as f64);
        for corner in 0..8 {
            let upper = [0, 1, 2].map(|axis| corner >> axis & 1);
            let part = |axis: usize| if upper[axis] == 1 { place[axis].fract() } else { 1.0 - place[axis].fract() };
            let [x, y, z] = [0, 1, 2].map(|axis| (place[axis] as usize + upper[axis]) % CELLS);
            counts[(z * CELLS + y) * CELLS + x] += part(0) * part(1) * part(2);
        }
    }
    let full: Vec<[usize; 3]> = (0..counts.len())
        .filter(|&c| counts[c] > 2.5)
        .map(|c| [c % CELLS, c / CELLS % CELLS, c / (CELLS * CELLS)])
        .collect();
    for precision in [Precision::Single, Precision::Double] {
        let parameters =
            RunParameters { refine: refine.clone(), max_level: 1, ..parameters(TimeSteps::Uniform, precision) };
        let buffer = parameters.flag_buffer as usize;
        let mut simulation = Simulation::start(common::device(2), &start, parameters.clone()).expect("start");
        let tree = simulation.checkpoint().expect("state").state.tree;
        let is_near = |patch: usize, at: usize| {
            (8 * patch..8 * patch + 8).any(|c| c.abs_diff(at).min(CELLS - c.abs_diff(at)) <= buffer)
        };
        let mut refined = 0;
        for patch in 0..64 {
            let place = [patch % 4, patch / 4 % 4, patch / 16];
            let expected = full.iter().any(|cell| (0..3).all(|axis| is_near(place[axis], cell[axis])));
            let found = tree.level(1).iter().any(|key| key.coordinate == place.map(|c| c as u32));
            assert_eq!(found, expected, "{precision:?}: patch {place:?}");
            refined += usize::from(found);
        }
        assert!(refined > 4 && refined < 60, "the test needs both: {refined}");
        let mut gas = start.clone();
        (gas.header.dark_matter, gas.state.particles) = (None, None);
        let error = Simulation::start(common::device(1), &gas, parameters).err().expect("refused").to_string();
        assert!(error.contains("refine = particles_above: needs dark matter, and the run has none"), "{error}");
    }
}

/// A particle of class 1 in place of eight of class 0: the same density and potential, bit by bit, and the same sums.
#[test]
fn a_heavy_particle_moves_like_eight_light_ones() {
    let heavy = {
        let mut start = without_gas(waves_on(1, [16; 3]));
        let particles = start.state.particles.as_mut().unwrap();
        particles.particle_mass /= 8.0;
        particles.id.iter_mut().for_each(|id| *id = id_of_class(1, *id).unwrap());
        start.header.dark_matter = Some(particles.header());
        start
    };
    let light = {
        let mut start = heavy.clone();
        let particles = start.state.particles.as_mut().unwrap();
        let each = |n: usize| n / 8;
        let all = 0..8 * particles.len();
        *particles = HostParticles {
            particle_mass: particles.particle_mass,
            position: particles.position.each_ref().map(|column| all.clone().map(|n| column[each(n)]).collect()),
            velocity: particles.velocity.each_ref().map(|column| all.clone().map(|n| column[each(n)]).collect()),
            id: all.clone().map(|n| n as u64).collect(),
        };
        start.header.dark_matter = Some(particles.header());
        start
    };
    let end = |start: &Snapshot| {
        let mut simulation =
            Simulation::start(common::device(2), start, parameters(TimeSteps::Individual, Precision::Single)).unwrap();
        let records: Vec<StepRecord> = (0..6).map(|_| simulation.step().unwrap()).collect();
        (records, simulation.checkpoint().unwrap())
    };
    let [(heavy_records, heavy), (light_records, light)] = [end(&heavy), end(&light)];
    assert!(heavy.state.tree.level_count() > 1, "the test needs refinement");
    assert_eq!(heavy.state.tree, light.state.tree);
    assert!(heavy.state.potential == light.state.potential && heavy.state.dark_matter == light.state.dark_matter);
    for (heavy, light) in heavy_records.iter().zip(&light_records) {
        assert_eq!((heavy.sums, heavy.dt), (light.sums, light.dt));
    }
    assert_eq!(particles_of(&heavy).header().heavier[0], particles_of(&light).header().particles / 8);
}

/// Around the lightest particles alone, not where one heavy particle has the mass of many.
#[test]
fn particles_above_counts_the_lightest() {
    let refine = vec![Criterion::ParticlesAbove { thresholds: vec![0.5] }];
    let start = zoom(4);
    let parameters = RunParameters { refine, max_level: 1, ..parameters(TimeSteps::Uniform, Precision::Single) };
    let mut simulation = Simulation::start(common::device(2), &start, parameters).expect("start");
    let state = simulation.checkpoint().unwrap().state;
    // the middle half is 4³ patches of 8³, and moves by less than a patch; along x the buffer reaches one further
    assert!((64..=288).contains(&state.tree.level(1).len()), "{}", state.tree.level(1).len());
    // weights of all particles are in their place again
    let mean = state.dark_matter[..64 * GROUP_CELLS].iter().sum::<f64>() / (64 * GROUP_CELLS) as f64;
    assert!((mean - 1.0).abs() < 1e-6, "{mean}");
}

/// Of particles of one mass, around those without the mark alone: in a file too, whose header counts the others.
#[test]
fn particles_above_counts_followed_particles() {
    let refine = vec![Criterion::ParticlesAbove { thresholds: vec![0.5] }];
    let parameters = RunParameters { refine, max_level: 1, ..parameters(TimeSteps::Uniform, Precision::Single) };
    let refined = |start: &Snapshot| {
        let mut simulation = Simulation::start(common::device(2), start, parameters.clone()).expect("start");
        simulation.step().expect("step");
        simulation.checkpoint().unwrap()
    };
    let all = without_gas(waves_on(4, [32; 3]));
    let mut some = all.clone();
    let particles = some.state.particles.as_mut().unwrap();
    let is_far = |x: u32| !(1 << 30..3 << 30).contains(&x);
    for n in 0..particles.len() {
        if (0..3).any(|axis| is_far(particles.position[axis][n])) {
            particles.id[n] = marked(particles.id[n]);
        }
    }
    some.header.dark_matter = Some(particles.header());
    let [all, some] = [all, some].map(|start| refined(&start));
    let groups = [&all, &some].map(|end| end.state.tree.level(1).len());
    assert!(groups[0] == 512 && (64..=288).contains(&groups[1]), "{groups:?}");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some.h5");
    let stated = some.header.dark_matter.unwrap();
    assert!(stated.not_followed > stated.particles / 2 && stated.not_followed < stated.particles);
    some.write(&path).unwrap();
    assert_eq!(Snapshot::read(&path).unwrap().header.dark_matter, Some(stated));
}

/// Masses of classes in the file's column and in its header, and both must agree with the identities.
#[test]
fn files_have_the_masses_of_classes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("zoom.h5");
    let start = zoom(2);
    start.write(&path).unwrap();
    let read = Snapshot::read(&path).unwrap();
    assert_eq!((read.header.dark_matter, &read.state.particles), (start.header.dark_matter, &start.state.particles));
    let file = hdf5::File::open(&path).unwrap();
    let masses: Vec<f64> = file.dataset("Particle/ParMass").unwrap().read_raw().unwrap();
    let particles = particles_of(&start);
    assert!((0..particles.len()).all(|n| masses[n] == particles.mass(n)));
    assert!((masses.iter().sum::<f64>() / 50f64.powi(3) - 1.0).abs() < 1e-12);
    assert!(start.header.dark_matter.unwrap().heavier[..2].iter().all(|&number| number > 0));
}

/// A cell with too much mass for its integer, and a box without the mean density, are errors that say where or how much.
#[test]
fn too_much_mass_is_refused() {
    let mut start = without_gas(waves_on(1, [16; 3]));
    let refused = |start: &Snapshot| {
        let parameters = parameters(TimeSteps::Uniform, Precision::Single);
        Simulation::start(common::device(2), start, parameters).err().expect("refused").to_string()
    };
    let mut heavier = start.clone();
    heavier.state.particles.as_mut().unwrap().particle_mass *= 1.5;
    let error = refused(&heavier);
    assert!(error.contains("mean density = 1.5") && error.contains("all masses"), "{error}");
    let count = 65_536;
    let particles = HostParticles {
        particle_mass: 50f64.powi(3) / (count as f64 * 8f64.powi(7)),
        // the centre of cell (3, 4, 5)
        position: [3u32, 4, 5].map(|cell| vec![(2 * cell + 1) << 27; count]),
        velocity: [(); 3].map(|()| vec![0.0; count]),
        id: (0..count as u64).map(|n| id_of_class(7, n).unwrap()).collect(),
    };
    start.header.dark_matter = Some(particles.header());
    start.state.particles = Some(particles);
    let error = refused(&start);
    assert!(error.contains("more than 65536 particles of mass class 7"), "{error}");
    assert!(error.contains("at (10.9375, 14.0625, 17.1875) on level 0"), "{error}");
}

/// What no run can use is refused by name.
#[test]
fn bad_particles_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.h5");
    let good = waves(1);
    let error = |change: &dyn Fn(&mut HostParticles)| {
        let mut bad = good.clone();
        change(bad.state.particles.as_mut().unwrap());
        let started = Simulation::start(common::device(1), &bad, parameters(TimeSteps::Uniform, Precision::Single));
        let said = started.err().expect("refused").to_string();
        bad.write(&path).unwrap();
        let read = Snapshot::read(&path).unwrap_err().to_string();
        assert!(read.contains("x.h5") && read.contains(&said), "{read}");
        said
    };
    assert!(error(&|bad| bad.velocity[1][77] = f32::NAN).contains("velocity = NaN: along y, of particle"));
    assert!(error(&|bad| bad.id[5] = bad.id[6]).contains("belongs to two particles"));
}

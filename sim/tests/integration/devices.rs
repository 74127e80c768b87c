//! A GPU against the CPU: one root step with a regrid inside, on random hierarchies. Passes where there is no GPU.
//!
//! With `COMOVE_CUDA_EXACT` in the environment sweeps and group solves give the CPU's bits, and what is left is the root
//! transform's round-off. Without it they round otherwise: where that turns a decision (a limiter, which of the two
//! energies of cold gas counts) single cells differ by more, and what is around them. How many, is compared with what a
//! change of the start by a unit in the last place does on the CPU: at most twice as many may.

use crate::common;

use common::{GAMMA, initial_on};
use comove_kernels::Device;
use comove_kernels::layout::{FIELDS, GROUP_CELLS, GROUP_VALUES};
use comove_sim::TimeSteps;
use comove_sim::{Boundaries, Boundary};
use comove_sim::{Cosmology, Criterion, HostState, Precision, RunParameters, Simulation, Snapshot};

/// Reproducible noise in [0, 1).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn point(&mut self) -> [f64; 3] {
        std::array::from_fn(|_| self.next())
    }
}

const LEVELS: u8 = 4;

/// A start whose hierarchy has four refined levels: balls anywhere in the box, its faces and corners included, some of
/// which touch at a corner, and a density criterion that decides anew at the regrid.
fn random_start(noise: &mut Noise, gravity: bool) -> (Snapshot, RunParameters) {
    let waves: Vec<([f64; 3], [f64; 4])> = (0..5)
        .map(|_| {
            let number = noise.point().map(|x| (3.0 * x).floor() * std::f64::consts::TAU);
            (number, std::array::from_fn(|_| noise.next() - 0.5))
        })
        .collect();
    let rough = |x: [f64; 3], n: usize| -> f64 {
        waves.iter().map(|(k, a)| a[n] * (k[0] * x[0] + k[1] * x[1] + k[2] * x[2] + 7.0 * a[3]).sin()).sum()
    };
    let cosmology = gravity.then(|| Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0));
    let mach = if noise.next() < 0.5 { 1.0 } else { 30.0 };
    let scale = if gravity { 0.05 } else { 1.0 };
    let gas = |x: [f64; 3]| {
        let density = (0.4 * rough(x, 0)).exp();
        let velocity = [1, 2, 0].map(|n| scale * rough(x, n));
        (density, velocity, (scale / mach).powi(2) * density.powf(GAMMA))
    };
    let boundary = match noise.next() {
        r if gravity || r < 0.4 => Boundaries::default(),
        r if r < 0.6 => Boundaries::all(Boundary::Reflecting),
        r if r < 0.8 => Boundaries::all(Boundary::Outflow),
        _ => Boundaries {
            faces: [
                Boundary::Outflow,
                Boundary::Reflecting,
                Boundary::Periodic,
                Boundary::Periodic,
                Boundary::Reflecting,
                Boundary::Outflow,
            ],
        },
    };
    let root = if gravity { [1; 3] } else { [1, 1 + u32::from(noise.next() < 0.5), 1] };
    let start = initial_on(root, boundary.periodic(), cosmology, if gravity { 0.05 } else { 1.0 }, gas);
    let length = start.header.box_length;
    let mut refine: Vec<Criterion> = (0..3)
        .map(|_| {
            // a third of them close to a face, an edge or a corner of the box
            let center = noise.point().map(|x| length * if x < 0.33 { 0.01 } else { x });
            Criterion::InsideBall { center, radius: 0.01 * length * (1.0 + noise.next()), level: LEVELS }
        })
        .collect();
    refine.push(Criterion::DensityAbove { thresholds: vec![1.6, 2.0, 2.4, 2.6] });
    let parameters = RunParameters {
        gravity,
        coordinates: start.header.coordinates,
        boundary,
        max_level: LEVELS,
        refine,
        regrid_every: 1,
        // a feature travels 1.6 cells in a step
        flag_buffer: 2 + (3.0 * noise.next()) as u32,
        time_steps: if noise.next() < 0.5 { TimeSteps::Uniform } else { TimeSteps::Individual },
        ..RunParameters::default()
    };
    (start, parameters)
}

/// The state after one root step.
fn stepped(device: Device, start: &Snapshot, parameters: &RunParameters) -> HostState {
    let mut simulation = Simulation::start(device, start, parameters.clone()).expect("start");
    simulation.step().expect("step");
    simulation.checkpoint().expect("checkpoint").state
}

/// How far two arrays are apart, in units of the largest absolute value.
#[derive(Clone, Copy, Debug, Default)]
struct Distance {
    largest: f64,
    /// The share of values that differ by more than the tolerance.
    beyond: f64,
}

impl Distance {
    fn between(pairs: &[(f64, f64)], tolerance: f64) -> Self {
        let scale = pairs.iter().fold(f64::MIN_POSITIVE, |scale, (_, b)| scale.max(b.abs()));
        let apart = pairs.iter().map(|(a, b)| (a - b).abs() / scale);
        let beyond = apart.clone().filter(|d| d.is_nan() || *d > tolerance).count() as f64 / pairs.len().max(1) as f64;
        Self { largest: apart.fold(0.0, f64::max), beyond }
    }

    fn max(self, other: Self) -> Self {
        Self { largest: self.largest.max(other.largest), beyond: self.beyond.max(other.beyond) }
    }
}

/// Of each fluid field and of the potential.
fn distances(a: &HostState, b: &HostState, tolerance: f64) -> Vec<Distance> {
    let mut pairs = vec![Vec::new(); FIELDS + 1];
    for (n, (&a, &b)) in a.fluid.iter().zip(&b.fluid).enumerate() {
        pairs[n % GROUP_VALUES / GROUP_CELLS].push((a, b));
    }
    pairs[FIELDS].extend(a.potential.iter().copied().zip(b.potential.iter().copied()));
    pairs.iter().map(|pairs| Distance::between(pairs, tolerance)).collect()
}

/// The same start, every value changed by about a unit in the last place, up or down.
fn nudged(start: &Snapshot, unit: f64, noise: &mut Noise) -> Snapshot {
    let mut nudged = start.clone();
    for value in &mut nudged.state.fluid {
        *value *= if noise.next() < 0.5 { 1.0 + unit } else { 1.0 - unit };
    }
    nudged
}

#[test]
fn a_gpu_agrees_with_the_cpu() {
    let gpu = match Device::cuda(0, 2) {
        Ok(gpu) => gpu,
        Err(reason) => return println!("skipped: {reason}"),
    };
    let cpu = Device::cpu(0).expect("threads");
    let exact = std::env::var_os("COMOVE_CUDA_EXACT").is_some();
    let mut noise = Noise(2026);
    let mut worst = [[Distance::default(); FIELDS + 1]; 2];
    let mut beyond = Vec::new();
    // the shares of values that differ by more than the tolerance, summed over cases and fields: on the GPU, and where
    // round-off changes the start
    let mut shares = [[0.0; 2]; 2];
    for case in 0..100 {
        let (start, parameters) = random_start(&mut noise, case % 2 == 0);
        for (n, (precision, tolerance, unit)) in
            [(Precision::Single, 1e-5, 2f64.powi(-23)), (Precision::Double, 1e-12, 2f64.powi(-52))]
                .into_iter()
                .enumerate()
        {
            let parameters = RunParameters { precision, ..parameters.clone() };
            let expected = stepped(cpu.clone(), &start, &parameters);
            let found = stepped(gpu.clone(), &start, &parameters);
            let what = format!("case {case}, {precision:?}, {:?}, {}", parameters.time_steps, parameters.boundary);
            assert_eq!(expected.tree.level_count(), usize::from(LEVELS) + 1, "{what}: levels");
            assert!(found.tree == expected.tree, "{what}: another tree");
            for (f, distance) in distances(&found, &expected, tolerance).into_iter().enumerate() {
                worst[n][f] = worst[n][f].max(distance);
                shares[n][0] += distance.beyond;
                if exact && distance.beyond > 0.0 {
                    beyond.push(format!("{what}: field {f}: {distance:?}"));
                }
            }
            if !exact {
                let nudged = stepped(cpu.clone(), &nudged(&start, unit, &mut noise), &parameters);
                // where a flag has turned the trees differ: as far apart as states can be
                let apart = |d: Vec<Distance>| d.iter().map(|d| d.beyond).sum::<f64>();
                let same = nudged.tree == expected.tree;
                shares[n][1] += if same { apart(distances(&nudged, &expected, tolerance)) } else { FIELDS as f64 };
            }
        }
    }
    for (name, worst) in ["single", "double"].into_iter().zip(worst) {
        println!("{name}: density, momenta, energy, entropy, potential: {worst:?}");
    }
    assert!(beyond.is_empty(), "{}", beyond.join("\n"));
    for (name, [found, nudged]) in ["single", "double"].into_iter().zip(shares) {
        println!(
            "{name}: share of values beyond the tolerance {found:.2e}, of a start with other round-off {nudged:.2e}"
        );
        assert!(exact || found <= 2.0 * nudged, "{name}: {found:e}, with other round-off {nudged:e}");
    }
}

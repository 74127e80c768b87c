//! Test flows by every scheme, each at its own Courant number: `cargo run --release -p comove-ic --example scheme_tests -- [TEST …]
//! [SCHEME …]`; no test or scheme named means all of them.

use comove_ic::problems::{AcousticWave, Gas, Pancake, Problem, Setup, ShockTube, l1_error};
use comove_ic::{IcError, function_state, silent};
use comove_sim::kernels::layout::{DENSITY, ENERGY, GROUP, MOMENTUM};
use comove_sim::kernels::{Device, Scheme};
use comove_sim::{
    Boundaries, Boundary, Coordinates, FixedGas, HostState, Precision, Role, RunParameters, SimError, Simulation,
    Snapshot, SnapshotHeader,
};
use std::f64::consts::{PI, TAU};

/// A run from a formula.
struct Run<'a> {
    setup: Setup,
    initial: &'a (dyn Fn([f64; 3], f64) -> Gas + Sync),
}

/// A cell of the root.
struct Cell {
    x: [f64; 3],
    u: [f64; 6],
}

impl Cell {
    fn velocity(&self, axis: usize) -> f64 {
        self.u[MOMENTUM + axis] / self.u[DENSITY]
    }
}

/// What a run needed.
#[derive(Default, Clone, Copy, Debug)]
struct Effort {
    steps: u64,
    redone: f64,
    floored: f64,
}

impl Run<'_> {
    fn simulation(&self) -> Result<Simulation, SimError> {
        let device = Device::cpu(2)?;
        let initial = |x, h| Ok::<_, IcError>((self.initial)(x, h));
        let state = function_state(&initial, &self.setup, &device, &silent).expect("a state");
        let header = SnapshotHeader {
            a: if self.setup.cosmology.is_some() { self.setup.start } else { 1.0 },
            box_length: self.setup.box_length,
            cosmology: self.setup.cosmology,
            gamma: self.setup.parameters.gamma,
            precision: self.setup.parameters.precision,
            role: Role::Initial,
            ..SnapshotHeader::initial(self.setup.parameters.coordinates)
        };
        Simulation::start(device, &Snapshot { header, state }, self.setup.parameters.clone())
    }

    /// The state at a time.
    fn to(&self, end: f64) -> Result<(HostState, Effort), SimError> {
        let mut simulation = self.simulation()?;
        let (mut updates, mut effort) = (0.0, Effort::default());
        while simulation.next_stop() < end {
            let record = simulation.step()?;
            effort.steps += 1;
            updates += record.cell_updates as f64;
            effort.redone += record.ladder.redone_cells as f64;
            effort.floored += record.ladder.floored_cells as f64;
        }
        effort.redone /= updates;
        effort.floored /= updates;
        Ok((simulation.output_at(end)?.state, effort))
    }

    fn cells_at(&self, end: f64) -> Result<(Vec<Cell>, Effort), SimError> {
        let (state, effort) = self.to(end)?;
        Ok((cells(&state, &self.setup), effort))
    }
}

/// The cells of the root.
fn cells(state: &HostState, setup: &Setup) -> Vec<Cell> {
    let h = setup.box_length / setup.root[0] as f64;
    let mut cells = Vec::new();
    for (n, key) in state.tree.level(0).iter().enumerate() {
        let group = state.group(n);
        for k in 0..GROUP {
            for j in 0..GROUP {
                for i in 0..GROUP {
                    let at = [i, j, k];
                    let x = std::array::from_fn(|a| (f64::from(key.coordinate[a]) * 16.0 + at[a] as f64 + 0.5) * h);
                    cells.push(Cell { x, u: std::array::from_fn(|f| group[[f, k, j, i]]) });
                }
            }
        }
    }
    cells
}

/// Those on the x axis, in order.
fn on_axis(cells: &[Cell]) -> Vec<&Cell> {
    let low = cells.iter().map(|c| c.x[1]).fold(f64::MAX, f64::min);
    let mut line: Vec<&Cell> = cells.iter().filter(|c| c.x[1] == low && c.x[2] == low).collect();
    line.sort_by(|a, b| a.x[0].total_cmp(&b.x[0]));
    line
}

/// The scheme, and its Courant number.
#[derive(Clone, Copy)]
struct Choice {
    scheme: Scheme,
    courant: f64,
    precision: Precision,
}

impl Choice {
    fn gas(self, gamma: f64, boundary: Boundaries) -> RunParameters {
        RunParameters {
            precision: self.precision,
            coordinates: Coordinates::Plain,
            gamma,
            gravity: false,
            boundary,
            scheme: self.scheme,
            courant: self.courant,
            ..RunParameters::default()
        }
    }

    fn setup(self, root: [usize; 3], box_length: f64, gamma: f64, boundary: Boundaries) -> Setup {
        Setup { box_length, root, cosmology: None, start: 0.0, end: 1.0, parameters: self.gas(gamma, boundary) }
    }

    fn problem(self, problem: &dyn Problem, end: f64) -> Result<f64, SimError> {
        let mut setup = problem.setup();
        setup.parameters.scheme = self.scheme;
        setup.parameters.courant = self.courant;
        let run = Run { setup, initial: &|x, h| problem.initial(x, h) };
        let (state, effort) = run.to(end)?;
        print!("[{} steps, redone {:.1e}, floored {:.0e}] ", effort.steps, effort.redone, effort.floored);
        Ok(l1_error(problem, &state, end).expect("a solution"))
    }
}

fn gas(density: f64, velocity: [f64; 3], pressure: f64) -> Gas {
    Gas { density, velocity, pressure }
}

fn along_x(boundary: Boundary) -> Boundaries {
    let mut all = Boundaries::default();
    all.faces[0] = boundary;
    all.faces[1] = boundary;
    all
}

fn acoustic(choice: Choice) -> Result<(), SimError> {
    let mut errors = Vec::new();
    for root in [16, 32, 64] {
        let wave = AcousticWave { root, ..AcousticWave::default() };
        errors.push(choice.problem(&wave, wave.setup().end)?);
    }
    // travelling, along x
    for root in [32, 64] {
        let c = 1.0;
        let a = 1e-6;
        let wave = |x: f64| {
            let s = a * (TAU * x).cos();
            gas(1.0 + s, [c * s, 0.0, 0.0], 0.6 * (1.0 + 5.0 / 3.0 * s))
        };
        let mut setup = choice.setup([root, 16, 16], 1.0, 5.0 / 3.0, Boundaries::default());
        setup.parameters.precision = Precision::Double;
        let run = Run { setup, initial: &|x, _| wave(x[0]) };
        let (cells, _) = run.cells_at(1.0)?;
        let l1 = cells.iter().map(|c| (c.u[0] - wave(c.x[0]).density).abs()).sum::<f64>() / cells.len() as f64;
        print!("travelling {root}: {:.2e}; ", l1);
    }
    println!(
        "acoustic L1 16, 32, 64 cells: {:.2e} {:.2e} {:.2e}, order {:.2}",
        errors[0],
        errors[1],
        errors[2],
        (errors[0] / errors[2]).log2() / 2.0
    );
    Ok(())
}

fn tube(choice: Choice) -> Result<(), SimError> {
    let problem = ShockTube { root: 64, levels: 0, ..ShockTube::default() };
    let mut setup = problem.setup();
    setup.root = [256, 16, 16];
    setup.parameters.scheme = choice.scheme;
    setup.parameters.courant = choice.courant;
    let end = setup.end;
    let run = Run { setup, initial: &|x, h| problem.initial(x, h) };
    let (cells, effort) = run.cells_at(end)?;
    let line = on_axis(&cells);
    let l1 =
        line.iter().map(|c| (c.u[0] - problem.exact(c.x, end).unwrap().density).abs()).sum::<f64>() / line.len() as f64;
    let v_max = line.iter().map(|c| problem.exact(c.x, end).unwrap().velocity[0]).fold(0.0, f64::max);
    let overshoot = line.iter().map(|c| c.velocity(0)).fold(0.0, f64::max) / v_max - 1.0;
    // contact: where the exact density jumps at constant pressure
    let exact: Vec<Gas> = line.iter().map(|c| problem.exact(c.x, end).unwrap()).collect();
    let (mut contact, mut most) = (0, 0.0);
    for n in 1..exact.len() {
        let jump = (exact[n].density - exact[n - 1].density).abs();
        if jump > most && (exact[n].pressure / exact[n - 1].pressure - 1.0).abs() < 1e-9 {
            (contact, most) = (n, jump);
        }
    }
    let (a, b) = (exact[contact - 1].density, exact[contact].density);
    let across = line[contact.saturating_sub(16)..(contact + 16).min(line.len())]
        .iter()
        .filter(|c| {
            let part = (c.u[0] - b) / (a - b);
            0.05 < part && part < 0.95
        })
        .count();
    println!(
        "tube 256: L1 {l1:.2e}, cells across the contact {across}, velocity overshoot {:.2}%, {effort:?}",
        100.0 * overshoot
    );
    Ok(())
}

fn pancake(choice: Choice) -> Result<(), SimError> {
    for cells in [32, 64, 128] {
        let pancake = Pancake { root: [cells, 16, 16], levels: 0, ..Pancake::default() };
        let end = 0.6 * pancake.caustic();
        let error = choice.problem(&pancake, end)?;
        print!("pancake {cells} before the caustic: {error:.2e}; ");
    }
    println!();
    Ok(())
}

/// A vortex in balance (Gresho & Chan 1990) after one turn.
fn gresho(choice: Choice) -> Result<(), SimError> {
    let n = 64;
    let initial = |x: [f64; 3]| {
        let [x, y] = [x[0] - 0.5, x[1] - 0.5];
        let r = x.hypot(y);
        let (v, p) = if r < 0.2 {
            (5.0 * r, 5.0 + 12.5 * r * r)
        } else if r < 0.4 {
            (2.0 - 5.0 * r, 9.0 + 12.5 * r * r - 20.0 * r + 4.0 * (r / 0.2).ln())
        } else {
            (0.0, 3.0 + 4.0 * 2f64.ln())
        };
        gas(1.0, [-v * y / r, v * x / r, 0.0], p)
    };
    let run =
        Run { setup: choice.setup([n, n, 16], 1.0, 5.0 / 3.0, Boundaries::default()), initial: &|x, _| initial(x) };
    let turn = 2.0 * PI * 0.2;
    let (cells, effort) = run.cells_at(turn)?;
    // azimuthal mean of the velocity in bins of a cell
    let mut bins = vec![(0.0, 0.0); n];
    for c in &cells {
        let [x, y] = [c.x[0] - 0.5, c.x[1] - 0.5];
        let r = x.hypot(y);
        let v = (c.velocity(1) * x - c.velocity(0) * y) / r;
        let bin = &mut bins[(r * n as f64) as usize];
        *bin = (bin.0 + v, bin.1 + 1.0);
    }
    let peak = bins.iter().filter(|b| b.1 > 0.0).map(|b| b.0 / b.1).fold(0.0, f64::max);
    let most = cells.iter().map(|c| c.velocity(0).hypot(c.velocity(1))).fold(0.0, f64::max);
    println!("gresho 64²: peak velocity {peak:.4} (bin means), {most:.4} (cells), {effort:?}");
    Ok(())
}

fn kelvin_helmholtz(choice: Choice) -> Result<(), SimError> {
    let amplitude = |n: usize| -> Result<Vec<f64>, SimError> {
        let (r1, r2, u1, u2, l) = (1.0, 2.0, 0.5, -0.5, 0.025);
        let (rm, um) = (0.5 * (r1 - r2), 0.5 * (u1 - u2));
        let initial = |x: [f64; 3]| {
            let y = x[1];
            let ramp = |a: f64, b: f64, m: f64| {
                if y < 0.25 {
                    a - m * ((y - 0.25) / l).exp()
                } else if y < 0.5 {
                    b + m * ((0.25 - y) / l).exp()
                } else if y < 0.75 {
                    b + m * ((y - 0.75) / l).exp()
                } else {
                    a - m * ((0.75 - y) / l).exp()
                }
            };
            gas(ramp(r1, r2, rm), [ramp(u1, u2, um), 0.01 * (4.0 * PI * x[0]).sin(), 0.0], 2.5)
        };
        let run =
            Run { setup: choice.setup([n, n, 16], 1.0, 5.0 / 3.0, Boundaries::default()), initial: &|x, _| initial(x) };
        let mut simulation = run.simulation()?;
        let mut found = Vec::new();
        for t in [0.5, 1.0, 1.5] {
            while simulation.next_stop() < t {
                simulation.step()?;
            }
            let cells = cells(&simulation.output_at(t)?.state, &run.setup);
            let (mut s, mut c, mut d) = (0.0, 0.0, 0.0);
            for cell in &cells {
                let [x, y, _] = cell.x;
                let weight = (-4.0 * PI * (if y < 0.5 { y - 0.25 } else { 0.75 - y }).abs()).exp();
                s += cell.velocity(1) * (4.0 * PI * x).sin() * weight;
                c += cell.velocity(1) * (4.0 * PI * x).cos() * weight;
                d += weight;
            }
            found.push(2.0 * ((s / d).powi(2) + (c / d).powi(2)).sqrt());
        }
        Ok(found)
    };
    print!("kelvin-helmholtz mode at t = 0.5, 1, 1.5: ");
    for n in [64, 128, 256] {
        print!("{n}²: {:.4?}; ", amplitude(n)?);
    }
    println!();
    Ok(())
}

fn blast_waves(choice: Choice) -> Result<(), SimError> {
    let peak = |n: usize| -> Result<(f64, f64, Effort), SimError> {
        let initial = |x: [f64; 3]| {
            gas(
                1.0,
                [0.0; 3],
                if x[0] < 0.1 {
                    1000.0
                } else if x[0] > 0.9 {
                    100.0
                } else {
                    0.01
                },
            )
        };
        let setup = choice.setup([n, 16, 16], 1.0, 1.4, along_x(Boundary::Reflecting));
        let (cells, effort) = Run { setup, initial: &|x, _| initial(x) }.cells_at(0.038)?;
        let top =
            on_axis(&cells).into_iter().max_by(|a, b| a.u[0].total_cmp(&b.u[0])).map(|c| (c.u[0], c.x[0])).unwrap();
        Ok((top.0, top.1, effort))
    };
    for n in [400, 1600] {
        print!("blast waves {n}: peak {:?}; ", peak(n)?);
    }
    println!();
    Ok(())
}

fn streams(choice: Choice) -> Result<(), SimError> {
    for mach in [5.0, 10.0, 100.0] {
        let n = 256;
        let fixed = |v: f64| Boundary::Fixed(FixedGas { density: 1.0, velocity: [v, 0.0, 0.0], pressure: 0.6 });
        let mut boundary = Boundaries::default();
        boundary.faces[0] = fixed(mach);
        boundary.faces[1] = fixed(-mach);
        let initial = |x: [f64; 3]| gas(1.0, [if x[0] < 0.5 { mach } else { -mach }, 0.0, 0.0], 0.6);
        let setup = choice.setup([n, 16, 16], 1.0, 5.0 / 3.0, boundary);
        let start = Run { setup: setup.clone(), initial: &|x, _| initial(x) };
        let end = 0.6 / mach;
        let (cells, effort) = start.cells_at(end)?;
        let energy = cells.iter().map(|c| c.u[ENERGY]).sum::<f64>() / cells.len() as f64;
        let mass = cells.iter().map(|c| c.u[DENSITY]).sum::<f64>() / cells.len() as f64;
        let each = 0.5 * mach * mach + 0.9;
        // arrives with p dV work
        let arrived = 2.0 * mach * end * (each + 0.6);
        let line = on_axis(&cells);
        let near = &line[n / 2 - 20..n / 2 + 20];
        let max = near.iter().map(|c| c.u[0]).fold(0.0, f64::max);
        println!(
            "streams Mach {mach}: energy gained beyond what arrived {:.3}%, mass {:.1e}, densest {max:.3}, centre {:.3}, {effort:?}",
            100.0 * (energy - each - arrived) / arrived,
            mass - 1.0 - 2.0 * mach * end,
            line[n / 2].u[0]
        );
    }
    Ok(())
}

fn odd_even(choice: Choice) -> Result<(), SimError> {
    // Quirk: a Mach 6 shock along a duct whose middle row is displaced
    let (nx, ny) = (256, 16);
    let h = 1.0 / nx as f64;
    let (m, g) = (6.0f64, 1.4);
    let behind =
        gas((g + 1.0) * m * m / ((g - 1.0) * m * m + 2.0) * 1.4, [0.0; 3], 1.0 + 2.0 * g / (g + 1.0) * (m * m - 1.0));
    let v = m * (1.0 - 1.4 / behind.density);
    let state = FixedGas { density: behind.density, velocity: [v, 0.0, 0.0], pressure: behind.pressure };
    let mut boundary = Boundaries::default();
    boundary.faces[0] = Boundary::Fixed(state);
    boundary.faces[1] = Boundary::Outflow;
    let initial = |x: [f64; 3]| {
        let row = (x[1] / h) as usize;
        let noise =
            if row == ny / 2 { 1e-3 * (if ((x[0] / h) as usize).is_multiple_of(2) { 1.0 } else { -1.0 }) } else { 0.0 };
        if x[0] < 0.1 {
            gas(state.density, state.velocity, state.pressure)
        } else {
            gas(1.4 * (1.0 + noise), [0.0; 3], 1.0)
        }
    };
    let setup = choice.setup([nx, ny, 16], 1.0, g, boundary);
    let (cells, effort) = Run { setup, initial: &|x, _| initial(x) }.cells_at(0.8 / m)?;
    // behind the shock and ahead of the start-up contact
    let worst = cells
        .iter()
        .filter(|c| c.x[0] > 0.6 && c.x[0] < 0.88)
        .map(|c| (c.u[0] / behind.density - 1.0).abs())
        .fold(0.0, f64::max);
    let transverse = cells.iter().map(|c| c.velocity(1).abs()).fold(0.0, f64::max) / m;
    println!(
        "odd-even Mach 6: largest error of ρ behind the shock {:.2}%, transverse velocity over the shock's {transverse:.2e}, {effort:?}",
        100.0 * worst
    );
    Ok(())
}

fn noh(choice: Choice) -> Result<(), SimError> {
    let n = 64;
    let g = 5.0 / 3.0;
    // an octant; gas beyond the upper faces flows in, compressed as r^-2
    let initial = |x: [f64; 3]| {
        let r = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]).sqrt();
        gas(1.0, x.map(|x| -x / r), 1e-6)
    };
    let mut boundary = Boundaries::all(Boundary::Reflecting);
    for face in [1, 3, 5] {
        boundary.faces[face] = Boundary::Outflow;
    }
    let setup = choice.setup([n; 3], 1.0, g, boundary);
    let t = 0.6;
    let (cells, effort) = Run { setup, initial: &|x, _| initial(x) }.cells_at(t)?;
    let shock = t / 3.0;
    let radius = |c: &Cell| c.x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let inside: Vec<f64> =
        cells.iter().filter(|c| radius(c) > 0.4 * shock && radius(c) < 0.8 * shock).map(|c| c.u[0]).collect();
    let mean = inside.iter().sum::<f64>() / inside.len() as f64;
    let scatter = (inside.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / inside.len() as f64).sqrt() / mean;
    let axis: Vec<f64> =
        on_axis(&cells).iter().filter(|c| c.x[0] > 0.4 * shock && c.x[0] < 0.8 * shock).map(|c| c.u[0]).collect();
    let on_axis = axis.iter().sum::<f64>() / axis.len() as f64;
    println!(
        "noh 64³ octant: density 0.4–0.8 r_s {mean:.2} of 64, scatter {:.2}%, along the axis {on_axis:.2}, {effort:?}",
        100.0 * scatter
    );
    Ok(())
}

type Test = fn(Choice) -> Result<(), SimError>;
const TESTS: [(&str, Test); 9] = [
    ("acoustic", acoustic),
    ("tube", tube),
    ("pancake", pancake),
    ("gresho", gresho),
    ("kelvin_helmholtz", kelvin_helmholtz),
    ("blast_waves", blast_waves),
    ("streams", streams),
    ("odd_even", odd_even),
    ("noh", noh),
];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let schemes = [
        ("ppm", Scheme::Ppm, 0.8),
        ("plm", Scheme::Plm, 0.8),
        ("relaxing_tvd", Scheme::RelaxingTvd, 0.5),
        ("hll", Scheme::Hll, 0.8),
    ];
    let named = |name: &str| arguments.iter().any(|a| a == name);
    let some_scheme = schemes.iter().any(|s| named(s.0));
    let some_test = TESTS.iter().any(|t| named(t.0));
    for (test, run) in TESTS.iter().filter(|t| !some_test || named(t.0)) {
        for (name, scheme, courant) in schemes.iter().filter(|s| if some_scheme { named(s.0) } else { s.0 != "hll" }) {
            print!("{name}: ");
            let precision = if named("single") { Precision::Single } else { Precision::Double };
            if let Err(error) = run(Choice { scheme: *scheme, courant: *courant, precision }) {
                println!("{test} failed: {error}");
            }
        }
    }
}

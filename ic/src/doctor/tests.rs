//! Waves and scattered particles, which no linear spectrum describes.

use super::*;
use crate::linear_power::PowerSource;
use crate::uniform_mesh::Lattice;

const BOX: f64 = 16.0;
const CELLS: usize = 16;

fn cosmology() -> Cosmology {
    Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0)
}

/// f a²H/H0 at a.
fn rate(a: f64) -> f64 {
    cosmology().hubble_flow(a) * cosmology().growth(a).1
}

/// Numbers between −1 and 1 without order.
fn scattered(i: [usize; 3], axis: usize) -> f64 {
    let n = 3 * (i[0] + 16 * i[1] + 256 * i[2]) + axis;
    (n as f64 * 12.9898 + 1.0).sin() * 43758.5453 % 1.0
}

/// Waves along all axes with this amplitude in Mpc/h.
fn waves(i: [usize; 3], axis: usize, amplitude: f64) -> f64 {
    amplitude * (TAU * (i[axis] as f64 + 2.0 * i[(axis + 1) % 3] as f64) / CELLS as f64).sin()
}

/// A mesh of particles alone with displacements and velocities by cell and axis.
fn mesh(displacement: impl Fn([usize; 3], usize) -> f64, velocity: impl Fn([usize; 3], usize) -> f64) -> UniformMesh {
    let mut mesh = UniformMesh {
        cells: [CELLS; 3],
        planes: 0..CELLS,
        density: Vec::new(),
        momentum: Default::default(),
        internal_energy: Vec::new(),
        nests: Vec::new(),
        dark_matter: None,
    };
    let all: Vec<[usize; 3]> = (0..mesh.cell_count()).map(|n| mesh.cell(n)).collect();
    let of =
        |value: &dyn Fn([usize; 3], usize) -> f64| [0, 1, 2].map(|axis| all.iter().map(|i| value(*i, axis)).collect());
    mesh.dark_matter = Some(DarkMatter::Lattice(Lattice { displacement: of(&displacement), velocity: of(&velocity) }));
    mesh
}

fn with_subject<R>(a: f64, f: impl FnOnce(&Subject<'_>) -> R) -> R {
    let cosmology = cosmology();
    let power = LinearPower::new(&PowerSource::EisensteinHu, &cosmology).unwrap();
    f(&Subject {
        cosmology: &cosmology,
        power: &power,
        amplitude_is_known: true,
        a,
        box_mpc_h: BOX,
        format: LoadFormat::ComoveIc,
        temperature_k: None,
        mean_molecular_weight: 1.22,
        gamma: 5.0 / 3.0,
    })
}

fn sentences(mesh: &UniformMesh, a: f64) -> (Vec<String>, Vec<String>) {
    let found = with_subject(a, |subject| examine(&Communicator::alone(), mesh, subject, false));
    (found.sentences(Verdict::Wrong), found.sentences(Verdict::Suspicious))
}

#[test]
fn displacements_fit_the_box() {
    let check = |displacement: &dyn Fn([usize; 3], usize) -> f64| {
        let mesh = mesh(displacement, |_, _| 0.0);
        let lattice = mesh.lattice().unwrap();
        with_subject(0.02, |subject| content::half_of_the_box(&Communicator::alone(), &mesh, lattice, subject))
    };
    let refused = |displacement: &dyn Fn([usize; 3], usize) -> f64, parts: &[&str]| {
        let message = check(displacement).unwrap_err();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    };
    let d = |i: [usize; 3], axis: usize| 0.05 * scattered(i, axis);
    assert_eq!(check(&d), Ok(()));
    let positions = |i: [usize; 3], axis: usize| i[axis] as f64 + d(i, axis);
    refused(&positions, &["displacement_x is up to 1.5", "the box 16 Mpc/h long", "positions"]);
    refused(&|i, axis| 1000.0 * d(i, axis), &["kpc/h in place of Mpc/h?"]);
    refused(&|i, axis| d(i, axis) + 3.0 * BOX, &["their mean is"]);
    refused(&|i, axis| d(i, axis) + 1e300, &["up to 1.0000e300"]);
    refused(&|i, axis| if axis == 2 { 9.0 * d(i, 2).signum() } else { 0.0 }, &["displacement_z is up to 9"]);
}

/// Waves have the growing mode's velocities or another factor, streams are no mode, halos have velocities of their own.
#[test]
fn velocities_of_waves_and_halos() {
    let a = 0.02;
    let [early, late] = [a, 1.0].map(rate);
    let none = (Vec::new(), Vec::new());
    let growing =
        |factor: f64| mesh(|i, axis| waves(i, axis, 0.1), move |i, axis| factor * early * waves(i, axis, 0.1));
    for factor in [0.0, 0.95, 1.0, 1.05] {
        assert_eq!(sentences(&growing(factor), a), none, "{factor}");
    }
    for (factor, part) in [(50.0, "v_pec in 100 km/s"), (2.5, "check their unit"), (-1.0, "opposite")] {
        let (wrong, _) = sentences(&growing(factor), a);
        assert!(wrong.len() == 1 && wrong[0].contains(part), "{factor} {wrong:?}");
    }
    let (wrong, suspicious) = sentences(&growing(1.3), a);
    assert!(wrong.is_empty() && suspicious.len() == 1 && suspicious[0].contains("1.30000 times"), "{suspicious:?}");
    let random = |factor: f64| mesh(|i, axis| waves(i, axis, 0.5), move |i, axis| factor * late * scattered(i, axis));
    assert_eq!(sentences(&random(2.0), 1.0), none);
    let (wrong, _) = sentences(&random(200.0), 1.0);
    assert!(wrong.len() == 1 && wrong[0].contains("times those of the growing mode"), "{wrong:?}");
    // a plane wave has nothing along two axes
    let plane =
        |i: [usize; 3], axis: usize| if axis == 0 { 0.1 * (TAU * i[0] as f64 / CELLS as f64).sin() } else { 0.0 };
    assert_eq!(sentences(&mesh(plane, |i, axis| early * plane(i, axis)), a), none);
    let (wrong, _) = sentences(&mesh(plane, |i, axis| -early * plane(i, axis)), a);
    assert!(wrong.len() == 1 && wrong[0].contains("[-x, y, z] is right"), "{wrong:?}");
    // a lattice at rest has no mode
    assert_eq!(sentences(&mesh(|_, _| 0.0, |i, axis| waves(i, axis, 1.0)), a), none);
    // displacements in kpc/h that stay within half of the box
    let (_, suspicious) = sentences(&mesh(|i, axis| waves(i, axis, 6.0), |_, _| 0.0), a);
    assert!(suspicious.len() == 1 && suspicious[0].contains("are they in Mpc/h?"), "{suspicious:?}");
}

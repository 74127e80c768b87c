//! Displacements and velocities of a file beside its box and the growing mode of linear theory: their units.

use crate::error::IcError;
use crate::linear_power::{LinearPower, PowerSource};
use crate::particle_set::{FEW, ParticleSet};
use crate::uniform_mesh::{DarkMatter, Lattice, UniformMesh};
use comove_sim::Cosmology;
use comove_sim::parallel::Communicator;
use std::f64::consts::{PI, TAU};

/// Displacements of more cells than this, rms along an axis, are compared with linear theory.
const MANY_CELLS: f64 = 3.0;

/// How far the rms displacement may be above that of linear theory, whose modes a box has or lacks by chance.
const DISPLACEMENT: f64 = 3.0;

/// Correlation above which velocities are those of a displacement that grows, as Zel'dovich's and second order's are.
const PARALLEL: f64 = 0.9;

/// How far velocities that are parallel to displacements may be above the growing mode's. The second order adds less than 10%,
/// radiation and a species of its own less; √a for a at z = 3 and more is beyond.
const PARALLEL_FACTOR: f64 = 2.0;

/// How far parallel velocities may be from the growing mode's without a remark.
const REMARKABLE: f64 = 1.25;

/// How far the rms of other velocities may be above aHf times that of displacements. Within halos today it is 1 to 3, and wrong
/// units have 1/a or 100.
const FACTOR: f64 = 10.0;

/// The smallest displacement in cells, rms along an axis, that velocities are compared with: below are lattices at rest.
const SMALLEST: f64 = 1e-6;

/// The epoch, length along x and background of a mesh.
pub(crate) struct Frame<'a> {
    pub cosmology: &'a Cosmology,
    pub a: f64,
    pub box_mpc_h: f64,
}

/// Remarks on particles whose displacements or velocities are not those of linear theory. Collective.
///
/// # Errors
/// The reason why they cannot be: displacements of half of the box and more; velocities of several times the growing mode's.
pub(crate) fn examine(
    communicator: &Communicator,
    mesh: &UniformMesh,
    frame: &Frame<'_>,
) -> Result<Vec<String>, String> {
    // a rank may have no planes; all have a lattice or none
    let lattice = match &mesh.dark_matter {
        None => return Ok(Vec::new()),
        Some(DarkMatter::Set(set)) => return examine_set(communicator, set, mesh.cells, frame),
        Some(DarkMatter::Lattice(lattice)) => lattice,
    };
    let spacing = frame.box_mpc_h / mesh.cells[0] as f64;
    let expected = linear_displacement(frame, mesh.cells).map_err(|error| error.to_string())?;
    half_of_the_box(communicator, mesh, lattice, spacing, expected)?;

    let displacement = Vectors::of(communicator, mesh, |i, axis| lattice.displacement[axis][i]);
    let (rms, unit) = (displacement.variance.sqrt() / 3f64.sqrt(), "Mpc/h");
    let mut remarks = Vec::new();
    if rms > MANY_CELLS * spacing && rms > DISPLACEMENT * expected {
        remarks.push(format!(
            "displacements are {rms:.4} {unit} (rms along an axis) or {:.1} cells, {:.1} times those of linear theory \
             ({expected:.4} {unit} with the recipe's sigma8): are they in {unit}?",
            rms / spacing,
            rms / expected
        ));
    }
    if rms < SMALLEST * spacing {
        return Ok(remarks);
    }
    let rate = frame.cosmology.hubble_flow(frame.a) * frame.cosmology.growth(frame.a).1;
    let velocities = |name: &str, velocity: &(dyn Fn(usize, usize) -> f64 + Sync)| {
        let of_both = |i: usize, axis: usize| (lattice.displacement[axis][i], velocity(i, axis));
        let found = Vectors::of(communicator, mesh, velocity);
        compared(name, &displacement, &found, displacement.product(communicator, mesh, &found, of_both), rate, frame.a)
    };
    remarks.extend(velocities("velocities of particles", &|i, axis| lattice.velocity[axis][i])?);
    if mesh.has_gas(communicator) {
        remarks.extend(velocities("velocities of gas", &|i, axis| mesh.momentum[axis][i] / mesh.density[i])?);
    }
    Ok(remarks)
}

/// Remarks on velocities of particles whose displacements are not known, by their rms beside linear theory's.
///
/// * `cells`: in the proportions of the box
///
/// # Errors
/// The reason why they cannot be: many times those of linear theory.
fn examine_set(
    communicator: &Communicator,
    set: &ParticleSet,
    cells: [usize; 3],
    frame: &Frame<'_>,
) -> Result<Vec<String>, String> {
    let total = set.total(communicator);
    if total < FEW {
        return Ok(Vec::new());
    }
    let volume: f64 = cells.iter().map(|&n| n as f64).product();
    let spacing = (volume / total as f64).cbrt();
    let across = cells.map(|n| (n as f64 / spacing).round().max(2.0) as usize);
    let expected = linear_displacement(frame, across).map_err(|error| error.to_string())?;
    let expected = expected * frame.cosmology.hubble_flow(frame.a) * frame.cosmology.growth(frame.a).1;
    let mean = [0, 1, 2].map(|axis| set.mean(communicator, |n| f64::from(set.velocity[axis][n])));
    let square = |n: usize| (0..3).map(|axis| (f64::from(set.velocity[axis][n]) - mean[axis]).powi(2)).sum::<f64>();
    let ratio = (set.mean(communicator, square) / 3.0).sqrt() / expected;
    let found = format!(
        "velocities of particles are {ratio:.3} times those of linear theory (rms along an axis, with the recipe's sigma8)"
    );
    let a = frame.a;
    let causes = [
        (a.powf(-0.5), "1/√a too large: peculiar velocities in place of v_pec/√a, or √a applied twice?"),
        (a.sqrt(), "√a too small: peculiar velocities in place of v_pec/√a?"),
        (1.0 / a, "1/a too large: comoving velocities?"),
        (a, "a too small"),
        (100.0, "km/s in place of 100 km/s?"),
        (1e3, "m/s in place of km/s?"),
    ];
    // rms values of small boxes scatter: the nearest cause
    let away = |factor: f64| (ratio / factor).ln().abs();
    let near =
        causes.into_iter().min_by(|x, y| away(x.0).total_cmp(&away(y.0))).filter(|(factor, _)| away(*factor) < 0.7);
    let why = near.map_or("check their unit", |(_, why)| why);
    if ratio > FACTOR {
        return Err(format!("{found}: {why}"));
    }
    let is_odd = ratio > DISPLACEMENT || (ratio > 0.0 && ratio < 1.0 / DISPLACEMENT);
    Ok(is_odd.then(|| format!("{found}: {why}")).into_iter().collect())
}

/// Refuses displacements of half of the box and more.
fn half_of_the_box(
    communicator: &Communicator,
    mesh: &UniformMesh,
    lattice: &Lattice,
    spacing: f64,
    expected: f64,
) -> Result<(), String> {
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        let values = &lattice.displacement[axis];
        let length = spacing * mesh.cells[axis] as f64;
        let largest = communicator.max(values.iter().fold(0.0, |most: f64, d| most.max(d.abs())));
        if largest <= 0.5 * length {
            continue;
        }
        let found = format!("displacement_{name} is up to {largest:.4e} Mpc/h, and the box {length} Mpc/h long");
        let wrapped = |x: f64| x - length * (x / length).round();
        let from_lattice = |i: usize| wrapped(values[i] - mesh.cell(i)[axis] as f64 * spacing).powi(2);
        let scatter = mesh.mean(communicator, from_lattice).sqrt();
        // beyond this squares overflow
        let rms = if largest < 1e100 { mesh.mean(communicator, |i| values[i].powi(2)).sqrt() } else { largest };
        let mean = if largest < 1e100 { mesh.mean(communicator, |i| values[i]) } else { 0.0 };
        let why = if largest < 1e3 * length && scatter < 0.15 * length {
            "these may be positions; subtract the lattice positions i · box/cells".into()
        } else if mean.abs() > 0.9 * rms {
            format!("their mean is {mean:.4} Mpc/h; subtract it")
        } else if (300.0..3000.0).contains(&(rms / expected)) {
            format!("{:.0} times those of linear theory: kpc/h in place of Mpc/h?", rms / expected)
        } else {
            "write displacements from the lattice in comoving Mpc/h, by the shorter way around the box".into()
        };
        return Err(format!("{found}: {why}"));
    }
    Ok(())
}

/// A remark on velocities that are not the growing mode's.
///
/// # Errors
/// The reason why they cannot be.
fn compared(
    name: &str,
    displacement: &Vectors,
    velocity: &Vectors,
    product: f64,
    rate: f64,
    a: f64,
) -> Result<Option<String>, String> {
    if velocity.variance == 0.0 {
        return Ok(None);
    }
    let ratio = (velocity.variance / displacement.variance).sqrt() / rate;
    let correlation = product / (velocity.variance * displacement.variance).sqrt();
    let is_parallel = correlation > PARALLEL;
    let growing = format!("those of the growing mode, f a²H/H0 times the displacements with f a²H/H0 = {rate:.4}");
    if ratio > if is_parallel { PARALLEL_FACTOR } else { FACTOR } {
        let causes = [
            (1.0 / a, "the factor a is missing: ṽ = a v_pec/(100 km/s)"),
            (100.0, "km/s in place of 100 km/s"),
            (100.0 / a, "v_pec in km/s: ṽ = a v_pec/(100 km/s)"),
            (a.powf(-1.5), "GADGET's v_pec/√a in 100 km/s: multiply by a√a"),
            (100.0 * a.powf(-1.5), "GADGET's v_pec/√a in km/s: multiply by a√a/100"),
            (a.powf(-0.5), "a factor 1/√a"),
        ];
        let near = causes.iter().find(|(factor, _)| (ratio / factor - 1.0).abs() < 0.1);
        let why = near.map_or("ṽ = a v_pec/(100 km/s)", |(_, why)| why);
        return Err(format!("{name} are {ratio:.3} times {growing}: {why}"));
    }
    if is_parallel && !(1.0 / REMARKABLE..=REMARKABLE).contains(&ratio) {
        return Ok(Some(format!("{name} are {ratio:.3} times {growing}; ṽ is a v_pec/(100 km/s)")));
    }
    if correlation < -PARALLEL {
        return Ok(Some(format!("{name} are opposite to displacements, {:.3} times {growing}", -ratio)));
    }
    Ok(None)
}

/// Vectors at the cells of a mesh.
struct Vectors {
    mean: [f64; 3],
    /// Mean square of the distance from the mean.
    variance: f64,
}

impl Vectors {
    fn of(communicator: &Communicator, mesh: &UniformMesh, at: impl Fn(usize, usize) -> f64 + Sync) -> Self {
        let mean = [0, 1, 2].map(|axis| mesh.mean(communicator, |i| at(i, axis)));
        let square = |i: usize| (0..3).map(|axis| (at(i, axis) - mean[axis]).powi(2)).sum::<f64>();
        Self { mean, variance: mesh.mean(communicator, square) }
    }

    /// The mean scalar product with others, both from their means.
    fn product(
        &self,
        communicator: &Communicator,
        mesh: &UniformMesh,
        other: &Self,
        both: impl Fn(usize, usize) -> (f64, f64) + Sync,
    ) -> f64 {
        let product = |i: usize| {
            let along = |axis: usize| {
                let (x, y) = both(i, axis);
                (x - self.mean[axis]) * (y - other.mean[axis])
            };
            (0..3).map(along).sum::<f64>()
        };
        mesh.mean(communicator, product)
    }
}

/// The rms displacement along an axis in linear theory, of waves that fit the box and its cells, in Mpc/h: D² ∫ P dk/(6π²).
fn linear_displacement(frame: &Frame<'_>, cells: [usize; 3]) -> Result<f64, IcError> {
    let power = LinearPower::new(&PowerSource::EisensteinHu, frame.cosmology)?;
    let longest = frame.box_mpc_h * cells.into_iter().max().unwrap_or(1) as f64 / cells[0] as f64;
    let (from, to) = (TAU / longest, PI * cells[0] as f64 / frame.box_mpc_h);
    const STEPS: usize = 512;
    let step = (to / from).ln() / STEPS as f64;
    let at = |n: usize| from * (step * (n as f64 + 0.5)).exp();
    let integral: f64 = (0..STEPS).map(|n| step * at(n) * power.at(at(n))).sum();
    let growth = frame.cosmology.growth_factor(frame.a);
    Ok(growth * (integral / (6.0 * PI * PI)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_sim::parallel::on_ranks;

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
    fn scattered(n: usize) -> f64 {
        (n as f64 * 12.9898 + 1.0).sin() * 43758.5453 % 1.0
    }

    /// Waves along all axes with this amplitude in Mpc/h.
    fn waves(i: [usize; 3], axis: usize, amplitude: f64) -> f64 {
        amplitude * (TAU * (i[axis] as f64 + 2.0 * i[(axis + 1) % 3] as f64) / CELLS as f64).sin()
    }

    /// A mesh of particles alone with displacements and velocities by cell and axis.
    fn mesh(
        displacement: impl Fn([usize; 3], usize) -> f64,
        velocity: impl Fn([usize; 3], usize) -> f64,
    ) -> UniformMesh {
        let cells = [CELLS; 3];
        let none = Default::default;
        let mut mesh = UniformMesh {
            cells,
            planes: 0..CELLS,
            density: none(),
            momentum: Default::default(),
            internal_energy: none(),
            dark_matter: None,
        };
        let all: Vec<[usize; 3]> = (0..mesh.cell_count()).map(|n| mesh.cell(n)).collect();
        let of = |value: &dyn Fn([usize; 3], usize) -> f64| {
            [0, 1, 2].map(|axis| all.iter().map(|i| value(*i, axis)).collect())
        };
        let lattice = Lattice { displacement: of(&displacement), velocity: of(&velocity) };
        mesh.dark_matter = Some(DarkMatter::Lattice(lattice));
        mesh
    }

    fn examined(mesh: &UniformMesh, a: f64) -> Result<Vec<String>, String> {
        examine(&Communicator::alone(), mesh, &Frame { cosmology: &cosmology(), a, box_mpc_h: BOX })
    }

    fn refused(mesh: &UniformMesh, a: f64, parts: &[&str]) {
        let message = examined(mesh, a).unwrap_err();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }

    #[test]
    fn displacements_fit_the_box() {
        let of = |displacement: &dyn Fn([usize; 3], usize) -> f64| mesh(displacement, |_, _| 0.0);
        let d = |i: [usize; 3], axis: usize| 0.05 * scattered(3 * (i[0] + 16 * i[1] + 256 * i[2]) + axis);
        assert_eq!(examined(&of(&d), 0.02), Ok(Vec::new()));
        let positions = of(&|i, axis| i[axis] as f64 + d(i, axis));
        refused(&positions, 0.02, &["displacement_x is up to 1.5", "the box 16 Mpc/h long", "positions"]);
        refused(&of(&|i, axis| 1000.0 * d(i, axis)), 0.02, &["kpc/h in place of Mpc/h?"]);
        refused(&of(&|i, axis| d(i, axis) + 3.0 * BOX), 0.02, &["their mean is"]);
        refused(&of(&|i, axis| d(i, axis) + 1e300), 0.02, &["up to 1.0000e300"]);
        refused(
            &of(&|i, axis| if axis == 2 { 9.0 * d(i, 2).signum() } else { 0.0 }),
            0.02,
            &["displacement_z is up to 9"],
        );
        // kpc/h that stay within half of the box, and a start at z = 0 with as large displacements
        let large = of(&|i, axis| waves(i, axis, 6.0));
        let remarks = examined(&large, 0.02).unwrap();
        assert!(
            remarks.len() == 1 && remarks[0].contains("cells") && remarks[0].contains("are they in Mpc/h?"),
            "{remarks:?}"
        );
        let late = Frame { cosmology: &Cosmology { sigma8: 2.0, ..cosmology() }, a: 1.0, box_mpc_h: BOX };
        assert_eq!(examine(&Communicator::alone(), &large, &late), Ok(Vec::new()));
    }

    #[test]
    fn velocities_are_those_of_the_growing_mode() {
        let a = 0.02;
        let growing =
            |factor: f64| mesh(|i, axis| waves(i, axis, 0.1), move |i, axis| factor * rate(a) * waves(i, axis, 0.1));
        for factor in [0.0, 0.9, 1.0, 1.1] {
            assert_eq!(examined(&growing(factor), a), Ok(Vec::new()), "{factor}");
        }
        refused(
            &growing(50.0),
            a,
            &["particles are 50.000 times those of the growing mode", "the factor a is missing"],
        );
        refused(&growing(100.0), a, &["100.000 times", "km/s in place of 100 km/s"]);
        refused(&growing(a.powf(-0.5)), a, &["7.071 times", "1/√a"]);
        refused(&growing(2.5), a, &["2.500 times", "ṽ = a v_pec/(100 km/s)"]);
        for (factor, said) in [(0.02, "0.020 times"), (1.5, "1.500 times"), (-1.0, "opposite to displacements")] {
            let remarks = examined(&growing(factor), a).unwrap();
            assert!(remarks.len() == 1 && remarks[0].contains(said), "{remarks:?}");
        }
        // halos have velocities of their own, and a stream is no mode
        let random = |factor: f64| {
            let velocity = move |i: [usize; 3], axis: usize| {
                5.0 + factor * rate(1.0) * scattered(3 * (i[0] + 16 * i[1] + 256 * i[2]) + axis)
            };
            mesh(|i, axis| waves(i, axis, 0.5), velocity)
        };
        assert_eq!(examined(&random(2.0), 1.0), Ok(Vec::new()));
        refused(&random(30.0), 1.0, &["velocities of particles are", "times those of the growing mode"]);
        // a lattice at rest has no mode
        assert_eq!(examined(&mesh(|_, _| 0.0, |i, axis| waves(i, axis, 1.0)), a), Ok(Vec::new()));
        // gas beside particles
        let with_gas = |factor: f64| {
            let particles = growing(1.0);
            let momentum = growing(0.15 * factor).lattice().unwrap().velocity.clone();
            let density = vec![0.15; particles.cell_count()];
            UniformMesh { internal_energy: density.clone(), density, momentum, ..particles }
        };
        assert_eq!(examined(&with_gas(1.0), a), Ok(Vec::new()));
        refused(&with_gas(50.0), a, &["velocities of gas are 50.000 times"]);
    }

    /// All ranks find what one finds.
    #[test]
    fn ranks_agree() {
        let whole = mesh(|i, axis| waves(i, axis, 0.1), |i, axis| 3.0 * waves(i, axis, 0.1));
        let alone = examined(&whole, 0.02).unwrap_err();
        let found = on_ranks(3, |communicator| {
            let planes = crate::slab::planes(whole.cells, communicator.rank(), 3);
            let part = |values: &Vec<f64>| values[planes.start * CELLS * CELLS..planes.end * CELLS * CELLS].to_vec();
            let all = whole.lattice().unwrap();
            let (displacement, velocity) = (all.displacement.each_ref().map(part), all.velocity.each_ref().map(part));
            let dark_matter = Some(DarkMatter::Lattice(Lattice { displacement, velocity }));
            let own = UniformMesh { planes: planes.clone(), dark_matter, ..whole.clone() };
            examine(&communicator, &own, &Frame { cosmology: &cosmology(), a: 0.02, box_mpc_h: BOX }).unwrap_err()
        });
        assert!(found.iter().all(|message| *message == alone), "{found:?} {alone}");
    }
}

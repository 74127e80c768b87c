//! Mistakes that show in the values of a file before linear theory is needed: byte order, order of fields, δ for 1 + δ, mean
//! density; displacements beside their box.

use super::causes::{explained, of_mean_density};
use super::{Subject, linear_displacement};
use crate::format::LoadFormat;
use crate::uniform_mesh::{Lattice, UniformMesh};
use comove_sim::parallel::Communicator;
use rayon::prelude::*;

/// Allowed deviation of the mean density from the expected one.
const MEAN_DENSITY_TOLERANCE: f64 = 0.01;

/// Fields of a `UM_IC` file.
const FIELDS: usize = 5;

/// The cause of a gas density that is not positive, not finite or far from its mean; `None` if no known mistake explains it.
/// Collective.
///
/// * `share`: expected mean
pub(crate) fn disorder(
    communicator: &Communicator,
    mesh: &UniformMesh,
    format: LoadFormat,
    share: f64,
) -> Option<String> {
    let value = |i: usize| mesh.density[i];
    let plausible = |v: f64| v > 0.01 * share && v < 100.0 * share;
    let fraction =
        |f: &(dyn Fn(f64) -> f64 + Sync)| mesh.mean(communicator, |i| f64::from(u8::from(plausible(f(value(i))))));
    let as_is = fraction(&|v| v);
    let single = fraction(&|v| f64::from(f32::from_bits((v as f32).to_bits().swap_bytes())));
    let double = fraction(&|v| f64::from_bits(v.to_bits().swap_bytes()));
    if as_is < 0.5 && single.max(double) > 0.95 {
        return Some("its bytes are in the other order, big-endian; write it in native byte order".into());
    }
    let finite = |v: f64| if v.is_finite() { v.clamp(-1e100, 1e100) } else { 0.0 };
    let mean = mesh.mean(communicator, |i| finite(value(i)));
    let rms = mesh.mean(communicator, |i| finite(value(i)).powi(2)).sqrt();
    if let LoadFormat::UmIc { .. } = format {
        let index = |i: usize| {
            let [x, y, z] = mesh.cell(i);
            (z * mesh.cells[1] + y) * mesh.cells[0] + x
        };
        let count = mesh.cells.iter().product::<usize>();
        let of_class = |class: &(dyn Fn(usize) -> usize + Sync), n: usize| {
            let of = |f: &(dyn Fn(usize) -> f64 + Sync)| {
                mesh.mean(communicator, |i| if class(index(i)) == n { f(i) } else { 0.0 })
            };
            of(&|i| finite(value(i))) / of(&|_| 1.0)
        };
        let others = [
            (&(|i: usize| i % FIELDS) as &(dyn Fn(usize) -> usize + Sync), "cell by cell, \"zyxv\""),
            (&(|i: usize| i * FIELDS / count), "field by field, \"vzyx\""),
        ];
        for (class, name) in others {
            let means: Vec<f64> = (0..4).map(|n| of_class(class, n)).collect();
            let is_density = (means[0] / share - 1.0).abs() < 0.3;
            if is_density && means[1..].iter().all(|m| m.abs() < 0.3 * share) {
                return Some(format!("the file looks written {name}; set that order"));
            }
        }
    }
    if rms > 0.0 && mean.abs() < 0.05 * rms && as_is < 0.9 {
        return Some(format!(
            "its mean is {mean:.3e} and its rms {rms:.3e}: it looks like δ; expected {share:.6} (1 + δ), in units of the mean \
             matter density"
        ));
    }
    None
}

/// Checks the mean density of the gas. Collective.
///
/// # Errors
/// The reason why it cannot be.
pub(crate) fn mean_density(
    communicator: &Communicator,
    mesh: &UniformMesh,
    subject: &Subject<'_>,
    expected: f64,
) -> Result<(), String> {
    let mean = mesh.mean(communicator, |i| mesh.density[i]);
    if (mean - expected).abs() <= MEAN_DENSITY_TOLERANCE {
        return Ok(());
    }
    let shown = if (1e-3..1e4).contains(&mean) { format!("{mean:.6}") } else { format!("{mean:.5e}") };
    let why = disorder(communicator, mesh, subject.format, expected)
        .or_else(|| explained(mean / expected, &of_mean_density(subject, expected), 5e-3))
        .unwrap_or_else(|| "divide density and momentum by the mean, or check the field order".into());
    Err(format!(
        "mean density {shown}, expected {expected}: densities must be in units of the mean matter density; {why}"
    ))
}

/// Refuses displacements of half of the box and more. Collective.
///
/// # Errors
/// The reason why they cannot be.
pub(crate) fn half_of_the_box(
    communicator: &Communicator,
    mesh: &UniformMesh,
    lattice: &Lattice,
    subject: &Subject<'_>,
) -> Result<(), String> {
    let spacing = subject.box_mpc_h / mesh.cells[0] as f64;
    for (axis, name) in ["x", "y", "z"].into_iter().enumerate() {
        let values = &lattice.displacement[axis];
        let length = spacing * mesh.cells[axis] as f64;
        let largest = communicator.max(values.par_iter().map(|d| d.abs()).reduce(|| 0.0, f64::max));
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
        let expected = linear_displacement(subject, mesh.cells);
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

//! A sphere grown around a peak until its mean density has fallen to a given one.

use super::peaks::Peak;
use super::{Centre, Halo, HaloOptions};
use crate::cell_fields::Gas;
use crate::cells::LeafCell;
use crate::sphere::{norm, visit_sphere};
use comove_sim::Snapshot;
use comove_sim::kernels::layout::DENSITY;
use std::f64::consts::PI;

/// What became of a peak.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A halo; its rank and relations are not known yet.
    Halo(Halo),
    /// Fewer than the least number of cells.
    TooSmall,
    /// The sphere would reach half the shortest side of the box.
    Unbounded,
}

/// Grows the sphere whose mean density is `density` (code units) around a peak.
pub fn grow(snapshot: &Snapshot, gas: &Gas, peak: &Peak, density: f64, options: &HaloOptions) -> Outcome {
    let centre = match options.centre {
        Centre::Peak => peak.position,
        Centre::DensityWeighted => weighted_centre(snapshot, peak),
    };
    let largest = snapshot.box_lengths().into_iter().fold(f64::INFINITY, f64::min) / 2.0;
    let mut guess = 4.0 * peak.width;
    let radius = loop {
        let reach = guess.min(largest);
        if let Some(radius) = crossing(snapshot, centre, reach, peak.width, density, options.samples) {
            break radius;
        }
        if guess >= largest {
            return Outcome::Unbounded;
        }
        guess *= 1.5;
    };
    let halo = describe(snapshot, gas, peak, centre, radius, density, options.samples);
    if halo.cells < options.min_cells { Outcome::TooSmall } else { Outcome::Halo(halo) }
}

/// Where the mean density inside r, beyond `innermost`, first falls below `density`, up to `reach`.
///
/// Mass and volume are both summed over the samples: their errors from cells cut by the sphere then mostly cancel in
/// the mean density.
fn crossing(
    snapshot: &Snapshot,
    centre: [f64; 3],
    reach: f64,
    innermost: f64,
    density: f64,
    samples: usize,
) -> Option<f64> {
    let mut inside: Vec<(f64, f64, f64)> = Vec::new();
    visit_samples(snapshot, centre, reach, samples, |cell, r, volume| {
        inside.push((r, cell.fluid[DENSITY] * volume, volume));
    });
    // a stable sort: samples at one radius stay in the order of the tree
    inside.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut mass, mut volume, mut previous) = (0.0, 0.0, (0.0, f64::INFINITY));
    for (r, m, v) in inside {
        mass += m;
        volume += v;
        let mean = mass / volume;
        if r >= innermost && mean < density {
            let (r0, mean0) = previous;
            let fraction = if mean0.is_finite() && mean0 > density { (mean0 - density) / (mean0 - mean) } else { 1.0 };
            return Some((r0 + fraction * (r - r0)).max(innermost));
        }
        previous = (r, mean);
    }
    None
}

/// Calls `visit(cell, radius, volume)` for every sub-cell whose centre lies within `reach`.
fn visit_samples(
    snapshot: &Snapshot,
    centre: [f64; 3],
    reach: f64,
    samples: usize,
    mut visit: impl FnMut(&LeafCell, f64, f64),
) {
    visit_sphere(snapshot, centre, reach, |cell, offset| {
        let n = (cell.width * samples as f64 / reach).ceil().max(1.0) as usize;
        let width = cell.width / n as f64;
        for s in 0..n * n * n {
            let sub = [s % n, s / n % n, s / (n * n)];
            let r = norm(std::array::from_fn(|a| offset[a] + (sub[a] as f64 + 0.5) * width - 0.5 * cell.width));
            if r <= reach {
                visit(cell, r, width * width * width);
            }
        }
    });
}

/// The means of the sphere's content.
fn describe(
    snapshot: &Snapshot,
    gas: &Gas,
    peak: &Peak,
    centre: [f64; 3],
    radius: f64,
    density: f64,
    samples: usize,
) -> Halo {
    let (mut mass, mut velocity, mut temperature) = (0.0, [0.0; 3], 0.0);
    visit_samples(snapshot, centre, radius, samples, |cell, _, volume| {
        let m = cell.fluid[DENSITY] * volume;
        mass += m;
        for axis in 0..3 {
            velocity[axis] += m * gas.velocity_km_s(cell, axis);
        }
        temperature += m * gas.temperature_k(cell);
    });
    let mut cells = 0;
    visit_sphere(snapshot, centre, radius, |_, offset| cells += usize::from(norm(offset) <= radius));
    let lengths = snapshot.box_lengths();
    Halo {
        id: 0,
        position_mpc_h: std::array::from_fn(|a| centre[a].rem_euclid(lengths[a])),
        radius_mpc_h: radius,
        mass_msun_h: density * 4.0 / 3.0 * PI * radius.powi(3) * snapshot.header.units().mass_msun_h(),
        peak_density: peak.density,
        velocity_km_s: velocity.map(|v| v / mass),
        temperature_k: temperature / mass,
        cells,
        sub_peaks: 0,
        overlaps: 0,
        parent: None,
    }
}

fn weighted_centre(snapshot: &Snapshot, peak: &Peak) -> [f64; 3] {
    let (mut weight, mut moment) = (0.0, [0.0; 3]);
    visit_sphere(snapshot, peak.position, 2.0 * peak.width, |cell, offset| {
        let w = cell.fluid[DENSITY] * cell.mass();
        weight += w;
        for axis in 0..3 {
            moment[axis] += w * offset[axis];
        }
    });
    std::array::from_fn(|a| peak.position[a] + moment[a] / weight)
}

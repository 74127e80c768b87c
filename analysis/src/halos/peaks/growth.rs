//! Spheres grown around peaks until their mean density has fallen to a given one.

use super::maxima::Peak;
use super::{Centre, Halo, HaloOptions};
use crate::cell_fields::Gas;
use crate::cells::LeafCell;
use crate::halos::overdensity::Overdensities;
use crate::part::Part;
use crate::sphere::{Sphere, norm};
use crate::spheres::{Look, look_at, visit_samples};
use comove_sim::kernels::layout::{DENSITY, FIELDS};
use comove_sim::parallel::Communicator;
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

/// Grows the spheres whose mean density is `density` (code units) around peaks, on all ranks: collective.
pub fn grow(
    communicator: &Communicator,
    part: &Part,
    gas: &Gas,
    peaks: &[Peak],
    density: f64,
    options: &HaloOptions,
) -> Vec<Outcome> {
    let centres = match options.centre {
        Centre::Peak => peaks.iter().map(|peak| peak.position).collect(),
        Centre::DensityWeighted => weighted_centres(communicator, part, peaks),
    };
    let samples = options.samples;
    let radii = radii(communicator, part, peaks, &centres, density, samples);
    let bounded: Vec<usize> = (0..peaks.len()).filter(|&n| radii[n].is_some()).collect();
    let sphere = |n: &usize| Sphere { centre: centres[*n], radius: radii[*n].expect("it is bounded") };
    let spheres: Vec<Sphere> = bounded.iter().map(sphere).collect();
    let contents = look_at(communicator, part, &spheres, &Content { gas, spheres: &spheres, samples });
    let mut outcomes = vec![Outcome::Unbounded; peaks.len()];
    for ((&n, sphere), content) in bounded.iter().zip(&spheres).zip(contents) {
        let halo = describe(part, &peaks[n], sphere, density, &content);
        outcomes[n] = if halo.cells < options.min_cells { Outcome::TooSmall } else { Outcome::Halo(halo) };
    }
    outcomes
}

/// The radius of each sphere; `None` where it would reach half the box.
fn radii(
    communicator: &Communicator,
    part: &Part,
    peaks: &[Peak],
    centres: &[[f64; 3]],
    density: f64,
    samples: usize,
) -> Vec<Option<f64>> {
    let largest = part.snapshot.box_lengths().into_iter().fold(f64::INFINITY, f64::min) / 2.0;
    let mut guesses: Vec<f64> = peaks.iter().map(|peak| 4.0 * peak.width).collect();
    let mut radii = vec![None; peaks.len()];
    let mut growing: Vec<usize> = (0..peaks.len()).collect();
    while !growing.is_empty() {
        let sphere = |n: &usize| Sphere { centre: centres[*n], radius: guesses[*n].min(largest) };
        let spheres: Vec<Sphere> = growing.iter().map(sphere).collect();
        let innermost: Vec<f64> = growing.iter().map(|&n| peaks[n].width).collect();
        let look = Crossing { spheres: &spheres, innermost: &innermost, density, samples };
        for (&n, radius) in growing.iter().zip(look_at(communicator, part, &spheres, &look)) {
            radii[n] = radius.first().copied();
        }
        growing.retain(|&n| radii[n].is_none() && guesses[n] < largest);
        growing.iter().for_each(|&n| guesses[n] *= 1.5);
    }
    radii
}

/// Where the mean density inside r, beyond `innermost`, first falls below `density`, up to the radius of the sphere.
///
/// Mass and volume are both summed over the samples: their errors from cells cut by the sphere then mostly cancel in
/// the mean density.
struct Crossing<'a> {
    spheres: &'a [Sphere],
    innermost: &'a [f64],
    density: f64,
    samples: usize,
}

impl Look for Crossing<'_> {
    /// Radius, mass and volume of samples.
    type Sums = Vec<(f64, f64, f64)>;
    const FIELDS: usize = DENSITY + 1;

    fn start(&self, _: usize) -> Self::Sums {
        Vec::new()
    }

    fn add(&self, n: usize, inside: &mut Self::Sums, cell: &LeafCell, offset: [f64; 3]) {
        visit_samples(cell, offset, self.spheres[n].radius, self.samples, |r, volume| {
            inside.push((r, cell.fluid[DENSITY] * volume, volume));
        });
    }

    fn finish(&self, n: usize, mut inside: Self::Sums) -> Vec<f64> {
        let innermost = self.innermost[n];
        // a stable sort: samples at one radius stay in the order of the tree
        inside.sort_by(|x, y| x.0.total_cmp(&y.0));
        let (mut mass, mut volume, mut previous) = (0.0, 0.0, (0.0, f64::INFINITY));
        for (r, m, v) in inside {
            mass += m;
            volume += v;
            let mean = mass / volume;
            if r >= innermost && mean < self.density {
                let (r0, mean0) = previous;
                let falls = mean0.is_finite() && mean0 > self.density;
                let fraction = if falls { (mean0 - self.density) / (mean0 - mean) } else { 1.0 };
                return vec![(r0 + fraction * (r - r0)).max(innermost)];
            }
            previous = (r, mean);
        }
        Vec::new()
    }
}

/// The sums over a sphere's content: mass, mass × velocity and mass × temperature of the samples, leaf cells, mass of gas.
struct Content<'a> {
    gas: &'a Gas,
    spheres: &'a [Sphere],
    samples: usize,
}

impl Look for Content<'_> {
    type Sums = [f64; 7];
    const FIELDS: usize = FIELDS;
    const DARK_MATTER: bool = true;

    fn start(&self, _: usize) -> Self::Sums {
        [0.0; 7]
    }

    fn add(&self, n: usize, sums: &mut Self::Sums, cell: &LeafCell, offset: [f64; 3]) {
        let radius = self.spheres[n].radius;
        let [mass, vx, vy, vz, temperature, cells, gas] = sums;
        visit_samples(cell, offset, radius, self.samples, |_, volume| {
            let m = cell.fluid[DENSITY] * volume;
            *mass += m;
            *gas += (cell.fluid[DENSITY] - cell.dark_matter) * volume;
            for (axis, velocity) in [&mut *vx, &mut *vy, &mut *vz].into_iter().enumerate() {
                *velocity += m * self.gas.velocity_km_s(cell, axis);
            }
            *temperature += m * self.gas.temperature_k(cell);
        });
        *cells += f64::from(u8::from(norm(offset) <= radius));
    }

    fn finish(&self, _: usize, sums: Self::Sums) -> Vec<f64> {
        sums.to_vec()
    }
}

/// The means of the sphere's content.
fn describe(part: &Part, peak: &Peak, sphere: &Sphere, density: f64, content: &[f64]) -> Halo {
    let lengths = part.snapshot.box_lengths();
    let mass = content[0];
    let units = part.header().units();
    Halo {
        id: 0,
        position_mpc_h: std::array::from_fn(|a| sphere.centre[a].rem_euclid(lengths[a])),
        radius_mpc_h: sphere.radius,
        mass_msun_h: density * 4.0 / 3.0 * PI * sphere.radius.powi(3) * units.mass_msun_h(),
        gas_fraction: content[6] / mass,
        peak_density: peak.density,
        velocity_km_s: std::array::from_fn(|a| content[1 + a] / mass),
        temperature_k: content[4] / mass,
        cells: content[5] as usize,
        sub_peaks: 0,
        overlaps: 0,
        parent: None,
        spheres: Overdensities::default(),
    }
}

/// The ρ²-weighted mean position of the cells within two peak cell widths of each peak, on all ranks: collective.
fn weighted_centres(communicator: &Communicator, part: &Part, peaks: &[Peak]) -> Vec<[f64; 3]> {
    let sphere = |peak: &Peak| Sphere { centre: peak.position, radius: 2.0 * peak.width };
    let spheres: Vec<Sphere> = peaks.iter().map(sphere).collect();
    let sums = look_at(communicator, part, &spheres, &Moments);
    let centre = |(peak, sums): (&Peak, Vec<f64>)| std::array::from_fn(|a| peak.position[a] + sums[1 + a] / sums[0]);
    peaks.iter().zip(sums).map(centre).collect()
}

/// Weight, and its moments along the axes.
struct Moments;

impl Look for Moments {
    type Sums = [f64; 4];
    const FIELDS: usize = DENSITY + 1;

    fn start(&self, _: usize) -> Self::Sums {
        [0.0; 4]
    }

    fn add(&self, _: usize, sums: &mut Self::Sums, cell: &LeafCell, offset: [f64; 3]) {
        let w = cell.fluid[DENSITY] * (cell.fluid[DENSITY] * cell.volume());
        sums[0] += w;
        for axis in 0..3 {
            sums[1 + axis] += w * offset[axis];
        }
    }

    fn finish(&self, _: usize, sums: Self::Sums) -> Vec<f64> {
        sums.to_vec()
    }
}

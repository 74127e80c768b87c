//! Particles in a projection: each is a cloud, so that the picture shows the density which particles sample and not them.
//!
//! A cloud has the triangular shape of three cells along each axis (Hockney & Eastwood 1988). Its cells have the width of the
//! leaf cell in which the particle is, which is the resolution of forces there, or ⅔ of the distance to the 32nd nearest
//! particle where that is more, so that the cloud reaches to that particle along each axis. The mass of a cloud in a pixel is
//! integrated exactly, so that no mass is lost; at a face that is not periodic its outer part counts inside. Masses are added
//! as integers, in any order.

use super::neighbours::Neighbours;
use super::{BAND, Window};
use crate::cells::leaf_width_at;
use crate::error::AnalysisError;
use crate::messages::exchange;
use crate::part::Part;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use std::ops::Range;

/// The cloud of a particle reaches to this one of its neighbours, itself counted.
const NEIGHBOURS: usize = 32;
/// Half the extent of a cloud in its cells.
const REACH: f64 = 1.5;
/// Clouds in memory.
const AT_ONCE: usize = 1 << 20;
/// Unit of the integers: the mass of a particle of class 0 is 2⁶².
const WHOLE: f64 = (1u64 << 62) as f64;

/// A particle in code length.
#[derive(Clone, Copy)]
struct Cloud {
    /// Along the frame's axes.
    center: [f64; 3],
    /// Of one of its cells.
    width: f64,
    /// Share of its mass within the depth of the window.
    inside: f64,
    /// In units of class 0.
    mass: i128,
}

/// The mass of all particles in this rank's rows of pixels, from below: collective. Each rank deposits its own particles in
/// all pixels.
///
/// * `rows_of`: rows of pixels of a rank
pub(super) fn masses_by(
    communicator: &Communicator,
    part: &Part,
    window: &Window,
    rows_of: impl Fn(usize) -> Range<usize>,
) -> Result<Vec<f64>, AnalysisError> {
    let particles = part.particles()?;
    let (lengths, periodic) = (part.snapshot.box_lengths(), part.tree.periodic());
    let tree = Neighbours::new(particles, lengths, periodic);
    let line = |axis: usize, count: usize| {
        let (low, high, along) = (window.low[axis], window.high[axis], window.frame[axis]);
        Line { low, step: (high - low) / count as f64, length: lengths[along], periodic: periodic[along] }
    };
    let [columns, rows] = window.pixels;
    let [across, up, depth] = [line(0, columns), line(1, rows), line(2, 1)];
    let cloud = |(n, distance): (usize, f64)| {
        let position = tree.position(n);
        let width = leaf_width_at(part, position).max(distance / REACH);
        let center = window.frame.map(|axis| position[axis]);
        let mut inside = 0.0;
        depth.shares(center[2], width, 0..1, |_, shares| inside += shares[0]);
        (inside > 0.0).then_some(Cloud { center, width, inside, mass: tree.mass(n).into() })
    };
    let mut masses = vec![0i128; columns * rows];
    let most = communicator.max(tree.len() as f64) as usize;
    for start in (0..most).step_by(AT_ONCE) {
        let some = tree.len().min(start)..tree.len().min(start + AT_ONCE);
        let distances = tree.distances_by::<NEIGHBOURS>(communicator, part, some.clone());
        let clouds: Vec<Option<Cloud>> = some.into_par_iter().zip(distances).map(cloud).collect();
        masses.par_chunks_mut(BAND * columns).enumerate().for_each(|(n, band)| {
            let own = n * BAND..n * BAND + band.len() / columns;
            for Cloud { center, width, inside, mass } in clouds.iter().flatten() {
                up.shares(center[1], *width, own.clone(), |first_row, heights| {
                    across.shares(center[0], *width, 0..columns, |first, widths| {
                        for (row, height) in heights.iter().enumerate() {
                            let place = (first_row - own.start + row) * columns + first;
                            let pixels = &mut band[place..place + widths.len()];
                            let of_row = WHOLE * (inside * height);
                            pixels
                                .iter_mut()
                                .zip(widths)
                                .for_each(|(sum, share)| *sum += mass * i128::from((of_row * share) as i64));
                        }
                    });
                });
            }
        });
    }
    let to = |rank: usize| {
        let rows = rows_of(rank);
        masses[rows.start * columns..rows.end * columns].to_vec()
    };
    let to = (0..communicator.size()).map(to).collect();
    drop(masses);
    let came = exchange(communicator, to);
    let unit = particles.particle_mass / WHOLE;
    let mass = |pixel: usize| unit * came.iter().map(|came| came[pixel]).sum::<i128>() as f64;
    Ok((0..came[0].len()).into_par_iter().map(mass).collect())
}

/// Pixels along an axis of the window.
struct Line {
    /// Lower end of the first.
    low: f64,
    step: f64,
    /// Of the box.
    length: f64,
    periodic: bool,
}

impl Line {
    /// Calls back with the first of some pixels and the shares of a cloud's mass in them and in those behind it, once for each
    /// image of the box in which it meets them.
    fn shares(&self, center: f64, width: f64, pixels: Range<usize>, mut found: impl FnMut(usize, &[f64])) {
        let reach = REACH * width;
        let [low, high] = [pixels.start, pixels.end].map(|n| self.low + n as f64 * self.step);
        let (first, last) = match self.periodic {
            true => (
                ((low - center - reach) / self.length).ceil() as i64,
                ((high - center + reach) / self.length).floor() as i64,
            ),
            false => (0, 0),
        };
        // the part of the cloud below a place; what would be outside the box is spread over the rest
        let below = |center: f64, edge: f64| triangular_below((edge - center) / width);
        let [outside, inside] = match self.periodic {
            true => [0.0, 1.0],
            false => {
                let outside = below(center, 0.0);
                [outside, below(center, self.length) - outside]
            }
        };
        for image in first..=last {
            let center = center + image as f64 * self.length;
            let place = |x: f64| ((x - self.low) / self.step).clamp(pixels.start as f64, pixels.end as f64);
            let met = place(center - reach).floor() as usize..place(center + reach).ceil() as usize;
            if met.is_empty() {
                continue;
            }
            let share_below =
                |n: usize| ((below(center, self.low + n as f64 * self.step) - outside) / inside).clamp(0.0, 1.0);
            let mut shares = Vec::with_capacity(met.len());
            let mut last = share_below(met.start);
            for n in met.clone() {
                let next = share_below(n + 1);
                shares.push(next - last);
                last = next;
            }
            found(met.start, &shares);
        }
    }
}

/// The integral of the triangular-shaped cloud up to a place, in its cells from its centre.
fn triangular_below(place: f64) -> f64 {
    match place.abs() {
        far if far >= REACH => f64::from(u8::from(place > 0.0)),
        near if near <= 0.5 => 0.5 + place * (0.75 - place * place / 3.0),
        between => {
            let beyond = (REACH - between).powi(3) / 6.0;
            if place > 0.0 { 1.0 - beyond } else { beyond }
        }
    }
}

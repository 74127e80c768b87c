//! Centres of groups: their density maxima.
//!
//! Cubes of one size that halves from step to step find the densest regions; in each a sphere shrinks about the centre of mass
//! of its particles (Power et al. 2003, MNRAS 338, 14), and the densest sphere is the centre. From the centre of mass of all
//! particles on, it might come to rest between two clumps. The scale is 1% of the particles, so that a small satellite is not
//! the centre of its host.

use super::groups::Member;
use crate::particle_grid::{in_code_length, separation};
use crate::sphere::norm;
use std::collections::{BTreeMap, HashMap};

/// Factor between the radii of successive spheres.
const SHRINK: f64 = 0.95;
/// Share of the group in the last sphere,
const SHARE: f64 = 0.01;
/// and its least number of particles.
const LEAST: usize = 16;
/// Side of the smallest cubes in the extent of the group.
const SMALLEST: f64 = 1e-9;

/// The density maximum of a group in code length: the centre of mass of 1% of its particles, or 16, where they are densest.
pub(super) fn density_maximum(group: &[Member], lengths: [f64; 3]) -> [f64; 3] {
    let anchor = group[0].position;
    let offsets = group.iter().map(|particle| separation(anchor, particle.position, lengths)).collect();
    let enough = LEAST.max((SHARE * group.len() as f64) as usize);
    let (around, starts, side) = densest_cubes(offsets, enough);
    let spheres = starts.into_iter().map(|start| shrinking_sphere(&around, start, side, enough));
    let (centre, _) = spheres.min_by(|x, y| x.1.total_cmp(&y.1)).expect("at least one cube");
    let anchor = in_code_length(anchor, lengths);
    std::array::from_fn(|a| (anchor[a] + centre[a]).rem_euclid(lengths[a]))
}

/// Of the smallest cubes with enough particles those at least half as full as the fullest: particles around them, their
/// centres of mass, and their side.
fn densest_cubes(offsets: Vec<[f64; 3]>, enough: usize) -> (Vec<[f64; 3]>, Vec<[f64; 3]>, f64) {
    let along = |axis: usize| offsets.iter().map(move |x| x[axis]);
    let low: [f64; 3] = std::array::from_fn(|a| along(a).fold(f64::INFINITY, f64::min));
    let extent = (0..3).map(|a| along(a).fold(f64::NEG_INFINITY, f64::max) - low[a]).fold(0.0, f64::max);
    let mut found = None;
    let (mut left, mut side) = (offsets, extent);
    while side > SMALLEST * extent {
        let cubes = Cubes::new(&left, low, 0.25 * side);
        if cubes.most() < enough {
            break;
        }
        side *= 0.5;
        // a cube of half the side lies within one of those that hold enough
        let further = left.iter().copied().filter(|&x| cubes.most_around(x) >= enough).collect();
        found = Some((std::mem::replace(&mut left, further), cubes));
    }
    match found {
        Some((around, cubes)) => {
            let starts = cubes.centres_of_fullest(&around, enough);
            (around, starts, side)
        }
        None => {
            let (centre, _) = mean(left.iter());
            (left, vec![centre], extent)
        }
    }
}

/// Cubes of two cells along each side, at every cell.
struct Cubes {
    low: [f64; 3],
    cell: f64,
    counts: HashMap<[i64; 3], usize>,
}

impl Cubes {
    fn new(offsets: &[[f64; 3]], low: [f64; 3], cell: f64) -> Self {
        let mut cubes = Self { low, cell, counts: HashMap::new() };
        let mut cells: HashMap<[i64; 3], usize> = HashMap::new();
        offsets.iter().for_each(|&x| *cells.entry(cubes.cell_of(x)).or_default() += 1);
        for (cell, count) in cells {
            first_cells(cell).for_each(|first| *cubes.counts.entry(first).or_default() += count);
        }
        cubes
    }

    fn cell_of(&self, x: [f64; 3]) -> [i64; 3] {
        std::array::from_fn(|a| ((x[a] - self.low[a]) / self.cell).floor() as i64)
    }

    /// Particles of the fullest cube.
    fn most(&self) -> usize {
        self.counts.values().copied().max().unwrap_or(0)
    }

    /// Particles of the fullest cube that holds this one.
    fn most_around(&self, x: [f64; 3]) -> usize {
        first_cells(self.cell_of(x)).map(|first| self.counts[&first]).max().unwrap_or(0)
    }

    /// The centres of mass of the cubes with enough particles and at least half as many as the fullest has.
    fn centres_of_fullest(&self, offsets: &[[f64; 3]], enough: usize) -> Vec<[f64; 3]> {
        let least = enough.max(self.most() / 2);
        let full = self.counts.iter().filter(|(_, count)| **count >= least);
        let mut inside: BTreeMap<[i64; 3], Vec<[f64; 3]>> = full.map(|(&first, _)| (first, Vec::new())).collect();
        for &x in offsets {
            for first in first_cells(self.cell_of(x)) {
                if let Some(inside) = inside.get_mut(&first) {
                    inside.push(x);
                }
            }
        }
        inside.values().map(|inside| mean(inside.iter()).0).collect()
    }
}

/// The first cells of the cubes that hold a cell.
fn first_cells([x, y, z]: [i64; 3]) -> impl Iterator<Item = [i64; 3]> {
    (0..8).map(move |n| [x - (n & 1), y - (n >> 1 & 1), z - (n >> 2)])
}

/// Centre of mass and number.
fn mean<'a>(offsets: impl Iterator<Item = &'a [f64; 3]>) -> ([f64; 3], usize) {
    let (mut sum, mut count) = ([0.0; 3], 0);
    for x in offsets {
        (0..3).for_each(|a| sum[a] += x[a]);
        count += 1;
    }
    (sum.map(|s| s / count as f64), count)
}

/// The centre of mass of the last sphere with enough particles, from one about a cube on, and the radius in which there are
/// enough.
fn shrinking_sphere(around: &[[f64; 3]], start: [f64; 3], side: f64, enough: usize) -> ([f64; 3], f64) {
    let from = |x: [f64; 3], centre: [f64; 3]| norm([x[0] - centre[0], x[1] - centre[1], x[2] - centre[2]]);
    let mut radius = side * 3f64.sqrt() / 2.0;
    let (mut centre, mut count) = (start, around.len());
    let mut near: Vec<[f64; 3]> = around.iter().copied().filter(|&x| from(x, centre) <= 2.0 * radius).collect();
    while count > enough && radius > 0.0 {
        radius *= SHRINK;
        let (next, inside) = mean(near.iter().filter(|&&x| from(x, centre) <= radius));
        if inside < enough {
            break;
        }
        (centre, count) = (next, inside);
        // a particle two radii away plays no further part
        near.retain(|&x| from(x, centre) <= 2.0 * radius);
    }
    let mut distances: Vec<f64> = near.iter().map(|&x| from(x, centre)).collect();
    if distances.len() < enough {
        return (centre, f64::INFINITY);
    }
    let (_, radius, _) = distances.select_nth_unstable_by(enough - 1, f64::total_cmp);
    (centre, *radius)
}

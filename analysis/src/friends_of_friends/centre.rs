//! Centres of groups: their density maxima.
//!
//! Cubes of one size that halves from step to step find the densest region; from there a sphere shrinks about the centre of
//! mass of its particles (Power et al. 2003, MNRAS 338, 14). About the centre of mass of all particles it would come to rest
//! between two clumps. The scale is 1% of the particles, so that a small satellite is not the centre of its host.

use crate::particle_grid::ParticleGrid;
use crate::sphere::norm;
use std::cmp::Reverse;
use std::collections::HashMap;

/// Factor between the radii of successive spheres.
const SHRINK: f64 = 0.95;
/// Share of the group in the last sphere,
const SHARE: f64 = 0.01;
/// and its least number of particles.
const LEAST: usize = 16;
/// Side of the smallest cubes in the extent of the group.
const SMALLEST: f64 = 1e-9;

/// The density maximum of a group in code length: the centre of mass of 1% of its particles, or 16, in the densest region.
pub(super) fn density_maximum(grid: &ParticleGrid, group: &[u32]) -> [f64; 3] {
    let anchor = group[0] as usize;
    let offsets = group.iter().map(|&particle| grid.separation(anchor, particle as usize)).collect();
    let enough = LEAST.max((SHARE * group.len() as f64) as usize);
    let (around, cube, side) = densest_cube(offsets, enough);
    let centre = shrinking_sphere(around, &cube, side, enough);
    let lengths = grid.box_lengths();
    let anchor = grid.position(anchor);
    std::array::from_fn(|a| (anchor[a] + centre[a]).rem_euclid(lengths[a]))
}

/// The fullest of the smallest cubes with enough particles, the particles around it, and its side.
fn densest_cube(offsets: Vec<[f64; 3]>, enough: usize) -> (Vec<[f64; 3]>, Vec<[f64; 3]>, f64) {
    let along = |axis: usize| offsets.iter().map(move |x| x[axis]);
    let low: [f64; 3] = std::array::from_fn(|a| along(a).fold(f64::INFINITY, f64::min));
    let extent = (0..3).map(|a| along(a).fold(f64::NEG_INFINITY, f64::max) - low[a]).fold(0.0, f64::max);
    let mut found = (offsets.clone(), offsets.clone(), extent);
    let (mut left, mut side) = (offsets, extent);
    while side > SMALLEST * extent {
        side *= 0.5;
        let cubes = Cubes::new(&left, low, 0.5 * side);
        let Some(first) = cubes.fullest(enough) else { break };
        let cube = left.iter().copied().filter(|&x| first_cells(cubes.cell_of(x)).any(|other| other == first));
        let cube = cube.collect();
        // a cube of half the side lies within one of those that hold enough
        let further = left.iter().copied().filter(|&x| cubes.most_around(x) >= enough).collect();
        found = (std::mem::replace(&mut left, further), cube, side);
    }
    found
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

    /// The first cell of the fullest cube, of equal ones the first, if it holds enough particles.
    fn fullest(&self, enough: usize) -> Option<[i64; 3]> {
        let full = self.counts.iter().filter(|(_, count)| **count >= enough);
        full.max_by_key(|&(&first, &count)| (count, Reverse(first))).map(|(&first, _)| first)
    }

    /// Particles of the fullest cube that holds this one.
    fn most_around(&self, x: [f64; 3]) -> usize {
        first_cells(self.cell_of(x)).map(|first| self.counts[&first]).max().unwrap_or(0)
    }
}

/// The first cells of the cubes that hold a cell.
fn first_cells([x, y, z]: [i64; 3]) -> impl Iterator<Item = [i64; 3]> {
    (0..8).map(move |n| [x - (n & 1), y - (n >> 1 & 1), z - (n >> 2)])
}

/// The centre of mass of the last sphere with enough particles, from one about a cube on.
fn shrinking_sphere(mut around: Vec<[f64; 3]>, cube: &[[f64; 3]], side: f64, enough: usize) -> [f64; 3] {
    let from = |x: [f64; 3], centre: [f64; 3]| norm([x[0] - centre[0], x[1] - centre[1], x[2] - centre[2]]);
    let mean = |inside: &mut dyn Iterator<Item = &[f64; 3]>| {
        let (mut sum, mut count) = ([0.0; 3], 0);
        for x in inside {
            (0..3).for_each(|a| sum[a] += x[a]);
            count += 1;
        }
        (sum.map(|s| s / count as f64), count)
    };
    let (mut centre, mut count) = mean(&mut cube.iter());
    let mut radius = side * 3f64.sqrt() / 2.0;
    while count > enough && radius > 0.0 {
        radius *= SHRINK;
        let (next, inside) = mean(&mut around.iter().filter(|&&x| from(x, centre) <= radius));
        if inside < enough {
            break;
        }
        (centre, count) = (next, inside);
        // a particle two radii away plays no further part
        around.retain(|&x| from(x, centre) <= 2.0 * radius);
    }
    centre
}

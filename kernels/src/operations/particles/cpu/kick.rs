//! Accelerates particles.

use super::super::{Particles, cell_weights};
use super::chunk_length;
use super::clouds::{At, BATCH, Clouds, TILE, TILE_CELLS, TILE_CORNER, Tile, cell_at, group_at};
use super::neighbours::{LastNeighbours, Neighbours};
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::layout::{GROUP, GROUP_CELLS, PATCH, cell};
use crate::level::group_locator::GroupLocator;
use crate::level::level_topology::NONE;
use crate::operations::potential_ghosts::TimedPotential;
use crate::point::particle::{Cloud, WEIGHT_BITS};
use crate::real::Real;
use rayon::prelude::*;
use std::ops::Range;

/// A tile with two cells around it, along one axis.
const WIDE: usize = TILE + 4;
/// Cells of another group that this reaches into.
const BESIDE: usize = (WIDE - GROUP) / 2;
/// Patches that the particles of a tile may be in, along one axis: those of the group and one on each side.
const PATCHES: usize = GROUP / PATCH + 2;

pub(in super::super) fn kick<T: Real>(
    locator: &GroupLocator,
    level: usize,
    particles: &mut Particles,
    range: Range<usize>,
    potential: &[T],
    coarse: Option<&TimedPotential<T>>,
    factor: f64,
) {
    let isa = Isa::best();
    let length = chunk_length(range.len());
    let potential = Potential { pool: potential, coarse };
    let (positions, velocities) = particles.columns.split_at_mut(3);
    let at = At::here([0, 1, 2].map(|axis| &positions[axis].host()[range.clone()]));
    let [vx, vy, vz, ..] = velocities else { unreachable!("eight columns") };
    let [vx, vy, vz] = [vx, vy, vz].map(|column| column.host_mut()[range.clone()].par_chunks_mut(length));
    (vx, vy, vz).into_par_iter().enumerate().for_each_init(
        Differences::default,
        |differences, (chunk, (vx, vy, vz))| {
            let range = chunk * length..chunk * length + vx.len();
            let others = (0..=level).map(|level| LastNeighbours::new(locator, level)).collect();
            let velocities = [vx, vy, vz];
            isa.run(Kick { locator, level, at, range, velocities, potential, factor, differences, others });
        },
    );
}

/// The potential of the level in hand.
#[derive(Clone, Copy)]
struct Potential<'a, T> {
    pool: &'a [T],
    /// Of the next coarser level, where the pool holds another time's.
    coarse: Option<&'a TimedPotential<'a, T>>,
}

impl<T: Real> Potential<'_, T> {
    /// * `is_coarser`: whether the slot is one of the next coarser level
    #[inline(always)]
    fn at(&self, slot: u32, offset: usize, is_coarser: bool) -> T {
        match self.coarse.filter(|_| is_coarser) {
            Some(TimedPotential { from, to, places, weight }) if places[slot as usize] != NONE => {
                let at = places[slot as usize] as usize * GROUP_CELLS + offset;
                let (from, to) = (from.host()[at], to.host()[at]);
                from + *weight * (to - from)
            }
            _ => self.pool[slot as usize * GROUP_CELLS + offset],
        }
    }
}

/// The kick of some particles.
struct Kick<'a, T> {
    locator: &'a GroupLocator,
    level: usize,
    at: At<'a>,
    range: Range<usize>,
    /// The bits of these particles' velocities.
    velocities: [&'a mut [u32]; 3],
    potential: Potential<'a, T>,
    factor: f64,
    differences: &'a mut Differences<T>,
    /// Of every level.
    others: Vec<LastNeighbours<'a>>,
}

compiled_here!(Kick<'static, f32>, Kick<'static, f64>);

impl<T: Real> Kernel for Kick<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let cells = self.locator.cells(self.level);
        let factor = T::from_f64(self.factor);
        let (mut clouds, mut tile, mut next_look) = (Clouds::NONE, Tile::default(), 0);
        let mut weights = [[T::zero(); BATCH]; 8];
        // the last number is 0 where the level has all cells around the tile
        let mut changes = [[T::zero(); 4]; BATCH];
        for first in self.range.clone().step_by(BATCH) {
            let batch = first..self.range.end.min(first + BATCH);
            clouds.find(&self.at, batch.clone(), cells, WEIGHT_BITS);
            find_weights(&clouds, &mut weights);
            for n in batch.clone() {
                let lower = clouds.lower(n - first);
                let mut place = tile.find(lower).or_else(|| tile.find_across(lower));
                if place.is_none() && n >= next_look {
                    match self.at.common_group(n..self.range.end, cells) {
                        Some(group) => {
                            let neighbours = Neighbours::new(self.locator, self.level, group);
                            self.differences.find(neighbours, self.potential.pool, cell_weights(self.level));
                            tile = Tile::new(cells, group);
                            place = tile.find(lower);
                        }
                        None => next_look = n + 16,
                    }
                }
                changes[n - first] = match place {
                    Some(place) => {
                        let is_upper = |axis: usize| cell_at(self.at.position(n)[axis], cells[axis]) != lower[axis];
                        let differences = self.differences.of(place, is_upper);
                        change_in_tile(&differences[place..=place + TILE_CORNER], &weights, n - first, factor)
                    }
                    None => [T::zero(), T::zero(), T::zero(), T::one()],
                };
            }
            for n in batch.clone() {
                let [.., missing] = changes[n - first];
                if missing != T::zero() {
                    changes[n - first] = self.change(self.at.position(n));
                }
            }
            let batch = first - self.range.start..batch.end - self.range.start;
            let [vx, vy, vz] = self.velocities.each_mut().map(|velocities| &mut velocities[batch.clone()]);
            for n in 0..batch.len() {
                for (v, change) in [&mut vx[n], &mut vy[n], &mut vz[n]].into_iter().zip(changes[n]) {
                    *v = ((f64::from(f32::from_bits(*v)) + change.as_f64()) as f32).to_bits();
                }
            }
        }
    }
}

impl<T: Real> Kick<'_, T> {
    /// The change of velocity of one particle on the finest level, up to the one in hand, that has its cells.
    #[inline(never)]
    fn change(&mut self, position: [u32; 3]) -> [T; 4] {
        let on_level = |level: usize| {
            let neighbours = self.others[level].of(group_at(position, self.locator.cells(level)));
            let [x, y, z] = gradient(neighbours, position, self.potential, level, self.level)?;
            let factor = T::from_f64(self.factor * 0.5f64.powi((self.level - level) as i32));
            Some([factor * x, factor * y, factor * z, T::zero()])
        };
        (0..=self.level).rev().find_map(on_level).expect("the root is complete")
    }
}

/// The weighted differences of the potential along x, y, z in a tile's cells, and ∞ where one of the cells that they take is
/// missing, else 0: a weight of 0 times ∞ is not 0 either.
#[derive(Default)]
struct Differences<T> {
    /// `[z, y, x]` of a tile
    values: Vec<[T; 4]>,
    /// Differences of first cells alone, for particles in refined patches, if there are such.
    of_first: Vec<[T; 4]>,
    /// Which patches are refined: bits of the tile's and those around, `[z, y, x]` from one before the group.
    refined: u64,
    /// `[z, y, x]` of a tile with two cells around it.
    potential: Vec<T>,
    /// ∞ in cells that are missing, else 0, the same shape; empty if the tile has all.
    missing: Vec<T>,
}

impl<T: Real> Differences<T> {
    /// Finds those of a group.
    #[inline(always)]
    fn find(&mut self, mut neighbours: Neighbours<'_>, pool: &[T], weights: [T; 2]) {
        let patches = if weights[1] == T::zero() { 0..0 } else { 0..PATCHES.pow(3) };
        self.refined = patches.fold(0, |refined, n| {
            let patch = [n % PATCHES, n / PATCHES % PATCHES, n / PATCHES.pow(2)];
            let first = patch.map(|n| n as i32 * PATCH as i32 - PATCH as i32);
            refined | u64::from(neighbours.is_refined(first)) << n
        });
        self.potential.resize(WIDE * WIDE * WIDE, T::zero());
        self.missing.clear();
        for (row, to) in self.potential.chunks_exact_mut(WIDE).enumerate() {
            let [y, z] = [row % WIDE, row / WIDE].map(|at| at as i32 - BESIDE as i32);
            for (x, width) in [(-(BESIDE as i32), BESIDE), (0, GROUP), (GROUP as i32, BESIDE)] {
                let (slot, offset) = neighbours.find([x, y, z]);
                let x = (x + BESIDE as i32) as usize;
                if slot == NONE {
                    self.missing.resize(WIDE * WIDE * WIDE, T::zero());
                    self.missing[row * WIDE + x..][..width].fill(T::infinity());
                } else {
                    let first = slot as usize * GROUP_CELLS + offset;
                    to[x..x + width].copy_from_slice(&pool[first..first + width]);
                }
            }
        }
        let Self { values, of_first, potential, missing, refined, .. } = self;
        weighted(potential, missing, weights, values);
        if *refined != 0 {
            weighted(potential, missing, [T::one(), T::zero()], of_first);
        }
    }

    /// Differences for a particle whose cloud begins at a place of the tile.
    ///
    /// * `is_upper`: whether it is in the upper one of its cells, along each axis
    #[inline(always)]
    fn of(&self, place: usize, is_upper: impl Fn(usize) -> bool) -> &[[T; 4]] {
        if self.refined == 0 {
            return &self.values;
        }
        // the tile begins one cell before the group, and bits one patch before it
        let patch = |axis: usize, lower: usize| (lower + usize::from(is_upper(axis))).div_ceil(PATCH);
        let [x, y, z] = [patch(0, place % TILE), patch(1, place / TILE % TILE), patch(2, place / TILE / TILE)];
        match self.refined >> ((z * PATCHES + y) * PATCHES + x) & 1 {
            1 => &self.of_first,
            _ => &self.values,
        }
    }
}

/// The differences in a tile's cells with these weights, from the potential around it: see [`Differences`].
#[inline(always)]
fn weighted<T: Real>(potential: &[T], missing: &[T], [first_weight, second_weight]: [T; 2], to: &mut Vec<[T; 4]>) {
    to.resize(TILE_CELLS, [T::zero(); 4]);
    // without a weight of second cells first ones take their place, since those may have any bits
    let distances = if second_weight == T::zero() { 1..2 } else { 1..3 };
    for (row, values) in to.chunks_exact_mut(TILE).enumerate() {
        let at = ((row / TILE + 2) * WIDE + row % TILE + 2) * WIDE + 2;
        let [first, second] = [1, distances.end - 1].map(|distance| pairs(potential, at, distance));
        for n in 0..TILE {
            let along = |axis: usize| {
                let [first, second] = [first[axis], second[axis]].map(|(before, behind)| behind[n] - before[n]);
                first_weight * first - second_weight * second
            };
            values[n] = [along(0), along(1), along(2), T::zero()];
        }
        if !missing.is_empty() {
            for pair in distances.clone().flat_map(|distance| pairs(missing, at, distance)) {
                for n in 0..TILE {
                    values[n][3] += pair.0[n] + pair.1[n];
                }
            }
        }
    }
}

/// Rows of cells before and behind a tile's.
type Pair<'a, T> = (&'a [T; TILE], &'a [T; TILE]);

/// The cells so far before and behind those of a tile's row, which begins at `first`, along x, y, z.
#[inline(always)]
fn pairs<T>(wide: &[T], first: usize, distance: usize) -> [Pair<'_, T>; 3] {
    let row = |first: usize| wide[first..].first_chunk().expect("cells around a tile");
    [1, WIDE, WIDE * WIDE].map(|step| (row(first - distance * step), row(first + distance * step)))
}

/// The weights of clouds in their cells, `[z, y, x]` of the cell, as parts of one.
#[inline(always)]
fn find_weights<T: Real>(clouds: &Clouds, weights: &mut [[T; BATCH]; 8]) {
    for n in 0..BATCH {
        let [x, y, z] = clouds.upper(n);
        let [x, y, z]: [[T; 2]; 3] = [weights_of(x), weights_of(y), weights_of(z)];
        for corner in 0..8 {
            weights[corner][n] = x[corner & 1] * y[corner >> 1 & 1] * z[corner >> 2];
        }
    }
}

/// `factor` Σ w d over the eight cells of cloud number `n`, which begins with the first of these differences.
#[inline(always)]
fn change_in_tile<T: Real>(differences: &[[T; 4]], weights: &[[T; BATCH]; 8], n: usize, factor: T) -> [T; 4] {
    let mut sum = [T::zero(); 4];
    for corner in 0..8 {
        let (i, j, k) = (corner & 1, corner >> 1 & 1, corner >> 2);
        let difference = differences[(k * TILE + j) * TILE + i];
        for axis in 0..4 {
            sum[axis] += weights[corner][n] * difference[axis];
        }
    }
    [factor * sum[0], factor * sum[1], factor * sum[2], factor * sum[3]]
}

/// The weights of a cloud's cells along an axis, as parts of one.
#[inline(always)]
fn weights_of<T: Real>(upper: u32) -> [T; 2] {
    let part = |weight: u32| T::from_f64(f64::from(weight as i32) / f64::from(1 << WEIGHT_BITS));
    [part((1 << WEIGHT_BITS) - upper), part(upper)]
}

/// The mean over a cloud's cells of the weighted differences of the potential along x, y, z, on one level; none where first cells
/// are missing.
///
/// * `of`: the level of the particles
#[inline(always)]
fn gradient<T: Real>(
    neighbours: &mut Neighbours<'_>,
    position: [u32; 3],
    potential: Potential<'_, T>,
    level: usize,
    of: usize,
) -> Option<[T; 3]> {
    let cells = neighbours.cells();
    let clouds: [Cloud; 3] = std::array::from_fn(|axis| Cloud::new(position[axis], cells[axis]));
    let lower = clouds.map(|cloud| (cloud.cell % GROUP as u32) as i32 + cloud.lower);
    // the cells of the cloud with two more on each side
    let mut values = [[[T::zero(); 6]; 6]; 6];
    let is_refined = neighbours.is_refined(clouds.map(|cloud| (cloud.cell % GROUP as u32) as i32));
    let with_second = if is_refined { [T::one(), T::zero()] } else { cell_weights(level) };
    let mut has_second = [true; 3];
    let within = lower.iter().all(|&x| (2..GROUP as i32 - 3).contains(&x));
    let in_cloud = |n: usize| n == 2 || n == 3;
    let (own, first) = neighbours.find(lower);
    for k in 0..6 {
        for j in 0..6 {
            for i in 0..6 {
                if usize::from(in_cloud(i)) + usize::from(in_cloud(j)) + usize::from(in_cloud(k)) < 2 {
                    continue;
                }
                let at = [i, j, k];
                let second = at.iter().position(|&n| n == 0 || n == 5);
                if second.is_some() && with_second[1] == T::zero() {
                    continue;
                }
                let (slot, offset) = if within {
                    (own, first + cell(i, j, k) - cell(2, 2, 2))
                } else {
                    neighbours.find([0, 1, 2].map(|axis| lower[axis] + at[axis] as i32 - 2))
                };
                match second {
                    _ if slot != NONE => values[k][j][i] = potential.at(slot, offset, level + 1 == of),
                    Some(axis) => has_second[axis] = false,
                    None => return None,
                }
            }
        }
    }
    let weights: [[T; 2]; 3] = clouds.map(|cloud| weights_of(cloud.weights[1]));
    let [x, y, z] = has_second.map(|has| if has { with_second } else { [T::one(), T::zero()] });
    let mut g = [T::zero(); 3];
    for k in 2..4 {
        for j in 2..4 {
            for i in 2..4 {
                let w = weights[0][i - 2] * weights[1][j - 2] * weights[2][k - 2];
                let along = |[first, second]: [T; 2], [x, y, z]: [usize; 3]| {
                    let first_difference = values[k + z][j + y][i + x] - values[k - z][j - y][i - x];
                    let second_difference =
                        values[k + 2 * z][j + 2 * y][i + 2 * x] - values[k - 2 * z][j - 2 * y][i - 2 * x];
                    first * first_difference - second * second_difference
                };
                g[0] += w * along(x, [1, 0, 0]);
                g[1] += w * along(y, [0, 1, 0]);
                g[2] += w * along(z, [0, 0, 1]);
            }
        }
    }
    Some(g)
}

//! Accelerates particles.

use super::super::Particles;
use super::chunk_length;
use super::clouds::{At, BATCH, Clouds, TILE, TILE_CELLS, TILE_CORNER, Tile, group_at};
use super::neighbours::{LastNeighbours, Neighbours};
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::layout::{GROUP, GROUP_CELLS, cell};
use crate::level::group_locator::GroupLocator;
use crate::level::level_topology::NONE;
use crate::operations::potential_ghosts::TimedPotential;
use crate::point::particle::{Cloud, WEIGHT_BITS};
use crate::real::Real;
use rayon::prelude::*;
use std::ops::Range;

/// A tile with one cell around it, along one axis.
const WIDE: usize = TILE + 2;

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
        // the last number is 0 where the tile has all cells, 1 outside it
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
                            self.differences.find(neighbours, self.potential);
                            tile = Tile::new(cells, group);
                            place = tile.find(lower);
                        }
                        None => next_look = n + 16,
                    }
                }
                changes[n - first] = match place {
                    Some(place) => {
                        let differences = &self.differences.values[place..=place + TILE_CORNER];
                        change_in_tile(differences, &weights, n - first, factor)
                    }
                    None => [T::zero(), T::zero(), T::zero(), T::one()],
                };
            }
            for n in batch.clone() {
                let [.., missing] = changes[n - first];
                if missing != T::zero() {
                    let finest = if missing == T::one() { self.level } else { self.level.saturating_sub(1) };
                    changes[n - first] = self.change(self.at.position(n), finest);
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
    /// The change of velocity of one particle on the finest level, of those up to `finest`, that has all cells.
    #[inline(never)]
    fn change(&mut self, position: [u32; 3], finest: usize) -> [T; 4] {
        let on_level = |level: usize| {
            let neighbours = self.others[level].of(group_at(position, self.locator.cells(level)));
            let [x, y, z] = gradient(neighbours, position, self.potential, level + 1 == self.level)?;
            let factor = T::from_f64(self.factor * 0.5f64.powi((self.level - level) as i32));
            Some([factor * x, factor * y, factor * z, T::zero()])
        };
        (0..=finest).rev().find_map(on_level).expect("the root is complete")
    }
}

/// φ₊ − φ₋ along x, y, z in a tile's cells, and ∞ where one of the six neighbours is missing, else 0: a weight of 0 times ∞
/// is not 0 either.
#[derive(Default)]
struct Differences<T> {
    /// `[z, y, x]` of a tile
    values: Vec<[T; 4]>,
    /// `[z, y, x]` of a tile with one cell around it.
    potential: Vec<T>,
    /// ∞ in cells that are missing, else 0, the same shape; empty if the tile has all.
    missing: Vec<T>,
}

impl<T: Real> Differences<T> {
    /// Finds those of a group.
    #[inline(always)]
    fn find(&mut self, mut neighbours: Neighbours<'_>, potential: Potential<'_, T>) {
        self.values.resize(TILE_CELLS, [T::zero(); 4]);
        self.potential.resize(WIDE * WIDE * WIDE, T::zero());
        self.missing.clear();
        for (row, to) in self.potential.chunks_exact_mut(WIDE).enumerate() {
            let [y, z] = [row % WIDE, row / WIDE].map(|at| at as i32 - 2);
            for (x, width) in [(-2, 2), (0, GROUP), (GROUP as i32, 2)] {
                let (slot, offset) = neighbours.find([x, y, z]);
                let x = (x + 2) as usize;
                if slot == NONE {
                    self.missing.resize(WIDE * WIDE * WIDE, T::zero());
                    self.missing[row * WIDE + x..][..width].fill(T::infinity());
                } else {
                    let first = slot as usize * GROUP_CELLS + offset;
                    to[x..x + width].copy_from_slice(&potential.pool[first..first + width]);
                }
            }
        }
        for (row, values) in self.values.chunks_exact_mut(TILE).enumerate() {
            let first = ((row / TILE + 1) * WIDE + row % TILE + 1) * WIDE + 1;
            let [x, y, z] = pairs(&self.potential, first);
            for n in 0..TILE {
                values[n] = [x.1[n] - x.0[n], y.1[n] - y.0[n], z.1[n] - z.0[n], T::zero()];
            }
            if !self.missing.is_empty() {
                let [x, y, z] = pairs(&self.missing, first);
                for n in 0..TILE {
                    values[n][3] = x.0[n] + x.1[n] + y.0[n] + y.1[n] + z.0[n] + z.1[n];
                }
            }
        }
    }
}

/// A row of a tile's cells before and behind those from `first` on, along x, y, z.
#[inline(always)]
fn pairs<T>(wide: &[T], first: usize) -> [(&[T; TILE], &[T; TILE]); 3] {
    let row = |first: usize| wide[first..].first_chunk().expect("cells around a tile");
    [1, WIDE, WIDE * WIDE].map(|step| (row(first - step), row(first + step)))
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

/// Σ w (φ₊ − φ₋) along x, y, z at a position; none where cells are missing.
#[inline(always)]
fn gradient<T: Real>(
    neighbours: &mut Neighbours<'_>,
    position: [u32; 3],
    potential: Potential<'_, T>,
    is_coarser: bool,
) -> Option<[T; 3]> {
    let cells = neighbours.cells();
    let clouds: [Cloud; 3] = std::array::from_fn(|axis| Cloud::new(position[axis], cells[axis]));
    let lower = clouds.map(|cloud| (cloud.cell % GROUP as u32) as i32 + cloud.lower);
    // the cells of the cloud with one more on each side, less the edges
    let mut values = [[[T::zero(); 4]; 4]; 4];
    let within = lower.iter().all(|&x| (1..GROUP as i32 - 2).contains(&x));
    let inner = |n: usize| n == 1 || n == 2;
    let (own, first) = neighbours.find(lower);
    for k in 0..4 {
        for j in 0..4 {
            for i in 0..4 {
                if usize::from(inner(i)) + usize::from(inner(j)) + usize::from(inner(k)) < 2 {
                    continue;
                }
                let (slot, offset) = if within {
                    (own, first + cell(i, j, k) - cell(1, 1, 1))
                } else {
                    neighbours.find([lower[0] + i as i32 - 1, lower[1] + j as i32 - 1, lower[2] + k as i32 - 1])
                };
                if slot == NONE {
                    return None;
                }
                values[k][j][i] = potential.at(slot, offset, is_coarser);
            }
        }
    }
    let weights: [[T; 2]; 3] = clouds.map(|cloud| weights_of(cloud.weights[1]));
    let mut g = [T::zero(); 3];
    for k in 0..2 {
        for j in 0..2 {
            for i in 0..2 {
                let w = weights[0][i] * weights[1][j] * weights[2][k];
                g[0] += w * (values[k + 1][j + 1][i + 2] - values[k + 1][j + 1][i]);
                g[1] += w * (values[k + 1][j + 2][i + 1] - values[k + 1][j][i + 1]);
                g[2] += w * (values[k + 2][j + 1][i + 1] - values[k][j + 1][i + 1]);
            }
        }
    }
    Some(g)
}

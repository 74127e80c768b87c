//! Particles on the processor.

use super::{BLOCK, BlockSums, COLUMNS, Part, Particles, hash_of};
use crate::device::buffer::SlotWriter;
use crate::layout::{DENSITY, DIRECTIONS, GROUP, GROUP_CELLS, GROUP_VALUES, cell};
use crate::level::group_locator::GroupLocator;
use crate::level::level_topology::{LevelTopology, NONE};
use crate::operations::potential_ghosts::TimedPotential;
use crate::point::particle::{Cloud, WEIGHT_BITS, drifted};
use crate::real::Real;
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A run of particles in one group that is worth a table of its own.
const LONG: usize = 600;

/// A group with one cell around it, along one axis.
const TILE: usize = GROUP + 2;

pub(super) fn drift(particles: &mut Particles, range: Range<usize>, factors: [f64; 3]) {
    let (positions, velocities) = particles.columns.split_at_mut(3);
    for axis in 0..3 {
        let positions = positions[axis].host_mut()[range.clone()].par_chunks_mut(BLOCK);
        let velocities = velocities[axis].host()[range.clone()].par_chunks(BLOCK);
        positions.zip(velocities).for_each(|(positions, velocities)| {
            for (x, v) in positions.iter_mut().zip(velocities) {
                *x = drifted(*x, f32::from_bits(*v), factors[axis]);
            }
        });
    }
}

/// Where particles are at another time.
#[derive(Clone, Copy)]
struct At<'a> {
    columns: [&'a [u32]; 6],
    factors: [f64; 3],
}

impl At<'_> {
    #[inline(always)]
    fn position(&self, n: usize) -> [u32; 3] {
        let moved =
            |axis: usize| drifted(self.columns[axis][n], f32::from_bits(self.columns[3 + axis][n]), self.factors[axis]);
        match self.factors {
            [0.0, 0.0, 0.0] => [0, 1, 2].map(|axis| self.columns[axis][n]),
            _ => [0, 1, 2].map(moved),
        }
    }
}

/// The slots of the groups around and including one, looked up when they are first asked for.
struct Around<'a> {
    locator: &'a GroupLocator,
    level: usize,
    group: [u32; 3],
    slots: [Option<u32>; DIRECTIONS],
}

impl<'a> Around<'a> {
    fn new(locator: &'a GroupLocator, level: usize, group: [u32; 3]) -> Self {
        Self { locator, level, group, slots: [None; DIRECTIONS] }
    }

    /// Slot and offset of a cell that is counted from the group's first one, up to a group's width beyond it.
    #[inline(always)]
    fn find(&mut self, at: [i32; 3]) -> (u32, usize) {
        let step = at.map(|x| x.div_euclid(GROUP as i32));
        let direction = (13 + step[0] + 3 * step[1] + 9 * step[2]) as usize;
        let slot = match self.slots[direction] {
            Some(slot) => slot,
            None => self.look_up(step, direction),
        };
        let [i, j, k] = at.map(|x| x.rem_euclid(GROUP as i32) as usize);
        (slot, cell(i, j, k))
    }

    #[cold]
    fn look_up(&mut self, step: [i32; 3], direction: usize) -> u32 {
        let group = std::array::from_fn(|axis| {
            let groups = i64::from(self.locator.root[axis] << self.level);
            (i64::from(self.group[axis]) + i64::from(step[axis])).rem_euclid(groups) as u32
        });
        let slot = self.locator.slot(self.level, group);
        self.slots[direction] = Some(slot);
        slot
    }
}

/// The group of a level of so many cells that a position is in.
#[inline(always)]
fn group_at(position: [u32; 3], cells: [u32; 3]) -> [u32; 3] {
    [0, 1, 2].map(|axis| ((u64::from(position[axis]) * u64::from(cells[axis])) >> 36) as u32)
}

/// A particle's cells: those of the lower corner counted from its group's first cell, and the weights along each axis.
#[inline(always)]
fn clouds(position: [u32; 3], cells: [u32; 3]) -> ([u32; 3], [i32; 3], [[u32; 2]; 3]) {
    let clouds = [0, 1, 2].map(|axis| Cloud::new(position[axis], cells[axis]));
    let group = clouds.map(|cloud| cloud.cell / GROUP as u32);
    let lower = clouds.map(|cloud| (cloud.cell % GROUP as u32) as i32 + cloud.lower);
    (group, lower, clouds.map(|cloud| cloud.weights))
}

/// Calls `f(first, end, group)` for every run of particles of a chunk that are in one group of a level.
fn runs(at: At<'_>, range: Range<usize>, cells: [u32; 3], mut f: impl FnMut(Range<usize>, [u32; 3])) {
    let group = |n: usize| group_at(at.position(n), cells);
    let mut first = range.start;
    let Some(mut here) = (!range.is_empty()).then(|| group(first)) else { return };
    for n in range.clone() {
        let next = group(n);
        if next != here {
            f(first..n, here);
            (first, here) = (n, next);
        }
    }
    f(first..range.end, here);
}

pub(super) fn deposit(
    locator: &GroupLocator,
    level: usize,
    tables: &LevelTopology,
    particles: &Particles,
    parts: &[Part],
    mass: &mut [u64],
) {
    let pool = SlotWriter::new(mass, GROUP_CELLS);
    // SAFETY: the slots of a level are distinct, and each is visited once.
    tables.slots.par_iter().for_each(|&slot| unsafe { pool.slot(slot) }.fill(0));
    // SAFETY: an atomic number has the layout of a number, and nobody else has the array.
    let mass: &[AtomicU64] = unsafe { std::slice::from_raw_parts(mass.as_mut_ptr().cast(), mass.len()) };
    let cells = locator.cells(level);
    let add = |at: usize, weight: u64| {
        mass[at].fetch_add(weight, Ordering::Relaxed);
    };
    for (range, factors) in parts {
        let at = At { columns: std::array::from_fn(|c| particles.columns[c].host()), factors: *factors };
        let chunks = range.len().div_ceil(BLOCK);
        (0..chunks).into_par_iter().for_each_init(Vec::new, |tile: &mut Vec<u64>, chunk| {
            let first = range.start + chunk * BLOCK;
            runs(at, first..range.end.min(first + BLOCK), cells, |run, group| {
                let mut around = Around::new(locator, level, group);
                if run.len() < LONG {
                    for n in run {
                        each_cell(at.position(n), cells, |cell, weight| {
                            let (slot, offset) = around.find(cell);
                            if slot != NONE {
                                add(slot as usize * GROUP_CELLS + offset, weight);
                            }
                        });
                    }
                    return;
                }
                tile.clear();
                tile.resize(TILE * TILE * TILE, 0);
                for n in run {
                    each_cell(at.position(n), cells, |cell, weight| {
                        let [i, j, k] = cell.map(|x| (x + 1) as usize);
                        tile[(k * TILE + j) * TILE + i] += weight;
                    });
                }
                for (n, &weight) in tile.iter().enumerate().filter(|(_, weight)| **weight > 0) {
                    let [i, j, k] = [n % TILE, n / TILE % TILE, n / (TILE * TILE)];
                    let (slot, offset) = around.find([i, j, k].map(|x| x as i32 - 1));
                    if slot != NONE {
                        add(slot as usize * GROUP_CELLS + offset, weight);
                    }
                }
            });
        });
    }
}

/// Calls `f` with each of the eight cells that share a particle's mass, counted from its group's first one, and its weight.
#[inline(always)]
fn each_cell(position: [u32; 3], cells: [u32; 3], mut f: impl FnMut([i32; 3], u64)) {
    let (_, lower, weights) = clouds(position, cells);
    for corner in 0..8 {
        let step = [corner & 1, corner >> 1 & 1, corner >> 2];
        let weight = (0..3).map(|axis| u64::from(weights[axis][step[axis]])).product();
        f([0, 1, 2].map(|axis| lower[axis] + step[axis] as i32), weight);
    }
}

pub(super) fn matter_density<T: Real>(tables: &LevelTopology, mass: &[u64], unit: f64, fluid: &[T], density: &mut [T]) {
    let pool = SlotWriter::new(density, GROUP_CELLS);
    tables.slots.par_iter().for_each(|&slot| {
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let density = unsafe { pool.slot(slot) };
        let mass = &mass[slot as usize * GROUP_CELLS..][..GROUP_CELLS];
        let gas = &fluid[slot as usize * GROUP_VALUES + DENSITY * GROUP_CELLS..][..GROUP_CELLS];
        for c in 0..GROUP_CELLS {
            density[c] = gas[c] + T::from_f64(mass[c] as f64 * unit);
        }
    });
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

pub(super) fn kick<T: Real>(
    locator: &GroupLocator,
    level: usize,
    particles: &mut Particles,
    range: Range<usize>,
    potential: &[T],
    coarse: Option<&TimedPotential<T>>,
    factor: f64,
) {
    let potential = Potential { pool: potential, coarse };
    let (positions, velocities) = particles.columns.split_at_mut(3);
    let at = At {
        columns: std::array::from_fn(|c| if c < 3 { &positions[c].host()[range.clone()] } else { &[] }),
        factors: [0.0; 3],
    };
    let [vx, vy, vz, ..] = velocities else { unreachable!("eight columns") };
    let [vx, vy, vz] = [vx, vy, vz].map(|column| column.host_mut()[range.clone()].par_chunks_mut(BLOCK));
    (vx, vy, vz).into_par_iter().enumerate().for_each(|(chunk, (vx, vy, vz))| {
        let first = chunk * BLOCK;
        let cells = locator.cells(level);
        runs(at, first..first + vx.len(), cells, |run, group| {
            let mut around = Around::new(locator, level, group);
            for n in run {
                let position = at.position(n);
                let mut g = gradient(&mut around, position, potential, false);
                let mut factor = factor;
                for coarser in (0..level).rev() {
                    if g.is_some() {
                        break;
                    }
                    factor *= 0.5;
                    let cells = locator.cells(coarser);
                    let group = group_at(position, cells);
                    let is_next = coarser + 1 == level;
                    g = gradient(&mut Around::new(locator, coarser, group), position, potential, is_next);
                }
                let g = g.expect("the root is complete");
                for (v, g) in [&mut vx[n - first], &mut vy[n - first], &mut vz[n - first]].into_iter().zip(g) {
                    let change = T::from_f64(factor) * g;
                    *v = ((f64::from(f32::from_bits(*v)) + change.as_f64()) as f32).to_bits();
                }
            }
        });
    });
}

/// Σ w (φ₊ − φ₋) along x, y, z at a position; none where cells are missing.
#[inline(always)]
fn gradient<T: Real>(
    around: &mut Around<'_>,
    position: [u32; 3],
    potential: Potential<'_, T>,
    is_coarser: bool,
) -> Option<[T; 3]> {
    let (_, lower, weights) = clouds(position, around.locator.cells(around.level));
    // the cells of the cloud with one more on each side, less the edges
    let mut values = [[[T::zero(); 4]; 4]; 4];
    let within = lower.iter().all(|&x| (1..GROUP as i32 - 2).contains(&x));
    let inner = |n: usize| n == 1 || n == 2;
    let (own, first) = around.find(lower);
    for k in 0..4 {
        for j in 0..4 {
            for i in 0..4 {
                if usize::from(inner(i)) + usize::from(inner(j)) + usize::from(inner(k)) < 2 {
                    continue;
                }
                let (slot, offset) = if within {
                    (own, first + cell(i, j, k) - cell(1, 1, 1))
                } else {
                    around.find([lower[0] + i as i32 - 1, lower[1] + j as i32 - 1, lower[2] + k as i32 - 1])
                };
                if slot == NONE {
                    return None;
                }
                values[k][j][i] = potential.at(slot, offset, is_coarser);
            }
        }
    }
    let weight = |axis: usize, n: usize| T::from_f64(f64::from(weights[axis][n]) / f64::from(1 << WEIGHT_BITS));
    let mut g = [T::zero(); 3];
    for k in 0..2 {
        for j in 0..2 {
            for i in 0..2 {
                let w = weight(0, i) * weight(1, j) * weight(2, k);
                g[0] += w * (values[k + 1][j + 1][i + 2] - values[k + 1][j + 1][i]);
                g[1] += w * (values[k + 1][j + 2][i + 1] - values[k + 1][j][i + 1]);
                g[2] += w * (values[k + 2][j + 1][i + 1] - values[k][j + 1][i + 1]);
            }
        }
    }
    Some(g)
}

/// Writes to places of an array from many threads, each place once.
struct Scattered(*mut u32, usize);

// SAFETY: it is written to different places only, by the contract of `put`.
unsafe impl Sync for Scattered {}

impl Scattered {
    /// # Safety
    /// No two calls with one place.
    unsafe fn put(&self, place: usize, value: u32) {
        assert!(place < self.1);
        // SAFETY: in bounds by the assertion, and nobody else writes there.
        unsafe { *self.0.add(place) = value };
    }
}

pub(super) fn sort(locator: &GroupLocator, particles: &mut Particles, first: usize, from: usize) -> Vec<usize> {
    let count = particles.len() - first;
    let (lowest, groups) = (locator.first[from], locator.groups() as u32 - locator.first[from]);
    let last_of_from = locator.first[from + 1] - 1;
    let finest = locator.levels() - 1;
    let Particles { columns, spare, target, .. } = particles;
    // as many parts as threads: each counts for itself
    let length = count.div_ceil(rayon::current_num_threads()).max(1);
    let at = At { columns: std::array::from_fn(|c| &columns[c].host()[first..]), factors: [0.0; 3] };
    let numbers = &mut spare.host_mut()[first..];
    let mut counts: Vec<Vec<u32>> = numbers
        .par_chunks_mut(length)
        .enumerate()
        .map(|(part, numbers)| {
            let mut counts = vec![0; groups as usize];
            for (n, number) in numbers.iter_mut().enumerate() {
                let (slot, _) = locator.finest(at.position(part * length + n), finest);
                let home = locator.numbers[slot as usize];
                *number = if home < lowest { last_of_from } else { home } - lowest;
                counts[*number as usize] += 1;
            }
            counts
        })
        .collect();
    let mut next = first as u32;
    let mut firsts = Vec::with_capacity(finest + 2 - from);
    for group in 0..groups as usize {
        if locator.first[from..].contains(&(group as u32 + lowest)) {
            firsts.push(next as usize);
        }
        for counts in &mut counts {
            next += std::mem::replace(&mut counts[group], next);
        }
    }
    firsts.push(next as usize);
    let targets = &mut target.host_mut()[first..];
    targets.par_chunks_mut(length).zip(numbers.par_chunks(length)).zip(&mut counts).for_each(
        |((targets, numbers), counts)| {
            for (target, &number) in targets.iter_mut().zip(numbers) {
                *target = counts[number as usize];
                counts[number as usize] += 1;
            }
        },
    );
    for column in columns {
        let sorted = spare.host_mut();
        let sorted = Scattered(sorted.as_mut_ptr(), sorted.len());
        column.host()[first..].par_chunks(length).zip(targets.par_chunks(length)).for_each(|(values, targets)| {
            for (&value, &target) in values.iter().zip(targets) {
                // SAFETY: every particle has a place of its own.
                unsafe { sorted.put(target as usize, value) };
            }
        });
        match first {
            0 => std::mem::swap(column, spare),
            _ => column.host_mut()[first..].copy_from_slice(&spare.host()[first..]),
        }
    }
    firsts
}

pub(super) fn sums(particles: &Particles, range: Range<usize>) -> Vec<BlockSums> {
    let [x, y, z] = [3, 4, 5].map(|c| particles.columns[c].host()[range.clone()].par_chunks(BLOCK));
    let of_block = |(x, (y, z)): (&[u32], (&[u32], &[u32]))| {
        let mut sums = BlockSums::default();
        for n in 0..x.len() {
            sums.add([x[n], y[n], z[n]].map(f32::from_bits));
        }
        sums
    };
    x.zip(y.zip(z)).map(of_block).collect()
}

pub(super) fn hash(particles: &Particles) -> u64 {
    let columns: [&[u32]; COLUMNS] = std::array::from_fn(|c| particles.columns[c].host());
    let blocks = (0..particles.len().div_ceil(BLOCK)).into_par_iter();
    let of_block = |block: usize| {
        let particles = block * BLOCK..particles.len().min((block + 1) * BLOCK);
        particles.fold(0u64, |sum, n| sum.wrapping_add(hash_of(columns.map(|column| column[n]))))
    };
    blocks.map(of_block).reduce(|| 0, u64::wrapping_add)
}

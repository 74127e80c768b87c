//! Mass in cells.

use super::super::{Part, Particles, of_upper_half};
use super::chunk_length;
use super::clouds::{At, BATCH, Clouds, TILE, TILE_CELLS, TILE_CORNER, Tile};
use super::neighbours::{LastNeighbours, Neighbours};
use crate::device::buffer::SlotWriter;
use crate::device::isa::{Isa, Kernel};
use crate::device::overflow::add_weights;
use crate::layout::{DIRECTIONS, GROUP, GROUP_CELLS, cell, offset};
use crate::level::group_locator::GroupLocator;
use crate::level::level_topology::{LevelTopology, NONE};
use crate::point::particle::{WeightUnit, WideCloud};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Locks that slots share.
const LOCKS: usize = 1024;

pub(in super::super) fn deposit(
    locator: &GroupLocator,
    level: usize,
    tables: &LevelTopology,
    particles: &Particles,
    parts: &[Part],
    unit: WeightUnit,
    (mass, overflow): (&mut [u64], &mut [u64]),
) {
    let isa = Isa::best();
    let mass = SharedMass {
        pool: SlotWriter::new(mass, GROUP_CELLS),
        locks: std::iter::repeat_with(Mutex::default).take(LOCKS).collect(),
        overflow: AtomicU64::new(overflow[0]),
    };
    let clear = |mass: &mut [u64]| {
        mass.fill(0);
        None
    };
    tables.slots.par_iter().for_each(|&slot| mass.with(slot, clear));
    let upper_half = particles.columns[7].host();
    for Part { range, level: own, factors } in parts {
        let at = At::new(particles, *factors);
        let length = chunk_length(range.len());
        (0..range.len().div_ceil(length)).into_par_iter().for_each_init(
            || vec![0; TILE_CELLS],
            |weights, chunk| {
                let first = range.start + chunk * length;
                let range = first..range.end.min(first + length);
                let others = LastNeighbours::new(locator, level);
                if *own >= level {
                    isa.run(Deposit { locator, level, at, upper_half, unit, range, mass: &mass, weights, others });
                } else {
                    deposit_coarser(locator.cells(level), (at, upper_half), unit, range, &mass, others);
                }
            },
        );
    }
    overflow[0] = mass.overflow.into_inner();
}

/// Mass that threads add to.
struct SharedMass<'a> {
    /// `[slots, 16, 16, 16]`
    pool: SlotWriter<'a, u64>,
    locks: Vec<Mutex<()>>,
    /// As [`crate::device::overflow::Overflow`] has it.
    overflow: AtomicU64,
}

impl SharedMass<'_> {
    /// Adds to the cells of a slot; `add` returns the offset of a cell whose sum has exceeded 64 bits.
    fn with(&self, slot: u32, add: impl FnOnce(&mut [u64]) -> Option<usize>) {
        let _lock = self.locks[slot as usize % LOCKS].lock().expect("no thread has panicked");
        // SAFETY: nobody else has the slot's lock.
        if let Some(offset) = add(unsafe { self.pool.slot(slot) }) {
            self.overflow.fetch_max((slot as usize * GROUP_CELLS + offset + 1) as u64, Ordering::Relaxed);
        }
    }
}

/// [`add_weights`] of one cell of a group.
#[inline(always)]
fn add_weight(mass: &mut [u64], offset: usize, weight: u64) -> Option<usize> {
    add_weights(&mut mass[offset..=offset], &[weight]).map(|_| offset)
}

/// The mass of some particles.
struct Deposit<'a> {
    locator: &'a GroupLocator,
    level: usize,
    at: At<'a>,
    /// Upper halves of identities.
    upper_half: &'a [u32],
    unit: WeightUnit,
    range: Range<usize>,
    mass: &'a SharedMass<'a>,
    /// Weights in the cells of a tile, all zero before and after: 2¹⁴ particles of at most 2⁴⁸ do not exceed 64 bits.
    weights: &'a mut [u64],
    others: LastNeighbours<'a>,
}

impl Kernel for Deposit<'_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let cells = self.locator.cells(self.level);
        let (mut clouds, mut tile, mut next_look) = (Clouds::NONE, Tile::default(), 0);
        for first in self.range.clone().step_by(BATCH) {
            let batch = first..self.range.end.min(first + BATCH);
            clouds.find(&self.at, batch.clone(), cells, self.unit.bits());
            for n in batch {
                let lower = clouds.lower(n - first);
                let mut place = tile.find(lower).or_else(|| tile.find_across(lower));
                if place.is_none() && n >= next_look {
                    match self.at.common_group(n..self.range.end, cells) {
                        Some(group) => {
                            self.empty(tile);
                            tile = Tile::new(cells, group);
                            place = tile.find(lower);
                        }
                        None => next_look = n + 16,
                    }
                }
                let cloud = ScaledCloud::new(clouds.upper(n - first), self.unit, self.upper_half[n]);
                match place {
                    Some(place) => cloud.add(&mut self.weights[place..=place + TILE_CORNER]),
                    None => self.add_one(lower, cloud),
                }
            }
        }
        self.empty(tile);
    }
}

/// The mass of some particles of the next coarser level: those in the buffer inside the level's faces, and just outside.
fn deposit_coarser(
    cells: [u32; 3],
    (at, upper_half): (At<'_>, &[u32]),
    unit: WeightUnit,
    range: Range<usize>,
    mass: &SharedMass<'_>,
    mut others: LastNeighbours<'_>,
) {
    for n in range {
        let position = at.position(n);
        let [x, y, z] = [0, 1, 2].map(|axis| WideCloud::with_bits(position[axis], cells[axis], unit.bits()));
        let neighbours = others.of([x, y, z].map(|cloud| cloud.cell / GROUP as u32));
        let middle = [x, y, z].map(|cloud| (cloud.cell % GROUP as u32) as i32);
        let is_within = middle.iter().all(|cell| (1..GROUP as i32 - 1).contains(cell));
        if is_within && neighbours.slot([0; 3]) == NONE {
            continue;
        }
        let whole = unit.of(of_upper_half(upper_half[n]));
        for corner in 0..27 {
            let [i, j, k] = [corner % 3, corner / 3 % 3, corner / 9];
            let step = [i, j, k].map(|step| step as i32 - 1);
            let (slot, offset) = neighbours.find([0, 1, 2].map(|axis| middle[axis] + step[axis]));
            let weight = whole * u64::from(x.weights[i] * y.weights[j]) * u64::from(z.weights[k]);
            if slot != NONE && weight > 0 {
                mass.with(slot, |mass| add_weight(mass, offset, weight));
            }
        }
    }
}

/// The weights of a particle along each axis, of the lower and of the upper cell.
struct ScaledCloud {
    /// Times the particle's mass.
    x: [u64; 2],
    y: [u32; 2],
    z: [u32; 2],
}

impl ScaledCloud {
    /// * `upper`: weights of the upper cells
    #[inline(always)]
    fn new(upper: [u32; 3], unit: WeightUnit, upper_half: u32) -> Self {
        let [x, y, z] = upper.map(|upper| [(1 << unit.bits()) - upper, upper]);
        let mass = unit.of(of_upper_half(upper_half));
        Self { x: x.map(|weight| mass * u64::from(weight)), y, z }
    }

    #[inline(always)]
    fn weight(&self, i: usize, j: usize, k: usize) -> u64 {
        u64::from(self.y[j] * self.z[k]) * self.x[i]
    }

    /// Adds the weights to a tile that begins at the lower corner.
    #[inline(always)]
    fn add(&self, tile: &mut [u64]) {
        for k in 0..2 {
            for j in 0..2 {
                for i in 0..2 {
                    tile[(k * TILE + j) * TILE + i] += self.weight(i, j, k);
                }
            }
        }
    }
}

impl Deposit<'_> {
    /// Adds a tile's weights to the level's cells.
    fn empty(&mut self, tile: Tile) {
        if !tile.is_some() {
            return;
        }
        let mut neighbours = Neighbours::new(self.locator, self.level, tile.group);
        for direction in 0..DIRECTIONS {
            let step = offset(direction);
            let slot = neighbours.slot(step);
            if slot == NONE {
                continue;
            }
            let [x, y, z] = step.map(|step| [0..1, 1..TILE - 1, TILE - 1..TILE][(step + 1) as usize].clone());
            // the cell of the group at a place of the tile
            let of = |place: usize| (place + GROUP - 1) % GROUP;
            self.mass.with(slot, |mass| {
                let mut overflow = None;
                for (k, j) in z.flat_map(|k| y.clone().map(move |j| (k, j))) {
                    let weights = &self.weights[(k * TILE + j) * TILE..][x.clone()];
                    let first = cell(of(x.start), of(j), of(k));
                    let exceeded = add_weights(&mut mass[first..][..x.len()], weights);
                    overflow = overflow.max(exceeded.map(|n| first + n));
                }
                overflow
            });
        }
        self.weights.fill(0);
    }

    /// Adds the weights of one cloud to the level's cells.
    #[inline(never)]
    fn add_one(&mut self, lower: [u32; 3], cloud: ScaledCloud) {
        // −1 is the last cell
        let cells = self.locator.cells(self.level);
        let lower: [u32; 3] = std::array::from_fn(|axis| lower[axis].min(cells[axis] - 1));
        let neighbours = self.others.of(lower.map(|cell| cell / GROUP as u32));
        let first = lower.map(|cell| (cell % GROUP as u32) as usize);
        let is_within = first.iter().all(|&cell| cell + 1 < GROUP);
        if is_within && neighbours.slot([0; 3]) == NONE {
            return;
        }
        let weight = |corner: usize| cloud.weight(corner & 1, corner >> 1 & 1, corner >> 2);
        let cell_of = |corner: usize| [first[0] + (corner & 1), first[1] + (corner >> 1 & 1), first[2] + (corner >> 2)];
        if is_within {
            self.mass.with(neighbours.slot([0; 3]), |mass| {
                let mut overflow = None;
                for corner in 0..8 {
                    let [i, j, k] = cell_of(corner);
                    overflow = overflow.max(add_weight(mass, cell(i, j, k), weight(corner)));
                }
                overflow
            });
            return;
        }
        for corner in 0..8 {
            let (slot, offset) = neighbours.find(cell_of(corner).map(|cell| cell as i32));
            if slot != NONE {
                self.mass.with(slot, |mass| add_weight(mass, offset, weight(corner)));
            }
        }
    }
}

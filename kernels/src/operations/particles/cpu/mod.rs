//! Particles on the processor.

mod clouds;
mod deposit;
mod kick;
mod neighbours;
mod sort;

pub(super) use deposit::deposit;
pub(super) use kick::kick;
pub(super) use sort::sort;

use super::{BLOCK, BlockSums, COLUMNS, Particles, hash_of, is_near_edge, of_upper_half};
use crate::device::buffer::SlotWriter;
use crate::device::isa::{Isa, Kernel, compiled_here};
use crate::layout::{DENSITY, GROUP_CELLS, GROUP_VALUES};
use crate::level::level_topology::LevelTopology;
use crate::point::particle::{LONGEST_NEAR, class_of, drifted, drifted_near};
use crate::real::Real;
use rayon::prelude::*;
use std::ops::Range;

/// The bit of a number in single precision that is its sign.
const SIGN: u32 = 1 << 31;

/// Particles, of so many, that a thread deposits or kicks at a time: a few groups' worth, if all threads have work.
fn chunk_length(particles: usize) -> usize {
    (particles / (4 * rayon::current_num_threads())).clamp(BLOCK, 4 * BLOCK)
}

pub(super) fn drift(particles: &mut Particles, range: Range<usize>, factors: [f64; 3]) {
    let isa = Isa::best();
    let (positions, velocities) = particles.columns.split_at_mut(3);
    for axis in 0..3 {
        let positions = positions[axis].host_mut()[range.clone()].par_chunks_mut(BLOCK);
        let velocities = velocities[axis].host()[range.clone()].par_chunks(BLOCK);
        positions.zip(velocities).for_each(|(positions, velocities)| {
            isa.run(Drift { positions, velocities, factor: factors[axis] });
        });
    }
}

/// The drift of some particles along one axis.
struct Drift<'a> {
    positions: &'a mut [u32],
    /// The bits of them.
    velocities: &'a [u32],
    factor: f64,
}

impl Kernel for Drift<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        drift_axis(self.positions, self.velocities, self.factor);
    }
}

/// Moves particles along one axis.
#[inline(always)]
fn drift_axis(positions: &mut [u32], velocities: &[u32], factor: f64) {
    // of numbers without their sign, the bits are in their order
    let fastest = velocities.iter().fold(0, |fastest, v| (v & !SIGN).max(fastest));
    if f64::from(f32::from_bits(fastest)) * factor.abs() < LONGEST_NEAR {
        positions.iter_mut().zip(velocities).for_each(|(x, v)| *x = drifted_near(*x, f32::from_bits(*v), factor));
    } else {
        positions.iter_mut().zip(velocities).for_each(|(x, v)| *x = drifted(*x, f32::from_bits(*v), factor));
    }
}

pub(super) fn matter_density<T: Real>(
    tables: &LevelTopology,
    mass: &[u64],
    unit: f64,
    fluid: Option<&[T]>,
    density: &mut [T],
) {
    let isa = Isa::best();
    let none = [T::zero(); GROUP_CELLS];
    let pool = SlotWriter::new(density, GROUP_CELLS);
    tables.slots.par_iter().for_each(|&slot| {
        // SAFETY: the slots of a level are distinct, and each is visited once.
        let density = unsafe { pool.slot(slot) };
        let mass = &mass[slot as usize * GROUP_CELLS..][..GROUP_CELLS];
        let first = slot as usize * GROUP_VALUES + DENSITY * GROUP_CELLS;
        let gas = fluid.map_or(&none[..], |fluid| &fluid[first..][..GROUP_CELLS]);
        isa.run(GroupDensity { mass, unit, gas, density });
    });
}

/// The density of gas and particles in a group.
struct GroupDensity<'a, T> {
    mass: &'a [u64],
    unit: f64,
    gas: &'a [T],
    density: &'a mut [T],
}

compiled_here!(GroupDensity<'static, f32>, GroupDensity<'static, f64>);

impl<T: Real> Kernel for GroupDensity<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for ((density, gas), mass) in self.density.iter_mut().zip(self.gas).zip(self.mass) {
            *density = *gas + T::from_f64(*mass as f64 * self.unit);
        }
    }
}

pub(super) fn sums(particles: &Particles, range: Range<usize>, class: usize) -> Vec<BlockSums> {
    let columns = [3, 4, 5, 7].map(|c| &particles.columns[c].host()[range.clone()]);
    let of_block = |block: usize| {
        let first = block * BLOCK;
        let [x, y, z, upper_half] = columns.map(|column| &column[first..column.len().min(first + BLOCK)]);
        let mut sums = BlockSums::default();
        for n in 0..x.len() {
            if class_of(of_upper_half(upper_half[n])) == class {
                sums.add([x[n], y[n], z[n]].map(f32::from_bits));
            }
        }
        sums
    };
    (0..range.len().div_ceil(BLOCK)).into_par_iter().map(of_block).collect()
}

pub(super) fn near_edges(particles: &Particles, edges: [u32; 3]) -> u64 {
    let columns = [0, 1, 2].map(|axis| particles.columns[axis].host());
    let is_near = |n: &usize| (0..3).any(|axis| is_near_edge(columns[axis][*n], edges[axis]));
    (0..particles.len()).into_par_iter().filter(is_near).count() as u64
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

//! Density contrast and velocity of each species in Fourier space, on a mesh that every rank has as a whole.
//!
//! Ranks add integers, so that bits depend neither on their number nor on that of threads.

use crate::gaussian_field::transform::{row_length, to_modes};
use crate::particle_set::ParticleSet;
use crate::uniform_mesh::UniformMesh;
use comove_sim::kernels::point::particle::mass_of;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use rustfft::num_complex::Complex;
use std::f64::consts::{PI, TAU};

/// Most cells of the mesh along an axis: larger initial conditions are averaged.
const MOST: usize = 64;

/// Fewest cells along an axis.
const FEWEST: usize = 8;

/// Bits behind the point of summed values, whose largest is 1.
const BITS: i32 = 38;

/// A number whose last bit is 1, as numbers up to 2⁵¹ from it have.
const WHOLE_NUMBERS: f64 = 3.0 * (1u64 << 51) as f64;

/// The nearest integer of a number below 2⁵¹, modulo 2⁶⁴: `round` is a call where processors of all ages are to run the program.
fn to_nearest(value: f64) -> u64 {
    (value + WHOLE_NUMBERS).to_bits().wrapping_sub(WHOLE_NUMBERS.to_bits())
}

/// Cells or particles that a thread adds at a time.
const AT_A_TIME: usize = 1 << 18;

/// The mesh.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grid {
    pub cells: [usize; 3],
    /// Lengths of the box in Mpc/h.
    pub lengths: [f64; 3],
    /// Cells of the initial condition along each axis that a cell of the gas and of a displaced lattice is averaged from.
    pub averaged: usize,
}

/// A species.
pub(super) struct SpeciesModes {
    /// Density contrast, `[ny, nz, nx]` with n_x = 0 … N_x/2 fastest; phases from the corner of the box.
    pub delta: Vec<Complex<f64>>,
    /// Code velocity along x, y, z; of particles at any positions momentum over mean density.
    pub velocity: [Vec<Complex<f64>>; 3],
    /// Displacement along x, y, z in Mpc/h where it is known, of a lattice.
    pub displacement: Option<[Vec<Complex<f64>>; 3]>,
}

impl Grid {
    /// The mesh of an initial condition; `None` where it would have too few cells or an odd number of them.
    ///
    /// * `across`: particles at any positions along the longest axis, if there are some
    pub(super) fn of(cells: [usize; 3], box_mpc_h: f64, has_mesh: bool, across: Option<f64>) -> Option<Self> {
        let longest = *cells.iter().max()? as f64;
        let lengths = cells.map(|n| box_mpc_h * n as f64 / cells[0] as f64);
        let is_good = |n: &[usize; 3]| n.iter().all(|n| n.is_multiple_of(2) && (FEWEST..=MOST).contains(n));
        let averaged = (1..=cells[0])
            .filter(|b| cells.iter().all(|n| n.is_multiple_of(*b)))
            .map(|b| (b, cells.map(|n| n / b)))
            .filter(|(_, n)| is_good(n));
        if has_mesh {
            // a lattice of particles whose number is a multiple of the cells' has no power of its own
            let fits =
                |n: &[usize; 3]| across.is_none_or(|across| n.map(|n| n as f64 * 2.0).iter().all(|n| *n <= across));
            let mut all = averaged.clone();
            return all.clone().find(|(_, n)| fits(n)).or_else(|| all.next()).map(|(averaged, cells)| Self {
                cells,
                lengths,
                averaged,
            });
        }
        let across = across?.round();
        let of = |n: f64| cells.map(|c| (c as f64 / longest * n).round() as usize);
        let is_cubic = |n: &[usize; 3]| (0..3).all(|a| n[a] * cells[0] == cells[a] * n[0]);
        let least = if across < 32.0 { 1 } else { 2 };
        let divided =
            (least..=across as usize).filter(|q| (across as usize).is_multiple_of(*q)).map(|q| of(across / q as f64));
        let found = divided
            .chain([of(2.0 * across), of(MOST as f64), of(16.0)])
            .find(|n| is_good(n) && is_cubic(n) && n.iter().any(|n| *n >= 16 || across < 16.0))?;
        Some(Self { cells: found, lengths, averaged: 1 })
    }

    pub(super) fn count(&self) -> usize {
        self.cells.iter().product()
    }

    /// Calls `f(n, k, index, weight)` for wave vectors n within a fraction of the Nyquist wave number, k in h/Mpc; the weight
    /// counts n and −n.
    pub(super) fn for_each_mode(&self, within: (f64, f64), mut f: impl FnMut([i64; 3], [f64; 3], usize, f64)) {
        let row = row_length(self.cells);
        let spacing = self.lengths.map(|length| TAU / length);
        let nyquist = self.nyquist();
        let signed = |n: usize, of: usize| if n <= of / 2 { n as i64 } else { n as i64 - of as i64 };
        let [_, ny, nz] = self.cells;
        for y in 0..ny {
            for z in 0..nz {
                for x in 0..row {
                    let n = [x as i64, signed(y, ny), signed(z, nz)];
                    let k: [f64; 3] = std::array::from_fn(|a| n[a] as f64 * spacing[a]);
                    let size = (k[0] * k[0] + k[1] * k[1] + k[2] * k[2]).sqrt() / nyquist;
                    let on_plane = (0..3).any(|a| 2 * n[a].unsigned_abs() as usize == self.cells[a]);
                    if n != [0; 3] && !on_plane && size > within.0 && size <= within.1 {
                        f(n, k, (y * nz + z) * row + x, if x == 0 { 1.0 } else { 2.0 });
                    }
                }
            }
        }
    }

    /// In h/Mpc.
    pub(super) fn nyquist(&self) -> f64 {
        PI * self.cells[0] as f64 / self.lengths[0]
    }

    /// Modes of a field on this mesh, divided by a window and with the phase of where its first value is.
    ///
    /// * `first`: place of the first value in cells along each axis
    fn modes(&self, field: &[f64], first: f64, window: impl Fn(f64) -> f64) -> Vec<Complex<f64>> {
        let mut modes = to_modes(&Communicator::alone(), self.cells, field);
        self.for_each_mode((0.0, f64::INFINITY), |n, _, index, _| {
            let x: [f64; 3] = std::array::from_fn(|a| n[a] as f64 / self.cells[a] as f64);
            let divisor: f64 = x.iter().map(|x| window(*x)).product();
            modes[index] *= Complex::from_polar(1.0 / divisor, -TAU * first * x.iter().sum::<f64>());
        });
        modes
    }

    /// The window of averages, x in cycles a cell.
    fn average(&self) -> impl Fn(f64) -> f64 {
        let b = self.averaged as f64;
        move |x: f64| if x == 0.0 { 1.0 } else { (PI * x).sin() / (b * (PI * x / b).sin()) }
    }

    /// Gas, in units of its mean.
    pub(super) fn gas(&self, communicator: &Communicator, mesh: &UniformMesh, mean: f64) -> SpeciesModes {
        let average = |f: &(dyn Fn(usize) -> f64 + Sync)| {
            let field = self.averages(communicator, mesh, f);
            self.modes(&field, 0.5, self.average())
        };
        SpeciesModes {
            delta: average(&|i| mesh.density[i] / mean - 1.0),
            velocity: [0, 1, 2].map(|axis| average(&|i| mesh.momentum[axis][i] / mesh.density[i])),
            displacement: None,
        }
    }

    /// A displaced lattice, whose density contrast is minus the divergence of its displacement.
    pub(super) fn lattice(&self, communicator: &Communicator, mesh: &UniformMesh) -> Option<SpeciesModes> {
        let lattice = mesh.lattice()?;
        // the lower corners of the cells that are averaged
        let first = 0.5 - 0.5 / self.averaged as f64;
        let modes = |values: &Vec<f64>| {
            let field = self.averages(communicator, mesh, &|i| values[i]);
            self.modes(&field, first, self.average())
        };
        let displacement = lattice.displacement.each_ref().map(modes);
        let mut delta = vec![Complex::ZERO; displacement[0].len()];
        self.for_each_mode((0.0, f64::INFINITY), |_, k, index, _| {
            delta[index] = (0..3).map(|a| displacement[a][index] * Complex::new(0.0, -k[a])).sum();
        });
        let velocity = lattice.velocity.each_ref().map(modes);
        Some(SpeciesModes { delta, velocity, displacement: Some(displacement) })
    }

    /// Particles at any positions.
    pub(super) fn set(&self, communicator: &Communicator, set: &ParticleSet, across: f64) -> SpeciesModes {
        let ratio = across * self.lengths[0]
            / self.lengths.iter().fold(0.0, |most: f64, l| most.max(*l))
            / self.cells[0] as f64;
        let order = if ratio > 3.9 {
            2
        } else if ratio > 1.9 {
            3
        } else {
            4
        };
        let largest = |of: &(dyn Fn(usize) -> f64 + Sync)| {
            communicator.max((0..set.len()).into_par_iter().map(of).reduce(|| 0.0, f64::max))
        };
        let heaviest = largest(&|n| f64::from(mass_of(set.id[n])));
        let fastest = [0, 1, 2].map(|axis| largest(&|n| f64::from(set.velocity[axis][n].abs())));
        let deposit = |fields: &mut [u64], n: usize| self.deposit(fields, set, n, order, heaviest, fastest);
        let fields = sums(communicator, (set.len(), AT_A_TIME), 4 * self.count(), deposit);
        let value = |field: usize, cell: usize| (fields[field * self.count() + cell] as i64) as f64;
        let mean = (0..self.count()).map(|cell| value(0, cell)).sum::<f64>() / self.count() as f64;
        let window = |x: f64| if x == 0.0 { 1.0 } else { ((PI * x).sin() / (PI * x)).powi(order) };
        let modes = |field: usize, offset: f64, scale: f64| {
            let values: Vec<f64> = (0..self.count()).map(|cell| (value(field, cell) / mean - offset) * scale).collect();
            self.modes(&values, 0.5, window)
        };
        SpeciesModes {
            delta: modes(0, 1.0, 1.0),
            velocity: [0, 1, 2].map(|axis| modes(1 + axis, 0.0, fastest[axis])),
            displacement: None,
        }
    }

    fn deposit(&self, fields: &mut [u64], set: &ParticleSet, n: usize, order: i32, heaviest: f64, fastest: [f64; 3]) {
        let mass = f64::from(mass_of(set.id[n])) / heaviest;
        let along = [0, 1, 2]
            .map(|axis| cloud(f64::from(set.position[axis][n]) / 2f64.powi(32) * self.cells[axis] as f64, order));
        let unit = 2f64.powi(BITS);
        let moving = [0, 1, 2]
            .map(|axis| if fastest[axis] > 0.0 { f64::from(set.velocity[axis][n]) / fastest[axis] } else { 0.0 });
        let [nx, ny, nz] = self.cells;
        let at = |axis: usize, offset: usize, of: usize| (along[axis].0 + offset as i64).rem_euclid(of as i64) as usize;
        for c in 0..order as usize {
            for b in 0..order as usize {
                let row = (at(2, c, nz) * ny + at(1, b, ny)) * nx;
                let part = mass * along[2].1[c] * along[1].1[b];
                for a in 0..order as usize {
                    let (cell, weight) = (row + at(0, a, nx), part * along[0].1[a] * unit);
                    let mut add = |field: usize, value: f64| {
                        let sum = &mut fields[field * self.count() + cell];
                        *sum = sum.wrapping_add(to_nearest(value));
                    };
                    add(0, weight);
                    (0..3).for_each(|axis| add(1 + axis, weight * moving[axis]));
                }
            }
        }
    }

    /// Means over the cells of this mesh of what a function gives for an offset in another.
    fn averages(&self, communicator: &Communicator, mesh: &UniformMesh, f: &(dyn Fn(usize) -> f64 + Sync)) -> Vec<f64> {
        let own = (0..mesh.cell_count()).into_par_iter().map(|i| f(i).abs()).reduce(|| 0.0, f64::max);
        let largest = communicator.max(own);
        if largest == 0.0 {
            return vec![0.0; self.count()];
        }
        let (b, [nx, ny, _]) = (self.averaged, self.cells);
        let unit = 2f64.powi(BITS) / largest;
        // row by row along x
        let length = mesh.cells[0];
        let rows = (mesh.cell_count() / length, (AT_A_TIME / length).max(1));
        let sums = sums(communicator, rows, self.count(), |sums, row| {
            let [_, y, z] = mesh.cell(row * length);
            let row_of_sums = &mut sums[(z / b * ny + y / b) * nx..][..nx];
            for (x, sum) in row_of_sums.iter_mut().enumerate() {
                let cells = row * length + x * b..row * length + (x + 1) * b;
                *sum = cells.fold(*sum, |sum, i| sum.wrapping_add(to_nearest(f(i) * unit)));
            }
        });
        let scale = 1.0 / unit / (b * b * b) as f64;
        sums.into_iter().map(|sum| (sum as i64) as f64 * scale).collect()
    }
}

/// Sums of integers that each row of every rank adds to, of all ranks. Collective.
///
/// * `rows`: number of own rows, and how many a thread adds at a time
fn sums(
    communicator: &Communicator,
    (rows, at_a_time): (usize, usize),
    length: usize,
    add: impl Fn(&mut [u64], usize) + Sync,
) -> Vec<u64> {
    let part = |start: usize| {
        let mut own = vec![0u64; length];
        (start..rows.min(start + at_a_time)).for_each(|row| add(&mut own, row));
        own
    };
    let united = |mut one: Vec<u64>, other: Vec<u64>| {
        one.iter_mut().zip(other).for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        one
    };
    let starts: Vec<usize> = (0..rows).step_by(at_a_time).collect();
    let mut sums = starts.into_par_iter().map(part).reduce(|| vec![0u64; length], united);
    communicator.sum(&mut sums);
    sums
}

/// The first of the cells that a particle has a share in, along an axis, and its shares: of B-splines of order 2 to 4.
fn cloud(at: f64, order: i32) -> (i64, [f64; 4]) {
    if order == 3 {
        let cell = at.floor();
        let d = at - cell - 0.5;
        return (cell as i64 - 1, [0.5 * (0.5 - d).powi(2), 0.75 - d * d, 0.5 * (0.5 + d).powi(2), 0.0]);
    }
    let cell = (at - 0.5).floor();
    let f = at - 0.5 - cell;
    if order == 2 {
        return (cell as i64, [1.0 - f, f, 0.0, 0.0]);
    }
    let g = 1.0 - f;
    let inner = |x: f64| (4.0 - 6.0 * x * x + 3.0 * x.powi(3)) / 6.0;
    (cell as i64 - 1, [g.powi(3) / 6.0, inner(f), inner(g), f.powi(3) / 6.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_of_nearest_integers() {
        for value in
            [0.0, 0.4, 0.6, -0.4, -0.6, 1e9 + 0.25, -1e9 - 0.75, 2f64.powi(38), -2f64.powi(38), 2f64.powi(50) + 1.0]
        {
            assert_eq!(to_nearest(value) as i64, value.round() as i64, "{value}");
        }
    }

    #[test]
    fn clouds_are_whole_and_centred() {
        for order in 2..=4 {
            for n in 0..20 {
                let at = 3.0 + f64::from(n) * 0.05;
                let (first, shares) = cloud(at, order);
                let sum: f64 = shares.iter().sum();
                let centre: f64 = shares.iter().enumerate().map(|(i, s)| s * ((first + i as i64) as f64 + 0.5)).sum();
                assert!((sum - 1.0).abs() < 1e-14 && (centre - at).abs() < 1e-14, "{order} {at} {sum} {centre}");
            }
        }
    }

    #[test]
    fn meshes_suit_the_particles() {
        let cells = |cells: [usize; 3], has_mesh, across| {
            Grid::of(cells, 1.0, has_mesh, across).map(|grid| (grid.cells, grid.averaged))
        };
        assert_eq!(cells([32; 3], true, None), Some(([32; 3], 1)));
        assert_eq!(cells([512; 3], true, None), Some(([64; 3], 8)));
        assert_eq!(cells([64, 16, 16], true, None), Some(([64, 16, 16], 1)));
        assert_eq!(cells([32; 3], true, Some(32.0)), Some(([16; 3], 2)));
        assert_eq!(cells([16; 3], false, Some(32.0)), Some(([16; 3], 1)));
        assert_eq!(cells([16; 3], false, Some(16.0)), Some(([16; 3], 1)));
        assert_eq!(cells([64; 3], false, Some(512.0)), Some(([64; 3], 1)));
        assert_eq!(cells([16; 3], false, Some(25.0)), Some(([50; 3], 1)));
        assert_eq!(cells([4, 3, 2], true, None), None);
    }
}

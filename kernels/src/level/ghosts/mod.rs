//! A group with the ghost cells around it, gathered from its neighbours.
//!
//! Each of the 26 regions around a group is filled in one way. Where a group of the same level lies there, its cells
//! are copied. Else they are interpolated from the coarser level with limited central slopes: a
//! fine cell centre lies a quarter of a coarse cell from the coarse centre on each axis, so its value is c ± s_x/4 ±
//! s_y/4 ± s_z/4, and the eight fine cells of a coarse one have its value as their mean. The energy follows from the entropy
//! scalar: an interpolated one would hold differences of the motion as heat. Beyond a boundary that is
//! not periodic cells are made from those inside, whichever way these are filled themselves, as
//! [`mod@crate::level::face_boundary`] says; the coarse cells of the slopes alike.
//!
//! A ghost value depends on the pool's cells and its place alone, so two groups that see one cell see the same bits.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;

use crate::device::buffer::Buffer;
use crate::device::device_table::DeviceTable;
use crate::layout::{
    CENTRE, ENERGY, ENTROPY, FIELDS, GROUP, GROUP_CELLS, GROUP_VALUES, HYDRO_BLOCK, HYDRO_GHOSTS, PATCH, direction,
};
use crate::level::face_boundary::{Origin, fill_end, origin, places};
use crate::level::level_topology::{LevelTopology, NONE};
use crate::point::dual_energy::energy_by_entropy;
use crate::point::eos::Eos;
use crate::point::slopes::interpolation_slope;
use crate::point::symmetric_sum;
use crate::real::Real;

/// Values of a block: `[field, k, j, i]`, each index from −3 to 18, i fastest.
pub const BLOCK_VALUES: usize = FIELDS * BLOCK_CELLS;
/// Cells of a block.
pub const BLOCK_CELLS: usize = HYDRO_BLOCK * HYDRO_BLOCK * HYDRO_BLOCK;

/// Coarse cells that cover the fine ghost cells on one side.
const COARSE_GHOSTS: usize = HYDRO_GHOSTS.div_ceil(2);
/// Coarse cells, along one axis, that cover a fine group and its ghost cells.
const COVER: usize = PATCH + 2 * COARSE_GHOSTS;
/// The same with one more cell on each side for the slopes.
const COARSE: usize = COVER + 2;
/// Of those, the ones of the parent and the ones of the group beside it.
const WITHIN: usize = PATCH + BESIDE;
const BESIDE: usize = COARSE_GHOSTS + 1;
/// Coarse cells that a row is interpolated from, and the room that takes: a multiple of all vector lengths, so that no
/// cells are left over. The last ones hold nothing of meaning.
const LANES: usize = COVER.next_multiple_of(16);
const ROW: usize = LANES + 2;
/// Fine cells of a row of coarse ones that precede the first ghost cell.
const SURPLUS: usize = 2 * COARSE_GHOSTS - HYDRO_GHOSTS;

/// Offset of cell (i, j, k) of `field` in a block, counted from the outermost ghost cell.
#[inline(always)]
pub const fn block_cell(field: usize, i: usize, j: usize, k: usize) -> usize {
    ((field * HYDRO_BLOCK + k) * HYDRO_BLOCK + j) * HYDRO_BLOCK + i
}

/// The coarser level at a time between an earlier state of it, kept apart, and the one in the pool: each conserved
/// value is earlier + `weight` (later − earlier). Between two states with positive densities and internal energies it has
/// them positive, because ½m²/ρ is convex.
#[derive(Clone, Copy, Debug)]
pub struct EarlierFluid<'a, T> {
    /// The earlier state, conserved, comoving, `[places, 6, 16, 16, 16]`.
    pub fluid: &'a Buffer<T>,
    /// AxisPosition in it of the group in each slot of the pool, [`NONE`] where there is none.
    pub places: &'a DeviceTable<u32>,
    /// 0 at the earlier time, 1 at the pool's.
    pub weight: T,
}

impl<T: Real> EarlierFluid<'_, T> {
    /// `N` values of the group in `slot` that now has the values `later`.
    #[inline(always)]
    fn interpolate<const N: usize>(&self, slot: u32, offset: usize, later: &[T; N]) -> [T; N] {
        let earlier = cells::<N, T>(self.fluid.host(), self.places[slot as usize], offset);
        std::array::from_fn(|n| earlier[n] + self.weight * (later[n] - earlier[n]))
    }
}

/// Room for the coarse cells under one group: one field at a time.
pub struct CoarseCells<T> {
    cells: Vec<T>,
}

impl<T: Real> CoarseCells<T> {
    /// Room for one group.
    pub fn new() -> Self {
        Self { cells: vec![T::zero(); COARSE * COARSE * ROW] }
    }
}

impl<T: Real> Default for CoarseCells<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Gathers group `g` of a level and three cells around it.
///
/// * `fluid`: the pool, all levels, `[slot, 6, 16, 16, 16]`
/// * `eos`: of interpolated cells the energy follows from the entropy scalar
/// * `earlier`: given where the coarser level's values are wanted before those in the pool
/// * `coarse`: work space
/// * `block`: the result, `[6, 22, 22, 22]`
///
/// # Panics
/// If a coarse group that the interpolation needs is missing: the octree is not properly nested.
#[inline(always)]
pub fn gather<T: Real>(
    tables: &LevelTopology,
    g: usize,
    fluid: &[T],
    earlier: Option<&EarlierFluid<T>>,
    eos: &Eos<T>,
    coarse: &mut CoarseCells<T>,
    block: &mut [T; BLOCK_VALUES],
) {
    let ghosts = -(HYDRO_GHOSTS as i32);
    let [low, high] = tables.ends(g, 0);
    let [y, z] = [1, 2].map(|axis| places::<HYDRO_BLOCK>(ghosts, tables.ends(g, axis)));
    let groups = tables.row(g);
    let interpolates = tables.has_coarse_neighbour(g);
    // the energy last: it follows from the others
    for field in [0, 1, 2, 3, ENTROPY, ENERGY] {
        if interpolates && field != ENERGY {
            gather_coarse(tables, g, fluid, earlier, field, &mut coarse.cells);
        }
        for k in 0..HYDRO_BLOCK {
            for j in 0..HYDRO_BLOCK {
                let beyond = origin(&[(1, &y[j]), (2, &z[k])], field);
                if let Origin::Fixed(value) = beyond {
                    block[block_cell(field, 0, j, k)..][..HYDRO_BLOCK].fill(value);
                    continue;
                }
                // the three groups that this row runs through
                let west = direction(-1, y[j].step, z[k].step);
                let [west, middle, east] = [groups[west], groups[west + 1], groups[west + 2]];
                let offset = field * GROUP_CELLS + (z[k].cell * GROUP + y[j].cell) * GROUP;
                if west == NONE || middle == NONE || east == NONE {
                    let row = match field {
                        ENERGY => energy_row(block, j, k, eos),
                        _ => interpolated_row(&coarse.cells, y[j].inside, z[k].inside),
                    };
                    block[block_cell(field, 0, j, k)..][..HYDRO_BLOCK].copy_from_slice(&row);
                }
                let to = &mut block[block_cell(field, 0, j, k)..][..HYDRO_BLOCK];
                if middle != NONE {
                    to[HYDRO_GHOSTS..HYDRO_GHOSTS + GROUP].copy_from_slice(cells::<GROUP, T>(fluid, middle, offset));
                }
                if west != NONE {
                    let last = cells::<HYDRO_GHOSTS, T>(fluid, west, offset + GROUP - HYDRO_GHOSTS);
                    to[..HYDRO_GHOSTS].copy_from_slice(last);
                }
                if east != NONE {
                    let first = cells::<HYDRO_GHOSTS, T>(fluid, east, offset);
                    to[HYDRO_GHOSTS + GROUP..].copy_from_slice(first);
                }
                if let Some(boundary) = low {
                    fill_end(boundary, field, HYDRO_GHOSTS, false, to);
                }
                if let Some(boundary) = high {
                    fill_end(boundary, field, HYDRO_GHOSTS, true, to);
                }
                if let Origin::Negated = beyond {
                    negate(to);
                }
            }
        }
    }
}

/// Changes the sign of every value.
#[inline(always)]
fn negate<T: Real>(row: &mut [T]) {
    for value in row {
        *value = -*value;
    }
}

/// `N` values of a slot of the pool.
#[inline(always)]
fn cells<const N: usize, T: Real>(fluid: &[T], slot: u32, offset: usize) -> &[T; N] {
    let start = slot as usize * GROUP_VALUES + offset;
    fluid[start..start + N].try_into().expect("the slice has the array's length")
}

/// The same of a coarse group, at the time that is asked for.
#[inline(always)]
fn timed_cells<const N: usize, T: Real>(
    fluid: &[T],
    earlier: Option<&EarlierFluid<T>>,
    slot: u32,
    offset: usize,
) -> [T; N] {
    let later = cells::<N, T>(fluid, slot, offset);
    earlier.map_or(*later, |earlier| earlier.interpolate(slot, offset, later))
}

/// Copies one field of the coarse cells under a group's block, `[14, 14, 14]` in rows of [`ROW`].
#[inline(always)]
fn gather_coarse<T: Real>(
    tables: &LevelTopology,
    g: usize,
    fluid: &[T],
    earlier: Option<&EarlierFluid<T>>,
    field: usize,
    coarse: &mut [T],
) {
    let upper = |a: usize| usize::from(tables.octants[g]) >> a & 1;
    let axis = |a: usize| places::<COARSE>((upper(a) * PATCH) as i32 - BESIDE as i32, tables.ends(g, a));
    let (y, z) = (axis(1), axis(2));
    let groups = tables.parent_row(g);
    // along x a row lies in the parent's own column of groups and reaches into the one beside it
    let (to_within, to_beside) = if upper(0) == 1 { (0, WITHIN) } else { (BESIDE, 0) };
    let (from_within, from_beside) = if upper(0) == 1 { (GROUP - WITHIN, 0) } else { (0, GROUP - BESIDE) };
    let step = if upper(0) == 1 { 1 } else { -1 };
    let beside_outside = tables.ends(g, 0)[upper(0)];
    for k in 0..COARSE {
        for j in 0..COARSE {
            let to = &mut coarse[(k * COARSE + j) * ROW..][..COARSE];
            let beyond = origin(&[(1, &y[j]), (2, &z[k])], field);
            if let Origin::Fixed(value) = beyond {
                to.fill(value);
                continue;
            }
            let within = groups[direction(0, y[j].step, z[k].step)];
            let beside = groups[direction(step, y[j].step, z[k].step)];
            let nested = within != NONE && beside != NONE;
            assert!(nested, "group {g} of this level touches no coarse group beside slot {}", groups[CENTRE]);
            let offset = field * GROUP_CELLS + (z[k].cell * GROUP + y[j].cell) * GROUP;
            let cells = timed_cells::<WITHIN, T>(fluid, earlier, within, offset + from_within);
            to[to_within..to_within + WITHIN].copy_from_slice(&cells);
            if let Some(boundary) = beside_outside {
                fill_end(boundary, field, BESIDE, step == 1, to);
            } else {
                let cells = timed_cells::<BESIDE, T>(fluid, earlier, beside, offset + from_beside);
                to[to_beside..to_beside + BESIDE].copy_from_slice(&cells);
            }
            if let Origin::Negated = beyond {
                negate(to);
            }
        }
    }
}

/// The total energies of a row of the block whose other fields are there.
#[inline(always)]
fn energy_row<T: Real>(block: &[T; BLOCK_VALUES], j: usize, k: usize, eos: &Eos<T>) -> [T; HYDRO_BLOCK] {
    let row = |field: usize| -> &[T; HYDRO_BLOCK] {
        block[block_cell(field, 0, j, k)..][..HYDRO_BLOCK].try_into().expect("a row has 22 cells")
    };
    let [density, x, y, z, entropy] = [row(0), row(1), row(2), row(3), row(ENTROPY)];
    let mut energies = [T::zero(); HYDRO_BLOCK];
    for i in 0..HYDRO_BLOCK {
        energies[i] = energy_by_entropy(&[density[i], x[i], y[i], z[i], T::zero(), entropy[i]], eos);
    }
    energies
}

/// The fine row at block coordinates (j, k).
#[inline(always)]
fn interpolated_row<T: Real>(coarse: &[T], j: usize, k: usize) -> [T; HYDRO_BLOCK] {
    let quarter = T::from_f64(0.25);
    let (j, k) = (j + SURPLUS, k + SURPLUS);
    let to_y = if j & 1 == 1 { quarter } else { -quarter };
    let to_z = if k & 1 == 1 { quarter } else { -quarter };
    let row = |j: usize, k: usize| &coarse[(k * COARSE + j) * ROW..][..ROW];
    let (j, k) = (j / 2 + 1, k / 2 + 1);
    let (centre, south, north, below, above) = (row(j, k), row(j - 1, k), row(j + 1, k), row(j, k - 1), row(j, k + 1));
    // a cell before the first ghost cell and some after the last come along
    let mut whole = [T::zero(); 2 * LANES];
    for m in 0..LANES {
        let i = m + 1;
        let c = centre[i];
        let slope_x = interpolation_slope(c - centre[i - 1], centre[i + 1] - c);
        let slope_y = interpolation_slope(c - south[i], north[i] - c);
        let slope_z = interpolation_slope(c - below[i], above[i] - c);
        let (x, y, z) = (quarter * slope_x, to_y * slope_y, to_z * slope_z);
        whole[2 * m] = c + symmetric_sum::of_three(-x, y, z);
        whole[2 * m + 1] = c + symmetric_sum::of_three(x, y, z);
    }
    whole[SURPLUS..][..HYDRO_BLOCK].try_into().expect("a row has 22 cells")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::{self, MOMENTUM};
    use crate::level::face_boundary::FaceBoundary;
    use crate::testing::{Mesh, Noise};

    fn block_of<T: Real>(mesh: &Mesh, level: usize, g: usize, fluid: &[T]) -> Box<[T; BLOCK_VALUES]> {
        let mut block: Box<[T; BLOCK_VALUES]> = vec![T::nan(); BLOCK_VALUES].into_boxed_slice().try_into().unwrap();
        gather(&mesh.tables(level), g, fluid, None, &Eos::new(5.0 / 3.0), &mut CoarseCells::new(), &mut block);
        block
    }

    /// The centre of block cell (i, j, k) of a fine group, in root cells.
    fn centre(group: [i32; 3], ijk: [usize; 3]) -> [f64; 3] {
        std::array::from_fn(|a| 0.5 * (f64::from(group[a]) * 16.0 + ijk[a] as f64 - 3.0 + 0.5))
    }

    fn cells() -> impl Iterator<Item = [usize; 3]> {
        (0..HYDRO_BLOCK.pow(3)).map(|n| [n % HYDRO_BLOCK, n / HYDRO_BLOCK % HYDRO_BLOCK, n / HYDRO_BLOCK.pow(2)])
    }

    #[test]
    fn linear_data_is_interpolated_exactly() {
        // fine groups in the middle of the box, in every octant, some with neighbours and some alone
        let fine = vec![[2, 2, 2], [3, 2, 2], [3, 3, 2], [3, 3, 3], [2, 3, 3]];
        let mesh = Mesh::new([3, 3, 3], false).with_level(fine.clone());
        let eos = Eos::new(5.0 / 3.0);
        let value = |x: [f64; 3], f: usize| 100.0 + f as f64 + (1.0 + f as f64) * x[0] - 2.0 * x[1] + 0.5 * x[2];
        let fluid = mesh.fill::<f64>(|x| {
            let mut u = std::array::from_fn(|f| value(x, f));
            u[ENERGY] = energy_by_entropy(&u, &eos);
            u
        });
        for (g, &group) in fine.iter().enumerate() {
            let block = block_of(&mesh, 1, g, &fluid);
            for [i, j, k] in cells() {
                let u = std::array::from_fn(|f| block[block_cell(f, i, j, k)]);
                assert_eq!(u[ENERGY], energy_by_entropy(&u, &eos), "{group:?} {i} {j} {k}");
                for f in (0..FIELDS).filter(|f| *f != ENERGY) {
                    // every number here is a small multiple of 1/8: no rounding
                    assert_eq!(
                        block[block_cell(f, i, j, k)],
                        value(centre(group, [i, j, k]), f),
                        "{group:?} {i} {j} {k}"
                    );
                }
            }
        }
    }

    #[test]
    fn two_groups_see_the_same_bits_in_a_ghost_cell() {
        let fine = vec![[1, 1, 1], [2, 1, 1], [2, 2, 1]];
        let mesh = Mesh::new([2, 2, 2], true).with_level(fine.clone());
        let fluid = mesh.fill::<f32>(|x| std::array::from_fn(|f| 2.0 + (x[0] + 0.7 * x[1] * x[2] + f as f64).sin()));
        let blocks: Vec<_> = (0..fine.len()).map(|g| block_of(&mesh, 1, g, &fluid)).collect();
        let mut seen = std::collections::HashMap::new();
        for (g, block) in blocks.iter().enumerate() {
            for [i, j, k] in cells() {
                for f in 0..FIELDS {
                    let place = centre(fine[g], [i, j, k]).map(|x| (4.0 * x) as i64);
                    let bits = block[block_cell(f, i, j, k)].to_bits();
                    assert_eq!(*seen.entry((place, f)).or_insert(bits), bits);
                }
            }
        }
    }

    #[test]
    fn the_mean_of_eight_interpolated_cells_is_the_coarse_cell() {
        let mesh = Mesh::new([2, 2, 2], true).with_level(vec![[1, 1, 1]]);
        let coarse = |x: [f64; 3]| 3.0 + (0.9 * x[0]).sin() + (0.4 * x[1] * x[2]).cos();
        let fluid = mesh.fill::<f64>(|x| [coarse(x); FIELDS]);
        let block = block_of(&mesh, 1, 0, &fluid);
        // fine cells −2, −1 below and 16, 17 above make whole coarse cells
        for [i, j, k] in cells().filter(|c| c.iter().all(|c| c % 2 == 1 && *c < 20)).filter(|c| c.contains(&1)) {
            let mean =
                (0..8).map(|o| block[block_cell(0, i + (o & 1), j + (o >> 1 & 1), k + (o >> 2))]).sum::<f64>() / 8.0;
            let x = centre([1, 1, 1], [i, j, k]).map(|x| x + 0.25);
            assert!((mean - coarse(x)).abs() < 4.0 * f64::EPSILON * mean);
        }
    }

    /// The value of a cell of a level at any lattice coordinate, from its definition: beyond the domain axis by axis,
    /// the last axis first; inside from the group there, or from the coarser level by limited slopes.
    fn value_at(mesh: &Mesh, fluid: &[f64], level: usize, cell: [i32; 3], field: usize) -> f64 {
        let n = mesh.root.map(|n| (n * 16) << level);
        for axis in (0..3).rev() {
            let x = cell[axis];
            if (0..n[axis]).contains(&x) {
                continue;
            }
            let mut inside = cell;
            let mut sign = 1.0;
            inside[axis] = if mesh.periodic[axis] {
                x.rem_euclid(n[axis])
            } else {
                match mesh.faces[2 * axis + usize::from(x > 0)] {
                    FaceBoundary::Fixed(state) => return state[field],
                    FaceBoundary::Outflow => x.clamp(0, n[axis] - 1),
                    FaceBoundary::Reflecting => {
                        sign = if field == MOMENTUM + axis { -1.0 } else { 1.0 };
                        if x < 0 { -1 - x } else { 2 * n[axis] - 1 - x }
                    }
                }
            };
            return sign * value_at(mesh, fluid, level, inside, field);
        }
        let first: usize = mesh.levels[..level].iter().map(Vec::len).sum();
        if let Some(g) = mesh.levels[level].iter().position(|&c| c == cell.map(|x| x / 16)) {
            let [i, j, k] = cell.map(|x| (x % 16) as usize);
            return fluid[(first + g) * GROUP_VALUES + field * GROUP_CELLS + layout::cell(i, j, k)];
        }
        let coarse = cell.map(|x| x / 2);
        let centre = value_at(mesh, fluid, level - 1, coarse, field);
        let step = |axis: usize| {
            let neighbour = |to: i32| {
                let mut at = coarse;
                at[axis] += to;
                value_at(mesh, fluid, level - 1, at, field)
            };
            let towards = if cell[axis] & 1 == 1 { 0.25 } else { -0.25 };
            towards * interpolation_slope(centre - neighbour(-1), neighbour(1) - centre)
        };
        centre + symmetric_sum::of_three(step(0), step(1), step(2))
    }

    /// Rough data on two refined levels that touch faces, edges and corners of the domain, under any mix of boundaries.
    /// Ghost cells of a fine group between two times of the coarse level are those of the coarse state interpolated in
    /// time first; its own cells and those of its siblings stay as they are.
    #[test]
    fn coarse_values_are_interpolated_in_time() {
        let fine = vec![[1, 1, 1], [2, 1, 1]];
        let mesh = Mesh::new([2, 2, 2], true).with_level(fine.clone());
        let at = |t: f64| {
            mesh.fill::<f64>(|x| std::array::from_fn(|f| 3.0 + f as f64 + (x[0] + 0.7 * x[1] * x[2]).sin() + t * x[2]))
        };
        let later = at(1.0);
        // the earlier state of the eight coarse groups alone, in another order
        let device = crate::Device::cpu(1).unwrap();
        let earlier: Vec<f64> = at(0.0)[..8 * GROUP_VALUES].chunks(GROUP_VALUES).rev().flatten().copied().collect();
        let earlier = Buffer::from_host(&device, earlier).unwrap();
        let places: DeviceTable<u32> = (0..10).map(|slot| if slot < 8 { 7 - slot } else { NONE }).collect();
        for weight in [0.0, 0.25, 0.5, 0.75] {
            let mut between = at(weight);
            between[8 * GROUP_VALUES..].copy_from_slice(&later[8 * GROUP_VALUES..]);
            for g in 0..fine.len() {
                let expected = block_of(&mesh, 1, g, &between);
                let mut block = expected.clone();
                let earlier = EarlierFluid { fluid: &earlier, places: &places, weight };
                let tables = mesh.tables(1);
                gather(&tables, g, &later, Some(&earlier), &Eos::new(5.0 / 3.0), &mut CoarseCells::new(), &mut block);
                let worst = block.iter().zip(&*expected).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
                // a few roundings
                assert!(worst < 8.0 * f64::EPSILON, "weight {weight}: {worst:e}");
                if weight == 0.0 {
                    let later = block_of(&mesh, 1, g, &later);
                    assert!(later.iter().zip(&*block).any(|(a, b)| (a - b).abs() > 0.1), "time matters");
                }
            }
        }
    }

    #[test]
    fn ghost_cells_beyond_any_mix_of_boundaries_agree_with_their_definition() {
        let mut noise = Noise::new(7);
        for case in 0..14 {
            let periodic = [0, 1, 2].map(|_| noise.next() > 0.6);
            let mut kind = || match case {
                0 => FaceBoundary::Outflow,
                1 => FaceBoundary::Reflecting,
                _ if noise.next() < -0.3 => FaceBoundary::Outflow,
                _ if noise.next() < 0.0 => FaceBoundary::Reflecting,
                _ => FaceBoundary::Fixed(std::array::from_fn(|_| noise.next())),
            };
            let faces = std::array::from_fn(|_| kind());
            let periodic = if case < 2 { [false; 3] } else { periodic };
            let mesh = Mesh::new([2, 1, 1], false).with_faces(periodic, faces).with_level(vec![
                [0, 0, 0],
                [1, 0, 0],
                [3, 1, 1],
                [0, 1, 0],
                [2, 0, 1],
            ]);
            let fluid = mesh.fill::<f64>(|_| std::array::from_fn(|_| noise.next()));
            for (level, g) in [(0, 0), (0, 1), (1, 0), (1, 1), (1, 2), (1, 4)] {
                let block = block_of(&mesh, level, g, &fluid);
                for [i, j, k] in cells() {
                    let at = [i, j, k];
                    let corner = mesh.levels[level][g];
                    let cell = std::array::from_fn(|a| corner[a] * 16 + at[a] as i32 - HYDRO_GHOSTS as i32);
                    for f in 0..4 {
                        let expected = value_at(&mesh, &fluid, level, cell, f);
                        let found = block[block_cell(f, i, j, k)];
                        assert_eq!(found, expected, "case {case} {faces:?} level {level} {cell:?} field {f}");
                    }
                }
            }
        }
    }
}

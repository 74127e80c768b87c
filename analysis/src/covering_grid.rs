//! A field on a uniform grid of one level's cells: finer cells averaged, coarser ones piecewise constant.
//!
//! Ranks have planes of the grid each. Every rank computes the grid over its own patches of the root level, block by block,
//! and sends each plane of a block to the rank that has it.

use crate::cell_fields::{Average, CellField, Gas, field_by};
use crate::cells::patch_cells;
use crate::error::AnalysisError;
use crate::messages::exchange;
use crate::part::Part;
use comove_sim::kernels::layout::{OCTANTS, PATCH, octant_origin};
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::Communicator;
use comove_sim::{Key, Snapshot};
use ndarray::Array3;
use rayon::prelude::*;
use std::ops::Range;

/// Memory that a grid may take on a rank: 8 GiB, the size of 1024³ values.
pub const GRID_LIMIT_MIB: usize = 8192;
/// Values that a rank computes before it sends them: 16 MiB, of which there are five copies on their way.
const AT_ONCE: usize = 1 << 21;
/// Blocks that it computes at once however large they are, for its threads.
const BLOCKS: usize = 16;

/// A field on a grid of level `level`, `[k, j, i]`, in the field's unit, if it takes no more than so much memory.
///
/// Finer cells are averaged by volume or by mass, as the field's entry in the table says.
///
/// # Errors
/// [`AnalysisError::UnknownField`], [`AnalysisError::MissingField`]; [`AnalysisError::GridTooLarge`].
pub fn grid_within(
    snapshot: &Snapshot,
    field: &str,
    level: usize,
    limit_mib: usize,
) -> Result<Array3<f64>, AnalysisError> {
    slab_by(&Communicator::alone(), &snapshot.into(), field, level, limit_mib)
}

/// This rank's [`planes`] of the grid of a snapshot in parts, `[planes, j, i]`; the limit is that of a rank. Collective.
pub(crate) fn slab_by(
    communicator: &Communicator,
    part: &Part,
    field: &str,
    level: usize,
    limit_mib: usize,
) -> Result<Array3<f64>, AnalysisError> {
    let field = field_by(communicator, part, field)?;
    let ranks = communicator.size();
    let cells = cells_within(part, level, limit_mib, ranks)?;
    let [nx, ny, nz] = cells;
    let own = planes(nz, communicator.rank(), ranks);
    let blocks = Blocks::new(communicator, part, &field, level);
    let side = blocks.side;
    let at_once = (AT_ONCE / side.pow(3)).max(BLOCKS);
    let most_blocks = (0..ranks).map(|rank| blocks.range(rank).len()).max().unwrap_or(0);
    let mut values = vec![0.0; nx * ny * own.len()];
    for start in (0..most_blocks).step_by(at_once) {
        let now = |rank: usize| {
            let all = blocks.range(rank);
            (all.start + start).min(all.end)..(all.start + start + at_once).min(all.end)
        };
        let computed: Vec<Vec<f64>> = now(communicator.rank()).into_par_iter().map(|n| blocks.values(n)).collect();
        let mut to = vec![Vec::new(); ranks];
        for (n, values) in now(communicator.rank()).zip(&computed) {
            for (rank, to) in to.iter_mut().enumerate() {
                let met = blocks.planes_of(n, &planes(nz, rank, ranks));
                to.extend_from_slice(&values[met.start * side * side..met.end * side * side]);
            }
        }
        drop(computed);
        let from = exchange(communicator, to);
        // what there is now, by layer of blocks: its first plane, its place in the layer, its values
        let mut layers = vec![Vec::new(); nz / side];
        for (rank, mut received) in from.iter().enumerate().map(|(rank, from)| (rank, from.as_slice())) {
            for n in now(rank) {
                let met = blocks.planes_of(n, &own);
                let (block, rest) = received.split_at(met.len() * side * side);
                received = rest;
                let [x, y, z] = blocks.corner(n);
                layers[z / side].push((z + met.start, y * nx + x, block));
            }
        }
        values.par_chunks_exact_mut(nx * ny).zip(own.clone()).for_each(|(plane, z)| {
            for (first, corner, block) in &layers[z / side] {
                for (j, line) in block[(z - first) * side * side..][..side * side].chunks_exact(side).enumerate() {
                    plane[corner + j * nx..][..side].copy_from_slice(line);
                }
            }
        });
    }
    Ok(Array3::from_shape_vec([own.len(), ny, nx], values).expect("as many values as cells"))
}

/// The cells of the grid of a level along x, y, z, if so many ranks that share it have room.
///
/// # Errors
/// [`AnalysisError::GridTooLarge`].
pub(crate) fn cells_within(
    part: &Part,
    level: usize,
    limit_mib: usize,
    ranks: usize,
) -> Result<[usize; 3], AnalysisError> {
    let ratio = u32::try_from(level).ok().and_then(|level| 1usize.checked_shl(level)).unwrap_or(usize::MAX);
    let cells = part.tree.cells(0).map(|n| n.saturating_mul(ratio));
    let most = [cells[0], cells[1], cells[2].div_ceil(ranks)];
    let bytes = most.into_iter().fold(8, usize::saturating_mul);
    match bytes >> 20 > limit_mib {
        true => Err(AnalysisError::GridTooLarge { level, cells, needed_mib: bytes >> 20, limit_mib }),
        false => Ok(cells),
    }
}

/// The planes of a grid, or other even parts of so many things, that a rank has.
pub(crate) fn planes(all: usize, rank: usize, ranks: usize) -> Range<usize> {
    all * rank / ranks..all * (rank + 1) / ranks
}

/// The grid in blocks, each over one patch of the root level, which are computed independently of each other: those of each
/// root group one after the other, in key order.
struct Blocks<'a> {
    part: &'a Part<'a>,
    field: &'a CellField,
    gas: Gas,
    level: usize,
    /// Cells of the grid along each axis of a block.
    side: usize,
    /// The leaf patches in each block of this rank, in key order.
    leaves: Vec<Vec<LeafPatch>>,
    /// The first block of this rank.
    first: usize,
}

impl<'a> Blocks<'a> {
    fn new(communicator: &Communicator, part: &'a Part<'a>, field: &'a CellField, level: usize) -> Self {
        let groups = part.groups(communicator.rank(), 0);
        let mut leaves = vec![Vec::new(); groups.len() * OCTANTS];
        for patch in part.leaf_patches() {
            let in_root = patch.first_cell.map(|c| (c >> patch.level) / PATCH);
            let group = Key::new(0, in_root.map(|c| c as u32 / 2));
            let octant = (0..3).map(|a| (in_root[a] % 2) << a).sum::<usize>();
            let place = part.tree.find(group).expect("level 0 covers the box");
            leaves[(place - groups.start) * OCTANTS + octant].push(patch);
        }
        let gas = Gas::by(communicator, part);
        Self { part, field, gas, level, side: PATCH << level, leaves, first: groups.start * OCTANTS }
    }

    /// The blocks of a rank.
    fn range(&self, rank: usize) -> Range<usize> {
        let groups = self.part.groups(rank, 0);
        groups.start * OCTANTS..groups.end * OCTANTS
    }

    /// The first cell of a block.
    fn corner(&self, block: usize) -> [usize; 3] {
        let group = self.part.tree.level(0)[block / OCTANTS];
        let octant = octant_origin(block % OCTANTS);
        std::array::from_fn(|a| (group.coordinate[a] as usize * 2 + octant[a] / PATCH) * self.side)
    }

    /// The planes of a block, counted from its first, that are among some of the grid.
    fn planes_of(&self, block: usize, planes: &Range<usize>) -> Range<usize> {
        let z = self.corner(block)[2];
        let within = |plane: usize| plane.clamp(z, z + self.side) - z;
        within(planes.start)..within(planes.end)
    }

    /// The grid in a block of this rank, `[k, j, i]`.
    fn values(&self, block: usize) -> Vec<f64> {
        let side = self.side;
        let by_mass = self.field.average == Average::Mass;
        let mut values = vec![0.0; side * side * side];
        let mut weights = vec![0.0; if by_mass { values.len() } else { 0 }];
        for &patch in &self.leaves[block - self.first] {
            // cells of the grid along one axis of a leaf cell, or the share of one that it fills
            let width = 1 << self.level.saturating_sub(patch.level);
            let shift = patch.level.saturating_sub(self.level);
            let share = 1.0 / f64::from(1 << shift).powi(3);
            for (n, cell) in patch_cells(self.part.snapshot, patch).enumerate() {
                let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
                let first: [usize; 3] =
                    std::array::from_fn(|a| ((patch.first_cell[a] + inside[a]) >> shift) * width % side);
                let weight = if by_mass { share * self.field.density(&cell) } else { share };
                let value = weight * self.field.value(&self.gas, &cell);
                for k in first[2]..first[2] + width {
                    for j in first[1]..first[1] + width {
                        let line = (k * side + j) * side + first[0];
                        values[line..line + width].iter_mut().for_each(|sum| *sum += value);
                        if by_mass {
                            weights[line..line + width].iter_mut().for_each(|sum| *sum += weight);
                        }
                    }
                }
            }
        }
        // none where the average is by volume
        values.iter_mut().zip(&weights).for_each(|(value, weight)| *value /= weight);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::leaf_at;
    use crate::fixture::Fixture;
    use crate::fixture::{grid, mean_density};

    /// At every level the grid keeps the mean density; at the finest it is the leaf cell at each place.
    #[test]
    fn keeps_the_mass_and_equals_the_leaves() {
        let snapshot = Fixture::blob().build();
        let mean = mean_density(&snapshot);
        for level in 0..=2 {
            let density = grid(&snapshot, "density", level).unwrap();
            // two million additions, each good to 1e-16 of the sum
            assert!((density.mean().unwrap() / mean - 1.0).abs() < 1e-10);
        }
        let velocity = grid(&snapshot, "velocity_y", 2).unwrap();
        let gas = Gas::new(&snapshot);
        let width = snapshot.cell_width(2);
        for ((k, j, i), &value) in velocity.indexed_iter().step_by(1009) {
            let leaf = leaf_at(&snapshot, [i, j, k].map(|c| (c as f64 + 0.5) * width));
            assert!((value - gas.velocity_km_s(&leaf, 1)).abs() < 1e-12 * value.abs().max(1.0));
        }
    }

    /// Whatever the level, what does not fit is refused.
    #[test]
    fn levels_beyond_memory_are_refused() {
        let snapshot = Fixture::blob().build();
        for level in [20, 62, 63, 64, 1 << 32, usize::MAX] {
            let refused = grid(&snapshot, "density", level);
            assert!(matches!(refused, Err(AnalysisError::GridTooLarge { .. })), "level {level}");
        }
    }

    /// In a box of three extents each value is the leaf cell at its place.
    #[test]
    fn uneven_boxes_have_uneven_grids() {
        let snapshot = Fixture::long().build();
        let density = grid(&snapshot, "density", 1).unwrap();
        assert_eq!(density.dim(), (32, 64, 128));
        assert!((density.mean().unwrap() / mean_density(&snapshot) - 1.0).abs() < 1e-12);
        for ((k, j, i), &value) in density.indexed_iter().step_by(101) {
            let leaf = leaf_at(&snapshot, [i, j, k].map(|c| (c as f64 + 0.5) / 128.0));
            assert_eq!(value, leaf.fluid[0]);
        }
    }

    /// Averaging by mass gives the velocity of the mean: momentum over density of the restricted cells.
    #[test]
    fn velocities_are_averaged_by_mass() {
        let snapshot = Fixture::blob().build();
        let velocity = grid(&snapshot, "velocity_x", 0).unwrap();
        for (index, key) in snapshot.state.tree.level(0).iter().enumerate() {
            let (momentum, density) = (snapshot.state.field(index, 1), snapshot.state.field(index, 0));
            let first = key.coordinate.map(|c| c as usize * 16);
            for ((k, j, i), m) in momentum.indexed_iter() {
                let expected = 200.0 * m / density[[k, j, i]];
                let value = velocity[[first[2] + k, first[1] + j, first[0] + i]];
                assert!((value - expected).abs() < 1e-10, "{value} {expected}");
            }
        }
    }

    #[test]
    fn a_grid_beyond_memory_is_refused() {
        let snapshot = Fixture::uniform(1.0).build();
        let message = grid(&snapshot, "density", 9).unwrap_err().to_string();
        assert!(message.contains("level 9") && message.contains("[16384, 16384, 16384]"), "{message}");
        assert!(grid(&snapshot, "density", 200).is_err());
        let no_potential = grid(&snapshot, "potential", 0).unwrap_err();
        assert!(matches!(no_potential, AnalysisError::MissingField { .. }));
    }
}

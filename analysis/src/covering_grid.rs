//! A field on a uniform grid of one level's cells: finer cells averaged, coarser ones piecewise constant.

use crate::cell_fields::{Average, CellField, Gas, field_of};
use crate::cells::patch_cells;
use crate::error::AnalysisError;
use comove_sim::Snapshot;
use comove_sim::kernels::layout::{DENSITY, PATCH};
use comove_sim::octree::tree::LeafPatch;
use ndarray::Array3;
use rayon::prelude::*;

/// Memory that [`grid`] allows itself: 8 GiB, the size of 1024³ values.
pub const GRID_LIMIT_MIB: usize = 8192;

/// A field on a grid of level `level`, `[k, j, i]`, in the field's unit.
///
/// Finer cells are averaged by volume or by mass, as the field's entry in the table says.
///
/// # Errors
/// [`AnalysisError::UnknownField`], [`AnalysisError::MissingField`]; [`AnalysisError::GridTooLarge`] beyond
/// [`GRID_LIMIT_MIB`].
pub fn grid(snapshot: &Snapshot, field: &str, level: usize) -> Result<Array3<f64>, AnalysisError> {
    grid_within(snapshot, field, level, GRID_LIMIT_MIB)
}

/// [`grid`] with a memory limit of its own.
///
/// # Errors
/// As [`grid`].
pub fn grid_within(
    snapshot: &Snapshot,
    field: &str,
    level: usize,
    limit_mib: usize,
) -> Result<Array3<f64>, AnalysisError> {
    let field = field_of(snapshot, field)?;
    let root = snapshot.state.tree.cells(0);
    let ratio = u32::try_from(level).ok().and_then(|level| 1usize.checked_shl(level)).unwrap_or(usize::MAX);
    let cells = root.map(|n| n.saturating_mul(ratio));
    let bytes = cells.into_iter().fold(8, usize::saturating_mul);
    if bytes >> 20 > limit_mib {
        return Err(AnalysisError::GridTooLarge { level, cells, needed_mib: bytes >> 20, limit_mib });
    }
    let [nx, ny, nz] = cells;
    let side = PATCH << level;
    let blocks = Blocks { snapshot, field, gas: Gas::new(snapshot), level, leaves: leaves_by_root_patch(snapshot) };
    let [across, along] = [nx / side, ny / side];
    let mut values = vec![0.0; nx * ny * nz];
    for (slab, values) in values.chunks_exact_mut(side * ny * nx).enumerate() {
        let of_slab = (0..across * along).into_par_iter().map(|n| blocks.values(slab * across * along + n));
        let of_slab: Vec<Vec<f64>> = of_slab.collect();
        values.par_chunks_exact_mut(nx).enumerate().for_each(|(line, values)| {
            let (k, j) = (line / ny, line % ny);
            for (x, values) in values.chunks_exact_mut(side).enumerate() {
                let start = (k * side + j % side) * side;
                values.copy_from_slice(&of_slab[j / side * across + x][start..start + side]);
            }
        });
    }
    Ok(Array3::from_shape_vec([nz, ny, nx], values).expect("as many values as cells"))
}

/// The leaf patches in each patch of the root level (x fastest), in key order.
fn leaves_by_root_patch(snapshot: &Snapshot) -> Vec<Vec<LeafPatch>> {
    let tree = &snapshot.state.tree;
    let [nx, ny, nz] = tree.cells(0).map(|n| n / PATCH);
    let mut leaves = vec![Vec::new(); nx * ny * nz];
    for patch in tree.leaf_patches() {
        let [x, y, z] = patch.first_cell.map(|c| (c >> patch.level) / PATCH);
        leaves[(z * ny + y) * nx + x].push(patch);
    }
    leaves
}

/// The grid in blocks, each over one patch of the root level, which are computed independently of each other.
struct Blocks<'a> {
    snapshot: &'a Snapshot,
    field: &'a CellField,
    gas: Gas,
    level: usize,
    leaves: Vec<Vec<LeafPatch>>,
}

impl Blocks<'_> {
    /// The grid in a block, `[k, j, i]`.
    fn values(&self, block: usize) -> Vec<f64> {
        let side = PATCH << self.level;
        let by_mass = self.field.average == Average::Mass;
        let mut values = vec![0.0; side * side * side];
        let mut weights = vec![0.0; if by_mass { values.len() } else { 0 }];
        for &patch in &self.leaves[block] {
            // cells of the grid along one axis of a leaf cell, or the share of one that it fills
            let width = 1 << self.level.saturating_sub(patch.level);
            let shift = patch.level.saturating_sub(self.level);
            let share = 1.0 / f64::from(1 << shift).powi(3);
            for (n, cell) in patch_cells(self.snapshot, patch).enumerate() {
                let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
                let first: [usize; 3] =
                    std::array::from_fn(|a| ((patch.first_cell[a] + inside[a]) >> shift) * width % side);
                let weight = if by_mass { share * cell.fluid[DENSITY] } else { share };
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
    use crate::cells::{leaf_at, mean_density};
    use crate::fixture::Fixture;

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
            assert_eq!(value, leaf.fluid[DENSITY]);
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

//! Which groups of the next level the criteria ask for.

use crate::uniform_mesh::UniformMesh;
use comove_sim::kernels::layout::PATCH;
use comove_sim::Criterion;
use comove_sim::{Boundary, Key};
use std::collections::BTreeSet;

/// The groups of level `level` + 1 whose parent patch has a cell that meets a criterion, or has one within `buffer`
/// cells along each axis (paper, section 2.1).
///
/// `mesh` is the complete level `level`; across the box's faces the buffer reaches as the boundary says.
pub(super) fn wanted_groups(
    mesh: &UniformMesh,
    level: u8,
    boundary: Boundary,
    criteria: &[Criterion],
    buffer: u32,
) -> BTreeSet<Key> {
    let patches = mesh.cells.map(|n| n / PATCH);
    let [px, py, pz] = patches;
    let mut flagged = vec![false; px * py * pz];
    for index in 0..mesh.cell_count() {
        if !criteria.iter().any(|criterion| meets(criterion, usize::from(level), mesh, index)) {
            continue;
        }
        // A patch lies within reach of the cell where the cell lies within the buffer of the patch.
        let cell = mesh.cell(index);
        let [xs, ys, zs] = std::array::from_fn(|axis| reach(cell[axis], buffer, patches[axis], boundary));
        for z in &zs {
            for y in &ys {
                for x in &xs {
                    flagged[(z * py + y) * px + x] = true;
                }
            }
        }
    }
    let key = |n: usize| Key::new(level + 1, [n % px, n / px % py, n / (px * py)].map(|c| c as u32));
    flagged.iter().enumerate().filter(|(_, flag)| **flag).map(|(n, _)| key(n)).collect()
}

/// Patches along one axis that have a cell at most `buffer` cells from `cell`.
fn reach(cell: usize, buffer: u32, patches: usize, boundary: Boundary) -> Vec<usize> {
    let (cell, buffer, patches) = (cell as i64, i64::from(buffer), patches as i64);
    let (from, to) = ((cell - buffer).div_euclid(PATCH as i64), (cell + buffer).div_euclid(PATCH as i64));
    match boundary {
        Boundary::Periodic => {
            (from..=to).take(patches as usize).map(|patch| patch.rem_euclid(patches) as usize).collect()
        }
        Boundary::Outflow => (from.max(0)..=to.min(patches - 1)).map(|patch| patch as usize).collect(),
    }
}

fn meets(criterion: &Criterion, level: usize, mesh: &UniformMesh, index: usize) -> bool {
    match criterion {
        Criterion::DensityAbove { thresholds } => thresholds.get(level).is_some_and(|t| mesh.density[index] > *t),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A mesh of density 1 with density 10 in one cell.
    fn mesh_with_peak(cells: [usize; 3], peak: [usize; 3]) -> UniformMesh {
        let n = cells.iter().product();
        let mut mesh = UniformMesh {
            cells,
            density: vec![1.0; n],
            momentum: [vec![0.0; n], vec![0.0; n], vec![0.0; n]],
            internal_energy: vec![1.0; n],
        };
        let index = mesh.index(peak);
        mesh.density[index] = 10.0;
        mesh
    }

    proptest! {
        /// Against the definition: the distance between the cell and the nearest cell of a patch, axis by axis.
        #[test]
        fn reach_is_distance(x in 0usize..48, y in 0usize..16, z in 0usize..32, buffer in 0u32..20) {
            let cells = [48, 16, 32];
            let mesh = mesh_with_peak(cells, [x, y, z]);
            let criteria = [Criterion::DensityAbove { thresholds: vec![1e9, 9.0] }];
            for boundary in [Boundary::Periodic, Boundary::Outflow] {
                let wanted = wanted_groups(&mesh, 1, boundary, &criteria, buffer);
                let near = |axis: usize, patch: usize, at: usize| {
                    (0..PATCH).any(|c| {
                        let distance = (patch * PATCH + c).abs_diff(at);
                        let around = if boundary == Boundary::Periodic { cells[axis] - distance } else { distance };
                        distance.min(around) as u32 <= buffer
                    })
                };
                for pz in 0..4 {
                    for py in 0..2 {
                        for px in 0..6 {
                            let expected = near(0, px, x) && near(1, py, y) && near(2, pz, z);
                            let key = Key::new(2, [px, py, pz].map(|c| c as u32));
                            prop_assert_eq!(wanted.contains(&key), expected, "{:?} {:?}", key, boundary);
                        }
                    }
                }
            }
            // levels beyond the list are not refined
            prop_assert!(wanted_groups(&mesh, 2, Boundary::Periodic, &criteria, buffer).is_empty());
        }
    }
}

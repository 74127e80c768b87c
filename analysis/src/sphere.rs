//! The leaf cells in and around a sphere, found by descending the octree from the root groups that it touches.

use crate::cells::{LeafCell, read_cell};
use comove_sim::kernels::layout::{GROUP, OCTANTS, PATCH, cell, octant_origin};
use comove_sim::{Key, Snapshot};

/// Calls `visit(cell, offset)` for every leaf cell that touches the sphere, in an order that depends on the tree and
/// the sphere alone; `offset` is the cell's centre minus the sphere's, across periodic boundaries. Lengths in code
/// units.
///
/// A sphere wider than a periodic box meets some cells in several images, once each.
pub fn visit_sphere(snapshot: &Snapshot, centre: [f64; 3], radius: f64, mut visit: impl FnMut(&LeafCell, [f64; 3])) {
    let width = snapshot.cell_width(0) * GROUP as f64;
    let first = centre.map(|c| ((c - radius) / width).floor() as i32);
    let last = centre.map(|c| ((c + radius) / width).floor() as i32);
    let sphere = Sphere { snapshot, centre, radius };
    for z in first[2]..=last[2] {
        for y in first[1]..=last[1] {
            for x in first[0]..=last[0] {
                let offset = [x, y, z];
                let Some(key) = snapshot.state.tree.neighbour(Key::new(0, [0; 3]), offset) else { continue };
                let shift = std::array::from_fn(|a| f64::from(offset[a] - key.coordinate[a] as i32) * width);
                let group = snapshot.state.tree.index(key).expect("level 0 covers the box");
                sphere.descend(key, group, shift, &mut visit);
            }
        }
    }
}

/// y − x, to the nearest image along the axes where the box is periodic. Code length.
pub fn separation(snapshot: &Snapshot, x: [f64; 3], y: [f64; 3]) -> [f64; 3] {
    let lengths = snapshot.box_lengths();
    let periodic = snapshot.state.tree.periodic();
    std::array::from_fn(|a| {
        let d = y[a] - x[a];
        if periodic[a] { d - lengths[a] * (d / lengths[a]).round() } else { d }
    })
}

/// |x|.
pub(crate) fn norm(x: [f64; 3]) -> f64 {
    (x[0] * x[0] + x[1] * x[1] + x[2] * x[2]).sqrt()
}

struct Sphere<'a> {
    snapshot: &'a Snapshot,
    centre: [f64; 3],
    radius: f64,
}

impl Sphere<'_> {
    /// Visits the leaf patches of a group, moved by `shift`, and its children.
    fn descend(&self, key: Key, group: usize, shift: [f64; 3], visit: &mut impl FnMut(&LeafCell, [f64; 3])) {
        let level = usize::from(key.level);
        let width = self.snapshot.cell_width(level);
        for octant in 0..OCTANTS {
            let origin = octant_origin(octant);
            let first: [usize; 3] = std::array::from_fn(|a| key.coordinate[a] as usize * GROUP + origin[a]);
            let half = PATCH as f64 / 2.0;
            let middle = std::array::from_fn(|a| (first[a] as f64 + half) * width + shift[a] - self.centre[a]);
            if !self.touches(middle, half * width) {
                continue;
            }
            if let Some(child) = self.snapshot.state.tree.index(key.child(octant)) {
                self.descend(key.child(octant), child, shift, visit);
                continue;
            }
            for k in 0..PATCH {
                for j in 0..PATCH {
                    for i in 0..PATCH {
                        let inside = [i, j, k];
                        let position = std::array::from_fn(|a| ((first[a] + inside[a]) as f64 + 0.5) * width);
                        let offset = std::array::from_fn(|a| position[a] + shift[a] - self.centre[a]);
                        if self.touches(offset, 0.5 * width) {
                            let index = cell(origin[0] + i, origin[1] + j, origin[2] + k);
                            visit(&read_cell(self.snapshot, group, index, position, level, width), offset);
                        }
                    }
                }
            }
        }
    }

    /// Whether a cube at `offset` from the centre, of half width `half`, touches the sphere.
    fn touches(&self, offset: [f64; 3], half: f64) -> bool {
        norm(offset.map(|d| (d.abs() - half).max(0.0))) <= self.radius
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cells::leaf_cells;
    use crate::fixture::Fixture;

    /// The cells found are those of a search over all leaves.
    #[test]
    fn finds_what_a_search_over_all_leaves_finds() {
        let cube = Fixture::blob().build();
        let long = Fixture::long().build();
        for (snapshot, centre, radius) in [
            (&cube, [0.3, 0.4, 0.55], 0.07),
            (&cube, [0.98, 0.01, 0.5], 0.2),
            (&cube, [0.5, 0.5, 0.5], 0.49),
            (&long, [0.9, 0.45, 0.02], 0.12),
        ] {
            let mut found: Vec<[f64; 3]> = Vec::new();
            visit_sphere(snapshot, centre, radius, |cell, offset| {
                assert!(norm(separation(snapshot, centre, cell.position)) - norm(offset) < 1e-12);
                found.push(cell.position);
            });
            let mut expected: Vec<[f64; 3]> = leaf_cells(snapshot)
                .filter(|c| {
                    let d = separation(snapshot, centre, c.position);
                    norm(d.map(|d| (d.abs() - 0.5 * c.width).max(0.0))) <= radius
                })
                .map(|c| c.position)
                .collect();
            let order = |x: &[f64; 3], y: &[f64; 3]| x.partial_cmp(y).unwrap();
            found.sort_by(order);
            expected.sort_by(order);
            assert_eq!(found, expected);
        }
    }
}

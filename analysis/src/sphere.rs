//! The leaf cells in and around a sphere, found by descending the octree from the root groups that it touches.

use crate::cells::{LeafCell, read_cell};
use crate::part::Part;
use comove_sim::fields::MAX_SCALARS;
use comove_sim::kernels::layout::{FIELDS, GROUP, OCTANTS, PATCH, cell, octant_origin};
use comove_sim::{Key, Snapshot};

/// Calls `visit(cell, offset)` for every leaf cell that touches the sphere, in an order that depends on the tree and
/// the sphere alone; `offset` is the cell's centre minus the sphere's, across periodic boundaries. Lengths in code
/// units.
///
/// A sphere wider than a periodic box meets some cells in several images, once each.
pub fn visit_sphere(snapshot: &Snapshot, centre: [f64; 3], radius: f64, mut visit: impl FnMut(&LeafCell, [f64; 3])) {
    let part = Part::from(snapshot);
    let sphere = Sphere { centre, radius };
    for image in sphere.images(&part) {
        sphere.visit(&part, &image, |place, offset| visit(&place.read(snapshot), offset));
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

/// A sphere, in code length.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sphere {
    pub(crate) centre: [f64; 3],
    pub(crate) radius: f64,
}

/// A root group that a sphere may touch, in one of its places across periodic boundaries.
#[derive(Clone, Copy)]
pub(crate) struct Image {
    /// The group's place in key order.
    pub(crate) root: usize,
    /// How far the box is moved.
    shift: [f64; 3],
}

/// Where a leaf cell is.
pub(crate) struct Place {
    /// Its group's index among those of this rank, if it is one of them.
    group: Option<usize>,
    /// Its index in the group.
    cell: usize,
    position: [f64; 3],
    level: usize,
    width: f64,
}

impl Place {
    /// The cell, which this rank has.
    pub(crate) fn read(&self, snapshot: &Snapshot) -> LeafCell {
        let group = self.group.expect("a group of this rank");
        read_cell(snapshot, group, self.cell, self.position, self.level, self.width)
    }

    /// The cell, with the first fields of its fluid and the density of dark matter from elsewhere; the others are NaN.
    pub(crate) fn with(&self, fields: &[f64], dark_matter: f64) -> LeafCell {
        let mut fluid = [f64::NAN; FIELDS];
        fluid[..fields.len()].copy_from_slice(fields);
        let Self { position, level, width, .. } = *self;
        LeafCell { position, width, level, fluid, potential: f64::NAN, dark_matter, scalars: [f64::NAN; MAX_SCALARS] }
    }
}

impl Sphere {
    /// The root groups that it may touch, in the order in which they are visited.
    pub(crate) fn images(&self, part: &Part) -> Vec<Image> {
        let width = part.snapshot.cell_width(0) * GROUP as f64;
        let first = self.centre.map(|c| ((c - self.radius) / width).floor() as i32);
        let last = self.centre.map(|c| ((c + self.radius) / width).floor() as i32);
        let mut images = Vec::new();
        for z in first[2]..=last[2] {
            for y in first[1]..=last[1] {
                for x in first[0]..=last[0] {
                    let offset = [x, y, z];
                    let Some(key) = part.tree.neighbour(Key::new(0, [0; 3]), offset) else { continue };
                    let shift = std::array::from_fn(|a| f64::from(offset[a] - key.coordinate[a] as i32) * width);
                    let root = part.tree.find(key).expect("level 0 covers the box");
                    images.push(Image { root, shift });
                }
            }
        }
        images
    }

    /// Calls `visit(place, offset)` for the leaf cells below a root group that touch it, whoever has them.
    pub(crate) fn visit(&self, part: &Part, image: &Image, mut visit: impl FnMut(&Place, [f64; 3])) {
        let key = part.tree.level(0)[image.root];
        Descent { sphere: self, part, shift: image.shift, own: part.has(image.root) }
            .below(key, image.root, &mut visit);
    }

    /// Whether a cube at `offset` from the centre, of half width `half`, touches it.
    fn touches(&self, offset: [f64; 3], half: f64) -> bool {
        norm(offset.map(|d| (d.abs() - half).max(0.0))) <= self.radius
    }
}

/// The way down from a root group.
struct Descent<'a> {
    sphere: &'a Sphere,
    part: &'a Part<'a>,
    shift: [f64; 3],
    /// Whether this rank has the groups.
    own: bool,
}

impl Descent<'_> {
    /// Visits the leaf patches of a group, by its place in its level's list, and its children.
    fn below(&self, key: Key, group: usize, visit: &mut impl FnMut(&Place, [f64; 3])) {
        let Self { sphere, part, shift, own } = *self;
        let level = usize::from(key.level);
        let width = part.snapshot.cell_width(level);
        let group = if own { Some(part.own(level, group)) } else { None };
        for octant in 0..OCTANTS {
            let origin = octant_origin(octant);
            let first: [usize; 3] = std::array::from_fn(|a| key.coordinate[a] as usize * GROUP + origin[a]);
            let half = PATCH as f64 / 2.0;
            let middle = std::array::from_fn(|a| (first[a] as f64 + half) * width + shift[a] - sphere.centre[a]);
            if !sphere.touches(middle, half * width) {
                continue;
            }
            if let Some(child) = part.tree.find(key.child(octant)) {
                self.below(key.child(octant), child, visit);
                continue;
            }
            for k in 0..PATCH {
                for j in 0..PATCH {
                    for i in 0..PATCH {
                        let inside = [i, j, k];
                        let position = std::array::from_fn(|a| ((first[a] + inside[a]) as f64 + 0.5) * width);
                        let offset = std::array::from_fn(|a| position[a] + shift[a] - sphere.centre[a]);
                        if sphere.touches(offset, 0.5 * width) {
                            let cell = cell(origin[0] + i, origin[1] + j, origin[2] + k);
                            visit(&Place { group, cell, position, level, width }, offset);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use crate::fixture::leaf_cells;

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

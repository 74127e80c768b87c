//! Density peaks: leaf cells denser than every leaf cell they touch by a face, an edge or a corner.

use crate::cells::{PATCH_CELLS, patch_cells};
use comove_sim::kernels::layout::{DENSITY, DIRECTIONS, GROUP, PATCH};
use comove_sim::octree::tree::LeafPatch;
use comove_sim::{Key, Octree, Snapshot};
use rayon::prelude::*;
use std::cmp::Ordering;

/// A density peak.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// Centre of its cell in code length.
    pub position: [f64; 3],
    /// Width of its cell in code length.
    pub width: f64,
    /// Density of its cell in code units.
    pub density: f64,
}

/// The order of peaks: the denser first, equal densities by position (z, then y, then x).
fn order(x: (f64, [f64; 3]), y: (f64, [f64; 3])) -> Ordering {
    let along = |a: usize| x.1[a].total_cmp(&y.1[a]);
    y.0.total_cmp(&x.0).then(along(2)).then(along(1)).then(along(0))
}

/// Every peak above a density, the densest first.
pub fn find(snapshot: &Snapshot, threshold: f64) -> Vec<Peak> {
    let patches: Vec<LeafPatch> = snapshot.state.tree.leaf_patches().collect();
    let neighbourhood = Neighbourhood { snapshot };
    let mut peaks: Vec<Peak> =
        patches.par_iter().flat_map_iter(|&patch| neighbourhood.peaks(patch, threshold)).collect();
    peaks.sort_by(|x, y| order((x.density, x.position), (y.density, y.position)));
    peaks
}

struct Neighbourhood<'a> {
    snapshot: &'a Snapshot,
}

impl Neighbourhood<'_> {
    fn peaks(&self, patch: LeafPatch, threshold: f64) -> Vec<Peak> {
        let cells = patch_cells(self.snapshot, patch).take(PATCH_CELLS).enumerate();
        cells
            .filter(|(_, cell)| cell.fluid[DENSITY] > threshold)
            .filter(|(n, cell)| {
                let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
                let lattice = std::array::from_fn(|a| patch.first_cell[a] + inside[a]);
                let this = (cell.fluid[DENSITY], cell.position);
                (0..DIRECTIONS).filter(|&d| d != DIRECTIONS / 2).all(|d| self.is_lower(patch.level, lattice, d, this))
            })
            .map(|(_, cell)| Peak { position: cell.position, width: cell.width, density: cell.fluid[DENSITY] })
            .collect()
    }

    /// Whether all leaf cells that touch `cell` in a direction come after `this` in the order of peaks.
    fn is_lower(&self, level: usize, cell: [usize; 3], direction: usize, this: (f64, [f64; 3])) -> bool {
        let tree = &self.snapshot.state.tree;
        let step = [direction % 3, direction / 3 % 3, direction / 9].map(|s| s as i64 - 1);
        let cells = tree.cells(level);
        let mut next = [0; 3];
        for a in 0..3 {
            let c = cell[a] as i64 + step[a];
            let n = cells[a] as i64;
            if !(0..n).contains(&c) && !tree.periodic()[a] {
                return true;
            }
            next[a] = c.rem_euclid(n) as usize;
        }
        self.all_lower(level, next, step, this)
    }

    /// The same for the leaf cells of a lattice cell that touch its face, edge or corner towards −`step`.
    fn all_lower(&self, level: usize, cell: [usize; 3], step: [i64; 3], this: (f64, [f64; 3])) -> bool {
        let tree = &self.snapshot.state.tree;
        let (mut level, mut cell) = (level, cell);
        let mut group = group_of(tree, level, cell);
        while group.is_none() {
            (level, cell) = (level - 1, cell.map(|c| c / 2));
            group = group_of(tree, level, cell);
        }
        if group_of(tree, level + 1, cell.map(|c| 2 * c)).is_some() {
            return (0..8).all(|o| {
                let half = [o & 1, o >> 1 & 1, o >> 2 & 1];
                let touches = (0..3).all(|a| step[a] == 0 || (step[a] > 0) == (half[a] == 0));
                !touches || self.all_lower(level + 1, std::array::from_fn(|a| 2 * cell[a] + half[a]), step, this)
            });
        }
        let [i, j, k] = cell.map(|c| c % GROUP);
        let density = self.snapshot.state.field(group.expect("found above"), DENSITY)[[k, j, i]];
        let width = self.snapshot.cell_width(level);
        let position = cell.map(|c| (c as f64 + 0.5) * width);
        // a coarse neighbour can be met in several directions, never the cell itself
        order(this, (density, position)) == Ordering::Less
    }
}

fn group_of(tree: &Octree, level: usize, cell: [usize; 3]) -> Option<usize> {
    tree.index(Key::new(level as u8, cell.map(|c| (c / GROUP) as u32)))
}

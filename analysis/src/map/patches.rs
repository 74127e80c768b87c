//! The outlines of leaf patches in a window.

use super::Window;
use crate::part::Part;
use comove_sim::kernels::layout::PATCH;
use serde::{Deserialize, Serialize};

/// A leaf patch as the map shows it, in comoving Mpc/h.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatchOutline {
    /// Lower left corner.
    pub low: [f64; 2],
    /// Upper right corner.
    pub high: [f64; 2],
    /// Level.
    pub level: usize,
}

impl Window {
    /// Whether a cube with this lower corner (along the frame's axes) shares area with the window; a window without
    /// depth belongs to the cube that starts at it.
    pub(crate) fn meets(&self, low: [f64; 3], width: f64) -> bool {
        let in_depth = low[2] + width > self.low[2] && (low[2] < self.high[2] || low[2] == self.low[2]);
        in_depth && (0..2).all(|a| low[a] < self.high[a] && low[a] + width > self.low[a])
    }
}

/// Every leaf patch that meets the window, each place once, coarse ones first.
pub(crate) fn outlines(part: &Part, window: &Window) -> Vec<PatchOutline> {
    let images = window.images(part);
    let mut outlines: Vec<PatchOutline> = Vec::new();
    for patch in part.tree.leaf_patches() {
        let width = part.snapshot.cell_width(patch.level);
        let side = PATCH as f64 * width;
        for shift in &images {
            let low: [f64; 3] = std::array::from_fn(|a| patch.first_cell[window.frame[a]] as f64 * width + shift[a]);
            if window.meets(low, side) {
                let high = [low[0] + side, low[1] + side];
                outlines.push(PatchOutline { low: [low[0], low[1]], high, level: patch.level });
            }
        }
    }
    outlines.sort_by(|x, y| {
        let along = |a: usize| x.low[a].total_cmp(&y.low[a]);
        x.level.cmp(&y.level).then(along(1)).then(along(0))
    });
    outlines.dedup();
    outlines
}

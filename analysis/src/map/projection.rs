//! A field averaged along the line of sight.
//!
//! Each leaf cell counts in a pixel with the volume that the two share, exactly; fields that are averaged by mass (see
//! [`crate::cell_fields`]) with its mass. So the mean of a density map over its pixels is the mean density of the
//! window.

use super::{Map, MapOptions, Window, patches};
use crate::cell_fields::{Average, CellField, Gas, field_of};
use crate::cells::{PATCH_CELLS, patch_cells};
use crate::error::AnalysisError;
use comove_sim::Snapshot;
use comove_sim::kernels::layout::{DENSITY, PATCH};
use comove_sim::octree::tree::LeafPatch;
use rayon::prelude::*;
use std::ops::Range;

/// The mean of a field along lines of sight of length `options.depth_mpc_h` around `options.center`.
///
/// # Errors
/// As [`super::slice()`].
pub fn projection(snapshot: &Snapshot, options: &MapOptions) -> Result<Map, AnalysisError> {
    let field = field_of(snapshot, &options.field)?;
    let window = Window::new(snapshot, options)?;
    let gas = Gas::new(snapshot);
    let [columns, rows] = window.pixels;
    let images = window.images(snapshot);
    let patches: Vec<LeafPatch> = snapshot.state.tree.leaf_patches().collect();
    let footprints = |&patch: &LeafPatch| Footprint::of(snapshot, &window, &images, field, &gas, patch);
    let footprints: Vec<Footprint> = patches.par_iter().flat_map_iter(footprints).collect();
    let mut sums = vec![[0.0; 2]; columns * rows];
    // every pixel takes the patches in key order, however rows are shared among threads
    sums.par_chunks_mut(BAND * columns).enumerate().for_each(|(n, sums)| {
        let mut band = Band { window, first: n * BAND, sums };
        footprints.iter().for_each(|footprint| band.add(footprint));
    });
    let mean = |&[sum, weight]: &[f64; 2]| sum / weight;
    Ok(Map {
        redshift: snapshot.header.cosmology.map(|_| snapshot.header.redshift()),
        field: field.name.into(),
        unit: field.unit.into(),
        axis: options.axis,
        horizontal_mpc_h: [window.low[0], window.high[0]],
        vertical_mpc_h: [window.low[1], window.high[1]],
        depth_mpc_h: [window.low[2], window.high[2]],
        values: sums.chunks_exact(columns).map(|row| row.iter().map(mean).collect()).collect(),
        patches: if options.patches { patches::outlines(snapshot, &window) } else { Vec::new() },
        cells: Vec::new(),
    })
}

/// The pixels along the width that a projection needs to resolve every cell, at most those asked for: its table need not
/// hold more.
///
/// # Errors
/// As [`super::slice()`].
pub fn resolving_pixels(snapshot: &Snapshot, options: &MapOptions) -> Result<usize, AnalysisError> {
    let window = Window::new(snapshot, options)?;
    let finest = snapshot.cell_width(snapshot.state.tree.level_count() - 1);
    let cells = ((window.high[0] - window.low[0]) / finest - 1e-9).ceil() as usize;
    Ok(cells.clamp(16.min(options.pixels), options.pixels))
}

/// A leaf patch as the window sees it: weight × value and weight, integrated along each line of its cells.
struct Footprint {
    /// Its lower left corner, code length.
    low: [f64; 2],
    /// Width of its cells.
    width: f64,
    /// One line of sight a cell of its face, to the right fastest.
    lines: [[f64; 2]; PATCH * PATCH],
}

impl Footprint {
    /// The footprints of a patch, one for each image of the box in which it meets the window.
    fn of(
        snapshot: &Snapshot,
        window: &Window,
        images: &[[f64; 3]],
        field: &CellField,
        gas: &Gas,
        patch: LeafPatch,
    ) -> Vec<Self> {
        let width = snapshot.cell_width(patch.level);
        let corner: [f64; 3] = std::array::from_fn(|a| patch.first_cell[window.frame[a]] as f64 * width);
        let met = images.iter().map(|shift| std::array::from_fn(|a| corner[a] + shift[a]));
        let met: Vec<[f64; 3]> = met.filter(|low| window.meets(*low, PATCH as f64 * width)).collect();
        if met.is_empty() {
            return Vec::new();
        }
        // weight × value and weight of every cell, in the order of the frame
        let mut cells = [[0.0; 2]; PATCH_CELLS];
        for (n, cell) in patch_cells(snapshot, patch).enumerate() {
            let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
            let [u, v, w] = window.frame.map(|a| inside[a]);
            let weight = if field.average == Average::Mass { cell.fluid[DENSITY] } else { 1.0 };
            cells[(v * PATCH + u) * PATCH + w] = [weight * field.value(gas, &cell), weight];
        }
        let depth = [window.low[2], window.high[2]];
        let seen = |low: [f64; 3]| {
            let line = |n: usize| {
                let line = cells[n * PATCH..(n + 1) * PATCH].iter().enumerate();
                line.fold([0.0; 2], |sum, (w, cell)| {
                    let near = low[2] + w as f64 * width;
                    let length = overlap([near, near + width], depth);
                    [sum[0] + length * cell[0], sum[1] + length * cell[1]]
                })
            };
            Self { low: [low[0], low[1]], width, lines: std::array::from_fn(line) }
        };
        met.into_iter().map(seen).collect()
    }
}

/// Rows of pixels that one thread fills.
const BAND: usize = 16;

/// Some rows of pixels, which collect weight × value and weight.
struct Band<'a> {
    window: Window,
    /// The first of the rows.
    first: usize,
    sums: &'a mut [[f64; 2]],
}

impl Band<'_> {
    /// Adds each line of sight of a patch by the area that its cell's face shares with each pixel.
    fn add(&mut self, footprint: &Footprint) {
        let Self { window, first, ref mut sums } = *self;
        let (columns, width) = (window.pixels[0], footprint.width);
        let rows = first..first + sums.len() / columns;
        let patch = window.reached(1, footprint.low[1], PATCH as f64 * width);
        // a row more on either side: the edges of the last cell and of the patch differ by round-off
        if patch.end + 1 < rows.start || rows.end < patch.start {
            return;
        }
        let low = |axis: usize, n: usize| footprint.low[axis] + n as f64 * width;
        let shares = |u: usize| {
            let pixels = window.reached(0, low(0, u), width);
            (pixels.start, pixels.map(|n| window.share(0, n, low(0, u), width)).collect())
        };
        let across: [(usize, Vec<f64>); PATCH] = std::array::from_fn(shares);
        for v in 0..PATCH {
            let reached = window.reached(1, low(1, v), width);
            for row in reached.start.max(rows.start)..reached.end.min(rows.end) {
                let height = window.share(1, row, low(1, v), width);
                let pixels = &mut sums[(row - rows.start) * columns..][..columns];
                for ((first, shares), sum) in across.iter().zip(&footprint.lines[v * PATCH..]) {
                    for (target, width) in pixels[*first..].iter_mut().zip(shares) {
                        let area = height * width;
                        *target = [target[0] + area * sum[0], target[1] + area * sum[1]];
                    }
                }
            }
        }
    }
}

impl Window {
    /// The pixels along an axis of the plane that an interval from `low` on meets.
    fn reached(&self, axis: usize, low: f64, width: f64) -> Range<usize> {
        let pixel = self.pixel()[axis];
        let place = |x: f64| ((x - self.low[axis]) / pixel).clamp(0.0, self.pixels[axis] as f64);
        place(low).floor() as usize..place(low + width).ceil() as usize
    }

    /// The length that such an interval shares with pixel `n`.
    fn share(&self, axis: usize, n: usize, low: f64, width: f64) -> f64 {
        let pixel = self.pixel()[axis];
        let edge = self.low[axis] + n as f64 * pixel;
        overlap([low, low + width], [edge, edge + pixel])
    }
}

/// The length that two intervals share.
fn overlap(x: [f64; 2], y: [f64; 2]) -> f64 {
    (x[1].min(y[1]) - x[0].max(y[0])).max(0.0)
}

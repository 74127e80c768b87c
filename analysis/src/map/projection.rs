//! A field averaged along the line of sight.
//!
//! Each leaf cell counts in a pixel with the volume that the two share, exactly; fields that are averaged by mass (see
//! [`crate::cell_fields`]) with its mass. So the mean of a density map over its pixels is the mean density of the
//! window.

use super::{Map, MapOptions, Window, patches};
use crate::cell_fields::{Average, Gas, field_of};
use crate::cells::patch_cells;
use crate::error::AnalysisError;
use comove_sim::Snapshot;
use comove_sim::kernels::layout::{DENSITY, PATCH};

/// The mean of a field along lines of sight of length `options.depth_mpc_h` around `options.center`.
///
/// # Errors
/// As [`super::slice()`].
pub fn projection(snapshot: &Snapshot, options: &MapOptions) -> Result<Map, AnalysisError> {
    let field = field_of(snapshot, &options.field)?;
    let window = Window::new(snapshot, options)?;
    let gas = Gas::new(snapshot);
    let [columns, rows] = window.pixels;
    let mut raster = Raster { window, sums: vec![[0.0; 2]; columns * rows] };
    let images = window.images(snapshot);
    for patch in snapshot.state.tree.leaf_patches() {
        let width = snapshot.cell_width(patch.level);
        let corner: [f64; 3] = std::array::from_fn(|a| patch.first_cell[window.frame[a]] as f64 * width);
        let met = images.iter().map(|shift| std::array::from_fn(|a| corner[a] + shift[a]));
        let met: Vec<[f64; 3]> = met.filter(|low| window.meets(*low, PATCH as f64 * width)).collect();
        if met.is_empty() {
            continue;
        }
        // weight × value and weight of every cell, in the order of the frame
        let mut cells = [[0.0; 2]; PATCH * PATCH * PATCH];
        for (n, cell) in patch_cells(snapshot, patch).enumerate() {
            let inside = [n % PATCH, n / PATCH % PATCH, n / (PATCH * PATCH)];
            let [u, v, w] = window.frame.map(|a| inside[a]);
            let weight = if field.average == Average::Mass { cell.fluid[DENSITY] } else { 1.0 };
            cells[(v * PATCH + u) * PATCH + w] = [weight * field.value(&gas, &cell), weight];
        }
        for low in met {
            for (n, column) in cells.chunks_exact(PATCH).enumerate() {
                let (u, v) = ((n % PATCH) as f64, (n / PATCH) as f64);
                let mut sum = [0.0; 2];
                for (w, cell) in column.iter().enumerate() {
                    let near = low[2] + w as f64 * width;
                    let length = overlap([near, near + width], [window.low[2], window.high[2]]);
                    sum = [sum[0] + length * cell[0], sum[1] + length * cell[1]];
                }
                raster.add([low[0] + u * width, low[1] + v * width], width, sum);
            }
        }
    }
    let mean = |&[sum, weight]: &[f64; 2]| sum / weight;
    Ok(Map {
        redshift: snapshot.header.cosmology.map(|_| snapshot.header.redshift()),
        field: field.name.into(),
        unit: field.unit.into(),
        axis: options.axis,
        horizontal_mpc_h: [window.low[0], window.high[0]],
        vertical_mpc_h: [window.low[1], window.high[1]],
        depth_mpc_h: [window.low[2], window.high[2]],
        values: raster.sums.chunks_exact(columns).map(|row| row.iter().map(mean).collect()).collect(),
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

/// Pixels that collect weight × value and weight.
struct Raster {
    window: Window,
    sums: Vec<[f64; 2]>,
}

impl Raster {
    /// Adds a square with its lower left corner at `low`, by the area that it shares with each pixel.
    fn add(&mut self, low: [f64; 2], width: f64, sum: [f64; 2]) {
        let pixel = self.window.pixel();
        let mut first = [0; 2];
        let mut last = [0; 2];
        for a in 0..2 {
            let place = |x: f64| (x - self.window.low[a]) / pixel[a];
            let end = self.window.pixels[a] as f64;
            first[a] = place(low[a]).floor().clamp(0.0, end) as usize;
            last[a] = place(low[a] + width).ceil().clamp(0.0, end) as usize;
        }
        let share = |a: usize, n: usize| {
            let edge = self.window.low[a] + n as f64 * pixel[a];
            overlap([low[a], low[a] + width], [edge, edge + pixel[a]])
        };
        let across: Vec<f64> = (first[0]..last[0]).map(|n| share(0, n)).collect();
        for v in first[1]..last[1] {
            let height = share(1, v);
            let start = v * self.window.pixels[0] + first[0];
            for (target, width) in self.sums[start..].iter_mut().zip(&across) {
                let area = height * width;
                *target = [target[0] + area * sum[0], target[1] + area * sum[1]];
            }
        }
    }
}

/// The length that two intervals share.
fn overlap(x: [f64; 2], y: [f64; 2]) -> f64 {
    (x[1].min(y[1]) - x[0].max(y[0])).max(0.0)
}

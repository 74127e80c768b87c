//! A field on a plane: each pixel shows the leaf cell at its centre, or a finer one that lies between the centres of pixels.

use super::{CutCell, Map, MapOptions, PIXELS, Window, patches};
use crate::cell_fields::{CellField, Gas, field_by, symbol_in};
use crate::cells::patch_cells;
use crate::error::AnalysisError;
use crate::messages::gather;
use crate::part::{Part, alone};
use comove_sim::Snapshot;
use comove_sim::kernels::layout::PATCH;
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;
use std::ops::Range;

/// Pixels along the width that a slice has at most if it may choose.
const MOST: usize = 2048;

/// A slice through `options.center`.
///
/// # Errors
/// [`AnalysisError::UnknownField`], [`AnalysisError::MissingField`]; [`AnalysisError::Option`] for a window that does
/// not fit or too many pixels.
pub fn slice(snapshot: &Snapshot, options: &MapOptions) -> Result<Map, AnalysisError> {
    alone(snapshot, |communicator, part| slice_by(communicator, part, options))
}

/// The slice of a snapshot in parts, on the first rank: collective. Every rank sends the cells that the plane cuts.
pub fn slice_by(communicator: &Communicator, part: &Part, options: &MapOptions) -> Result<Option<Map>, AnalysisError> {
    let field = field_by(communicator, part, &options.field)?;
    let options = MapOptions { depth_mpc_h: None, ..options.clone() };
    let flat = |pixels: usize| {
        let window = Window::new(part, &options, pixels)?;
        let plane = 0.5 * (window.low[2] + window.high[2]);
        let at_plane = |[right, up, _]: [f64; 3]| [right, up, plane];
        Ok::<_, AnalysisError>(Window { low: at_plane(window.low), high: at_plane(window.high), ..window })
    };
    let window = match options.pixels {
        Some(pixels) => flat(pixels)?,
        None => {
            let window = flat(PIXELS)?;
            flat(showing(finest_cells(part, &window), window.pixels))?
        }
    };
    let gas = Gas::by(communicator, part);
    let Some(cells) = cut_cells(communicator, part, &window, &field, &gas) else { return Ok(None) };
    Ok(Some(Map {
        redshift: part.header().cosmology.map(|_| part.header().redshift()),
        field: field.name.to_string(),
        symbol: symbol_in(&field, part.header()),
        unit: field.unit.into(),
        axis: options.axis,
        horizontal_mpc_h: [window.low[0], window.high[0]],
        vertical_mpc_h: [window.low[1], window.high[1]],
        depth_mpc_h: [window.low[2]; 2],
        values: painted(&window, &cells),
        patches: if options.patches { patches::outlines(part, &window) } else { Vec::new() },
        cells,
    }))
}

/// The finest cells that a plane cuts, along the width of the window; the same on all ranks.
fn finest_cells(part: &Part, window: &Window) -> usize {
    let images = window.images(part);
    let is_cut = |patch: &LeafPatch| {
        let width = part.snapshot.cell_width(patch.level);
        let low =
            |shift: &[f64; 3]| std::array::from_fn(|a| patch.first_cell[window.frame[a]] as f64 * width + shift[a]);
        images.iter().any(|shift| window.meets(low(shift), PATCH as f64 * width))
    };
    let level = part.tree.leaf_patches().filter(is_cut).map(|patch| patch.level).max().unwrap_or(0);
    ((window.high[0] - window.low[0]) / part.snapshot.cell_width(level) - 1e-9).ceil().max(1.0) as usize
}

/// The pixels along the width that show so many cells: a whole number each, [`PIXELS`] or more, if there are not too many.
fn showing(cells: usize, [columns, rows]: [usize; 2]) -> usize {
    // the window may be higher than wide
    let most = (MOST * columns / rows.max(columns)).max(PIXELS.min(columns));
    (cells * PIXELS.div_ceil(cells)).min(most)
}

/// The values of pixels, rows from below: of cells with the centre of a pixel the value there; of smaller ones, if they are
/// finer than those, the last in key order.
///
/// * `cells`: level by level
pub(super) fn painted(window: &Window, cells: &[CutCell]) -> Vec<Vec<f64>> {
    let pixel = window.pixel();
    // rounding of an edge must not decide whether it is beyond the centre of a pixel
    let first_centre = |axis: usize, edge: f64| ((edge - window.low[axis]) / pixel[axis] - 0.5 - 1e-9).ceil();
    let centres = |cell: &CutCell, axis: usize| -> Range<usize> {
        let center = cell.center_mpc_h[window.frame[axis]];
        let end = |edge: f64| first_centre(axis, edge).clamp(0.0, window.pixels[axis] as f64) as usize;
        end(center - 0.5 * cell.width_mpc_h)..end(center + 0.5 * cell.width_mpc_h)
    };
    let around = |cell: &CutCell, axis: usize| -> Range<usize> {
        let place = (cell.center_mpc_h[window.frame[axis]] - window.low[axis]) / pixel[axis];
        if (0.0..window.pixels[axis] as f64).contains(&place) { place as usize..place as usize + 1 } else { 0..0 }
    };
    let mut values = vec![vec![f64::NAN; window.pixels[0]]; window.pixels[1]];
    let mut paint = |[columns, rows]: [Range<usize>; 2], value: f64| {
        values[rows].iter_mut().for_each(|row| row[columns.clone()].fill(value));
    };
    for cells in cells.chunk_by(|x, y| x.level == y.level) {
        let with_centres = |cell: &&CutCell| (0..2).all(|axis| !centres(cell, axis).is_empty());
        for cell in cells.iter().filter(|cell| !with_centres(cell)) {
            let pixels =
                |axis| Some(centres(cell, axis)).filter(|c| !c.is_empty()).unwrap_or_else(|| around(cell, axis));
            paint([pixels(0), pixels(1)], cell.value);
        }
        for cell in cells.iter().filter(with_centres) {
            paint([centres(cell, 0), centres(cell, 1)], cell.value);
        }
    }
    values
}

/// The leaf cells that a window without depth cuts, on the first rank: collective.
fn cut_cells(
    communicator: &Communicator,
    part: &Part,
    window: &Window,
    field: &CellField,
    gas: &Gas,
) -> Option<Vec<CutCell>> {
    let images = window.images(part);
    let patches: Vec<LeafPatch> = part.leaf_patches().collect();
    let of_patch = |&patch: &LeafPatch| {
        let width = part.snapshot.cell_width(patch.level);
        let corner: [f64; 3] = std::array::from_fn(|a| patch.first_cell[window.frame[a]] as f64 * width);
        let mut cells = Vec::new();
        for shift in &images {
            let low = std::array::from_fn(|a| corner[a] + shift[a]);
            if !window.meets(low, PATCH as f64 * width) {
                continue;
            }
            for cell in patch_cells(part.snapshot, patch) {
                let mut center = cell.position;
                (0..3).for_each(|a| center[window.frame[a]] += shift[a]);
                if window.meets(window.frame.map(|a| center[a] - 0.5 * width), width) {
                    let [x, y, z] = center;
                    cells.push([x, y, z, width, cell.level as f64, field.value(gas, &cell)]);
                }
            }
        }
        cells
    };
    let own: Vec<[f64; 6]> = patches.par_iter().flat_map_iter(of_patch).collect();
    let mut all = gather(communicator, own)?.concat();
    // the order of ranks is that of keys on each level
    all.sort_by(|x, y| x[4].total_cmp(&y[4]));
    let cell = |[x, y, z, width_mpc_h, level, value]: [f64; 6]| CutCell {
        center_mpc_h: [x, y, z],
        width_mpc_h,
        level: level as usize,
        value,
    };
    Some(all.into_iter().map(cell).collect())
}

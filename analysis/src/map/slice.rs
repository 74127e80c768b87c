//! A field on a plane: each pixel shows the leaf cell at its centre.

use super::{CutCell, Map, MapOptions, Window, patches};
use crate::cell_fields::{CellField, Gas, field_by};
use crate::cells::{leaf_of, patch_cells};
use crate::error::AnalysisError;
use crate::messages::gather;
use crate::part::{Part, alone};
use comove_sim::Snapshot;
use comove_sim::kernels::layout::PATCH;
use comove_sim::mesh::LeafPatch;
use comove_sim::parallel::Communicator;
use rayon::prelude::*;

/// A slice through `options.center`.
///
/// # Errors
/// [`AnalysisError::UnknownField`], [`AnalysisError::MissingField`]; [`AnalysisError::Option`] for a window that does
/// not fit or too many pixels.
pub fn slice(snapshot: &Snapshot, options: &MapOptions) -> Result<Map, AnalysisError> {
    alone(snapshot, |communicator, part| slice_by(communicator, part, options))
}

/// The same of a snapshot in parts, on the first rank: collective. Every rank gives the pixels whose cells it has.
pub fn slice_by(communicator: &Communicator, part: &Part, options: &MapOptions) -> Result<Option<Map>, AnalysisError> {
    let field = field_by(communicator, part, &options.field)?;
    let window = Window::new(part, &MapOptions { depth_mpc_h: None, ..options.clone() })?;
    let gas = Gas::by(communicator, part);
    let plane = 0.5 * (window.low[2] + window.high[2]);
    let pixel = window.pixel();
    let lengths = part.snapshot.box_lengths();
    let periodic = part.tree.periodic();
    let [columns, rows] = window.pixels;
    // pixels below it and to its left, as a number exact up to 2⁵³, and its value
    let row = |j: usize| -> Vec<[f64; 2]> {
        let value = |i: usize| {
            let mut position = [0.0; 3];
            position[window.frame[0]] = window.low[0] + (i as f64 + 0.5) * pixel[0];
            position[window.frame[1]] = window.low[1] + (j as f64 + 0.5) * pixel[1];
            position[window.frame[2]] = plane;
            let outside = (0..3).any(|a| !periodic[a] && !(0.0..lengths[a]).contains(&position[a]));
            let leaf = if outside { None } else { leaf_of(part, position) };
            leaf.map(|leaf| [(j * columns + i) as f64, field.value(&gas, &leaf)])
        };
        (0..columns).filter_map(value).collect()
    };
    let pixels: Vec<Vec<[f64; 2]>> = (0..rows).into_par_iter().map(row).collect();
    let pixels = gather(communicator, pixels.concat());
    let flat =
        Window { low: [window.low[0], window.low[1], plane], high: [window.high[0], window.high[1], plane], ..window };
    let cells = cut_cells(communicator, part, &flat, &field, &gas);
    let Some((pixels, cells)) = pixels.zip(cells) else { return Ok(None) };
    let mut values = vec![vec![f64::NAN; columns]; rows];
    for [place, value] in pixels.into_iter().flatten() {
        values[place as usize / columns][place as usize % columns] = value;
    }
    Ok(Some(Map {
        redshift: part.header().cosmology.map(|_| part.header().redshift()),
        field: field.name.into(),
        unit: field.unit.into(),
        axis: options.axis,
        horizontal_mpc_h: [window.low[0], window.high[0]],
        vertical_mpc_h: [window.low[1], window.high[1]],
        depth_mpc_h: [plane; 2],
        values,
        patches: if options.patches { patches::outlines(part, &flat) } else { Vec::new() },
        cells,
    }))
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

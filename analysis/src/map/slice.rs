//! A field on a plane: each pixel shows the leaf cell at its centre.

use super::{CutCell, Map, MapOptions, Window, patches};
use crate::cell_fields::{CellField, Gas, field_of};
use crate::cells::{leaf_at, patch_cells};
use crate::error::AnalysisError;
use comove_sim::Snapshot;
use comove_sim::kernels::layout::PATCH;
use comove_sim::octree::tree::LeafPatch;
use rayon::prelude::*;

/// A slice through `options.center`.
///
/// # Errors
/// [`AnalysisError::UnknownField`], [`AnalysisError::MissingField`]; [`AnalysisError::Option`] for a window that does
/// not fit or too many pixels.
pub fn slice(snapshot: &Snapshot, options: &MapOptions) -> Result<Map, AnalysisError> {
    let field = field_of(snapshot, &options.field)?;
    let window = Window::new(snapshot, &MapOptions { depth_mpc_h: None, ..options.clone() })?;
    let gas = Gas::new(snapshot);
    let plane = 0.5 * (window.low[2] + window.high[2]);
    let pixel = window.pixel();
    let lengths = snapshot.box_lengths();
    let periodic = snapshot.state.tree.periodic();
    let row = |j: usize| -> Vec<f64> {
        let value = |i: usize| {
            let mut position = [0.0; 3];
            position[window.frame[0]] = window.low[0] + (i as f64 + 0.5) * pixel[0];
            position[window.frame[1]] = window.low[1] + (j as f64 + 0.5) * pixel[1];
            position[window.frame[2]] = plane;
            let outside = (0..3).any(|a| !periodic[a] && !(0.0..lengths[a]).contains(&position[a]));
            if outside { f64::NAN } else { field.value(&gas, &leaf_at(snapshot, position)) }
        };
        (0..window.pixels[0]).map(value).collect()
    };
    let flat =
        Window { low: [window.low[0], window.low[1], plane], high: [window.high[0], window.high[1], plane], ..window };
    Ok(Map {
        redshift: snapshot.header.cosmology.map(|_| snapshot.header.redshift()),
        field: field.name.into(),
        unit: field.unit.into(),
        axis: options.axis,
        horizontal_mpc_h: [window.low[0], window.high[0]],
        vertical_mpc_h: [window.low[1], window.high[1]],
        depth_mpc_h: [plane; 2],
        values: (0..window.pixels[1]).into_par_iter().map(row).collect(),
        patches: if options.patches { patches::outlines(snapshot, &flat) } else { Vec::new() },
        cells: cut_cells(snapshot, &flat, field, &gas),
    })
}

/// The leaf cells that a window without depth cuts.
fn cut_cells(snapshot: &Snapshot, window: &Window, field: &CellField, gas: &Gas) -> Vec<CutCell> {
    let images = window.images(snapshot);
    let patches: Vec<LeafPatch> = snapshot.state.tree.leaf_patches().collect();
    let of_patch = |&patch: &LeafPatch| {
        let width = snapshot.cell_width(patch.level);
        let corner: [f64; 3] = std::array::from_fn(|a| patch.first_cell[window.frame[a]] as f64 * width);
        let mut cells = Vec::new();
        for shift in &images {
            let low = std::array::from_fn(|a| corner[a] + shift[a]);
            if !window.meets(low, PATCH as f64 * width) {
                continue;
            }
            for cell in patch_cells(snapshot, patch) {
                let mut center = cell.position;
                (0..3).for_each(|a| center[window.frame[a]] += shift[a]);
                if window.meets(window.frame.map(|a| center[a] - 0.5 * width), width) {
                    let value = field.value(gas, &cell);
                    cells.push(CutCell { center_mpc_h: center, width_mpc_h: width, level: cell.level, value });
                }
            }
        }
        cells
    };
    patches.par_iter().flat_map_iter(of_patch).collect()
}

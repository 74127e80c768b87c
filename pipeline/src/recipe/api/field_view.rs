//! A field on a uniform grid in a closure.

use crate::recipe::error::{Bound, Refusal};
use crate::recipe::reference::{Function, Type};
use comove_analysis::covering_grid::GRID_LIMIT_MIB;
use ndarray::Array3;
use rhai::{Dynamic, Engine};
use std::sync::Arc;

pub(crate) const FIELD: Type = Type {
    name: "Field",
    text: "A field on a uniform grid.",
    properties: &[("shape", "Array", "cells along x, y, z")],
    methods: &[
        Function::new(&["min(field: Field) -> float"], "The least value."),
        Function::new(&["max(field: Field) -> float"], "The largest value."),
        Function::new(&["sum(field: Field) -> float"], "The sum of the values."),
        Function::new(&["mean(field: Field) -> float"], "The mean value."),
        Function::new(&["variance(field: Field) -> float"], "The mean square of what differs from the mean."),
        Function::new(&["at(field: Field, i: int, j: int, k: int) -> float"], "The value of cell (i, j, k)."),
    ],
    members: &[],
};

/// A field on a uniform grid in a closure, `[k, j, i]`; copies share the data.
#[derive(Clone, Debug)]
pub(crate) struct FieldView(pub Arc<Array3<f64>>);

/// Registers the type with its properties and methods.
pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<FieldView>("field")
        .register_get("shape", |f: &mut FieldView| {
            let (k, j, i) = f.0.dim();
            [i, j, k].map(|n| Dynamic::from(n as i64)).to_vec()
        })
        .register_fn("min", |f: &mut FieldView| f.0.iter().copied().fold(f64::INFINITY, f64::min))
        .register_fn("max", |f: &mut FieldView| f.0.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        .register_fn("sum", |f: &mut FieldView| f.0.sum())
        .register_fn("mean", |f: &mut FieldView| f.0.sum() / f.0.len() as f64)
        .register_fn("variance", |f: &mut FieldView| {
            let mean = f.0.sum() / f.0.len() as f64;
            f.0.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f.0.len() as f64
        })
        .register_fn("at", at);
}

/// The value of cell (i, j, k).
fn at(field: &mut FieldView, i: i64, j: i64, k: i64) -> Bound<f64> {
    let index = [k, j, i].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    field.0.get(index).copied().ok_or_else(|| {
        let (nz, ny, nx) = field.0.dim();
        Refusal::error("at", format!("cell ({i}, {j}, {k}) is outside the {nx}×{ny}×{nz} cells"), None)
    })
}

/// What a field may take of the bytes that are free: a quarter, as several may be held.
pub(crate) fn grid_limit_mib(free: Option<f64>) -> usize {
    free.map_or(GRID_LIMIT_MIB, |free| GRID_LIMIT_MIB.min((0.25 * free) as usize >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;
    use comove_kernels::memory;

    #[test]
    fn a_field_leaves_room_for_others() {
        let gib = memory::GIB;
        let limits = [Some(4.0 * gib), Some(1000.0 * gib), None].map(grid_limit_mib);
        assert_eq!(limits, [1024, GRID_LIMIT_MIB, GRID_LIMIT_MIB]);
    }
}

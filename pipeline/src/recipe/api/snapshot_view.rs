//! What a `measure` closure sees of a snapshot: redshift, fields as arrays, the densest cell, halos, profiles, totals.

use super::Bound;
use crate::recipe::error::Refusal;
use crate::recipe::options::{decode, from_json};
use comove_analysis::cells::{self, sum_over_leaves};
use comove_analysis::covering_grid::{GRID_LIMIT_MIB, grid_within};
use comove_analysis::halo_finder::{Halo, HaloOptions, find_halos};
use comove_analysis::halo_profile::{ProfileOptions, halo_profile};
use comove_kernels::memory;
use comove_sim::kernels::layout::{DENSITY, ENERGY, MOMENTUM};
use comove_sim::{Coordinates, Snapshot, SnapshotHeader};
use ndarray::Array3;
use rhai::{Array, Dynamic, Engine, ImmutableString, Map};
use serde::Serialize;
use std::sync::Arc;

/// A snapshot in a closure; copies share the data.
#[derive(Clone, Debug)]
pub struct SnapshotView {
    snapshot: Arc<Snapshot>,
}

impl SnapshotView {
    /// A view of a snapshot.
    pub fn new(snapshot: Arc<Snapshot>) -> Self {
        Self { snapshot }
    }
}

/// A field on a uniform grid in a closure, `[k, j, i]`; copies share the data.
#[derive(Clone, Debug)]
pub struct FieldView {
    values: Arc<Array3<f64>>,
}

/// Registers both types with their properties and methods.
pub fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<SnapshotView>("snapshot")
        .register_get("redshift", |s: &mut SnapshotView| comoving(s, "redshift").map(|header| header.redshift()))
        .register_get("a", |s: &mut SnapshotView| comoving(s, "a").map(|header| header.a))
        .register_get("t", |s: &mut SnapshotView| s.snapshot.header.time)
        .register_get("step", |s: &mut SnapshotView| s.snapshot.header.step as i64)
        .register_get("box_mpc_h", |s: &mut SnapshotView| comoving(s, "box_mpc_h").map(|header| header.box_length))
        .register_get("box", |s: &mut SnapshotView| s.snapshot.header.box_length)
        .register_get("levels", |s: &mut SnapshotView| s.snapshot.state.tree.level_count() as i64)
        .register_fn("densest", |s: &mut SnapshotView| densest(&s.snapshot))
        .register_fn("totals", |s: &mut SnapshotView| totals(&s.snapshot))
        .register_fn("halos", |s: &mut SnapshotView| halos(&s.snapshot, Map::new()))
        .register_fn("halos", |s: &mut SnapshotView, options: Map| halos(&s.snapshot, options))
        .register_fn("profile", |s: &mut SnapshotView, halo: Map| profile(&s.snapshot, halo, Map::new()))
        .register_fn("profile", |s: &mut SnapshotView, halo: Map, options: Map| profile(&s.snapshot, halo, options))
        .register_fn("field", |s: &mut SnapshotView, name: ImmutableString| field(&s.snapshot, &name, 0))
        .register_fn("field", |s: &mut SnapshotView, name: ImmutableString, level: i64| {
            field(&s.snapshot, &name, level)
        });
    engine
        .register_type_with_name::<FieldView>("field")
        .register_get("shape", |f: &mut FieldView| {
            let (k, j, i) = f.values.dim();
            [i, j, k].map(|n| Dynamic::from(n as i64)).to_vec()
        })
        .register_fn("min", |f: &mut FieldView| f.values.iter().copied().fold(f64::INFINITY, f64::min))
        .register_fn("max", |f: &mut FieldView| f.values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
        .register_fn("sum", |f: &mut FieldView| f.values.sum())
        .register_fn("mean", |f: &mut FieldView| f.values.sum() / f.values.len() as f64)
        .register_fn("variance", |f: &mut FieldView| {
            let mean = f.values.sum() / f.values.len() as f64;
            f.values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / f.values.len() as f64
        })
        .register_fn("at", at);
}

/// The header of a comoving snapshot, which alone has the property `name`.
fn comoving<'a>(view: &'a SnapshotView, name: &str) -> Bound<&'a SnapshotHeader> {
    let header = &view.snapshot.header;
    match header.coordinates {
        Coordinates::Comoving => Ok(header),
        Coordinates::Plain => Err(Refusal::error(name, "the snapshot is in plain coordinates: it has t and box", None)),
    }
}

fn densest(snapshot: &Snapshot) -> Map {
    let cell = cells::densest(snapshot);
    Map::from([
        ("position".into(), cell.position.map(Dynamic::from).to_vec().into()),
        ("density".into(), cell.fluid[DENSITY].into()),
        ("level".into(), (cell.level as i64).into()),
    ])
}

fn totals(snapshot: &Snapshot) -> Map {
    let [mass, x, y, z, energy] = sum_over_leaves(snapshot, |cell| {
        let volume = cell.volume();
        [DENSITY, MOMENTUM, MOMENTUM + 1, MOMENTUM + 2, ENERGY].map(|field| cell.fluid[field] * volume)
    });
    Map::from([
        ("mass".into(), mass.into()),
        ("momentum".into(), [x, y, z].map(Dynamic::from).to_vec().into()),
        ("energy".into(), energy.into()),
    ])
}

fn halos(snapshot: &Snapshot, options: Map) -> Bound<Array> {
    let options: HaloOptions = decode("halos", options)?;
    let catalogue = find_halos(snapshot, &options).map_err(|e| Refusal::error("halos", e, None))?;
    Ok(catalogue.halos.iter().map(dynamic).collect())
}

fn profile(snapshot: &Snapshot, halo: Map, options: Map) -> Bound<Array> {
    let halo: Halo = decode("profile", halo)?;
    let options: ProfileOptions = decode("profile", options)?;
    let profile = halo_profile(snapshot, &halo, &options).map_err(|e| Refusal::error("profile", e, None))?;
    Ok(profile.shells.iter().map(dynamic).collect())
}

fn field(snapshot: &Snapshot, name: &str, level: i64) -> Bound<FieldView> {
    let level = usize::try_from(level)
        .map_err(|_| Refusal::error("field", format!("level {level}: must not be negative"), None))?;
    let values = grid_within(snapshot, name, level, grid_limit_mib(memory::available()))
        .map_err(|e| Refusal::error("field", e, None))?;
    Ok(FieldView { values: Arc::new(values) })
}

/// What a field may take of the bytes that are free: a quarter, as several may be held.
fn grid_limit_mib(free: Option<f64>) -> usize {
    free.map_or(GRID_LIMIT_MIB, |free| GRID_LIMIT_MIB.min((0.25 * free) as usize >> 20))
}

/// The value of cell (i, j, k).
fn at(field: &mut FieldView, i: i64, j: i64, k: i64) -> Bound<f64> {
    let index = [k, j, i].map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    field.values.get(index).copied().ok_or_else(|| {
        let (nz, ny, nx) = field.values.dim();
        Refusal::error("at", format!("cell ({i}, {j}, {k}) is outside the {nx}×{ny}×{nz} cells"), None)
    })
}

fn dynamic(value: &impl Serialize) -> Dynamic {
    from_json(&serde_json::to_value(value).expect("results are plain data"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_leaves_room_for_others() {
        let gib = memory::GIB;
        let limits = [Some(4.0 * gib), Some(1000.0 * gib), None].map(grid_limit_mib);
        assert_eq!(limits, [1024, GRID_LIMIT_MIB, GRID_LIMIT_MIB]);
    }
}

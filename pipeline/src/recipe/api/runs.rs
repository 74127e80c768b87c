//! `evolve`, `from_snapshot` and refinement criteria.

use super::{Bound, Initial, Run, input_path};
use crate::campaign::Node;
use crate::recipe::engine::Session;
use crate::recipe::error::Refusal;
use crate::recipe::options::{decode_with, take};
use crate::stage::evolve::options::{EXTENT, Extent, check};
use crate::stage::evolve::{Evolve, Origin};
use crate::stage::saved::Saved;
use comove_sim::RunParameters;
use rhai::{Array, Dynamic, Engine, FnPtr, ImmutableString, Map, NativeCallContext};
use std::sync::Arc;

/// Levels for which `density_above` asks its closure or repeats its number.
const LEVELS: i64 = 16;

/// Registers them.
pub fn register(engine: &mut Engine, session: &Arc<Session>) {
    engine.register_fn("evolve", |ic: Initial, options: Map| -> Bound<Run> {
        let start = ic.facts.z;
        run(ic.node, Origin::Initial(ic.facts), Some(start), options)
    });
    engine.register_fn("evolve", |saved: Run, options: Map| -> Bound<Run> {
        if saved.outputs.is_some() {
            let message = "a run cannot start from another run of the same recipe: extend its z_end, or start from \
                           one of its files with from_snapshot(\"file\")";
            return Err(Refusal::error("evolve", message, None));
        }
        run(saved.node, Origin::Saved { branch: false }, None, options)
    });
    let shared = session.clone();
    engine.register_fn("from_snapshot", move |file: ImmutableString| -> Run {
        Run { node: Node::new(Saved { path: input_path(&shared, &file) }, Vec::new()), outputs: None }
    });
    engine.register_fn("density_above", |threshold: f64| density_above(vec![threshold; LEVELS as usize]));
    engine.register_fn("density_above", |threshold: i64| density_above(vec![threshold as f64; LEVELS as usize]));
    engine.register_fn("density_above", |thresholds: Array| {
        density_above(thresholds.iter().map(number).collect::<Bound<_>>()?)
    });
    engine.register_fn("density_above", |context: NativeCallContext, threshold: FnPtr| {
        let at = |level: i64| number(&threshold.call_within_context::<Dynamic>(&context, (level,))?);
        density_above((0..LEVELS).map(at).collect::<Bound<_>>()?)
    });
}

fn run(node: Node, origin: Origin, z_start: Option<f64>, mut options: Map) -> Bound<Run> {
    let extent: Extent = decode_with("evolve", take(&mut options, &EXTENT), &[])?;
    // one criterion needs no list
    if let Some(criterion) = options.get_mut("refine").filter(|v| v.is_map()) {
        *criterion = Array::from([std::mem::take(criterion)]).into();
    }
    let mut parameters: RunParameters = decode_with("evolve", options, &EXTENT)?;
    let refuse = |(key, message): (&str, String)| Refusal::error("evolve", message, Some(key));
    let outputs = extent.redshifts(z_start).map_err(refuse)?;
    check(&parameters).map_err(refuse)?;
    // thresholds of levels that are never refined decide nothing, and must not count in the fingerprint
    for criterion in &mut parameters.refine {
        let comove_sim::parameters::Criterion::DensityAbove { thresholds } = criterion;
        thresholds.truncate(usize::from(parameters.max_level));
    }
    let origin = match origin {
        Origin::Saved { .. } => Origin::Saved { branch: extent.branch },
        initial => initial,
    };
    let stage =
        Evolve { origin, parameters, z_end: extent.z_end, outputs: outputs.clone(), checkpoints: extent.checkpoints };
    Ok(Run { node: Node::new(stage, vec![node]), outputs: Some(outputs) })
}

/// The criterion as the map that [`RunParameters`] decodes.
fn density_above(thresholds: Vec<f64>) -> Bound<Map> {
    if let Some(bad) = thresholds.iter().find(|t| !(t.is_finite() && **t > 0.0)) {
        return Err(Refusal::error("density_above", format!("a threshold of {bad}: must be positive"), None));
    }
    let list: Array = thresholds.into_iter().map(Dynamic::from).collect();
    let inner = Map::from([("thresholds".into(), list.into())]);
    Ok(Map::from([("density_above".into(), inner.into())]))
}

fn number(value: &Dynamic) -> Bound<f64> {
    value
        .as_float()
        .or_else(|_| value.as_int().map(|i| i as f64))
        .map_err(|found| Refusal::error("density_above", format!("a threshold is a {found}, expected a number"), None))
}

//! `evolve` and `from_snapshot`.

use super::{Bound, Initial, Run, input_path};
use crate::campaign::Node;
use crate::recipe::engine::Session;
use crate::recipe::error::Refusal;
use crate::recipe::options::{decode_with, take};
use crate::stage::evolve::options::{EXTENT, Extent, check};
use crate::stage::evolve::{Evolve, Origin};
use crate::stage::saved::Saved;
use comove_sim::RunParameters;
use rhai::{Array, Engine, ImmutableString, Map};
use std::sync::Arc;

/// Registers both.
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
        criterion.truncate(parameters.max_level);
    }
    let origin = match origin {
        Origin::Saved { .. } => Origin::Saved { branch: extent.branch },
        initial => initial,
    };
    let stage =
        Evolve { origin, parameters, z_end: extent.z_end, outputs: outputs.clone(), checkpoints: extent.checkpoints };
    Ok(Run { node: Node::new(stage, vec![node]), outputs: Some(outputs) })
}

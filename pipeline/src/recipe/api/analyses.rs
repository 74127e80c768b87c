//! Analyses of a run's outputs.

use super::{Analysis, Bound, Run, node_of};
use crate::campaign::Node;
use crate::recipe::engine::Session;
use crate::recipe::error::{Refusal, plain};
use crate::recipe::options::{decode, decode_with, take, to_json};
use crate::recipe::source::Place;
use crate::stage::density_pdf::DensityPdfs;
use crate::stage::halos::{Halos, PROFILE_CHOICE, ProfileChoice};
use crate::stage::maps::{Maps, STYLE, View};
use crate::stage::measure::{Measure, Measured};
use crate::stage::power_spectrum::PowerSpectra;
use crate::stage::refinement_ratio::RefinementRatios;
use crate::stage::{Selection, Stage};
use comove_analysis::cell_fields::field_by_name;
use comove_analysis::map::MapOptions;
use rhai::{Array, Dynamic, Engine, FnPtr, ImmutableString, Map, NativeCallContext};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

/// What every analysis takes besides its own options.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Common {
    at_z: Selection,
}

/// The name of [`Common`]'s option.
const COMMON: [&str; 1] = ["at_z"];

/// Registers them, each with and without options.
pub fn register(engine: &mut Engine, session: &Arc<Session>) {
    engine.register_fn("refinement_ratio", |run: Run| analysis(RefinementRatios, vec![run.node]));
    engine.register_fn("refinement_ratio", |runs: Array| -> Bound<Analysis> {
        let runs = runs.into_iter().map(|value| {
            let what = plain(value.type_name());
            let run = value.try_cast::<Run>();
            run.map(|r| r.node)
                .ok_or_else(|| Refusal::error("refinement_ratio", format!("the list holds {what}, not a run"), None))
        });
        Ok(analysis(RefinementRatios, runs.collect::<Bound<_>>()?))
    });
    with_options(engine, "halos", |name, mut options, at_z| {
        let choice: ProfileChoice = decode(name, take(&mut options, &PROFILE_CHOICE))?;
        let finder = decode_with(name, options, &[PROFILE_CHOICE[0], PROFILE_CHOICE[1], COMMON[0]])?;
        Ok(Halos { at_z, finder, profiles: choice.profiles, profile: choice.profile })
    });
    engine
        .register_type_with_name::<Measured>("measured value")
        .register_indexer_get(|analysis: &mut Analysis, name: ImmutableString| measured(analysis, &name))
        .register_indexer_get(|value: &mut Measured, name: ImmutableString| {
            value.path.push(name.into());
            value.clone()
        });
    for (name, view) in [("slice", View::Slice), ("projection", View::Projection)] {
        let make = move |run: Run, mut options: Map| -> Bound<Analysis> {
            let at_z = selection(name, &run, &mut options)?;
            let center = options.get("center").and_then(|value| value.clone().try_cast::<Measured>());
            if center.is_some() {
                options.remove("center");
            }
            let style = decode(name, take(&mut options, &STYLE))?;
            let options: MapOptions = decode_with(name, options, &[STYLE[0], STYLE[1], COMMON[0]])?;
            field_by_name(&options.field).map_err(|e| Refusal::error(name, e, Some("field")))?;
            let inputs = std::iter::once(run.node).chain(center.iter().map(|c| c.node.clone())).collect();
            Ok(analysis(Maps { view, at_z, options, center, style }, inputs))
        };
        engine.register_fn(name, move |run: Run| make(run, Map::new()));
        engine.register_fn(name, make);
    }
    with_options(engine, "power_spectrum", |name, options, at_z| {
        Ok(PowerSpectra { at_z, options: decode_with(name, options, &COMMON)? })
    });
    with_options(engine, "density_pdf", |name, options, at_z| {
        Ok(DensityPdfs { at_z, options: decode_with(name, options, &COMMON)? })
    });
    let shared = session.clone();
    engine.register_fn(
        "measure",
        move |context: NativeCallContext, name: ImmutableString, run: Run, closure: FnPtr| {
            measure(&shared, &context, &name, run, Map::new(), closure)
        },
    );
    let shared = session.clone();
    let measure_some =
        move |context: NativeCallContext, name: ImmutableString, run: Run, options: Map, closure: FnPtr| {
            measure(&shared, &context, &name, run, options, closure)
        };
    engine.register_fn("measure", measure_some);
}

/// `MEASUREMENT.name`: a value that is known once the measurement is done.
fn measured(analysis: &Analysis, name: &str) -> Bound<Measured> {
    if analysis.node.stage().kind() != "measure" {
        let message = "only a measurement's result has values that a recipe can name";
        return Err(Refusal::error(name, message, None));
    }
    Ok(Measured { node: analysis.node.clone(), path: vec![name.into()] })
}

fn analysis(stage: impl Stage + 'static, inputs: Vec<Node>) -> Analysis {
    Analysis { node: Node::new(stage, inputs) }
}

/// Registers `name(RUN)` and `name(RUN, #{ … })`.
fn with_options<S: Stage + 'static>(
    engine: &mut Engine,
    name: &'static str,
    build: impl Fn(&str, Map, Selection) -> Bound<S> + Clone + Send + Sync + 'static,
) {
    let make = move |run: Run, mut options: Map| -> Bound<Analysis> {
        let at_z = selection(name, &run, &mut options)?;
        Ok(analysis(build(name, options, at_z)?, vec![run.node]))
    };
    let plain = make.clone();
    engine.register_fn(name, move |run: Run| plain(run, Map::new()));
    engine.register_fn(name, make);
}

/// Takes `at_z` out of the options and checks it against the run's outputs.
fn selection(name: &str, run: &Run, options: &mut Map) -> Bound<Selection> {
    let common: Common = decode(name, take(options, &COMMON))?;
    if let (Selection::At(redshifts), Some(outputs)) = (&common.at_z, &run.outputs)
        && let Some(z) = redshifts.iter().find(|z| !outputs.contains(z))
    {
        let list: Vec<String> = outputs.iter().map(ToString::to_string).collect();
        let message = format!("at_z: {z} is not among the run's outputs ({})", list.join(", "));
        return Err(Refusal::error(name, message, Some("at_z")));
    }
    Ok(common.at_z)
}

fn measure(
    session: &Session,
    context: &NativeCallContext,
    name: &str,
    run: Run,
    mut options: Map,
    closure: FnPtr,
) -> Bound<Analysis> {
    let at_z = selection("measure", &run, &mut options)?;
    if !options.is_empty() {
        decode_with::<Common>("measure", options, &[])?;
    }
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        let message = format!("the name \"{name}\" becomes a folder's: use letters, digits, - and _");
        return Err(Refusal::error("measure", message, None));
    }
    let position = context.call_position();
    let place = Place { line: position.line().unwrap_or(1), column: position.position().unwrap_or(1) };
    let text = session
        .source
        .closure_text(place)
        .ok_or_else(|| Refusal::error("measure", "the closure's text is not where the call is", None))?;
    let captured = closure.curry().iter().map(captured).collect::<Bound<Value>>()?;
    let recipe = session.source.path.clone();
    Ok(analysis(Measure { name: name.into(), at_z, closure, text, captured, recipe }, vec![run.node]))
}

/// A captured value for the fingerprint: plain data as it is, a stage by what it does.
fn captured(value: &Dynamic) -> Bound<Value> {
    let value = value.flatten_clone();
    if let Some(node) = node_of(&value) {
        return Ok(json!({ "stage": node.stage().kind(), "parameters": node.stage().parameters() }));
    }
    to_json(&value).map_err(|(_, what)| Refusal::error("measure", format!("the closure captures {what}"), None))
}

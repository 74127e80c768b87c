//! `measure` and `combine`: stages that call a closure of the recipe; `then`: a closure that decides on stages.

use super::analyses::{COMMON, selection};
use super::call::Call;
use super::handles::{
    Analysis, Further, NAME, Naming, Run, captured, detached, name_of, nodes_of, place_of, run_facts, stages_of,
};
use super::snapshot_view::SNAPSHOT;
use crate::campaign::Node;
use crate::campaign::deferred::{Deferred, Measured, THEN, Undecided, own_name};
use crate::recipe::closure_members::{check, uses};
use crate::recipe::error::{Bound, Refusal};
use crate::recipe::interpreter::Session;
use crate::recipe::options::decode_with;
use crate::recipe::reference::{Function, Type};
use crate::stage::closure::Closure;
use crate::stage::combine::Combine;
use crate::stage::drawn::is_file_name;
use crate::stage::measure::Measure;
use rhai::{Array, Engine, EvalAltResult, FnPtr, ImmutableString, Map, NativeCallContext};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new(
        &[
            "measure(name: String, run: Run, closure: Fn) -> Analysis",
            "measure(name: String, run: Run, options: Map, closure: Fn) -> Analysis",
        ],
        "What a closure returns of a [Snapshot](#snapshot): see [Results](#results). It is called for every \
         output that is looked at.",
    )
    .used_as("measure(\"name\", RUN, |snapshot| …) or measure(\"name\", RUN, #{ at_z: … }, |snapshot| …)")
    .with_options(&["Common", "ClosureOptions", "Naming"]),
    Function::new(
        &[
            "combine(name: String, stages: Array, closure: Fn) -> Analysis",
            "combine(name: String, stages: Array, options: Map, closure: Fn) -> Analysis",
        ],
        "What a closure returns of several stages: see [Results](#results). Its argument is a list with one \
         entry a stage, lists in the list of stages flattened. Of a run it is its [outputs](#runoutputs). Of a \
         measurement or an analysis it is a map with the last output's `result` and its `z` (or `t`), and with \
         `all`, the list of such maps of every output that was looked at. The result of a measurement is what \
         its closure gave; of `halos` the catalogue with `profiles`, of `slice` and `projection` their table as \
         `#{ columns, rows }`, of the others what their JSON file holds: `one.result.bins` of a power spectrum. \
         `refinement_ratio` has one entry a run, without `z`.",
    )
    .used_as("combine(\"name\", [RUNS and MEASUREMENTS], |results| …)")
    .with_options(&["ClosureOptions", "Naming"]),
    Function::new(
        &[
            "then(stage: Analysis, closure: Fn) -> Decision",
            "then(stage: Analysis, options: Map, closure: Fn) -> Decision",
        ],
        "Further stages of the campaign, which a closure returns once the stage is done: a list of them, one, or \
         `()`. Of a measurement its argument is the result (the last output's, if there are several), of another \
         analysis a map of what it has left as JSON, by the files' names. It is called whenever the campaign is \
         looked at, by `plan` too, and stores nothing, so it should not compute for long: 20 seconds at most. The \
         stages that it returns may be decided on further, and are stages as all others.",
    )
    .used_as("then(MEASUREMENT, |result| [STAGES])")
    .with_options(&["Naming"]),
];

pub(crate) const RESULT: Type = Type {
    name: "Results",
    text: "A closure returns a map of finite numbers, texts, lists and maps, which becomes `result.json` and a table \
           of the report. What it calls `table`, a map or a list of maps, becomes CSV files, and what it calls `plot` \
           figures (PNG, SVG, PDF); the report shows both. `MEASUREMENT.name` is a value of the result, which any option may \
           be before it is known, also within lists and maps and in a refinement criterion: what is called with it is \
           a stage once the measurement is done.",
    properties: &[],
    methods: &[
        Function::example("table", "`table: #{ columns: [\"z\", \"rms\"], rows: [[1, 0.2], [0, 0.3]] }`")
            .with_options(&["DrawnTable"]),
        Function::example(
            "plot",
            "`plot: #{ x_label: \"z\", curves: [#{ name: \"rms\", points: [[1, 0.2], [0, 0.3]] }] }`",
        )
        .with_options(&["Plot"]),
    ],
    members: &[],
};

/// What a function takes that calls a closure of the recipe.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ClosureOptions {
    /// Seconds that a call may take; decides no result.
    time_limit_s: f64,
}

impl Default for ClosureOptions {
    fn default() -> Self {
        Self { time_limit_s: 600.0 }
    }
}

/// Registers them, each with and without options, and the values of their results.
pub(crate) fn register(engine: &mut Engine, session: &Arc<Session>) {
    engine
        .register_type_with_name::<Measured>("measured value")
        .register_indexer_get(|analysis: &mut Analysis, name: ImmutableString| measured(analysis, &name))
        .register_indexer_get(|value: &mut Measured, name: ImmutableString| {
            // of a copy: the recipe may have given the value a name
            let mut inner = value.clone();
            inner.path.push(name.into());
            inner
        });
    let shared = session.clone();
    let measure = move |context: NativeCallContext, name: ImmutableString, run: Run, options: Map, closure: FnPtr| {
        let closure = closure_of("measure", &shared, &context, &name, closure)?;
        let call = Call::new("measure", vec![run.node.clone()], options)?;
        let title = format!("Measured: {name}");
        let call = Call { label: format!("measure-{name}"), title, ..call };
        let node = call.stage(&context, move |mut options, _| {
            let outputs = selection("measure", &run, &mut options)?;
            check(&closure.uses, &run_facts(&run.node))?;
            let closure = within_limits("measure", &closure, options)?;
            Ok(Node::new(Measure { closure, outputs }, vec![run.node.clone()]))
        })?;
        Ok::<_, Box<EvalAltResult>>(Analysis(node))
    };
    register_with_options!(
        engine, "measure", measure,
        context: NativeCallContext, name: ImmutableString, run: Run; closure: FnPtr
    );
    let shared = session.clone();
    let combine =
        move |context: NativeCallContext, name: ImmutableString, stages: Array, options: Map, closure: FnPtr| {
            let inputs = stages_of("combine", &stages)?;
            let closure = closure_of("combine", &shared, &context, &name, closure)?;
            let call = Call::new("combine", inputs.clone(), options)?;
            let title = format!("Combined: {name}");
            let call = Call { label: format!("combine-{name}"), title, ..call };
            let node = call.stage(&context, move |options, _| {
                let closure = within_limits("combine", &closure, options)?;
                Ok(Node::new(Combine { closure }, inputs.clone()))
            })?;
            Ok::<_, Box<EvalAltResult>>(Analysis(node))
        };
    register_with_options!(
        engine, "combine", combine,
        context: NativeCallContext, name: ImmutableString, stages: Array; closure: FnPtr
    );
    register_with_options!(engine, "then", then, context: NativeCallContext, analysis: Analysis; closure: FnPtr);
    let refuse = || -> Bound<Further> {
        let message = "a run has no result; use a measurement of it";
        Err(Refusal::error("then", message, None))
    };
    engine.register_fn("then", move |_: Run, _: FnPtr| refuse());
    engine.register_fn("then", move |_: Run, _: Map, _: FnPtr| refuse());
}

fn then(context: NativeCallContext<'_>, analysis: Analysis, mut options: Map, closure: FnPtr) -> Bound<Further> {
    let title = name_of(THEN, &mut options)?;
    decode_with::<Naming>(THEN, options, &[])?;
    let name = own_name(analysis.0.stage());
    let undecided = Undecided {
        function: THEN,
        label: format!("{THEN}({name})"),
        title: format!("Decision after {name}"),
        describes: format!("further stages, from the result of {name}"),
        parameters: Value::Null,
        place: place_of(&context),
    };
    Ok(Further(Node::deferred(undecided, vec![analysis.0], Deferred::Then(detached(closure), nodes_of)).named(title)))
}

/// `MEASUREMENT.name`: a value that is known once the measurement is done.
fn measured(analysis: &Analysis, name: &str) -> Bound<Measured> {
    if !["measure", "combine"].contains(&analysis.0.stage().kind()) {
        let message = "only results of measure and combine have named values";
        return Err(Refusal::error(name, message, None));
    }
    Ok(Measured { node: analysis.0.clone(), path: vec![name.into()] })
}

fn closure_of(
    function: &'static str,
    session: &Session,
    context: &NativeCallContext,
    name: &str,
    closure: FnPtr,
) -> Bound<Closure> {
    if !is_file_name(name) {
        let message = format!("the name \"{name}\" becomes a folder name; use only letters, digits, - and _");
        return Err(Refusal::error(function, message, None));
    }
    let captured = captured(function, session, context, closure, 1)?;
    let uses = match function {
        "measure" => uses(context, function, &captured.closure, &SNAPSHOT)?,
        _ => Vec::new(),
    };
    Ok(Closure { function, name: name.into(), captured, time_limit_s: 0.0, uses })
}

/// A closure with the limits that the options set.
fn within_limits(function: &'static str, closure: &Closure, options: Map) -> Bound<Closure> {
    let others: &[&str] = if function == "measure" { &COMMON } else { &[NAME] };
    let ClosureOptions { time_limit_s } = decode_with(function, options, others)?;
    if time_limit_s <= 0.0 {
        let message = format!("time_limit_s = {time_limit_s}: must be positive");
        return Err(Refusal::error(function, message, Some("time_limit_s")));
    }
    Ok(Closure { time_limit_s, ..closure.clone() })
}

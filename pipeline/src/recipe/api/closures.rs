//! `measure` and `combine`: stages that call a closure of the recipe.

use super::analyses::{COMMON, analysis, selection};
use super::{Analysis, Bound, Captured, NAME, Run, name_of, stages_of};
use crate::recipe::docs::{Function, Type};
use crate::recipe::engine::Session;
use crate::recipe::error::Refusal;
use crate::recipe::options::decode_with;
use crate::stage::closure::Closure;
use crate::stage::combine::Combine;
use crate::stage::drawn::is_file_name;
use crate::stage::measure::{Measure, Measured};
use rhai::{Array, Engine, EvalAltResult, FnPtr, ImmutableString, Map, NativeCallContext};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Both.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "measure",
        signatures: &[
            "measure(name: String, run: Run, closure: Fn) -> Analysis",
            "measure(name: String, run: Run, options: Map, closure: Fn) -> Analysis",
        ],
        usage: "measure(\"name\", RUN, |snapshot| …) or measure(\"name\", RUN, #{ at_z: … }, |snapshot| …)",
        text: "What a closure returns of a [Snapshot](#snapshot): see [Results](#results). It is called for every \
               output that is looked at.",
        options: &["Common", "ClosureOptions", "Naming"],
    },
    Function {
        name: "combine",
        signatures: &[
            "combine(name: String, stages: Array, closure: Fn) -> Analysis",
            "combine(name: String, stages: Array, options: Map, closure: Fn) -> Analysis",
        ],
        usage: "combine(\"name\", [RUNS and MEASUREMENTS], |results| …)",
        text: "What a closure returns of several stages: see [Results](#results). Its argument is a list with one \
               entry a stage, lists in the list of stages flattened. Of a run it is its [outputs](#runoutputs). Of a \
               measurement it is a map with the last output's `result` and its `z` (or `t`), and with `all`, the list \
               of such maps of every output that was looked at. Of any other analysis it is a map of what it has left \
               as JSON, by the files' names: `one.power_spectrum_z0.bins`.",
        options: &["ClosureOptions", "Naming"],
    },
];

/// What their closures return.
pub const RESULT: Type = Type {
    name: "Results",
    text: "A closure returns a map of finite numbers, texts, lists and maps, which becomes `result.json` and a table \
           of the report. What it calls `table`, a map or a list of maps, becomes CSV files, and what it calls `plot` \
           PNG files; the report shows both. `MEASUREMENT.name` is a value of the result, which the `center` of a \
           slice or projection may be before it is known.",
    properties: &[],
    methods: &[
        Function {
            name: "table",
            signatures: &[],
            usage: "",
            text: "`table: #{ columns: [\"z\", \"rms\"], rows: [[1, 0.2], [0, 0.3]] }`",
            options: &["DrawnTable"],
        },
        Function {
            name: "plot",
            signatures: &[],
            usage: "",
            text: "`plot: #{ x_label: \"z\", curves: [#{ name: \"rms\", points: [[1, 0.2], [0, 0.3]] }] }`",
            options: &["Plot"],
        },
    ],
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

/// Registers both, each with and without options, and the values of their results.
pub fn register(engine: &mut Engine, session: &Arc<Session>) {
    engine
        .register_type_with_name::<Measured>("measured value")
        .register_indexer_get(|analysis: &mut Analysis, name: ImmutableString| measured(analysis, &name))
        .register_indexer_get(|value: &mut Measured, name: ImmutableString| {
            value.path.push(name.into());
            value.clone()
        });
    let shared = session.clone();
    let measure_some =
        move |context: NativeCallContext, name: ImmutableString, run: Run, mut options: Map, closure: FnPtr| {
            let title = name_of("measure", &mut options)?;
            let outputs = selection("measure", &run, &mut options)?;
            let closure = closure_of("measure", &shared, &context, &name, options, closure)?;
            Ok::<_, Box<EvalAltResult>>(analysis(Measure { closure, outputs }, vec![run.node], title))
        };
    let measure = measure_some.clone();
    engine.register_fn(
        "measure",
        move |context: NativeCallContext, name: ImmutableString, run: Run, closure: FnPtr| {
            measure(context, name, run, Map::new(), closure)
        },
    );
    engine.register_fn("measure", measure_some);
    let shared = session.clone();
    let combine_some =
        move |context: NativeCallContext, name: ImmutableString, stages: Array, mut options: Map, closure: FnPtr| {
            let title = name_of("combine", &mut options)?;
            let inputs = stages_of("combine", &stages)?;
            let closure = closure_of("combine", &shared, &context, &name, options, closure)?;
            Ok::<_, Box<EvalAltResult>>(analysis(Combine { closure }, inputs, title))
        };
    let combine = combine_some.clone();
    engine.register_fn(
        "combine",
        move |context: NativeCallContext, name: ImmutableString, stages: Array, closure: FnPtr| {
            combine(context, name, stages, Map::new(), closure)
        },
    );
    engine.register_fn("combine", combine_some);
}

/// `MEASUREMENT.name`: a value that is known once the measurement is done.
fn measured(analysis: &Analysis, name: &str) -> Bound<Measured> {
    if !["measure", "combine"].contains(&analysis.node.stage().kind()) {
        let message = "only the results of measure and combine have values that a recipe can name";
        return Err(Refusal::error(name, message, None));
    }
    Ok(Measured { node: analysis.node.clone(), path: vec![name.into()] })
}

fn closure_of(
    function: &'static str,
    session: &Session,
    context: &NativeCallContext,
    name: &str,
    options: Map,
    closure: FnPtr,
) -> Bound<Closure> {
    let others: &[&str] = if function == "measure" { &COMMON } else { &[NAME] };
    let ClosureOptions { time_limit_s } = decode_with(function, options, others)?;
    if time_limit_s <= 0.0 {
        let message = format!("time_limit_s = {time_limit_s}: must be positive");
        return Err(Refusal::error(function, message, Some("time_limit_s")));
    }
    if !is_file_name(name) {
        let message = format!("the name \"{name}\" becomes a folder's: use letters, digits, - and _");
        return Err(Refusal::error(function, message, None));
    }
    let Captured { closure, text, values: captured, place } = Captured::new(function, session, context, closure)?;
    Ok(Closure { function, name: name.into(), closure, text, captured, place, time_limit_s })
}

//! `evolve` and `from_snapshot`.

use super::{Bound, Initial, NAME, Run, input_path, name_of};
use crate::campaign::Node;
use crate::moment::Moment;
use crate::recipe::docs::Function;
use crate::recipe::engine::Session;
use crate::recipe::error::Refusal;
use crate::recipe::options::{decode_with, from_json, take};
use crate::stage::evolve::options::{EXTENT, Extent, check};
use crate::stage::evolve::{Evolve, Origin};
use crate::stage::formula::Formula;
use crate::stage::saved::Saved;
use comove_sim::RunParameters;
use rhai::{Array, Engine, ImmutableString, Map};
use std::sync::Arc;

/// Both.
pub const FUNCTIONS: &[Function] = &[
    Function {
        name: "evolve",
        signatures: &[
            "evolve(start: InitialCondition) -> Run",
            "evolve(start: InitialCondition, options: Map) -> Run",
            "evolve(snapshot: Run, options: Map) -> Run",
        ],
        usage: "evolve(START, #{ z_end, … }) or evolve(from_snapshot(\"file\"), #{ z_end, … })",
        text: "A run from an initial condition or a snapshot. Where it ends must be said, as `z_end` or `t_end`, \
               unless it starts from a problem.",
        options: &["Extent", "RunParameters", "Naming"],
    },
    Function {
        name: "from_snapshot",
        signatures: &["from_snapshot(file: String) -> Run"],
        usage: "from_snapshot(\"file\")",
        text: "A checkpoint or output, named relative to the recipe's folder: to be continued, or analysed as a run \
               with one output.",
        options: &[],
    },
];

/// Registers both.
pub fn register(engine: &mut Engine, session: &Arc<Session>) {
    engine.register_fn("evolve", |start: Initial| from_initial(start, Map::new()));
    engine.register_fn("evolve", from_initial);
    engine.register_fn("evolve", |saved: Run, options: Map| -> Bound<Run> {
        if saved.outputs.is_some() {
            let message = "a run cannot start from another run of the same recipe: extend its end, or start from \
                           one of its files with from_snapshot(\"file\")";
            return Err(Refusal::error("evolve", message, None));
        }
        run(vec![saved.node], Origin::Saved { branch: false }, options)
    });
    let shared = session.clone();
    engine.register_fn("from_snapshot", move |file: ImmutableString| -> Run {
        let node = Node::new(Saved { path: input_path(&shared, &file) }, Vec::new());
        Run { node, outputs: None, problem: None }
    });
}

fn from_initial(start: Initial, options: Map) -> Bound<Run> {
    match start {
        Initial::Mesh { node, facts } => run(vec![node], Origin::Initial(facts), options),
        Initial::Formula(formula) => run(Vec::new(), Origin::Formula(formula), options),
    }
}

fn run(inputs: Vec<Node>, origin: Origin, mut options: Map) -> Bound<Run> {
    let name = name_of("evolve", &mut options)?;
    let extent: Extent = decode_with("evolve", take(&mut options, &EXTENT), &[])?;
    let refuse =
        |(key, message): (&str, String)| Refusal::error("evolve", message, Some(key).filter(|key| !key.is_empty()));
    let formula = match &origin {
        Origin::Formula(formula) => Some(formula.clone()),
        _ => None,
    };
    let outputs = extent.outputs(origin.start(), formula.as_ref().and_then(|f| f.end())).map_err(refuse)?;
    let end = *outputs.last().expect("there is always an output at the end");
    // one criterion needs no list
    if let Some(criterion) = options.get_mut("refine").filter(|v| v.is_map()) {
        *criterion = Array::from([std::mem::take(criterion)]).into();
    }
    let mut parameters: RunParameters =
        decode_with("evolve", standard(formula.as_deref(), end, options), &[&EXTENT[..], &[NAME]].concat())?;
    check(&parameters).map_err(refuse)?;
    if parameters.coordinates != end.coordinates() {
        let message = format!("the run counts {}, so they are another kind", end.symbol());
        return Err(refuse(("coordinates", message)));
    }
    if let Some(formula) = formula.as_ref().filter(|f| f.setup.parameters.gamma != parameters.gamma) {
        let message = format!("the start was made with {}: say gamma there", formula.setup.parameters.gamma);
        return Err(refuse(("gamma", format!("gamma = {}: {message}", parameters.gamma))));
    }
    // thresholds of levels that are never refined decide nothing, and must not count in the fingerprint
    for criterion in &mut parameters.refine {
        criterion.truncate(parameters.max_level);
    }
    let origin = match origin {
        Origin::Saved { .. } => Origin::Saved { branch: extent.branch },
        initial => initial,
    };
    let problem = formula.and_then(|formula| formula.problem().cloned());
    let stage = Evolve { origin, parameters, end, outputs: outputs.clone(), checkpoints: extent.checkpoints };
    Ok(Run { node: Node::named(stage, inputs, name), outputs: Some(outputs), problem })
}

/// The options of a run on top of those of the standard run that its start belongs to.
fn standard(formula: Option<&Formula>, end: Moment, options: Map) -> Map {
    let standard = match formula {
        Some(formula) => formula.setup.parameters.clone(),
        None => RunParameters { coordinates: end.coordinates(), ..RunParameters::default() },
    };
    let standard = serde_json::to_value(standard).expect("numbers and names");
    let mut all: Map = from_json(&standard).cast();
    all.extend(options);
    all
}

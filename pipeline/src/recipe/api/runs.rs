//! `evolve` and `from_snapshot`.

use super::call::Call;
use super::failure::failure;
use super::handles::{Initial, NAME, Run, captured, input_path, name_of, run_facts};
use super::hooks::{HOOKS, hooks};
use super::later::needs_of_any;
use crate::campaign::Node;
use crate::campaign::deferred::{Known, Measured};
use crate::moment::Moment;
use crate::recipe::closure_members::{self, Use};
use crate::recipe::error::{Bound, Cause, Refusal};
use crate::recipe::interpreter::Session;
use crate::recipe::options::{decode_with, from_json, take};
use crate::recipe::reference::Function;
use crate::stage::closure::Captured;
use crate::stage::evolve::options::{EXTENT, Extent, check};
use crate::stage::evolve::{Evolve, Hooks, Origin, TITLE};
use crate::stage::formula::Formula;
use crate::stage::saved::{KIND as SAVED, Saved};
use comove_sim::{Criterion, RunParameters};
use rhai::{Array, Engine, FnPtr, ImmutableString, Map, NativeCallContext};
use std::sync::Arc;

pub(crate) const FUNCTIONS: &[Function] = &[
    Function::new(
        &[
            "evolve(start: InitialCondition) -> Run",
            "evolve(start: InitialCondition, options: Map) -> Run",
            "evolve(snapshot: Run, options: Map) -> Run",
        ],
        "A run from an initial condition or a snapshot. Where it ends must be said, as `z_end` or `t_end`, \
         unless it starts from a problem.",
    )
    .used_as("evolve(START, #{ z_end, … }) or evolve(from_snapshot(\"file\"), #{ z_end, … })")
    .with_options(&["Extent", "HookOptions", "RunParameters", "Naming"]),
    Function::new(
        &["from_snapshot(file: String) -> Run"],
        "A checkpoint or output, named relative to the recipe's folder: to be continued, or analysed as a run \
         with one output.",
    )
    .used_as("from_snapshot(\"file\")"),
];

pub(crate) fn register(engine: &mut Engine, session: &Arc<Session>) {
    engine.register_fn("evolve", |context: NativeCallContext, start: Initial| {
        from_initial(&context, start, Hooks::default(), Vec::new(), Map::new())
    });
    let shared = session.clone();
    engine.register_fn("evolve", move |context: NativeCallContext, start: Initial, mut options: Map| {
        let hooks = hooks(&shared, &context, &mut options)?;
        let scalars = scalar_closures(&shared, &context, &mut options)?;
        from_initial(&context, start, hooks, scalars, options)
    });
    let shared = session.clone();
    let evolve_saved = move |context: NativeCallContext, saved: Run, mut options: Map| -> Bound<Run> {
        if saved.node.stage().kind() != SAVED {
            let message = "a run cannot start from another run of the same recipe; extend its end, or start from one \
                           of its files with from_snapshot(\"file\")";
            return Err(Refusal::error("evolve", message, None));
        }
        let hooks = hooks(&shared, &context, &mut options)?;
        let species = saved.node.stage().species();
        later_or_now(&context, vec![saved.node], Vec::new(), options, move |inputs, options, _| {
            run(inputs, Origin::Saved { branch: false, species }, hooks.clone(), options)
        })
    };
    engine.register_fn("evolve", evolve_saved);
    let shared = session.clone();
    engine.register_fn("from_snapshot", move |file: ImmutableString| -> Bound<Run> {
        let saved = Saved::new(input_path(SAVED, &shared, &file)?);
        let saved = saved.map_err(|error| failure(SAVED, &error))?;
        Ok(Run { node: Node::new(saved, Vec::new()), outputs: None, problem: None })
    });
}

/// Takes the closures out of `scalars: #{ … }`: the mass fractions of passive scalars at the start.
fn scalar_closures(
    session: &Session,
    context: &NativeCallContext<'_>,
    options: &mut Map,
) -> Bound<Vec<(String, Captured)>> {
    let mut closures = Vec::new();
    let Some(mut scalars) = options.get_mut("scalars").and_then(|value| value.write_lock::<Map>()) else {
        return Ok(closures);
    };
    for (name, value) in scalars.iter_mut().filter(|(_, value)| value.is::<FnPtr>()) {
        let closure = std::mem::take(value).cast();
        closures.push((name.to_string(), captured("evolve", session, context, closure, 3)?));
    }
    Ok(closures)
}

fn from_initial(
    context: &NativeCallContext<'_>,
    start: Initial,
    hooks: Hooks,
    scalars: Vec<(String, Captured)>,
    options: Map,
) -> Bound<Run> {
    let (node, needs) = match &start {
        Initial::Mesh { node, .. } => (Some(node.clone()), Vec::new()),
        Initial::Formula(_) => (None, Vec::new()),
        Initial::Later { node, needs, .. } => (node.clone(), needs.clone()),
    };
    let make = move |inputs: Vec<Node>, options: Map, known: &Known| {
        let start = match &start {
            Initial::Later { make, .. } => make(known)?,
            start => start.clone(),
        };
        let origin = match start {
            Initial::Mesh { facts, .. } => match scalars.first() {
                None => Origin::Initial(facts),
                Some((name, _)) => {
                    let message =
                        format!("scalars: {name} can be a closure only after ic_function or problem; give a number");
                    return Err(Refusal::error("evolve", message, Some("scalars")));
                }
            },
            Initial::Formula(formula) if scalars.is_empty() => Origin::Formula(formula),
            Initial::Formula(formula) => {
                Origin::Formula(Arc::new(Formula { scalars: scalars.clone(), ..Formula::clone(&formula) }))
            }
            Initial::Later { .. } => unreachable!("it has just been made"),
        };
        run(inputs, origin, hooks.clone(), options)
    };
    later_or_now(context, node.into_iter().collect(), needs, options, make)
}

/// The run that `make` makes of its inputs and options, now or once these and `needs` are known.
fn later_or_now(
    context: &NativeCallContext<'_>,
    inputs: Vec<Node>,
    needs: Vec<Measured>,
    mut options: Map,
    make: impl Fn(Vec<Node>, Map, &Known) -> Bound<Run> + Send + Sync + 'static,
) -> Bound<Run> {
    if needs.is_empty() && needs_of_any(&options).is_empty() {
        let name = name_of("evolve", &mut options)?;
        let run = make(inputs, options, &Known::default())?;
        return Ok(Run { node: run.node.named(name), ..run });
    }
    let call = Call { needs, title: TITLE.into(), ..Call::new("evolve", inputs.clone(), options)? };
    let node = call.stage(context, move |options, known| Ok(make(inputs.clone(), options, known)?.node))?;
    Ok(Run { node, outputs: None, problem: None })
}

fn run(inputs: Vec<Node>, origin: Origin, hooks: Hooks, mut options: Map) -> Bound<Run> {
    let extent: Extent = decode_with("evolve", take(&mut options, &EXTENT), &[])?;
    // without a key an option is missing
    let refuse = |(key, message): (&str, String)| match key {
        "" => Refusal::because(Cause::Text, "evolve", message, None),
        key => Refusal::error("evolve", message, Some(key)),
    };
    let formula = match &origin {
        Origin::Formula(formula) => Some(formula.clone()),
        _ => None,
    };
    let outputs = extent.outputs(origin.start(), formula.as_ref().and_then(|f| f.end())).map_err(refuse)?;
    let end = *outputs.last().expect("there is always an output at the end");
    let others = [&EXTENT[..], &HOOKS, &[NAME]].concat();
    let is_refined =
        options.get("refine").is_some_and(|criteria| !criteria.as_array_ref().is_ok_and(|list| list.is_empty()));
    let lacks_levels = is_refined && !options.contains_key("max_level");
    // one criterion needs no list
    if let Some(criterion) = options.get_mut("refine").filter(|v| v.is_map()) {
        *criterion = Array::from([std::mem::take(criterion)]).into();
    }
    let mut parameters: RunParameters = decode_with("evolve", standard(formula.as_deref(), end, options), &others)?;
    let start = origin.facts();
    if origin.species().is_some_and(|species| !species.dark_matter) {
        parameters.refine.iter_mut().for_each(Criterion::for_gas_alone);
    }
    check(&parameters, start.as_ref()).map_err(refuse)?;
    let lacking = match (&origin, &formula) {
        (Origin::Saved { .. }, _) => None,
        (_, formula) => lacking_scalar(&parameters, formula.as_deref()),
    };
    if let Some(name) = lacking {
        let message = format!(
            "scalars: {name} has no initial mass fraction; give one, scalars: #{{ {name}: 0.02 }}, or a closure |x, \
             y, z|"
        );
        return Err(refuse(("scalars", message)));
    }
    if lacks_levels && parameters.max_level == 0 {
        let message = "refine has no effect without max_level; add max_level: 3";
        return Err(refuse(("refine", message.into())));
    }
    if parameters.coordinates != end.coordinates() {
        let message = format!("the run counts {}, so they are another kind", end.symbol());
        return Err(refuse(("coordinates", message)));
    }
    // thresholds of levels that are never refined decide nothing, and must not count in the fingerprint
    for criterion in &mut parameters.refine {
        criterion.truncate(parameters.max_level);
    }
    let origin = match origin {
        Origin::Saved { species, .. } => Origin::Saved { branch: extent.branch, species },
        initial => initial,
    };
    let problem = formula.and_then(|formula| formula.problem().cloned());
    let uses: Vec<Use> = hooks.closures().flat_map(|closure| closure.uses.clone()).collect();
    let stage = Evolve { origin, parameters, end, outputs: outputs.clone(), checkpoints: extent.checkpoints, hooks };
    let node = Node::new(stage, inputs);
    closure_members::check(&uses, &run_facts(&node))?;
    Ok(Run { node, outputs: Some(outputs), problem })
}

/// A scalar without a mass fraction to start with.
fn lacking_scalar(parameters: &RunParameters, formula: Option<&Formula>) -> Option<String> {
    let given = formula.map_or(&[][..], |formula| &formula.scalars);
    let is_given = |name: &str| given.iter().any(|(given, _)| given == name);
    let mut scalars = parameters.scalars.names().zip(parameters.scalars.initial());
    scalars.find(|(name, fraction)| fraction.is_none() && !is_given(name)).map(|(name, _)| name.to_owned())
}

/// The options of a run on top of those of the standard run that its start belongs to.
fn standard(formula: Option<&Formula>, end: Moment, options: Map) -> Map {
    let standard = match formula {
        Some(formula) => formula.setup.parameters.clone(),
        None => RunParameters { coordinates: end.coordinates(), ..RunParameters::default() },
    };
    // a scheme brings its Courant number; one that cannot be decoded is refused later
    let scheme = options.get("scheme").and_then(|name| serde_json::from_value(name.to_string().into()).ok());
    let standard = match scheme {
        Some(scheme) => standard.with_scheme(scheme),
        None => standard,
    };
    let standard = serde_json::to_value(standard).expect("numbers and names");
    let mut all: Map = from_json(&standard).cast();
    all.extend(options);
    all
}

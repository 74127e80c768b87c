//! The handles of stages in a recipe, and what functions share that take them: names, captured closures, lists of stages.

use super::later;
use crate::campaign::Node;
use crate::campaign::deferred::{Deferred, Known, Measured, THEN};
use crate::moment::Moment;
use crate::recipe::closure_members::RunFacts;
use crate::recipe::error::{Bound, Cause, Refusal, plain};
use crate::recipe::interpreter::Session;
use crate::recipe::options::{decode, take, to_json};
use crate::recipe::source::Place;
use crate::stage::closure::Captured;
use crate::stage::formula::Formula;
use crate::stage::initial::{InitialFacts, SpeciesPresent};
use comove_ic::problems::Problem;
use comove_sim::{Coordinates, Cosmology};
use rhai::{Array, Dynamic, FnPtr, Map, NativeCallContext};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The species of a run or what is made of it, if they are known.
pub(super) fn species_of(node: &Node) -> Option<SpeciesPresent> {
    node.stage().species().or_else(|| read_by(node).iter().find_map(species_of))
}

/// The inputs that a stage reads, without those that only decide on it.
pub(super) fn read_by(node: &Node) -> &[Node] {
    match node.decision() {
        Some((_, Deferred::Stage { own, .. })) => &node.inputs()[..*own],
        Some((_, Deferred::Then(..))) => &[],
        None => node.inputs(),
    }
}

/// A run or a snapshot as far as it is known before it is computed or read.
pub(super) fn run_facts(node: &Node) -> RunFacts {
    let species = species_of(node);
    let gas = species.map(|species| species.gas);
    let dark_matter = species.map(|species| species.dark_matter);
    let Some(run) = node.stage().as_run() else { return RunFacts { gas, dark_matter, ..RunFacts::default() } };
    RunFacts {
        gas,
        dark_matter,
        gravity: Some(run.parameters.gravity),
        comoving: Some(run.parameters.coordinates == Coordinates::Comoving),
        fields: gas.and_then(|_| run.parameters.scalars.fields().ok()),
    }
}

/// The handle of an initial condition in a recipe.
#[derive(Clone)]
pub(crate) enum Initial {
    /// A mesh.
    Mesh {
        /// The stage that makes it.
        node: Node,
        /// What a run has to know of it.
        facts: InitialFacts,
    },
    /// A formula, which a run evaluates itself.
    Formula(Arc<Formula>),
    /// One with values of results among its options.
    Later {
        /// The stage that makes it, if it is a mesh.
        node: Option<Node>,
        needs: Vec<Measured>,
        /// Makes it of them.
        make: Arc<MakeInitial>,
    },
}

/// Makes an initial condition of the values that it waited for.
pub(crate) type MakeInitial = dyn Fn(&Known) -> Bound<Initial> + Send + Sync;

/// The handle of a run, or of a snapshot from elsewhere.
#[derive(Clone)]
pub(crate) struct Run {
    pub node: Node,
    /// When its outputs are taken; `None` for a snapshot, whose moment is known when it is read.
    pub outputs: Option<Vec<Moment>>,
    /// The problem that it starts from, if it does.
    pub problem: Option<Arc<dyn Problem>>,
}

#[derive(Clone)]
pub(crate) struct Analysis(pub Node);

/// The stage behind a handle, if the value is one.
pub(crate) fn node_of(value: &Dynamic) -> Option<Node> {
    let mesh = value.clone().try_cast::<Initial>().and_then(|initial| match initial {
        Initial::Mesh { node, .. } => Some(node),
        Initial::Formula(_) => None,
        Initial::Later { node, .. } => node,
    });
    mesh.or_else(|| value.clone().try_cast::<Run>().map(|h| h.node))
        .or_else(|| value.clone().try_cast::<Analysis>().map(|h| h.0))
        .or_else(|| value.clone().try_cast::<Further>().map(|h| h.0))
}

/// The handle of what `then` decides on.
#[derive(Clone)]
pub(crate) struct Further(pub Node);

/// A closure that `function` was called with, wherever it is written, and that will be called with so many arguments.
pub(super) fn captured(
    function: &str,
    session: &Session,
    context: &NativeCallContext<'_>,
    closure: FnPtr,
    arguments: usize,
) -> Bound<Captured> {
    takes(function, context, &closure, arguments)?;
    let closure = detached(closure);
    let (text, values) = identity_of(function, session, &closure)?;
    let place = session.place_of(&closure).unwrap_or_else(|| place_of(context));
    Ok(Captured { closure, text, values, place })
}

/// Refuses a closure that has another number of parameters than it will be called with.
fn takes(function: &str, context: &NativeCallContext<'_>, closure: &FnPtr, arguments: usize) -> Bound<()> {
    let captured = closure.curry().len();
    let has = |count: usize| {
        context.namespaces().iter().any(|module| module.get_script_fn(closure.fn_name(), captured + count).is_some())
    };
    match (0..=MOST_PARAMETERS).find(|count| has(*count)) {
        Some(count) if !has(arguments) => {
            let message = format!("the closure has {count} parameters, but is called with {arguments}");
            Err(Refusal::because(Cause::Text, function, message, None))
        }
        _ => Ok(()),
    }
}

/// Up to so many parameters of a closure are counted.
const MOST_PARAMETERS: usize = 8;

/// A closure with its captured values copied, also those of closures that it has captured: it says the same whenever it is
/// called.
pub(super) fn detached(mut closure: FnPtr) -> FnPtr {
    for value in closure.iter_curry_mut() {
        *value = value.flatten_clone();
        if let Some(inner) = value.clone().try_cast::<FnPtr>() {
            *value = Dynamic::from(detached(inner));
        }
    }
    closure
}

/// What decides what a closure gives: its text, and what it captures.
fn identity_of(function: &str, session: &Session, closure: &FnPtr) -> Bound<(String, Value)> {
    let text = match session.place_of(closure) {
        Some(place) => session.source.closure_text(place),
        None => Some(session.source.function_text(closure.fn_name())),
    };
    let text = text.ok_or_else(|| Refusal::error(function, "the closure's text is not found", None))?;
    let values =
        closure.curry().iter().map(|value| captured_value(function, session, value)).collect::<Bound<Value>>()?;
    Ok((text, values))
}

pub(super) fn place_of(context: &NativeCallContext<'_>) -> Place {
    let position = context.call_position();
    Place { line: position.line().unwrap_or(1), column: position.position().unwrap_or(1) }
}

/// A captured value for the fingerprint: plain data and a cosmology as they are, a closure by its text and what it captures, a
/// stage by what it does and all that it starts from.
fn captured_value(function: &str, session: &Session, value: &Dynamic) -> Bound<Value> {
    if let Some(closure) = value.read_lock::<FnPtr>() {
        let (text, values) = identity_of(function, session, &closure)?;
        return Ok(json!({ "closure": text, "captured": values }));
    }
    if let Some(need) = later::needs_of(value).first() {
        let message = format!("the closure captures a value: {}", later::known_later(function, need));
        return Err(Refusal::error(function, message, None));
    }
    if let Some(cosmology) = value.clone().try_cast::<Cosmology>() {
        return Ok(json!(cosmology));
    }
    if let Some(node) = node_of(value) {
        return Ok(identity(&node, session.source.path.parent().unwrap_or(Path::new(""))));
    }
    to_json(value).map_err(|(_, what)| {
        let message = format!(
            "the closure captures {what}; it can capture only numbers, texts, truth values, lists and maps of these, \
             closures, cosmologies and stages"
        );
        Refusal::error(function, message, None)
    })
}

/// What a stage is before anything has run: its files count by the names that a recipe in `folder` gives them.
fn identity(node: &Node, folder: &Path) -> Value {
    let named = |path: PathBuf| path.strip_prefix(folder).unwrap_or(&path).display().to_string();
    json!({
        "stage": node.stage().label(),
        "parameters": node.stage().parameters(),
        "files": node.stage().files().into_iter().map(named).collect::<Vec<_>>(),
        "inputs": node.inputs().iter().map(|input| identity(input, folder)).collect::<Vec<_>>(),
    })
}

/// What a stage is called: outside all fingerprints.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Naming {
    /// What `plan`, the log, `status` and the report call the stage; by default what it makes, with what tells it from others.
    name: Option<String>,
}

/// The name of [`Naming`]'s option.
pub(super) const NAME: &str = "name";

const NAME_LENGTH: usize = 80;

/// Takes the name of a stage out of its options, if there is one.
pub(super) fn name_of(function: &str, options: &mut Map) -> Bound<Option<String>> {
    let given = take(options, &[NAME]);
    later::refuse(function, &given)?;
    let Naming { name } = decode(function, given)?;
    let is_line = |name: &String| !name.trim().is_empty() && !name.chars().any(char::is_control);
    match name {
        Some(name) if !is_line(&name) || name.chars().count() > NAME_LENGTH => {
            let message = format!("name = {name:?}: must be one line of up to {NAME_LENGTH} characters");
            Err(Refusal::error(function, message, Some(NAME)))
        }
        name => Ok(name.map(|name| name.trim().to_owned())),
    }
}

/// The stages of a list, also of lists in it.
pub(super) fn stages_of(function: &str, stages: &Array) -> Bound<Vec<Node>> {
    let mut nodes = Vec::new();
    collect(function, stages, &mut nodes)?;
    if nodes.is_empty() {
        return Err(Refusal::error(function, "the list is empty; give at least one stage", None));
    }
    let further = nodes.iter().find(|node| function != "campaign" && node.stage().kind() == THEN);
    match further {
        Some(_) => {
            Err(Refusal::error(function, "the stage that then decides on has no result; use a measurement", None))
        }
        None => Ok(nodes),
    }
}

/// The stages that a closure returns: one, a list, also of lists, or nothing.
pub(crate) fn nodes_of(function: &str, value: &Dynamic) -> Bound<Vec<Node>> {
    let mut nodes = Vec::new();
    if let Some(list) = value.read_lock::<Array>() {
        collect(function, &list, &mut nodes)?;
    } else if !value.is_unit() {
        let what = plain(value.type_name());
        let none = || {
            Refusal::because(
                Cause::Text,
                function,
                format!("the closure returned {what}, expected a list of stages"),
                None,
            )
        };
        nodes.push(node_of(value).ok_or_else(none)?);
    }
    Ok(nodes)
}

fn collect(function: &str, stages: &Array, nodes: &mut Vec<Node>) -> Bound<()> {
    for (n, value) in stages.iter().enumerate() {
        if let Some(node) = node_of(value) {
            nodes.push(node);
        } else if let Some(inner) = value.read_lock::<Array>() {
            collect(function, &inner, nodes)?;
        } else {
            let message = format!("entry {} of the list is {}, not a stage", n + 1, plain(value.type_name()));
            return Err(Refusal::because(Cause::Text, function, message, None));
        }
    }
    Ok(())
}

/// A file that a recipe names in a call of `function`: relative to the recipe's folder.
pub(super) fn input_path(function: &str, session: &Session, file: &str) -> Bound<PathBuf> {
    if file.contains('\0') {
        let message = format!("{file:?}: a file name cannot contain \\0; remove it");
        return Err(Refusal::error(function, message, None));
    }
    Ok(session.source.path.parent().map_or_else(|| PathBuf::from(file), |folder| folder.join(file)))
}

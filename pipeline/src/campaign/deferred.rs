//! Stages that are not known before others are done: those with an option that is a value of a result, and the further ones
//! that `then` decides on.
//!
//! Both follow from results alone, so they are found anew whenever somebody walks over the campaign, and nothing of them is
//! stored.

use super::Node;
use crate::error::PipelineError;
use crate::recipe::error::nearest;
use crate::recipe::options::from_json;
use crate::recipe::sandbox::Limits;
use crate::recipe::{Place, Program, RecipeError};
use crate::stage::closure::RESULT;
use crate::stage::result::read_json;
use crate::stage::{Stage, StageResult, Work, section};
use rhai::{Dynamic, EvalAltResult, FnPtr};
use serde_json::{Map, Value};
use std::sync::Arc;

/// A value in the result of a `measure` or `combine`: known once that is done.
#[derive(Clone)]
pub(crate) struct Measured {
    pub node: Node,
    /// Where the value is in its result, name by name.
    pub path: Vec<String>,
}

impl Measured {
    /// How a recipe calls it: `peak.place`, or `peak` for the whole result.
    pub(crate) fn name(&self) -> String {
        let whole = own_name(self.node.stage());
        std::iter::once(&whole).chain(&self.path).map(String::as_str).collect::<Vec<_>>().join(".")
    }

    /// The value in what the measurement has left; of several moments' results that of the last.
    fn read(&self, result: &StageResult) -> Result<Result<Value, String>, PipelineError> {
        let mut value = result_of(self.node.stage(), result)?;
        for name in &self.path {
            let Some(inner) = value.get_mut(name).map(Value::take) else {
                let known: Vec<&str> = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
                let hint = match nearest(name, known.iter().copied()) {
                    Some(near) => format!(", did you mean \"{near}\"?"),
                    None => format!("; there are {}", known.join(", ")),
                };
                return Ok(Err(format!("{}: the result has no \"{name}\"{hint}", self.name())));
            };
            value = inner;
        }
        Ok(Ok(value))
    }
}

/// Values that were not known when the recipe was evaluated.
#[derive(Default)]
pub(crate) struct Known(Vec<(Measured, Value)>);

impl Known {
    /// What a value has turned out to be.
    pub(crate) fn of(&self, measured: &Measured) -> &Value {
        let is_it = |(other, _): &&(Measured, Value)| other.node.is(&measured.node) && other.path == measured.path;
        &self.0.iter().find(is_it).expect("a stage waits for all values that it uses").1
    }
}

/// Makes a stage of the values it waited for; what it refuses is told at its call.
pub(crate) type Make = dyn Fn(&Known) -> Result<Node, Box<EvalAltResult>> + Send + Sync;

/// The stages in a closure's value, for a function of the recipe.
pub(crate) type NodesOf = fn(&str, &Dynamic) -> Result<Vec<Node>, Box<EvalAltResult>>;

/// The kind of what decides on further stages.
pub(crate) const THEN: &str = "then";

/// What is decided later.
pub(crate) enum Deferred {
    /// One stage, with values of results among its options.
    Stage {
        /// How many of the node's inputs it reads; the others are what it waits for.
        own: usize,
        needs: Vec<Measured>,
        make: Arc<Make>,
    },
    /// Further stages, which a closure makes of the result of the node's input; and how its value is read.
    Then(FnPtr, NodesOf),
}

/// What stands for a stage until it is decided.
#[derive(Clone, Debug)]
pub(crate) struct Undecided {
    /// The function of the recipe that is called.
    pub function: &'static str,
    /// What its folder will be called.
    pub label: String,
    /// What it will make, in a few words.
    pub title: String,
    /// What it waits for.
    pub describes: String,
    /// Its options, values that are not known by their names.
    pub parameters: Value,
    /// Where it is called.
    pub place: Place,
}

impl Stage for Undecided {
    fn kind(&self) -> &'static str {
        self.function
    }

    fn label(&self) -> String {
        self.label.clone()
    }

    fn title(&self) -> String {
        self.title.clone()
    }

    fn describe(&self) -> String {
        self.describes.clone()
    }

    fn parameters(&self) -> Value {
        self.parameters.clone()
    }

    fn execute(&self, _: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        unreachable!("what is done is decided before")
    }
}

impl Undecided {
    /// The stage that it becomes now that the results of `inputs` are there.
    pub(crate) fn stage(
        &self,
        (needs, make): (&[Measured], &Make),
        inputs: &[Node],
        results: &[&StageResult],
        program: &Program,
    ) -> Result<Node, PipelineError> {
        let mut known = Known::default();
        for measured in needs {
            let at = inputs.iter().position(|input| input.is(&measured.node)).expect("it is waited for");
            let value = measured.read(results[at])?;
            let refuse =
                |message| RecipeError::at(program.source(), self.place, format!("{}: {message}", self.function));
            known.0.push((measured.clone(), value.map_err(refuse)?));
        }
        let refuse = |error: Box<EvalAltResult>| program.explain(&error, self.place);
        Ok(make(&known).map_err(refuse)?)
    }

    /// The stages that `then` decides on, now that the result of its input is there.
    pub(crate) fn further(
        &self,
        (closure, nodes_of): (&FnPtr, NodesOf),
        input: &Node,
        result: &StageResult,
        program: &Program,
    ) -> Result<Vec<Node>, PipelineError> {
        let argument = from_json(&result_of(input.stage(), result)?);
        let nodes =
            program.call(Limits::recipe(), closure, self.place, (argument,), |value| nodes_of("then", &value))?;
        let nodes = nodes.unwrap_or_else(|by| unreachable!("nobody may stop it, and {by} did"));
        Ok(nodes.map_err(|error| program.explain(&error, self.place))?)
    }
}

/// A stage as a recipe calls it: by the name that it has been given, or its kind.
pub(crate) fn own_name(stage: &dyn Stage) -> String {
    let label = stage.label();
    label.strip_prefix(stage.kind()).and_then(|rest| rest.strip_prefix('-')).map_or(label.clone(), String::from)
}

/// What a stage has left, for a recipe: of a measurement the closure's result, of the last moment if there are several; of
/// any other analysis its files of JSON by their names.
fn result_of(stage: &dyn Stage, result: &StageResult) -> Result<Value, PipelineError> {
    if ["measure", "combine"].contains(&stage.kind()) {
        let mut results: Vec<Value> = read_json(&result.folder.join(RESULT))?;
        return Ok(results.pop().map_or(Value::Null, |mut last| last["result"].take()));
    }
    let mut all = Map::new();
    let data = |file: &&str| file.ends_with(".json") && *file != section::FILE;
    for file in result.artefacts.iter().map(|artefact| artefact.file.as_str()).filter(data) {
        all.insert(file.trim_end_matches(".json").into(), read_json(&result.folder.join(file))?);
    }
    Ok(Value::Object(all))
}

//! `combine`: what a closure of the recipe makes of several runs, measurements and analyses together.

use super::closure::Closure;
use super::measure::RESULT;
use super::result::read_json;
use super::section::{self, Section};
use super::{Input, Selection, Stage, StageResult, Work};
use crate::error::PipelineError;
use crate::recipe::api::run_view::RunView;
use crate::recipe::options::from_json;
use rhai::{Array, Dynamic, Map};
use serde_json::{Value, json};

/// A closure of what several stages have left.
#[derive(Clone, Debug)]
pub struct Combine {
    /// The closure: its argument is a list with one entry a stage.
    pub closure: Closure,
}

impl Stage for Combine {
    fn kind(&self) -> &'static str {
        "combine"
    }

    fn label(&self) -> String {
        format!("combine-{}", self.closure.name)
    }

    fn title(&self) -> String {
        format!("Combined: {}", self.closure.name)
    }

    fn describe(&self) -> String {
        format!("\"{}\"", self.closure.name)
    }

    fn parameters(&self) -> Value {
        self.closure.parameters()
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        if !input.snapshots.is_empty() {
            return Selection::All.of(input);
        }
        let data = |file: &str| file.ends_with(".json") && file != section::FILE;
        Ok(input.artefacts.iter().filter(|a| data(&a.file)).filter_map(|a| input.artefact(&a.file)).collect())
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let entries = work.inputs.iter().map(|inputs| entry(inputs, work)).collect::<Result<Array, _>>()?;
        let (result, drawn) = self.closure.call(entries, work)?;
        let mut section = Section::default();
        self.closure.show("Result", &result, &mut section);
        let mut files = drawn.write("", work, &mut section)?;
        files.push(work.write_json(RESULT, &[json!({ "result": result })])?);
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

/// What the closure sees of a stage: a run's outputs, a measurement's results, or what an analysis has left as JSON, by
/// the files' names.
fn entry(inputs: &[Input], work: &Work<'_>) -> Result<Dynamic, PipelineError> {
    if inputs.iter().any(|input| input.moment.is_some()) {
        return Ok(Dynamic::from(RunView::new(inputs, work.snapshots)));
    }
    let mut map = Map::new();
    for input in inputs {
        let value: Value = read_json(&input.path)?;
        if input.name() == RESULT {
            // a measurement: the last moment's result, with its z or t, and those of all moments
            let last = value.as_array().and_then(|all| all.last()).and_then(Value::as_object);
            map.extend(last.into_iter().flatten().map(|(name, value)| (name.into(), from_json(value))));
            map.insert("all".into(), from_json(&value));
        } else {
            map.insert(input.name().trim_end_matches(".json").into(), from_json(&value));
        }
    }
    Ok(map.into())
}

//! `measure`: what a closure of the recipe computes from a snapshot.

use super::section::Section;
use super::{Input, Selection, Stage, StageResult, Work};
use crate::campaign::Node;
use crate::error::PipelineError;
use crate::recipe::api::snapshot_view::SnapshotView;
use crate::recipe::options::to_json;
use crate::recipe::{RecipeError, Source};
use rhai::{Dynamic, FnPtr};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::Path;

/// The file with the results.
pub const RESULT: &str = "result.json";

/// A value in a measurement's result that another stage reads: known once the measurement is done.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The measurement.
    pub node: Node,
    /// Where the value is in its result, name by name.
    pub path: Vec<String>,
}

impl Measured {
    /// The value in a result file; of several snapshots' results the last one's.
    ///
    /// # Errors
    /// [`PipelineError::Io`]; [`PipelineError::Input`] if the result holds no such value or one of another type.
    pub fn read<T: DeserializeOwned>(&self, file: &Path) -> Result<T, PipelineError> {
        let text = std::fs::read(file).map_err(PipelineError::io(file))?;
        let results: Vec<Value> =
            serde_json::from_slice(&text).map_err(|e| PipelineError::input(file, format!("not a result: {e}")))?;
        let result = results.last().map(|entry| &entry["result"]);
        let value = self.path.iter().fold(result, |value, name| value.and_then(|v| v.get(name)));
        let wrong = |what: String| PipelineError::input(file, format!("{}: {what}", self.path.join(".")));
        let value = value.ok_or_else(|| wrong("the closure returned no such value".into()))?;
        T::deserialize(value).map_err(|e| wrong(e.to_string()))
    }
}

/// A closure and the outputs it looks at.
#[derive(Clone, Debug)]
pub struct Measure {
    /// The name the recipe gave it.
    pub name: String,
    /// Which outputs.
    pub at_z: Selection,
    /// The closure.
    pub closure: FnPtr,
    /// Its text and that of the script functions it calls.
    pub text: String,
    /// The values it has captured.
    pub captured: Value,
    /// The recipe's file, for messages.
    pub recipe: std::path::PathBuf,
}

impl Stage for Measure {
    fn kind(&self) -> &'static str {
        "measure"
    }

    fn label(&self) -> String {
        format!("measure-{}", self.name)
    }

    fn describe(&self) -> String {
        format!("\"{}\"", self.name)
    }

    fn parameters(&self) -> Value {
        json!({ "closure": self.text, "captured": self.captured })
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        self.at_z.of(input)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let program = work.program.expect("a campaign from a recipe has its program");
        let source = Source { path: self.recipe.clone(), text: work.recipe.to_owned() };
        let mut results = Vec::new();
        for input in work.all_inputs() {
            let view = SnapshotView::new(input.snapshot()?);
            let value: Dynamic = self
                .closure
                .call(&program.engine, &program.ast, (view,))
                .map_err(|e| RecipeError::from_evaluation(&source, &e, crate::recipe::api::USAGE))?;
            let value = to_json(&value).map_err(|(key, what)| {
                let place = if key.is_empty() { String::new() } else { format!(" at {key}") };
                PipelineError::input(
                    Path::new(&self.name),
                    format!("the closure's result holds {what}{place}: give finite numbers, texts, lists and maps"),
                )
            })?;
            results.push(json!({ "z": input.shown_z(), "result": value }));
        }
        let mut section = Section::new(format!("Measured: {}", self.name), String::new());
        for entry in &results {
            let rows = entry["result"].as_object().map_or_else(
                || vec![vec!["value".into(), entry["result"].to_string()]],
                |map| map.iter().map(|(k, v)| vec![k.clone(), v.to_string()]).collect(),
            );
            section.table(&format!("z = {}", entry["z"]), &["quantity", "value"], rows);
        }
        Ok(vec![work.write_json(RESULT, &results)?, work.write_section(&section)?])
    }
}

//! `measure`: what a closure of the recipe computes from a snapshot.

use super::closure::Closure;
use super::result::read_json;
use super::section::Section;
use super::{Input, Selection, Stage, StageResult, Work};
use crate::campaign::Node;
use crate::error::PipelineError;
use crate::recipe::api::snapshot_view::SnapshotView;
use rhai::Dynamic;
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
        let results: Vec<Value> = read_json(file)?;
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
    /// The closure: its argument is a snapshot.
    pub closure: Closure,
    /// Which outputs.
    pub outputs: Selection,
}

impl Stage for Measure {
    fn kind(&self) -> &'static str {
        "measure"
    }

    fn label(&self) -> String {
        format!("measure-{}", self.closure.name)
    }

    fn title(&self) -> String {
        format!("Measured: {}", self.closure.name)
    }

    fn describe(&self) -> String {
        format!("\"{}\"", self.closure.name)
    }

    fn parameters(&self) -> Value {
        self.closure.parameters()
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        self.outputs.of(input)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let (mut results, mut files) = (Vec::new(), Vec::new());
        let mut section = Section::default();
        for input in work.all_inputs() {
            let view = SnapshotView::new(work.snapshots.read(input)?);
            let (result, drawn) = self.closure.call(Dynamic::from(view), work)?;
            let now = input.shown();
            self.closure.show(&now.to_string(), &result, &mut section);
            files.extend(drawn.write(&format!("_{}", now.tag()), work, &mut section)?);
            results.push(json!({ now.symbol(): now.value(), "result": result }));
        }
        files.extend([work.write_json(RESULT, &results)?, work.write_section(&section)?]);
        Ok(files)
    }
}

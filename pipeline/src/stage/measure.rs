//! `measure`: what a closure of the recipe computes from a snapshot.

use super::section::Section;
use super::{Input, Selection, Stage, StageResult, Work};
use crate::campaign::Node;
use crate::error::PipelineError;
use crate::recipe::api::snapshot_view::SnapshotView;
use crate::recipe::options::to_json;
use comove_analysis::table::readable;
use rhai::FnPtr;
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
    pub outputs: Selection,
    /// The closure.
    pub closure: FnPtr,
    /// Its text and that of the script functions it calls.
    pub text: String,
    /// The values it has captured.
    pub captured: Value,
    /// Seconds that it may take for a snapshot.
    pub time_limit_s: f64,
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
        self.outputs.of(input)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let (mut results, mut moments) = (Vec::new(), Vec::new());
        for input in work.all_inputs() {
            let view = SnapshotView::new(work.snapshots.read(input)?);
            let value = work.call(&self.closure, self.time_limit_s, (view,), |value| to_json(&value))?;
            let value = value.map_err(|(key, what)| {
                let place = if key.is_empty() { String::new() } else { format!(" at {key}") };
                PipelineError::input(
                    Path::new(&self.name),
                    format!("the closure's result holds {what}{place}: give finite numbers, texts, lists and maps"),
                )
            })?;
            let now = input.shown();
            results.push(json!({ now.symbol(): now.value(), "result": value }));
            moments.push(now);
        }
        let mut section = Section::new(format!("Measured: {}", self.name), String::new());
        for (entry, moment) in results.iter().zip(&moments) {
            let mut rows = Vec::new();
            shown("", &entry["result"], &mut rows);
            section.table(&moment.to_string(), &["quantity", "value"], rows);
        }
        Ok(vec![work.write_json(RESULT, &results)?, work.write_section(&section)?])
    }
}

/// A result as rows of names and values: maps name by name, lists of numbers on one line.
fn shown(name: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    let below = |inner: &str| if name.is_empty() { inner.to_owned() } else { format!("{name}.{inner}") };
    match value {
        Value::Object(map) => map.iter().for_each(|(inner, value)| shown(&below(inner), value, rows)),
        Value::Array(list) if list.iter().any(|v| v.is_object() || v.is_array()) => {
            list.iter().enumerate().for_each(|(n, value)| shown(&below(&n.to_string()), value, rows));
        }
        Value::Array(list) => {
            let values: Vec<String> = list.iter().map(plain).collect();
            rows.push(vec![name.to_owned(), values.join(", ")]);
        }
        single => rows.push(vec![if name.is_empty() { "value" } else { name }.to_owned(), plain(single)]),
    }
}

/// A number, a text or a truth value for a reader.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => readable(number.as_f64().unwrap_or(f64::NAN)),
        Value::Null => "–".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_shown_without_json() {
        let mut rows = Vec::new();
        let result = json!({ "n": 3, "peak": { "place": [1.5, 2.25], "name": "a" }, "halos": [{ "m": 1.5e13 }, null] });
        shown("", &result, &mut rows);
        let expected = [
            ["halos.0.m", "1.500×10¹³"],
            ["halos.1", "–"],
            ["n", "3"],
            ["peak.name", "a"],
            ["peak.place", "1.500, 2.250"],
        ];
        assert_eq!(rows, expected.map(|row| row.map(String::from).to_vec()));
        rows.clear();
        shown("", &json!(2.5), &mut rows);
        assert_eq!(rows, [["value", "2.500"]]);
    }
}

//! A closure of the recipe that a stage calls, and what it gives.

use super::drawn::Drawn;
use super::section::Section;
use super::work::{REHEARSED_CALL_S, Work};
use crate::error::PipelineError;
use crate::recipe::closure_members::Use;
use crate::recipe::options::to_json;
use crate::recipe::sandbox::{Limits, half_of_what_is_free};
use crate::recipe::{Cause, Place, RecipeError};
use crate::storage::canonical_json::{canonical, visit_leaves};
use comove_analysis::table::readable;
use rhai::{Dynamic, FnPtr};
use serde_json::{Value, json};
use std::time::Duration;

/// The file with the results of closures.
pub(crate) const RESULT: &str = "result.json";

/// A closure of the recipe, and what decides what it gives.
#[derive(Clone, Debug)]
pub(crate) struct Captured {
    /// The closure, its captured values copied: calls share nothing.
    pub closure: FnPtr,
    /// Its text and that of the script functions it calls.
    pub text: String,
    pub values: Value,
    /// Where it stands in the recipe.
    pub place: Place,
}

#[derive(Clone, Debug)]
pub(crate) struct Closure {
    /// The function of the recipe that it was given to.
    pub function: &'static str,
    /// The name that the recipe gave the stage.
    pub name: String,
    pub captured: Captured,
    /// Seconds that a call may take.
    pub time_limit_s: f64,
    /// What it reads of its argument that not every run has.
    pub uses: Vec<Use>,
}

impl Closure {
    /// What decides its results.
    pub(crate) fn parameters(&self) -> Value {
        json!({ "closure": self.captured.text, "captured": self.captured.values })
    }

    /// Its parameters as a text, to be compared.
    pub(crate) fn identity(&self) -> String {
        canonical(&self.parameters())
    }

    /// What the closure gives for an argument, and what is to be drawn of it.
    pub(crate) fn call(&self, argument: impl Into<Dynamic>, work: &Work<'_>) -> Result<(Value, Drawn), PipelineError> {
        let value = self.written(work.call(self, argument.into(), |value| to_json(&value))?, work)?;
        let drawn = Drawn::of(&value).map_err(|(cause, message)| self.refused(cause, message, work))?;
        Ok((value, drawn))
    }

    /// What the closure gives for an argument when a run asks it after a step.
    pub(crate) fn ask(&self, argument: Dynamic, work: &Work<'_>) -> Result<Value, PipelineError> {
        let _phase = tracing::trace_span!(target: comove_sim::PHASE, "hook").entered();
        self.written(work.ask(self, argument, |value| to_json(&value))?, work)
    }

    /// What the closure gave, unless it holds what cannot be written: where, and what.
    fn written(&self, value: Result<Value, (String, String)>, work: &Work<'_>) -> Result<Value, PipelineError> {
        value.map_err(|(key, what)| {
            let place = if key.is_empty() { String::new() } else { format!(" as {key}") };
            // NaN or infinity
            let cause = if what.parse::<f64>().is_ok() { Cause::Data } else { Cause::Text };
            let message = format!("the closure returned {what}{place}, expected finite numbers, texts, lists and maps");
            self.refused(cause, message, work)
        })
    }

    /// The error, at its place in the recipe, for a closure that gave what cannot be used.
    pub(crate) fn refused(&self, cause: Cause, message: String, work: &Work<'_>) -> PipelineError {
        let source = work.program.expect("a campaign from a recipe has its program").source();
        RecipeError::at(source, self.captured.place, format!("{}: {message}", self.function)).because(cause).into()
    }

    /// Shows what the closure gave as a table of names and values; what is drawn has its own place.
    pub(crate) fn show(&self, caption: &str, result: &Value, section: &mut Section) {
        let mut rows = Vec::new();
        match result {
            Value::Object(map) => {
                map.iter()
                    .filter(|(name, _)| !Drawn::holds(name))
                    .for_each(|(name, value)| shown(name, value, &mut rows));
            }
            Value::Null => {}
            single => shown("", single, &mut rows),
        }
        if !rows.is_empty() {
            let left = rows.len().saturating_sub(SHOWN);
            rows.truncate(SHOWN);
            if left > 0 {
                rows.push(vec!["…".into(), format!("{left} more in {}", RESULT)]);
            }
            section.table(caption, &["quantity", "value"], rows);
        }
    }
}

impl Work<'_> {
    /// Calls a closure, which may take the seconds that it has and half of the memory that is free, and reads its value.
    pub(crate) fn call<T: Send>(
        &self,
        closure: &Closure,
        argument: Dynamic,
        read: impl FnOnce(Dynamic) -> T + Send,
    ) -> Result<T, PipelineError> {
        let stop = || self.control.stop(Duration::ZERO);
        let value = self.call_within("time_limit_s", &stop, closure, argument, read)?;
        value.map_err(|by| PipelineError::Interrupted { folder: self.campaign.into(), by })
    }

    /// The same of a closure that is asked between two steps of a run: requests from outside wait for it, so that it is asked
    /// after every step, wherever the run is stopped. The end of a rehearsal stops it.
    pub(crate) fn ask<T: Send>(
        &self,
        closure: &Closure,
        argument: Dynamic,
        read: impl FnOnce(Dynamic) -> T + Send,
    ) -> Result<T, PipelineError> {
        let (control, is_rehearsal) = (self.control, self.is_rehearsal);
        let stop = || if is_rehearsal { control.stop(Duration::ZERO) } else { None };
        let value = self.call_within("hook_time_limit_s", &stop, closure, argument, read)?;
        value.map_err(|by| PipelineError::Interrupted { folder: self.campaign.into(), by })
    }

    fn call_within<T: Send>(
        &self,
        option: &str,
        stop: &(dyn Fn() -> Option<String> + Sync),
        closure: &Closure,
        argument: Dynamic,
        read: impl FnOnce(Dynamic) -> T + Send,
    ) -> Result<Result<T, String>, PipelineError> {
        let program = self.program.expect("a campaign from a recipe has its program");
        let memory = half_of_what_is_free();
        let (seconds, option) = match self.is_rehearsal {
            true => (closure.time_limit_s.min(REHEARSED_CALL_S), ""),
            false => (closure.time_limit_s, option),
        };
        let limits = Limits { seconds, option, memory, spare: 0.5 * memory, stop };
        Ok(program.call(limits, &closure.captured.closure, closure.captured.place, (argument,), read)?)
    }
}

/// Rows of a result that the report shows.
const SHOWN: usize = 60;

/// A result as rows of names and values: maps name by name, lists of numbers on one line.
fn shown(name: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    let enters = |list: &[Value]| list.iter().any(|v| v.is_object() || v.is_array());
    visit_leaves(name, value, &enters, &mut |name, value| {
        rows.push(match value {
            Value::Array(list) => {
                let mut values: Vec<String> = list.iter().take(SHOWN).map(plain).collect();
                if list.len() > SHOWN {
                    values.push(format!("… {} more in {RESULT}", list.len() - SHOWN));
                }
                vec![name.to_owned(), values.join(", ")]
            }
            single => vec![if name.is_empty() { "value" } else { name }.to_owned(), plain(single)],
        });
    });
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
        shown("ids", &json!((0..SHOWN + 7).collect::<Vec<usize>>()), &mut rows);
        assert!(rows[0][1].starts_with("0, 1, 2") && rows[0][1].ends_with("… 7 more in result.json"), "{rows:?}");
        rows.clear();
        shown("", &json!(2.5), &mut rows);
        assert_eq!(rows, [["value", "2.500"]]);
    }
}

//! `observed.jsonl`: what the observers of a run have noted, one JSON object a line: the option of the recipe, which closure
//! it was, the step, the redshift or time, and what the closure gave.
//!
//! A run that goes back to a checkpoint meets steps again that were noted: they are not noted again. Lines of other
//! closures, which the recipe had before, and of steps beyond the run's end stay and are not shown.

use super::hooks::{Hooks, step};
use super::run::Evolve;
use crate::error::PipelineError;
use crate::moment::Moment;
use crate::recipe::api::snapshot_view::SnapshotView;
use crate::stage::closure::Closure;
use crate::stage::section::Section;
use crate::stage::work::Work;
use crate::storage::canonical_json::visit_leaves;
use crate::storage::jsonl::{self, Lines};
use comove_analysis::figure::lines::{Curve, Panel, Style, line_figure};
use comove_analysis::table::{Entry, Table};
use comove_sim::Snapshot;
use comove_sim::records::StepRecord;
use rhai::Dynamic;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

pub(crate) const FILE: &str = "observed.jsonl";

/// Rows of a table that the report shows.
const SHOWN: usize = 40;
const PANELS: usize = 6;
/// Positive numbers that span more than this factor are shown on a logarithmic axis.
const DECADES: f64 = 100.0;
/// Hexadecimal digits of a closure's digest.
const DIGITS: usize = 16;

/// The open file, and what is in it.
pub(crate) struct Observed {
    lines: Lines,
    there: BTreeSet<String>,
    /// Closures that have failed in this process, by their option, and whether they are still asked.
    failed: BTreeMap<&'static str, bool>,
}

impl Observed {
    /// Opens or creates the file, if the run is observed; what is torn or damaged is cut off.
    pub(crate) fn open(hooks: &Hooks, work: &Work<'_>) -> Result<Option<Self>, PipelineError> {
        if hooks.on_step.is_none() && hooks.on_output.is_none() {
            return Ok(None);
        }
        let (lines, noted) = Lines::open(work.path(FILE))?;
        Ok(Some(Self { lines, there: noted.iter().map(key).collect(), failed: BTreeMap::new() }))
    }

    /// Asks the observer of steps, if this step is one of its.
    ///
    /// # Errors
    /// [`PipelineError::Io`]; what the closure has to say against it is a warning.
    pub(crate) fn step(
        &mut self,
        hooks: &Hooks,
        record: &StepRecord,
        seen: &Value,
        work: &Work<'_>,
    ) -> Result<(), PipelineError> {
        match &hooks.on_step {
            Some(hook) if record.step.is_multiple_of(hooks.every_steps) => {
                self.note(hook, record.step, Moment::after(record), || step(seen), work)
            }
            _ => Ok(()),
        }
    }

    /// Asks the observer of outputs.
    pub(crate) fn output(
        &mut self,
        hooks: &Hooks,
        output: &Arc<Snapshot>,
        moment: Moment,
        work: &Work<'_>,
    ) -> Result<(), PipelineError> {
        let Some(hook) = &hooks.on_output else { return Ok(()) };
        let view = || Dynamic::from(SnapshotView::new(Arc::clone(output)));
        self.note(hook, output.header.step, moment, view, work)?;
        // before the ledger has the output, which is then not looked at again
        self.sync()
    }

    /// Brings the lines to disk.
    pub(crate) fn sync(&self) -> Result<(), PipelineError> {
        self.lines.sync()
    }

    fn note(
        &mut self,
        hook: &Closure,
        step: u64,
        moment: Moment,
        argument: impl FnOnce() -> Dynamic,
        work: &Work<'_>,
    ) -> Result<(), PipelineError> {
        let mut line = json!({
            "hook": hook.function, "by": digest(hook), "step": step, moment.symbol(): moment.value(), "value": null,
        });
        let silent = self.failed.get(hook.function) == Some(&false);
        if silent || self.there.contains(&key(&line)) {
            return Ok(());
        }
        match hook.ask(argument(), work) {
            Ok(value) => {
                line["value"] = value;
                self.there.insert(key(&line));
                self.lines.append(&line)
            }
            Err(PipelineError::Recipe(error)) => {
                let late = error.is_late;
                if self.failed.insert(hook.function, !late).is_none() {
                    let rest = if late { "it is not called again" } else { "further failures are only in log.txt" };
                    tracing::warn!("step {step} is not observed; {rest}:\n{error}");
                } else {
                    tracing::debug!("step {step} is not observed: {}", error.message);
                }
                Ok(())
            }
            Err(other) => Err(other),
        }
    }
}

/// What the observers of a run have noted, in the order of time; of a run without known hooks what any has.
pub(crate) fn noted(hooks: Option<&Hooks>, folder: &Path) -> Result<Vec<Value>, PipelineError> {
    let mut lines: Vec<Value> = jsonl::read(&folder.join(FILE))?;
    if let Some(hooks) = hooks {
        let known: Vec<String> = [&hooks.on_step, &hooks.on_output].into_iter().flatten().map(digest).collect();
        lines.retain(|line| known.iter().any(|by| line["by"] == by.as_str()));
    }
    lines.sort_by(|x, y| now(x).total_cmp(&now(y)));
    Ok(lines)
}

/// Shows what the observers of a run have noted up to its end: numbers as a table and as curves.
pub(crate) fn show(run: &Evolve, work: &Work<'_>, section: &mut Section) -> Result<Vec<String>, PipelineError> {
    let Hooks { on_step, on_output, .. } = &run.hooks;
    // the run may have been further before
    let end = run.stop(&work.history()).map_or(run.end, |stop| stop.moment);
    let (all, mut files) = (jsonl::read::<Value>(&work.path(FILE))?, Vec::new());
    for (hook, what) in [(on_step, "steps"), (on_output, "outputs")] {
        let Some(by) = hook.as_ref().map(digest) else { continue };
        let is_shown = |line: &&Value| line["by"] == by.as_str() && now(line) <= end.now();
        let mut lines: Vec<Value> = all.iter().filter(is_shown).cloned().collect();
        lines.sort_by(|x, y| now(x).total_cmp(&now(y)));
        let Some(table) = table(&lines) else { continue };
        let mut shown = table.clone();
        let mut caption = format!("Observed: {what}");
        if table.rows.len() > SHOWN {
            let every = table.rows.len().div_ceil(SHOWN);
            shown.rows = table.rows.into_iter().step_by(every).collect();
            caption += &format!(" (one of {every}; all are in {FILE})");
        }
        section.record(caption, &shown);
        let panels = panels(&lines);
        if !panels.is_empty() {
            let columns = panels.len().min(2);
            let figure = line_figure(&format!("Observed: {what}"), &panels, columns);
            files.extend(work.write_figure(&format!("observed_{what}"), &figure, section)?);
        }
    }
    Ok(files)
}

/// What tells a closure from another one of the same option.
fn digest(hook: &Closure) -> String {
    let mut hex = blake3::hash(format!("{} {}", hook.function, hook.identity()).as_bytes()).to_hex().to_string();
    hex.truncate(DIGITS);
    hex
}

/// What a line is of: no two lines of a file have the same.
fn key(line: &Value) -> String {
    format!("{} {} {} {}", line["by"], line["step"], line["z"], line["t"])
}

/// What grows from line to line, as [`Moment::now`] counts.
fn now(line: &Value) -> f64 {
    let moment = line["t"].as_f64().map(Moment::Time).or(line["z"].as_f64().map(Moment::Redshift));
    moment.map_or(0.0, Moment::now)
}

fn symbol(lines: &[Value]) -> &'static str {
    if lines.iter().any(|line| line.get("z").is_some()) { "z" } else { "t" }
}

/// The numbers of the lines by name; nothing if there are none.
fn numbers(lines: &[Value]) -> Vec<(String, Vec<Option<f64>>)> {
    let mut names: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for line in lines {
        let mut row = Vec::new();
        visit_leaves("", &line["value"], &|_| true, &mut |name, value| {
            let name = if name.is_empty() { "value" } else { name };
            row.extend(value.as_f64().map(|number| (name.to_owned(), number)));
        });
        for (name, _) in &row {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        rows.push(row);
    }
    let column = |name: String| {
        let of = |row: &Vec<(String, f64)>| row.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
        let values = rows.iter().map(of).collect();
        (name, values)
    };
    names.into_iter().map(column).collect()
}

fn table(lines: &[Value]) -> Option<Table> {
    let columns = numbers(lines);
    if columns.is_empty() {
        return None;
    }
    let symbol = symbol(lines);
    let names = ["step", symbol].into_iter().map(String::from).chain(columns.iter().map(|(name, _)| name.clone()));
    let mut table = Table::new(names);
    for (n, line) in lines.iter().enumerate() {
        let step = Entry::Integer(line["step"].as_i64().unwrap_or_default());
        let when = Entry::Real(line[symbol].as_f64().unwrap_or(f64::NAN));
        let values = columns.iter().map(|(_, values)| values[n].map_or(Entry::Text(String::new()), Entry::Real));
        table.push([step, when].into_iter().chain(values).collect());
    }
    Some(table)
}

/// A panel a name, over 1 + z or t; of one line there is no curve.
fn panels(lines: &[Value]) -> Vec<Panel> {
    let columns = if lines.len() > 1 { numbers(lines) } else { Vec::new() };
    let symbol = symbol(lines);
    let comoving = symbol == "z";
    let panel = |(name, values): (String, Vec<Option<f64>>)| {
        let when = |line: &Value| line[symbol].as_f64().unwrap_or(f64::NAN) + if comoving { 1.0 } else { 0.0 };
        let points = lines.iter().zip(&values).map(|(line, value)| [when(line), value.unwrap_or(f64::NAN)]);
        let style = if lines.len() > SHOWN { Style::Line } else { Style::Marked };
        let [low, high] = [f64::min, f64::max].map(|pick| values.iter().flatten().copied().reduce(pick).unwrap_or(1.0));
        Panel {
            y_logarithmic: low > 0.0 && high > DECADES * low,
            curves: vec![Curve { points: points.collect(), style, ..Curve::default() }],
            ..Panel::over_time(comoving, &name)
        }
    };
    columns.into_iter().take(PANELS).map(panel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_columns_and_curves() {
        let line = |step: u64, z: f64, value: Value| json!({ "step": step, "z": z, "value": value });
        let lines = [
            line(1, 9.0, json!({ "peak": { "density": 2.5 }, "name": "a" })),
            line(2, 4.0, json!({ "peak": { "density": 3 }, "at": [1, 2] })),
        ];
        let csv = table(&lines).unwrap().to_csv();
        assert_eq!(csv, "step,z,peak.density,at.0,at.1\n1,9.0,2.5,,\n2,4.0,3.0,1.0,2.0\n");
        let panels = panels(&lines);
        assert_eq!((panels.len(), panels[0].curves[0].points[1]), (3, [5.0, 3.0]));
        assert!(table(&[line(1, 9.0, json!("text"))]).is_none());
    }
}

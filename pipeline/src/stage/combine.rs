//! `combine`: what a closure of the recipe makes of several runs, measurements and analyses together.

use super::closure::{Closure, RESULT};
use super::result::read_json;
use super::section::{self, Section};
use super::{Input, Selection, Stage, StageResult, Work};
use crate::error::PipelineError;
use crate::moment::Moment;
use crate::recipe::Place;
use crate::recipe::api::run_view::RunView;
use crate::recipe::options::from_json;
use rhai::{Array, Dynamic, Map};
use serde_json::{Value, json};
use std::path::Path;

/// A closure of what several stages have left.
#[derive(Clone, Debug)]
pub(crate) struct Combine {
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

    fn results_version(&self) -> u32 {
        4
    }

    fn parameters(&self) -> Value {
        self.closure.parameters()
    }

    fn closures(&self) -> Vec<Place> {
        vec![self.closure.captured.place]
    }

    fn reads(&self, input: &StageResult) -> Result<Vec<Input>, PipelineError> {
        if input.snapshots.is_empty() { Ok(data_of(input)) } else { Selection::All.of(input) }
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

/// What the closure sees of a stage: a run's outputs, or what a measurement or an analysis has left.
fn entry(inputs: &[Input], work: &Work<'_>) -> Result<Dynamic, PipelineError> {
    if inputs.iter().any(|input| input.moment.is_some()) {
        return Ok(Dynamic::from(RunView::new(inputs, work.snapshots)));
    }
    left_in(inputs).map(Dynamic::from)
}

/// The files of a measurement or an analysis that hold what it has found.
pub(crate) fn data_of(result: &StageResult) -> Vec<Input> {
    let files = |end: &str| -> Vec<Input> {
        let data = result.artefacts.iter().filter(|a| a.file.ends_with(end) && a.file != section::FILE);
        data.filter_map(|a| result.artefact(&a.file)).collect()
    };
    // maps leave tables alone
    let data = files(".json");
    if data.is_empty() { files(".csv") } else { data }
}

/// What a measurement or an analysis has left in these files, which [`data_of`] found: a map with the last output's `result`
/// and its `z` (or `t`), and with `all`, the list of such maps of every output.
pub(crate) fn left_in(files: &[Input]) -> Result<Map, PipelineError> {
    let all = match files {
        [file] if file.name() == RESULT => {
            let results: Vec<Value> = read_json(&file.path)?;
            results.iter().filter_map(|one| from_json(one).try_cast::<Map>()).collect()
        }
        files => of_files(files)?,
    };
    let mut map = all.last().cloned().unwrap_or_default();
    map.insert("all".into(), all.into_iter().map(Dynamic::from).collect::<Array>().into());
    Ok(map)
}

/// The files of an analysis, output by output: `halos_z0.json` is the result at z = 0, `profile_z0_halo1.json` the first
/// entry of the result's `profiles`.
fn of_files(inputs: &[Input]) -> Result<Vec<Map>, PipelineError> {
    let mut all: Vec<(Option<Moment>, Map)> = Vec::new();
    for input in inputs {
        let FileName { kind, moment, is_part } = FileName::of(&input.name());
        let value =
            if input.name().ends_with(".csv") { table(&input.path)? } else { from_json(&read_json(&input.path)?) };
        if is_part {
            let of_output = all.iter_mut().find(|(other, _)| *other == moment).map(|(_, map)| map);
            let result = of_output.and_then(|map| map.get_mut("result"));
            if let Some(mut result) = result.and_then(|result| result.write_lock::<Map>()) {
                let parts = result.entry(format!("{kind}s").into()).or_insert_with(|| Array::new().into());
                parts.write_lock::<Array>().expect("made as a list").push(value);
            }
            continue;
        }
        let mut map = Map::from([("result".into(), value)]);
        map.extend(moment.map(|moment| (moment.symbol().into(), moment.value().into())));
        all.push((moment, map));
    }
    Ok(all.into_iter().map(|(_, map)| map).collect())
}

/// What the name of an analysis's file says: `kind_z0.json`, or `kind_z0_part.json`.
#[derive(Debug, PartialEq)]
struct FileName {
    kind: String,
    moment: Option<Moment>,
    is_part: bool,
}

impl FileName {
    fn of(file: &str) -> Self {
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let words: Vec<&str> = stem.split('_').collect();
        let found = words.iter().enumerate().find_map(|(n, word)| Some((n, Moment::from_tag(word)?)));
        match found {
            Some((n, moment)) => {
                Self { kind: words[..n].join("_"), moment: Some(moment), is_part: n + 1 < words.len() }
            }
            None => Self { kind: stem.into(), moment: None, is_part: false },
        }
    }
}

/// When the file of an analysis with this name shows its run, if it says so.
pub(crate) fn moment_of(file: &str) -> Option<Moment> {
    FileName::of(file).moment
}

/// The first part of the name of an analysis's file: `halos` of `halos_z0.csv`.
pub(crate) fn kind_of(file: &str) -> String {
    FileName::of(file).kind
}

/// A map's table of numbers, `#{ columns, rows }`, as a closure gives tables too.
fn table(path: &Path) -> Result<Dynamic, PipelineError> {
    let text = std::fs::read_to_string(path).map_err(PipelineError::io(path))?;
    let mut lines = text.lines();
    let columns = lines.next().unwrap_or_default().split(',').map(|name| Dynamic::from(name.to_owned()));
    // pixels outside the box have no value
    let number = |entry: &str| Dynamic::from(entry.parse::<f64>().unwrap_or(f64::NAN));
    let row = |line: &str| Dynamic::from(line.split(',').map(number).collect::<Array>());
    let table = [
        ("columns".into(), columns.collect::<Array>().into()),
        ("rows".into(), lines.map(row).collect::<Array>().into()),
    ];
    Ok(Map::from(table).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_analyses_say_what_they_are() {
        let at = |z: f64| Some(Moment::Redshift(z));
        let name = |kind: &str, moment, is_part| FileName { kind: kind.into(), moment, is_part };
        assert_eq!(FileName::of("power_spectrum_z44.5.json"), name("power_spectrum", at(44.5), false));
        assert_eq!(FileName::of("profile_z0_halo12.json"), name("profile", at(0.0), true));
        assert_eq!(
            FileName::of("slice_velocity_z_t0.05.csv"),
            name("slice_velocity_z", Some(Moment::Time(0.05)), false)
        );
        assert_eq!(FileName::of("refinement_ratio_run2.json"), name("refinement_ratio_run2", None, false));
    }
}

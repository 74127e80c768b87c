//! What a `combine` closure and a script see of a run: its outputs, each read when it is asked for; a script also sees its
//! records.

use super::failure::failure;
use super::snapshot_view::SnapshotView;
use crate::error::PipelineError;
use crate::moment::{Moment, list};
use crate::recipe::error::{Bound, Cause, Refusal, hint};
use crate::recipe::options::from_json;
use crate::recipe::reference::{Function, Type};
use crate::stage::Input;
use crate::stage::evolve::hooks::{Hooks, of_present_species};
use crate::stage::evolve::{observed, steps};
use crate::storage::canonical_json::leaves;
use crate::storage::snapshots::Snapshots;
use rhai::{Array, Dynamic, Engine, FnPtr, ImmutableString, NativeCallContext};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

pub(crate) const RUN_OUTPUTS: Type = Type {
    name: "RunOutputs",
    text: "What a `combine` closure sees of a run. A snapshot is read when it is asked for.",
    properties: &[("outputs", "Array", "the redshifts (or times) of its outputs, in the order of time")],
    methods: &[
        Function::new(
            &["snapshot(run: RunOutputs) -> Snapshot", "snapshot(run: RunOutputs, when: float) -> Snapshot"],
            "The last output, or that at a redshift (or time).",
        ),
        Function::new(
            &["output(run: RunOutputs, n: int) -> Snapshot"],
            "An output by its place in `outputs`, from 0 on; -1 is the last one.",
        ),
        Function::new(
            &["map(run: RunOutputs, closure: Fn) -> Array"],
            "What a closure gives of the snapshot of every output, `run.map(|snapshot| …)`, in the order of time. \
             They are read one after the other.",
        ),
    ],
    members: &[],
};

/// A run of a campaign in a script.
pub(crate) const CAMPAIGN_RUN: Type = Type {
    name: "CampaignRun",
    text: "What a script sees of a run: all that [RunOutputs](#runoutputs) has, and more. Of a run that is not done these \
           are the outputs that it has written so far.",
    properties: &[
        ("name", "String", "what `comove plan` calls it"),
        ("folder", "String", "its folder; empty if it has none yet"),
        ("is_done", "bool", "whether nothing of it is left to do"),
        ("parameters", "Map", "what decides its results"),
        ("steps", "Array", "the records of its steps so far, a map each, as in `steps.jsonl`"),
        (
            "observed",
            "Array",
            "what its observers have noted, the lines of `observed.jsonl`: `#{ hook, step, z, value, … }`, `t` for `z` in \
             non-comoving coordinates",
        ),
    ],
    methods: &[Function::new(
        &["steps(run: CampaignRun, name: String) -> Array"],
        "One value of every record, by its name: `steps(\"z\")`, `steps(\"timing.hydro\")`; `()` where a record has \
         none.",
    )],
    members: &[],
};

/// The outputs of a run in a closure or a script, in the order of time; copies share them.
#[derive(Clone, Debug)]
pub(crate) struct RunView {
    outputs: Arc<Vec<Input>>,
    snapshots: Snapshots,
    /// What a script sees besides.
    kept: Option<Arc<KeptRun>>,
}

/// What a run or an analysis of a campaign goes by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Called {
    /// What `plan` calls it.
    pub name: String,
    /// All that it goes by.
    pub names: Vec<String>,
}

impl Called {
    pub(super) fn is(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }
}

/// What a campaign folder has of a run besides its outputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeptRun {
    pub called: Called,
    /// Its folder, if it has one.
    pub folder: Option<PathBuf>,
    /// Whether it lies in the campaign folder with records of its steps.
    pub has_records: bool,
    /// Whether nothing of it is left to do.
    pub is_done: bool,
    /// Why it has no outputs, if that is known.
    pub hindrance: Option<String>,
    /// What decides its results.
    pub parameters: Value,
    /// What it asks after its steps; of a run that the recipe does not have nobody knows.
    pub hooks: Option<Hooks>,
}

impl RunView {
    /// Of these outputs, which have been checked and are read as the campaign's stages read them.
    pub(crate) fn new(outputs: &[Input], snapshots: &Snapshots) -> Self {
        Self { outputs: Arc::new(outputs.to_vec()), snapshots: snapshots.clone(), kept: None }
    }

    /// The same for a script: each output is checked before it is read.
    #[must_use]
    pub(crate) fn kept(self, kept: KeptRun) -> Self {
        Self { kept: Some(Arc::new(kept)), ..self }
    }

    pub(super) fn called(&self) -> &Called {
        &kept(self).called
    }

    fn moments(&self) -> Vec<Moment> {
        self.outputs.iter().map(|output| output.shown_among(self.outputs.iter())).collect()
    }

    fn read(&self, output: &Input) -> Result<SnapshotView, PipelineError> {
        let snapshot = match self.kept {
            Some(_) => self.snapshots.read_checked(output)?,
            None => self.snapshots.read(output)?,
        };
        Ok(SnapshotView::new(snapshot))
    }
}

pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<RunView>("run's outputs")
        .register_get("outputs", |run: &mut RunView| {
            run.moments().iter().map(|moment| Dynamic::from(moment.value())).collect::<Array>()
        })
        .register_fn("snapshot", |run: &mut RunView| snapshot("snapshot", run, run.outputs.last()))
        .register_fn("snapshot", at)
        .register_fn("snapshot", |run: &mut RunView, when: i64| at(run, when as f64))
        .register_fn("output", output)
        .register_fn("map", map);
}

pub(crate) fn register_kept(engine: &mut Engine) {
    engine
        .register_type_with_name::<RunView>("run")
        .register_get("name", |run: &mut RunView| run.called().name.clone())
        .register_get("folder", |run: &mut RunView| {
            kept(run).folder.as_ref().map_or_else(String::new, |folder| folder.display().to_string())
        })
        .register_get("is_done", |run: &mut RunView| kept(run).is_done)
        .register_get("parameters", |run: &mut RunView| from_json(&kept(run).parameters))
        .register_get("steps", |run: &mut RunView| -> Bound<Array> {
            Ok(records(run)?.iter().map(from_json).collect())
        })
        .register_fn("steps", column)
        .register_get("observed", noted);
}

fn kept(run: &RunView) -> &KeptRun {
    run.kept.as_ref().expect("a script sees runs of its campaign only")
}

fn at(run: &mut RunView, when: f64) -> Bound<SnapshotView> {
    let moments = run.moments();
    // as `outputs` gives it, or as the recipe has asked for it
    let is_it = |(shown, output): (&Moment, &Input)| {
        [Some(*shown), output.moment].into_iter().flatten().any(|moment| moment.value() == when)
    };
    let found = moments.iter().zip(run.outputs.iter()).position(is_it);
    let missing = || {
        let message = format!("no output at {when}; available: {}", list(&moments));
        Refusal::because(Cause::Fields, "snapshot", message, None)
    };
    match found {
        None if !moments.is_empty() => Err(missing()),
        found => snapshot("snapshot", run, found.map(|n| &run.outputs[n])),
    }
}

fn output(run: &mut RunView, n: i64) -> Bound<SnapshotView> {
    let count = run.outputs.len() as i64;
    let place = if n < 0 { count + n } else { n };
    let found = usize::try_from(place).ok().and_then(|place| run.outputs.get(place));
    match found {
        None if count > 0 => {
            Err(Refusal::error("output", format!("no output {n}; outputs are numbered from 0 to {}", count - 1), None))
        }
        found => snapshot("output", run, found),
    }
}

/// What a closure gives of every output.
fn map(context: NativeCallContext<'_>, run: &mut RunView, closure: FnPtr) -> Bound<Array> {
    let of = |output: &Input| {
        let view = run.read(output).map_err(|error| failure("map", &error))?;
        closure.call_within_context(&context, (view,))
    };
    run.outputs.iter().map(of).collect()
}

fn snapshot(function: &str, run: &RunView, output: Option<&Input>) -> Bound<SnapshotView> {
    let none = || {
        let hindrance = run.kept.as_ref().and_then(|kept| kept.hindrance.as_ref());
        let because = hindrance.map_or_else(String::new, |why| format!(": {why}"));
        Refusal::error(
            function,
            format!("the run has no output{}{because}", if run.kept.is_some() { " yet" } else { "" }),
            None,
        )
    };
    run.read(output.ok_or_else(none)?).map_err(|error| failure(function, &error))
}

fn records(run: &RunView) -> Bound<Vec<Value>> {
    match kept(run) {
        KeptRun { folder: Some(folder), has_records: true, .. } => {
            let records = steps::all(folder).map_err(|error| failure("steps", &error))?;
            Ok(records.into_iter().map(of_present_species).collect())
        }
        _ => Ok(Vec::new()),
    }
}

fn column(run: &mut RunView, name: ImmutableString) -> Bound<Array> {
    let records = records(run)?;
    let of = |record: &Value| name.split('.').try_fold(record, |value, key| value.get(key)).cloned();
    let values: Vec<Option<Value>> = records.iter().map(of).collect();
    if values.iter().all(Option::is_none)
        && let Some(first) = records.first()
    {
        let leaves = leaves(first);
        let hint = hint(&name, &leaves.keys().map(String::as_str).collect::<Vec<_>>(), "there are");
        return Err(Refusal::error("steps", format!("no record of a step has \"{name}\", {hint}"), None));
    }
    Ok(values.iter().map(|value| value.as_ref().map_or(Dynamic::UNIT, from_json)).collect())
}

/// What the observers of a run have noted.
fn noted(run: &mut RunView) -> Bound<Array> {
    match kept(run) {
        KeptRun { folder: Some(folder), has_records: true, hooks, .. } => {
            let lines = observed::noted(hooks.as_ref(), folder);
            Ok(lines.map_err(|error| failure("observed", &error))?.iter().map(from_json).collect())
        }
        _ => Ok(Array::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhai::EvalAltResult;

    /// An output is found by what the recipe says, and by what `outputs` says: rounded.
    #[test]
    fn an_output_is_found_by_its_moment() {
        let input = |z: f64| Input {
            path: "none.h5".into(),
            digest: String::new(),
            content: String::new(),
            moment: Some(Moment::Redshift(z)),
        };
        let mut run = RunView::new(&[input(1.0 / 3.0)], &Snapshots::default());
        let refused = |when: f64, run: &mut RunView| match *at(run, when).unwrap_err() {
            EvalAltResult::ErrorRuntime(value, _) => value.cast::<Refusal>().message,
            other => panic!("{other}"),
        };
        for when in [1.0 / 3.0, run.moments()[0].value()] {
            assert!(!refused(when, &mut run).contains("no output at"), "{when}");
        }
        assert!(refused(0.333, &mut run).contains("no output at 0.333; available: z = 0.3333"));
        let mut close = RunView::new(&[1.000_04, 1.000_01, 0.9].map(input), &Snapshots::default());
        assert!(refused(1.0, &mut close).contains("no output at 1; available: z = 1.00004, 1.00001, 0.9"));
        assert!(!refused(1.000_01, &mut close).contains("no output at"));
    }
}

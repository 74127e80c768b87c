//! What a `combine` closure sees of a run: its outputs, each read when it is asked for.

use super::Bound;
use super::snapshot_view::SnapshotView;
use crate::moment::{Moment, list};
use crate::recipe::docs::{Function, Type};
use crate::recipe::error::Refusal;
use crate::snapshots::Snapshots;
use crate::stage::Input;
use rhai::{Dynamic, Engine};
use std::sync::Arc;

/// The outputs of a run.
pub const RUN_OUTPUTS: Type = Type {
    name: "RunOutputs",
    text: "What a `combine` closure sees of a run. A snapshot is read when it is asked for.",
    properties: &[("outputs", "Array", "the redshifts (or times) of its outputs, in the order of time")],
    methods: &[Function {
        name: "snapshot",
        signatures: &["snapshot(run: RunOutputs) -> Snapshot", "snapshot(run: RunOutputs, when: float) -> Snapshot"],
        usage: "",
        text: "The last output, or that at a redshift (or time).",
        options: &[],
    }],
};

/// The outputs of a run in a closure, in the order of time.
#[derive(Clone, Debug)]
pub struct RunView {
    outputs: Arc<Vec<Input>>,
    snapshots: Snapshots,
}

impl RunView {
    /// Of these outputs, which are read as the campaign's stages read them.
    pub fn new(outputs: &[Input], snapshots: &Snapshots) -> Self {
        Self { outputs: Arc::new(outputs.to_vec()), snapshots: snapshots.clone() }
    }

    fn moments(&self) -> Vec<Moment> {
        self.outputs.iter().map(Input::shown).collect()
    }
}

/// Registers the type.
pub fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<RunView>("run's outputs")
        .register_get("outputs", |run: &mut RunView| {
            run.moments().iter().map(|moment| Dynamic::from(moment.value())).collect::<rhai::Array>()
        })
        .register_fn("snapshot", |run: &mut RunView| snapshot(run, run.outputs.last()))
        .register_fn("snapshot", at)
        .register_fn("snapshot", |run: &mut RunView, when: i64| at(run, when as f64));
}

fn at(run: &mut RunView, when: f64) -> Bound<SnapshotView> {
    let moments = run.moments();
    // as `outputs` gives it, or as the recipe has asked for it
    let is_it = |output: &Input| [Some(output.shown()), output.moment].into_iter().flatten().any(|m| m.value() == when);
    let found = run.outputs.iter().position(is_it);
    let missing = || Refusal::error("snapshot", format!("no output at {when}; there are {}", list(&moments)), None);
    snapshot(run, Some(&run.outputs[found.ok_or_else(missing)?]))
}

fn snapshot(run: &RunView, output: Option<&Input>) -> Bound<SnapshotView> {
    let input = output.ok_or_else(|| Refusal::error("snapshot", "the run has no output", None))?;
    let snapshot = run.snapshots.read(input).map_err(|e| Refusal::error("snapshot", e, None))?;
    Ok(SnapshotView::new(snapshot))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rhai::EvalAltResult;

    /// An output is found by what the recipe says, and by what `outputs` says: rounded.
    #[test]
    fn an_output_is_found_by_its_moment() {
        let moment = Some(Moment::Redshift(1.0 / 3.0));
        let input = Input { path: "none.h5".into(), digest: String::new(), content: String::new(), moment };
        let mut run = RunView::new(&[input], &Snapshots::default());
        let refused = |when: f64, run: &mut RunView| match *at(run, when).unwrap_err() {
            EvalAltResult::ErrorRuntime(value, _) => value.cast::<Refusal>().message,
            other => panic!("{other}"),
        };
        for when in [1.0 / 3.0, run.moments()[0].value()] {
            assert!(!refused(when, &mut run).contains("no output at"), "{when}");
        }
        assert!(refused(0.333, &mut run).contains("no output at 0.333; there are z = 0.3333"));
    }
}

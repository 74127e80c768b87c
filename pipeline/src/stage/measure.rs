//! `measure`: what a closure of the recipe computes from a snapshot.

use super::closure::{Closure, RESULT};
use super::section::Section;
use super::{Selection, Stage, Work};
use crate::error::PipelineError;
use crate::recipe::Place;
use crate::recipe::api::snapshot_view::SnapshotView;
use rhai::Dynamic;
use serde_json::{Value, json};

/// A closure and the outputs it looks at.
#[derive(Clone, Debug)]
pub(crate) struct Measure {
    /// The closure: its argument is a snapshot.
    pub closure: Closure,
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

    fn results_version(&self) -> u32 {
        3
    }

    fn parameters(&self) -> Value {
        self.closure.parameters()
    }

    fn closures(&self) -> Vec<Place> {
        vec![self.closure.captured.place]
    }

    fn outputs(&self) -> Option<&Selection> {
        Some(&self.outputs)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let (mut results, mut files) = (Vec::new(), Vec::new());
        let mut section = Section::default();
        for input in work.all_inputs() {
            let view = SnapshotView::new(work.snapshots.read(input)?);
            let (result, drawn) = self.closure.call(Dynamic::from(view), work)?;
            let now = work.shown(input);
            self.closure.show(&now.to_string(), &result, &mut section);
            files.extend(drawn.write(&format!("_{}", now.tag()), work, &mut section)?);
            results.push(json!({ now.symbol(): now.value(), "result": result }));
        }
        files.extend([work.write_json(RESULT, &results)?, work.write_section(&section)?]);
        Ok(files)
    }
}

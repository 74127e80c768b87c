//! `compare`: outputs of a run that started from a problem, against the problem's solution.

use super::section::Section;
use super::{Selection, Stage, Work};
use crate::error::PipelineError;
use crate::moment::Moment;
use comove_analysis::comparison::{Comparison, Path, compare};
use comove_analysis::figure::results::comparison_figure;
use comove_analysis::{Record, Table};
use comove_ic::problems::{Problem, View};
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct Compare {
    pub outputs: Selection,
    /// The problem that the run started from.
    pub problem: Arc<dyn Problem>,
    /// The parameters of the run, for the record.
    pub run: Value,
}

/// What is written of one output: the problem and the run with what they gave.
#[derive(Serialize)]
struct Compared<'a> {
    /// Name of the test problem.
    problem: &'static str,
    /// Its options.
    options: Value,
    /// The parameters of the run.
    run: &'a Value,
    /// The output against the solution.
    #[serde(flatten)]
    comparison: &'a Comparison,
}

impl Record for Compared<'_> {
    fn table(&self) -> Table {
        self.comparison.table()
    }
}

impl Stage for Compare {
    fn kind(&self) -> &'static str {
        "compare"
    }

    fn results_version(&self) -> u32 {
        3
    }

    fn title(&self) -> String {
        format!("Comparison with the solution: {}", self.problem.name())
    }

    fn describe(&self) -> String {
        format!("with the solution of {}", self.problem.name())
    }

    fn parameters(&self) -> Value {
        json!({ "problem": self.problem.name(), "options": self.problem.options() })
    }

    fn outputs(&self) -> Option<&Selection> {
        Some(&self.outputs)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let path = match self.problem.view() {
            View::Line { axis, through } => Path::Line { axis, through },
            View::Diagonal => Path::Diagonal,
            View::Shells { center, radius } => Path::Shells { center, radius },
        };
        let name = self.problem.name();
        let text = "Density, velocity along the path and pressure of the leaf cells against the solution at their \
                    centres; in shells the means of both, bars show the scatter about the shell's \
                    slope. Code units.";
        let mut section = Section::new(text);
        let mut files = Vec::new();
        for input in work.all_inputs() {
            let snapshot = work.snapshots.read(input)?;
            let now = Moment::of(&snapshot.header).now();
            let exact = |x| self.problem.exact(x, now).map(|gas| (gas.density, gas.velocity, gas.pressure));
            let comparison = compare(&snapshot, path, &exact)?;
            let shown = work.shown(input);
            let file = format!("compare_{}", shown.tag());
            let record =
                Compared { problem: name, options: self.problem.options(), run: &self.run, comparison: &comparison };
            files.extend(work.write_record(&file, &record)?);
            let figure = comparison_figure(&format!("{name} at {shown}"), &comparison);
            files.extend(work.write_figure(&file, &figure, &mut section)?);
            section.record(format!("{shown}: errors"), &comparison.norms());
            let mut levels = Table::new(["level", "volume fraction", "cells"]);
            for level in &comparison.levels {
                levels.push(vec![level.level.into(), level.volume_fraction.into(), level.cells.into()]);
            }
            section.record(format!("{shown}: levels"), &levels);
        }
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

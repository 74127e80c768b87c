//! `refinement_ratio`: volume fraction and cells of each level against redshift, for one run or several.

use super::section::Section;
use super::{Stage, Work};
use crate::error::PipelineError;
use comove_analysis::figure::results::refinement_figure;
use comove_analysis::refinement_ratio::{RefinementRatio, RefinementRow};
use comove_analysis::table::Record;
use serde_json::{Value, json};

/// Refinement of every output of its runs.
#[derive(Clone, Debug)]
pub(crate) struct RefinementRatios;

impl Stage for RefinementRatios {
    fn kind(&self) -> &'static str {
        "refinement_ratio"
    }

    fn title(&self) -> String {
        "Refinement".into()
    }

    fn describe(&self) -> String {
        "volume fraction and cells per level at every output".into()
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let mut section =
            Section::new("Fraction of the box that each level covers, with its refined parts, and number of cells.");
        let mut files = Vec::new();
        let runs = work.inputs.len();
        for (n, inputs) in work.inputs.iter().enumerate() {
            let row = |input| work.snapshots.read_tree(input).map(|(header, tree)| RefinementRow::of(&header, &tree));
            let ratio = RefinementRatio::from_rows(work.looking_at(inputs).map(row).collect::<Result<_, _>>()?);
            let name = if runs == 1 { "refinement_ratio".into() } else { format!("refinement_ratio_run{}", n + 1) };
            files.extend(work.write_record(&name, &ratio)?);
            let figure = refinement_figure(&ratio);
            let caption = if runs == 1 { figure.title() } else { &work.input_names[n] };
            files.extend(work.write_figure(&name, &figure, &mut section)?);
            section.record(caption, &ratio.table());
        }
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

//! `density_pdf`: how volume and mass are distributed over density.

use super::analysis::Analysis;
use super::section::Section;
use super::{Selection, Stage, Work};
use crate::error::PipelineError;
use comove_analysis::density_pdf::{DensityPdf, density_pdf_by};
use comove_analysis::figure::results::density_pdf_figure;
use comove_analysis::table::Record;
use comove_analysis::{AnalysisError, Part};
use comove_sim::parallel::Communicator;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(crate) struct DensityPdfs {
    pub outputs: Selection,
    pub options: PdfOptions,
}

/// What a recipe says in `density_pdf(RUN, #{ … })`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PdfOptions {
    /// Bins per factor of ten in density.
    pub bins_per_decade: usize,
}

impl Default for PdfOptions {
    fn default() -> Self {
        Self { bins_per_decade: 10 }
    }
}

impl Analysis for PdfOptions {
    type Found = DensityPdf;

    fn find(&self, communicator: &Communicator, part: &Part) -> Result<Option<DensityPdf>, AnalysisError> {
        density_pdf_by(communicator, part, self.bins_per_decade)
    }
}

impl Stage for DensityPdfs {
    fn kind(&self) -> &'static str {
        "density_pdf"
    }

    fn title(&self) -> String {
        "Density distribution".into()
    }

    fn describe(&self) -> String {
        format!("{} bins per decade", self.options.bins_per_decade)
    }

    fn results_version(&self) -> u32 {
        2
    }

    fn parameters(&self) -> Value {
        json!(self.options)
    }

    fn outputs(&self) -> Option<&Selection> {
        Some(&self.outputs)
    }

    fn execute(&self, work: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
        let mut section = Section::new("Distribution of the gas density by volume and by mass, over all leaf cells.");
        let (mut files, mut figures) = (Vec::new(), Vec::new());
        for input in work.all_inputs() {
            let pdf = work.find(input, &self.options)?;
            let name = format!("density_pdf_{}", work.shown(input).tag());
            files.extend(work.write_record(&name, &pdf)?);
            figures.push((name, density_pdf_figure(&pdf)));
            section.record(format!("{}", work.shown(input)), &pdf.table());
        }
        files.extend(work.write_figures(&figures, &mut section)?);
        files.push(work.write_section(&section)?);
        Ok(files)
    }
}

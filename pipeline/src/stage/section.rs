//! A stage's part of the report: `section.json` in its folder. Its heading is the stage's name, which may change.

use comove_analysis::table::Table;
use serde::{Deserialize, Serialize};

pub(crate) const FILE: &str = "section.json";

/// A part of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Section {
    /// A few sentences, plain text.
    pub text: String,
    pub tables: Vec<SectionTable>,
    pub images: Vec<SectionImage>,
    /// Tables of a run's cost and conservation, or of an initial condition: shown after all results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accounting: Vec<SectionTable>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SectionTable {
    pub caption: String,
    pub columns: Vec<String>,
    /// Rows as they are shown.
    pub rows: Vec<Vec<String>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SectionImage {
    /// Its file below the stage's folder.
    pub file: String,
    pub caption: String,
}

impl SectionTable {
    fn new(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Self {
        let columns = columns.iter().map(|c| (*c).to_owned()).collect();
        Self { caption: caption.into(), columns, rows }
    }
}

impl Section {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    pub(crate) fn table(&mut self, caption: &str, columns: &[&str], rows: Vec<Vec<String>>) {
        self.tables.push(SectionTable::new(caption, columns, rows));
    }

    /// Adds a table of what the results cost and how well sums were conserved.
    pub(crate) fn account(&mut self, caption: &str, columns: &[&str], rows: Vec<Vec<String>>) {
        self.accounting.push(SectionTable::new(caption, columns, rows));
    }

    /// Adds a result's table, its numbers rounded for a reader.
    pub(crate) fn record(&mut self, caption: impl Into<String>, table: &Table) {
        self.tables.push(SectionTable {
            caption: caption.into(),
            columns: table.columns.clone(),
            rows: table.rounded(),
        });
    }

    pub(crate) fn image(&mut self, file: &str, caption: impl Into<String>) {
        self.images.push(SectionImage { file: file.into(), caption: caption.into() });
    }
}

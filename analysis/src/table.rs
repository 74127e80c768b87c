//! Tables: what every result can be written as, for the user's own plots.

use crate::error::AnalysisError;
use comove_sim::complete_file;
use rayon::prelude::*;
use serde::Serialize;
use std::fmt::{Display, Formatter};
use std::path::Path;

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Entry {
    /// A count or an index.
    Integer(i64),
    /// A number; JSON shows what is not finite as `null`.
    Real(f64),
    /// A number of which seven digits matter.
    Single(f32),
    /// Words.
    Text(String),
}

impl Display for Entry {
    /// The shortest text that reads back to the same number.
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value:?}"),
            Self::Single(value) => write!(f, "{value:?}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

impl From<f64> for Entry {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<f32> for Entry {
    fn from(value: f32) -> Self {
        Self::Single(value)
    }
}

impl From<usize> for Entry {
    fn from(value: usize) -> Self {
        Self::Integer(value as i64)
    }
}

impl From<u64> for Entry {
    fn from(value: u64) -> Self {
        Self::Integer(value as i64)
    }
}

impl From<&str> for Entry {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

impl From<String> for Entry {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

/// Nothing is an empty text.
impl<T: Into<Self>> From<Option<T>> for Entry {
    fn from(value: Option<T>) -> Self {
        value.map_or_else(|| Self::Text(String::new()), Into::into)
    }
}

/// What a column is called, and what it holds of a record.
pub type Column<'a, R> = (&'a str, fn(&R) -> Entry);

/// Named columns, units in the names.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Table {
    /// Column names.
    pub columns: Vec<String>,
    /// One entry a column.
    pub rows: Vec<Vec<Entry>>,
}

impl Table {
    /// An empty table with these columns.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Self { columns: columns.into_iter().map(Into::into).collect(), rows: Vec::new() }
    }

    /// One row a record.
    pub fn of<R>(rows: &[R], columns: &[Column<'_, R>]) -> Self {
        let row = |of: &R| columns.iter().map(|(_, entry)| entry(of)).collect();
        let rows = rows.iter().map(row).collect();
        Self { columns: columns.iter().map(|(name, _)| (*name).to_owned()).collect(), rows }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has not one entry a column: the caller's bug.
    pub fn push(&mut self, row: Vec<Entry>) {
        assert_eq!(row.len(), self.columns.len(), "one entry a column");
        self.rows.push(row);
    }

    /// Adds a column with one entry a row.
    ///
    /// # Panics
    /// If there are not as many entries as rows: the caller's bug.
    pub(crate) fn add_column(&mut self, name: &str, entries: impl Iterator<Item = Entry>) {
        self.columns.push(name.to_owned());
        let mut entries = entries.fuse();
        self.rows.iter_mut().for_each(|row| row.push(entries.next().expect("one entry a row")));
    }

    /// The table as RFC 4180 text: a line of names, then one line a row.
    pub fn to_csv(&self) -> String {
        let line =
            |entries: &mut dyn Iterator<Item = String>| entries.map(quote).collect::<Vec<String>>().join(",") + "\n";
        let names = line(&mut self.columns.iter().cloned());
        // rows of a map are long and many
        let rows: Vec<String> = self.rows.par_iter().map(|row| line(&mut row.iter().map(Entry::to_string))).collect();
        names + &rows.concat()
    }

    /// The table for a reader: numbers with four significant digits, redshifts of outputs as a recipe has them.
    pub fn rounded(&self) -> Vec<Vec<String>> {
        let show = |(entry, column): (&Entry, &String)| match entry {
            Entry::Real(value) if column == "redshift" || column == "z" => readable_redshift(*value),
            Entry::Real(value) => readable(*value),
            Entry::Single(value) => readable(f64::from(*value)),
            other => other.to_string(),
        };
        self.rows.iter().map(|row| row.iter().zip(&self.columns).map(show).collect()).collect()
    }
}

/// A number with four significant digits.
pub fn readable(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".into()
    } else if !value.is_finite() {
        "–".into()
    } else if (1e-3..1e5).contains(&size) {
        let digits = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
        format!("{value:.digits$}").replace('-', "−")
    } else {
        let text = format!("{value:.3e}");
        let (mantissa, exponent) = text.split_once('e').expect("an exponent");
        format!("{}×10{}", mantissa.replace('-', "−"), superscript(exponent.parse().expect("an integer")))
    }
}

/// A redshift: 0.5 for 0.50000001, which a scale factor gives back; others with four significant digits.
pub(crate) fn readable_redshift(z: f64) -> String {
    let decimals = (z * 1e4).round() / 1e4;
    if (z - decimals).abs() < 1e-6 * (1.0 + z.abs()) {
        // no minus before a zero
        format!("{}", decimals + 0.0).replace('-', "−")
    } else {
        readable(z)
    }
}

/// An integer in superscript digits.
pub(crate) fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number.to_string().chars().map(|c| c.to_digit(10).map_or('⁻', |d| DIGITS[d as usize])).collect()
}

fn quote(text: String) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// A result: a plain structure that can be written whole (JSON) or as a table (CSV).
pub trait Record: Serialize {
    /// The rows of the result, units in the column names.
    fn table(&self) -> Table;
}

/// Writes a file that is complete or absent; a full disk leaves the previous one in place.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), AnalysisError> {
    complete_file::write(path, bytes).map_err(|source| AnalysisError::Io { path: path.to_path_buf(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_reads_back_to_the_same_numbers() {
        let mut table = Table::new(["name, unit", "value"]);
        table.push(vec!["a \"b\"".into(), (0.1f64 + 0.2).into()]);
        table.push(vec![3usize.into(), 1.5e-22.into()]);
        assert_eq!(table.to_csv(), "\"name, unit\",value\n\"a \"\"b\"\"\",0.30000000000000004\n3,1.5e-22\n");
    }

    #[test]
    fn numbers_for_readers() {
        let shown = [0.0, 12.3456, -0.012_346, 1.234_56e13, 4.2e-7, f64::NAN].map(readable);
        assert_eq!(shown, ["0", "12.35", "−0.01235", "1.235×10¹³", "4.200×10⁻⁷", "–"]);
    }

    #[test]
    fn redshifts_are_those_of_the_recipe() {
        let mut table = Table::new(["redshift", "a"]);
        for z in [0.500_000_01, 9.0, -1e-9, 4.123_456, 1e-5] {
            table.push(vec![z.into(), 0.5.into()]);
        }
        let shown: Vec<String> = table.rounded().into_iter().map(|row| row[0].clone()).collect();
        assert_eq!(shown, ["0.5", "9", "0", "4.123", "1.000×10⁻⁵"]);
        assert_eq!(table.rounded()[0][1], "0.5000");
    }

    #[test]
    fn a_file_that_cannot_be_written_names_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("missing").join("x.csv");
        let message = write_file(&path, b"x").unwrap_err().to_string();
        assert!(message.contains("x.csv"), "{message}");
    }
}

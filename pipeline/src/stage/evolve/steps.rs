//! `steps.jsonl`: the record of every step, one JSON object a line.
//!
//! A run that goes back to a checkpoint repeats steps with the same bits; a step that is already recorded is not
//! recorded again.

use crate::error::PipelineError;
use crate::storage::jsonl::{self, Lines};
use comove_sim::records::{CellBudgetAdjustment, Ladder, StepRecord, Timing, upgrade};
use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

pub(crate) const FILE: &str = "steps.jsonl";

pub(crate) struct Steps {
    lines: Lines,
    last: u64,
    /// Marks the records of a run that was continued on another class of device.
    mark: Option<String>,
}

impl Steps {
    /// Opens or creates the records in `folder`; what is torn or damaged is cut off. `mark` is the device class that the run
    /// was continued from, if that is another one.
    pub(crate) fn open(folder: &Path, mark: Option<String>) -> Result<Self, PipelineError> {
        let (lines, records) = Lines::open(folder.join(FILE))?;
        let last = records.iter().rev().find_map(|record| record["step"].as_u64()).unwrap_or(0);
        Ok(Self { lines, last, mark })
    }

    /// Appends a record, unless it is there already.
    pub(crate) fn append(&mut self, record: &StepRecord) -> Result<(), PipelineError> {
        if record.step <= self.last {
            return Ok(());
        }
        let mut value = serde_json::to_value(record).expect("a record is plain data");
        if let Some(class) = &self.mark {
            value["continued_from_device_class"] = class.as_str().into();
        }
        self.lines.append(&value)?;
        self.last = record.step;
        Ok(())
    }

    /// Brings the records to disk.
    pub(crate) fn sync(&self) -> Result<(), PipelineError> {
        self.lines.sync()
    }
}

/// All records in `folder`, in the present layout; none if there are none yet.
pub(crate) fn all(folder: &Path) -> Result<Vec<Value>, PipelineError> {
    let mut records = jsonl::read(&folder.join(FILE))?;
    records.iter_mut().for_each(upgrade);
    Ok(records)
}

/// The records in `folder` before the first one that is damaged.
pub(crate) fn sound(folder: &Path) -> Result<Vec<Value>, PipelineError> {
    let mut records = jsonl::sound(&folder.join(FILE))?;
    records.iter_mut().for_each(upgrade);
    Ok(records)
}

/// Bytes at the end of the file that [`last`] looks at: some fifty records.
const TAIL: u64 = 1 << 16;

/// The last records in `folder`, as far as they can be read: of a run that may be stepping meanwhile.
pub(crate) fn last(folder: &Path) -> Vec<StepRecord> {
    let tail = || {
        let path = folder.join(FILE);
        let found = path.metadata()?;
        if !found.is_file() {
            return Ok(Vec::new());
        }
        let mut file = File::open(path)?;
        let start = found.len().saturating_sub(TAIL);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map(|_| bytes)
    };
    let tail: std::io::Result<Vec<u8>> = tail();
    // the first line may begin in the middle, the last one may still be written
    let lines = tail.unwrap_or_default();
    let read = |line: &[u8]| {
        let mut record: Value = serde_json::from_slice(line).ok()?;
        upgrade(&mut record);
        serde_json::from_value(record).ok()
    };
    lines.split(|&b| b == b'\n').filter_map(read).collect()
}

/// Sums over the records of a run, of all processes that worked on it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// A cell through a step, counted over all steps.
    pub cell_updates: u64,
    /// Cells redone with first-order fluxes in these steps.
    pub redone_cells: u64,
    /// Times that one of these steps was taken again.
    pub retries: u64,
    /// Cells that floors repaired in these steps.
    pub floored_cells: u64,
    /// Steps with a tree that `max_cells` has kept small.
    pub raised: u64,
    pub timing: Timing,
}

impl Tally {
    /// Cells redone with first-order fluxes per cell update.
    pub(crate) fn redone_fraction(&self) -> f64 {
        self.redone_cells as f64 / (self.cell_updates as f64).max(1.0)
    }

    /// Floored cells per cell update.
    pub(crate) fn floored_fraction(&self) -> f64 {
        self.floored_cells as f64 / (self.cell_updates as f64).max(1.0)
    }
}

/// Adds up the records in `folder`.
pub(crate) fn tally(folder: &Path) -> Result<Tally, PipelineError> {
    #[derive(Deserialize)]
    struct Record {
        cell_updates: u64,
        ladder: Ladder,
        timing: Timing,
        raised: Option<CellBudgetAdjustment>,
    }
    let mut tally = Tally::default();
    for record in jsonl::read::<Record>(&folder.join(FILE))? {
        tally.cell_updates += record.cell_updates;
        tally.timing.add(&record.timing);
        tally.redone_cells += record.ladder.redone_cells;
        tally.retries += u64::from(record.ladder.retries);
        tally.floored_cells += record.ladder.floored_cells;
        tally.raised += u64::from(record.raised.is_some());
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_add_up() {
        let folder = tempfile::tempdir().unwrap();
        let line = |step: u64, floored: u64| {
            let ladder = Ladder { floored_cells: floored, redone_cells: 10, retries: 1, ..Ladder::default() };
            let timing = Timing { hydro: 1.5, ..Timing::default() };
            format!(
                "{}\n",
                serde_json::json!({ "step": step, "cell_updates": 100, "ladder": ladder, "timing": timing })
            )
        };
        let write = |lines: &[String]| std::fs::write(folder.path().join(FILE), lines.concat()).unwrap();
        write(&[line(1, 2), line(2, 3), line(3, 1)]);
        let sum = tally(folder.path()).unwrap();
        assert_eq!((sum.cell_updates, sum.floored_cells, sum.redone_cells, sum.retries), (300, 6, 30, 3));
        assert_eq!((sum.timing.hydro, sum.floored_fraction(), sum.redone_fraction()), (4.5, 0.02, 0.1));
        write(&[line(1, 2), "{}\n".into()]);
        assert!(tally(folder.path()).unwrap_err().to_string().contains("line 2"));
    }
}

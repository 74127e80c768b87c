//! `steps.jsonl`: the record of every step, one JSON object a line.
//!
//! A run that goes back to a checkpoint repeats steps with the same bits; a step that is already recorded is not
//! recorded again.

use crate::error::PipelineError;
use comove_sim::records::StepRecord;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The file's name.
pub const FILE: &str = "steps.jsonl";

/// The open file.
#[derive(Debug)]
pub struct Steps {
    path: PathBuf,
    file: File,
    last: u64,
    /// Marks the records of a run that was continued on another class of device.
    mark: Option<String>,
}

impl Steps {
    /// Opens or creates the records in `folder`; a torn last line is cut off. `mark` is the device class that the run
    /// was continued from, if that is another one.
    ///
    /// # Errors
    /// [`PipelineError::Io`].
    pub fn open(folder: &Path, mark: Option<String>) -> Result<Self, PipelineError> {
        let path = folder.join(FILE);
        let mut last = 0;
        let mut whole = 0;
        if path.exists() {
            let bytes = std::fs::read(&path).map_err(PipelineError::io(&path))?;
            for line in bytes.split_inclusive(|&b| b == b'\n').filter(|line| line.ends_with(b"\n")) {
                let Ok(value) = serde_json::from_slice::<serde_json::Value>(line) else { break };
                whole += line.len() as u64;
                last = value["step"].as_u64().unwrap_or(last);
            }
        }
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(PipelineError::io(&path))?;
        file.set_len(whole).map_err(PipelineError::io(&path))?;
        Ok(Self { path, file, last, mark })
    }

    /// Appends a record, unless it is there already.
    ///
    /// # Errors
    /// [`PipelineError::Io`].
    pub fn append(&mut self, record: &StepRecord) -> Result<(), PipelineError> {
        if record.step <= self.last {
            return Ok(());
        }
        let mut value = serde_json::to_value(record).expect("a record is plain data");
        if let Some(class) = &self.mark {
            value["continued_from_device_class"] = class.as_str().into();
        }
        let line = format!("{value}\n");
        self.file.write_all(line.as_bytes()).map_err(PipelineError::io(&self.path))?;
        self.last = record.step;
        Ok(())
    }

    /// Brings the records to disk.
    ///
    /// # Errors
    /// [`PipelineError::Io`].
    pub fn sync(&self) -> Result<(), PipelineError> {
        self.file.sync_data().map_err(PipelineError::io(&self.path))
    }
}

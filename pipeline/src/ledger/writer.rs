//! Appending to the ledger.

use super::event::{Entry, Event, VERSION};
use super::history::{self, History};
use crate::error::PipelineError;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// An open ledger: the history so far, and the file that new events are appended to.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    file: File,
    history: History,
}

impl Ledger {
    /// Opens or creates the ledger at `path`. A torn last line, as a killed process leaves it, is cut off.
    ///
    /// # Errors
    /// [`PipelineError::Io`], or [`PipelineError::Input`] for a line that is not an event (not the last one) or was
    /// written by a newer program.
    pub fn open(path: &Path) -> Result<Self, PipelineError> {
        let (history, whole_bytes) = history::read(path)?;
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(PipelineError::io(path))?;
        let length = file.metadata().map_err(PipelineError::io(path))?.len();
        if length > whole_bytes {
            tracing::warn!("{}: a torn last line of {} bytes is dropped", path.display(), length - whole_bytes);
            file.set_len(whole_bytes).map_err(PipelineError::io(path))?;
        }
        Ok(Self { path: path.into(), file, history })
    }

    /// What has happened so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Appends an event; it is on disk when this returns.
    ///
    /// # Errors
    /// [`PipelineError::Io`].
    pub fn append(&mut self, event: Event) -> Result<(), PipelineError> {
        let unix_time_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64());
        let entry = Entry { version: VERSION, unix_time_s, event };
        let mut line = serde_json::to_vec(&entry).expect("an event is plain data");
        line.push(b'\n');
        let write = |file: &mut File| file.write_all(&line).and_then(|()| file.sync_data());
        write(&mut self.file).map_err(PipelineError::io(&self.path))?;
        self.history.add(&entry.event);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Artefact;

    fn finished(fingerprint: &str) -> Event {
        let artefacts = vec![Artefact { file: "table.csv".into(), digest: "d".into() }];
        Event::StageFinished { fingerprint: fingerprint.into(), artefacts }
    }

    #[test]
    fn a_torn_tail_is_dropped_and_appending_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.append(finished("a")).unwrap();
        ledger.append(finished("b")).unwrap();
        drop(ledger);
        let whole = std::fs::read(&path).unwrap();
        let first_line = whole.iter().position(|&b| b == b'\n').unwrap() + 1;
        for cut in first_line + 1..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut ledger = Ledger::open(&path).unwrap();
            assert!(ledger.history().stage("a").is_some_and(|s| s.artefacts.is_some()));
            assert!(ledger.history().stage("b").is_none(), "cut at {cut}");
            ledger.append(finished("c")).unwrap();
            drop(ledger);
            assert!(Ledger::open(&path).unwrap().history().stage("c").is_some());
        }
    }

    #[test]
    fn a_damaged_line_before_the_end_and_a_newer_version_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.append(finished("a")).unwrap();
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{}\n{good}", &good[..20])).unwrap();
        let message = Ledger::open(&path).unwrap_err().to_string();
        assert!(message.contains("line 1 is not an event"), "{message}");
        std::fs::write(&path, good.replace("\"version\":1", "\"version\":99")).unwrap();
        let message = Ledger::open(&path).unwrap_err().to_string();
        assert!(message.contains("format 99"), "{message}");
    }
}

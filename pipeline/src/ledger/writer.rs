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
    /// Bytes of whole lines; what lies beyond them is a torn one.
    length: u64,
    history: History,
}

impl Ledger {
    /// Opens or creates the ledger at `path`. A torn last line, as a killed process leaves it, is cut off.
    ///
    /// # Errors
    /// [`PipelineError::Io`], or [`PipelineError::Input`] for a line that is not an event (not the last one) or was
    /// written by a newer program.
    pub fn open(path: &Path) -> Result<Self, PipelineError> {
        let (history, length) = history::read(path)?;
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(PipelineError::io(path))?;
        let ledger = Self { path: path.into(), file, length, history };
        ledger.drop_torn_line()?;
        Ok(ledger)
    }

    /// Cuts off the start of a line, as a killed process or a full disk leaves it.
    fn drop_torn_line(&self) -> Result<(), PipelineError> {
        let there = self.file.metadata().map_err(PipelineError::io(&self.path))?.len();
        if there > self.length {
            tracing::warn!("{}: a torn last line of {} bytes is dropped", self.path.display(), there - self.length);
            self.file.set_len(self.length).map_err(PipelineError::io(&self.path))?;
        }
        Ok(())
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
        self.drop_torn_line()?;
        let mut write = || self.file.write_all(&line).and_then(|()| self.file.sync_data());
        write().map_err(PipelineError::io(&self.path))?;
        self.length += line.len() as u64;
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

    /// As where the disk was full: what is left of a line must not be glued to the next one.
    #[test]
    fn what_a_failed_append_has_left_is_cut_off_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let mut ledger = Ledger::open(&path).unwrap();
        ledger.append(finished("a")).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"version\":1,\"uni").unwrap();
        ledger.append(finished("b")).unwrap();
        let ledger = Ledger::open(&path).unwrap();
        assert!(["a", "b"].iter().all(|stage| ledger.history().stage(stage).is_some()));
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

//! Appending to the ledger.

use super::event::{Entry, Event, VERSION};
use super::history::{self, History};
use crate::error::PipelineError;
use crate::terminal::event_stream::EventStream;
use crate::terminal::time_left::TimeLeft;
use comove_sim::records::StepRecord;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// An open ledger: the history so far, and the file that new events are appended to. Threads share it.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    /// Who else is told what happens.
    events: EventStream,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Bytes of whole lines; what lies beyond them is a torn one.
    length: u64,
    history: Arc<History>,
}

impl Ledger {
    /// Opens or creates the ledger at `path`. A torn last line, as a killed process leaves it, is cut off.
    ///
    /// # Errors
    /// [`PipelineError::Io`], or [`PipelineError::Input`] for a line that is not an event (not the last one) or was
    /// written by a newer program.
    pub(crate) fn open(path: &Path) -> Result<Self, PipelineError> {
        let (history, length) = history::read(path)?;
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(PipelineError::io(path))?;
        let state = State { file, length, history: Arc::new(history) };
        state.drop_torn_line(path).map_err(PipelineError::io(path))?;
        Ok(Self { path: path.into(), events: EventStream::default(), state: Mutex::new(state) })
    }

    /// The same, which sends `events` what happens.
    #[must_use]
    pub(crate) fn told_to(self, events: EventStream) -> Self {
        Self { events, ..self }
    }

    pub(crate) fn history(&self) -> Arc<History> {
        Arc::clone(&self.lock().history)
    }

    /// Appends an event; it is on disk when this returns.
    pub(crate) fn append(&self, event: Event) -> Result<(), PipelineError> {
        let entry = Entry { version: VERSION, unix_time_s: now(), event };
        let mut line = serde_json::to_vec(&entry).expect("an event is plain data");
        line.push(b'\n');
        let mut state = self.lock();
        state.append(&line, &self.path).map_err(PipelineError::io(&self.path))?;
        Arc::make_mut(&mut state.history).add(&entry.event, entry.unix_time_s);
        self.events.line(&line);
        Ok(())
    }

    /// Tells whoever listens of a step and the time that its run has left; its record is kept beside the run's snapshots,
    /// not here.
    pub(crate) fn stepped(&self, fingerprint: &str, record: &StepRecord, left: Option<TimeLeft>) {
        if !self.events.is_on {
            return;
        }
        let history = self.history();
        let folder = history.stage(fingerprint).map_or("", |stage| stage.folder.as_str());
        self.events.step(now(), fingerprint, folder, (record, left));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // nobody leaves the state half changed: a line that was not written whole is cut off before the next one
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |t| t.as_secs_f64())
}

impl State {
    fn append(&mut self, line: &[u8], path: &Path) -> io::Result<()> {
        let _phase = tracing::trace_span!(target: comove_sim::PHASE, "ledger").entered();
        self.drop_torn_line(path)?;
        self.file.write_all(line)?;
        self.file.sync_data()?;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Cuts off the start of a line, as a killed process or a full disk leaves it.
    fn drop_torn_line(&self, path: &Path) -> io::Result<()> {
        let there = self.file.metadata()?.len();
        if there > self.length {
            tracing::warn!("{}: an incomplete last line of {} bytes is removed", path.display(), there - self.length);
            self.file.set_len(self.length)?;
        }
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
        let ledger = Ledger::open(&path).unwrap();
        ledger.append(finished("a")).unwrap();
        ledger.append(finished("b")).unwrap();
        drop(ledger);
        let whole = std::fs::read(&path).unwrap();
        let first_line = whole.iter().position(|&b| b == b'\n').unwrap() + 1;
        for cut in first_line + 1..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let ledger = Ledger::open(&path).unwrap();
            assert!(ledger.history().stage("a").is_some_and(|s| s.artefacts.is_some()));
            assert!(ledger.history().stage("b").is_none(), "cut at {cut}");
            ledger.append(finished("c")).unwrap();
            drop(ledger);
            assert!(Ledger::open(&path).unwrap().history().stage("c").is_some());
        }
    }

    #[test]
    fn threads_append_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let ledger = Ledger::open(&path).unwrap();
        std::thread::scope(|threads| {
            for thread in ["a", "b", "c"] {
                let ledger = &ledger;
                threads.spawn(move || (0..20).for_each(|n| ledger.append(finished(&format!("{thread}{n}"))).unwrap()));
            }
        });
        assert_eq!(ledger.history().stages().count(), 60);
        assert_eq!(Ledger::open(&path).unwrap().history().stages().count(), 60);
    }

    /// As where the disk was full: what is left of a line must not be glued to the next one.
    #[test]
    fn what_a_failed_append_has_left_is_cut_off_before_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let ledger = Ledger::open(&path).unwrap();
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
        let ledger = Ledger::open(&path).unwrap();
        ledger.append(finished("a")).unwrap();
        let good = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{}\n{good}", &good[..20])).unwrap();
        let message = Ledger::open(&path).unwrap_err().to_string();
        assert!(message.contains("line 1 is not an event"), "{message}");
        std::fs::write(&path, good.replace(&format!("\"version\":{VERSION}"), "\"version\":99")).unwrap();
        let message = Ledger::open(&path).unwrap_err().to_string();
        assert!(message.contains("format 99"), "{message}");
    }
}

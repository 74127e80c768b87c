//! Tells tests that kill where a process is in its work (`tests/kills.rs`).
//!
//! Phases are spans of the target [`PHASE`], which nobody listens to unless the environment asks:
//!
//! * `COMOVE_PHASES=FILE`: the file holds, for each of [`PHASES`], one byte with the number of threads inside it now
//! * `COMOVE_PHASE_DELAY=rename:20`: who enters this phase waits 20 ms there, so that short ones are met

use comove_sim::PHASE;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tracing::span::Id;
use tracing::{Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// The phases, in the order of the file's bytes.
const PHASES: [&str; 7] = ["snapshot", "rename", "ledger", "regrid", "hook", "initial", "analysis"];

/// Writes down who is where.
struct Probe {
    file: File,
    inside: Mutex<[u8; PHASES.len()]>,
    delay: Option<(String, Duration)>,
}

/// A layer that does so, if the environment asks for it.
pub(crate) fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> Option<impl Layer<S>> {
    let file = File::create(std::env::var_os("COMOVE_PHASES")?).expect("a file for phases");
    let delay = std::env::var("COMOVE_PHASE_DELAY").ok().map(|text| {
        let (phase, milliseconds) = text.split_once(':').expect("COMOVE_PHASE_DELAY=phase:milliseconds");
        (phase.to_owned(), Duration::from_millis(milliseconds.parse().expect("whole milliseconds")))
    });
    let probe = Probe { file, inside: Mutex::default(), delay };
    Some(probe.with_filter(filter_fn(|span: &Metadata<'_>| span.target() == PHASE)))
}

impl Probe {
    fn count(&self, phase: &str, change: impl FnOnce(u8) -> u8) {
        let n = PHASES.iter().position(|known| *known == phase).expect("a phase of the list");
        let mut inside = self.inside.lock().unwrap_or_else(PoisonError::into_inner);
        inside[n] = change(inside[n]);
        self.file.write_all_at(&*inside, 0).expect("the file of phases");
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Probe {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let phase = context.span(id).expect("it is being entered").name();
        self.count(phase, |threads| threads + 1);
        if let Some((_, time)) = self.delay.as_ref().filter(|(delayed, _)| delayed == phase) {
            std::thread::sleep(*time);
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let phase = context.span(id).expect("it is being left").name();
        self.count(phase, |threads| threads - 1);
    }
}

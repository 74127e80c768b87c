//! The log: everything to `log.txt`, the gist of it to the terminal above the progress line.

use crate::error::PipelineError;
use crate::progress::Progress;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

/// Writes whole log lines above the progress line.
#[derive(Clone)]
struct Terminal(Progress);

impl Write for Terminal {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.print(text)?;
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts logging for this process: to `file`, appended, and briefly to the terminal.
///
/// # Errors
/// [`PipelineError::Io`].
pub fn start(file: &Path, progress: &Progress) -> Result<(), PipelineError> {
    let log = OpenOptions::new().create(true).append(true).open(file).map_err(PipelineError::io(file))?;
    let to_file = fmt::layer().with_ansi(false).with_target(false).with_writer(Mutex::new(log));
    let terminal = Terminal(progress.clone());
    let to_terminal = fmt::layer()
        .without_time()
        .with_target(false)
        .with_level(false)
        .with_ansi(false)
        .with_writer(move || terminal.clone())
        .with_filter(LevelFilter::INFO);
    let subscriber = tracing_subscriber::registry().with(to_file.with_filter(LevelFilter::DEBUG)).with(to_terminal);
    // a second start in one process (tests) keeps the first subscriber
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

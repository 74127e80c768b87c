//! The log: everything to `log.txt`, the gist of it to the terminal above the progress lines. What a stage says begins with
//! its name.

use crate::error::PipelineError;
use crate::terminal::progress::Progress;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::prelude::*;
use tracing_subscriber::registry::LookupSpan;

/// A line of the log: on request time and level, then the stage, then the message.
struct Line {
    dated: bool,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut line: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        if self.dated {
            SystemTime.format_time(&mut line)?;
            write!(line, " {:>5} ", event.metadata().level())?;
        }
        for span in context.event_scope().into_iter().flatten() {
            if let Some(fields) = span.extensions().get::<FormattedFields<N>>() {
                write!(line, "{fields}: ")?;
            }
        }
        context.format_fields(line.by_ref(), event)?;
        writeln!(line)
    }
}

/// Writes whole log lines above the progress lines.
#[derive(Clone)]
struct Terminal(Progress);

impl Write for Terminal {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        self.0.print(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts logging for this process: to `file`, appended, and briefly to the terminal; if `quiet`, warnings and errors only.
pub(crate) fn start(file: &Path, progress: &Progress, quiet: bool) -> Result<(), PipelineError> {
    let log = OpenOptions::new().create(true).append(true).open(file).map_err(PipelineError::io(file))?;
    let values = || fmt::format::debug_fn(|line, _, value| write!(line, "{value:?}"));
    let to_file = fmt::layer().event_format(Line { dated: true }).fmt_fields(values()).with_writer(Mutex::new(log));
    let terminal = Terminal(progress.clone());
    let to_terminal = fmt::layer()
        .event_format(Line { dated: false })
        .fmt_fields(values())
        .with_ansi(false)
        .with_writer(move || terminal.clone())
        .with_filter(if quiet { LevelFilter::WARN } else { LevelFilter::INFO });
    let subscriber = tracing_subscriber::registry()
        .with(to_file.with_filter(LevelFilter::DEBUG))
        .with(to_terminal)
        .with(crate::terminal::probe::layer());
    // a second start in one process (tests) keeps the first subscriber
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

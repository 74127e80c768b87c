//! Standard output and standard error. Nothing else writes to them: `println!` and `eprintln!` panic where a stream cannot
//! be written.
//!
//! Results that cannot be printed are an error (exit code 6), except where the reader has gone away, as `head` does. A lost
//! message is no error: the exit code remains, and `log.txt` has the messages of a campaign.

use crate::error::PipelineError;
use console::{Term, is_dumb};
use indicatif::{ProgressDrawTarget, TermLike};
use std::io::{self, ErrorKind, Write};
use std::path::Path;

/// Prints a line of results.
pub(crate) fn print(line: &str) -> Result<(), PipelineError> {
    printed(writeln!(io::stdout(), "{line}"))
}

/// The outcome of writing to the standard output.
pub(crate) fn printed(outcome: io::Result<()>) -> Result<(), PipelineError> {
    match outcome {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(PipelineError::io(Path::new(STDOUT))(error)),
        _ => Ok(()),
    }
}

const STDOUT: &str = "standard output";

/// Writes a message to the standard error.
pub fn message(text: &str) {
    say(format!("{text}\n").as_bytes());
}

/// Writes whole lines of messages to the standard error.
pub(crate) fn say(lines: &[u8]) {
    let mut stderr = io::stderr();
    let _ = stderr.write_all(lines).and_then(|()| stderr.flush());
}

/// Prints the help or the version that the command line asks for, or the message about a wrong command line.
///
/// # Errors
/// [`PipelineError::Io`] for help that cannot be printed.
pub fn print_usage(usage: &clap::Error) -> Result<(), PipelineError> {
    let outcome = usage.print().and_then(|()| io::stdout().flush());
    if usage.use_stderr() { Ok(()) } else { printed(outcome) }
}

/// The terminal behind the standard error, for lines that are redrawn; hidden where there is none.
pub(crate) fn progress_target() -> ProgressDrawTarget {
    let term = Term::buffered_stderr();
    if !term.is_term() || is_dumb() {
        return ProgressDrawTarget::hidden();
    }
    ProgressDrawTarget::term_like_with_hz(Box::new(Lossy(term)), REDRAWS_PER_SECOND)
}

const REDRAWS_PER_SECOND: u8 = 5;

/// A terminal whose failures are no errors: it may be closed while a campaign runs, and indicatif panics on some of them.
#[derive(Debug)]
pub(crate) struct Lossy<T>(pub(crate) T);

impl<T: TermLike> TermLike for Lossy<T> {
    fn width(&self) -> u16 {
        self.0.width()
    }

    fn height(&self) -> u16 {
        self.0.height()
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        lost(self.0.move_cursor_up(n))
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        lost(self.0.move_cursor_down(n))
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        lost(self.0.move_cursor_right(n))
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        lost(self.0.move_cursor_left(n))
    }

    fn write_line(&self, s: &str) -> io::Result<()> {
        lost(self.0.write_line(s))
    }

    fn write_str(&self, s: &str) -> io::Result<()> {
        lost(self.0.write_str(s))
    }

    fn clear_line(&self) -> io::Result<()> {
        lost(self.0.clear_line())
    }

    fn flush(&self) -> io::Result<()> {
        lost(self.0.flush())
    }
}

fn lost(outcome: io::Result<()>) -> io::Result<()> {
    outcome.or(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::{MultiProgress, ProgressBar};

    /// A terminal that was closed.
    #[derive(Debug)]
    struct Closed;

    impl TermLike for Closed {
        fn width(&self) -> u16 {
            80
        }

        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Err(ErrorKind::Other.into())
        }

        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Err(ErrorKind::Other.into())
        }

        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Err(ErrorKind::Other.into())
        }

        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Err(ErrorKind::Other.into())
        }

        fn write_line(&self, _: &str) -> io::Result<()> {
            Err(ErrorKind::Other.into())
        }

        fn write_str(&self, _: &str) -> io::Result<()> {
            Err(ErrorKind::Other.into())
        }

        fn clear_line(&self) -> io::Result<()> {
            Err(ErrorKind::Other.into())
        }

        fn flush(&self) -> io::Result<()> {
            Err(ErrorKind::Other.into())
        }
    }

    #[test]
    fn progress_survives_a_closed_terminal() {
        let lines = MultiProgress::with_draw_target(ProgressDrawTarget::term_like(Box::new(Lossy(Closed))));
        let bar = lines.add(ProgressBar::new(10));
        bar.tick();
        assert_eq!(lines.suspend(|| 1), 1);
        bar.finish_and_clear();
    }

    #[test]
    fn a_reader_that_has_gone_away_is_no_error() {
        assert!(printed(Err(ErrorKind::BrokenPipe.into())).is_ok());
        let full = printed(Err(ErrorKind::StorageFull.into())).unwrap_err();
        assert!(full.exit_code() == 6 && full.to_string().starts_with("standard output: "), "{full}");
    }
}

//! Requests to stop: SIGINT, SIGTERM, or a file named `stop` in the campaign folder.
//!
//! A request is a flag that the executor looks at between steps; the step in progress ends, a checkpoint is written,
//! and the process leaves with the exit code "resumable". A second signal ends the process at once.

use crate::error::PipelineError;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Tells whether somebody asked this process to stop.
#[derive(Clone, Debug)]
pub struct Interrupt {
    signal: Arc<AtomicUsize>,
    stop_file: PathBuf,
}

impl Interrupt {
    /// Listens to signals, and watches for `folder/stop`. A `stop` file left from before is removed.
    ///
    /// # Errors
    /// [`PipelineError::Io`] if the system refuses handlers.
    pub fn listen(folder: &Path) -> Result<Self, PipelineError> {
        let interrupt = Self::quiet(folder);
        let _ = std::fs::remove_file(&interrupt.stop_file);
        let seen = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // in this order the first signal only raises the flags, and the second one ends the process
            flag::register_conditional_shutdown(signal, 128 + signal, seen.clone())
                .and_then(|_| flag::register(signal, seen.clone()))
                .and_then(|_| flag::register_usize(signal, interrupt.signal.clone(), signal as usize))
                .map_err(PipelineError::io(folder))?;
        }
        Ok(interrupt)
    }

    /// Watches for `folder/stop` only.
    pub fn quiet(folder: &Path) -> Self {
        Self { signal: Arc::default(), stop_file: folder.join("stop") }
    }

    /// Who asked to stop, if anyone did.
    pub fn requested(&self) -> Option<String> {
        match self.signal.load(Ordering::Relaxed) as i32 {
            SIGINT => Some("SIGINT".into()),
            SIGTERM => Some("SIGTERM".into()),
            _ if self.stop_file.exists() => Some(format!("the file {}", self.stop_file.display())),
            _ => None,
        }
    }
}

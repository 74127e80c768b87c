//! Files that nobody vouches for: HDF5's C library can crash on a damaged one, or never come back, so a child process validates it
//! before it is opened here: it opens every dataset and reads the values, but for initial conditions all of whose datasets are
//! contiguous and without filters.
//!
//! A trial costs the start of a process and one reading of the file. A file whose digest the ledger knows needs none.

use crate::error::PipelineError;
use crate::processes::launchers;
use crate::stage::initial::SpeciesPresent;
use crate::storage::files::regular_file;
use clap::Subcommand;
use comove_ic::format::files;
use comove_ic::{BareFile, Contents, Given, LoadIc};
use comove_sim::Snapshot;
use serde::Serialize;
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGKILL, SIGTERM};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Seconds that a trial may take of a small file.
const PATIENCE: f64 = 60.0;
/// Bytes per second that a file is read with at the least.
const RATE: f64 = 2e7;
/// The longest pause before it is looked whether a trial has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Has a child process read all of a snapshot and check its digests.
pub(crate) fn snapshot(file: &Path) -> Result<(), PipelineError> {
    tried(file, "snapshot", file.as_os_str()).map(drop)
}

/// Has a child process validate an initial condition.
pub(crate) fn mesh(ic: &LoadIc) -> Result<(), PipelineError> {
    let json = serde_json::to_string(ic).expect("numbers and names");
    tried(&ic.path, "mesh", json.as_ref()).map(drop)
}

/// The species of a snapshot, as a child process reads them; `None` if there is no such file yet.
///
/// # Errors
/// As of [`snapshot`], if the header cannot be read.
pub(crate) fn snapshot_species(file: &Path) -> Result<Option<SpeciesPresent>, PipelineError> {
    species(file, "snapshot-species")
}

/// Format and species of an initial condition, likewise.
pub(crate) fn mesh_contents(file: &Path) -> Result<Option<Contents>, PipelineError> {
    species(file, "mesh-contents")
}

/// The examination of an initial condition, likewise.
pub(crate) fn examination(file: &Path, given: &Given) -> Result<BareFile, PipelineError> {
    let request = serde_json::to_string(&(file, given)).expect("a path and numbers");
    parsed(file, &tried(file, "examine", request.as_ref())?)
}

fn species<S: DeserializeOwned>(file: &Path, kind: &str) -> Result<Option<S>, PipelineError> {
    if !file.exists() {
        return Ok(None);
    }
    parsed(file, &tried(file, kind, file.as_os_str())?).map(Some)
}

fn parsed<S: DeserializeOwned>(file: &Path, printed: &str) -> Result<S, PipelineError> {
    serde_json::from_str(printed).map_err(|_| {
        let reason = format!("the process that read it printed \"{printed}\"; please report this bug of comove");
        PipelineError::input(file, reason)
    })
}

/// What the child process validates.
#[derive(Clone, Debug, Subcommand)]
pub enum Trial {
    /// A snapshot
    Snapshot {
        /// The file
        file: PathBuf,
    },
    /// The species of a snapshot, which it prints
    SnapshotSpecies {
        /// The file
        file: PathBuf,
    },
    /// Format and species of an initial condition, which it prints
    MeshContents {
        /// The file
        file: PathBuf,
    },
    /// The examination of an initial condition, which it prints
    Examine {
        /// File and given numbers, as JSON
        request: String,
    },
    /// The mesh of an initial condition
    Mesh {
        /// What to load, as JSON
        ic: String,
    },
}

/// What the child process does.
pub(crate) fn read(trial: Trial) -> Result<(), PipelineError> {
    // the other end is closed when the parent is gone, whatever ended it: nobody waits for this any more
    thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        signal_hook::low_level::exit(1)
    });
    match trial {
        Trial::Snapshot { file } => Ok(Snapshot::verify(&file)?),
        Trial::SnapshotSpecies { file } => {
            let header = Snapshot::read_header(&file)?;
            print(&SpeciesPresent { gas: header.fields.has_gas(), dark_matter: header.dark_matter.is_some() })
        }
        Trial::MeshContents { file } => print(&Contents::of(&file)?),
        Trial::Examine { request } => {
            let (file, given): (PathBuf, Given) =
                serde_json::from_str(&request).map_err(|e| PipelineError::Usage(e.to_string()))?;
            print(&BareFile::examine(&file, &given)?)
        }
        Trial::Mesh { ic } => {
            let ic: LoadIc = serde_json::from_str(&ic).map_err(|e| PipelineError::Usage(e.to_string()))?;
            Ok(ic.try_reading()?)
        }
    }
}

fn print(found: &impl Serialize) -> Result<(), PipelineError> {
    let text = serde_json::to_string(found).expect("plain data");
    std::io::stdout().write_all(text.as_bytes()).map_err(PipelineError::io(Path::new("standard output")))
}

/// Standard output of a child process that reads a file.
fn tried(file: &Path, kind: &str, what: &OsStr) -> Result<String, PipelineError> {
    let lengths =
        files(file).iter().map(|file| Ok(regular_file(file)?.len() as f64)).sum::<Result<f64, PipelineError>>();
    let seconds = PATIENCE + lengths? / RATE;
    let mut command = Command::new(this_program()?);
    command.args(["trial", kind, "--"]).arg(what);
    launchers::apart(&mut command);
    supervise(command, file, Duration::from_secs_f64(seconds))
}

/// This program, also where its file has been replaced since it began.
fn this_program() -> Result<PathBuf, PipelineError> {
    let running = Path::new("/proc/self/exe");
    if running.exists() { Ok(running.into()) } else { std::env::current_exe().map_err(PipelineError::io(running)) }
}

/// Runs `command`, which reads `file`; its standard output, or what is wrong with the file if it does not end well within
/// `limit`.
fn supervise(mut command: Command, file: &Path, limit: Duration) -> Result<String, PipelineError> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.process_group(0); // a signal from the terminal is for the parent, and is no crash
    let mut child = command.spawn().map_err(PipelineError::io(Path::new(command.get_program())))?;
    let printed = text_of(child.stdout.take().expect("it is piped"));
    let messages = text_of(child.stderr.take().expect("it is piped"));
    let ended = wait(&mut child, limit).map_err(PipelineError::io(file))?;
    let [printed, said] = [printed, messages].map(|text| text.join().expect("it only reads"));
    let remedy = "the file is damaged; use another copy or an earlier file";
    let reason = match ended {
        None => format!("HDF5 did not finish reading it within {:.0} s; {remedy}", limit.as_secs_f64()),
        Some(status) if status.success() => return Ok(printed),
        Some(status) => match (status.signal(), status.code()) {
            (Some(signal @ (SIGKILL | SIGTERM)), _) => {
                let why = format!("the process that read it was ended by signal {signal}; check the free memory");
                return Err(PipelineError::io(file)(std::io::Error::other(why)));
            }
            (Some(signal), _) => format!("HDF5 crashed on it (signal {signal}); {remedy}"),
            (_, Some(101)) => format!("reading it failed by a bug of comove; please report it with the file: {said}"),
            // the child names the file as well
            _ => said.strip_prefix(&format!("{}: ", file.display())).unwrap_or(&said).to_owned(),
        },
    };
    Err(PipelineError::input(file, reason))
}

/// Reads a pipe in the background.
fn text_of(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.read_to_end(&mut text);
        String::from_utf8_lossy(&text).trim().to_owned()
    })
}

/// Waits for a process until it ends; `None` if it had to be ended.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let (began, mut pause) = (Instant::now(), Duration::from_millis(1));
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (2 * pause).min(LOOK);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of `file.h5` if the child process does this.
    fn verdict(script: &str) -> Result<String, String> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        let began = Instant::now();
        let verdict = supervise(command, Path::new("file.h5"), Duration::from_secs(2)).map_err(|error| {
            assert_eq!(error.exit_code(), if script.contains("KILL") { 6 } else { 4 });
            error.to_string()
        });
        assert!(began.elapsed() < Duration::from_secs(20), "{script}");
        verdict
    }

    #[test]
    fn however_a_child_ends_the_file_is_named() {
        assert_eq!(verdict("echo found; exit 0"), Ok("found".into()));
        let damaged = "the file is damaged; use another copy or an earlier file";
        assert_eq!(verdict("kill -SEGV $$"), Err(format!("file.h5: HDF5 crashed on it (signal 11); {damaged}")));
        assert_eq!(
            verdict("exec sleep 100"),
            Err(format!("file.h5: HDF5 did not finish reading it within 2 s; {damaged}"))
        );
        assert_eq!(verdict("echo file.h5: it is empty >&2; exit 4"), Err("file.h5: it is empty".into()));
        assert!(verdict("echo panicked >&2; exit 101").unwrap_err().starts_with("file.h5: reading it failed by a bug"));
        // for want of memory, as a rule: that may pass
        assert!(verdict("kill -KILL $$").unwrap_err().contains("ended by signal 9"));
        // more than a pipe holds
        assert!(verdict("yes | head -c 1000000 >&2; exit 4").is_err());
    }
}

//! `comove diff`: where two runs, or two snapshots, differ.
//!
//! | module | what it holds |
//! |---|---|
//! | [`runs`] | parameters, and the first recorded step that differs |
//! | [`groups`] | the groups that differ after that step, from a replay |
//! | [`snapshots`] | headers, trees, fields and power spectra of two files |

mod groups;
mod runs;
mod snapshots;

use super::print;
use crate::cli;
use crate::error::PipelineError;
use serde::Serialize;
use std::path::Path;

trait Findings: Serialize {
    /// For a reader, line by line.
    fn lines(&self) -> Vec<String>;

    /// What differs, in a few words; `None` if nothing does.
    fn verdict(&self) -> Option<String>;
}

/// Compares and prints; what differs is an error.
pub(super) fn diff(arguments: &cli::Diff) -> Result<(), PipelineError> {
    let (a, b) = (&arguments.a, &arguments.b);
    match (is_file(a)?, is_file(b)?) {
        (true, true) if arguments.stage.is_some() => {
            Err(PipelineError::Usage("--stage chooses a run, and these are snapshots; remove it".into()))
        }
        (true, true) => conclude(&snapshots::compare(arguments)?, arguments),
        (false, false) if arguments.fields || arguments.power => Err(PipelineError::Usage(
            "--fields and --power compare snapshots, and these are folders; remove them, or give two snapshots".into(),
        )),
        (false, false) => conclude(&runs::compare(arguments)?, arguments),
        _ => {
            let (a, b) = (a.display(), b.display());
            Err(PipelineError::Usage(format!(
                "{a} and {b} are of different kinds; give the folders of two runs, or two snapshot files"
            )))
        }
    }
}

fn is_file(path: &Path) -> Result<bool, PipelineError> {
    match path.metadata() {
        Ok(found) => Ok(!found.is_dir()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(PipelineError::input(path, "no such file or folder"))
        }
        Err(error) => Err(PipelineError::io(path)(error)),
    }
}

fn conclude(findings: &impl Findings, arguments: &cli::Diff) -> Result<(), PipelineError> {
    if arguments.json {
        print(&serde_json::to_string(findings).expect("numbers and texts"))?;
    } else {
        findings.lines().iter().try_for_each(|line| print(line))?;
    }
    findings.verdict().map_or(Ok(()), |verdict| Err(PipelineError::Different(verdict)))
}

/// The lines under a heading that says how many there are, or that there is none.
fn listed(heading: &str, lines: &[String]) -> Vec<String> {
    if lines.is_empty() {
        return vec![format!("{heading}: no difference")];
    }
    std::iter::once(format!("{heading}:")).chain(lines.iter().map(|line| format!("  {line}"))).collect()
}

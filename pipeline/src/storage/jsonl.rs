//! Files that are only ever appended to, one JSON object a line: `steps.jsonl`, `observed.jsonl`.

use crate::error::PipelineError;
use crate::storage::files;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The lines of a file in their order, none if it is not there; a torn last one, as a killed process leaves it or another
/// one is writing it, is left out.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, PipelineError> {
    let bytes = bytes(path)?;
    let line = |(n, line): (usize, &[u8])| {
        serde_json::from_slice(line).map_err(|e| {
            let remedy = "restore the file, or compute its stage again with --force";
            PipelineError::input(path, format!("line {} is damaged ({e}): {remedy}", n + 1))
        })
    };
    whole(&bytes).enumerate().map(line).collect()
}

/// The lines before the first one that is damaged or torn, none if the file is not there.
pub(crate) fn sound(path: &Path) -> Result<Vec<Value>, PipelineError> {
    Ok(whole(&bytes(path)?).map_while(|line| serde_json::from_slice(line).ok()).collect())
}

/// A file that lines are appended to.
pub(crate) struct Lines {
    path: PathBuf,
    file: File,
}

impl Lines {
    /// Opens or creates a file, with the lines that it has; it is cut off, with a warning, before the first one that is
    /// damaged or torn.
    pub(crate) fn open(path: PathBuf) -> Result<(Self, Vec<Value>), PipelineError> {
        let bytes = bytes(&path)?;
        let (mut lines, mut length) = (Vec::new(), 0);
        for line in whole(&bytes) {
            let Ok(value) = serde_json::from_slice(line) else { break };
            length += line.len();
            lines.push(value);
        }
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(PipelineError::io(&path))?;
        if length < bytes.len() {
            tracing::warn!("{}: cut off after line {}, because the next line is damaged", path.display(), lines.len());
            file.set_len(length as u64).map_err(PipelineError::io(&path))?;
        }
        Ok((Self { path, file }, lines))
    }

    pub(crate) fn append(&mut self, line: &Value) -> Result<(), PipelineError> {
        self.file.write_all(format!("{line}\n").as_bytes()).map_err(PipelineError::io(&self.path))
    }

    /// Brings the lines to disk.
    pub(crate) fn sync(&self) -> Result<(), PipelineError> {
        self.file.sync_data().map_err(PipelineError::io(&self.path))
    }
}

/// What a file holds; nothing if it is not there.
fn bytes(path: &Path) -> Result<Vec<u8>, PipelineError> {
    Ok(files::read_if_there(path)?.unwrap_or_default())
}

fn whole(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|&b| b == b'\n').filter(|line| line.ends_with(b"\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_torn_line_is_left_out_and_a_damaged_one_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steps.jsonl");
        assert_eq!(read::<Value>(&path).unwrap(), Vec::<Value>::new());
        std::fs::write(&path, "{\"n\":1}\n{\"n\":2}\n{\"n\":").unwrap();
        assert_eq!(read::<Value>(&path).unwrap(), [json!({ "n": 1 }), json!({ "n": 2 })]);
        std::fs::write(&path, "{\"n\":1}\n{\"n\n{\"n\":3}\n").unwrap();
        let message = read::<Value>(&path).unwrap_err().to_string();
        assert!(message.contains("steps.jsonl: line 2 is damaged"), "{message}");
    }

    #[test]
    fn appending_goes_on_after_the_last_sound_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steps.jsonl");
        for damaged in ["", "{\"n\":", "{\"n\n{\"n\":3}\n"] {
            std::fs::write(&path, format!("{{\"n\":1}}\n{damaged}")).unwrap();
            let (mut file, lines) = Lines::open(path.clone()).unwrap();
            assert_eq!(lines, [json!({ "n": 1 })]);
            file.append(&json!({ "n": 2 })).unwrap();
            assert_eq!(read::<Value>(&path).unwrap(), [json!({ "n": 1 }), json!({ "n": 2 })]);
        }
    }
}

//! What a finished stage leaves, and which part of it the next one reads.

use crate::error::PipelineError;
use crate::ledger::{Artefact, SnapshotFile};
use comove_sim::snapshot::file_digest;
use comove_sim::{Role, SimError, Snapshot};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What a finished stage has left.
#[derive(Clone, Debug)]
pub struct StageResult {
    /// Its folder; file names are below it.
    pub folder: PathBuf,
    /// Files of any kind.
    pub artefacts: Vec<Artefact>,
    /// The snapshots of a run.
    pub snapshots: Vec<SnapshotFile>,
}

/// A file that a stage reads, and its content's digest.
#[derive(Clone, Debug)]
pub struct Input {
    /// The file.
    pub path: PathBuf,
    /// BLAKE3, hexadecimal.
    pub digest: String,
    /// Redshift, if it is a snapshot.
    pub z: f64,
}

impl Input {
    /// The redshift to four decimals at most, for names and captions.
    pub fn shown_z(&self) -> f64 {
        (self.z * 1e4).round() / 1e4
    }

    /// Reads it as a snapshot.
    ///
    /// # Errors
    /// As [`Snapshot::read`].
    pub fn snapshot(&self) -> Result<Snapshot, SimError> {
        Snapshot::read(&self.path)
    }
}

impl StageResult {
    /// The artefact of that name.
    pub fn artefact(&self, file: &str) -> Option<Input> {
        let found = self.artefacts.iter().find(|a| a.file == file)?;
        Some(Input { path: self.folder.join(file), digest: found.digest.clone(), z: f64::NAN })
    }
}

/// Which outputs of a run an analysis looks at. In a recipe `at_z: 2`, `at_z: [4, 2, 0]` or `at_z: "all"`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Value", into = "serde_json::Value")]
pub enum Selection {
    /// The last one: lowest redshift.
    #[default]
    Last,
    /// Every one.
    All,
    /// Those at these redshifts, which must be among the run's outputs.
    At(Vec<f64>),
}

impl Selection {
    /// The selected files, in the order of falling redshift.
    ///
    /// # Errors
    /// [`PipelineError::Input`] if one is not there.
    pub fn of(&self, result: &StageResult) -> Result<Vec<Input>, PipelineError> {
        let outputs: Vec<&SnapshotFile> = result.snapshots.iter().filter(|s| s.role == Role::Output).collect();
        let outputs = if outputs.is_empty() { result.snapshots.iter().collect() } else { outputs };
        let input = |s: &SnapshotFile| Input { path: result.folder.join(&s.file), digest: s.digest.clone(), z: s.z };
        let missing = |what: String| PipelineError::input(&result.folder, format!("no output {what}"));
        match self {
            Self::All => Ok(outputs.into_iter().map(input).collect()),
            Self::Last => Ok(vec![input(outputs.last().ok_or_else(|| missing("at all".into()))?)]),
            Self::At(redshifts) => {
                let at = |z: &f64| outputs.iter().find(|s| s.z == *z).map(|s| input(s));
                let mut inputs = redshifts
                    .iter()
                    .map(|z| at(z).ok_or_else(|| missing(format!("at z = {z}"))))
                    .collect::<Result<Vec<_>, _>>()?;
                inputs.sort_by(|x, y| y.z.total_cmp(&x.z));
                inputs.dedup_by(|x, y| x.path == y.path);
                Ok(inputs)
            }
        }
    }
}

impl TryFrom<serde_json::Value> for Selection {
    type Error = String;

    fn try_from(value: serde_json::Value) -> Result<Self, String> {
        let error = || format!("{value}: give a redshift, a list of redshifts, \"last\" or \"all\"");
        match &value {
            serde_json::Value::String(s) if s == "all" => Ok(Self::All),
            serde_json::Value::String(s) if s == "last" => Ok(Self::Last),
            serde_json::Value::Number(z) => Ok(Self::At(vec![z.as_f64().ok_or_else(error)?])),
            serde_json::Value::Array(list) if !list.is_empty() => {
                list.iter().map(|z| z.as_f64().ok_or_else(error)).collect::<Result<_, _>>().map(Self::At)
            }
            _ => Err(error()),
        }
    }
}

impl From<Selection> for serde_json::Value {
    fn from(selection: Selection) -> Self {
        match selection {
            Selection::Last => "last".into(),
            Selection::All => "all".into(),
            Selection::At(list) => list.into(),
        }
    }
}

/// The digest of a whole file, BLAKE3, hexadecimal.
///
/// # Errors
/// [`PipelineError::Io`].
pub fn digest_of(path: &Path) -> Result<String, PipelineError> {
    file_digest(path).map_err(|error| match error {
        SimError::Io { path, source } => PipelineError::Io { path, source },
        other => other.into(),
    })
}

/// The digest of a file that the recipe names.
///
/// # Errors
/// [`PipelineError::Input`] if it is not there, [`PipelineError::Io`].
pub fn digest_of_input(path: &Path) -> Result<String, PipelineError> {
    digest_of(path).map_err(|error| match error {
        PipelineError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            PipelineError::input(path, "no such file; names in a recipe are relative to the recipe's folder")
        }
        other => other,
    })
}

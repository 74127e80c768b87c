//! What a finished stage leaves, and which part of it the next one reads.

use crate::error::{CHANGED_FILE, PipelineError};
use crate::ledger::{Artefact, SnapshotFile};
use crate::moment::{Moment, list};
use crate::storage::files::{self, regular_file};
use crate::terminal::progress::Progress;
use comove_sim::snapshot::file_digest_reporting;
use comove_sim::{Role, SimError};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// What a stage has left as JSON in `file`.
pub(crate) fn read_json<T: DeserializeOwned>(file: &Path) -> Result<T, PipelineError> {
    let text = files::read(file)?;
    serde_json::from_slice(&text).map_err(|e| PipelineError::input(file, format!("not a result: {e}")))
}

#[derive(Clone, Debug)]
pub(crate) struct StageResult {
    /// Its folder; file names are below it.
    pub folder: PathBuf,
    /// Files of any kind.
    pub artefacts: Vec<Artefact>,
    pub snapshots: Vec<SnapshotFile>,
}

/// A file that a stage reads, and its digests.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub path: PathBuf,
    /// BLAKE3 of the whole file, hexadecimal.
    pub digest: String,
    /// What counts of it for the results of those that read it: of a snapshot the digest of what it shows, of any other
    /// file that of the whole.
    pub content: String,
    /// When it shows its run, if it is a snapshot.
    pub moment: Option<Moment>,
}

impl Input {
    /// A snapshot in `folder`.
    pub(crate) fn snapshot(folder: &Path, file: &SnapshotFile) -> Self {
        let content = file.content.clone().unwrap_or_else(|| file.digest.clone());
        Self { path: folder.join(&file.file), digest: file.digest.clone(), content, moment: Some(file.moment()) }
    }

    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Whether the whole file is what was written.
    pub(crate) fn is_whole(&self, progress: &Progress) -> Result<bool, PipelineError> {
        Ok(digest_of(&self.path, progress)? == self.digest)
    }

    /// Checks that it is.
    pub(crate) fn check(&self, progress: &Progress) -> Result<(), PipelineError> {
        let reason = || format!("{CHANGED_FILE}; `comove resume` computes it again");
        if self.is_whole(progress)? { Ok(()) } else { Err(PipelineError::input(&self.path, reason())) }
    }

    /// The moment of a snapshot, rounded for a message.
    pub(crate) fn shown(&self) -> Moment {
        self.shown_among(std::iter::empty())
    }

    /// The moment of a snapshot, rounded for names and captions, but told from those of all others.
    pub(crate) fn shown_among<'a>(&self, all: impl Iterator<Item = &'a Self> + Clone) -> Moment {
        let moment = self.moment.expect("analyses look at snapshots");
        moment.rounded_among(all.filter_map(|input| input.moment))
    }
}

impl StageResult {
    pub(crate) fn artefact(&self, file: &str) -> Option<Input> {
        let found = self.artefacts.iter().find(|a| a.file == file)?;
        let (digest, content) = (found.digest.clone(), found.digest.clone());
        Some(Input { path: self.folder.join(file), digest, content, moment: None })
    }
}

/// Which outputs of a run an analysis looks at. In a recipe `at_z: 2`, `at_z: [4, 2, 0]`, `at_t: 110` or `at_z: "all"`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Selection {
    /// The last one.
    #[default]
    Last,
    /// Every one.
    All,
    /// Those at these moments, which must be among the run's outputs.
    At(Vec<Moment>),
}

impl Selection {
    /// The selected files, in the order of time.
    pub(crate) fn of(&self, result: &StageResult) -> Result<Vec<Input>, PipelineError> {
        let outputs: Vec<&SnapshotFile> = result.snapshots.iter().filter(|s| s.role == Role::Output).collect();
        let outputs = if outputs.is_empty() { result.snapshots.iter().collect() } else { outputs };
        let input = |s: &SnapshotFile| Input::snapshot(&result.folder, s);
        let missing = |what: String| PipelineError::input(&result.folder, format!("no output {what}"));
        match self {
            Self::All => Ok(outputs.into_iter().map(input).collect()),
            Self::Last => Ok(vec![input(outputs.last().ok_or_else(|| missing("at all".into()))?)]),
            Self::At(moments) => {
                let mut moments = moments.clone();
                moments.sort_by(|x, y| x.now().total_cmp(&y.now()));
                moments.dedup();
                let at = |m: &Moment| outputs.iter().find(|s| s.moment() == *m).map(|s| input(s));
                let there: Vec<Moment> = outputs.iter().map(|s| s.moment()).collect();
                moments
                    .iter()
                    .map(|m| at(m).ok_or_else(|| missing(format!("at {m}; available: {}", list(&there)))))
                    .collect()
            }
        }
    }

    /// The selection for a reader: `z = 4, 2`, `last` or `all`.
    pub(crate) fn shown(&self) -> String {
        let symbol = |moments: &[Moment]| moments.first().map_or("z", |moment| moment.symbol());
        match self {
            Self::Last => "last".into(),
            Self::All => "all".into(),
            Self::At(moments) => {
                let values: Vec<String> = moments.iter().map(|moment| moment.value().to_string()).collect();
                format!("{} = {}", symbol(moments), values.join(", "))
            }
        }
    }

    /// What a recipe says in `at_z` or `at_t`; `moment` makes a moment of a number.
    pub(crate) fn decode(value: &serde_json::Value, moment: fn(f64) -> Moment) -> Result<Self, String> {
        let error = || format!("{value}: expected a number, a list of numbers, \"last\" or \"all\"");
        match value {
            serde_json::Value::String(s) if s == "all" => Ok(Self::All),
            serde_json::Value::String(s) if s == "last" => Ok(Self::Last),
            serde_json::Value::Number(n) => Ok(Self::At(vec![moment(n.as_f64().ok_or_else(error)?)])),
            serde_json::Value::Array(list) if !list.is_empty() => {
                list.iter().map(|n| n.as_f64().map(moment).ok_or_else(error)).collect::<Result<_, _>>().map(Self::At)
            }
            _ => Err(error()),
        }
    }
}

/// The digest of a whole file, BLAKE3, hexadecimal.
pub(crate) fn digest_of(path: &Path, progress: &Progress) -> Result<String, PipelineError> {
    regular_file(path)?;
    let line = progress.file("checking", path);
    file_digest_reporting(path, &|bytes| line.bytes(bytes)).map_err(|error| match error {
        SimError::Io { path, source } => PipelineError::Io { path, source },
        other => other.into(),
    })
}

/// The digest of a file that the recipe names.
pub(crate) fn digest_of_input(path: &Path, progress: &Progress) -> Result<String, PipelineError> {
    digest_of(path, progress).map_err(|error| match error {
        PipelineError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            PipelineError::input(path, "no such file; file names in a recipe are relative to the recipe's folder")
        }
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device or a pipe would be read for ever.
    #[test]
    fn only_regular_files_are_inputs() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path(), Path::new("/dev/null")] {
            let error = digest_of_input(path, &Progress::default()).unwrap_err();
            assert_eq!(error.exit_code(), 4, "{error}");
        }
        let missing = digest_of_input(&folder.path().join("none.h5"), &Progress::default()).unwrap_err().to_string();
        assert!(missing.contains("no such file"), "{missing}");
    }
    /// A snapshot counts by its content, or by its file where the ledger is of an older program.
    #[test]
    fn a_snapshot_counts_by_its_content() {
        let old = r#"{"file":"output_z2.h5","digest":"d","role":"output","a":0.3,"z":2.0,"step":9,"lasting":true}"#;
        for (line, content) in [(old.to_owned(), "d"), (old.replace(",\"role\"", ",\"content\":\"c\",\"role\""), "c")] {
            let file: SnapshotFile = serde_json::from_str(&line).unwrap();
            assert_eq!(serde_json::to_string(&file).unwrap(), line);
            let input = Input::snapshot("run".as_ref(), &file);
            assert_eq!((input.digest.as_str(), input.content.as_str()), ("d", content));
        }
    }
}

//! What the events of a ledger add up to.

use super::event::{Artefact, Entry, Event, Identity, SnapshotFile, VERSION};
use crate::error::PipelineError;
use crate::moment::Moment;
use crate::storage::files;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Digits of a fingerprint in the name of a folder, at least.
pub(crate) const DIGITS: usize = 4;

#[derive(Clone, Debug, Default)]
pub(crate) struct StageHistory {
    pub folder: String,
    pub kind: String,
    /// Its name when it began last; unknown of stages that an older program began.
    pub name: String,
    /// What the campaign was started with when it began last.
    pub given: Given,
    /// Whether a later command left it unfinished on request.
    pub left: bool,
    /// What it was when it began last; unknown of stages that an older program began.
    pub identity: Option<Identity>,
    /// What it made, once it was done.
    pub artefacts: Option<Vec<Artefact>>,
    /// The snapshots of a run that should be there, oldest first.
    pub snapshots: Vec<SnapshotFile>,
    /// What was found by the stop rules that a run has had, by their texts.
    pub rulings: BTreeMap<String, Ruling>,
    pub failure: Option<String>,
    /// The exit code of the failure, if the ledger has it.
    pub failure_code: Option<u8>,
    /// Files that were refused since it was done, and why.
    pub refused: Vec<(String, String)>,
    /// Whether it is to be done again on request.
    pub forced: bool,
    /// The later versions of its results that were allowed to continue it.
    pub continued_by: BTreeSet<u32>,
    /// Its place in the order in which stages were begun last.
    pub begun: usize,
    /// When it was begun last by a process that may still work on it, seconds since 1970.
    began_at: Option<f64>,
    /// Seconds that it took from there to its end.
    pub seconds: Option<f64>,
}

impl StageHistory {
    /// Whether it was begun and the ledger has not recorded its end.
    pub(crate) fn is_open(&self) -> bool {
        self.began_at.is_some()
    }

    /// How far its snapshots go, as [`crate::moment::Moment::now`] counts; `None` without one.
    pub(crate) fn reached(&self) -> Option<f64> {
        self.snapshots.last().map(|snapshot| snapshot.moment().now())
    }
}

/// The recipe and the parameters that a campaign was started with, as far as the ledger has them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Given {
    /// BLAKE3 of the recipe's text.
    pub recipe_digest: String,
    pub parameters: Option<BTreeMap<String, String>>,
}

/// What a stop rule has said of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Ruling {
    /// It was met by this step, which ends at this moment.
    Met {
        step: u64,
        /// Its end.
        moment: Moment,
    },
    /// It was met by none of the steps up to this one.
    Passed { step: u64 },
}

/// Everything that has happened in a campaign folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    stages: BTreeMap<String, StageHistory>,
    /// How the last process began: program, device, host.
    pub start: Option<Event>,
    /// How those before it began.
    pub earlier: Vec<Event>,
    /// How the last process ended: `None` while it runs or if it was killed.
    pub ending: Option<Event>,
    /// The fingerprints of the stages that the last process has begun and not ended.
    pub at_work: BTreeSet<String>,
    /// Whether the last process has brought anything further: the next one goes on from there.
    pub has_saved: bool,
    /// Folders that were to be deleted, in case they are still there.
    pub removed: BTreeSet<String>,
    folders: BTreeSet<String>,
    begun: usize,
    /// Digests of the recipes that were rehearsed.
    rehearsed: BTreeSet<String>,
    /// Digests of all files that were made here, or validated in a child process.
    known: BTreeSet<String>,
}

impl History {
    /// What is known of the stage with this fingerprint.
    pub(crate) fn stage(&self, fingerprint: &str) -> Option<&StageHistory> {
        self.stages.get(fingerprint)
    }

    /// All stages that were ever begun, by fingerprint.
    pub(crate) fn stages(&self) -> impl Iterator<Item = (&str, &StageHistory)> {
        self.stages.iter().map(|(fingerprint, stage)| (fingerprint.as_str(), stage))
    }

    /// True if a file with this digest was made here or validated by a child process. HDF5 then opens it safely.
    pub(crate) fn vouches_for(&self, digest: &str) -> bool {
        self.known.contains(digest)
    }

    /// Whether a recipe with this digest was rehearsed.
    pub(crate) fn has_rehearsed(&self, digest: &str) -> bool {
        self.rehearsed.contains(digest)
    }

    /// The name of a stage's folder: the one that it has, whichever program gave it; or its label, words, and as many digits
    /// of its fingerprint, four or more, as give a name that no other stage's folder has and that is not `taken` either.
    pub(crate) fn folder_of(
        &self,
        [label, words]: [&str; 2],
        fingerprint: &str,
        taken: impl Fn(&str) -> bool,
    ) -> String {
        if let Some(stage) = self.stage(fingerprint).filter(|stage| !stage.folder.is_empty()) {
            return stage.folder.clone();
        }
        let gap = if words.is_empty() { "" } else { "-" };
        let name = |digits: usize| format!("{label}{gap}{words}-{}", &fingerprint[..digits]);
        let mut names = (DIGITS..=fingerprint.len()).map(name);
        names
            .find(|name| !self.folders.contains(name) && !taken(name))
            .expect("no other stage has the same fingerprint")
    }

    /// Takes in an event of this time, seconds since 1970.
    pub(crate) fn add(&mut self, event: &Event, time: f64) {
        self.has_saved |= event.saves();
        match event {
            Event::CampaignStarted { .. } => {
                self.has_saved = false;
                self.earlier.extend(self.start.replace(event.clone()));
                self.ending = None;
                self.at_work.clear();
            }
            Event::CampaignInterrupted { .. } | Event::CampaignFinished {} => {
                self.ending = Some(event.clone());
                self.at_work.clear();
            }
            Event::StageStarted { fingerprint, folder, kind, identity, name } => {
                self.at_work.insert(fingerprint.clone());
                self.begun += 1;
                self.removed.remove(folder);
                self.folders.insert(folder.clone());
                let (begun, given) = (self.begun, self.given());
                let stage = self.of(fingerprint);
                (stage.given, stage.left) = (given, false);
                stage.name.clone_from(name);
                stage.begun = begun;
                stage.folder.clone_from(folder);
                stage.kind.clone_from(kind);
                stage.identity.clone_from(identity);
                // what it made before is made anew
                stage.artefacts = None;
                (stage.failure, stage.failure_code) = (None, None);
                (stage.began_at, stage.seconds) = (Some(time), None);
            }
            Event::RunContinued { .. } => {}
            Event::SnapshotWritten { fingerprint, snapshot } => {
                self.known.insert(snapshot.digest.clone());
                let stage = self.of(fingerprint);
                stage.refused.retain(|(file, _)| *file != snapshot.file);
                let snapshots = &mut stage.snapshots;
                snapshots.retain(|s| s.file != snapshot.file);
                snapshots.push(snapshot.clone());
                snapshots.sort_by(|x, y| x.moment().now().total_cmp(&y.moment().now()));
            }
            Event::SnapshotRemoved { fingerprint, file } => {
                self.of(fingerprint).snapshots.retain(|s| s.file != *file);
            }
            Event::FileRefused { fingerprint, file, reason } => {
                let stage = self.of(fingerprint);
                stage.refused.push((file.clone(), reason.clone()));
                stage.snapshots.retain(|s| s.file != *file);
                if stage.artefacts.as_ref().is_some_and(|made| made.iter().any(|a| a.file == *file)) {
                    stage.artefacts = None;
                }
            }
            Event::StageFinished { fingerprint, artefacts } => {
                self.at_work.remove(fingerprint);
                self.known.extend(artefacts.iter().map(|file| file.digest.clone()));
                let stage = self.of(fingerprint);
                stage.artefacts = Some(artefacts.clone());
                stage.seconds = stage.began_at.take().map(|began| time - began).filter(|seconds| *seconds >= 0.0);
                stage.failure = None;
                stage.refused.clear();
                stage.forced = false;
            }
            Event::StopRuleMet { fingerprint, rule, step, moment } => {
                self.of(fingerprint).rulings.insert(rule.clone(), Ruling::Met { step: *step, moment: *moment });
            }
            Event::StopRulePassed { fingerprint, rule, step } => {
                self.of(fingerprint).rulings.insert(rule.clone(), Ruling::Passed { step: *step });
            }
            Event::StageFailed { fingerprint, reason, code } => {
                self.at_work.remove(fingerprint);
                let stage = self.of(fingerprint);
                (stage.failure, stage.failure_code) = (Some(reason.clone()), *code);
            }
            Event::RunLeft { fingerprint } => self.of(fingerprint).left = true,
            Event::StageForced { fingerprint } => {
                let stage = self.of(fingerprint);
                stage.artefacts = None;
                stage.snapshots.clear();
                stage.continued_by.clear();
                stage.rulings.clear();
                stage.forced = true;
            }
            Event::Rehearsed { digest, .. } => _ = self.rehearsed.insert(digest.clone()),
            Event::InputTried { file } => _ = self.known.insert(file.digest.clone()),
            Event::VersionAccepted { fingerprint, continued_by, .. } => {
                self.of(fingerprint).continued_by.insert(*continued_by);
            }
            Event::StageRemoved { fingerprint } => {
                if let Some(stage) = self.stages.remove(fingerprint) {
                    self.folders.remove(&stage.folder);
                    self.removed.insert(stage.folder);
                }
            }
        }
    }

    /// The campaign's name when it was started last.
    pub(crate) fn name(&self) -> Option<&str> {
        match &self.start {
            Some(Event::CampaignStarted { name, .. }) => Some(name),
            _ => None,
        }
    }

    /// What the last process was started with.
    fn given(&self) -> Given {
        match &self.start {
            Some(Event::CampaignStarted { recipe_digest, parameters, .. }) => {
                Given { recipe_digest: recipe_digest.clone(), parameters: parameters.clone() }
            }
            _ => Given::default(),
        }
    }

    fn of(&mut self, fingerprint: &str) -> &mut StageHistory {
        self.stages.entry(fingerprint.to_owned()).or_default()
    }
}

/// Reads a ledger: the history, and how many bytes of the file are whole lines. A file that is not there is empty.
pub(crate) fn read(path: &Path) -> Result<(History, u64), PipelineError> {
    let bytes = files::read_if_there(path)?.unwrap_or_default();
    let mut history = History::default();
    let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
    for (n, line) in bytes[..whole].split(|&b| b == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        let damaged = |e: serde_json::Error| {
            let remedy = "restore or delete the line; after a deletion its stage is computed again";
            PipelineError::input(path, format!("line {} is not an event ({e}): {remedy}", n + 1))
        };
        let value: serde_json::Value = serde_json::from_slice(line).map_err(damaged)?;
        let version = value["version"].as_u64().unwrap_or(0);
        if version > u64::from(VERSION) {
            let reason = format!(
                "line {} has format {version}, and this program reads formats up to {VERSION}; use a newer \
                         comove",
                n + 1
            );
            return Err(PipelineError::input(path, reason));
        }
        let entry: Entry = serde_json::from_value(value).map_err(damaged)?;
        history.add(&entry.event, entry.unix_time_s);
    }
    Ok((history, whole as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_stages_have_one_folder() {
        let mut history = History::default();
        let folder_of = |history: &History, label: &str, fingerprint: &str| {
            history.folder_of([label, ""], fingerprint, |name| name == "halos-dddd")
        };
        let fingerprints = ["a".repeat(64), format!("{}{}", "a".repeat(5), "b".repeat(59))];
        for fingerprint in &fingerprints {
            let folder = folder_of(&history, "slice", fingerprint);
            let kind = "slice".into();
            history.add(
                &Event::StageStarted {
                    fingerprint: fingerprint.clone(),
                    folder,
                    kind,
                    name: String::new(),
                    identity: None,
                },
                0.0,
            );
        }
        let names = [0, 1].map(|n| folder_of(&history, "slice", &fingerprints[n]));
        assert_eq!(names, ["slice-aaaa", "slice-aaaaa"], "and a folder keeps its name");
        assert_eq!(folder_of(&history, "halos", &"a".repeat(64)), "slice-aaaa");
        assert_eq!(["b", "d"].map(|d| folder_of(&history, "halos", &d.repeat(64))), ["halos-bbbb", "halos-ddddd"]);
        assert_eq!(history.folder_of(["halos", "seed1"], &"b".repeat(64), |_| false), "halos-seed1-bbbb");
    }

    /// What was made here or validated in a child process is known, whatever has become of it since.
    #[test]
    fn known_files_are_vouched_for() {
        let mut history = History::default();
        let file = |digest: &str| Artefact { file: "x.h5".into(), digest: digest.into() };
        let fingerprint = "f".to_owned();
        let snapshot =
            r#"{"file":"c.h5","digest":"snapshot","role":"checkpoint","a":0.3,"z":2.0,"step":9,"lasting":false}"#;
        let snapshot: SnapshotFile = serde_json::from_str(snapshot).unwrap();
        for event in [
            Event::InputTried { file: file("tried") },
            Event::SnapshotWritten { fingerprint: fingerprint.clone(), snapshot },
            Event::StageFinished { fingerprint: fingerprint.clone(), artefacts: vec![file("mesh")] },
            Event::StageRemoved { fingerprint },
        ] {
            history.add(&event, 0.0);
        }
        assert!(["tried", "snapshot", "mesh"].into_iter().all(|digest| history.vouches_for(digest)));
        assert!(!history.vouches_for("other"));
    }

    /// Ledgers of before stages told what they are.
    #[test]
    fn a_start_without_an_identity_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ledger.jsonl");
        let line =
            r#"{"version":1,"unix_time_s":1.0,"event":"stage_started","fingerprint":"f","folder":"x-f","kind":"x"}"#;
        std::fs::write(&path, format!("{line}\n")).unwrap();
        let (history, _) = read(&path).unwrap();
        let stage = history.stage("f").unwrap();
        assert_eq!((stage.folder.as_str(), &stage.identity), ("x-f", &None));
    }
}

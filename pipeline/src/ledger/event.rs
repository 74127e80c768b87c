//! Events of a campaign. One JSON object a line: version, time, and the event's own fields.

use crate::moment::Moment;
use crate::processes::machine::Host;
use comove_sim::{Role, SnapshotHeader};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of this format. A program refuses a ledger with a higher one.
pub(crate) const VERSION: u32 = 4;

/// A line of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// [`VERSION`] of the program that wrote it.
    pub version: u32,
    pub unix_time_s: f64,
    #[serde(flatten)]
    pub event: Event,
}

/// A file that a stage made or read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Artefact {
    /// Its name: below the stage's folder; of a file that it read below the campaign's, or absolute.
    pub file: String,
    /// BLAKE3 of the whole file, hexadecimal.
    pub digest: String,
}

/// What a stage was when it began: what its fingerprint is made of, to be read and compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// What its folder is called.
    pub label: String,
    /// What it is to do, as `plan` says it.
    pub describes: String,
    /// The version of its results.
    pub results_version: u32,
    /// What decides its results.
    pub parameters: Value,
    /// What only decides how far it goes and what it writes: outside the fingerprint.
    pub extent: Value,
    pub inputs: Vec<Artefact>,
}

/// A snapshot that a run wrote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SnapshotFile {
    /// Its name below the stage's folder.
    pub file: String,
    /// BLAKE3 of the whole file, hexadecimal: tells damage.
    pub digest: String,
    /// Digest of what the file shows, without the recipe and the machine that it names: what the stages that read it know
    /// it by. Ledgers of older programs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    pub role: Role,
    pub a: f64,
    /// For an output the redshift that the recipe asked for, exactly.
    pub z: f64,
    /// In non-comoving coordinates the time, for an output as the recipe asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<f64>,
    pub step: u64,
    /// Kept for good, however many newer ones there are.
    pub lasting: bool,
}

impl SnapshotFile {
    /// A file that shows its run at `moment`; its digests follow when it is written.
    pub(crate) fn new(file: String, header: &SnapshotHeader, moment: Moment, lasting: bool) -> Self {
        let (z, time) = match moment {
            Moment::Redshift(z) => (z, None),
            Moment::Time(t) => (header.redshift(), Some(t)),
        };
        let SnapshotHeader { role, a, step, .. } = *header;
        Self { file, digest: String::new(), content: None, role, a, z, time, step, lasting }
    }

    /// Where it lies on its run's way.
    pub(crate) fn moment(&self) -> Moment {
        self.time.map_or(Moment::Redshift(self.z), Moment::Time)
    }
}

/// What can happen. Stages are named by fingerprint and by their folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum Event {
    /// A process began to work on the campaign.
    CampaignStarted {
        name: String,
        /// BLAKE3 of the recipe's text.
        recipe_digest: String,
        /// The recipe's parameters as the command line gave them; ledgers of older programs do not say.
        #[serde(default)]
        parameters: Option<BTreeMap<String, String>>,
        program: String,
        /// Device and its class of reproducible bits.
        device: String,
        process: String,
        /// The machine, and what the program was built with; ledgers of older programs do not say.
        #[serde(default)]
        machine: Option<Host>,
        /// What the command line said of where to compute, as it would say it again.
        #[serde(default)]
        options: Vec<String>,
    },
    StageStarted {
        fingerprint: String,
        folder: String,
        kind: String,
        /// What it is called; ledgers of older programs do not say.
        #[serde(default)]
        name: String,
        /// What it was; ledgers of older programs do not say.
        #[serde(default)]
        identity: Option<Identity>,
    },
    /// A run went on from a snapshot of its own.
    RunContinued {
        fingerprint: String,
        /// The checkpoint's file name.
        from: String,
        /// Device class it was written on, if that is not the present one: the bits may differ from here on.
        other_device_class: Option<String>,
    },
    /// A run wrote a checkpoint or an output.
    SnapshotWritten { fingerprint: String, snapshot: SnapshotFile },
    /// A checkpoint was deleted because newer ones replace it.
    SnapshotRemoved { fingerprint: String, file: String },
    /// A file is not what the ledger says it was, and is not used.
    FileRefused {
        fingerprint: String,
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A run's stop rule was met by a step: the run ends there as long as its recipe has that rule.
    StopRuleMet {
        fingerprint: String,
        /// The rule: its text and the values that it has captured.
        rule: String,
        step: u64,
        /// The end of the step.
        moment: Moment,
    },
    /// A run's stop rule was met by none of its steps up to this one.
    StopRulePassed {
        fingerprint: String,
        rule: String,
        /// The last step that it was asked of.
        step: u64,
    },
    StageFinished {
        fingerprint: String,
        /// Everything it made, apart from a run's snapshots.
        artefacts: Vec<Artefact>,
    },
    /// A stage could not be done.
    StageFailed {
        fingerprint: String,
        reason: String,
        /// The exit code of the failure; ledgers of older programs do not say.
        #[serde(default)]
        code: Option<u8>,
    },
    /// An unfinished run was left as it is by a command that does not continue it: `run --new`.
    RunLeft { fingerprint: String },
    /// A stage is to be done again as if it had never been: `run --force`.
    StageForced { fingerprint: String },
    /// What an earlier version of a stage has made is continued by a later one: `run --accept-version`.
    VersionAccepted {
        /// Its fingerprint, with the earlier version.
        fingerprint: String,
        /// The version of its results that it was begun with.
        made_by: u32,
        /// The version of the program that goes on.
        continued_by: u32,
    },
    /// A stage that the recipe no longer has is forgotten, and its folder deleted: `clean`.
    StageRemoved { fingerprint: String },
    /// A file from outside, which HDF5 reads, was validated by a child process: a file with this digest is not validated again.
    InputTried { file: Artefact },
    /// The process was asked to stop; everything is saved.
    CampaignInterrupted {
        /// The signal or file that asked.
        by: String,
    },
    /// The closures of the recipe were called on toy data without an error of the recipe.
    Rehearsed {
        /// Digest of the recipe, its parameters and the program.
        digest: String,
        /// Closures that were called.
        closures: usize,
        seconds: f64,
        /// Reasons why others were not called, or gave no result.
        not_rehearsed: Vec<String>,
    },
    /// Every stage is done.
    CampaignFinished {},
}

impl Event {
    /// Whether what happened need not be done again by the next process.
    pub(crate) fn saves(&self) -> bool {
        matches!(
            self,
            Self::SnapshotWritten { .. }
                | Self::StageFinished { .. }
                | Self::StopRuleMet { .. }
                | Self::StopRulePassed { .. }
        )
    }
}

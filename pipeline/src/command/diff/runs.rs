//! Two runs: what their ledgers say that they are, and the records of their steps.

use super::super::differences::{changes, differences};
use super::super::recorded::{Recorded, RecordedRun, class_of};
use super::super::stored;
use super::groups::{GroupDifferences, group_differences};
use super::{Findings, listed};
use crate::campaign::CampaignResolver;
use crate::campaign::select::find;
use crate::cli;
use crate::error::PipelineError;
use crate::ledger::history;
use crate::moment::Moment;
use crate::stage::evolve::hooks::HIDDEN;
use crate::storage::folder::CampaignFolder;
use comove_sim::Snapshot;
use serde::Serialize;
use serde_json::Value;
use std::path::PathBuf;

#[derive(Serialize)]
pub(super) struct RunComparison {
    a: PathBuf,
    b: PathBuf,
    /// What makes them two stages, a line each.
    parameters: Vec<String>,
    /// Recorded steps that both have and that agree, before the first that differs.
    steps_agree: usize,
    first_difference: Option<StepDifference>,
    last_steps: [u64; 2],
    /// When these end.
    last_moments: [Moment; 2],
    /// The classes of the devices that wrote the newest snapshot of each, if a step differs.
    device_classes: Option<[String; 2]>,
    groups: Option<GroupDifferences>,
    /// Why there is nothing said of groups.
    not_replayed: Option<String>,
}

/// The first step whose state hashes differ.
#[derive(Serialize)]
struct StepDifference {
    step: u64,
    moments: [Moment; 2],
    dt: [f64; 2],
    state_hashes: [String; 2],
    /// What else differs in its records, a line each.
    record: Vec<String>,
}

/// Compares them.
pub(super) fn compare(arguments: &cli::Diff) -> Result<RunComparison, PipelineError> {
    let folders = [&arguments.a, &arguments.b].map(|path| (path, CampaignFolder::open(path).ok()));
    if let Some(stage) = arguments.stage.as_ref().filter(|_| folders.iter().all(|(_, campaign)| campaign.is_none())) {
        let message =
            format!("--stage {stage} chooses a run of a campaign folder, and neither of these is one; remove it");
        return Err(PipelineError::Usage(message));
    }
    let [a, b] = folders.map(|(path, campaign)| match campaign {
        Some(campaign) => RecordedRun::open(&the_run(&campaign, arguments.stage.as_deref())?),
        None => RecordedRun::open(path),
    });
    let runs = [a?, b?];
    let [a, b] = &runs;
    let common: Vec<(&Recorded, &Recorded)> =
        a.records.iter().filter_map(|(step, record)| Some((record, b.records.get(step)?))).collect();
    if common.is_empty() {
        let shown = |run: &RecordedRun| match run.records.keys().next() {
            Some(first) => format!("has the steps {first} to {}", run.last()),
            None => "has none".into(),
        };
        let reason =
            format!("no step is recorded in both runs: this one {}, {} {}", shown(a), b.folder.display(), shown(b));
        return Err(PipelineError::input(&a.folder, reason));
    }
    let steps_agree = common.iter().take_while(|(a, b)| a.step.state_hash == b.step.state_hash).count();
    let first_difference = common.get(steps_agree).map(|(a, b)| StepDifference::of(a, b));
    let mut comparison = RunComparison {
        a: a.folder.clone(),
        b: b.folder.clone(),
        parameters: match (&a.known.identity, &b.known.identity) {
            (Some(a), Some(b)) => differences(a, b),
            _ => vec!["unknown, because an older program began one of the runs".into()],
        },
        steps_agree,
        last_steps: [a.last(), b.last()],
        last_moments: [a, b].map(|run| moment(&run.records[&run.last()].value)),
        first_difference,
        device_classes: None,
        groups: None,
        not_replayed: None,
    };
    if let Some(difference) = &comparison.first_difference {
        if let [Some(a), Some(b)] = [a, b].map(class_of_newest) {
            comparison.device_classes = Some([a, b]);
        }
        match group_differences(&runs, difference.step, &arguments.device) {
            Ok(groups) => comparison.groups = Some(groups),
            Err(why) => comparison.not_replayed = Some(why),
        }
    }
    Ok(comparison)
}

/// The folder of the run that is meant in a campaign.
fn the_run(campaign: &CampaignFolder, stage: Option<&str>) -> Result<PathBuf, PipelineError> {
    let (history, _) = history::read(&campaign.ledger())?;
    let (recipe, _) = stored(campaign)?;
    let resolver = CampaignResolver::where_possible(&recipe.campaign, campaign.path(), &history);
    let among = stage.map_or_else(|| Ok(resolver.positions().collect()), |stage| find(&resolver, stage))?;
    let runs = among.into_iter().filter(|&n| resolver.stage(n).as_run().is_some());
    let mut folders: Vec<&str> = runs.filter_map(|n| resolver.resolved(n)).map(|run| run.folder.as_str()).collect();
    folders.sort_unstable();
    folders.dedup();
    let path = campaign.path();
    match folders[..] {
        [folder] => Ok(path.join(folder)),
        [] => Err(PipelineError::input(path, "no run of this campaign has begun, or no run has the name of --stage")),
        _ => {
            let folders = folders.join(", ");
            let message = format!("{} has several runs; choose one with --stage: {folders}", path.display());
            Err(PipelineError::Usage(message))
        }
    }
}

/// The class of the device that wrote the newest snapshot of a run, if that can be read.
fn class_of_newest(run: &RecordedRun) -> Option<String> {
    let path = run.whole(&run.known.snapshots.last()?.file).ok()?;
    Snapshot::read_header(&path).ok().map(|header| class_of(&header).to_owned())
}

/// When a recorded step ends.
fn moment(record: &Value) -> Moment {
    match record["z"].as_f64() {
        Some(z) => Moment::Redshift(z),
        None => Moment::Time(record["time"].as_f64().unwrap_or(f64::NAN)),
    }
}

impl StepDifference {
    fn of(a: &Recorded, b: &Recorded) -> Self {
        let shown_otherwise = ["step", "a", "z", "time", "dt"];
        let [rest_a, rest_b] = [a, b].map(|record| {
            let mut rest = record.value.clone();
            let fields = rest.as_object_mut().expect("a record is a map");
            HIDDEN.iter().chain(&shown_otherwise).for_each(|name| _ = fields.remove(*name));
            rest
        });
        Self {
            step: a.step.step,
            moments: [a, b].map(|record| moment(&record.value)),
            dt: [a, b].map(|record| record.value["dt"].as_f64().unwrap_or(f64::NAN)),
            state_hashes: [a, b].map(|record| record.step.state_hash.clone()),
            record: changes(&rest_a, &rest_b),
        }
    }

    fn lines(&self) -> Vec<String> {
        let pair = |[a, b]: [String; 2]| if a == b { format!("{a} in both") } else { format!("{a} → {b}") };
        let own = [
            pair(self.moments.map(|moment| moment.to_string())),
            format!("dt: {}", pair(self.dt.map(|dt| dt.to_string()))),
            format!("state hash: {}", pair(self.state_hashes.clone())),
        ];
        own.into_iter().chain(self.record.iter().cloned()).map(|line| format!("  {line}")).collect()
    }
}

impl Findings for RunComparison {
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("{} → {}", self.a.display(), self.b.display())];
        lines.extend(listed("parameters", &self.parameters));
        let n = self.steps_agree;
        match &self.first_difference {
            Some(difference) => {
                lines.push(format!("steps: {n} agree; step {} is the first that differs:", difference.step));
                lines.extend(difference.lines());
            }
            None => {
                let [a, b] = self.last_steps;
                let further = match a.cmp(&b) {
                    std::cmp::Ordering::Equal => format!(", to {}", self.last_moments[0].rounded()),
                    std::cmp::Ordering::Greater => {
                        format!("; A continues to step {a}, {}", self.last_moments[0].rounded())
                    }
                    std::cmp::Ordering::Less => {
                        format!("; B continues to step {b}, {}", self.last_moments[1].rounded())
                    }
                };
                lines.push(format!("steps: all {n} common steps agree{further}"));
            }
        }
        if let Some([a, b]) = self.device_classes.as_ref().filter(|[a, b]| a != b) {
            lines.push(format!("device class: {a} → {b}, between which the bits of a run differ"));
        }
        lines.extend(self.groups.iter().flat_map(GroupDifferences::lines));
        lines.extend(self.not_replayed.iter().map(|why| format!("groups: not compared, {why}")));
        lines
    }

    fn verdict(&self) -> Option<String> {
        match (&self.first_difference, self.parameters.is_empty()) {
            (Some(difference), _) => Some(format!("the runs differ from step {} on", difference.step)),
            (None, false) => Some("the runs differ in parameters, but in no step".into()),
            (None, true) => None,
        }
    }
}

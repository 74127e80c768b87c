//! How far a campaign is, what failed, and the command that goes on with it.

use super::super::shell::line;
use crate::campaign::{CampaignResolver, StageStatus};
use crate::command::done;
use crate::error::PipelineError;
use crate::ledger::{Event, History, StageHistory};
use crate::moment::Moment;
use crate::recipe::Recipe;
use comove_analysis::report::{self, StageLine, StateKind};
use std::path::Path;

/// What the state follows from.
pub(super) struct State<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) folder: &'a Path,
    pub(super) history: &'a History,
    /// A walk that has looked at every stage.
    pub(super) resolver: &'a CampaignResolver<'a>,
    /// By stage: why it could not be looked at.
    pub(super) hindrances: Vec<Option<PipelineError>>,
}

impl State<'_> {
    /// The state, while `holder` works on the campaign if anybody does.
    pub(super) fn now(&self, holder: Option<String>) -> report::State {
        let positions = || self.resolver.positions();
        let failures: Vec<(String, String)> =
            positions().filter_map(|n| Some((self.resolver.name(n).to_owned(), self.failure(n)?))).collect();
        let (all, done) = (positions().len(), positions().filter(|&n| self.resolver.is_done(n)).count());
        let at = self.reached();
        let by = match &self.history.ending {
            Some(Event::CampaignInterrupted { by }) => Some(by),
            _ => None,
        };
        let why = by.map_or("No process is running. ".to_owned(), |by| format!("Stopped by {by}. "));
        let (kind, headline, why) = match holder {
            Some(holder) => (StateKind::Running, "Running".to_owned(), format!("Computed by {holder}. ")),
            None if done == all => (StateKind::Finished, "Finished".into(), String::new()),
            None if !failures.is_empty() => (StateKind::Failed, format!("Failed{at}"), why),
            None if by.is_some() => (StateKind::Stopped, format!("Stopped{at}"), why),
            None => (StateKind::Stopped, format!("Not finished{at}"), why),
        };
        let text = match (kind, all) {
            (StateKind::Finished, 1) => "The only stage is done.".into(),
            (StateKind::Finished, _) => format!("All {all} stages are done."),
            _ => format!("{why}{done} of {all} stages are done."),
        };
        report::State { kind, headline, text, failures, commands: self.commands(kind) }
    }

    /// All stages, in the order in which they run.
    pub(super) fn stages(&self) -> Vec<StageLine> {
        let line = |n: usize| StageLine {
            name: self.resolver.name(n).to_owned(),
            state: self.status(n),
            seconds: self.known(n).and_then(|known| known.seconds),
        };
        self.resolver.positions().map(line).collect()
    }

    pub(super) fn known(&self, n: usize) -> Option<&StageHistory> {
        self.resolver.known(n, self.history)
    }

    /// Why a stage that is not done has failed.
    pub(super) fn failure(&self, n: usize) -> Option<String> {
        let hindrance = self.hindrances[n].as_ref().map(ToString::to_string);
        hindrance.or_else(|| self.known(n)?.failure.clone()).filter(|_| !self.resolver.is_done(n))
    }

    /// Where the snapshots of a run end that is not done.
    fn moment(&self, n: usize) -> Option<Moment> {
        let newest = self.known(n)?.snapshots.last()?;
        self.resolver.result(n).is_none().then(|| newest.moment().rounded())
    }

    /// Where the runs are that are not done: ` at z = 4`, or from the one that is furthest behind to the first.
    fn reached(&self) -> String {
        let mut moments: Vec<Moment> = self.resolver.positions().filter_map(|n| self.moment(n)).collect();
        moments.sort_by(|x, y| x.now().total_cmp(&y.now()));
        match (moments.first(), moments.last()) {
            (Some(first), Some(last)) if first == last => format!(" at {first}"),
            (Some(first), Some(last)) => format!(" at {first} to {}", last.value()),
            _ => String::new(),
        }
    }

    /// Where a stage stands, in words.
    fn status(&self, n: usize) -> String {
        let folder = self.resolver.resolved(n).map(|resolved| format!(" ({})", resolved.folder)).unwrap_or_default();
        let state = match (self.resolver.status(n), self.moment(n)) {
            (StageStatus::Given, _) => "given".into(),
            (StageStatus::Done, _) => done(self.resolver.stage(n), self.known(n)),
            (StageStatus::Decided, _) => return self.decided(n),
            (_, at) if self.failure(n).is_some() => {
                at.map_or("failed".into(), |at| format!("failed, last snapshot at {at}"))
            }
            (_, Some(at)) => format!("unfinished, last snapshot at {at}"),
            (StageStatus::ToDo, None) if self.known(n).is_some() => "begun".into(),
            (StageStatus::ToDo, None) => return "to do".into(),
            (StageStatus::Waiting, _) => {
                let missing: Vec<&str> = self.resolver.missing(n).map(|input| self.resolver.name(input)).collect();
                let waits = if self.resolver.is_undecided(n) { "is decided after" } else { "waits for" };
                return format!("{waits} {}", missing.join(" and "));
            }
        };
        format!("{state}{folder}")
    }

    /// What a stage has decided on, by the names of the further stages.
    fn decided(&self, n: usize) -> String {
        let further = self.resolver.further(n).unwrap_or_default();
        let names: Vec<&str> = further.iter().map(|&further| self.resolver.name(further)).collect();
        if names.is_empty() { "decided: nothing further".into() } else { format!("decided: {}", names.join("; ")) }
    }

    /// What goes on with the campaign.
    fn commands(&self, kind: StateKind) -> Vec<(String, String)> {
        let folder = std::path::absolute(self.folder).unwrap_or_else(|_| self.folder.into()).display().to_string();
        let options = match &self.history.start {
            Some(Event::CampaignStarted { options, .. }) => options.as_slice(),
            _ => &[],
        };
        let resume = || line(["comove", "resume", &folder].into_iter().chain(options.iter().map(String::as_str)));
        let recipe = self.recipe.source.path.display().to_string();
        let run = || {
            let given = self.recipe.parameters.given.iter();
            let given: Vec<String> = given.flat_map(|(n, v)| ["-p".into(), format!("{n}={v}")]).collect();
            let words = ["comove", "run", &recipe].into_iter().chain(given.iter().map(String::as_str));
            line(words.chain(["--dir", &folder]).chain(options.iter().map(String::as_str)))
        };
        match kind {
            StateKind::Finished => Vec::new(),
            StateKind::Running => vec![("To show its progress".into(), line(["comove", "status", &folder, "--watch"]))],
            StateKind::Stopped => vec![("To continue".into(), resume())],
            StateKind::Failed => {
                vec![("To continue".into(), resume()), ("To continue with a changed recipe".into(), run())]
            }
        }
    }
}

//! `comove explain`: why a stage would be done, or done again.

use super::differences::differences;
use super::{plan, print, standing};
use crate::campaign::select::find;
use crate::campaign::{CampaignResolver, Resolved, StageStatus};
use crate::cli;
use crate::error::PipelineError;
use crate::ledger::{History, StageHistory};
use crate::moment::list;
use crate::stage::Stage;
use crate::stage::result::digest_of;
use crate::terminal::progress::Progress;
use std::path::Path;

pub(super) fn explain(arguments: cli::Explain) -> Result<(), PipelineError> {
    let (recipe, dir, history) = standing(&arguments.recipe.recipe, arguments.recipe.parameters, arguments.dir)?;
    let resolver = CampaignResolver::where_possible(&recipe.campaign, &dir, &history);
    let stages = find(&resolver, &arguments.stage)?;
    let mut explanation = Explanation { resolver, history: &history, dir: &dir };
    let mut said = Vec::new();
    stages.into_iter().try_for_each(|n| explanation.stage(n, &mut said))
}

struct Explanation<'a> {
    resolver: CampaignResolver<'a>,
    history: &'a History,
    dir: &'a Path,
}

impl Explanation<'_> {
    /// Prints what there is to say of stage `n`, and then of what it waits for; each stage once.
    fn stage(&mut self, n: usize, said: &mut Vec<usize>) -> Result<(), PipelineError> {
        if said.contains(&n) {
            return Ok(());
        }
        said.push(n);
        self.resolver.look(n, self.history)?;
        let stage = self.resolver.stage(n);
        let folder = self.resolver.resolved(n).map(|resolved| format!(" ({})", resolved.folder)).unwrap_or_default();
        print(&format!(
            "{:>3}  {}{folder}\n     {}: {}",
            n + 1,
            stage.kind(),
            self.resolver.name(n),
            stage.describe()
        ))?;
        let (lines, causes) = self.reasons(n);
        lines.iter().try_for_each(|line| print(&format!("     {line}")))?;
        causes.into_iter().try_for_each(|cause| self.stage(cause, said))
    }

    /// Why stage `n` is where it is, and the stages that this comes from.
    fn reasons(&self, n: usize) -> (Vec<String>, Vec<usize>) {
        let stage = self.resolver.stage(n);
        match (self.resolver.status(n), self.resolver.resolved(n)) {
            (StageStatus::Given, _) => (vec!["given: nothing to compute".into()], vec![]),
            (StageStatus::Decided, _) => {
                let further = self.resolver.further(n).unwrap_or_default().to_vec();
                (vec![format!("decided, from its results: {} stages", further.len())], further)
            }
            (_, None) => {
                let missing: Vec<usize> = self.resolver.missing(n).collect();
                let numbers: Vec<String> = missing.iter().map(|input| (input + 1).to_string()).collect();
                let waits = match self.resolver.is_undecided(n) {
                    true => format!("decided after {}:", plan::missing(&self.resolver, n)),
                    false => format!(
                        "to do after stage {}, unless its results are the same as before:",
                        numbers.join(" and ")
                    ),
                };
                (vec![waits], missing)
            }
            (standing, Some(resolved)) => {
                let lines = match self.resolver.known(n, self.history) {
                    Some(known) if standing == StageStatus::Done => self.done(stage, resolved, known),
                    Some(known) => self.begun(stage, resolved, known),
                    None => self.unknown(stage, resolved),
                };
                (lines, vec![])
            }
        }
    }

    /// Of a stage that is done: files that are no longer what was written.
    fn done(&self, stage: &dyn Stage, resolved: &Resolved, known: &StageHistory) -> Vec<String> {
        let made = known.artefacts.iter().flatten().map(|made| (made.file.clone(), made.digest.clone()));
        let made = made.chain(stage.snapshots(known).into_iter().map(|s| (s.file, s.digest)));
        let folder = self.dir.join(&resolved.folder);
        let progress = Progress::on_terminal();
        let damaged = made.filter_map(|(file, digest)| match digest_of(&folder.join(&file), &progress) {
            Ok(found) if found == digest => None,
            Ok(_) => Some(format!("would be computed again: {file} was changed after it was written")),
            Err(error) => Some(format!("would be computed again: {error}")),
        });
        let damaged: Vec<String> = damaged.collect();
        if damaged.is_empty() { vec!["done; all files are unchanged".into()] } else { damaged }
    }

    /// Of a stage that is known, and not done.
    fn begun(&self, stage: &dyn Stage, resolved: &Resolved, known: &StageHistory) -> Vec<String> {
        let mut lines: Vec<String> = resolved.older.iter().map(|older| older.advice(stage)).collect();
        if known.forced {
            lines.push("to do again, because of `run --force`".to_owned());
        }
        lines.extend(known.refused.iter().map(|(file, reason)| format!("to do again: {file} was refused: {reason}")));
        if let Some(failure) = &known.failure {
            lines.push(format!("to do: its last attempt failed: {failure}"));
        }
        if let Some(run) = stage.as_run() {
            let missing = run.missing(known);
            if !missing.is_empty() {
                lines.push(format!("to do: the outputs at {} are missing", list(&missing)));
            }
            if !run.is_ruled(known) {
                lines.push(match run.stop(known) {
                    Some(stop) => format!("to do: its stop rule ended it {stop}, and that output is missing"),
                    None => "to do: its stop rule was not evaluated for all steps".into(),
                });
            }
            let own = self.dir.join(&resolved.folder);
            match plan::goes_on_from(stage, &own, Some(known), &resolved.inputs, &Progress::on_terminal()) {
                Some(from) => lines.push(format!("it continues from {} at {}", from.name(), from.shown())),
                None => lines.extend(run.why_anew(known).map(|why| format!("{why}: it starts again"))),
            }
        }
        if lines.is_empty() {
            lines.push("to do: it was begun and is not finished".into());
        }
        lines
    }

    /// Of a stage that was never begun: how it differs from the most similar one that the recipe does not have any more.
    fn unknown(&self, stage: &dyn Stage, resolved: &Resolved) -> Vec<String> {
        if let Some(older) = &resolved.older {
            return vec![format!("to do: {}", older.advice(stage))];
        }
        let now = resolved.identity(stage, self.dir);
        let in_recipe = |fingerprint: &str| {
            let mut resolved = self.resolver.positions().filter_map(|n| self.resolver.resolved(n));
            resolved.any(|resolved| resolved.fingerprint == fingerprint)
        };
        let before = self.history.stages().filter(|(fingerprint, _)| !in_recipe(fingerprint));
        let before = before.filter_map(|(_, known)| {
            let identity = known.identity.as_ref().filter(|identity| identity.label == now.label)?;
            Some((differences(identity, &now), known))
        });
        let nearest = before.min_by_key(|(differences, known)| (differences.len(), std::cmp::Reverse(known.begun)));
        match nearest {
            None => vec!["to do: this campaign folder has no similar stage".into()],
            Some((differences, known)) => {
                let first = format!("to do: it differs from {}, which is done, in", known.folder);
                std::iter::once(first).chain(differences.into_iter().map(|line| format!("  {line}"))).collect()
            }
        }
    }
}

//! `comove explain`: why a stage would be done, or done again.

use super::{plan, print, standing};
use crate::campaign::select::find;
use crate::campaign::{CampaignResolver, Resolved, StageStatus};
use crate::canonical_json::leaves;
use crate::cli;
use crate::error::PipelineError;
use crate::ledger::{Artefact, History, Identity, StageHistory};
use crate::moment::list;
use crate::progress::Progress;
use crate::stage::Stage;
use crate::stage::evolve::with_expressions;
use crate::stage::result::digest_of;
use serde_json::Value;
use std::collections::BTreeSet;
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
            (StageStatus::Given, _) => (vec!["given: nothing is done".into()], vec![]),
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
                        "to do after stage {}, unless that leaves what it has left before:",
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
            Ok(_) => Some(format!("would be done again: {file} is not the file that was written")),
            Err(error) => Some(format!("would be done again: {error}")),
        });
        let damaged: Vec<String> = damaged.collect();
        if damaged.is_empty() { vec!["done, and all its files are as they were written".into()] } else { damaged }
    }

    /// Of a stage that is known, and not done.
    fn begun(&self, stage: &dyn Stage, resolved: &Resolved, known: &StageHistory) -> Vec<String> {
        let mut lines: Vec<String> = resolved.older.iter().map(|older| older.advice(stage)).collect();
        if known.forced {
            lines.push("to do again: `run --force` has asked for it".to_owned());
        }
        lines.extend(known.refused.iter().map(|(file, reason)| format!("to do again: {file} was refused: {reason}")));
        if let Some(failure) = &known.failure {
            lines.push(format!("to do: it failed when it was done last: {failure}"));
        }
        if let Some(run) = stage.as_run() {
            let missing = run.missing(known);
            if !missing.is_empty() {
                lines.push(format!("to do: the outputs at {} are not there", list(&missing)));
            }
            if !run.is_ruled(known) {
                lines.push(match run.stop(known) {
                    Some(stop) => format!("to do: its stop rule ends it {stop}, and the output there is missing"),
                    None => "to do: its stop rule was not asked of all its steps".into(),
                });
            }
            let own = self.dir.join(&resolved.folder);
            match plan::goes_on_from(stage, &own, Some(known), &resolved.inputs, &Progress::on_terminal()) {
                Some(from) => lines.push(format!("it continues from {} at {}", from.name(), from.shown())),
                None => lines.extend(run.why_anew(known).map(|why| format!("{why}: it starts anew"))),
            }
        }
        if lines.is_empty() {
            lines.push("to do: it was begun and has not ended".into());
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
            None => vec!["to do: nothing like it has been done here before".into()],
            Some((differences, known)) => {
                let first = format!("to do: it differs from {}, which was done before, in", known.folder);
                std::iter::once(first).chain(differences.into_iter().map(|line| format!("  {line}"))).collect()
            }
        }
    }
}

/// What makes one stage another one, a line each.
pub(super) fn differences(before: &Identity, now: &Identity) -> Vec<String> {
    let mut lines = Vec::new();
    if before.results_version != now.results_version {
        let (before, now) = (before.results_version, now.results_version);
        lines.push(format!("the version of its results: {before} → {now}; CHANGELOG says what they differ in"));
    }
    let shown = [before, now].map(|identity| (identity.parameters.clone(), &identity.extent));
    let [old, new] = with_expressions(shown);
    lines.extend(changes(&old, &new));
    let only_in = |here: &[Artefact], there: &[Artefact]| -> Vec<String> {
        let missing = here.iter().filter(|file| there.iter().all(|other| other.digest != file.digest));
        missing.map(|file| file.file.clone()).collect()
    };
    let (old, new) = (only_in(&before.inputs, &now.inputs), only_in(&now.inputs, &before.inputs));
    for n in 0..old.len().max(new.len()) {
        lines.push(match (old.get(n), new.get(n)) {
            (Some(old), Some(new)) if old == new => format!("the content of {new}"),
            (Some(old), Some(new)) => format!("what it reads: {old} → {new}"),
            (old, new) => {
                let name = |file: Option<&String>| file.map_or("nothing", String::as_str).to_owned();
                format!("what it reads: {} → {}", name(old), name(new))
            }
        });
    }
    lines
}

/// The values that differ between two trees of maps, a line each.
pub(super) fn changes(before: &Value, now: &Value) -> Vec<String> {
    let (old, new) = (leaves(before), leaves(now));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let shown = |value: Option<&Value>| value.map_or_else(|| "not set".into(), Value::to_string);
    let values = names.into_iter().map(|name| (name, old.get(name), new.get(name)));
    let changed = values.filter(|(_, old, new)| old != new);
    let line = |(name, old, new): (_, Option<&Value>, Option<&Value>)| match (old, new) {
        (Some(Value::String(old)), Some(Value::String(new))) if old.len().max(new.len()) > LONG => {
            let [old, new] = apart(old, new);
            format!("{name}: {old} → {new}")
        }
        _ => format!("{name}: {} → {}", shown(old), shown(new)),
    };
    changed.map(line).collect()
}

/// What two texts of tokens differ in, with some tokens on either side.
fn apart(old: &str, new: &str) -> [String; 2] {
    let [old, new] = [old, new].map(|text| text.split(' ').collect::<Vec<_>>());
    let most = old.len().min(new.len());
    let before = (0..most).take_while(|n| old[*n] == new[*n]).count();
    let same_from_end = |n: &usize| old[old.len() - 1 - n] == new[new.len() - 1 - n];
    let after = (0..most - before).take_while(same_from_end).count();
    [old, new].map(|tokens| {
        let (first, last) = (before.saturating_sub(AROUND), (tokens.len() - after + AROUND).min(tokens.len()));
        let [cut, goes_on] = [first > 0, last < tokens.len()].map(|is_cut| if is_cut { "…" } else { "" });
        let shown = [cut, &tokens[first..last].join(" "), goes_on].join(" ");
        format!("`{}`", shown.trim())
    })
}

/// Bytes of a text that is shown in part: a closure.
const LONG: usize = 80;

/// Tokens that are shown around what differs.
const AROUND: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_a_long_closure_the_part_is_shown_that_differs() {
        let text = |bound: &str| {
            format!("| s | {{ let h = s . histogram ( ) ; h . filter ( | b | b . low > {bound} ) . len ( ) + 1 }}")
        };
        assert_eq!(
            apart(&text("1 . 5"), &text("2")),
            ["`… b | b . low > 1 . 5 ) . len ( ) + …`", "`… b | b . low > 2 ) . len ( ) + …`"]
        );
        assert_eq!(apart("| s | 1", "| s | 1 + 2"), ["`| s | 1`", "`| s | 1 + 2`"]);
    }

    #[test]
    fn stages_differ_in_leaves_inputs_and_version() {
        let file = |name: &str, digest: &str| Artefact { file: name.into(), digest: digest.into() };
        let identity = |version: u32, parameters: Value, inputs: Vec<Artefact>| Identity {
            label: "evolve".into(),
            describes: String::new(),
            results_version: version,
            parameters,
            extent: Value::Null,
            inputs,
        };
        let before =
            identity(3, json!({ "run": { "courant": 0.5, "eta": 1 } }), vec![file("a/x", "1"), file("t", "2")]);
        let after = identity(
            4,
            json!({ "run": { "courant": 0.4, "eta": 1, "new": [1] } }),
            vec![file("b/x", "3"), file("t", "4")],
        );
        let expected = [
            "the version of its results: 3 → 4; CHANGELOG says what they differ in",
            "run.courant: 0.5 → 0.4",
            "run.new: not set → [1]",
            "what it reads: a/x → b/x",
            "the content of t",
        ];
        assert_eq!(differences(&before, &after), expected);
        // the same file at another place is the same
        let moved = identity(3, before.parameters.clone(), vec![file("c/x", "1"), file("t", "2")]);
        assert_eq!(differences(&before, &moved), [""; 0]);
    }
}

//! Differences between two stages, for messages.

use crate::ledger::{Artefact, Identity};
use crate::stage::evolve::with_expressions;
use crate::storage::canonical_json::leaves;
use serde_json::Value;
use std::collections::BTreeSet;

/// What makes one stage another one, a line each.
pub(super) fn differences(before: &Identity, now: &Identity) -> Vec<String> {
    let mut lines = Vec::new();
    if before.results_version != now.results_version {
        let (before, now) = (before.results_version, now.results_version);
        lines.push(format!("results version: {before} → {now}; CHANGELOG lists the differences"));
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
            (Some(old), Some(new)) if old == new => format!("content of {new}"),
            (Some(old), Some(new)) => format!("input: {old} → {new}"),
            (old, new) => {
                let name = |file: Option<&String>| file.map_or("nothing", String::as_str).to_owned();
                format!("input: {} → {}", name(old), name(new))
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
            "results version: 3 → 4; CHANGELOG lists the differences",
            "run.courant: 0.5 → 0.4",
            "run.new: not set → [1]",
            "input: a/x → b/x",
            "content of t",
        ];
        assert_eq!(differences(&before, &after), expected);
        // the same file at another place is the same
        let moved = identity(3, before.parameters.clone(), vec![file("c/x", "1"), file("t", "2")]);
        assert_eq!(differences(&before, &moved), [""; 0]);
    }
}

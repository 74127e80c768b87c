//! Names of stages for a reader: as the recipe names them, else by their title and by what tells them from others of that
//! title, `The run, root 32³, seed 1`; and the words of their folders' names, `evolve-root32-seed1-a7c6`.

use super::Node;
use super::deferred::Deferred;
use crate::stage::EXPRESSIONS;
use crate::stage::ic::shown as cells;
use crate::storage::canonical_json::leaves;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Parameters that a name holds though fewer would do to tell a stage from others.
const SHOWN: usize = 3;

/// Named stages that are read, up to which a name shows them all.
const FEW: usize = 2;

/// Characters of a parameter's value beyond which it is only shown where nothing else tells stages apart.
const SHORT: usize = 24;

/// Characters beyond which it is not shown at all.
const LONG: usize = 60;

/// Characters of the words in a folder's name.
const WORDS: usize = 40;

/// The names of stages, each given with the positions of what it reads, which come before it; no two default names are the
/// same.
pub(crate) fn names(stages: &[(&Node, &[usize])]) -> Vec<String> {
    let mut marks: Vec<Marks> = Vec::new();
    for (node, inputs) in stages {
        let found = Marks::of(node, inputs.iter().map(|&input| (stages[input].0, &marks[input])), true);
        marks.push(found);
    }
    // those that read something with a name are told apart by that name, and from the others by having one; of those that
    // wait for a value of a result the options are known only as the recipe has them
    let waits = |n: usize| matches!(stages[n].0.decision(), Some((_, Deferred::Stage { .. })));
    let mut titles: BTreeMap<(String, bool, bool), Vec<usize>> = BTreeMap::new();
    let mut names: Vec<String> = stages.iter().map(|(n, _)| n.name().map(String::from).unwrap_or_default()).collect();
    for (n, (node, _)) in stages.iter().enumerate().filter(|(_, (node, _))| node.name().is_none()) {
        titles.entry((node.stage().title(), marks[n].value("").is_empty(), waits(n))).or_default().push(n);
    }
    for ((title, ..), stages) in titles {
        let group: Vec<&Marks> = stages.iter().map(|&n| &marks[n]).collect();
        let endings: Vec<String> = distinguish(&group).iter().map(|marks| ending(marks)).collect();
        for (&n, ending) in stages.iter().zip(&endings) {
            let twins = endings.iter().filter(|other| *other == ending).count();
            let number = if twins > 1 { format!(", stage {}", n + 1) } else { String::new() };
            names[n] = format!("{title}{ending}{number}");
        }
    }
    for n in (0..names.len()).filter(|&n| waits(n)) {
        if names.iter().filter(|name| **name == names[n]).count() > 1 {
            names[n] += ", not decided yet";
        }
    }
    names
}

/// The words of stages' folder names: the name that the recipe gives a stage or what it reads, and the parameters that tell
/// it from the other stages with its label. All follow from the recipe alone. `marks` are the stages' own, without extents.
pub(super) fn folder_words(stages: &[(&Node, &Marks)]) -> Vec<String> {
    // as for names, those that read something with a name have that
    let mut labels: BTreeMap<(String, bool), Vec<usize>> = BTreeMap::new();
    for (n, (node, marks)) in stages.iter().enumerate() {
        labels.entry((node.stage().label(), marks.value("").is_empty())).or_default().push(n);
    }
    let mut words = vec![String::new(); stages.len()];
    for stages_of_label in labels.into_values() {
        let group: Vec<&Marks> = stages_of_label.iter().map(|&n| stages[n].1).collect();
        for (n, marks) in stages_of_label.into_iter().zip(distinguish(&group)) {
            let parts = marks.iter().map(|(key, value)| slug(&brief(key, value))).filter(|part| !part.is_empty());
            words[n] = stages[n].0.name().map_or_else(|| parts.collect::<Vec<_>>().join("-"), slug);
        }
    }
    words.iter_mut().for_each(shorten);
    words
}

/// A parameter as a word of a folder's name: text alone, a number after its key.
fn brief(key: &str, value: &str) -> String {
    let speaks_for_itself = value.starts_with(char::is_alphabetic) && !["true", "false"].contains(&value);
    if value.is_empty() || speaks_for_itself { value.into() } else { format!("{key} {value}") }
}

/// A text in characters that are safe in a file's name everywhere: lower-case ASCII letters, digits, `_`, `-`, and the point
/// of a decimal. A number follows its word without a gap: `seed1` of `seed 1`.
fn slug(text: &str) -> String {
    let text: Vec<char> = text.replace(" × ", "×").replace('×', "x").to_ascii_lowercase().chars().collect();
    let is_digit = |n: Option<usize>| n.and_then(|n| text.get(n)).is_some_and(char::is_ascii_digit);
    let (mut slug, mut gap) = (String::new(), String::new());
    for (n, &c) in text.iter().enumerate() {
        let is_point = c == '.' && is_digit(n.checked_sub(1)) && is_digit(Some(n + 1));
        if !(c.is_ascii_alphanumeric() || c == '_' || is_point) {
            gap.push(c);
            continue;
        }
        let joins = c.is_ascii_digit()
            && slug.ends_with(|c: char| c.is_ascii_lowercase())
            && gap.chars().all(|c| " =".contains(c));
        if !(gap.is_empty() || slug.is_empty() || joins) {
            slug.push('-');
        }
        gap.clear();
        slug.push(c);
    }
    slug
}

/// Cuts words at the last gap within their length.
fn shorten(words: &mut String) {
    if words.len() > WORDS {
        let end = words[..=WORDS].rfind('-').unwrap_or(WORDS);
        words.truncate(end);
    }
}

/// What may tell a stage from others: its parameters and those of what it reads, by their names, in the order in which a
/// name shows them. What the recipe has named goes by that name, under the key "".
#[derive(Debug, Default)]
pub(super) struct Marks {
    values: Vec<(String, Vec<String>)>,
    /// The keys of what decides no result: a name holds it only where it needs it.
    outside: BTreeSet<String>,
}

impl Marks {
    /// The marks of a stage, with its extent or without.
    pub(super) fn of<'a>(node: &Node, inputs: impl Iterator<Item = (&'a Node, &'a Self)>, with_extent: bool) -> Self {
        let (mut marks, stage) = (Self::default(), node.stage());
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for (input, theirs) in inputs {
            match input.name() {
                Some(name) => named.push(name),
                None => others.push(theirs),
            }
        }
        // the names of many runs are longer than what they tell
        if named.len() <= FEW {
            named.into_iter().for_each(|name| marks.add("", name));
        }
        let mut outside = if with_extent { leaves(&stage.extent()) } else { BTreeMap::new() };
        // the texts of expressions stand among the shown parameters
        outside.retain(|key, _| !key.starts_with(EXPRESSIONS));
        leaves(&stage.shown_parameters()).iter().chain(&outside).for_each(|(key, value)| marks.add(key, &shown(value)));
        marks.outside.extend(outside.into_keys());
        if let Some(outputs) = stage.outputs() {
            marks.add("outputs", &outputs.shown());
        }
        for file in stage.files() {
            marks.add("file", &file.file_name().unwrap_or(file.as_os_str()).to_string_lossy());
        }
        for theirs in others {
            for (key, values) in &theirs.values {
                values.iter().for_each(|value| marks.add(key, value));
            }
            marks.outside.extend(theirs.outside.iter().cloned());
        }
        marks
    }

    fn add(&mut self, key: &str, value: &str) {
        match self.values.iter_mut().find(|(known, _)| known == key) {
            None => self.values.push((key.into(), vec![value.into()])),
            Some((_, values)) if values.iter().any(|known| known == value) => {}
            Some((_, values)) => values.push(value.into()),
        }
    }

    /// The value under a key, several joined; empty if there is none.
    fn value(&self, key: &str) -> String {
        self.values.iter().find(|(known, _)| known == key).map(|(_, values)| values.join(" and ")).unwrap_or_default()
    }
}

/// What each of these stages has that tells it from the others: the name of what it reads if that has one, under the key "",
/// and parameters.
fn distinguish(group: &[&Marks]) -> Vec<Vec<(String, String)>> {
    let mut seen = BTreeSet::new();
    let keys = group.iter().flat_map(|marks| marks.values.iter().map(|(key, _)| key));
    let keys = keys.filter(|key| seen.insert(key.as_str()));
    // the values of all stages under a key; parameters that all have in common say nothing
    let columns = keys.map(|key| (key, group.iter().map(|marks| marks.value(key)).collect::<Vec<_>>()));
    let columns = columns.filter(|(key, values)| key.is_empty() || values.iter().any(|value| *value != values[0]));
    let longest = |values: &[String]| values.iter().map(|value| value.chars().count()).max().unwrap_or(0);
    let is_short = |values: &[String]| longest(values) <= SHORT && values.iter().all(|value| !value.starts_with('['));
    let (short, long): (Vec<_>, Vec<_>) = columns.partition(|(_, values)| is_short(values));
    let mut chosen: Vec<(&String, Vec<String>)> = Vec::new();
    for (key, values) in short.into_iter().chain(long.into_iter().filter(|(_, values)| longest(values) <= LONG)) {
        let says_more = chosen.iter().all(|(_, known)| *known != values);
        let is_name = key.is_empty();
        let tells_apart = count(&chosen, Some(&values)) > count(&chosen, None);
        let decides = group.iter().all(|marks| !marks.outside.contains(key));
        if is_name || tells_apart || (says_more && decides && is_short(&values) && chosen.len() < SHOWN) {
            chosen.push((key, values));
        }
    }
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let marks_of = |n: usize| {
        let mark = |(key, values): &(&String, Vec<String>)| {
            let twice = chosen.iter().filter(|(other, _)| last(other) == last(key)).count() > 1;
            (if twice { (*key).clone() } else { last(key) }, values[n].clone())
        };
        chosen.iter().map(mark).collect()
    };
    (0..group.len()).map(marks_of).collect()
}

/// The end of a name, which begins with a comma.
fn ending(marks: &[(String, String)]) -> String {
    let part = |(key, value): &(String, String)| match (key.as_str(), value.as_str()) {
        ("", "") => String::new(),
        ("", name) => format!(", {name}"),
        (key, "") => format!(", no {key}"),
        (key, value) => format!(", {key} {value}"),
    };
    marks.iter().map(part).collect()
}

/// How many stages differ in these columns.
fn count(columns: &[(&String, Vec<String>)], further: Option<&Vec<String>>) -> usize {
    let all = || columns.iter().map(|(_, values)| values).chain(further);
    let rows = all().next().map_or(0, Vec::len);
    (0..rows).map(|n| all().map(|values| &values[n]).collect::<Vec<_>>()).collect::<BTreeSet<_>>().len().max(1)
}

/// A parameter's value for a reader; nothing for nothing.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        // closures have line breaks
        Value::String(text) => text.split_whitespace().collect::<Vec<_>>().join(" "),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), |number| number.to_string()),
        Value::Array(list) => {
            let numbers: Vec<usize> = list.iter().filter_map(Value::as_u64).filter_map(|n| n.try_into().ok()).collect();
            match <[usize; 3]>::try_from(numbers) {
                Ok(along_axes) if list.len() == 3 => cells(along_axes),
                _ => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(", ")),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use crate::campaign::CampaignResolver;
    use crate::recipe::{Source, evaluate};
    use std::collections::BTreeMap;
    use std::path::Path;

    fn names(recipe: &str) -> Vec<String> {
        of_each(recipe, |resolver, n| resolver.name(n).to_owned())
    }

    /// The labels of stages and the words in their folders' names.
    fn folders(recipe: &str) -> Vec<String> {
        of_each(recipe, |resolver, n| format!("{} {}", resolver.stage(n).label(), resolver.words(n)))
    }

    fn of_each(recipe: &str, text: impl Fn(&CampaignResolver<'_>, usize) -> String) -> Vec<String> {
        let start = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\
                     fn ic(c, seed, cells) { ic_gaussian(c, #{ box_mpc_h: 20, cells: cells, z: 49, seed: seed }) }";
        let source = Source { path: "names.rhai".into(), text: format!("{start}\n{recipe}") };
        let campaign = evaluate(source, BTreeMap::new()).unwrap().campaign;
        let resolver = CampaignResolver::new(&campaign, Path::new("names"));
        resolver.positions().map(|n| text(&resolver, n)).collect()
    }

    #[test]
    fn a_sweep_is_told_apart_by_what_it_varies() {
        let sweep = r#"
            let runs = [];
            for seed in 1..=2 { for cells in [16, 32] { runs.push(evolve(ic(C, seed, cells), #{ z_end: 40 })); } }
            campaign("x", runs.map(|run| slice(run, #{ field: "pressure" })) + [refinement_ratio(runs)])
        "#;
        let names = names(sweep);
        assert_eq!(
            names[..3],
            ["Initial condition, cells 16³, seed 1", "The run, root 16³, seed 1", "Slice: pressure, root 16³, seed 1"]
        );
        assert_eq!(names[10..], ["The run, root 32³, seed 2", "Slice: pressure, root 32³, seed 2", "Refinement"]);
    }

    #[test]
    fn a_name_of_the_recipe_is_passed_on() {
        let named = r#"
            let run = |seed| evolve(ic(C, seed, 16), #{ z_end: 40, name: `seed ${seed}, 16³` });
            campaign("x", [slice(run.call(1)), slice(run.call(2)), slice(run.call(2), #{ name: "the slice" })])
        "#;
        let names = names(named);
        assert_eq!(names[1..3], ["seed 1, 16³", "Slice: density, seed 1, 16³"]);
        assert_eq!(names[3..6], ["Initial condition, seed 2, stage 4", "seed 2, 16³", "Slice: density, seed 2, 16³"]);
        assert_eq!(names.last().unwrap(), "the slice");
    }

    /// The kind, the name of what is read, and options that differ; nothing that does not decide results.
    #[test]
    fn folders_say_what_they_hold() {
        let sweep = r#"
            let runs = [];
            for seed in 1..=2 {
                let run = evolve(ic(C, seed, 16), #{ z_end: seed, outputs: #{ at_z: [2] }, name: `seed ${seed}` });
                runs += power_spectrum(run, #{ species: "gas", at_z: 2 });
                runs += power_spectrum(run, #{ at_z: 2 });
            }
            campaign("x", runs)
        "#;
        let found = folders(sweep);
        let expected = [
            "ic_gaussian seed1",
            "evolve seed1",
            "power_spectrum seed1-gas",
            "power_spectrum seed1",
            "ic_gaussian seed2",
            "evolve seed2",
            "power_spectrum seed2-gas",
            "power_spectrum seed2",
        ];
        assert_eq!(found, expected);
        let unnamed = folders(
            "let run = evolve(ic(C, 1, 16), #{ z_end: 40, outputs: #{ at_z: [45] } });\
             campaign(\"x\", [evolve(ic(C, 1, 32), #{ z_end: 30 }), run, slice(run, #{ at_z: 45 }), \
             slice(run, #{ field: \"pressure\" }), slice(run, #{ name: \"Größe 2: die Übersicht über alles, was je war, in 3 Teilen\" })])",
        );
        assert_eq!(unnamed[..4], ["ic_gaussian cells32", "evolve root32", "ic_gaussian cells16", "evolve root16"]);
        assert_eq!(unnamed[4..6], ["slice density-z45", "slice pressure-last"]);
        assert_eq!(unnamed[6], "slice gr-e2-die-bersicht-ber-alles-was-je-war");
        assert_eq!(folders("campaign(\"x\", [evolve(ic(C, 1, 16), #{ z_end: 40 })])"), ["ic_gaussian ", "evolve "]);
    }

    #[test]
    fn words_are_safe_in_files_names() {
        for (text, expected) in [
            ("seed 1, 16³", "seed1-16"),
            ("z = 0.5, 1", "z0.5-1"),
            ("../../etc/passwd", "etc-passwd"),
            ("root 32×16×16", "root32x16x16"),
            ("steps 4 × 2 × 2", "steps4x2x2"),
            ("centre [0.5, -0.25]", "centre-0.5-0.25"),
            ("σ₈ .hidden", "hidden"),
            ("", ""),
        ] {
            assert_eq!(super::slug(text), expected, "{text}");
        }
        assert_eq!(super::brief("with_hubble", "true"), "with_hubble true");
    }

    /// What is not known yet of a run is no difference from others.
    #[test]
    fn what_is_decided_later_is_called_so() {
        let later = r#"
            let run = evolve(ic(C, 1, 16), #{ z_end: 40 });
            let place = measure("place", run, |snapshot| #{ z: 30 });
            campaign("x", [evolve(ic(C, 1, 16), #{ z_end: place.z }), slice(run)])
        "#;
        let names = names(later);
        assert!(
            names.contains(&"The run".to_owned()) && names.contains(&"The run, not decided yet".to_owned()),
            "{names:?}"
        );
    }

    /// One stage needs no more than its title; where one run ends, what is not set, and what cannot be told apart.
    #[test]
    fn names_hold_what_differs_and_nothing_else() {
        let runs = |runs: &str| names(&format!("const I = ic(C, 1, 16); campaign(\"x\", [{runs}])"));
        assert_eq!(runs("evolve(I, #{ z_end: 40 })"), ["Initial condition", "The run"]);
        let two = runs("evolve(I, #{ z_end: 40 }), evolve(I, #{ z_end: 30, max_cells: 100000 })");
        assert_eq!(two[1..], ["The run, end z = 40, no max_cells", "The run, end z = 30, max_cells 100000"]);
        let same = runs("evolve(I, #{ z_end: 40 }), evolve(I, #{ z_end: 40 })");
        assert_eq!(same[1..], ["The run, stage 2", "The run, stage 3"]);
        let many = runs(
            "evolve(I, #{ z_end: 40, courant: 0.5, eta: 0.02, flag_buffer: 1 }), \
             evolve(I, #{ z_end: 30, courant: 0.4, eta: 0.01, flag_buffer: 2 })",
        );
        assert_eq!(many[1].matches(", ").count(), super::SHOWN, "{many:?}");
    }
}

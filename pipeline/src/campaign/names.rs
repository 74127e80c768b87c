//! What stages are called for a reader: as the recipe names them, else by their title and by what tells them from others
//! of that title, `The run, root 32³, seed 1`.

use super::Node;
use super::deferred::Deferred;
use crate::canonical_json::leaves;
use crate::stage::EXPRESSIONS;
use crate::stage::ic::shown as cells;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Parameters that a name holds though fewer would do to tell a stage from others.
const SHOWN: usize = 3;

/// Characters of a parameter's value beyond which it is only shown where nothing else tells stages apart.
const SHORT: usize = 24;

/// Characters beyond which it is not shown at all.
const LONG: usize = 60;

/// The names of stages, each given with the positions of what it reads, which come before it; no two default names are the
/// same.
pub(crate) fn names(stages: &[(&Node, &[usize])]) -> Vec<String> {
    let mut marks: Vec<Marks> = Vec::new();
    for (node, inputs) in stages {
        let found = Marks::of(node, inputs.iter().map(|&input| (stages[input].0, &marks[input])));
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
        let endings = distinguish(&group);
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

/// What may tell a stage from others: its parameters and those of what it reads, by their names, in the order in which a
/// name shows them. What the recipe has named goes by that name, under the key "".
#[derive(Debug, Default)]
struct Marks {
    values: Vec<(String, Vec<String>)>,
    /// The keys of what decides no result: a name holds it only where it needs it.
    outside: BTreeSet<String>,
}

impl Marks {
    fn of<'a>(node: &Node, inputs: impl Iterator<Item = (&'a Node, &'a Self)>) -> Self {
        let (mut marks, stage) = (Self::default(), node.stage());
        let (mut named, mut others) = (Vec::new(), Vec::new());
        for (input, theirs) in inputs {
            match input.name() {
                Some(name) => named.push(name),
                None => others.push(theirs),
            }
        }
        named.into_iter().for_each(|name| marks.add("", name));
        let mut outside = leaves(&stage.extent());
        // the texts of expressions stand among the shown parameters
        outside.retain(|key, _| !key.starts_with(EXPRESSIONS));
        leaves(&stage.shown_parameters()).iter().chain(&outside).for_each(|(key, value)| marks.add(key, &shown(value)));
        marks.outside.extend(outside.into_keys());
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

/// What each of these stages has that tells it from the others, beginning with a comma: the name of what it reads if that has
/// one, and parameters.
fn distinguish(group: &[&Marks]) -> Vec<String> {
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
    let ending = |n: usize| {
        let part = |(key, values): &(&String, Vec<String>)| {
            let twice = chosen.iter().filter(|(other, _)| last(other) == last(key)).count() > 1;
            let key = if twice { (*key).clone() } else { last(key) };
            match (key.as_str(), values[n].as_str()) {
                ("", "") => String::new(),
                ("", name) => format!(", {name}"),
                (key, "") => format!(", no {key}"),
                (key, value) => format!(", {key} {value}"),
            }
        };
        chosen.iter().map(part).collect()
    };
    (0..group.len()).map(ending).collect()
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
        let start = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\
                     fn ic(c, seed, cells) { ic_gaussian(c, #{ box_mpc_h: 20, cells: cells, z: 49, seed: seed }) }";
        let source = Source { path: "names.rhai".into(), text: format!("{start}\n{recipe}") };
        let campaign = evaluate(source, BTreeMap::new()).unwrap().campaign;
        let resolver = CampaignResolver::new(&campaign, Path::new("names"));
        resolver.positions().map(|n| resolver.name(n).to_owned()).collect()
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

//! What made the results: program, machine, recipe, and the digests of everything they rest on.

use crate::campaign::{CampaignResolver, Resolved};
use crate::ledger::{Event, History};
use crate::processes::machine::Host;
use crate::recipe::Recipe;
use comove_kernels::memory::GIB;
use std::collections::BTreeSet;
use std::path::Path;

/// Program, device, machine and recipe, as names and values.
pub(super) fn facts(recipe: &Recipe, history: &History) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    if let Some(Event::CampaignStarted { program, device, process, machine, .. }) = &history.start {
        fact("program", program.clone());
        fact("device and its class (equal bits within a class)", device.clone());
        fact("last process", process.clone());
        if let Some(Host { processor, threads, memory, instructions, system, hdf5, compiler }) = machine {
            let memory = memory.map_or("unknown".into(), |bytes| format!("{:.1} GiB", bytes / GIB));
            let threads = if *threads == 1 { "one thread".into() } else { format!("{threads} threads") };
            fact("processor", format!("{processor}, {threads}, instructions {instructions}"));
            fact("memory", memory);
            fact("system", system.clone());
            fact("HDF5", hdf5.clone());
            fact("compiler", compiler.clone());
        }
    }
    for (n, place) in earlier_places(history).into_iter().enumerate() {
        fact(if n == 0 { "begun on" } else { "then on" }, place);
    }
    fact("recipe", recipe.source.path.display().to_string());
    for (name, value) in &recipe.parameters.given {
        fact(&format!("-p {name}"), value.clone());
    }
    facts
}

/// The versions that have made a stage's results, if there are several.
pub(super) fn versions(resolved: &Resolved, history: &History) -> Option<String> {
    let continued_by = &history.stage(&resolved.fingerprint)?.continued_by;
    let others: Vec<String> = continued_by.iter().map(u32::to_string).collect();
    let list = others.join(" and ");
    (!others.is_empty())
        .then(|| format!("Begun with results version {}, continued with version {list}", resolved.version))
}

/// Where processes before the last one computed, each place once, if any of them is another one.
fn earlier_places(history: &History) -> Vec<String> {
    let place = |event: &Event| match event {
        Event::CampaignStarted { program, device, machine, .. } => {
            let host = machine.as_ref().map(|host| format!("{}, {}", host.processor, host.system));
            [Some(program.clone()), Some(device.clone()), host].into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
        _ => String::new(),
    };
    let last = history.start.as_ref().map(place);
    let mut places: Vec<String> = history.earlier.iter().map(place).collect();
    let mut seen = BTreeSet::new();
    places.retain(|place| seen.insert(place.clone()));
    if places.iter().all(|place| Some(place) == last.as_ref()) { Vec::new() } else { places }
}

/// Fingerprints of the stages, and digests of the files that they read from outside and of those that they made, each once.
pub(super) fn digests(resolver: &CampaignResolver<'_>, campaign: &Path, history: &History) -> Vec<(String, String)> {
    let (mut all, mut known) = (Vec::new(), BTreeSet::new());
    let mut add = |name: String, digest: &str| {
        if known.insert(name.clone()) {
            all.push((name, digest.to_owned()));
        }
    };
    for n in resolver.positions() {
        let name = |folder: &Path, file: &str| {
            let path = folder.join(file);
            path.strip_prefix(campaign).unwrap_or(&path).display().to_string()
        };
        if let (None, Some(given)) = (resolver.resolved(n), resolver.result(n)) {
            given.snapshots.iter().for_each(|s| add(name(&given.folder, &s.file), &s.digest));
        }
        let Some(resolved) = resolver.resolved(n) else { continue };
        resolved.files.iter().for_each(|file| add(file.file.clone(), &file.digest));
        let Some(written) = resolver.known(n, history) else { continue };
        add(format!("{}, fingerprint", resolved.folder), &resolved.fingerprint);
        let folder = campaign.join(&resolved.folder);
        written.artefacts.iter().flatten().for_each(|made| add(name(&folder, &made.file), &made.digest));
        written.snapshots.iter().for_each(|s| add(name(&folder, &s.file), &s.digest));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_left_and_come_back_to_is_told_once() {
        let mut history = History::default();
        for device in ["cpu", "gpu", "cpu", "gpu"] {
            history.add(
                &Event::CampaignStarted {
                    name: String::new(),
                    recipe_digest: String::new(),
                    parameters: None,
                    program: "comove".into(),
                    device: device.into(),
                    process: String::new(),
                    machine: None,
                    options: Vec::new(),
                },
                0.0,
            );
        }
        assert_eq!(earlier_places(&history), ["comove; cpu", "comove; gpu"]);
    }
}

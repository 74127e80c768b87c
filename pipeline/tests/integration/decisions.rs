//! Stages that are decided on once others are done: options that are values of results, and `then`.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, text, until};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A run of a few steps and its densest place; what follows is on line 5.
const START: &str = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\n\
    const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 7 });\n\
    const RUN = evolve(IC, #{ z_end: 45 });\n\
    const PEAK = measure(\"peak\", RUN, |s| #{ place: s.densest().position, width: 5.0, far: [21.0, 1.0, 1.0], seed: 8, name: \"x\" });\n";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self, recipe: &str, arguments: &[&str]) -> Command {
        std::fs::write(self.0.path().join("r.rhai"), recipe).unwrap();
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path()).args(arguments);
        command
    }

    fn comove(&self, recipe: &str, arguments: &[&str]) -> Output {
        self.command(recipe, arguments).output().unwrap()
    }

    fn ok(&self, recipe: &str, arguments: &[&str]) -> String {
        said(&self.comove(recipe, arguments), 0)
    }

    fn stages(&self, start: &str) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.0.path().join("r")) else { return Vec::new() };
        let stages = entries.map(|entry| entry.unwrap().path());
        let mut stages: Vec<PathBuf> =
            stages.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(start)).collect();
        stages.sort();
        stages
    }

    /// What a measurement has left; there is one of that name.
    fn measured(&self, name: &str) -> Value {
        let [stage] = self.stages(&format!("measure-{name}-")).try_into().unwrap();
        serde_json::from_slice(&std::fs::read(stage.join("result.json")).unwrap()).unwrap()
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        common::events(&self.0.path().join("r"), kind)
    }
}

/// A second run, refined around the densest place of the first, and what is decided on that: a slice for each of two widths.
fn zoom() -> String {
    format!(
        "{START}\
         const ZOOM = then(PEAK, |peak| {{\n\
             let fine = evolve(IC, #{{ z_end: 40, max_level: 1, regrid_every: 1, checkpoints: #{{ every_minutes: 0 }},\n\
                 refine: region(#{{ center: peak.place, radius: 2, level: 1 }}) }});\n\
             let levels = measure(\"levels\", fine, |s| #{{ count: s.levels, widths: [4, 8], peak: s.densest().density }});\n\
             [levels, then(levels, |found| found.widths.map(|width|\n\
                 slice(fine, #{{ center: peak.place, width_mpc_h: width, pixels: 16 }})))]\n\
         }});\n\
         campaign(\"r\", [ZOOM])\n"
    )
}

#[test]
fn what_a_result_decides_on_is_done_and_goes_on_after_a_kill() {
    let whole = Place::new();
    let plan = whole.ok(&zoom(), &["plan", "r.rhai"]);
    assert!(plan.contains("decided after peak (3)"), "{plan}");
    whole.ok(&zoom(), &["run", "r.rhai", "--jobs", "2"]);
    assert_eq!((whole.stages("slice-").len(), whole.stages("evolve-").len()), (2, 2));
    let plan = whole.ok(&zoom(), &["plan", "r.rhai"]);
    assert!(plan.contains("decided: stage 8 and 9") && plan.matches("done (").count() == 7, "{plan}");
    let status = said(&whole.comove(&zoom(), &["status", "r"]), 0);
    assert!(status.contains("finished"), "{status}");
    assert_eq!(whole.ok(&zoom(), &["run", "r.rhai"]).matches("done before").count(), 7);
    let page = std::fs::read_to_string(whole.0.path().join("r/report.html")).unwrap();
    assert_eq!(page.matches("data:image/png").count(), 2, "both slices");

    let killed = Place::new();
    let mut child = killed.command(&zoom(), &["run", "r.rhai"]).stderr(Stdio::null()).spawn().unwrap();
    // the second run is on its way
    until("the second run has begun", &mut child, || {
        killed.stages("evolve-").len() == 2 && killed.events("snapshot_written").len() > 6
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let plan = killed.ok(&zoom(), &["plan", "r.rhai"]);
    assert!(plan.contains("continues from checkpoint_"), "{plan}");
    let resumed = said(&killed.comove(&zoom(), &["resume", "r"]), 0);
    assert!(resumed.contains("continuing from checkpoint_"), "{resumed}");
    assert_eq!(killed.measured("levels"), whole.measured("levels"));
    let names =
        |place: &Place| -> Vec<_> { place.stages("").iter().map(|s| s.file_name().unwrap().to_owned()).collect() };
    assert_eq!(names(&killed), names(&whole));
}

/// Stages that were decided on have numbers, names and kinds as all others.
#[test]
fn decided_stages_are_chosen_explained_and_cleaned() {
    let place = Place::new();
    place.ok(&zoom(), &["run", "r.rhai", "--only", "peak"]);
    assert_eq!(place.stages("measure-levels").len(), 0);
    place.ok(&zoom(), &["run", "r.rhai", "--only", "levels"]);
    assert_eq!((place.stages("measure-levels").len(), place.stages("slice-").len()), (1, 0));
    let told = place.ok(&zoom(), &["explain", "r.rhai", "slice"]);
    assert!(told.contains("this campaign folder has no similar stage"), "{told}");
    place.ok(&zoom(), &["run", "r.rhai"]);
    let again = place.ok(&zoom(), &["run", "r.rhai", "--force", "levels"]);
    assert_eq!(again.matches("done before").count(), 6, "{again}");
    // only what is not decided on any more
    assert!(place.ok(&zoom(), &["clean", "r"]).contains("no files to delete"));
    let fewer = zoom().replace("[4, 8]", "[4]");
    place.ok(&fewer, &["run", "r.rhai"]);
    let clean = place.ok(&fewer, &["clean", "r", "--yes"]);
    assert!(clean.contains("slice-") && clean.contains("measure-levels-"), "{clean}");
    assert_eq!((place.stages("slice-").len(), place.stages("measure-levels-").len()), (1, 1));
    // while a decision is open, nothing that it may ask for goes
    place.ok(&fewer.replace("width: 5.0", "width: 5.5"), &["run", "r.rhai", "--only", "ic_gaussian"]);
    let clean = place.ok(&fewer.replace("width: 5.0", "width: 5.5"), &["clean", "r"]);
    assert!(clean.contains("no files to delete"), "{clean}");
}

/// A decision may need what nobody asked for, or what has failed.
#[test]
fn a_decision_brings_what_it_needs() {
    let recipe = |rule: &str| {
        format!(
            "{START}\
             const OTHER = evolve(IC, #{{ z_end: 46, {rule} }});\n\
             const MORE = then(PEAK, |peak| [power_spectrum(OTHER), slice(RUN, #{{ center: peak.place, pixels: 16 }})]);\n\
             campaign(\"r\", [halos(OTHER), MORE])\n"
        )
    };
    let place = Place::new();
    place.ok(&recipe(""), &["run", "r.rhai", "--only", "then(peak)"]);
    let stages = |start: &str| place.stages(start).len();
    assert_eq!((stages("evolve-"), stages("power_spectrum-"), stages("slice-"), stages("halos-")), (1, 1, 1, 0));
    let place = Place::new();
    let output = place.comove(&recipe("stop_when: |step| throw \"no\""), &["run", "r.rhai", "--keep-going"]);
    let said = said(&output, 3);
    assert!(said.contains("is skipped, because it needs"), "{said}");
    assert_eq!(place.stages("slice-").len(), 1);
}

/// What the recipe calls a stage it is called before it is decided and afterwards; stages that are decided on are told apart
/// as all others.
#[test]
fn what_is_decided_later_has_names() {
    let place = Place::new();
    let recipe = format!(
        "{START}\
         const OTHER = ic_gaussian(C, #{{ box_mpc_h: 20, cells: 16, z: 49, seed: PEAK.seed, name: \"the other seed\" }});\n\
         const FINE = evolve(OTHER, #{{ z_end: 47, name: \"its run\" }});\n\
         const SLICE = slice(RUN, #{{ center: PEAK.place, pixels: 16, name: \"the peak\" }});\n\
         const ZOOM = then(PEAK, #{{ name: \"zoom\" }}, |peak| [4, 8].map(|width|\n\
             projection(FINE, #{{ center: peak.place, width_mpc_h: width, pixels: 16 }})));\n\
         const NONE = then(PEAK, |peak| ());\n\
         campaign(\"r\", [SLICE, FINE, ZOOM, NONE, refinement_ratio(FINE, #{{ name: \"levels\" }})])\n"
    );
    let named = ["the other seed: ", "its run: ", "the peak: ", "zoom: ", "Decision after peak: ", "levels: "];
    let all = |text: &str, names: &[&str]| {
        names.iter().for_each(|name| assert!(text.contains(&format!("     {name}")), "{name} in {text}"));
    };
    let plan = place.ok(&recipe, &["plan", "r.rhai"]);
    all(&plan, &named);
    assert!(plan.contains("the peak: with peak.place"), "{plan}");
    let begun = place.ok(&recipe, &["run", "r.rhai", "--only", "ic_gaussian"]);
    assert!(begun.contains("the other seed (ic_gaussian-"), "{begun}");
    let open = std::fs::read_to_string(place.0.path().join("r/report.html")).unwrap();
    assert!(open.contains("<td>waits for ") || open.contains("<td>to do"), "{open}");
    let run = place.ok(&recipe, &["run", "r.rhai"]);
    let found = ["Projection: density, its run, width_mpc_h 4", "Projection: density, its run, width_mpc_h 8"];
    for name in ["its run (evolve-", "the peak (slice-", "zoom: 2 further stages", "Decision after peak: 0 further"] {
        assert!(run.contains(name), "{name} in {run}");
    }
    assert!(found.iter().all(|name| run.contains(&format!("{name} (projection-"))), "{run}");
    all(&place.ok(&recipe, &["plan", "r.rhai"]), &[&named[..], &found].concat());
    let watched = said(&place.comove(&recipe, &["status", "r", "--watch"]), 0);
    assert!(watched.contains("finished; 11 of 11 stages") && watched.contains("zoom: decided: stage 10 and 11"));
    let page = std::fs::read_to_string(place.0.path().join("r/report.html")).unwrap();
    let decided = format!("<td>zoom</td><td>decided: {}</td>", found.join("; "));
    for text in ["All 11 stages are done.", "<h2>the peak</h2>", &decided, "<td>decided: nothing further</td>"] {
        assert!(page.contains(text), "{text} in {page}");
    }
    let only = place.ok(&recipe, &["run", "r.rhai", "--only", "zoom", "--force", found[0]]);
    assert_eq!(only.matches("wrote ").count(), 0, "{only}");
    assert!(only.contains(&format!("{} (projection-", found[0])), "{only}");
    // a name that is known later is none
    let lazy = recipe.replace("name: \"the peak\"", "name: PEAK.name");
    let told = said(&place.comove(&lazy, &["check", "r.rhai"]), 3);
    assert!(told.contains("r.rhai:7:") && told.contains("name"), "{told}");
}

/// Options of all kinds of functions that are values of a result.
fn lazy() -> String {
    format!(
        "{START}\
         const OTHER = ic_gaussian(C, #{{ box_mpc_h: 20, cells: 16, z: 49, seed: PEAK.seed }});\n\
         const FINE = evolve(OTHER, #{{ z_end: 47, max_level: 1, regrid_every: 1,\n\
             refine: [region(#{{ center: PEAK.place, radius: 2, level: 1 }}), density_above([PEAK.width])] }});\n\
         const SLICE = slice(RUN, #{{ center: PEAK.place, width_mpc_h: PEAK.width, pixels: 16 }});\n\
         const LEVELS = measure(\"levels\", FINE, |s| #{{ levels: s.levels }});\n\
         campaign(\"r\", [SLICE, LEVELS, power_spectrum(FINE)])\n"
    )
}

#[test]
fn an_option_may_be_a_value_of_a_result() {
    let place = Place::new();
    let plan = place.ok(&lazy(), &["plan", "r.rhai"]);
    assert!(plan.contains("decided after peak") && plan.contains("with peak.place and peak.width"), "{plan}");
    place.ok(&lazy(), &["run", "r.rhai"]);
    let done = |recipe: &str| place.ok(recipe, &["run", "r.rhai"]).matches("done before").count();
    assert_eq!(done(&lazy()), 8);
    let runs: Vec<Value> = place
        .events("stage_started")
        .into_iter()
        .filter(|e| e["kind"] == "evolve")
        .map(|e| e["identity"].clone())
        .collect();
    let refine = &runs.last().unwrap()["parameters"]["run"]["refine"];
    let center = &place.measured("peak")[0]["result"]["place"];
    assert_eq!(
        (&refine[0]["inside_ball"]["center"], &refine[1]["density_above"]["thresholds"][0]),
        (center, &5.0.into())
    );
    let slice = |recipe: &str| {
        place.ok(recipe, &["run", "r.rhai"]);
        place.stages("slice-").len()
    };
    // the same value, found in another way
    assert_eq!(done(&lazy().replace("width: 5.0", "width: 2.5 * 2")), 7, "all but the measurement");
    assert_eq!(place.stages("slice-").len(), 1);
    // another value: what has it as an option is another stage, and so is what reads that
    assert_eq!(slice(&lazy().replace("seed: 8", "seed: 9")), 1);
    assert_eq!((place.stages("ic_gaussian-").len(), place.stages("power_spectrum-").len()), (3, 2));
    assert_eq!(slice(&lazy().replace("width: 5.0", "width: 6.0")), 2);
    let why = place.ok(&lazy().replace("width: 5.0", "width: 7.0"), &["run", "r.rhai", "--only", "peak"]);
    assert!(why.contains("measure-peak"), "{why}");
    let why = place.ok(&lazy().replace("width: 5.0", "width: 7.0"), &["explain", "r.rhai", "slice"]);
    assert!(why.contains("map.width_mpc_h: 6.0 → 7.0") || why.contains("map.width_mpc_h: 5.0 → 7.0"), "{why}");
}

/// Results in the closures of criteria, in combinations: the run is that of the numbers.
#[test]
fn criteria_look_at_results() {
    let place = Place::new();
    let run = |dense: &str, near: &str, threshold: &str| {
        format!(
            "evolve(IC, #{{ z_end: 45, max_level: 1, refine: all([\
                 refine_where(|c| c.overdensity > {dense} && (c.x - {near}).abs() < 6.0), \
                 any([density_above(|level| {threshold} * 2 ** level), not(region(#{{ center: PEAK.place, radius: 2, level: 1 }}))]),\
             ]) }})"
        )
    };
    let recipe = format!("{START}campaign(\"r\", [{}])\n", run("PEAK.width / 10", "PEAK.place[0]", "PEAK.width"));
    place.ok(&recipe, &["run", "r.rhai"]);
    let started = place.events("stage_started");
    let identity = &started.iter().rfind(|event| event["kind"] == "evolve").unwrap()["identity"];
    let all = &identity["parameters"]["run"]["refine"][0]["all"];
    assert_eq!(all[1]["any"][0]["density_above"]["thresholds"], serde_json::json!([5.0]));
    let found = &place.measured("peak")[0]["result"]["place"];
    assert_eq!(&all[1]["any"][1]["not"]["inside_ball"]["center"], found);
    let text = identity["extent"]["expressions"]["/run/refine/0/all/0/where/program"].as_str().unwrap();
    assert!(text.starts_with("|c| c.overdensity > PEAK.width / 10 && (c.x - PEAK.place[0]).abs() < 6.0"), "{text}");
    // with the numbers in place of their names
    let at = |n: usize| format!("{:?}", found[n].as_f64().unwrap());
    let numbers = format!("{START}campaign(\"r\", [{}])\n", run("0.5", &at(0), "5.0"));
    let again = place.ok(&numbers, &["run", "r.rhai"]);
    assert_eq!((place.stages("evolve-").len(), again.matches("done before").count()), (2, 4), "{again}");
}

/// A value of a result that has a name in the recipe stays what it is, whatever is read of it.
#[test]
fn a_value_may_hold_several() {
    let place = Place::new();
    let recipe = format!(
        "{}const AT = PEAK.at;\n\
         campaign(\"r\", [[4, 8].map(|pixels| slice(RUN, #{{ center: AT.place, width_mpc_h: AT.width, pixels: 4 * pixels }}))])\n",
        START.replace("#{ place:", "#{ at: #{ place:").replace("name: \"x\" }", "name: \"x\" } }")
    );
    let plan = place.ok(&recipe, &["plan", "r.rhai"]);
    assert_eq!(plan.matches("with peak.at.place and peak.at.width").count(), 2, "{plan}");
    place.ok(&recipe, &["run", "r.rhai"]);
    assert_eq!(place.stages("slice-").len(), 2);
}

/// What is wrong with a decision is told at its place, as soon as it can be known.
#[test]
fn wrong_decisions_are_told_where() {
    let place = Place::new();
    place.ok(&format!("{START}campaign(\"r\", [PEAK])\n"), &["run", "r.rhai"]);
    let told = |last: &str, verb: &str, messages: &[&str]| {
        let output = place.comove(&format!("{START}const X = {last};\ncampaign(\"r\", [X])\n"), &[verb, "r.rhai"]);
        let said = said(&output, 3);
        assert!(said.contains("r.rhai:5:") && said.contains('^'), "{said}");
        messages.iter().for_each(|message| assert!(said.contains(message), "{message} in {said}"));
    };
    // without any result
    told("slice(RUN, #{ centre: PEAK.place })", "check", &["unknown option \"centre\", did you mean \"center\"?"]);
    told("slice(RUN, #{ center: PEAK.place, widht_mpc_h: 1 })", "check", &["did you mean \"width_mpc_h\"?", "5:45"]);
    told("slice(RUN, #{ width_mpc_h: 2 * PEAK.width })", "check", &["the measured value is not known yet", "then("]);
    told("cosmology(#{ h: PEAK.width })", "check", &["h: peak.width is known only after its stage", "5:24"]);
    told(
        "{ let w = PEAK.width; measure(\"m\", RUN, |s| s.a * w) }",
        "check",
        &["the closure captures a value: peak.width is known only after its stage", "call measure in then("],
    );
    let refined =
        |closure: &str| format!("evolve(IC, #{{ z_end: 40, max_level: 1, refine: refine_where({closure}) }})");
    told(&refined("|c| c.densty > PEAK.width"), "check", &["unknown field \"densty\"", "5:77"]);
    told("density_above(|level| sin(PEAK.width))", "check", &["unknown function \"sin\""]);
    told("then(RUN, |run| [])", "check", &["use a measurement of it"]);
    told(
        "combine(\"c\", [then(PEAK, |peak| [])], |all| 1)",
        "check",
        &["the stage that then decides on has no result"],
    );
    // with it
    told("slice(RUN, #{ center: PEAK.plce })", "plan", &["the result has no \"plce\", did you mean \"place\"?"]);
    told(&refined("|c| c.density > PEAK.widht"), "plan", &["no member \"widht\", did you mean \"width\"?"]);
    told(
        "slice(RUN, #{ center: PEAK.far })",
        "plan",
        &["center = [21.0, 1.0, 1.0]: x must lie in the box, [0, 20]", "5:25"],
    );
    told("slice(RUN, #{ center: PEAK.name })", "plan", &["slice: center: ", "5:25"]);
    told("slice(RUN, #{ width_mpc_h: PEAK.place })", "run", &["slice: width_mpc_h: ", "5:25"]);
    told("then(PEAK, |peak| 3)", "plan", &["then: the closure returned a whole number, expected a list of stages"]);
    told("then(PEAK, |peak| [slice(RUN, #{ centre: peak.place })])", "plan", &["did you mean \"center\"?", "5:44"]);
    told("then(PEAK, |peak| [slice(RUN, #{ center: peak.plce })])", "run", &["plce"]);
    if std::env::var_os("COMOVE_SLOW_TESTS").is_some() {
        told("then(PEAK, |peak| { loop {} })", "plan", &["the computation exceeds its limit of 20 s"]);
    }
    let endless =
        format!("{START}fn more(peak) {{ [then(peak, |found| more(peak))] }}\ncampaign(\"r\", [more(PEAK)])\n");
    let said = text(&place.comove(&endless, &["plan", "r.rhai"]));
    assert!(said.contains("end the recursion"), "{said}");
}

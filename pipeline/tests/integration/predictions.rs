//! What `comove plan` expects of runs, against what they then take.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{records, said};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A run that refines, a sixteenth of a second each, and two analyses.
const RECIPE: &str = r#"
const SEED  = param("seed", 1, "of the phases");
const ROOT  = param("root", 16, "root cells per axis");
const Z_END = param("z_end", 1.0, "where it ends");
const DA    = param("delta_a", 0.01, "longest step");
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 25, cells: ROOT, z: 49, seed: SEED });
const RUN = evolve(IC, #{
    z_end: Z_END, max_level: 1, max_delta_a: DA, refine: density_above(|level| 4 ** (level + 1)),
    outputs: #{ at_z: [9, 4].filter(|z| z > Z_END) },
});
campaign("small", [slice(RUN), power_spectrum(RUN, #{ at_z: "all" })])
"#;

fn comove(folder: &Path, command: &str, arguments: &[&str]) -> Command {
    std::fs::write(folder.join("small.rhai"), RECIPE).unwrap();
    let mut process = Command::new(cargo_bin("comove"));
    process.current_dir(folder).args([command, "small.rhai", "--device", "cpu", "--threads", "1"]).args(arguments);
    process
}

fn run(folder: &Path, arguments: &[&str]) {
    said(&comove(folder, "run", arguments).output().unwrap(), 0);
}

/// The plan as JSON.
fn plan(folder: &Path, arguments: &[&str]) -> Value {
    let output = comove(folder, "plan", &[arguments, &["--json"]].concat()).output().unwrap();
    said(&output, 0);
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The stage of this kind in a plan.
fn stage<'a>(plan: &'a Value, kind: &str) -> &'a Value {
    plan["stages"].as_array().unwrap().iter().find(|stage| stage["kind"] == kind).unwrap()
}

/// What a plan expects of the run.
fn cost<'a>(plan: &'a Value, name: &str) -> &'a Value {
    &stage(plan, "evolve")["cost"][name]
}

fn folder_of_run(campaign: &Path) -> PathBuf {
    let entries = std::fs::read_dir(campaign).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().find(|path| path.join("steps.jsonl").exists()).unwrap()
}

fn within(what: &str, expected: &Value, measured: f64, share: f64) {
    let expected = expected.as_f64().unwrap();
    assert!((expected / measured - 1.0).abs() <= share, "{what}: {expected} expected, {measured} measured");
}

/// Steps, cells, memory and files of the run in a campaign folder, against what a plan has expected.
fn compare(plan: &Value, campaign: &Path, share: f64) {
    let run = folder_of_run(campaign);
    let records = records(&run);
    let most = |value: fn(&Value) -> f64| records.iter().map(value).fold(0.0, f64::max);
    let groups = |record: &Value| record["groups"].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).sum::<f64>();
    within("steps", cost(plan, "steps"), records.len() as f64, share);
    within("cells", cost(plan, "cells"), 4096.0 * most(groups), share);
    within("memory", cost(plan, "device_bytes"), most(|record| record["device_bytes"].as_f64().unwrap()), share);
    let files = std::fs::read_dir(&run).unwrap().map(|entry| entry.unwrap());
    let disk: u64 = files.map(|file| file.metadata().unwrap().len()).sum();
    within("disk", cost(plan, "disk_bytes"), disk as f64, share);
}

#[test]
fn other_phases_take_what_those_before_took() {
    let folder = tempfile::tempdir().unwrap();
    let nothing = plan(folder.path(), &["--dir", "first"]);
    let guessed = stage(&nothing, "evolve");
    assert_eq!(guessed["cost"]["is_guess"], true, "{guessed}");
    // without refinement steps are those of the expansion, whatever else there is
    within("steps", &guessed["cost"]["steps"], 323.0, 0.3);
    run(folder.path(), &["--dir", "first"]);
    let again = plan(folder.path(), &["--dir", "first"]);
    assert_eq!(again["left"], Value::Null, "nothing is left to do: {again}");
    let expected = plan(folder.path(), &["--dir", "second", "-p", "seed=2"]);
    let run_of_it = stage(&expected, "evolve");
    assert_eq!(run_of_it["cost"]["is_guess"], false, "{run_of_it}");
    assert!(run_of_it["cost"]["from"].as_str().unwrap().contains("first/evolve-"), "{run_of_it}");
    for kind in ["ic_gaussian", "slice", "power_spectrum"] {
        assert!(stage(&expected, kind)["cost"]["seconds"].as_f64().unwrap() > 0.0, "{expected}");
    }
    run(folder.path(), &["--dir", "second", "-p", "seed=2"]);
    compare(&expected, &folder.path().join("second"), 0.3);
    let output = comove(folder.path(), "plan", &["--dir", "third", "-p", "seed=3"]).output().unwrap();
    let text = said(&output, 0);
    assert!(text.contains("expected: ") && text.contains("left to do: ") && text.contains(" on disk"), "{text}");
    assert!(!text.contains("not enough"), "{text}");
    let output = comove(folder.path(), "plan", &["--dir", "third", "-p", "root=8192"]).output().unwrap();
    let text = said(&output, 0);
    assert!(text.contains("not enough memory: a run needs ") && text.contains(" billion cells"), "{text}");
    assert!(text.contains("left to do: more than a century on "), "{text}");
    assert!(text.contains("not enough disk space: the files need "), "{text}");
    // numbers that no run has are not printed
    for value in ["delta_a=1e-300", "delta_a=1e-12", "root=4194304"] {
        let output = comove(folder.path(), "plan", &["--dir", "third", "-p", value]).output().unwrap();
        let text = said(&output, 0);
        let digits = |word: &str| word.chars().filter(char::is_ascii_digit).count();
        let long = text.split_whitespace().find(|word| digits(word) > 16 || ["inf", "NaN"].contains(word));
        assert_eq!(long, None, "{text}");
    }
}

/// Particles of an initial condition without gas, and of a snapshot that a run starts from.
#[test]
fn particles_are_predicted() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = |start: &str, z_end: f64| {
        format!(
            r#"
const C = cosmology(#{{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 }});
const IC = ic_gaussian(C, #{{ box_mpc_h: 25, cells: 16, z: 49, seed: 1, dark_matter: true, gas: false }});
campaign("dark", [evolve({start}, #{{ z_end: {z_end} }})])
"#
        )
    };
    let comove = |command: &str, text: &str, arguments: &[&str]| {
        std::fs::write(folder.path().join("dark.rhai"), text).unwrap();
        let mut process = Command::new(cargo_bin("comove"));
        process.current_dir(folder.path()).args([command, "dark.rhai", "--device", "cpu", "--threads", "1"]);
        let output = process.args(arguments).output().unwrap();
        said(&output, 0);
        output.stdout
    };
    let plan = |text: &str, dir: &str| -> Value {
        serde_json::from_slice(&comove("plan", text, &["--dir", dir, "--json"])).unwrap()
    };
    let first = recipe("IC", 20.0);
    let expected = plan(&first, "first");
    // displacements and velocities in double precision, and no gas
    assert_eq!(stage(&expected, "ic_gaussian")["cost"]["disk_bytes"], 4096.0 * 48.0, "{expected}");
    comove("run", &first, &["--dir", "first"]);
    compare(&expected, &folder.path().join("first"), 0.1);
    let run = folder_of_run(&folder.path().join("first"));
    let mut files = std::fs::read_dir(run).unwrap().map(|entry| entry.unwrap().path());
    let checkpoint = files.find(|path| path.display().to_string().contains("checkpoint")).unwrap();
    let start = format!("from_snapshot(\"{}\")", checkpoint.display());
    let second = recipe(&start, 12.0);
    let expected = plan(&second, "second");
    comove("run", &second, &["--dir", "second"]);
    compare(&expected, &folder.path().join("second"), 0.1);
}

#[test]
fn what_is_begun_takes_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["--dir", "c", "-p", "z_end=4"]);
    let before = records(&folder_of_run(&folder.path().join("c"))).len();
    let expected = plan(folder.path(), &["--dir", "c", "-p", "z_end=1"]);
    assert!(stage(&expected, "evolve")["state"].as_str().unwrap().starts_with("begun, continues"), "{expected}");
    run(folder.path(), &["--dir", "c", "-p", "z_end=1"]);
    let after = records(&folder_of_run(&folder.path().join("c"))).len();
    within("steps", cost(&expected, "steps"), (after - before) as f64, 0.3);
    // an output that was passed needs the steps up to it and no more: from the start, before which no checkpoint lies
    let recipe = RECIPE.replace("at_z: [9, 4]", "at_z: [30, 9, 4]");
    let command = |name: &str, arguments: &[&str]| {
        let mut command = comove(folder.path(), name, &[&["--dir", "c"], arguments].concat());
        std::fs::write(folder.path().join("small.rhai"), &recipe).unwrap();
        command.output().unwrap()
    };
    let output = command("plan", &["--json"]);
    said(&output, 0);
    let expected: Value = serde_json::from_slice(&output.stdout).unwrap();
    // a hundredth of the scale factor each
    within("steps", cost(&expected, "steps"), (50.0f64 / 31.0).ln() / 1.01f64.ln(), 0.1);
    said(&command("run", &[]), 0);
    assert_eq!(records(&folder_of_run(&folder.path().join("c"))).len(), after);
}

/// Twice as many cells per axis take eight times as many, and no less than as many steps.
#[test]
fn a_larger_root_takes_more() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["--dir", "c", "-p", "z_end=4"]);
    let same = plan(folder.path(), &["--dir", "d", "-p", "z_end=4", "-p", "seed=2"]);
    let larger = plan(folder.path(), &["--dir", "d", "-p", "z_end=4", "-p", "root=32"]);
    let ratio = |name: &str| cost(&larger, name).as_f64().unwrap() / cost(&same, name).as_f64().unwrap();
    assert!(ratio("cells") > 6.0 && ratio("device_bytes") > 6.0 && ratio("seconds") > 6.0, "{same} {larger}");
    assert!(ratio("steps") >= 1.0, "{same} {larger}");
}

#[test]
fn records_come_from_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    run(folder.path(), &["--dir", "elsewhere/c", "-p", "z_end=9"]);
    let other = ["--dir", "d", "-p", "z_end=9", "-p", "seed=2"];
    assert_eq!(cost(&plan(folder.path(), &other), "is_guess"), true, "nobody looks there");
    let like = [&other[..], &["--like", "elsewhere/c"]].concat();
    assert_eq!(cost(&plan(folder.path(), &like), "is_guess"), false);
    let none = [&other[..], &["--like", "elsewhere"]].concat();
    let text = said(&comove(folder.path(), "plan", &none).output().unwrap(), 4);
    assert!(text.contains("elsewhere"), "{text}");
    // records that are damaged tell nothing
    let records = folder_of_run(&elsewhere.join("c")).join("steps.jsonl");
    let text = std::fs::read_to_string(&records).unwrap();
    let first = text.lines().next().unwrap();
    let groups: Value = serde_json::from_str::<Value>(first).unwrap()["groups"].clone();
    let emptied = text.replace(&format!("\"groups\":{groups}"), "\"groups\":[]");
    for damaged in ["{}\n{}\n", emptied.as_str(), format!("{first}\n{first}\n").as_str()] {
        assert_ne!(damaged, text);
        std::fs::write(&records, damaged).unwrap();
        assert_eq!(cost(&plan(folder.path(), &like), "is_guess"), true, "{damaged:.100}");
    }
}

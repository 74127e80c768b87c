//! Runs that come up against the memory they may take.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::text;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A run that begins without refinement, refines some steps later, and then more and more.
const RECIPE: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 25, cells: 16, z: 49, seed: 7 });
campaign("growing", [evolve(IC, #{
    z_end: 12, max_level: 2, refine: density_above([1.6, 2.0]), outputs: #{ at_z: [20] }OPTIONS
})])
"#;

fn comove(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(cargo_bin("comove")).current_dir(folder).args(arguments).output().unwrap()
}

/// A folder with the recipe, whose run has these options too.
fn place(options: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("growing.rhai"), RECIPE.replace("OPTIONS", options)).unwrap();
    folder
}

/// The run's folder of a campaign.
fn run_of(campaign: &Path) -> PathBuf {
    let mut entries = std::fs::read_dir(campaign).unwrap().map(|e| e.unwrap().path());
    entries.find(|p| p.file_name().unwrap().to_string_lossy().starts_with("evolve-")).expect("a run")
}

/// The records of a campaign's run.
fn records(campaign: &Path) -> Vec<Value> {
    common::records(&run_of(campaign))
}

fn hashes(campaign: &Path) -> Vec<String> {
    records(campaign).iter().map(|record| record["state_hash"].as_str().unwrap().to_owned()).collect()
}

/// Too little for the refinement: a checkpoint, the numbers and what helps, exit code 8; with enough the run goes on with
/// the same bits.
#[test]
fn a_run_without_room_leaves_a_checkpoint_and_goes_on_with_more() {
    let folder = place("");
    let here = folder.path();
    let whole = comove(here, &["run", "growing.rhai", "--dir", "whole"]);
    assert!(whole.status.success(), "{}", text(&whole));
    let bytes: Vec<f64> = records(&here.join("whole")).iter().map(|r| r["device_bytes"].as_f64().unwrap()).collect();
    let (first, last) = (bytes[0], bytes[bytes.len() - 1]);
    assert!(last > 1.5 * first, "{first} {last}");

    let gib = format!("{:.6}", (first + 0.3 * (last - first)) / f64::from(1 << 30));
    let limited = comove(here, &["run", "growing.rhai", "--dir", "part", "--memory", &gib]);
    let said = text(&limited);
    assert_eq!(limited.status.code(), Some(8), "{said}");
    let reached = hashes(&here.join("part")).len();
    let checkpoint = format!("checkpoint_{reached:06}.h5");
    assert!(reached > 0 && run_of(&here.join("part")).join(&checkpoint).exists(), "{said}");
    let numbers =
        [checkpoint.as_str(), "not enough memory to refine level", "cells on levels", "GiB are the limit of this run"];
    for part in numbers.into_iter().chain(["--memory", "max_level", "max_cells: ", "`comove resume "]) {
        assert!(said.contains(part), "{part}: {said}");
    }
    let ledger = std::fs::read_to_string(here.join("part/ledger.jsonl")).unwrap();
    assert!(ledger.contains("stage_failed"), "{ledger}");

    // the same limit stops at the same place, without harm
    let again = comove(here, &["resume", "part", "--memory", &gib]);
    assert_eq!(again.status.code(), Some(8), "{}", text(&again));
    assert_eq!(hashes(&here.join("part")).len(), reached);

    let plan = text(&comove(here, &["plan", "growing.rhai", "--dir", "part"]));
    assert!(plan.contains(&format!("of the device's memory with the levels of {checkpoint} and ")), "{plan}");

    let resumed = comove(here, &["resume", "part", "--memory", "8"]);
    assert!(resumed.status.success(), "{}", text(&resumed));
    assert_eq!(hashes(&here.join("part")), hashes(&here.join("whole")));
}

/// `max_cells` keeps a run small, and says so in the log, the records and the report; `plan` knows what the run takes that
/// has begun.
#[test]
fn a_run_stays_within_max_cells() {
    let folder = place(", max_cells: 60_000");
    let here = folder.path();
    let output = comove(here, &["run", "growing.rhai"]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("to stay within max_cells"), "{}", text(&output));
    let cells =
        |record: &Value| record["groups"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() * 4096).sum::<u64>();
    let records = records(&here.join("growing"));
    assert!(records.iter().all(|record| cells(record) <= 60_000));
    assert!(records[0]["raised"].is_null() && records[records.len() - 1]["raised"]["level"].is_u64());
    let report = std::fs::read_to_string(here.join("growing/report.html")).unwrap();
    assert!(report.contains("steps in which max_cells raised the finest thresholds"));
}

/// The plan of a run counts its root, one of a run that has begun the levels of its newest checkpoint.
#[test]
fn a_plan_says_what_a_run_takes() {
    let folder = place(", precision: \"double\"");
    let here = folder.path();
    let recipe = std::fs::read_to_string(here.join("growing.rhai")).unwrap();
    std::fs::write(here.join("growing.rhai"), recipe.replace("cells: 16", "cells: 128")).unwrap();
    let plan = text(&comove(here, &["plan", "growing.rhai"]));
    // 2097152 cells: three fluids of 48 bytes, the potential and its transform of 8, half a byte of marks and tables; 80
    // bytes of a snapshot with three fields on their way to a file, and 60 of the mesh
    assert!(plan.contains("at least 0.31 GiB of the device's memory (its root level alone) and 0.27 GiB"), "{plan}");
}

/// A root that does not fit is refused before the first step, and what is no amount of memory before anything.
#[test]
fn a_start_without_room_is_refused() {
    let folder = place("");
    let output = comove(folder.path(), &["run", "growing.rhai", "--memory", "0.0001"]);
    assert_eq!(output.status.code(), Some(8), "{}", text(&output));
    assert!(text(&output).contains("run it with a larger --memory"), "{}", text(&output));
    for wrong in ["0", "-1", "much"] {
        let output = comove(folder.path(), &["run", "growing.rhai", "--memory", wrong]);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    }
}

/// What a force test takes is foreseen: one too large for any machine is refused before it begins.
#[test]
fn a_force_test_without_room_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for options in ["root: 65536, pairs: 2", "root: 16, separations: [0.3, 8], pairs: 4294967296"] {
        let recipe = format!("campaign(\"f\", [force_test(#{{ {options} }})])");
        std::fs::write(folder.path().join("f.rhai"), recipe).unwrap();
        let refused = comove(folder.path(), &["run", "f.rhai"]);
        assert_eq!(refused.status.code(), Some(8), "{}", text(&refused));
        assert!(text(&refused).contains("GiB of memory"), "{}", text(&refused));
    }
}

//! `diff` and `verify-restart`: two runs, a run and itself, and a checkpoint and the records of its run.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{records, said};
use comove::testing::RESULTS_VERSION;
use comove_sim::Snapshot;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A run that keeps all its checkpoints.
const RECIPE: &str = r#"
const THRESHOLD = param("threshold", 2.5, "overdensity that is refined");
const DELTA_A = param("delta_a", 0.01, "largest relative change of a in a step");
const Z_END = param("z_end", 12.0, "redshift at which the run ends");
const STEERED = param("steered", false, "whether the run is steered");
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 10, cells: 16, z: 49, seed: 7 });
const OPTIONS = #{
    z_end: Z_END, max_level: 1, refine: density_above(THRESHOLD), max_delta_a: DELTA_A, outputs: #{ at_z: [20] },
    checkpoints: #{ every_steps: 4, keep: 1000 },
};
const RUN = if STEERED {
    evolve(IC, OPTIONS + #{ steer: |step| if step.step == 6 { #{ dt_max: 0.7 * step.dt } } else { #{} } })
} else {
    evolve(IC, OPTIONS)
};
campaign("differences", [RUN])
"#;

/// A folder with campaigns.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("recipe.rhai"), RECIPE).unwrap();
        Self(folder)
    }

    /// Runs the recipe with these parameters in a folder of that name; the run's folder.
    fn run(&self, dir: &str, parameters: &[&str]) -> PathBuf {
        let set: Vec<&str> = parameters.iter().flat_map(|parameter| ["-p", parameter]).collect();
        said(&self.comove(&[&["run", "recipe.rhai", "--dir", dir], &set[..]].concat()), 0);
        self.the_run(dir)
    }

    fn the_run(&self, dir: &str) -> PathBuf {
        let there = std::fs::read_dir(self.0.path().join(dir)).unwrap().map(|entry| entry.unwrap().path());
        let mut runs = there.filter(|path| base(path).starts_with("evolve-"));
        runs.next().expect("a run")
    }

    fn comove(&self, arguments: &[&str]) -> Output {
        Command::new(cargo_bin("comove")).current_dir(self.0.path()).args(arguments).output().unwrap()
    }

    fn diff(&self, arguments: &[&str], code: i32) -> String {
        said(&self.comove(&[&["diff"], arguments].concat()), code)
    }

    fn verify(&self, file: &Path, code: i32) -> String {
        said(&self.comove(&["verify-restart", file.to_str().unwrap()]), code)
    }
}

fn base(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn checkpoint(run: &Path, step: u64) -> PathBuf {
    run.join(format!("checkpoint_{step:06}.h5"))
}

/// The output at z = 20.
fn output(run: &Path) -> PathBuf {
    run.join("output_z20.h5")
}

fn write_records(run: &Path, records: &[Value]) {
    let lines: String = records.iter().map(|record| format!("{record}\n")).collect();
    std::fs::write(run.join("steps.jsonl"), lines).unwrap();
}

/// Gives the record of a step another hash.
fn alter(run: &Path, step: usize) {
    let mut records = records(run);
    records[step - 1]["state_hash"] = "0123456789abcdef".into();
    write_records(run, &records);
}

/// Flips a bit in the middle of a file.
fn damage(file: &Path) {
    let mut bytes = std::fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    std::fs::write(file, bytes).unwrap();
}

/// A copy of a snapshot in its folder in which something is another.
fn changed(file: &Path, name: &str, change: impl FnOnce(&mut Snapshot)) -> PathBuf {
    let mut snapshot = Snapshot::read(file).unwrap();
    change(&mut snapshot);
    let copy = file.with_file_name(name);
    snapshot.write(&copy).unwrap();
    copy
}

/// Every file below a folder and its content.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.push((path.clone(), std::fs::read(&path).unwrap()));
        }
    }
    found.sort();
    found
}

fn has(text: &str, parts: &[&str]) {
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in\n{text}"));
}

#[test]
fn a_restart_is_verified_step_by_step() {
    let place = Place::new();
    let run = place.run("x", &[]);
    let last = records(&run).len() as u64;
    let hash = |step: usize| records(&run)[step - 1]["state_hash"].as_str().unwrap().to_owned();
    let before = contents(&place.0.path().join("x"));
    let text = place.verify(&checkpoint(&run, 8), 0);
    has(&text, &["step 9, z = ", &hash(9), &hash(11), "3 steps agree, bit for bit"]);
    assert!(!text.contains(&hash(12)) && !text.contains("no more are recorded"), "{text}");
    let near_the_end = checkpoint(&run, (last - 1) / 4 * 4);
    let many = place.comove(&["verify-restart", near_the_end.to_str().unwrap(), "--steps", "9"]);
    has(&said(&many, 0), &["bit for bit; no more are recorded"]);
    has(&place.verify(&output(&run), 4), &["an output, from which its run does not continue"]);
    let none = place.verify(&checkpoint(&run, last), 4);
    has(&none, &[&format!("no record after step {last}"), "give an earlier checkpoint"]);
    let gpu = place.comove(&["verify-restart", near_the_end.to_str().unwrap(), "--device", "gpu"]);
    said(&gpu, 8);
    assert!(before == contents(&place.0.path().join("x")), "something was written");

    let elsewhere = place.0.path().join("copy.h5");
    std::fs::copy(checkpoint(&run, 8), &elsewhere).unwrap();
    has(&place.verify(&elsewhere, 4), &["the folder above has no campaign.json"]);
    let other = changed(&checkpoint(&run, 8), "other.h5", |s| s.header.provenance["device_class"] = "cuda-x".into());
    has(&place.verify(&other, 4), &["written on a device of class cuda-x, and this one is cpu-"]);
    let other = changed(&checkpoint(&run, 8), "other.h5", |s| s.state.fluid[0] *= 1.5);
    has(&place.verify(&other, 4), &["its state differs from the record of step 8", &hash(8)]);
    damage(&checkpoint(&run, 4));
    has(
        &place.verify(&checkpoint(&run, 4), 4),
        &["checkpoint_000004.h5: the file was damaged or changed after it was written"],
    );

    let ten = hash(10);
    alter(&run, 10);
    let text = place.verify(&checkpoint(&run, 8), 1);
    has(&text, &["step 9, z = ", "step 10 differs", &ten, "the record has 0123456789abcdef"]);
    let mut marked = records(&run);
    let class = Snapshot::read_header(&checkpoint(&run, 8)).unwrap().provenance["device_class"].clone();
    marked[8]["continued_from_device_class"] = class;
    write_records(&run, &marked);
    has(&place.verify(&checkpoint(&run, 8), 4), &["step 9 was computed on a device of another class"]);
    let ledger = place.0.path().join("x/ledger.jsonl");
    let text = std::fs::read_to_string(&ledger).unwrap();
    let [now, before] = [RESULTS_VERSION, RESULTS_VERSION - 1].map(|version| format!("\"results_version\":{version}"));
    std::fs::write(&ledger, text.replace(&now, &before)).unwrap();
    let begun = format!("has results version {} of evolve", RESULTS_VERSION - 1);
    has(&place.verify(&checkpoint(&run, 8), 4), &[&begun]);
}

/// What steered a run is in its records: its closure is not asked again.
#[test]
fn steered_runs_restart_and_differ_where_they_are_steered() {
    let place = Place::new();
    let (free, steered) = (place.run("free", &[]), place.run("steered", &["steered=true"]));
    has(&place.verify(&checkpoint(&steered, 4), 0), &["3 steps agree"]);
    has(&place.verify(&checkpoint(&steered, 8), 0), &["3 steps agree"]);
    let text = place.diff(&[free.to_str().unwrap(), steered.to_str().unwrap()], 1);
    let expected = ["steps: 6 agree; step 7 is the first", "steering.dt_max: not set → ", "groups after step 7"];
    has(&text, &expected);
    has(&text, &["checkpoint_000004.h5", "level 0: 1 groups, 1 differ, 0 only in A, 0 only in B"]);
}

#[test]
fn runs_are_compared_step_by_step() {
    let place = Place::new();
    let (x, y) = (place.run("x", &[]), place.run("y", &[]));
    has(&place.diff(&["x", "y"], 0), &["parameters: no difference", "steps: all ", "common steps agree, to z = 12"]);
    place.run("longer", &["z_end=11.5"]);
    let text = place.diff(&["x", "longer"], 0);
    has(&text, &["common steps agree; B continues to step ", ", z = 11.5"]);
    has(&place.diff(&["longer", "x"], 0), &["agree; A continues to step "]);

    place.run("delta", &["delta_a=0.008"]);
    let text = place.diff(&["x", "delta"], 1);
    has(&text, &["run.max_delta_a: 0.01 → 0.008", "steps: 0 agree; step 1 is the first", "  z = ", "  dt: ", " → "]);
    has(&text, &["groups: not compared, neither run has an earlier checkpoint", "the runs differ from step 1 on"]);

    // one refines before the other does
    let refined = place.run("refined", &["threshold=2.4"]);
    let text = place.diff(&["x", "refined"], 1);
    let (a, b) = (records(&x), records(&refined));
    let first = (0..).find(|&n| a[n]["state_hash"] != b[n]["state_hash"]).unwrap();
    assert!(first > 4, "a checkpoint lies before step {}", first + 1);
    has(&text, &[&format!("steps: {first} agree; step {} is the first", first + 1), "run.refine", " → "]);
    has(&text, &[&format!("groups after step {}, replayed from", first + 1)]);
    let [groups_a, groups_b] = [&a, &b].map(|records| records[first]["groups"][1].as_u64().unwrap_or(0));
    let only: u64 = groups_b - groups_a;
    has(&text, &[&format!("{only} only in B"), "level 1, cells from (", "Mpc/h, only in B"]);
    let replayed_from = |campaign: &str, run: &Path| format!("replayed from {campaign}/{}", base(run));
    has(&text, &[&replayed_from("x", &x)]);
    // the other's checkpoint does as well
    std::fs::remove_file(checkpoint(&x, first as u64 / 4 * 4)).unwrap();
    has(&place.diff(&["x", "refined"], 1), &[&replayed_from("refined", &refined)]);
    let json: Value = {
        let output = place.comove(&["diff", "x", "refined", "--json"]);
        assert_eq!(output.status.code(), Some(1));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    assert_eq!(json["steps_agree"], first);
    assert_eq!(json["first_difference"]["step"], first + 1);
    assert_eq!(json["groups"]["levels"][1]["only_b"], only);

    alter(&y, 10);
    let text = place.diff(&["x", "y"], 1);
    has(
        &text,
        &["parameters: no difference", "steps: 9 agree; step 10 is the first", "→ 0123456789abcdef", " in both"],
    );
    has(&text, &["groups: not compared, ", "repeats step 10 with another state than recorded"]);
    let mut damaged = records(&y);
    damaged.push(serde_json::json!({ "step": 5 }));
    write_records(&y, &damaged);
    has(&place.diff(&["x", "y"], 4), &[&format!("line {} is damaged", damaged.len())]);
}

#[test]
fn what_is_to_be_compared_is_said_clearly() {
    let place = Place::new();
    let x = place.run("x", &["z_end=20"]);
    has(&place.diff(&["x", "nothing"], 4), &["nothing: no such file or folder"]);
    has(&place.diff(&["x", output(&x).to_str().unwrap()], 2), &["give the folders of two runs, or two snapshot files"]);
    has(&place.diff(&["x", "."], 4), &[".: not the folder of a run"]);
    has(&place.diff(&["x", "x", "--fields"], 2), &["--fields and --power compare snapshots"]);
    let run = x.to_str().unwrap();
    has(&place.diff(&[run, run, "--stage", "evolve"], 2), &["neither of these is one"]);
    has(&place.diff(&["x", run, "--stage", "evolve"], 0), &["no difference"]);
    has(&place.diff(&["x", "x", "--stage", "evolv"], 2), &["did you mean \"evolve\""]);
    has(&place.diff(&["x", "x", "--stage", "ic_gaussian"], 4), &["no run of this campaign has begun"]);
    let two = RECIPE.replace("[RUN]", "[RUN, evolve(IC, OPTIONS + #{ max_delta_a: 0.009 })]");
    std::fs::write(place.0.path().join("recipe.rhai"), two).unwrap();
    place.run("two", &["z_end=20"]);
    has(&place.diff(&["two", "x"], 2), &["has several runs; choose one with --stage: evolve-"]);
    has(&place.diff(&["two", "x", "--stage", &base(&x)], 0), &["parameters: no difference"]);
    std::fs::remove_file(x.join("steps.jsonl")).unwrap();
    has(
        &place.diff(&[run, "two", "--stage", &base(&x)], 4),
        &["no step is recorded in both runs", "has the steps 1 to"],
    );
}

#[test]
fn snapshots_are_compared_field_by_field() {
    let place = Place::new();
    let (x, y) = (place.run("x", &["threshold=2.3"]), place.run("y", &["threshold=2.3", "delta_a=0.008"]));
    let compare = |a: &Path, b: &Path, options: &[&str], code: i32| {
        place.diff(&[&[a.to_str().unwrap(), b.to_str().unwrap()], options].concat(), code)
    };
    let copy = changed(&output(&x), "copy.h5", |s| s.header.provenance["host"] = "elsewhere".into());
    let text = compare(&output(&x), &copy, &["--fields", "--power"], 0);
    has(&text, &["header: no difference", "→ \"elsewhere\"", "arrays that differ: no difference"]);
    has(&text, &["density     largest 0, mean 0", "equal"]);

    let text = compare(&output(&x), &output(&y), &["--fields", "--power"], 1);
    has(
        &text,
        &["GridData/Dens", "restart.", "density     largest ", "at cell (", "P(k) on the root grid", "  stage: "],
    );
    has(&compare(&output(&x), &checkpoint(&x, 4), &[], 1), &["role: \"output\" → \"checkpoint\"", "step: "]);

    let denser = changed(&output(&x), "denser.h5", |s| s.state.fluid.iter_mut().for_each(|value| *value *= 2.0));
    let output_of = place.comove(&[
        "diff",
        output(&x).to_str().unwrap(),
        denser.to_str().unwrap(),
        "--fields",
        "--power",
        "--json",
    ]);
    assert_eq!(output_of.status.code(), Some(1));
    let json: Value = serde_json::from_slice(&output_of.stdout).unwrap();
    let density = &json["fields"]["fields"][0];
    // |2q − q|/√((q² + 4q²)/2) of the mean density
    let mean = density["mean"].as_f64().unwrap();
    assert!((0.55..0.65).contains(&mean), "{density}");
    assert!(
        json["power"].as_array().unwrap().iter().all(|bin| bin["relative_difference"].as_f64().unwrap().abs() < 1e-5)
    );
    assert_eq!((&json["header"], &json["equal"]), (&Value::Array(vec![]), &Value::Bool(false)));

    damage(&denser);
    has(&compare(&output(&x), &denser, &[], 4), &["denser.h5: "]);
    let stage = compare(&output(&x), &output(&y), &["--stage", "evolve"], 2);
    has(&stage, &["chooses a run, and these are snapshots"]);
}

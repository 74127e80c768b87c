//! Whole campaigns through the command line: small, but real runs.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::text;
use comove_sim::{Role, Snapshot};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A run of 32³ cells and one level, some seventy steps to z = 18; `EXTRA` stands for further outputs.
const RECIPE: &str = r#"
const Z_END = param("z_end", 18.0, "redshift at which the run ends");
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 50, cells: 32, z: 49, seed: 7 });
const RUN = evolve(IC, #{
    z_end: Z_END, max_level: 1, refine: density_above(1.4),
    outputs: #{ at_z: [EXTRA] }, checkpoints: #{ every_minutes: MINUTES, keep: 3 },
});
const PEAK = measure("peak", RUN, |s| #{ place: s.densest().position, mean: s.field("density", 0).mean() });
const SLICE = slice(RUN, #{ center: PEAK.place, width_mpc_h: 10, pixels: 32, patches: true });
campaign("small", [SLICE, refinement_ratio(RUN), power_spectrum(RUN)])
"#;

/// A folder with the recipe in it.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new(extra: &str, minutes: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.recipe(extra, minutes);
        place
    }

    fn recipe(&self, extra: &str, minutes: &str) {
        let text = RECIPE.replace("EXTRA", extra).replace("MINUTES", minutes);
        std::fs::write(self.folder.path().join("small.rhai"), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.folder.path()).args(arguments);
        command
    }

    fn comove(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs and expects success; returns what it said.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.comove(arguments);
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    }

    /// The folder of the one stage whose name starts so.
    fn stage(&self, kind: &str) -> PathBuf {
        let campaign = self.folder.path().join("small");
        let mut found = std::fs::read_dir(campaign)
            .unwrap()
            .map(|e| e.unwrap().path())
            .filter(|p| p.is_dir() && p.file_name().unwrap().to_string_lossy().starts_with(kind));
        found.next().unwrap_or_else(|| panic!("no stage {kind}"))
    }

    /// The newest checkpoint of the run.
    fn last_checkpoint(&self) -> PathBuf {
        snapshots(&self.stage("evolve"), "checkpoint_").pop().expect("a checkpoint")
    }
}

/// Files of a folder whose names start so, sorted.
fn snapshots(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|p| p.file_name().unwrap().to_string_lossy().starts_with(start)).collect();
    files.sort();
    files
}

/// The same tree, fields and restart data, bit for bit.
fn assert_same_state(x: &Path, y: &Path) {
    let (x, y) = (Snapshot::read(x).unwrap(), Snapshot::read(y).unwrap());
    assert_eq!(x.header.step, y.header.step);
    assert_eq!(x.header.a.to_bits(), y.header.a.to_bits());
    assert_eq!(x.header.restart, y.header.restart);
    assert_eq!(x.state.tree, y.state.tree);
    let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
    assert!(bits(&x.state.fluid) == bits(&y.state.fluid), "the fluid differs");
    assert!(bits(&x.state.potential) == bits(&y.state.potential), "the potential differs");
}

/// Everything lies where it should; a second run does nothing; `-p` extends the run instead of redoing it.
#[test]
fn a_campaign_is_done_once_and_extended() {
    let place = Place::new("30, 20", "10");
    place.ok(&["run", "small.rhai", "--threads", "2"]);
    let run = place.stage("evolve");
    for file in ["output_z30.h5", "output_z20.h5", "output_z18.h5", "steps.jsonl", "summary.json", "audit.json"] {
        assert!(run.join(file).exists(), "{file}");
    }
    assert_eq!(Snapshot::read_header(&run.join("output_z20.h5")).unwrap().role, Role::Output);
    assert!((Snapshot::read_header(&run.join("output_z20.h5")).unwrap().redshift() - 20.0).abs() < 1e-12);
    let peak = std::fs::read_to_string(place.stage("measure-peak").join("result.json")).unwrap();
    let peak: serde_json::Value = serde_json::from_str(&peak).unwrap();
    assert!((peak[0]["result"]["mean"].as_f64().unwrap() - 1.0).abs() < 1e-5, "{peak}");
    // the slice goes through what the measurement found: some cell that it cuts holds that place
    let slice = std::fs::read_to_string(place.stage("slice").join("slice_density_z18.csv")).unwrap();
    let found = |axis: usize| peak[0]["result"]["place"][axis].as_f64().unwrap();
    let holds = |line: &str| {
        let cell: Vec<f64> = line.split(',').map(|value| value.parse().unwrap()).collect();
        (0..3).all(|axis| (cell[axis] - found(axis)).abs() < 0.5 * cell[3])
    };
    assert!(slice.lines().skip(1).any(holds), "{slice}");
    assert!(std::fs::read_to_string(place.folder.path().join("small/report.html")).unwrap().contains("Power spectrum"));

    let again = place.ok(&["run", "small.rhai"]);
    assert_eq!(again.matches("done before").count(), 6, "{again}");
    let plan = place.ok(&["plan", "small.rhai", "-p", "z_end=16"]);
    assert!(plan.contains("continues from checkpoint_"), "{plan}");
    let extended = place.ok(&["run", "small.rhai", "-p", "z_end=16"]);
    assert!(
        extended.contains("continuing from checkpoint_") && !extended.contains("wrote output_z18.h5"),
        "{extended}"
    );
    let direct = Place::new("", "10");
    direct.ok(&["run", "small.rhai", "-p", "z_end=16"]);
    assert_same_state(&place.last_checkpoint(), &direct.last_checkpoint());
    assert!(place.ok(&["status", "small"]).contains("finished"));
    assert!(place.ok(&["resume", "small"]).contains("done before"));
}

/// The final checkpoint has the same bits with one and two threads, with and without outputs, and after `kill -9` at
/// three moments followed by the same command.
#[test]
fn bits_do_not_depend_on_threads_outputs_or_kills() {
    let reference = Place::new("", "10");
    reference.ok(&["run", "small.rhai", "--threads", "1", "-p", "z_end=30"]);
    let place = Place::new("40, 36, 33", "0");
    let command = ["run", "small.rhai", "--threads", "2", "-p", "z_end=30"];
    let ledger = place.folder.path().join("small/ledger.jsonl");
    for moment in [3, 14, 30] {
        let mut child = place.command(&command).spawn().unwrap();
        let started = Instant::now();
        let written = || std::fs::read_to_string(&ledger).unwrap_or_default().matches("snapshot_written").count();
        while written() < moment && child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(120), "the run hangs");
            std::thread::sleep(Duration::from_millis(2));
        }
        assert!(child.try_wait().unwrap().is_none(), "the run ended before it was killed");
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = place.ok(&command);
    assert!(said.contains("continuing from checkpoint_"), "{said}");
    assert_same_state(&reference.last_checkpoint(), &place.last_checkpoint());
    let steps = common::records(&place.stage("evolve"));
    let refined = |step: &serde_json::Value| step["volume_fractions"][1].as_f64().unwrap_or(0.0);
    assert!(steps.iter().any(|s| refined(s) > 0.0 && refined(s) < 1.0), "the run should be partly refined");
    let numbers: Vec<u64> = steps.iter().map(|s| s["step"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq(1..=numbers.len() as u64), "every step is recorded once");
}

/// A damaged checkpoint is refused by name and the one before it is used; a damaged output is made again.
#[test]
fn damaged_files_are_refused_by_name() {
    let place = Place::new("40", "0");
    let command = ["run", "small.rhai", "-p", "z_end=36"];
    place.ok(&command);
    let run = place.stage("evolve");
    let checkpoints = snapshots(&run, "checkpoint_");
    assert_eq!(checkpoints.len(), 3, "keep: 3");
    let before = Snapshot::read(&run.join("output_z36.h5")).unwrap();
    for file in [checkpoints[2].clone(), run.join("output_z36.h5")] {
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, bytes).unwrap();
    }
    let said = place.ok(&command);
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    assert!(said.contains("output_z36.h5: the file was damaged or changed after it was written"), "{said}");
    assert!(
        said.contains(&format!("{}: the file was damaged or changed after it was written", name(&checkpoints[2]))),
        "{said}"
    );
    assert!(said.contains(&format!("continuing from {}", name(&checkpoints[1]))), "{said}");
    let after = Snapshot::read(&run.join("output_z36.h5")).unwrap();
    assert!(before.state.fluid == after.state.fluid);
    let output = place.comove(&["inspect", "small.rhai"]);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output));
}

/// SIGTERM: a checkpoint after the step in progress, exit code 75, and `resume` goes on to the same bits.
#[test]
fn a_signal_leaves_a_checkpoint() {
    let place = Place::new("20", "10");
    let child = place.command(&["run", "small.rhai"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let ledger = place.folder.path().join("small/ledger.jsonl");
    let started = Instant::now();
    while !std::fs::read_to_string(&ledger).unwrap_or_default().contains("output_z20") {
        assert!(started.elapsed() < Duration::from_secs(120), "the run hangs");
        std::thread::sleep(Duration::from_millis(2));
    }
    let busy = place.comove(&["run", "small.rhai"]);
    assert_eq!(busy.status.code(), Some(5), "{}", text(&busy));
    assert!(text(&busy).contains(&format!("process {}", child.id())), "{}", text(&busy));
    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(75), "{}", text(&output));
    assert!(text(&output).contains("stopped by SIGTERM; `comove resume small` continues"), "{}", text(&output));
    assert!(place.ok(&["status", "small"]).contains("stopped by SIGTERM"));
    place.ok(&["resume", "small"]);
    let reference = Place::new("", "10");
    reference.ok(&["run", "small.rhai"]);
    assert_same_state(&reference.last_checkpoint(), &place.last_checkpoint());
}

/// A checkpoint of another campaign is continued with the same bits; an output only on request.
#[test]
fn a_snapshot_from_elsewhere() {
    let place = Place::new("40", "10");
    place.ok(&["run", "small.rhai", "-p", "z_end=30"]);
    let recipe = RECIPE.replace("EXTRA", "").replace("MINUTES", "10");
    let continue_from = |name: &str, file: &Path, branch: &str| {
        let start = format!("evolve(from_snapshot(\"{}\"), #{{ {branch}", file.display());
        let recipe = recipe
            .replace("evolve(IC, #{", &start)
            .replace("[SLICE, refinement_ratio(RUN), power_spectrum(RUN)]", "[RUN]");
        std::fs::write(place.folder.path().join(name), recipe).unwrap();
    };
    continue_from("more.rhai", &place.last_checkpoint(), "");
    place.ok(&["run", "more.rhai", "--dir", "more", "-p", "z_end=25"]);
    place.ok(&["run", "small.rhai", "-p", "z_end=25"]);
    let more = std::fs::read_dir(place.folder.path().join("more")).unwrap().map(|e| e.unwrap().path());
    let more = more.filter(|p| p.is_dir()).last().unwrap();
    assert_same_state(&snapshots(&more, "checkpoint_").pop().unwrap(), &place.last_checkpoint());

    let output = place.stage("evolve").join("output_z40.h5");
    continue_from("branch.rhai", &output, "");
    let refused = place.comove(&["run", "branch.rhai", "-p", "z_end=38"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(text(&refused).contains("set branch: true"), "{}", text(&refused));
    continue_from("branch.rhai", &output, "branch: true,");
    place.ok(&["run", "branch.rhai", "-p", "z_end=38"]);
}

/// Bad input: a message, an exit code of its own, and nothing overwritten.
#[test]
fn bad_input_has_its_exit_code() {
    let place = Place::new("", "10");
    let expect = |arguments: &[&str], code: i32, message: &str| {
        let output = place.comove(arguments);
        assert_eq!(output.status.code(), Some(code), "{}", text(&output));
        assert!(text(&output).contains(message), "{}", text(&output));
    };
    let write = |name: &str, content: &str| std::fs::write(place.folder.path().join(name), content).unwrap();
    expect(&["run", "none.rhai"], 2, "none.rhai: no such recipe");
    expect(&["run", "small.rhai", "-p", "n=3"], 2, "the recipe declares: z_end");
    expect(&["run", "small.rhai", "--device", "tpu"], 8, "unknown device \"tpu\"");
    expect(&["resume", "nowhere"], 4, "not a campaign folder");
    write("bad.rhai", "evolv(3)");
    expect(&["run", "bad.rhai"], 3, "bad.rhai:1:1: unknown function \"evolv\", did you mean \"evolve\"?");
    assert!(!place.folder.path().join("bad").exists());
    std::fs::create_dir(place.folder.path().join("full")).unwrap();
    write("full/thesis.tex", "precious");
    expect(&["run", "small.rhai", "--dir", "full"], 4, "the folder is not empty and holds no campaign");
    assert_eq!(std::fs::read_dir(place.folder.path().join("full")).unwrap().count(), 1);
    expect(&["run", "small.rhai", "--dir", "small.rhai/x"], 6, "small.rhai/x");
    let load = RECIPE
        .replace("ic_gaussian(C, #{ box_mpc_h: 50, cells: 32, z: 49, seed: 7 })", "ic_load(C, \"um_ic\", FORMAT)");
    let load = load.replace("FORMAT", "#{ box_mpc_h: 50, cells: 32, z: 49, format: #{ um_ic: #{ order: \"vzyx\" } } }");
    write("load.rhai", &load.replace("EXTRA", "").replace("MINUTES", "10"));
    expect(&["run", "load.rhai"], 4, "um_ic: no such file");
    write("um_ic", "truncated");
    expect(&["run", "load.rhai"], 4, "9 bytes, expected");
    write("none.rhai", "campaign(\"none\", [slice(from_snapshot(\"none.h5\"))])");
    expect(&["run", "none.rhai", "--dir", "none"], 4, "none.h5: no such file");
    let vast = RECIPE.replace("cells: 32", "cells: 1048576").replace("EXTRA", "").replace("MINUTES", "10");
    write("vast.rhai", &vast);
    expect(&["run", "vast.rhai"], 8, "GiB of memory");
    let help = place.ok(&["run", "small.rhai", "--help"]);
    assert!(help.contains("-p z_end=18.0  redshift at which the run ends (a real number)"), "{help}");
}

/// A limit of a file's size, as a full disk: exit code 6, the file and the limit, and what was there stays.
#[test]
#[cfg(target_os = "linux")]
fn a_file_size_limit_is_said() {
    let place = Place::new("", "10");
    let program = cargo_bin("comove");
    let limited = |kib: u32, file: &str| {
        let script = format!("ulimit -f {kib}; exec '{}' run small.rhai", program.display());
        let output = Command::new("bash").args(["-c", &script]).current_dir(place.folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(6), "{}", text(&output));
        let limit = format!("files are limited to {} bytes (ulimit -f); raise the limit", 1024 * kib);
        assert!(text(&output).contains(file) && text(&output).contains(&limit), "{}", text(&output));
        assert_eq!(text(&output).matches("ulimit").count(), 1, "{}", text(&output));
    };
    limited(300, "initial_condition.h5");
    place.ok(&["run", "small.rhai", "--only", "ic_gaussian"]);
    limited(300, "checkpoint_");
    place.ok(&["run", "small.rhai"]);
}

/// A path that is not UTF-8 is refused by a sentence, in every place where one is given.
#[test]
#[cfg(target_os = "linux")]
fn a_path_that_is_not_utf_8_is_refused() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new("", "10");
    let odd = OsStr::from_bytes(b"caf\xe9");
    let folder = place.folder.path().join(odd);
    std::fs::create_dir(&folder).unwrap();
    std::fs::copy(place.folder.path().join("small.rhai"), folder.join("small.rhai")).unwrap();
    let refused = |command: &mut Command| {
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{command:?}: {}", text(&output));
        assert!(text(&output).contains("UTF-8"), "{command:?}: {}", text(&output));
    };
    let recipe = folder.join("small.rhai");
    for command in ["run", "plan", "check"] {
        refused(place.command(&[command]).arg(&recipe));
    }
    for arguments in [
        &["run", "small.rhai", "--dir"][..],
        &["run", "small.rhai", "-p"],
        &["run", "small.rhai", "--only"],
        &["plan", "small.rhai", "--like"],
        &["explain", "small.rhai", "evolve", "--dir"],
        &["script", "small.rhai", "--campaign"],
        &["script", "small.rhai", "--campaign", "small", "--output"],
        &["resume"],
        &["status"],
        &["report"],
        &["clean"],
        &["inspect"],
        &["verify-restart"],
        &["diff", "small"],
    ] {
        refused(place.command(arguments).arg(odd));
    }
    for command in ["run", "plan", "explain"] {
        let stage = (command == "explain").then_some("evolve");
        refused(place.command(&[command, "small.rhai"]).args(stage).current_dir(&folder));
    }
    // a campaign that was moved there
    let moved = folder.join("small");
    std::fs::create_dir(&moved).unwrap();
    std::fs::write(
        moved.join("campaign.json"),
        r#"{"recipe":"/none.rhai","recipe_from_folder":"../small.rhai","parameters":{}}"#,
    )
    .unwrap();
    std::fs::write(moved.join("recipe.rhai"), "").unwrap();
    refused(place.command(&["resume", "small"]).current_dir(&folder));
}

/// A report that cannot be written, or a part of it that is gone, does not undo a finished campaign.
#[test]
fn a_campaign_is_done_without_its_report() {
    let place = Place::new("", "10");
    let recipe = "campaign(\"forces\", [force_test(#{ levels: 1, pairs: 1 })])";
    std::fs::write(place.folder.path().join("small.rhai"), recipe).unwrap();
    let page = place.folder.path().join("small/report.html");
    std::fs::create_dir_all(page.join("in the way")).unwrap();
    std::fs::write(place.folder.path().join("small/lock"), "").unwrap();
    let said = place.ok(&["run", "small.rhai"]);
    assert!(said.contains("report.html") && said.contains("`comove report small`"), "{said}");
    assert!(place.ok(&["status", "small"]).contains("finished"));
    std::fs::remove_dir_all(&page).unwrap();
    std::fs::remove_file(place.stage("force_test").join("section.json")).unwrap();
    place.ok(&["report", "small"]);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(page.contains("section.json") && page.contains("`comove resume` computes it again"), "{page}");
}

/// The ledger holds what a stage was when it began: why it is made again can be told from it.
#[test]
fn the_ledger_tells_what_a_stage_was() {
    let place = Place::new("", "10");
    place.ok(&["run", "small.rhai", "-p", "z_end=45"]);
    let starts = common::events(&place.folder.path().join("small"), "stage_started");
    let of = |kind: &str| &starts.iter().find(|event| event["kind"] == kind).unwrap()["identity"];
    let (run, peak) = (of("evolve"), of("measure"));
    assert_eq!((&run["parameters"]["run"]["courant"], &run["extent"]["end"]), (&0.8.into(), &"z = 45".into()));
    assert_eq!((&peak["label"], &peak["extent"]), (&"measure-peak".into(), &serde_json::Value::Null));
    let mesh = Path::new(run["inputs"][0]["file"].as_str().unwrap());
    assert_eq!(mesh.file_name().unwrap(), "initial_condition.h5");
    assert!(place.folder.path().join("small").join(mesh).exists() && mesh.is_relative());
}

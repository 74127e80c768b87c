//! What a campaign says while it runs: on the terminal, to other programs, and to who watches from another one.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, text, until};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const RECIPE: &str = r#"
const Z_END = param("z_end", 40.0, "where the run ends");
const CELLS = param("cells", 16, "per axis");
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: CELLS, z: 49, seed: 1, baryons_only: true });
const RUN = evolve(IC, #{ z_end: Z_END, outputs: #{ at_z: [45] } });
campaign("said", [slice(RUN, #{ pixels: 32, at_z: "all" }), measure("m", RUN, |s| { print("from a closure"); 1 })])
"#;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("said.rhai"), RECIPE).unwrap();
        Self(folder)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path()).args(arguments);
        command
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("said").join(file)
    }

    /// The records of the run's steps.
    fn steps(&self) -> Vec<Value> {
        common::records_of_all(&self.path(""))
    }
}

/// Where there is no terminal there are log lines and nothing that moves a cursor.
#[test]
fn what_is_not_a_terminal_gets_plain_lines() {
    let place = Place::new();
    let said = said(&place.command(&["run", "said.rhai"]).output().unwrap(), 0);
    assert!(said.contains("The run: wrote output_z45.h5 (z = 45"), "{said}");
    assert!(!said.contains('\x1b') && !said.contains('\r') && !said.contains(" of 4 stages"), "{said}");
}

#[test]
fn quiet_leaves_warnings_and_errors() {
    let place = Place::new();
    assert_eq!(said(&place.command(&["run", "said.rhai", "-q"]).output().unwrap(), 0), "");
    assert!(std::fs::read_to_string(place.path("log.txt")).unwrap().contains("wrote output_z45.h5"));
    let slice = std::fs::read_dir(place.path(""))
        .unwrap()
        .flatten()
        .find(|f| f.file_name().to_string_lossy().starts_with("slice-"));
    std::fs::write(slice.unwrap().path().join("slice_density_z45.csv"), "").unwrap();
    let warned = said(&place.command(&["resume", "said", "--quiet"]).output().unwrap(), 0);
    assert!(
        warned.contains("slice_density_z45.csv: the file was damaged or changed after it was written")
            && warned.lines().count() == 1
    );
}

/// Every line is an object; together they are the ledger, in its order, and the records of all steps.
#[test]
fn json_says_all_that_happens() {
    let place = Place::new();
    let output = place.command(&["run", "said.rhai", "--json"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let stdout = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (steps, events): (Vec<&Value>, Vec<&Value>) = lines.iter().partition(|line| line["event"] == "step");
    assert_eq!(events, common::lines(&place.path("ledger.jsonl")).iter().collect::<Vec<_>>());
    assert_eq!(steps.iter().map(|step| &step["record"]).collect::<Vec<_>>(), place.steps().iter().collect::<Vec<_>>());
    let run = events.iter().find(|event| event["kind"] == "evolve").unwrap();
    assert_eq!((&run["name"], steps.len() > 2), (&"The run".into(), true));
    assert!(steps.iter().all(|s| s["fingerprint"] == run["fingerprint"] && s["folder"] == run["folder"]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("wrote output_z45.h5"), "the log is where it was");
    // a reader that goes away stops nothing
    let mut child =
        place.command(&["run", "said.rhai", "--json", "-p", "z_end=35"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}

/// Streams that cannot be written: exit codes and results stay.
#[test]
#[cfg(target_os = "linux")]
fn streams_may_be_lost() {
    let place = Place::new();
    let full = || std::fs::File::create("/dev/full").unwrap();
    let code = |arguments: &[&str], is_stdout: bool| {
        let mut command = place.command(arguments);
        let command = if is_stdout { command.stdout(full()) } else { command.stderr(full()) };
        let output = command.output().unwrap();
        (output.status.code(), text(&output))
    };
    let write = |name: &str, content: &str| std::fs::write(place.0.path().join(name), content).unwrap();
    write("print.rhai", "print(\"hello\"); debug(1); campaign(\"p\", [force_test(#{ levels: 1, pairs: 1 })])");
    write("wrong.rhai", "nonsense");
    write("script.rhai", "print(\"hello\"); debug(1);");
    for (arguments, expected) in [
        (&["check", "print.rhai"][..], 0),
        (&["check", "wrong.rhai"], 3),
        (&["check", "none.rhai"], 2),
        (&["check", "--wrong"], 2),
        (&["run", "print.rhai"], 0),
        (&["run", "said.rhai"], 0),
        (&["script", "script.rhai", "--campaign", "said"], 0),
        (&["status", "none"], 4),
    ] {
        let (code, said) = code(arguments, false);
        assert_eq!(code, Some(expected), "{arguments:?}: {said}");
    }
    for arguments in [
        &["check", "said.rhai"][..],
        &["plan", "said.rhai"],
        &["plan", "said.rhai", "--json"],
        &["explain", "said.rhai", "evolve"],
        &["status", "said"],
        &["status", "said", "--watch"],
        &["clean", "said"],
        &["report", "said"],
        &["docs", "recipes"],
        &["doctor"],
        &["--help"],
        &["--version"],
        &["run", "--help", "said.rhai"],
        &["script", "script.rhai", "--campaign", "said"],
        &["run", "said.rhai", "--json"],
    ] {
        let (code, said) = code(arguments, true);
        assert_eq!(code, Some(6), "{arguments:?}: {said}");
        assert!(said.contains("standard output: No space left on device"), "{arguments:?}: {said}");
    }
    let (_, said) = code(&["run", "said.rhai", "--json", "-p", "z_end=35"], true);
    assert!(said.contains("done; report: "), "the campaign goes on: {said}");

    // who reads the messages goes away, and the run is stopped
    let mut run = place.command(&["run", "said.rhai", "-p", "z_end=0", "-p", "cells=64"]);
    let before = place.steps().len();
    let mut run = run.stderr(Stdio::piped()).spawn().unwrap();
    drop(run.stderr.take());
    until("it steps", &mut run, || place.steps().len() > before + 8);
    std::fs::write(place.path("stop"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(75));
}

#[test]
fn a_campaign_is_watched_to_its_end() {
    let place = Place::new();
    let mut run = place.command(&["run", "said.rhai", "-q", "-p", "z_end=0", "-p", "cells=64"]).spawn().unwrap();
    until("it steps", &mut run, || place.steps().len() > 3);
    let watch = place.command(&["status", "said", "--watch"]).stdout(Stdio::piped()).spawn().unwrap();
    until("it is further", &mut run, || place.steps().len() > 10);
    std::thread::sleep(std::time::Duration::from_secs(3));
    assert!(run.try_wait().unwrap().is_none(), "it has to be long enough to be watched");
    std::fs::write(place.path("stop"), "").unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(75));
    let watched = said(&watch.wait_with_output().unwrap(), 0);
    let seen: Vec<&str> = watched.split("campaign \"said\" in said: ").skip(1).collect();
    assert!(seen.len() >= 3 && !watched.contains('\x1b'), "{watched}");
    let run_line = |text: &str| text.lines().find(|line| line.contains("The run: ")).unwrap().to_owned();
    for now in &seen[..2] {
        assert!(now.starts_with("running: process ") && now.contains("; 1 of 4 stages"), "{now}");
        let line = run_line(now);
        for part in ["The run: step ", ", z ", " M cell updates/s, ", " left"] {
            assert!(line.contains(part), "{part}: {line}");
        }
        assert!(now.contains("Initial condition: done") && now.contains("Slice: density: waits"), "{now}");
    }
    assert_ne!(run_line(seen[0]), run_line(seen[1]));
    let last = seen.last().unwrap();
    assert!(last.starts_with("stopped by the file ") && run_line(last).contains("The run: begun: step "), "{last}");
    // nobody works on it: it is said once
    assert_eq!(said(&place.command(&["status", "said", "-w"]).output().unwrap(), 0).matches("campaign ").count(), 1);
}

//! Scripts that loop, allocate, print and recurse: each is stopped, and told where.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::text;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

fn comove(folder: &Path, recipe: &str, arguments: &[&str]) -> Command {
    std::fs::write(folder.join("r.rhai"), recipe).unwrap();
    let mut command = Command::new(cargo_bin("comove"));
    command.current_dir(folder).args(arguments);
    command
}

/// `comove check` refuses the recipe, at this place (line and column, or the line alone, where any of its calls may be
/// the one) and with this message.
fn refused(recipe: &str, place: &str, message: &str) {
    let folder = tempfile::tempdir().unwrap();
    let output = comove(folder.path(), recipe, &["check", "r.rhai"]).output().unwrap();
    let said = text(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let found = said.lines().any(|line| {
        let rest = line.strip_prefix("r.rhai:").and_then(|rest| rest.strip_prefix(place));
        rest.is_some_and(|rest| rest.starts_with(':') && rest.contains(&format!(": {message}")))
    });
    assert!(found, "{said}");
}

#[test]
fn recipes_that_have_no_end() {
    refused("loop {}", "1:6", "the recipe exceeds its limit of operations");
    refused("loop { try { loop {} } catch {} }", "1:19", "the recipe exceeds its limit of operations");
    refused("fn f(x) { f(x + 1) }\nf(0)", "2:1", "function calls are nested too deeply");
    refused("fn f(x) { [x].map(|y| f(y)) }\nf(0)", "1:15", "function calls are nested too deeply");
    refused("sleep(1000000);", "1:1", "sleep: recipes and scripts have no clock");
    // a chain of closures, each in the next, which is freed by recursion
    refused(
        "let f = |x| x;\nloop { let g = f; f = |x| g.call(x); }",
        "2:23",
        "the recipe exceeds its limit of operations",
    );
}

#[test]
fn recipes_that_allocate() {
    refused(
        "let a = [];\nfor i in 0..100000 { let b = []; b.pad(100000, i); a.push(|| b); }",
        "2",
        "the computation exceeds",
    );
    refused(
        "let s = \"ab\";\nloop { s += s; }",
        "2:10",
        "a text, or all texts of a list or map together, exceed 1048576 bytes",
    );
    refused(
        "let a = [];\na.pad(1000000, 0);",
        "2:3",
        "a list or map has too many entries, including nested ones; the limit is 131072",
    );
    let folder = tempfile::tempdir().unwrap();
    let said = text(&comove(folder.path(), "print(\"a line\"); 1", &["check", "r.rhai"]).output().unwrap());
    assert!(said.starts_with("a line\n"), "{said}");
    let deep = "let a = [];\nfor i in 0..100 { a = [a]; }\ncosmology(#{ h: a })";
    let folder = tempfile::tempdir().unwrap();
    let said = text(&comove(folder.path(), deep, &["check", "r.rhai"]).output().unwrap());
    assert!(said.contains("a value nested more than 32 levels deep"), "{said}");
}

/// A run of a few steps, and a measurement of it.
fn measured(options: &str, closure: &str) -> String {
    format!(
        "const C = cosmology(#{{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 }});\n\
         const IC = ic_gaussian(C, #{{ box_mpc_h: 50, cells: 16, z: 49, seed: 7 }});\n\
         const RUN = evolve(IC, #{{ z_end: 48 }});\n\
         const M = measure(\"m\", RUN, #{{ {options} }}, |s| {closure});\n\
         campaign(\"r\", [M])\n"
    )
}

/// What a recipe prints is on the terminal at once, and once in the log of the campaign.
#[test]
fn what_a_recipe_prints_is_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let recipe =
        measured("", "{ print(\"in the closure\"); 1.0 }").replace("const RUN", "print(\"on top\");\nconst RUN");
    let output = comove(folder.path(), &recipe, &["run", "r.rhai"]).output().unwrap();
    let said = text(&output);
    let log = std::fs::read_to_string(folder.path().join("r/log.txt")).unwrap();
    for line in ["on top", "in the closure"] {
        assert_eq!((said.matches(line).count(), log.matches(line).count()), (1, 1), "{line}: {said}\n{log}");
    }
    assert!(log.find("on top") < log.find("campaign \"r\""), "{log}");
}

#[test]
fn a_measurement_has_its_time_and_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        |options, closure| comove(folder.path(), &measured(options, closure), &["run", "r.rhai"]).output().unwrap();
    let output = run("time_limit_s: 0.5", "{ let a = [1]; loop { a.map(|x| x); } }");
    let said = text(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("r.rhai:4:") && said.contains("the computation exceeds its limit of 0.5 s"), "{said}");
    assert!(said.contains("raise time_limit_s"), "{said}");
    // the limit decides no result, and a closure within it may take more operations than a recipe
    let output = run(
        "time_limit_s: 300",
        "{ let n = 0; while n < 3_000_000 { n += 1; } let a = []; a.pad(1_000_000, n); a.len() }",
    );
    assert!(output.status.success(), "{}", text(&output));
    let output = run("", "{ for i in 0..5000 { print(`line ${i}`); } s.redshift }");
    assert!(output.status.success(), "{}", text(&output));
    let log = std::fs::read_to_string(folder.path().join("r/log.txt")).unwrap();
    assert!(log.contains("line 999") && !log.contains("line 1000"), "{} lines", log.lines().count());
    assert!(log.contains("further lines are left out"));
    let output = run("time_limit_s: 0", "1");
    assert!(text(&output).contains("time_limit_s = 0: must be positive"), "{}", text(&output));
}

/// SIGTERM ends a closure that computes on at its next operation, not after the seconds of grace.
#[test]
fn a_measurement_hears_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = measured("", "{ print(\"begun\"); loop {} }");
    let mut child =
        comove(folder.path(), &recipe, &["run", "r.rhai", "--no-rehearsal"]).stderr(Stdio::null()).spawn().unwrap();
    let log = folder.path().join("r/log.txt");
    wait(&mut child, || std::fs::read_to_string(&log).is_ok_and(|log| log.contains("begun")));
    assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    let asked = Instant::now();
    assert_eq!(child.wait().unwrap().code(), Some(75));
    assert!(asked.elapsed() < Duration::from_secs(4), "{:?}", asked.elapsed());
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(!log.contains("cut short"), "{log}");
}

fn wait(child: &mut Child, mut until: impl FnMut() -> bool) {
    let since = Instant::now();
    while !until() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        assert!(since.elapsed() < Duration::from_secs(120), "it did not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
}

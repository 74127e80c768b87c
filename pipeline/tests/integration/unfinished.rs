//! Runs that were interrupted: no later command loses them by accident.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, until};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A run that takes long enough to be stopped.
const RECIPE: &str = r#"
const ROOT = param("root", 16, "cells of the root along an axis");
const SEED = param("seed", 1, "seed of the field");
const Z_END = param("z_end", 0.0, "redshift at which the run ends");
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 32, root: ROOT, z: 49, seed: SEED });
const RUN = evolve(IC, #{ z_end: Z_END, courant: 0.8 });
campaign("long", [power_spectrum(RUN)])
"#;

/// A folder with the recipe `long.rhai`.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.recipe(RECIPE);
        place
    }

    fn recipe(&self, text: &str) {
        std::fs::write(self.0.path().join("long.rhai"), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path()).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn ends(&self, arguments: &[&str], code: i32) -> String {
        said(&self.command(arguments).output().unwrap(), code)
    }

    /// The folders of stages whose names start so.
    fn stages(&self, start: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path().join("long")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with(start)).collect()
    }

    /// Starts a command, and stops it when it has taken two steps; returns the run's folder.
    fn interrupted(&self, arguments: &[&str]) -> String {
        let before = if self.0.path().join("long").exists() { self.stages("evolve-") } else { Vec::new() };
        let mut child = self.command(arguments).spawn().unwrap();
        let run = || {
            let now = if self.0.path().join("long").exists() { self.stages("evolve-") } else { Vec::new() };
            now.into_iter().find(|run| !before.contains(run))
        };
        let steps = || run().map_or(0, |run| common::records(&self.0.path().join("long").join(run)).len());
        until("it steps", &mut child, || steps() > 1);
        std::fs::write(self.0.path().join("long/stop"), "").unwrap();
        said(&child.wait_with_output().unwrap(), 75);
        run().unwrap()
    }

    /// Continues the run in a folder, and stops it after its next step; returns what was said.
    fn interrupted_again(&self, arguments: &[&str], run: &str) -> String {
        let folder = self.0.path().join("long").join(run);
        let before = common::records(&folder).len();
        let mut child = self.command(arguments).spawn().unwrap();
        until("it steps", &mut child, || common::records(&folder).len() > before);
        std::fs::write(self.0.path().join("long/stop"), "").unwrap();
        said(&child.wait_with_output().unwrap(), 75)
    }
}

/// A forgotten `-p`, or an edited option, would start another run: that is said and refused.
#[test]
fn a_forgotten_parameter_leaves_no_run_behind() {
    let place = Place::new();
    let run = place.interrupted(&["run", "long.rhai", "-p", "root=32"]);
    for (command, difference) in [
        (&["run", "long.rhai"][..], "-p root: 32 → 16 (default)"),
        (&["run", "long.rhai", "-p", "root=32", "-p", "seed=2"], "-p seed: 1 (default) → 2"),
        (&["run", "long.rhai", "--only", "ic_gaussian"], "-p root: 32 → 16 (default)"),
    ] {
        let refused = place.ends(command, 2);
        for part in [&format!("The run ({run}): unfinished at z = "), " after ", " steps, with checkpoint_", difference]
        {
            assert!(refused.contains(part), "not {part:?}: {refused}");
        }
        assert!(refused.contains("`comove resume long` continues it") && refused.contains("--new"), "{refused}");
    }
    place.recipe(&RECIPE.replace("courant: 0.8", "courant: 0.7"));
    let refused = place.ends(&["run", "long.rhai", "-p", "root=32"], 2);
    assert!(refused.contains("evolve run.courant: 0.8 → 0.7"), "{refused}");
    place.recipe(&RECIPE.replace("box_mpc_h: 20", "box_mpc_h: 30"));
    let refused = place.ends(&["run", "long.rhai", "-p", "root=32"], 2);
    assert!(refused.contains("ic_gaussian box_mpc_h: 20"), "{refused}");
    place.recipe(RECIPE);
    assert_eq!(place.stages("evolve-"), [run.as_str()], "nothing was begun");

    let plan = place.ends(&["plan", "long.rhai"], 0);
    assert!(
        plan.contains("unfinished runs that this recipe does not continue:\nThe run (") && plan.contains(&run),
        "{plan}"
    );
    let plan: serde_json::Value = serde_json::from_str(&place.ends(&["plan", "long.rhai", "--json"], 0)).unwrap();
    assert_eq!(plan["unfinished"][0]["folder"], run.as_str());

    // what only decides where the run ends is no other run
    let resumed = place.ends(&["run", "long.rhai", "-p", "root=32", "-p", "z_end=40"], 0);
    assert!(resumed.contains("continuing from checkpoint_"), "{resumed}");
    place.ends(&["run", "long.rhai", "-p", "z_end=45"], 0);
}

/// `resume` keeps the parameters that the run was begun with.
#[test]
fn a_run_is_resumed_with_its_parameters() {
    let place = Place::new();
    let run = place.interrupted(&["run", "long.rhai", "-p", "root=32", "-p", "z_end=40"]);
    place.ends(&["run", "long.rhai"], 2);
    let resumed = place.ends(&["resume", "long"], 0);
    assert!(resumed.contains("continuing from checkpoint_"), "{resumed}");
    assert_eq!(place.stages("evolve-"), [run]);
}

/// `--new` leaves the run, which is then listed, asked about no more, continued by its parameters and kept by `clean`.
#[test]
fn a_run_that_is_left_stays() {
    let place = Place::new();
    let left = place.interrupted(&["run", "long.rhai", "-p", "root=32"]);
    place.ends(&["run", "long.rhai", "--new", "-p", "z_end=45"], 0);
    place.ends(&["run", "long.rhai", "-p", "z_end=44"], 0);
    let status = place.ends(&["status", "long"], 0);
    assert!(status.contains(&left) && status.contains("`comove run long.rhai -p root=32` continues it"), "{status}");

    let initial: Vec<String> = place.stages("ic_gaussian-");
    assert_eq!(initial.len(), 1, "both read it");
    place.ends(&["run", "long.rhai", "--new", "-p", "z_end=44", "-p", "seed=2"], 0);
    let listed = place.ends(&["clean", "long", "--yes"], 0);
    for kept in [format!("{left}: kept, unfinished at z = "), format!("{}: kept, read by", initial[0])] {
        assert!(listed.contains(&kept), "not {kept:?}: {listed}");
    }
    assert!(place.stages("evolve-").len() == 2 && place.stages("ic_gaussian-").len() == 2, "{listed}");
    let again = place.interrupted_again(&["run", "long.rhai", "-p", "root=32"], &left);
    assert!(again.contains("continuing from checkpoint_"), "{again}");

    place.ends(&["run", "long.rhai", "--new", "-p", "z_end=44", "-p", "seed=2"], 0);
    assert!(place.ends(&["clean", "long", "evolve-", "--yes"], 2).contains("`comove clean long` lists"));
    let named = place.ends(&["clean", "long", &left, "--yes"], 0);
    assert!(named.contains("deleted") && !named.contains("kept"), "{named}");
    assert!(!place.stages("evolve-").contains(&left));
    assert!(place.ends(&["clean", "long"], 0).contains(&initial[0]), "nothing unfinished reads it now");
}

/// On a terminal the user decides.
#[test]
fn a_terminal_is_asked() {
    let place = Place::new();
    let run = place.interrupted(&["run", "long.rhai", "-p", "root=32"]);
    let answered = |answer: &str| {
        let line = format!("'{}' run long.rhai -q -p z_end=45", cargo_bin("comove").display());
        let script = format!("printf '{answer}\\n' | script -qefc \"{line}\" /dev/null");
        Command::new("bash").args(["-c", &script]).current_dir(place.0.path()).output().unwrap()
    };
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: this system has no `script`, which makes a terminal");
        return;
    }
    let refused = said(&answered("n"), 2);
    assert!(refused.contains("Start? [y/N]") && refused.contains("nothing was started"), "{refused}");
    assert_eq!(place.stages("evolve-"), [run]);
    said(&answered("y"), 0);
    assert_eq!(place.stages("evolve-").len(), 2);
}

const TWO: &str = r#"campaign("NAME", [force_test(#{ levels: LEVELS, pairs: 1 })])"#;

fn write_recipe(path: &Path, name: &str, levels: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, TWO.replace("NAME", name).replace("LEVELS", levels)).unwrap();
}

/// Two recipes of one name have one default folder: the second is refused.
#[test]
fn a_folder_is_of_one_recipe() {
    let place = Place::new();
    let path = |file: &str| place.0.path().join(file);
    write_recipe(&path("a/run.rhai"), "first", "1");
    write_recipe(&path("b/run.rhai"), "second", "2");
    place.ends(&["run", "a/run.rhai"], 0);
    let refused = place.ends(&["run", "b/run.rhai"], 2);
    for part in
        ["run holds the campaign \"first\" of ", "a/run.rhai; choose another folder for ", "b/run.rhai with --dir"]
    {
        assert!(refused.contains(part), "not {part:?}: {refused}");
    }
    assert!(place.ends(&["plan", "b/run.rhai"], 0).contains("run holds the campaign \"first\""));
    assert!(place.ends(&["clean", "run"], 0).contains("no files to delete"));
    place.ends(&["run", "b/run.rhai", "--dir", "other"], 0);
    // edited, named in another way or moved, it is the same recipe
    write_recipe(&path("a/run.rhai"), "first", "2");
    place.ends(&["run", "b/../a/run.rhai"], 0);
    std::fs::create_dir(path("c")).unwrap();
    std::fs::rename(path("a/run.rhai"), path("c/run.rhai")).unwrap();
    place.ends(&["run", "c/run.rhai"], 0);
    place.ends(&["run", "b/run.rhai", "--new"], 0);
}

/// A copied project reads its own files, with and without the original.
#[test]
fn a_copied_project_is_complete() {
    let place = tempfile::tempdir().unwrap();
    let (project, copy) = (place.path().join("project"), place.path().join("copy"));
    std::fs::create_dir(&project).unwrap();
    let recipe = RECIPE.replace("seed: SEED", "seed: SEED, power: #{ camb_power: \"power.dat\" }");
    std::fs::write(project.join("long.rhai"), recipe.replace("0.0, \"redshift", "45.0, \"redshift")).unwrap();
    let table = |turnover: f64| {
        let line = |n: i32| {
            let k = 10f64.powf(-4.0 + 0.05 * f64::from(n));
            format!("{k:e} {:e}\n", k / (1.0 + (k / turnover).powi(2)).powi(2))
        };
        (0..140).map(line).collect::<String>()
    };
    std::fs::write(project.join("power.dat"), table(0.02)).unwrap();
    let comove = |folder: &Path, arguments: &[&str]| {
        said(&Command::new(cargo_bin("comove")).current_dir(folder).args(arguments).output().unwrap(), 0)
    };
    comove(&project, &["run", "long.rhai"]);
    let cp = |from: &PathBuf, to: &PathBuf| Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(cp(&project, &copy).success());
    assert_eq!(comove(&copy, &["resume", "long"]).matches("done before").count(), 3);
    std::fs::write(copy.join("power.dat"), table(0.03)).unwrap();
    assert_eq!(comove(&project, &["resume", "long"]).matches("done before").count(), 3, "the original's is as it was");
    let resumed = comove(place.path(), &["resume", "copy/long"]);
    assert_eq!(resumed.matches("done before").count(), 0, "{resumed}");
    assert!(comove(&copy, &["run", "long.rhai"]).matches("done before").count() == 3, "the same recipe");
    std::fs::remove_dir_all(&project).unwrap();
    assert_eq!(comove(&copy, &["resume", "long"]).matches("done before").count(), 3);
}

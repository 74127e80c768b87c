//! Runs that are asked for more than before, or for less: what comes out is what a run gives that was asked for it from the
//! start.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{records, text};
use comove::testing::fingerprint_of_run;
use comove_sim::Snapshot;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What every recipe begins with.
const START: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 7 });
const RUN = |z_end, at_z, checkpoints| evolve(IC, #{
    z_end: z_end, max_level: 1, refine: density_above(1.3), outputs: #{ at_z: at_z },
    checkpoints: checkpoints + #{ keep: 2 },
});
const LAST = |name, run| measure(name, run, |s| #{ z: s.redshift, peak: s.densest().density });
const ALL = |name, run| measure(name, run, #{ at_z: "all" }, |s| #{ z: s.redshift, step: s.step });
"#;

/// A run to `z_end` with outputs at these redshifts, and what is measured of its last output and of all. A checkpoint every
/// so many minutes.
fn one(z_end: f64, at_z: &str, minutes: &str) -> String {
    with_checkpoints(z_end, at_z, &format!("every_minutes: {minutes}"))
}

fn with_checkpoints(z_end: f64, at_z: &str, checkpoints: &str) -> String {
    let run = format!("const R = RUN.call({z_end:.1}, [{at_z}], #{{ {checkpoints} }});");
    format!("{START}{run}\ncampaign(\"extend\", [LAST.call(\"last\", R), ALL.call(\"all\", R)])\n")
}

/// Two runs that differ in where they end.
fn twins(first: f64, second: f64) -> String {
    let runs = [first, second].map(|z| format!("RUN.call({z:.1}, [], #{{ every_minutes: 10 }})"));
    let stages = [("x", &runs[0]), ("y", &runs[1])].map(|(name, run)| format!("LAST.call(\"{name}\", {run})"));
    format!("{START}campaign(\"extend\", [{}])\n", stages.join(", "))
}

/// A folder with a recipe and its campaign.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// The campaign of a recipe, run at once.
    fn of(recipe: &str) -> Self {
        let place = Self::new();
        place.run(recipe);
        place
    }

    fn command(&self, verb: &str, recipe: &str) -> Command {
        std::fs::write(self.0.path().join("extend.rhai"), recipe).unwrap();
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path()).args([verb, "extend.rhai"]);
        command
    }

    /// Does it and expects success; returns what was said.
    fn ok(&self, verb: &str, recipe: &str) -> String {
        let output = self.command(verb, recipe).output().unwrap();
        assert!(output.status.success(), "{}", text(&output));
        text(&output)
    }

    fn run(&self, recipe: &str) -> String {
        self.ok("run", recipe)
    }

    /// Runs a recipe until it has written so many snapshots, then `kill -9`; returns its last checkpoint.
    fn killed(&self, recipe: &str, snapshots: usize) -> String {
        let before = self.events("snapshot_written").len();
        let mut child = self.command("run", recipe).stderr(std::process::Stdio::null()).spawn().unwrap();
        let started = Instant::now();
        while self.events("snapshot_written").len() < before + snapshots {
            assert!(started.elapsed() < Duration::from_secs(120), "the run hangs");
            assert!(child.try_wait().unwrap().is_none(), "the run ended before it was killed");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let written = self.events("snapshot_written").split_off(before);
        let mut files = written.iter().map(|event| event["snapshot"]["file"].as_str().unwrap());
        files.rfind(|file| file.starts_with("checkpoint_")).expect("a checkpoint").into()
    }

    /// The events of that kind, whole lines of the ledger.
    fn events(&self, kind: &str) -> Vec<Value> {
        common::events(&self.0.path().join("extend"), kind)
    }

    /// Makes the run one of an earlier version, as its ledger tells; returns that version.
    fn made_by_an_earlier_version(&self) -> u64 {
        let begun = self.events("stage_started");
        let run = begun.iter().find(|event| event["kind"] == "evolve").unwrap();
        let version = run["identity"]["results_version"].as_u64().unwrap() - 1;
        let made = fingerprint_of_run(run["identity"].clone(), version as u32).unwrap();
        let ledger = self.0.path().join("extend/ledger.jsonl");
        let text = std::fs::read_to_string(&ledger).unwrap();
        std::fs::write(&ledger, text.replace(run["fingerprint"].as_str().unwrap(), &made)).unwrap();
        version
    }

    /// Another folder with the same recipe and campaign.
    fn copy(&self) -> Self {
        let copy = Self::new();
        let from = format!("{}/.", self.0.path().display());
        assert!(Command::new("cp").args(["-a", &from]).arg(copy.0.path()).status().unwrap().success());
        copy
    }

    /// The folders of stages whose names start so.
    fn stages(&self, start: &str) -> Vec<PathBuf> {
        files(&self.0.path().join("extend"), start)
    }

    /// The folder of the run.
    fn evolve(&self) -> PathBuf {
        let found = self.stages("evolve-");
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }

    fn checkpoints(&self) -> Vec<PathBuf> {
        files(&self.evolve(), "checkpoint_")
    }

    /// What was measured by every stage of that name, by its fingerprint's first digits.
    fn measured(&self, name: &str) -> BTreeMap<String, Value> {
        let stages = self.stages(&format!("measure-{name}-")).into_iter();
        stages.map(|stage| (base(&stage), json(&stage.join("result.json")))).collect()
    }

    /// What the report says of every measurement, as text.
    fn report(&self) -> String {
        std::fs::read_to_string(self.0.path().join("extend/report.html")).unwrap()
    }

    fn summary(&self) -> Value {
        json(&self.evolve().join("summary.json"))
    }
}

fn base(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// What lies in a folder under names that start so, sorted.
fn files(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|p| base(p).starts_with(start)).collect();
    files.sort();
    files
}

/// The digest of what a snapshot shows.
fn content(file: &Path) -> String {
    Snapshot::content_digest(file).unwrap()
}

/// The outputs at these redshifts and the steps to them are those of a run that was asked for all from the start; so is
/// what was measured, whose stage was not there before.
fn assert_as_from_the_start(place: &Place, z_end: f64, at_z: &str, measured_before: &[String]) {
    let direct = Place::of(&one(z_end, at_z, "10"));
    for file in files(&direct.evolve(), "output_") {
        assert!(content(&place.evolve().join(base(&file))) == content(&file), "{} differs", base(&file));
    }
    let hashes =
        |place: &Place| records(&place.evolve()).iter().map(|record| record["state_hash"].clone()).collect::<Vec<_>>();
    let (here, there) = (hashes(place), hashes(&direct));
    assert_eq!(here[..there.len()], there[..]);
    for name in ["last", "all"] {
        let (here, there) = (place.measured(name), direct.measured(name));
        let result = there.values().next().unwrap();
        let new: Vec<&Value> =
            here.iter().filter(|(stage, _)| !measured_before.contains(stage)).map(|(_, r)| r).collect();
        assert_eq!(new, [result], "{name}");
    }
}

fn measured(place: &Place) -> Vec<String> {
    place.stages("measure-").iter().map(|stage| base(stage)).collect()
}

#[test]
fn a_later_end() {
    let place = Place::of(&one(30.0, "", "10"));
    let before = measured(&place);
    let said = place.run(&one(20.0, "30", "10"));
    assert!(said.contains("continuing from checkpoint_") && !said.contains("wrote output_z30.h5"), "{said}");
    assert_as_from_the_start(&place, 20.0, "30", &before);
    assert!(place.run(&one(20.0, "30", "10")).matches("done before").count() == 4);
}

/// The run steps to the added output again and is then done: what it had reached, its last checkpoints and its totals stay.
#[test]
fn an_output_in_the_past() {
    let place = Place::of(&one(20.0, "", "10"));
    let (before, checkpoints, summary) = (measured(&place), place.checkpoints(), place.summary());
    place.run(&one(20.0, "35", "10"));
    let last = before.iter().filter(|stage| stage.starts_with("measure-last"));
    assert_eq!(
        place.measured("last").keys().collect::<Vec<_>>(),
        last.collect::<Vec<_>>(),
        "the last output is the same"
    );
    assert_eq!((place.checkpoints(), place.summary()), (checkpoints, summary));
    let direct = Place::of(&one(20.0, "35", "10"));
    for file in ["output_z20.h5", "output_z35.h5"] {
        assert!(content(&place.evolve().join(file)) == content(&direct.evolve().join(file)), "{file}");
    }
    assert_eq!(place.measured("all").len(), 2);
    assert!(place.measured("all").values().any(|result| result == direct.measured("all").values().next().unwrap()));
}

/// Outputs before and between what is there, and a later end: the way between the last old output and the old end is not
/// gone again.
#[test]
fn several_outputs_and_a_later_end() {
    let place = Place::of(&one(25.0, "40", "10"));
    let (before, end) = (measured(&place), place.checkpoints().pop().unwrap());
    let said = place.run(&one(18.0, "43, 40, 35", "10"));
    assert!(said.contains(&format!("continuing from {}", base(&end))), "{said}");
    assert_as_from_the_start(&place, 18.0, "43, 40, 35", &before);
}

/// A run that was further than it is asked for now: its results are those of the earlier end, and those of the later one
/// are there again when they are asked for.
#[test]
fn an_earlier_end() {
    let place = Place::of(&one(20.0, "35", "10"));
    let before = measured(&place);
    place.run(&one(30.0, "", "10"));
    assert_as_from_the_start(&place, 30.0, "", &before);
    let said = place.run(&one(20.0, "35", "10"));
    assert_eq!(said.matches("done before").count(), 4, "{said}");
}

/// Two runs of one recipe that differ in their end only share what they compute; each has its own last output.
#[test]
fn two_runs_that_differ_in_their_end() {
    for (first, second) in [(30.0, 20.0), (20.0, 30.0)] {
        let place = Place::of(&twins(first, second));
        let results = |place: &Place, name: &str| place.measured(name).into_values().collect::<Vec<_>>();
        for (name, z_end) in [("x", first), ("y", second)] {
            let alone = Place::of(&one(z_end, "", "10"));
            assert_eq!(results(&place, name), results(&alone, "last"), "{name} to z = {z_end}");
        }
        let said = place.run(&twins(first, second));
        assert_eq!(said.matches("done before").count(), 5, "{said}");
        let heading = format!("<h3>The run, end z = {first}; The run, end z = {second}</h3>");
        let page = place.report();
        assert!(page.contains(&heading) && page.matches("<h3>The run").count() == 1, "{page}");
        let begun = place.events("stage_started");
        assert_eq!(begun.iter().filter(|event| event["kind"] == "evolve").count(), 1, "one run does both");
    }
}

/// Killed on the way back to an output that was added, a run goes on from the newest checkpoint of that way.
#[test]
fn a_kill_on_the_way_back_loses_nothing() {
    let place = Place::of(&one(25.0, "", "0"));
    let far = place.checkpoints();
    let reached = place.killed(&one(25.0, "30", "0"), 8);
    let kept = place.checkpoints();
    assert!(far.iter().all(|file| kept.contains(file)) && kept.len() >= far.len() + 2, "{far:?} {kept:?}");
    let said = place.run(&one(25.0, "30", "0"));
    assert!(said.contains(&format!("continuing from {reached}")), "{reached}: {said}");
    let direct = Place::of(&one(25.0, "30", "10"));
    let output = "output_z30.h5";
    assert!(content(&place.evolve().join(output)) == content(&direct.evolve().join(output)));
}

/// Killed on the way to a later end, a run does not take its own records for damaged.
#[test]
fn a_kill_on_the_way_on_is_no_damage() {
    let place = Place::of(&one(35.0, "", "0"));
    place.killed(&one(25.0, "", "0"), 4);
    let said = place.run(&one(25.0, "", "0"));
    assert!(!said.contains("damaged"), "{said}");
}

/// Checkpoints by number of step: at the same steps in one go as after a kill, besides those before an output.
#[test]
fn checkpoints_every_so_many_steps() {
    let recipe = with_checkpoints(30.0, "", "every_steps: 4");
    let place = Place::new();
    let reached = place.killed(&recipe, 1);
    assert!(place.run(&recipe).contains(&format!("continuing from {reached}")));
    let written = place.events("snapshot_written");
    let steps = written.iter().filter(|event| event["snapshot"]["role"] == "checkpoint");
    let steps: Vec<u64> = steps.map(|event| event["snapshot"]["step"].as_u64().unwrap()).collect();
    let last = steps[steps.len() - 1];
    let expected = (1..=last).filter(|step| step % 4 == 0 || *step == last);
    assert_eq!(steps, expected.collect::<Vec<_>>());
    assert!(steps.len() > 3, "{steps:?}");
    assert_eq!(place.checkpoints().len(), 2, "keep: 2");
}

/// A checkpoint that is to be deleted and is gone already is no failure.
#[test]
fn a_checkpoint_that_is_gone_is_not_deleted() {
    let place = Place::of(&one(35.0, "", "0"));
    let checkpoints = place.checkpoints();
    assert_eq!(checkpoints.len(), 2, "keep: 2");
    std::fs::remove_file(&checkpoints[0]).unwrap();
    place.run(&one(33.0, "", "0"));
}

/// The plan names the checkpoint from which the run then goes on, none where it starts anew, and believes no file that is
/// not what was written.
#[test]
fn a_plan_says_where_a_run_goes_on() {
    let place = Place::of(&one(30.0, "", "0"));
    let checkpoints = place.checkpoints();
    let plan = place.ok("plan", &one(30.0, "45", "0"));
    assert!(plan.contains("done in part, starts again: no checkpoint before z = 45 ("), "{plan}");
    // an output that lies before is none of the steps of the run
    let back = Place::of(&one(30.0, "48", "10"));
    let plan = back.ok("plan", &one(45.0, "48", "10"));
    let why = "no checkpoint before z = 45, and no run continues from an output, as output_z48.h5; keep checkpoints \
               with checkpoints: #{ at_z: […] } (evolve-";
    assert!(plan.contains(&format!("starts again: {why}")), "{plan}");
    let before = measured(&back);
    back.run(&one(45.0, "48", "10"));
    assert_as_from_the_start(&back, 45.0, "48", &before);
    let plan = place.ok("plan", &one(28.0, "", "0"));
    assert!(plan.contains(&format!("continues from {} at z = 30", base(&checkpoints[1]))), "{plan}");
    let mut bytes = std::fs::read(&checkpoints[1]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&checkpoints[1], bytes).unwrap();
    let plan = place.ok("plan", &one(28.0, "", "0"));
    assert!(plan.contains(&format!("continues from {} at", base(&checkpoints[0]))), "{plan}");
    let said = place.run(&one(28.0, "", "0"));
    assert!(said.contains(&format!("continuing from {}", base(&checkpoints[0]))), "{said}");
}

/// A run that an earlier version of `evolve` has made is another stage, which the plan names; it is continued only where
/// somebody says so, and then by everyone, as the ledger and the report say.
#[test]
fn a_run_of_an_earlier_version_is_continued_on_request() {
    let (before, now) = (one(30.0, "", "10"), one(26.0, "", "10"));
    let place = Place::of(&before);
    let version = place.made_by_an_earlier_version();
    let folder = base(&place.evolve());
    let advice = format!("{folder} has results of version {version} of evolve; --accept-version continues it");
    let plan = place.ok("plan", &now);
    assert!(plan.contains(&advice), "{plan}");
    let output = place.command("explain", &now).arg("evolve").output().unwrap();
    assert!(text(&output).contains(&advice), "{}", text(&output));

    let copy = place.copy();
    let said = copy.run(&now);
    assert!(said.contains(&advice) && !said.contains("continuing from"), "{said}");
    assert_eq!(copy.stages("evolve-").len(), 2, "it starts anew, beside the other");
    assert!(!copy.ok("plan", &now).contains("--accept-version"), "which is behind now");

    let accepted = place.command("run", &now).arg("--accept-version").output().unwrap();
    let said = text(&accepted);
    assert!(accepted.status.success() && said.contains("continuing from checkpoint_"), "{said}");
    let events = place.events("version_accepted");
    assert_eq!(events.len(), 1);
    assert_eq!((events[0]["made_by"].as_u64(), events[0]["continued_by"].as_u64()), (Some(version), Some(version + 1)));
    let words = format!("Begun with results version {version}, continued with version {}", version + 1);
    assert!(place.report().contains(&words), "{}", place.report());
    assert!(content(&place.evolve().join("output_z26.h5")) == content(&Place::of(&now).evolve().join("output_z26.h5")));
    // once is enough
    let said = place.run(&now);
    assert!(said.matches("done before").count() == 4 && place.events("version_accepted").len() == 1, "{said}");
    // done again, it is of this version
    let forced = place.command("run", &now).args(["--force", "evolve"]).output().unwrap();
    assert!(forced.status.success() && !text(&forced).contains("continuing from"), "{}", text(&forced));
    assert_eq!(place.stages("evolve-").len(), 2);
    assert_eq!(place.run(&now).matches("done before").count(), 4);
}

/// What a snapshot says of the recipe and of where it was written decides nothing: an output that is made again under
/// another wording, by other threads, is the one that was measured.
#[test]
fn an_output_made_again_is_the_same() {
    let recipe = one(30.0, "", "10");
    let place = Place::of(&recipe);
    let (stages, output) = (measured(&place), place.evolve().join("output_z30.h5"));
    let (content_before, file_before) = (content(&output), std::fs::read(&output).unwrap());
    std::fs::remove_file(&output).unwrap();
    let worded = format!("// a comment\n{recipe}");
    let said = place.command("run", &worded).args(["--threads", "1"]).output().unwrap();
    assert!(said.status.success() && text(&said).contains("wrote output_z30.h5"), "{}", text(&said));
    assert!(std::fs::read(&output).unwrap() != file_before, "the file names the recipe");
    assert_eq!(content(&output), content_before);
    assert_eq!(text(&said).matches("done before").count(), 3, "{}", text(&said));
    assert_eq!(measured(&place), stages);

    // the same from a copy of either file
    let of_copy = |place: &Place| {
        let copy = place.0.path().join("copy.h5");
        std::fs::copy(place.evolve().join("output_z30.h5"), &copy).unwrap();
        let recipe = format!("{START}campaign(\"copy\", [LAST.call(\"copy\", from_snapshot(\"copy.h5\"))])");
        place.run(&recipe);
        place.measured("copy")
    };
    assert_eq!(of_copy(&place), of_copy(&Place::of(&recipe)));
}

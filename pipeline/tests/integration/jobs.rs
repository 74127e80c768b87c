//! Several stages at the same time: the same bits, and what happens to the others when one fails or somebody asks to stop.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, until};
use comove_sim::Snapshot;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

const START: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const RUN = |cells, seed, z_end| evolve(ic_gaussian(C, #{ box_mpc_h: 20, cells: cells, z: 49, seed: seed }), #{
    z_end: z_end, max_level: 1, refine: density_above(1.3), outputs: #{ at_z: [z_end + 5] },
});
const PEAK = |run| measure("peak", run, |s| #{ peak: s.densest().density, place: s.densest().position });
"#;

/// Four runs of 16³ cells, what is measured of each, and one slice through what was measured.
const SWEEP: &str = r#"
const RUNS = [1, 2, 3, 4].map(|seed| RUN.call(16, seed, 25));
const PEAKS = RUNS.map(|run| PEAK.call(run));
const FIRST = PEAKS[0];
const SLICE = slice(RUNS[0], #{ center: FIRST.place, pixels: 32 });
campaign("jobs", PEAKS + [SLICE, refinement_ratio(RUNS), power_spectrum(RUNS[3])])
"#;

/// A folder with a recipe, and its campaign in `jobs`.
struct Place(tempfile::TempDir);

impl Place {
    fn new(recipe: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("jobs.rhai"), format!("{START}{recipe}")).unwrap();
        Self(folder)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("jobs").join(file)
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path()).args(["run", "jobs.rhai", "--threads", "2"]).args(options);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the recipe and expects this exit code; returns what was said.
    fn ends(&self, options: &[&str], code: i32) -> String {
        said(&self.command(options).output().unwrap(), code)
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        common::events(&self.path(""), kind)
    }

    fn ledger(&self) -> Vec<Value> {
        common::lines(&self.path("ledger.jsonl"))
    }

    /// The folders of stages whose names start so.
    fn stages(&self, start: &str) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.path("")) else { return Vec::new() };
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(start)).collect()
    }

    /// How many runs there were at the same time, at the most.
    fn runs_at_once(&self) -> usize {
        let (mut now, mut most) = (std::collections::BTreeSet::new(), 0);
        for event in self.ledger() {
            let stage = event["fingerprint"].as_str().unwrap_or_default().to_owned();
            match event["event"].as_str().unwrap() {
                "stage_started" if event["kind"] == "evolve" => _ = now.insert(stage),
                "stage_finished" | "stage_failed" => _ = now.remove(&stage),
                _ => {}
            }
            most = most.max(now.len());
        }
        most
    }

    /// What was made, by file: snapshots by what they show, results by their bytes.
    fn results(&self) -> BTreeMap<PathBuf, String> {
        let mut results = BTreeMap::new();
        for stage in ["ic_", "evolve-", "measure-", "slice-", "refinement_ratio-", "power_spectrum-"] {
            for file in self.stages(stage).iter().flat_map(|stage| std::fs::read_dir(stage).unwrap()) {
                let path = file.unwrap().path();
                let name = path.strip_prefix(self.path("")).unwrap().to_owned();
                let digest = match path.extension().unwrap().to_str().unwrap() {
                    "h5" if !stage.starts_with("ic_") => Snapshot::content_digest(&path).unwrap(),
                    // times are in them
                    "json" | "jsonl" if stage == "evolve-" => continue,
                    _ => blake3::hash(&std::fs::read(&path).unwrap()).to_string(),
                };
                results.insert(name, digest);
            }
        }
        results
    }

    /// Steps that each run has recorded, by its folder.
    fn steps(&self) -> BTreeMap<PathBuf, u64> {
        let count = |run: PathBuf| {
            let steps = common::records(&run).len() as u64;
            (run, steps)
        };
        self.stages("evolve-").into_iter().map(count).collect()
    }

    /// The step of the last checkpoint of each run.
    fn checkpoints(&self) -> BTreeMap<PathBuf, u64> {
        let step = |run: &PathBuf| {
            let names = std::fs::read_dir(run).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
            let steps = names.filter_map(|name| name.strip_prefix("checkpoint_")?.strip_suffix(".h5")?.parse().ok());
            steps.max().unwrap_or(0)
        };
        self.stages("evolve-").into_iter().map(|run| (run.clone(), step(&run))).collect()
    }
}

/// One stage at a time and three give the same files with the same content; three are done at the same time.
#[test]
fn results_do_not_depend_on_jobs() {
    let (one, three) = (Place::new(SWEEP), Place::new(SWEEP));
    one.ends(&["--jobs", "1"], 0);
    three.ends(&["--jobs", "3"], 0);
    assert_eq!(one.runs_at_once(), 1);
    assert!((2..=3).contains(&three.runs_at_once()), "{}", three.runs_at_once());
    assert!(one.results().len() > 20, "{:?}", one.results());
    assert_eq!(one.results(), three.results());
    assert_eq!(three.ends(&["--jobs", "2"], 0).matches("done before").count(), 15);
}

/// Runs whose root levels alone do not fit the memory together are done one after the other.
#[test]
fn runs_that_do_not_fit_together_wait() {
    let run = "evolve(ic_gaussian(C, #{ box_mpc_h: 20, cells: 32, z: 49, seed: seed }), #{ z_end: 20 })";
    let recipe = format!("campaign(\"jobs\", [1, 2, 3].map(|seed| {run}))");
    for (memory, at_once) in [("0.006", 1..=1), ("1", 2..=3)] {
        let place = Place::new(&recipe);
        let text = place.ends(&["--jobs", "3", "--memory", memory], 0);
        assert!(at_once.contains(&place.runs_at_once()), "{} with {memory} GiB", place.runs_at_once());
        assert!(!text.contains("no room"), "{text}");
    }
}

/// A run that outgrows its share of the memory goes on alone, with all of it.
#[test]
fn a_run_that_outgrows_its_share_goes_on_alone() {
    let place = Place::new("campaign(\"jobs\", [1, 2].map(|seed| RUN.call(32, seed, 25)))");
    let text = place.ends(&["--jobs", "2", "--memory", "0.04"], 0);
    assert!(text.contains("retrying once the device is free"), "{text}");
    assert_eq!(place.events("stage_failed").len(), 0);
}

/// Of two runs that are one, the shorter is done though the longer fails, and so is what looks at it.
#[test]
fn a_shorter_run_does_not_fail_with_the_longer() {
    let recipe = r#"
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 32, z: 49, seed: 1 });
const TO = |z_end| evolve(IC, #{ z_end: z_end, max_level: 1, refine: density_above(2.0) });
campaign("jobs", [43, 20].map(|z_end| slice(TO.call(z_end), #{ pixels: 32 })))
"#;
    let place = Place::new(recipe);
    let short = ["--memory", "0.008", "--keep-going"];
    for text in [place.ends(&short, 8), place.ends(&short, 8)] {
        assert!(text.contains("is skipped, because it needs "), "{text}");
        assert_eq!(place.stages("slice").len(), 1, "{text}");
    }
    place.ends(&[], 0);
    assert_eq!(place.stages("slice").len(), 2);
    // where all is done there is nothing to stop
    place.ends(&["--walltime", "1s"], 0);
}

/// What does not need the stage that fails is done, by `--keep-going`; without, what runs ends with a checkpoint, and the
/// same command goes on.
#[test]
fn a_failure_and_the_others() {
    let recipe = r#"
const SHORT = RUN.call(16, 1, 43);
const BAD = measure("bad", SHORT, |s| #{ place: s.densest().nowhere });
const LONG = RUN.call(32, 2, 12);
campaign("jobs", [slice(SHORT, #{ center: BAD.place, pixels: 32 }), PEAK.call(LONG)])
"#;
    let place = Place::new(recipe);
    let text = place.ends(&["--jobs", "2", "--no-rehearsal"], 3);
    assert!(text.contains("nowhere"), "{text}");
    let is_long = |event: &Value| event["identity"]["describes"].as_str().unwrap().contains("root 32³");
    let mut begun = place.events("stage_started").into_iter().filter(|event| event["kind"] == "evolve");
    let long = place.path(begun.rfind(is_long).unwrap()["folder"].as_str().unwrap());
    assert!(place.steps()[&long] > 0);
    assert_eq!(place.checkpoints()[&long], place.steps()[&long], "it ends with a checkpoint of its last step");
    assert!(place.stages("measure-peak").is_empty());

    let text = place.ends(&["--jobs", "2", "--keep-going", "--no-rehearsal"], 3);
    assert!(text.contains("continuing from checkpoint_") && text.contains("is skipped, because it needs "), "{text}");
    assert_eq!((place.stages("measure-peak").len(), place.stages("slice").len()), (1, 0));
    assert_eq!(place.events("stage_failed").len(), 2);
    assert!(place.events("campaign_finished").is_empty());
}

/// An input that is missing hinders what reads it, and neither the rest nor the report.
#[test]
fn a_missing_input_and_the_others() {
    let place = Place::new("campaign(\"jobs\", [slice(from_snapshot(\"none.h5\")), PEAK.call(RUN.call(16, 1, 43))])");
    let text = place.ends(&["--keep-going"], 4);
    assert!(text.contains("none.h5: no such file"), "{text}");
    assert_eq!(place.stages("measure-peak").len(), 1);
    let report = std::fs::read_to_string(place.path("report.html")).unwrap();
    assert!(report.contains("none.h5: no such file") && report.contains("Measured: peak"), "{report}");
}

/// What may pass is tried again as often as the recipe says.
#[test]
fn a_stage_is_tried_again() {
    let recipe = |attempts: u32| {
        let stages = "[PEAK.call(RUN.call(16, 1, 43))]";
        format!("campaign(\"jobs\", {stages}, #{{ attempts: {attempts} }})")
    };
    let place = Place::new(&recipe(2));
    place.ends(&[], 0);
    // where the result has to lie there is a folder
    let blocked = place.stages("measure-peak")[0].join("result.json");
    let block = || {
        std::fs::remove_file(&blocked).unwrap();
        std::fs::create_dir(&blocked).unwrap();
        std::fs::write(blocked.join("x"), "").unwrap();
    };
    block();
    let text = place.ends(&[], 6);
    assert!(text.contains("retrying, attempt 2 of 2"), "{text}");
    assert_eq!(place.events("stage_failed").len(), 2);

    let mut child = place.command(&[]).spawn().unwrap();
    until("it fails again", &mut child, || place.events("stage_failed").len() == 3);
    std::fs::remove_dir_all(&blocked).unwrap();
    said(&child.wait_with_output().unwrap(), 0);
    assert_eq!(place.events("stage_failed").len(), 3);
}

/// A request concerns every run in progress, and the bits are those of runs that nobody has asked for anything.
#[test]
fn all_runs_answer_requests() {
    let recipe = "campaign(\"jobs\", [1, 2].map(|seed| PEAK.call(RUN.call(32, seed, 18))))";
    let place = Place::new(recipe);
    let mut child = place.command(&["--jobs", "2"]).spawn().unwrap();
    let all = |counts: BTreeMap<PathBuf, u64>, more: u64| counts.len() == 2 && counts.values().all(|n| *n > more);
    until("both step", &mut child, || all(place.steps(), 1));
    std::fs::write(place.path("dump"), "").unwrap();
    until("the dump is done", &mut child, || !place.path("dump").exists());
    assert!(all(place.checkpoints(), 1), "{:?}", place.checkpoints());

    std::fs::write(place.path("pause"), "").unwrap();
    let log = || std::fs::read_to_string(place.path("log.txt")).unwrap();
    until("both pause", &mut child, || log().matches("paused until").count() == 2);
    let paused = place.steps();
    assert_eq!(place.checkpoints(), paused);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(place.steps(), paused);
    std::fs::remove_file(place.path("pause")).unwrap();
    until("both go on", &mut child, || place.steps().iter().all(|(run, steps)| *steps > paused[run]));

    assert!(Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success());
    let text = said(&child.wait_with_output().unwrap(), 75);
    assert_eq!(text.matches("stopped by SIGTERM").count(), 1, "{text}");
    assert_eq!(place.checkpoints(), place.steps());
    assert_eq!(place.events("campaign_interrupted").len(), 1);

    place.ends(&["--jobs", "2"], 0);
    let reference = Place::new(recipe);
    reference.ends(&[], 0);
    let outputs = |place: &Place| {
        let results = place.results().into_iter();
        results.filter(|(name, _)| !name.to_string_lossy().contains("checkpoint_")).collect::<Vec<_>>()
    };
    assert_eq!(outputs(&place), outputs(&reference));
}

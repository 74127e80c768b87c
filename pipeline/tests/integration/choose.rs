//! Stages by name: why one would be done (`explain`), one alone or again (`run --only`, `--force`), and what is no stage's any
//! more (`clean`).

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::said;
use comove_sim::Snapshot;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

const RECIPE: &str = r#"
const SEED = param("seed", 1, "of the initial condition");
const COURANT = param("courant", 0.5, "of the run");
const Z_END = param("z_end", 40.0, "where the run ends");
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: SEED });
const RUN = evolve(IC, #{ z_end: Z_END, courant: COURANT });
const PEAK = measure("peak", RUN, |s| #{ peak: s.densest().density });
campaign("choose", [PEAK, slice(RUN, #{ pixels: 32 })])
"#;

/// A folder with the recipe, and its campaign in `choose`.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self::of(RECIPE)
    }

    fn of(recipe: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("choose.rhai"), recipe).unwrap();
        Self(folder)
    }

    /// Expects this exit code; returns what was said.
    fn ends(&self, arguments: &[&str], code: i32) -> String {
        let mut command = Command::new(cargo_bin("comove"));
        said(&command.current_dir(self.0.path()).args(arguments).output().unwrap(), code)
    }

    fn run(&self, options: &[&str]) -> String {
        self.ends(&[&["run", "choose.rhai"], options].concat(), 0)
    }

    fn explain(&self, stage: &str, options: &[&str]) -> String {
        self.ends(&[&["explain", "choose.rhai", stage], options].concat(), 0)
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        common::events(&self.path(""), kind)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("choose").join(file)
    }

    /// The folders of stages whose names start so, sorted.
    fn stages(&self, start: &str) -> Vec<String> {
        let names = std::fs::read_dir(self.path("")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(start)).collect();
        names.sort();
        names
    }

    fn stage(&self, start: &str) -> String {
        let found = self.stages(start);
        assert_eq!(found.len(), 1, "{found:?}");
        found[0].clone()
    }
}

#[test]
fn explain_says_why() {
    let place = Place::new();
    let text = place.explain("peak", &[]);
    assert!(
        text.contains("to do after stage 2, unless its results are the same as before")
            && text.contains("no similar stage"),
        "{text}"
    );
    place.run(&[]);
    let evolve = place.stage("evolve");
    for name in ["2", "evolve", &evolve] {
        let text = place.explain(name, &[]);
        assert!(text.contains("done; all files are unchanged"), "{text}");
    }
    let text = place.explain("evolve", &["-p", "courant=0.4"]);
    assert!(text.contains(&format!("it differs from {evolve}")) && text.contains("run.courant: 0.5 → 0.4"), "{text}");
    // what waits for it is to do for the same reason
    assert!(place.explain("slice", &["-p", "courant=0.4"]).contains("run.courant: 0.5 → 0.4"));
    let text = place.explain("slice", &["-p", "seed=2"]);
    assert!(text.contains("seed: 1 → 2") && !text.contains("courant"), "{text}");
    let text = place.explain("evolve", &["-p", "z_end=35"]);
    assert!(
        text.contains("the outputs at z = 35 are missing") && text.contains("it continues from checkpoint_"),
        "{text}"
    );

    place.run(&["--only", "ic_gaussian", "-p", "seed=2"]);
    let text = place.explain("evolve", &["-p", "seed=2"]);
    assert!(text.contains("input: ic_gaussian-"), "{text}");

    let result = place.path(&place.stage("measure-peak")).join("result.json");
    std::fs::write(&result, "{}").unwrap();
    let text = place.explain("measure-peak", &[]);
    assert!(text.contains("would be computed again: result.json was changed after it was written"), "{text}");
    assert_eq!(std::fs::read(&result).unwrap(), b"{}", "explaining changes nothing");
    let text = place.ends(&["explain", "choose.rhai", "measure-paek"], 2);
    assert!(text.contains("no stage \"measure-paek\", did you mean \"measure-peak\"?"), "{text}");
}

/// Criteria are shown as the recipe has them.
#[test]
fn explain_shows_the_text_of_expressions() {
    let criterion = "refine_where(|c| c.density > LIMIT && c.x < 9)";
    let text = RECIPE
        .replace("const C =", "const LIMIT = param(\"limit\", 1.5, \"density\");\nconst C =")
        .replace("z_end: Z_END,", &format!("z_end: Z_END, max_level: 1, refine: all([{criterion}]),"));
    let place = Place::of(&text);
    place.run(&[]);
    let shown = place.explain("evolve", &["-p", "limit=2.5"]);
    for part in ["|c| c.density > LIMIT && c.x < 9, LIMIT = 1.5", "|c| c.density > LIMIT && c.x < 9, LIMIT = 2.5"] {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert!(!shown.contains("r0 ="), "{shown}");
    // a change that makes no other program is none
    std::fs::write(place.0.path().join("choose.rhai"), text.replace("c.x < 9", "c.x < 9.0")).unwrap();
    assert!(place.explain("evolve", &[]).contains("done; all files are unchanged"));
}

/// What another stage lacks is no matter of those asked for.
#[test]
fn a_missing_input_hinders_only_those_who_read_it() {
    let place = Place::of(&RECIPE.replace("slice(RUN,", "slice(from_snapshot(\"none.h5\"),"));
    place.run(&["--only", "peak"]);
    assert!(place.explain("peak", &[]).contains("done; all files are unchanged"));
    assert!(place.ends(&["explain", "choose.rhai", "slice"], 4).contains("none.h5: no such file"));
}

#[test]
fn only_what_is_asked_for() {
    let place = Place::new();
    let text = place.ends(&["run", "choose.rhai", "--only", "peek"], 2);
    assert!(text.contains("did you mean \"peak\"?") && !place.path("").exists(), "{text}");
    place.run(&["--only", "peak"]);
    assert_eq!((place.stages("measure-peak").len(), place.stages("slice").len()), (1, 0));
    assert_eq!(place.events("campaign_finished").len(), 0);
    let text = place.run(&[]);
    assert_eq!((text.matches("done before").count(), place.stages("slice").len()), (3, 1), "{text}");
    assert_eq!(place.events("campaign_finished").len(), 1);
}

/// A run that is forced starts anew, with the same bits, so what was made of it stays.
#[test]
fn a_stage_is_done_again() {
    let place = Place::new();
    place.run(&[]);
    let evolve = place.path(&place.stage("evolve"));
    let steps = || std::fs::read_to_string(evolve.join("steps.jsonl")).unwrap();
    let content = || Snapshot::content_digest(&evolve.join("output_z40.h5")).unwrap();
    let (steps_before, content_before) = (steps(), content());
    let text = place.run(&["--force", "evolve"]);
    assert!(text.contains("wrote output_z40.h5") && !text.contains("continuing from"), "{text}");
    assert_eq!(text.matches("done before").count(), 3, "{text}");
    assert!(steps() != steps_before, "new records, with new times");
    assert_eq!((steps().lines().count(), content()), (steps_before.lines().count(), content_before));
    assert_eq!(place.events("stage_forced").len(), 1);
    assert_eq!(place.run(&[]).matches("done before").count(), 4, "it is forced once");
    let text = place.ends(&["run", "choose.rhai", "--only", "slice", "--force", "peak"], 2);
    assert!(text.contains("add it to --only"), "{text}");
}

/// Runs that differ in where they end are one, also when both are forced.
#[test]
fn the_same_stage_is_forced_once() {
    let twice = "[PEAK, evolve(IC, #{ z_end: 45, courant: COURANT })]";
    let place = Place::of(&RECIPE.replace("[PEAK, slice(RUN, #{ pixels: 32 })]", twice));
    place.run(&[]);
    place.run(&["--force", "evolve"]);
    assert_eq!(place.events("stage_forced").len(), 1);
    let begun = place.events("stage_started");
    assert_eq!(begun.iter().filter(|event| event["kind"] == "evolve").count(), 2);
    // one of the two by its number: the other one's output is made again too
    place.run(&["--force", "4"]);
    assert_eq!(place.run(&[]).matches("done before").count(), 4);
    // nothing is forgotten before it is being done
    let ledger = std::fs::read_to_string(place.path("ledger.jsonl")).unwrap();
    let lines: Vec<&str> = ledger.lines().collect();
    let forced = lines.windows(2).filter(|pair| pair[0].contains("stage_forced"));
    assert!(forced.map(|pair| pair[1].contains("stage_started")).eq([true, true]));
}

/// What the recipe does not refer to is listed, deleted on request only, and what it does refer to is never among it.
#[test]
fn what_no_recipe_refers_to() {
    let place = Place::new();
    place.run(&[]);
    const KINDS: [&str; 4] = ["ic_gaussian", "evolve", "measure", "slice"];
    let before = KINDS.map(|kind| place.stage(kind));
    place.run(&["-p", "seed=2"]);
    let stages = KINDS.iter().flat_map(|kind| place.stages(kind));
    let now: Vec<String> = stages.filter(|stage| !before.contains(stage)).collect();
    assert_eq!(now.len(), 4);
    let run = place.path(&now[1]);
    std::fs::copy(run.join("output_z40.h5"), run.join("checkpoint_009999.h5")).unwrap();
    std::fs::write(run.join(".output_z40.h5.tmp-12"), "torn").unwrap();
    std::fs::write(place.path("notes.txt"), "mine").unwrap();

    let listed = place.ends(&["clean", "choose"], 0);
    assert!(listed.contains("choose.rhai does not use, as last run: -p seed=2\n"), "{listed}");
    for name in before.iter().map(String::as_str).chain(["checkpoint_009999.h5", ".output_z40.h5.tmp-12"]) {
        assert!(listed.contains(name), "{name}: {listed}");
    }
    let kept = |listed: &str| !now.iter().any(|stage| listed.contains(&format!("{stage}:")));
    let named = ["notes.txt", "/output_z40.h5:"].map(|file| listed.contains(file));
    assert!(kept(&listed) && named == [false, false], "{listed}");
    assert!(listed.contains("`comove clean choose --yes` deletes it") && place.path(&before[0]).exists(), "{listed}");

    place.ends(&["clean", "choose", "--yes"], 0);
    assert!(before.iter().all(|stage| !place.path(stage).exists()) && !run.join("checkpoint_009999.h5").exists());
    assert!(place.path("notes.txt").exists());
    assert!(place.ends(&["clean", "choose"], 0).contains("no files to delete"));
    assert_eq!(place.run(&["-p", "seed=2"]).matches("done before").count(), 4);
    assert_eq!(place.run(&[]).matches("done before").count(), 0, "what was deleted is made again");
}

/// Outputs of another time go; results that the recipe may come back to once it knows more stay.
#[test]
fn outputs_and_what_is_not_known_yet() {
    let place = Place::new();
    place.run(&[]);
    place.run(&["-p", "z_end=35"]);
    let output = place.path(&place.stage("evolve")).join("output_z40.h5");
    let listed = place.ends(&["clean", "choose"], 0);
    assert!(listed.contains("output_z40.h5: output that the recipe does not list"), "{listed}");
    assert!(output.exists() && place.stages("measure").len() == 2, "{listed}");
    // the measurement of this recipe is not known before its run is done
    place.run(&["--only", "ic_gaussian", "-p", "seed=2"]);
    let listed = place.ends(&["clean", "choose"], 0);
    assert!(listed.contains("evolve-") && !listed.contains("measure-") && !listed.contains("slice-"), "{listed}");
    place.ends(&["clean", "choose", "--yes"], 0);
    assert_eq!((place.stages("evolve").len(), place.stages("measure").len()), (0, 2));
}

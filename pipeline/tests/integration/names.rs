//! What stages are called: by the recipe, or by what they differ in; in plan, log, report, and on the command line.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::said;
use std::path::Path;
use std::process::Command;

/// Two seeds, each with a picture, and a table of both; NAMED is the name of the first seed's run.
const RECIPE: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
let runs = [];
for seed in [1, 2] {
    let options = #{ z_end: 40 };
    if seed == 1 { options += NAMED; }
    runs.push(evolve(ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: seed }), options));
}
campaign("sweep", runs.map(|run| slice(run, #{ pixels: 16 })) + [refinement_ratio(runs)])
"#;

struct Place(tempfile::TempDir);

impl Place {
    fn new(named: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.recipe(named);
        place
    }

    fn recipe(&self, named: &str) {
        std::fs::write(self.0.path().join("sweep.rhai"), RECIPE.replace("NAMED", named)).unwrap();
    }

    fn ends(&self, arguments: &[&str], code: i32) -> String {
        said(&Command::new(cargo_bin("comove")).current_dir(self.0.path()).args(arguments).output().unwrap(), code)
    }

    fn report(&self) -> String {
        std::fs::read_to_string(self.0.path().join("sweep/report.html")).unwrap()
    }
}

#[test]
fn stages_of_a_sweep_are_told_apart_everywhere() {
    let place = Place::new("#{}");
    let shown = place.ends(&["plan", "sweep.rhai"], 0);
    let run = place.ends(&["run", "sweep.rhai"], 0);
    for name in ["Initial condition, seed 1", "The run, seed 2", "Slice: density, seed 1", "Slice: density, seed 2"] {
        for (what, text) in [("plan", &shown), ("status", &place.ends(&["status", "sweep"], 0))] {
            assert!(text.contains(&format!("     {name}: ")), "{what} lacks {name}: {text}");
        }
        assert!(run.contains(&format!("{name} (")), "the log lacks {name}: {run}");
        let level = if name.starts_with("Slice") { 2 } else { 3 };
        assert!(place.report().contains(&format!("<h{level}>{name}</h{level}>")), "the report lacks {name}");
    }
    for caption in ["The run, seed 1", "The run, seed 2"].map(|run| format!("<figcaption>{run}</figcaption>")) {
        assert!(place.report().contains(&caption), "the levels of which run: {caption}");
    }
    assert!(run.contains("The run, seed 2: wrote output_z40.h5"), "lines begin with their stage: {run}");
}

/// It renames and redoes nothing, goes on to what reads the stage, and chooses it on the command line, comma and all.
#[test]
fn a_name_decides_nothing_and_is_understood() {
    let place = Place::new("#{}");
    place.ends(&["run", "sweep.rhai"], 0);
    place.recipe(r#"#{ name: "seed 1, 16³" }"#);
    let again = place.ends(&["run", "sweep.rhai"], 0);
    assert_eq!(again.matches("done before").count(), 7, "{again}");
    for heading in ["<h3>seed 1, 16³</h3>", "<h2>Slice: density, seed 1, 16³</h2>"] {
        assert!(place.report().contains(heading), "{heading}");
    }
    assert!(place.ends(&["explain", "sweep.rhai", "seed 1, 16³"], 0).contains("done; all files"));
    let forced =
        place.ends(&["run", "sweep.rhai", "--only", "seed 1, 16³", "--force", "seed 1, 16³", "--force", "1,2"], 0);
    assert_eq!(forced.matches("wrote output_z40.h5").count(), 1, "{forced}");
    let wrong = place.ends(&["run", "sweep.rhai", "--only", "seed 1, 17³"], 2);
    assert!(wrong.contains("no stage"), "{wrong}");
}

#[test]
fn a_name_is_one_short_line() {
    for name in ["\"\"", "\" \"", "\"a\\nb\"", "\"\\x1b[2J\"", &format!("\"{}\"", "x".repeat(81)), "7"] {
        let text = Place::new(&format!("#{{ name: {name} }}")).ends(&["plan", "sweep.rhai"], 3);
        assert!(text.contains("sweep.rhai:") && text.contains("name"), "{text}");
    }
    let text = Place::new("#{ nmae: \"a\" }").ends(&["plan", "sweep.rhai"], 3);
    assert!(text.contains("did you mean \"name\"?"), "{text}");
}

/// The folders of a campaign's stages.
fn folders(campaign: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(campaign).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut names: Vec<String> = folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// A kind, words, and four digits of the fingerprint: the same wherever and whenever the recipe is run. Plan, status, index
/// and command line know them.
#[test]
fn folders_say_what_they_hold() {
    let place = Place::new(r#"#{ name: "The first: seed 1" }"#);
    let plan = place.ends(&["plan", "sweep.rhai"], 0);
    place.ends(&["run", "sweep.rhai"], 0);
    let names = folders(&place.0.path().join("sweep"));
    let words = [
        "evolve-seed2",
        "evolve-the-first-seed1",
        "ic_gaussian-seed1",
        "ic_gaussian-seed2",
        "refinement_ratio-the-first-seed1",
    ];
    let words = words.iter().chain(&["slice", "slice-the-first-seed1"]);
    assert_eq!(names.len(), 7, "{names:?}");
    for (name, words) in names.iter().zip(words) {
        let digits = name.strip_prefix(&format!("{words}-")).unwrap_or_else(|| panic!("{words}: {names:?}"));
        assert!(digits.len() == 4 && digits.chars().all(|c| c.is_ascii_hexdigit()), "{name}");
        assert!(!name.starts_with("ic_") || plan.contains(name.as_str()), "{name} is not in {plan}");
    }
    place.ends(&["run", "sweep.rhai", "--dir", "again", "--jobs", "2"], 0);
    assert_eq!(folders(&place.0.path().join("again")), names);
    let index: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.0.path().join("sweep/index.json")).unwrap()).unwrap();
    let mut indexed: Vec<&str> =
        index["stages"].as_array().unwrap().iter().map(|stage| stage["folder"].as_str().unwrap()).collect();
    indexed.sort_unstable();
    assert_eq!(indexed, names);
    let slice = names.last().unwrap();
    assert!(place.ends(&["explain", "sweep.rhai", slice], 0).contains("done; all files are unchanged"));
    let forced = place.ends(&["run", "sweep.rhai", "--only", slice, "--force", slice], 0);
    assert!(forced.contains("Slice: density, The first: seed 1"), "{forced}");
    assert_eq!(folders(&place.0.path().join("sweep")), names);
}

/// Folders that an older program has named by kind and six digits keep their names, and runs in them are continued.
#[test]
fn older_folders_are_continued() {
    let place = Place::new("#{}");
    place.ends(&["run", "sweep.rhai"], 0);
    let campaign = place.0.path().join("sweep");
    let ledger = std::fs::read_to_string(campaign.join("ledger.jsonl")).unwrap();
    let mut older = ledger.clone();
    for line in ledger.lines().filter(|line| line.contains("\"stage_started\"")) {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        let [now, kind, fingerprint] = ["folder", "kind", "fingerprint"].map(|key| event[key].as_str().unwrap());
        let before = format!("{kind}-{}", &fingerprint[..6]);
        std::fs::rename(campaign.join(now), campaign.join(&before)).unwrap();
        older = older.replace(now, &before);
    }
    std::fs::write(campaign.join("ledger.jsonl"), older).unwrap();
    let names = folders(&campaign);
    assert!(names.iter().all(|name| name.rsplit_once('-').unwrap().1.len() == 6), "{names:?}");
    let again = place.ends(&["run", "sweep.rhai"], 0);
    assert_eq!(again.matches("done before").count(), 7, "{again}");
    let text = std::fs::read_to_string(place.0.path().join("sweep.rhai")).unwrap();
    std::fs::write(place.0.path().join("sweep.rhai"), text.replace("z_end: 40", "z_end: 39")).unwrap();
    let further = place.ends(&["run", "sweep.rhai"], 0);
    assert_eq!(further.matches("continuing from ").count(), 2, "{further}");
    let now = folders(&campaign);
    assert!(names.iter().all(|name| now.contains(name)), "{names:?} {now:?}");
    let runs: Vec<&String> = now.iter().filter(|name| name.starts_with("evolve-")).collect();
    assert!(runs.len() == 2 && runs.iter().all(|run| campaign.join(run).join("output_z39.h5").exists()), "{now:?}");
    assert!(now.iter().any(|name| name.starts_with("slice-seed1-")), "{now:?}");
}

//! What stages are called: by the recipe, or by what they differ in; in plan, log, report, and on the command line.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::said;
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

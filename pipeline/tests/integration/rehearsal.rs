//! The rehearsal of a recipe on a toy universe: what it finds, what stops nothing, and what it leaves alone.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, text};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const COSMOLOGY: &str = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\n";

/// Gas of 16³ cells to z = 45, refined once; options of the run stand on line 3, what follows on line 4.
fn recipe(options: &str, rest: &str) -> String {
    format!(
        "{COSMOLOGY}const IC = ic_gaussian(C, #{{ box_mpc_h: 20, cells: 16, z: 49, seed: 7, baryons_only: true }});\n\
         const RUN = evolve(IC, #{{ z_end: 45, max_level: 1, refine: density_above(1.3), outputs: #{{ at_z: [48, 46] }}, {options} }});\n\
         {rest}\n"
    )
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(place.0.path().join("tmp")).unwrap();
        place
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn comove(&self, recipe: &str, arguments: &[&str]) -> Output {
        std::fs::write(self.path().join("r.rhai"), recipe).unwrap();
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.path()).env("TMPDIR", self.path().join("tmp")).args(arguments);
        command.output().unwrap()
    }

    fn rehearse(&self, recipe: &str) -> Output {
        self.comove(recipe, &["check", "r.rhai", "--rehearse"])
    }

    /// Names in a folder below.
    fn names(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path().join(folder)).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// Members, types, options and fields that no data would make right are errors of the recipe, each with line, column and
/// caret, also behind conditions that hold late; the run does not begin.
#[test]
fn errors_of_the_text_are_found_before_the_run() {
    // members that a closure reads of its argument are found without a rehearsal
    let options = "stop_when: |step| step.z < 46 && { let of = step; of.densty_max > 4 }, \
                   steer: |step| if step.density_max > 1e6 { #{ max_levl: 0 } }, \
                   observe: #{ on_step: |step| { let sums = step.sums; sums.mas }, on_output: |s| s.halos()[0].mas_msun_h }";
    let rest = "const PEAK = measure(\"peak\", RUN, |s| #{ place: s.densest().position, width: 5.0 });\n\
        const WRONG = measure(\"wrong\", RUN, #{ at_z: \"all\" }, |s| { let name = \"densty\"; #{ x: s.field(name).mean() } });\n\
        const TYPE = measure(\"type\", RUN, |s| if s.densest().density { 1 } else { 2 });\n\
        const SPECTRUM = power_spectrum(RUN, #{ at_z: [46, 45] });\n\
        const ALL = combine(\"all\", [RUN, PEAK, SPECTRUM], |r| #{ a: r[0].snapshot(48).densest().density, b: r[2].result.bims[0] });\n\
        const LATER = combine(\"later\", [RUN], |r| #{ a: r[0].snapshot(47).densest().density });\n\
        const CUT = slice(RUN, #{ center: PEAK.plce });\n\
        const MORE = then(PEAK, |peak| [slice(RUN, #{ feild: \"density\" })]);\n\
        const ZOOM = then(PEAK, |peak| evolve(IC, #{ z_end: 60, refine: region(#{ center: peak.place, radius: 2, level: 1 }) }));\n\
        const TABLE = measure(\"table\", RUN, |s| #{ table: #{ colums: [\"a\"], rows: [[1]] } });\n\
        const OWN = evolve(ic_function(#{ box: 1.0, root: 16 }, |x, y, z| #{ density: 1.0, presure: 1.0 }), #{ t_end: 0.1 });\n\
        const RULED = evolve(IC, #{ z_end: 20, stop_when: |step| step.density_max });\n\
        campaign(\"r\", [PEAK, WRONG, TYPE, ALL, LATER, CUT, MORE, ZOOM, TABLE, OWN, RULED])";
    let (place, recipe) = (Place::new(), recipe(options, rest));
    said(&place.comove(&recipe, &["check", "r.rhai"]), 0);
    let told = said(&place.rehearse(&recipe), 3);
    let found = [
        (3, "no property \"densty_max\""),
        (3, "unknown option \"max_levl\", did you mean \"max_level\"?"),
        (3, "no property \"mas\""),
        (3, "no property \"mas_msun_h\""),
        (5, "unknown field \"densty\""),
        (6, "expected a truth value, found a real number"),
        (8, "no property \"bims\""),
        (9, "no output at 47; available: z = 48, 46, 45"),
        (10, "the result has no \"plce\", did you mean \"place\"?"),
        (11, "unknown option \"feild\", did you mean \"field\"?"),
        (12, "z = 60 is not after the start at z = 49"),
        (13, "unknown option \"colums\", did you mean \"columns\"?"),
        (14, "the closure returned a \"presure\""),
        (15, "expected true or false"),
    ];
    for (line, message) in found {
        let mut lines = told.lines();
        let is_it = |text: &&str| text.starts_with(&format!("r.rhai:{line}:")) && text.contains(message);
        assert!(lines.any(|text| is_it(&text)), "line {line}: {message} is not in\n{told}");
        assert!(lines.nth(1).is_some_and(|caret| caret.trim_start_matches([' ', '|']) == "^"), "{told}");
    }
    assert_eq!(told.matches("r.rhai:").count(), found.len(), "{told}");
    let told = said(&place.comove(&recipe, &["run", "r.rhai"]), 3);
    assert!(told.contains("--no-rehearsal") && told.contains("\"densty_max\""), "{told}");
    assert_eq!((place.names("."), place.names("tmp")), (vec!["r.rhai".into(), "tmp".into()], Vec::new()));
}

/// What other data may give is no error: named by `check`, ignored by `run`.
#[test]
fn errors_of_the_data_stop_nothing() {
    let rest = "const FEW = measure(\"few\", RUN, |s| #{ m: s.halos()[40].mass_msun_h });\n\
        const ZERO = measure(\"zero\", RUN, |s| #{ x: 1 / (s.step - s.step) });\n\
        const NONE = measure(\"none\", RUN, |s| { if s.step < 5 { throw \"too early\" } 1 });\n\
        const NOTHING = measure(\"nothing\", RUN, |s| { let found = s.halos().filter(|h| h.mass_msun_h < 0).find(|h| true); found.id });\n\
        const OWN = measure(\"own\", RUN, |s| { let m = #{}; for h in s.halos() { if h.mass_msun_h < 0 { m.big = h } } #{ x: m.big.id } });\n\
        const NAN = measure(\"nan\", RUN, |s| #{ x: (s.a - s.a) / (s.a - s.a) });\n\
        const AFTER = then(FEW, |few| slice(RUN, #{ pixels: few.m }));\n\
        const LEVEL = then(measure(\"steps\", RUN, |s| #{ x: s.step - 2.0 }), |m| evolve(IC, #{ z_end: 48, courant: m.x }));\n\
        const FINE = measure(\"fine\", RUN, |s| #{ x: s.densest().density });\n\
        campaign(\"r\", [FEW, ZERO, NONE, NOTHING, OWN, NAN, AFTER, LEVEL, FINE])";
    let (place, recipe) = (Place::new(), recipe("", rest));
    let told = said(&place.rehearse(&recipe), 0);
    for note in [
        "not rehearsed: r.rhai:4:",
        "not rehearsed: r.rhai:5:",
        "not rehearsed: r.rhai:6:",
        "not rehearsed: r.rhai:7:",
        "not rehearsed: r.rhai:8:",
        "not rehearsed: r.rhai:9:",
        "not rehearsed: then \"then(few)\": it needs measure \"few\"",
        "not rehearsed: r.rhai:11:",
        "rehearsed 2 closures in ",
    ] {
        assert!(told.contains(note), "{note} is not in\n{told}");
    }
    let told = said(&place.comove(&recipe, &["run", "r.rhai", "--only", "fine"]), 0);
    assert!(told.contains("rehearsed 2 closures") && !told.contains("not rehearsed"), "{told}");
    let log = std::fs::read_to_string(place.path().join("r/log.txt")).unwrap();
    assert!(log.contains("not rehearsed: r.rhai:4:"), "{log}");
}

/// The toy shows closures what a run shows them: a halo and a peak of its species, its scalars, levels, box and moments.
#[test]
fn a_toy_is_of_the_run() {
    let look = "fn look(s, finder, levels) {\n\
            let halos = s.halos(#{ finder: finder });\n\
            if halos.is_empty() { throw \"no halo\" }\n\
            if s.levels != levels { throw `${s.levels} levels` }\n\
            let shells = s.profile(halos[0]);\n\
            #{ m: halos[0].overdensities[\"200m\"].mass_msun_h, n: shells.len(), box: s.box_mpc_h, z: s.redshift,\n\
               p: s.power_spectrum().bins[0].power_mpc3_h3, phi: s.field(\"potential\").mean() }\n\
        }\n";
    let of = |name: &str, ic: &str, run: &str, closure: &str| {
        format!(
            "const {name} = evolve(ic_gaussian(C, #{{ box_mpc_h: 20, z: 49, seed: 7, {ic} }}), #{{ {run}, z_end: 0, outputs: #{{ at_z: [3] }} }});\n\
             const M_{name} = measure(\"{name}\", {name}, #{{ at_z: \"all\" }}, {closure});\n"
        )
    };
    let gas = of("GAS", "cells: 256", "max_level: 2, refine: density_above(8)", "|s| look(s, \"peaks\", 3)");
    let both = of(
        "BOTH",
        "cells: 64, dark_matter: true",
        "max_level: 1, refine: particles_above(8), scalars: #{ metals: 0.02 }, \
         stop_when: |step| step.dark_matter.mass < 0 || step.potential.energy > 1e99",
        "|s| { if s.statistics(\"metals\").mass <= 0 { throw \"no metals\" } look(s, \"peaks\", 2); look(s, \"fof\", 2) }",
    );
    let dark = of(
        "DARK",
        "cells: [64, 32, 32], gas: false, dark_matter: true",
        "max_level: 0",
        "|s| { if s.particles(#{ center: [10, 5, 5], radius: 3 }).is_empty() { throw \"no particles\" } look(s, \"fof\", 1) }",
    );
    let one = of("ONE", "cells: 64", "max_level: 0", "|s| look(s, \"peaks\", 1)");
    let checked = "combine(\"moments\", [GAS, M_GAS], |r| {\n\
            if r[0].outputs != [3.0, 0.0] || r[1].all.map(|one| one.z) != [3.0, 0.0] { throw `${r[0].outputs}` }\n\
            if (r[1].all[0].result.z - 3).abs() > 1e-9 || r[1].result.box != 20 { throw `${r[1]}` }\n\
            #{ peaks: r[0].map(|s| s.densest().density) }\n\
        })";
    let own = "const TUBE = evolve(problem(\"shock_tube\"), #{ observe: #{ on_step: |step| step.time } });\n\
        const SAVED = from_snapshot(\"elsewhere.h5\");\n\
        const S = measure(\"saved\", SAVED, |s| #{ d: s.densest().density, f: s.field(\"colour\").mean() });\n\
        const ON = evolve(SAVED, #{ z_end: 0, max_level: 1, refine: density_above(8), stop_when: |step| step.z < 1 });\n";
    let recipe = format!(
        "{COSMOLOGY}{look}{gas}{both}{dark}{one}{own}campaign(\"r\", [M_GAS, M_BOTH, M_DARK, M_ONE, {checked}, TUBE, S, ON])\n"
    );
    let told = said(&Place::new().rehearse(&recipe), 0);
    assert!(told.contains("rehearsed 8 closures in "), "{told}");
    let notes: Vec<&str> = told.lines().filter(|line| line.starts_with("not rehearsed")).collect();
    assert!(notes.len() == 1 && notes[0].contains("unknown field \"colour\""), "{notes:?}");
}

/// Closures print nothing in a rehearsal, files go to a temporary folder, and one success is enough.
#[test]
fn a_rehearsal_is_done_once_and_leaves_nothing() {
    let recipe = format!(
        "{COSMOLOGY}const IC = ic_gaussian(C, #{{ box_mpc_h: 20, cells: 16, z: 49, seed: 7 }});\n\
         const RUN = evolve(IC, #{{ z_end: 48, observe: #{{ on_step: |step| step.z }} }});\n\
         campaign(\"r\", [measure(\"loud\", RUN, |s| {{ print(\"heard\"); #{{ z: s.redshift }} }})])\n"
    );
    let place = Place::new();
    let told = said(&place.rehearse(&recipe), 0);
    assert!(told.contains("rehearsed 2 closures in ") && !told.contains("heard"), "{told}");
    assert_eq!((place.names("."), place.names("tmp")), (vec!["r.rhai".into(), "tmp".into()], Vec::new()));
    let told = said(&place.comove(&recipe, &["run", "r.rhai", "--json"]), 0);
    assert!(
        told.contains("\"event\":\"rehearsed\"") && told.matches(": heard\n").count() == 1 && !told.contains("\nheard"),
        "{told}"
    );
    let rehearsals = || common::events(&place.path().join("r"), "rehearsed").len();
    assert_eq!((rehearsals(), place.names("tmp")), (1, Vec::new()));
    said(&place.comove(&recipe, &["run", "r.rhai", "--force", "loud"]), 0);
    assert_eq!(rehearsals(), 1);
    let other = recipe.replace("s.redshift", "s.redshift + 1");
    said(&place.comove(&other, &["run", "r.rhai", "--no-rehearsal"]), 0);
    assert_eq!(rehearsals(), 1);
    // the campaign is finished
    assert!(!text(&place.comove(&other, &["run", "r.rhai"])).contains("rehearsed"));
    said(&place.comove(&other.replace("+ 1", "+ 2"), &["run", "r.rhai"]), 0);
    assert_eq!(rehearsals(), 2);
    let without = recipe.replace(", observe: #{ on_step: |step| step.z }", "");
    let without = without.replace("measure(\"loud\", RUN, |s| { print(\"heard\"); #{ z: s.redshift } })", "RUN");
    let told = said(&place.comove(&without, &["run", "r.rhai", "--dir", "plain"]), 0);
    assert!(!told.contains("rehearsed"), "{told}");
}

/// A campaign runs where no temporary folder can be made.
#[test]
fn without_a_temporary_folder_there_is_no_rehearsal() {
    let (place, recipe) = (Place::new(), recipe("", "campaign(\"r\", [measure(\"m\", RUN, |s| #{ x: s.a })])"));
    std::fs::remove_dir(place.path().join("tmp")).unwrap();
    said(&place.rehearse(&recipe), 6);
    let told = said(&place.comove(&recipe, &["run", "r.rhai"]), 0);
    assert!(told.contains("not rehearsed: ") && told.contains("done; report: "), "{told}");
}

/// A closure that computes on and on has a few seconds; the others are called nonetheless.
#[test]
fn an_endless_closure_holds_nothing_up() {
    let rest = "campaign(\"r\", [measure(\"long\", RUN, |s| { let x = 0; while x >= 0 { x = 1 - x; } x }),\n\
                measure(\"rest\", RUN, |s| #{ x: s.a })])";
    let told = said(&Place::new().rehearse(&recipe("", rest)), 0);
    assert!(
        told.contains("not rehearsed: r.rhai:4:") && told.contains("the computation exceeds its limit of 5 s"),
        "{told}"
    );
    assert!(told.contains("rehearsed 1 closure in ") && !told.contains("raise time_limit_s"), "{told}");

    // one of a run is called once, not for every record
    let options = "stop_when: |step| { let x = 0; while x >= 0 { x = 1 - x; } true }";
    let began = Instant::now();
    let rest = "campaign(\"r\", [measure(\"rest\", RUN, |s| #{ x: s.a })])";
    let told = said(&Place::new().rehearse(&recipe(options, rest)), 0);
    assert!(told.contains("not rehearsed: r.rhai:3:") && told.contains("rehearsed 1 closure in "), "{told}");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}

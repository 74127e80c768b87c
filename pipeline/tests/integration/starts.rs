//! Runs in non-comoving coordinates that start from a problem or a closure, through the command line.

use assert_cmd::cargo::cargo_bin;
use comove_sim::Snapshot;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A blob that moves along x through a box of two root groups, refined where it is dense.
const BLOB: &str = r#"
const T_END = param("t_end", 0.06, "time at which the run ends");
const WIDTH = 0.01;
fn blob(x) { exp(-x / WIDTH_OF_BLOB) }
const IC = ic_function(#{ box: 2, root: [32, 16, 16], gamma: 1.4 }, |x, y, z| {
    let r2 = (x - 0.7) ** 2.0 + (y - 0.5) ** 2.0 + (z - 0.5) ** 2.0;
    #{ density: 1 + 4 * blob(r2), velocity: [1, 0, 0], pressure: 1 }
});
const RUN = evolve(IC, #{
    t_end: T_END, max_level: 2, refine: density_above([1.5, 2.5]), outputs: #{ at_t: [0.03] },
    checkpoints: #{ at_t: [0.02], every_minutes: 10 },
});
const SEEN = measure("seen", RUN, #{ at_t: 0.03 }, |s| #{ t: s.t, box: s.box, levels: s.levels, peak: s.densest().density });
campaign("blob", [RUN, SEEN, refinement_ratio(RUN), density_pdf(RUN)])
"#;

/// A folder with recipes in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.path().join(name), text).unwrap();
    }

    /// Runs a command: its exit code and what it said.
    fn comove(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = Command::new(cargo_bin("comove")).current_dir(self.0.path()).args(arguments).output().unwrap();
        let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let (code, said) = self.comove(arguments);
        assert_eq!(code, Some(0), "{said}");
        said
    }

    /// The folder of the one stage whose name starts so.
    fn stage(&self, campaign: &str, kind: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.0.path().join(campaign)).unwrap().map(|e| e.unwrap().path());
        let mut found = entries.filter(|p| p.is_dir() && name(p).starts_with(kind));
        found.next().unwrap_or_else(|| panic!("no stage {kind}"))
    }

    /// The newest checkpoint of a run.
    fn last_checkpoint(&self, campaign: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.stage(campaign, "evolve")).unwrap().map(|e| e.unwrap().path());
        entries.filter(|p| name(p).starts_with("checkpoint_")).max().expect("a checkpoint")
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Everything shows t; a later end continues the run with the same bits as a run that goes there at once; a checkpoint
/// is continued elsewhere, with fewer levels only as another trajectory.
#[test]
fn a_closure_in_plain_coordinates() {
    let place = Place::new();
    let recipe = BLOB.replace("WIDTH_OF_BLOB", "0.01").replace("const WIDTH = 0.01;\n", "");
    place.write("blob.rhai", &recipe);
    let plan = place.ok(&["plan", "blob.rhai"]);
    assert!(plan.contains("gas from a closure, t = 0 to 0.06, root 32 × 16 × 16"), "{plan}");
    assert!(plan.contains("outputs at t = 0.03, 0.06"), "{plan}");
    let said = place.ok(&["run", "blob.rhai", "--threads", "2"]);
    assert!(said.contains("wrote output_t0.03.h5 (t = 0.03,"), "{said}");
    let run = place.stage("blob", "evolve");
    let output = Snapshot::read(&run.join("output_t0.03.h5")).unwrap();
    assert_eq!((output.header.time, output.header.a, output.header.gamma), (0.03, 1.0, 1.4));
    assert_eq!(output.state.tree.level_count(), 3);
    let steps = std::fs::read_to_string(run.join("steps.jsonl")).unwrap();
    assert!(!steps.contains("\"z\":"), "{steps}");
    let seen = json(&place.stage("blob", "measure-seen").join("result.json"));
    assert_eq!((&seen[0]["t"], &seen[0]["result"]["box"]), (&0.03.into(), &2.0.into()), "{seen}");
    let shares = std::fs::read_to_string(place.stage("blob", "refinement_ratio").join("refinement_ratio.csv")).unwrap();
    assert!(shares.lines().nth(1).unwrap().starts_with("NaN,1.0,0.03,"), "{shares}");

    let extended = place.ok(&["run", "blob.rhai", "--threads", "1", "-p", "t_end=0.08"]);
    assert!(extended.contains("continuing from checkpoint_"), "{extended}");
    place.ok(&["run", "blob.rhai", "--dir", "direct", "-p", "t_end=0.08"]);
    let [x, y] = ["blob", "direct"].map(|campaign| Snapshot::read(&place.last_checkpoint(campaign)).unwrap());
    assert!(x.header.time == y.header.time && x.state.tree == y.state.tree && x.state.fluid == y.state.fluid);

    let fewer = |options: &str| {
        format!(
            "campaign(\"fewer\", [evolve(from_snapshot(\"{}\"), #{{ {options} gravity: false, max_level: 1, \
             refine: density_above(1.5) }})])",
            place.last_checkpoint("direct").display()
        )
    };
    for (options, message) in [
        ("z_end: 0,", "the snapshot is in non-comoving coordinates; use t_end and at_t instead of z_end and at_z"),
        (
            "t_end: 0.09, gamma: 1.4,",
            "the snapshot has level 2, and the run's max_level is 1; raise max_level, or set branch",
        ),
    ] {
        place.write("fewer.rhai", &fewer(options));
        let (code, said) = place.comove(&["run", "fewer.rhai"]);
        assert!(code == Some(4) && said.contains(message), "{said}");
    }
    place.write("fewer.rhai", &fewer("t_end: 0.09, gamma: 1.4, branch: true,"));
    let said = place.ok(&["run", "fewer.rhai"]);
    assert!(said.contains("above level 1; the cells below them have their means"), "{said}");
}

/// A closure that fails, or gives what no gas can be, is told where: recipe, line, cell.
#[test]
fn a_closure_that_gives_no_gas() {
    let place = Place::new();
    let cell = "for the cell 0.0625 wide at (0.03125, 0.03125, 0.03125)";
    for (gas, message) in [
        ("1", format!("2:3: ic_function: the closure returned a whole number, not a map #{{ density, … }}, {cell}")),
        ("#{ pressure: 1 }", format!("2:3: ic_function: the closure returned no density, {cell}")),
        ("#{ density: 1 }", format!("2:3: ic_function: the closure returned no pressure, {cell}")),
        (
            "#{ density: -x, pressure: 1 }",
            format!("the closure returned density = -0.03125: must be positive and finite, {cell}"),
        ),
        (
            "#{ density: 1, pressure: 1, temp: 3 }",
            format!("returned a \"temp\"; known are density, velocity and pressure, {cell}"),
        ),
        (
            "#{ density: 1, pressure: 1, velocity: [0, 0] }",
            format!("returned a velocity of 2 numbers, not three, {cell}"),
        ),
        ("#{ density: 1, pressure: 1 / (0 * 1) }", format!("Division by zero: 1 / 0 ({cell})")),
    ] {
        let recipe = format!(
            "campaign(\"bad\", [evolve(ic_function(#{{ box: 1, root: 16 }},\n  |x, y, z| {gas}), #{{ t_end: 1 }})])"
        );
        place.write("bad.rhai", &recipe);
        let (code, said) = place.comove(&["run", "bad.rhai"]);
        assert!(code == Some(3) && said.contains(&message), "{said}\n{message}");
    }
}

/// The same gas from a comoving closure in km/s and K as in code units.
#[test]
fn a_comoving_closure_speaks_in_units() {
    let place = Place::new();
    let recipe = |gas: &str| {
        format!(
            "const C = cosmology(#{{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 }});
const IC = ic_function(#{{ cosmology: C, box_mpc_h: 10, root: 16, z: 9 }}, |x, y, z| {gas});
campaign(\"u\", [evolve(IC, #{{ z_end: 8.9 }})])"
        )
    };
    // a = 0.1: 100 km/s is a code velocity of 0.1; 1000 K is P̃/ρ̃ = 0.1² k_B T/(μ m_H (100 km/s)²)
    let sound = 1e-2 * 1.380_649e-16 * 1000.0 / (1.22 * 1.673_557_5e-24 * 1e14);
    for (name, gas) in [
        ("code", format!("#{{ density: 1, velocity: [0.1, 0, 0], pressure: {sound:?} }}")),
        ("units", "#{ density: 1, velocity_km_s: [100, 0, 0], temperature_k: 1000 }".into()),
    ] {
        place.write(&format!("{name}.rhai"), &recipe(&gas));
        place.ok(&["run", &format!("{name}.rhai")]);
    }
    let [x, y] = ["code", "units"].map(|c| Snapshot::read(&place.last_checkpoint(c)).unwrap());
    let worst = x.state.fluid.iter().zip(&y.state.fluid).map(|(x, y)| (x - y).abs() / x.abs().max(1e-12));
    assert!(worst.fold(0.0, f64::max) < 1e-5);
}

/// The record of a comparison holds what a table of accuracy needs, and its numbers are those of the files.
#[test]
fn a_problem_is_compared_with_its_solution() {
    let place = Place::new();
    place.write(
        "wave.rhai",
        "const WAVE = problem(\"acoustic_wave\", #{ root: 16, amplitude: 1e-3 });
const RUN = evolve(WAVE, #{ t_end: 100, outputs: #{ at_t: [50] } });
campaign(\"wave\", [compare(RUN, #{ at_t: \"all\" })])",
    );
    place.ok(&["run", "wave.rhai"]);
    let folder = place.stage("wave", "compare");
    let [early, late] = ["50", "100"].map(|t| json(&folder.join(format!("compare_t{t}.json"))));
    assert_eq!(late["problem"], "acoustic_wave");
    assert_eq!((&late["options"]["root"], &late["run"]["precision"]), (&16.into(), &"double".into()));
    assert_eq!(
        (&late["root_cells"][0], &late["time"], &late["levels"][0]["volume_fraction"]),
        (&16.into(), &100.0.into(), &1.0.into())
    );
    let l1 = |record: &serde_json::Value| record["in_box"]["density"]["l1"].as_f64().unwrap();
    assert!(l1(&early) > 1e-7 && l1(&early) < l1(&late) && l1(&late) < 3e-4, "{} {}", l1(&early), l1(&late));
    assert_eq!(late["points"].as_array().unwrap().len(), 16);
    let table = std::fs::read_to_string(folder.join("compare_t100.csv")).unwrap();
    assert_eq!(table.lines().count(), 17);
}

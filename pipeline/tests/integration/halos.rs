//! Catalogues of halos as campaigns write them: species, columns, profiles, and names of outputs close in time.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::said;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Dark matter alone that forms a few halos of some ten particles each.
const MADE: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 8, cells: 16, z: 99, seed: 1, gas: false, dark_matter: true });
const RUN = evolve(IC, #{ z_end: 1, max_delta_a: 0.05, outputs: #{ at_z: [98] } });
const HALOS = halos(RUN, #{ at_z: "all", min_particles: 8 });
campaign("made", [HALOS, mass_function(RUN), mass_function(HALOS, #{ definition: "fof", min_particles: 8 })])
"#;

/// Its initial condition from the file.
const READ: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_load(C, "mesh.h5", #{ box_mpc_h: 8, cells: 16, z: 99, format: "comove_ic" });
const RUN = evolve(IC, #{ z_end: 1, max_delta_a: 0.05 });
"#;

fn comove(folder: &Path, arguments: &[&str], code: i32) -> String {
    said(&Command::new(cargo_bin("comove")).current_dir(folder).args(arguments).output().unwrap(), code)
}

/// Runs a recipe under this name.
fn run(folder: &Path, name: &str, recipe: &str) -> String {
    let file = format!("{name}.rhai");
    fs::write(folder.join(&file), recipe).unwrap();
    comove(folder, &["run", &file], 0)
}

/// The folders of stages of a campaign.
fn stages(campaign: &Path, label: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(campaign).unwrap().map(|entry| entry.unwrap().path());
    let of_label = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(label);
    entries.filter(of_label).collect()
}

fn stage(campaign: &Path, label: &str) -> PathBuf {
    let [stage] = stages(campaign, label).try_into().unwrap();
    stage
}

/// Files of a stage that end so, in the order of their names.
fn files(stage: &Path, end: &str) -> Vec<String> {
    let entries = fs::read_dir(stage).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut files: Vec<String> = entries.filter(|name| name.ends_with(end)).collect();
    files.sort();
    files
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Friends of friends are the default, also of a file's dark matter, whose catalogue is that of the generated one. Tables
/// have the same columns with and without halos, and halos narrower than a cell are only without a profile.
#[test]
fn dark_matter_alone_generated_and_loaded() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let log = run(folder, "made", MADE);
    let all = stages(&folder.join("made"), "halos-");
    assert_eq!(all.len(), 2, "mass_function(RUN) finds its own");
    let is_whole = |path: &&PathBuf| path.join("halos_z98.csv").exists();
    let [whole, own] = [all.iter().find(is_whole).unwrap(), all.iter().find(|path| !is_whole(path)).unwrap()];
    assert_eq!(files(own, ".csv"), ["halos_z1.csv"], "mass_function draws no profile");
    let [early, late] = ["halos_z98.csv", "halos_z1.csv"].map(|file| fs::read_to_string(whole.join(file)).unwrap());
    let columns = |table: &str| table.lines().next().unwrap().to_owned();
    assert_eq!((columns(&early), early.lines().count()), (columns(&late), 1));
    assert_eq!(columns(&late).split(',').count(), 29);
    let halos = read(&whole.join("halos_z1.json"))["halos"].as_array().unwrap().clone();
    let profiles = files(whole, ".csv").iter().filter(|file| file.starts_with("profile_z1_halo")).count();
    let left_out = log.matches("z = 1: no profile of halo ").count();
    assert!(profiles > 0 && left_out > 0 && profiles + left_out == halos.len().min(5), "{profiles} {left_out}\n{log}");
    assert!(!log.contains("_mpc_h"), "no option is named that nobody set: {log}");
    assert!(
        fs::read_to_string(whole.join("section.json")).unwrap().contains("not exceed the width of its central cell")
    );

    fs::copy(stage(&folder.join("made"), "ic_gaussian-").join("initial_condition.h5"), folder.join("mesh.h5")).unwrap();
    let last = "campaign(\"read\", [halos(RUN, #{ finder: \"fof\", min_particles: 8, profiles: 0 }), mass_function(RUN), \
                measure(\"n\", RUN, |s| s.halos(#{ min_particles: 8 }).len())])";
    run(folder, "read", &format!("{READ}{last}"));
    let catalogues = stages(&folder.join("read"), "halos-").into_iter().map(|path| path.join("halos_z1.csv"));
    assert!(catalogues.map(|file| fs::read_to_string(file).unwrap()).any(|table| table == late));
    let measured = read(&stage(&folder.join("read"), "measure-n-").join("result.json"));
    assert_eq!(measured[0]["result"], json!(halos.len()));
    // what the file shows is refused before anything runs
    for (stage, message) in [
        ("halos(RUN, #{ finder: \"peaks\" })", "need gas, and the run has none; use finder: \"fof\""),
        ("halos(RUN, #{ delta: 300 })", "need gas, and the run has none; use finder: \"fof\""),
        ("density_pdf(RUN)", "the run has none"),
        (
            "halos(RUN, #{ profile: #{ r_min_mpc_h: 2, r_max_mpc_h: 1 } })",
            "r_max_mpc_h = 1: must exceed r_min_mpc_h = 2",
        ),
    ] {
        fs::write(folder.join("wrong.rhai"), format!("{READ}campaign(\"w\", [{stage}])")).unwrap();
        let text = comove(folder, &["check", "wrong.rhai"], 3);
        assert!(text.contains(message), "{stage}: {text}");
    }
    // a file that is not there yet is looked at when the stage runs
    fs::remove_file(folder.join("mesh.h5")).unwrap();
    fs::write(folder.join("later.rhai"), format!("{READ}campaign(\"l\", [halos(RUN, #{{ finder: \"fof\" }})])"))
        .unwrap();
    assert!(comove(folder, &["check", "later.rhai"], 0).contains("3 stages"));
}

/// Gas from a file has no friends, which is known beforehand; its default is density peaks, and an empty catalogue counts.
#[test]
fn gas_from_a_file() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let (gas, _) = MADE.split_once("const RUN").unwrap();
    run(folder, "made", &(gas.replace("gas: false, dark_matter: true", "gas: true") + "campaign(\"made\", [IC])"));
    fs::copy(stage(&folder.join("made"), "ic_gaussian-").join("initial_condition.h5"), folder.join("mesh.h5")).unwrap();
    let loaded = READ.replace("z_end: 1,", "z_end: 97,");
    fs::write(folder.join("wrong.rhai"), format!("{loaded}campaign(\"w\", [mass_function(RUN)])")).unwrap();
    assert!(comove(folder, &["check", "wrong.rhai"], 3).contains("friends of friends need dark matter"));
    run(folder, "read", &format!("{loaded}campaign(\"read\", [mass_function(halos(RUN))])"));
    let table = fs::read_to_string(stage(&folder.join("read"), "halos-").join("halos_z97.csv")).unwrap();
    assert!(table.contains("temperature_k") && table.lines().count() == 1 && table.contains("mass_200m"), "{table}");
    let counted = stage(&folder.join("read"), "mass_function-").join("mass_function_z97.csv");
    assert_eq!(fs::read_to_string(counted).unwrap().lines().count(), 1);
}

/// The species of a run are those of its own initial condition, not of one that its options were measured on.
#[test]
fn species_of_a_run_with_measured_options() {
    let place = tempfile::tempdir().unwrap();
    let recipe = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const GAS = evolve(ic_gaussian(C, #{ box_mpc_h: 8, cells: 16, z: 99, seed: 1 }), #{ z_end: 98 });
const M = measure("m", GAS, |s| #{ seed: 2 });
const RUN = evolve(ic_gaussian(C, #{ box_mpc_h: 8, cells: 16, z: 99, seed: M.seed, dark_matter: true }), #{ z_end: 98 });
campaign("s", [halos(RUN, #{ finder: "fof" }), mass_function(RUN)])
"#;
    fs::write(place.path().join("s.rhai"), recipe).unwrap();
    comove(place.path(), &["check", "s.rhai"], 0);
}

/// Outputs that differ in the fifth decimal of z have their own tables, figures and results; so have times in the seventh
/// digit.
#[test]
fn close_outputs_are_told_apart() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    let recipe = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 25, cells: 16, z: 99, seed: 1, dark_matter: true });
const RUN = evolve(IC, #{ z_end: 97.1234, outputs: #{ at_z: [98.00001, 98.00004] } });
const P = power_spectrum(RUN, #{ at_z: "all" });
const SEEN = combine("seen", [P, RUN], |of| #{
    z: of[0].all.map(|one| one.z), redshift: of[0].all.map(|one| one.result.redshift), outputs: of[1].outputs,
    power: of[0].all.map(|one| one.result.bins[0].power_mpc3_h3), one: of[1].snapshot(98.00001).redshift,
});
const M = measure("m", RUN, #{ at_z: "all" }, |s| #{ z: s.redshift, table: #{ columns: ["z"], rows: [[s.redshift]] } });
const HALOS = halos(RUN, #{ at_z: "all" });
campaign("close", [SEEN, M, HALOS, mass_function(HALOS), density_pdf(RUN, #{ at_z: "all" }),
    slice(RUN, #{ at_z: "all", pixels: 16 })])
"#;
    run(folder, "close", recipe);
    let close = folder.join("close");
    let tags = ["z97.1234", "z98.00001", "z98.00004"];
    for (label, name) in [
        ("power_spectrum-", "power_spectrum"),
        ("measure-m-", "table"),
        ("halos-", "halos"),
        ("mass_function-", "mass_function"),
        ("density_pdf-", "density_pdf"),
        ("slice-", "slice_density"),
    ] {
        assert_eq!(files(&stage(&close, label), ".csv"), tags.map(|tag| format!("{name}_{tag}.csv")), "{label}");
    }
    assert_eq!(files(&stage(&close, "slice-"), ".png").len(), 3);
    let seen = &read(&stage(&close, "combine-seen-").join("result.json"))[0]["result"];
    assert_eq!(seen["z"], json!([98.00004, 98.00001, 97.1234]));
    assert_eq!((&seen["outputs"], &seen["one"]), (&seen["z"], &seen["redshift"][1]));
    assert!((seen["redshift"][0].as_f64().unwrap() - 98.00004).abs() < 1e-9, "{seen}");
    assert!(seen["power"][0].as_f64() < seen["power"][1].as_f64(), "{seen}");
    let measured = read(&stage(&close, "measure-m-").join("result.json"));
    assert_eq!([0, 1, 2].map(|n| measured[n]["z"].as_f64().unwrap()), [98.00004, 98.00001, 97.1234]);

    let recipe = "const RUN = evolve(problem(\"shock_tube\", #{ root: 16, levels: 0, end: 2 }), \
                  #{ outputs: #{ at_t: [1.000001, 1.000002, 1.000003] } });\n\
                  campaign(\"plain\", [compare(RUN, #{ at_t: \"all\" }), density_pdf(RUN, #{ at_t: \"all\" })])";
    run(folder, "plain", recipe);
    for label in ["compare", "density_pdf"] {
        let tables = ["t1.000001", "t1.000002", "t1.000003", "t2"].map(|tag| format!("{label}_{tag}.csv"));
        assert_eq!(files(&stage(&folder.join("plain"), label), ".csv"), tables);
    }
}

/// The heaviest halos of both finders are the same ones in quickstarts of five seeds: of the ten with the greatest M200m at
/// least nine have one of the other finder with its centre within two finest cells and M200m within 10%. With
/// `COMOVE_SLOW_TESTS=1`; `COMOVE_Z_END` sets another redshift than 0.
#[test]
fn finders_agree_on_the_heaviest() {
    if std::env::var_os("COMOVE_SLOW_TESTS").is_none() {
        return;
    }
    let z_end = std::env::var("COMOVE_Z_END").unwrap_or("0".into());
    let quickstart = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../recipes/quickstart.rhai")).unwrap();
    let (run_alone, _) = quickstart.split_once("// What is made of it").unwrap();
    assert!(run_alone.contains("seed: 42"));
    let place = tempfile::tempdir().unwrap();
    for seed in [42, 1, 2, 3, 4] {
        let both = "campaign(\"q\", [\"fof\", \"peaks\"].map(|finder| halos(RUN, #{ finder: finder, profiles: 0 })))";
        let (name, file) = (format!("q{seed}"), format!("q{seed}.rhai"));
        fs::write(place.path().join(&file), run_alone.replace("seed: 42", &format!("seed: {seed}")) + both).unwrap();
        comove(place.path(), &["run", &file, "-p", "root=32", "-p", &format!("z_end={z_end}")], 0);
        let catalogues = stages(&place.path().join(&name), "halos-").into_iter();
        let catalogues = catalogues.map(|stage| read(&stage.join(format!("halos_z{z_end}.json"))));
        let [one, other] = catalogues.collect::<Vec<_>>().try_into().unwrap();
        let length = one["box_mpc_h"][0].as_f64().unwrap();
        let [one, other] = [one, other].map(|catalogue| spheres(&catalogue));
        let agree = |x: &Sphere, y: &Sphere| {
            let offset = |a: usize| {
                let d = x.centre[a] - y.centre[a];
                (d - length * (d / length).round()).powi(2)
            };
            let distance = (0..3).map(offset).sum::<f64>().sqrt();
            distance <= 2.0 * length / f64::from(32 << 2) && (x.mass / y.mass - 1.0).abs() < 0.1
        };
        let matched =
            |ten: &[Sphere], all: &[Sphere]| ten[..10].iter().filter(|x| all.iter().any(|y| agree(x, y))).count();
        let matched = [matched(&one, &other), matched(&other, &one)];
        println!("seed {seed}: {matched:?} of ten");
        assert!(matched.iter().all(|count| *count >= 9), "seed {seed}: {matched:?}");
    }
}

struct Sphere {
    centre: [f64; 3],
    mass: f64,
}

/// The spheres of 200m of a catalogue, the heaviest first.
fn spheres(catalogue: &Value) -> Vec<Sphere> {
    let sphere = |halo: &Value| {
        let mass = halo["overdensities"]["200m"]["mass_msun_h"].as_f64()?;
        Some(Sphere { centre: [0, 1, 2].map(|a| halo["position_mpc_h"][a].as_f64().unwrap()), mass })
    };
    let mut spheres: Vec<Sphere> = catalogue["halos"].as_array().unwrap().iter().filter_map(sphere).collect();
    spheres.sort_by(|x, y| y.mass.total_cmp(&x.mass));
    spheres
}

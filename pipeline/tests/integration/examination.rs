//! Examination of initial conditions: in reports, as a stage, of a bare file, and the refusal of wrong files.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{lines, said};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const COSMOLOGY: &str = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\n";
const GENERATED: &str = "ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 5, dark_matter: true })";

struct Place(tempfile::TempDir);

impl Place {
    fn comove(&self, arguments: &[&str], code: i32) -> String {
        said(&Command::new(cargo_bin("comove")).current_dir(self.0.path()).args(arguments).output().unwrap(), code)
    }

    /// Output of a command on a campaign with the examination of an initial condition.
    fn campaign(&self, command: &str, name: &str, initial: &str, code: i32) -> String {
        let text = format!("{COSMOLOGY}const IC = {initial};\ncampaign(\"{name}\", [ic_report(IC)])\n");
        fs::write(self.0.path().join(format!("{name}.rhai")), text).unwrap();
        self.comove(&[command, &format!("{name}.rhai")], code)
    }

    /// A file of the only stage of this kind.
    fn made(&self, name: &str, stage: &str, file: &str) -> PathBuf {
        let stages = fs::read_dir(self.0.path().join(name)).unwrap().map(|entry| entry.unwrap().path());
        let found: Vec<PathBuf> =
            stages.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(stage)).collect();
        assert_eq!(found.len(), 1, "{stage} {found:?}");
        found[0].join(file)
    }

    fn section(&self, name: &str, stage: &str) -> Value {
        serde_json::from_slice(&fs::read(self.made(name, stage, "section.json")).unwrap()).unwrap()
    }
}

/// Multiplies the velocities of a file.
fn speed_up(path: &Path, factor: f64) {
    let file = hdf5::File::open_rw(path).unwrap();
    for name in ["velocity_x", "velocity_y", "velocity_z", "momentum_x", "momentum_y", "momentum_z"] {
        let dataset = file.dataset(name).unwrap();
        let values: Vec<f64> = dataset.read_raw::<f64>().unwrap().iter().map(|value| value * factor).collect();
        dataset.write_raw(&values).unwrap();
    }
    file.close().unwrap();
}

#[test]
fn initial_conditions_are_examined() {
    let place = Place(tempfile::tempdir().unwrap());
    place.campaign("run", "right", GENERATED, 0);
    let section = place.section("right", "ic_report");
    let rows = section["tables"][0]["rows"].as_array().unwrap();
    assert!(rows.len() > 15 && rows.iter().all(|row| row[3] == "good"), "{section}");
    let images = section["images"].as_array().unwrap();
    assert!(images.len() == 1 && place.made("right", "ic_report", "ic_report.png").exists(), "{section}");
    let page = fs::read_to_string(place.0.path().join("right/report.html")).unwrap();
    assert!(page.contains("Examination of the initial condition") && page.contains("place of gas"), "the report");

    // a file with velocities without a, refused and trusted
    let file = place.0.path().join("mesh.h5");
    fs::copy(place.made("right", "ic_gaussian", "initial_condition.h5"), &file).unwrap();
    let inspected = place.comove(&["inspect", "mesh.h5", "--cosmology", "sigma8=0.9,n_s=1"], 0);
    assert!(inspected.contains("h = 0.7 (file)") && inspected.contains("sigma8 = 0.9 (given)"), "{inspected}");
    assert!(!inspected.contains("note:") && !inspected.contains("wrong"), "{inspected}");
    speed_up(&file, 50.0);
    let load = |options: &str| format!("ic_load(C, \"mesh.h5\", #{{ box_mpc_h: 20, cells: 16, z: 49{options} }})");
    let why = "velocities of dark matter are 50";
    let refused = place.campaign("run", "wrong", &load(""), 4);
    let cause = "they look like v_pec in 100 km/s; expected a v_pec/(100 km/s)";
    assert!(refused.contains(why) && refused.contains(cause) && refused.contains("set trust: \"reason\""), "{refused}");
    let empty = place.campaign("check", "empty", &load(", trust: \"\""), 3);
    assert!(empty.contains("trust = \"\": must be the reason"), "{empty}");
    let trusted = place.campaign("run", "trusted", &load(", trust: \"a fast stream\""), 0);
    assert!(trusted.contains(why) && trusted.contains("(trusted: a fast stream)"), "{trusted}");
    let ledger = lines(&place.0.path().join("trusted/ledger.jsonl"));
    assert!(ledger.iter().any(|event| event.to_string().contains("{\"trust\":\"a fast stream\"}")), "{ledger:?}");
    let section = place.section("trusted", "ic_load").to_string();
    assert!(section.contains("a fast stream") && section.contains(cause), "{section}");
    let section = place.section("trusted", "ic_report").to_string();
    assert!(section.contains(cause) && section.contains("\"wrong\""), "{section}");

    let untrusted = place.campaign("run", "trusted", &load(""), 4);
    assert!(untrusted.contains(why), "{untrusted}");
    let not_a_number = place.comove(&["inspect", "mesh.h5", "--redshift", "nan"], 2);
    assert!(not_a_number.contains("--redshift NaN: expected a number"), "{not_a_number}");

    let inspected = place.comove(&["inspect", "mesh.h5"], 4);
    assert!(inspected.contains("note: sigma8 is not known") && inspected.contains(cause), "{inspected}");
    assert!(inspected.contains("findings are wrong"), "{inspected}");
    let unknown = place.comove(&["inspect", "mesh.h5", "--cosmology", "omega=0.3"], 2);
    assert!(unknown.contains("--cosmology omega=0.3: unknown name; expected h,"), "{unknown}");
    let foreign = place.comove(&["inspect", "right.rhai", "--redshift", "3"], 4);
    assert!(foreign.contains("does not begin as HDF5 files do; expected comove_ic, Gadget or SWIFT"), "{foreign}");
    let formula = place.campaign("check", "formula", "problem(\"sedov\")", 3);
    assert!(formula.contains("ic_report: needs a mesh or particles of ic_gaussian or ic_load"), "{formula}");
}

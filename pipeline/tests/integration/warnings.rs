//! Inputs that are right in form but probably not meant so: `check` and `run` warn with the line, or refuse them.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::said;
use comove_ic::{LinearPower, PowerSource};
use comove_sim::Cosmology;
use hdf5::types::{FixedAscii, FloatSize, TypeDescriptor};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A recipe with these options of `ic_gaussian` in its second line.
fn recipe(options: &str) -> String {
    format!(
        "const C = cosmology(#{{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 }});\n\
         const IC = ic_gaussian(C, #{{ box_mpc_h: 20, cells: 16, z: 49, seed: 5{options} }});\n\
         campaign(\"x\", [evolve(IC, #{{ z_end: 48.5 }})])\n"
    )
}

fn comove(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(cargo_bin("comove")).current_dir(folder).args(arguments).output().unwrap()
}

/// A folder, and what `comove COMMAND x.rhai` says of a recipe there with this exit code.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn said(&self, command: &str, text: &str, code: i32) -> String {
        fs::write(self.0.path().join("x.rhai"), text).unwrap();
        said(&comove(self.0.path(), &[command, "x.rhai"]), code)
    }

    /// The file in the folder of a stage of this kind.
    fn made(&self, stage: &str, file: &str) -> PathBuf {
        let stages = fs::read_dir(self.0.path().join("x")).unwrap().map(|entry| entry.unwrap().path());
        let mut found = stages.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(stage));
        found.next().unwrap().join(file)
    }
}

/// Gas that has all matter is stated to be meant, or warned of; that decides no result.
#[test]
fn gas_of_all_matter_is_stated() {
    let place = Place::new();
    let warning = "warning: x.rhai:2:12: ic_gaussian: the gas has all of omega_m = 0.3, of which omega_b = 0.045 is baryons: \
                   set dark_matter: true, with gas: false for dark matter alone, or baryons_only: true";
    let found = place.said("check", &recipe(""), 0);
    assert!(found.contains(warning) && found.contains("    2 | const IC = ic_gaussian("), "{found}");
    for stated in [", dark_matter: true", ", gas: false, dark_matter: true", ", baryons_only: true"] {
        assert!(!place.said("check", &recipe(stated), 0).contains("warning"), "{stated}");
    }
    let of_gas = recipe("").replace("omega_b: 0.045", "omega_b: 0.3");
    assert!(!place.said("check", &of_gas, 0).contains("warning"));
    for wrong in [", baryons_only: true, dark_matter: true", ", baryons_only: true, gas: false, dark_matter: true"] {
        assert!(place.said("check", &recipe(wrong), 3).contains("baryons_only: true excludes dark matter"), "{wrong}");
    }

    let found = place.said("run", &recipe(""), 0);
    assert_eq!(found.matches("the gas has all of omega_m").count(), 1, "{found}");
    let found = place.said("run", &recipe(", baryons_only: true"), 0);
    assert!(!found.contains("omega_m") && found.matches("done before").count() == 2, "{found}");

    // so is that of a file, which is known when it is read
    fs::copy(place.made("ic_gaussian", "initial_condition.h5"), place.0.path().join("mesh.h5")).unwrap();
    let load = |options: &str| {
        let start = recipe("").find("ic_gaussian").unwrap();
        let end = recipe("").find(";\ncampaign").unwrap();
        let load = format!("ic_load(C, \"mesh.h5\", #{{ box_mpc_h: 20, cells: 16, z: 49{options} }})");
        format!("{}{load}{}", &recipe("")[..start], &recipe("")[end..])
    };
    let found = place.said("run", &load(", format: \"comove_ic\""), 0);
    assert_eq!(found.matches("the gas has all of omega_m").count(), 1, "{found}");
    let found = place.said("run", &load(", format: \"comove_ic\", baryons_only: true"), 0);
    assert!(!found.contains("omega_m") && found.matches("done before").count() == 2, "{found}");
    let um_ic = ", format: #{ um_ic: #{ order: \"vzyx\" } }";
    assert!(place.said("check", &load(um_ic), 0).contains("warning: x.rhai:2:12: ic_load: the gas has all"));
    assert!(!place.said("check", &load(&format!("{um_ic}, baryons_only: true")), 0).contains("warning"));
}

/// A warning of a call whose options are known late is in the log of the run, though the rehearsal has made that call before.
#[test]
fn late_warnings_outlive_the_rehearsal() {
    for last in [
        "then(M, |m| evolve(ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 6 }), #{ z_end: 48.5 }))",
        "evolve(ic_gaussian(C, #{ box_mpc_h: M.box, cells: 16, z: 49, seed: 6 }), #{ z_end: 48.5 })",
    ] {
        let place = Place::new();
        let measured = format!(
            "const M = measure(\"m\", evolve(IC, #{{ z_end: 48.5 }}), |s| #{{ box: s.box_mpc_h }});\ncampaign(\"x\", [{last}])"
        );
        let recipe = recipe(", baryons_only: true");
        let text = recipe.replace("campaign(\"x\", [evolve(IC, #{ z_end: 48.5 })])", &measured);
        assert!(!place.said("check", &text, 0).contains("the gas has all of omega_m"), "{last}");
        let found = place.said("run", &text, 0);
        assert!(found.contains("rehearsed "), "{found}");
        assert_eq!(found.matches("the gas has all of omega_m").count(), 1, "{found}");
    }
}

/// Tables are read by `check`: a wrong row is named, other units are warned of.
#[test]
fn tables_are_checked() {
    let cosmology = Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0);
    let power = LinearPower::new(&PowerSource::EisensteinHu, &cosmology).unwrap();
    let rows = (0..=100).map(|n| 1e-5 * 1e7f64.powf(f64::from(n) / 100.0));
    let per_mpc: String = rows.map(|k| format!("{:e} {:e}\n", 0.7 * k, power.at(k) / 0.343)).collect();
    let place = Place::new();
    let table = |text: &str| fs::write(place.0.path().join("table.dat"), text).unwrap();
    let of_table = recipe(", baryons_only: true, power: #{ camb_power: \"table.dat\" }");
    let check = |code| place.said("check", &of_table, code);
    // a file that is not there may be made before the run
    assert!(!check(0).contains("warning"));
    table(&per_mpc);
    let found = check(0);
    let parts = ["x.rhai:2:12", "table.dat", "of the table is 1.1", "k in 1/Mpc and P in Mpc³ instead of h/Mpc"];
    assert!(parts.iter().all(|part| found.contains(part)), "{found}");
    assert_eq!(place.said("run", &of_table, 0).matches("k in 1/Mpc and P in Mpc³").count(), 1);
    table(&format!("# k [1/Mpc] P [Mpc^3]\n{per_mpc}"));
    assert!(check(0).contains("table.dat: converted from 1/Mpc and Mpc³ (σ8 is then 0.900), as line 1 says"));
    table(&format!("{per_mpc}71 many\n"));
    let found = check(4);
    assert!(found.contains("table.dat, line 102: \"many\" is not a number, in \"71 many\""), "{found}");
}

/// Writes the real datasets below a group anew, compressed, with their digests.
fn compress(file: &Path, group: &str) {
    let file = hdf5::File::open_rw(file).unwrap();
    let group = file.group(group).unwrap();
    let mut compressed = 0;
    for name in group.member_names().unwrap() {
        let Ok(old) = group.dataset(&name) else { continue };
        let single = match old.dtype().unwrap().to_descriptor().unwrap() {
            TypeDescriptor::Float(size) => size == FloatSize::U4,
            _ => continue,
        };
        let digest = old.attr("blake3").ok().map(|digest| digest.read_scalar::<FixedAscii<64>>().unwrap());
        let shape = old.shape();
        let (f32s, f64s) = (old.read_raw::<f32>().unwrap(), old.read_raw::<f64>().unwrap());
        group.unlink(&name).unwrap();
        let new = match single {
            true => group.new_dataset::<f32>().shape(&shape[..]).chunk(&shape[..]).deflate(9).create(&*name),
            false => group.new_dataset::<f64>().shape(&shape[..]).chunk(&shape[..]).deflate(9).create(&*name),
        }
        .unwrap();
        if single {
            new.write_raw(&f32s).unwrap()
        } else {
            new.write_raw(&f64s).unwrap()
        }
        if let Some(digest) = digest {
            new.new_attr::<FixedAscii<64>>().create("blake3").unwrap().write_scalar(&digest).unwrap();
        }
        compressed += 1;
    }
    assert!(compressed >= 5);
}

/// Meshes and snapshots that h5repack has compressed are read.
#[test]
fn compressed_files_are_read() {
    let place = Place::new();
    place.said("run", &recipe(", baryons_only: true"), 0);
    for (stage, file, copy, group) in [
        ("ic_gaussian", "initial_condition.h5", "mesh.h5", "/"),
        ("evolve", "output_z48.5.h5", "snapshot.h5", "GridData"),
    ] {
        let copy = place.0.path().join(copy);
        fs::copy(place.made(stage, file), &copy).unwrap();
        compress(&copy, group);
    }
    let text = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\n\
                const IC = ic_load(C, \"mesh.h5\", #{ box_mpc_h: 20, cells: 16, z: 49, format: \"comove_ic\", baryons_only: true });\n\
                campaign(\"y\", [evolve(IC, #{ z_end: 48.5 }), slice(from_snapshot(\"snapshot.h5\"))])\n";
    fs::write(place.0.path().join("y.rhai"), text).unwrap();
    said(&comove(place.0.path(), &["run", "y.rhai"]), 0);
    assert!(said(&comove(place.0.path(), &["inspect", "snapshot.h5"]), 0).contains("every digest matches"));
}

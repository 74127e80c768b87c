//! Files from elsewhere are read by a child process first, once: what is wrong with them is said, and no campaign is lost.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, text};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A mesh and a run of a few steps from it.
const MADE: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 5 });
campaign("made", [evolve(IC, #{ z_end: 48 })])
"#;

/// The same from files, and another measurement.
const READ: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_load(C, "mesh.h5", #{ box_mpc_h: 20, cells: 16, z: 49, format: "comove_ic" });
const RUN = evolve(IC, #{ z_end: 48 });
campaign("read", [density_pdf(from_snapshot("snapshot.h5")), density_pdf(RUN)])
"#;

fn comove(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(cargo_bin("comove")).current_dir(folder).args(arguments).output().unwrap()
}

/// A folder with the recipe `read.rhai` and the files that it names.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::write(folder.join("made.rhai"), MADE).unwrap();
    fs::write(folder.join("read.rhai"), READ).unwrap();
    said(&comove(folder, &["run", "made.rhai"]), 0);
    let made = |stage: &str, file: &str| -> PathBuf {
        let stages = fs::read_dir(folder.join("made")).unwrap().map(|entry| entry.unwrap().path());
        let mut found = stages.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(stage));
        found.next().unwrap().join(file)
    };
    fs::copy(made("ic_gaussian", "initial_condition.h5"), folder.join("mesh.h5")).unwrap();
    fs::copy(made("evolve", "output_z48.h5"), folder.join("snapshot.h5")).unwrap();
    place
}

/// Events of the campaign that tell of a trial.
fn trials(folder: &Path) -> usize {
    let ledger = fs::read_to_string(folder.join("read/ledger.jsonl")).unwrap();
    ledger.matches("\"event\":\"input_tried\"").count()
}

#[test]
fn what_was_read_on_trial_is_known() {
    let place = place();
    let run = || said(&comove(place.path(), &["run", "read.rhai"]), 0);
    run();
    assert_eq!(trials(place.path()), 1);
    assert_eq!(run().matches("done before").count(), 4);
    assert_eq!(trials(place.path()), 1);
    // another file under the name is another trial
    fs::copy(place.path().join("snapshot.h5"), place.path().join("kept.h5")).unwrap();
    let mut bytes = fs::read(place.path().join("snapshot.h5")).unwrap();
    bytes.push(0);
    fs::write(place.path().join("snapshot.h5"), bytes).unwrap();
    run();
    assert_eq!(trials(place.path()), 2);
}

#[test]
fn damaged_files_are_refused_by_name() {
    let place = place();
    let folder = place.path();
    for file in ["snapshot.h5", "mesh.h5"] {
        let good = fs::read(folder.join(file)).unwrap();
        let middle = good.len() / 2;
        let mut zeros = good.clone();
        zeros[16..].fill(0);
        for bad in [&good[..middle], &zeros] {
            fs::write(folder.join(file), bad).unwrap();
            let refused = comove(folder, &["run", "read.rhai", "--keep-going"]);
            let text = said(&refused, 4);
            assert!(text.contains(&format!("{file}: ")) && !text.contains("bug"), "{text}");
            if file == "snapshot.h5" {
                assert!(said(&comove(folder, &["plan", "read.rhai"]), 4).contains("snapshot.h5: "));
                assert!(said(&comove(folder, &["inspect", file]), 4).starts_with("snapshot.h5: "));
            }
        }
        fs::write(folder.join(file), good).unwrap();
    }
    assert!(text(&comove(folder, &["inspect", "snapshot.h5"])).contains("every digest matches"));
    // nothing was lost by it
    said(&comove(folder, &["run", "read.rhai"]), 0);
    assert!(said(&comove(folder, &["inspect", "none.h5"]), 6).contains("none.h5"));
    assert!(said(&comove(folder, &["inspect", "."]), 4).contains("not a regular file"));
}

//! `comove doctor` on the machine that tests.

use assert_cmd::cargo::cargo_bin;
use std::process::Command;

/// One line for each, whatever the machine has; it always succeeds.
#[test]
fn the_doctor_names_what_there_is() {
    let output = Command::new(cargo_bin("comove")).arg("doctor").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    for what in ["comove ", "CPU ", "GPU ", "HDF5 ", "MPI "] {
        let lines = text.lines().filter(|line| line.starts_with(what)).count();
        assert!(lines == 1 || (what == "GPU " && lines > 0), "{what}: {text}");
    }
    let cores = std::thread::available_parallelism().unwrap();
    assert!(text.contains(&format!("{cores} cores, instructions ")), "{text}");
    assert!(!text.contains("unknown"), "{text}");
}

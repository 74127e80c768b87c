//! Names the compiler, for the provenance of results.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").expect("cargo sets it");
    let version = Command::new(rustc).arg("--version").output().ok().filter(|output| output.status.success());
    let version = version.map_or("rustc".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let target = std::env::var("TARGET").expect("cargo sets it");
    println!("cargo:rustc-env=COMOVE_COMPILER={version}, {target}");
    println!("cargo:rerun-if-changed=build.rs");
}

//! The crates' layering (ARCHITECTURE.md): pipeline → ic, analysis → sim → kernels; ic and analysis never see each
//! other.

use cargo_metadata::MetadataCommand;
use std::collections::BTreeMap;

/// What each crate may depend on.
const ALLOWED: [(&str, &[&str]); 5] = [
    ("comove-kernels", &[]),
    ("comove-sim", &["comove-kernels"]),
    ("comove-ic", &["comove-sim", "comove-kernels"]),
    ("comove-analysis", &["comove-sim", "comove-kernels"]),
    ("comove", &["comove-ic", "comove-analysis", "comove-sim", "comove-kernels"]),
];

/// Third-party crates that only one of ours may name: the terminal, scripts and signals belong to the pipeline.
const PIPELINE_ONLY: [&str; 5] = ["rhai", "clap", "indicatif", "signal-hook", "tracing-subscriber"];

#[test]
fn crates_depend_only_on_those_further_right() {
    let metadata = MetadataCommand::new().no_deps().other_options(["--offline".into()]).exec().unwrap();
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.into_iter().collect();
    let names: Vec<&str> = metadata.packages.iter().map(|p| p.name.as_str()).collect();
    for name in allowed.keys() {
        assert!(names.contains(name), "{name} is not in the workspace");
    }
    for package in &metadata.packages {
        let name = package.name.as_str();
        let may = allowed.get(name).unwrap_or_else(|| panic!("{name} has no place in the layering"));
        for dependency in &package.dependencies {
            let other = dependency.name.as_str();
            assert!(!names.contains(&other) || may.contains(&other), "{name} may not depend on {other}");
            assert!(name == "comove" || !PIPELINE_ONLY.contains(&other), "{name} may not depend on {other}");
        }
    }
}

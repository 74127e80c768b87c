//! Passive scalars of a recipe: where they start, what shows them, how a run goes on with them, and what is refused.

use crate::fields::{json, run};
use comove_sim::Snapshot;
use std::path::{Path, PathBuf};

const START: &str = r#"
fn inside(x) { x > 0.25 && x < 0.75 }
const IC = ic_function(#{ box: 1, root: 16 }, |x, y, z| #{
    density: if inside(x) { 4 } else { 1 }, velocity: [1, 0.5, 0], pressure: 1,
});
"#;

/// The snapshots of all runs whose file names begin so.
fn files(folder: &Path, name: &str) -> Vec<PathBuf> {
    let stages = std::fs::read_dir(folder.join("r")).unwrap().map(|entry| entry.unwrap().path());
    let files = stages.filter(|path| path.is_dir()).flat_map(|stage| std::fs::read_dir(stage).unwrap());
    let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(name)));
    files
}

#[test]
fn scalars_start_from_numbers_and_closures_and_are_seen() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = format!(
        r#"{START}
const RUN = evolve(IC, #{{
    t_end: 0.02, gravity: false, max_level: 1, refine: density_above(2),
    scalars: #{{ metals: 0.02, dye: |x, y, z| if inside(x) {{ 1.0 }} else {{ 0.25 }} }},
}});
const M = measure("m", RUN, |s| #{{
    metals: s.value("metals", [0.5, 0.5, 0.5]), dye: s.statistics("dye"),
    density: s.value("dye_density", [0.5, 0.5, 0.5]) / s.value("density", [0.5, 0.5, 0.5]),
}});
campaign("r", [M, slice(RUN, #{{ field: "dye", pixels: 16 }}), projection(RUN, #{{ field: "metals_density", pixels: 16 }})])
"#
    );
    let output = run(folder.path(), &recipe);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result = &json(folder.path(), "result.json")[0]["result"];
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{value} in {result}"));
    assert!((number(&result["metals"]) / 0.02 - 1.0).abs() < 1e-5, "{result}");
    assert!((number(&result["density"]) - 1.0).abs() < 1e-5, "{result}");
    let [least, most] = ["min", "max"].map(|name| number(&result["dye"][name]));
    assert!((least - 0.25).abs() < 1e-5 && (most - 1.0).abs() < 1e-5, "{result}");
    let outputs = files(folder.path(), "output");
    assert_eq!(Snapshot::read_header(&outputs[0]).unwrap().fields.scalars(), ["dye", "metals"]);

    // another run goes on from the checkpoint, with the scalars that it names
    std::fs::copy(&files(folder.path(), "checkpoint")[0], folder.path().join("from.h5")).unwrap();
    let more = |scalars: &str| {
        let options = "t_end: 0.03, gravity: false, max_level: 1, refine: density_above(2), coordinates: \"plain\"";
        format!("campaign(\"r\", [evolve(from_snapshot(\"from.h5\"), #{{ {options}{scalars} }})])")
    };
    let output = run(folder.path(), &more(""));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains(r#"write scalars: ["dye", "metals"]"#), "{error}");
    let output = run(folder.path(), &more(r#", scalars: ["metals", "dye"]"#));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let later = files(folder.path(), "output").into_iter().find(|file| !outputs.contains(file)).unwrap();
    let later = Snapshot::read(&later).unwrap();
    assert_eq!(later.header.fields.scalars(), ["metals", "dye"]);
    let densities = later.state.fluid.chunks(6 * 4096).flat_map(|group| &group[..4096]);
    assert!(densities.zip(&later.state.scalars[0]).all(|(d, s)| (s / d / 0.02 - 1.0).abs() < 1e-5));
}

#[test]
fn what_no_scalar_can_be_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (options, analysis, says) in [
        ("scalars: [\"metals\"]", "RUN", "metals has no initial mass fraction"),
        ("scalars: #{ metals: 2 }", "RUN", "must lie in [0, 1], as a mass fraction"),
        ("scalars: #{ Metals: 0.1 }", "RUN", "begins with a letter"),
        ("scalars: #{ density: 0.1 }", "RUN", "is the name of a field of the gas; choose another"),
        ("scalars: #{ metals: |x, y, z| 3 * x }", "RUN", "metals = 1."),
        ("scalars: #{ metals: 0.1 }", "slice(RUN, #{ field: \"metal\" })", "metals, metals_density"),
    ] {
        let recipe = format!(
            "{START}const RUN = evolve(IC, #{{ t_end: 0.01, gravity: false, {options} }});\ncampaign(\"r\", [{analysis}])\n"
        );
        let output = run(folder.path(), &recipe);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && error.contains(says), "{options}: {error}");
    }
}

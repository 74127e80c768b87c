//! What a closure reads of a snapshot's fields: at a point, over a region, on planes and grids, as a spectrum.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

const RUN: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 50, cells: 32, root: 16, z: 49, seed: 7 });
const RUN = evolve(IC, #{ z_end: 45, max_level: 1, refine: density_above(1.05) });
"#;

const FIELDS: &str = r#"
const M = measure("m", RUN, |s| {
    let peak = s.densest();
    let all = s.statistics("density");
    let ball = #{ center: peak.position, radius: 5 };
    let plane = s.slice(#{ center: peak.position, pixels: 32 });
    let low = s.slice(#{ center: [25, 25, 20], pixels: 32 });
    let column = s.projection(#{ pixels: 32 });
    #{
        peak: peak.density, there: s.value("density", peak.position),
        all: all, ball: s.statistics("density", ball), totals: s.totals(),
        bins: s.histogram("density", #{ bins: 5 }), inside: s.histogram("density", #{ bins: 3 } + ball),
        plane: [plane.shape, plane.max(), low.at(31, 0, 0)], corner: s.value("density", [49.9, 0.1, 20]),
        upper: s.value("density", [50, 50, 20]), lower: s.value("density", [0, 0, 20]),
        column: column.mean(), grid: s.field("density", 1).variance(),
        spectrum: s.power_spectrum(#{ level: 1 }),
    }
});
const P = power_spectrum(RUN, #{ level: 1 });
campaign("r", [M, P])
"#;

pub(crate) fn run(folder: &Path, recipe: &str) -> Output {
    std::fs::write(folder.join("r.rhai"), recipe).unwrap();
    Command::new(cargo_bin("comove")).current_dir(folder).args(["run", "r.rhai"]).output().unwrap()
}

/// The one JSON file of that name below the campaign.
pub(crate) fn json(folder: &Path, file: &str) -> Value {
    let stages = std::fs::read_dir(folder.join("r")).unwrap().map(|entry| entry.unwrap().path().join(file));
    let found = stages.into_iter().find(|path| path.exists()).unwrap_or_else(|| panic!("no {file}"));
    serde_json::from_slice(&std::fs::read(found).unwrap()).unwrap()
}

#[test]
fn fields_agree_with_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &format!("{RUN}{FIELDS}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result = &json(folder.path(), "result.json")[0]["result"];
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{value} in {result}"));
    let near = |x: &Value, y: f64| assert!((number(x) / y - 1.0).abs() < 1e-9, "{x} is not {y}");
    let peak = number(&result["peak"]);
    for same in [&result["there"], &result["all"]["max"], &result["ball"]["max"], &result["plane"][1]] {
        assert_eq!(number(same), peak);
    }
    near(&result["all"]["mass"], number(&result["totals"]["mass"]));
    near(&result["all"]["volume"], 50f64.powi(3));
    near(&result["column"], number(&result["all"]["mean"]));
    assert!(number(&result["all"]["cells"]) > 4096.0, "it is refined: {result}");
    let cells = |bins: &str| result[bins].as_array().unwrap().iter().map(|bin| number(&bin["cells"])).sum::<f64>();
    assert_eq!((cells("bins"), cells("inside")), (number(&result["all"]["cells"]), number(&result["ball"]["cells"])));
    assert_eq!(result["plane"][0], serde_json::json!([32, 32, 1]));
    assert_eq!(result["plane"][2], result["corner"]);
    assert_eq!(result["upper"], result["lower"]);
    // averaging leaves, and interpolation adds, less than the leaves hold
    assert!(number(&result["grid"]) > 0.5 * number(&result["all"]["variance"]));
    let spectrum = json(folder.path(), "power_spectrum_z45.json");
    assert_eq!(result["spectrum"]["bins"], spectrum["bins"]);
    // so early the power is that of linear theory, but for the few waves of the box
    let bins = spectrum["bins"].as_array().unwrap().iter().zip(spectrum["linear_mpc3_h3"].as_array().unwrap());
    let known = bins.filter(|(bin, _)| number(&bin["k_h_mpc"]) < 0.8);
    let ratios = known
        .map(|(bin, linear)| [1.0, number(&bin["power_mpc3_h3"]) / number(linear)].map(|r| r * number(&bin["modes"])));
    let [modes, sum] = ratios.fold([0.0; 2], |[n, sum], [modes, ratio]| [n + modes, sum + ratio]);
    assert!(modes > 500.0 && (sum / modes - 1.0).abs() < 0.2, "{}", sum / modes);
    let table = std::fs::read_dir(folder.path().join("r")).unwrap();
    let mut table =
        table.map(|stage| stage.unwrap().path().join("power_spectrum_z45.csv")).filter(|file| file.exists());
    let table = std::fs::read_to_string(table.next().unwrap()).unwrap();
    assert!(
        table.starts_with("k_h_mpc,power_mpc3_h3,modes,k_nyquist_h_mpc,shot_noise_mpc3_h3,linear_mpc3_h3\n"),
        "{table}"
    );
}

#[test]
fn what_no_snapshot_has_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for (what, message) in [
        ("s.value(\"density\", [1, 2])", "value: the position must be a list of three finite numbers"),
        ("s.value(\"density\", [1, 2, 0.0 / 0.0, 3])", "value: the position must be a list of three finite numbers"),
        ("s.value(\"density\", [60, 1, 2])", "value: position = [60.0, 1.0, 2.0]: x must lie in the box, [0, 50]"),
        (
            "s.histogram(\"density\", #{ min: [0, 50, 0], max: [9, 60, 9] })",
            "histogram: min = [0.0, 50.0, 0.0]: the region lies outside the box along y: must be below 50",
        ),
        ("s.z", "a snapshot has no property \"z\", did you mean \"redshift\"?"),
        ("s.power_spectrum(#{ level: 4294967296 })", "choose a coarser level"),
        ("s.statistics(\"densty\")", "statistics: "),
        ("s.statistics(\"density\", #{ radius: 2 })", "give min and max, or center and radius"),
        ("s.histogram(\"density\", #{ bin: 5 })", "histogram: unknown option \"bin\", did you mean \"bins\"?"),
        ("s.slice(#{ fild: \"density\" })", "slice: unknown option \"fild\", did you mean \"field\"?"),
    ] {
        let output = run(folder.path(), &format!("{RUN}campaign(\"r\", [measure(\"m\", RUN, |s| {what})])"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(3) && said.contains("r.rhai:5:") && said.contains(message), "{said}");
    }
}

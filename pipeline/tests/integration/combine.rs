//! Closures over several stages, the tables and plots that they give, and the cosmology that they may ask.

use assert_cmd::cargo::cargo_bin;
use comove::testing::last_stage;
use comove_sim::Cosmology;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Two runs of a few steps, measured at every output.
const RUNS: &str = r#"
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const RUNS = [1, 2].map(|seed| {
    let start = ic_gaussian(C, #{ box_mpc_h: 50, cells: 16, z: 49, seed: seed });
    evolve(start, #{ z_end: 48, outputs: #{ at_z: [48.5] } })
});
const PEAKS = RUNS.map(|run| measure("peak", run, #{ at_z: "all" }, |s| #{
    density: s.densest().density,
    table: #{ name: "cell", columns: ["level", "density [mean]"], rows: [[0, s.densest().density]] },
}));
"#;

const COMBINE: &str = r#"
const GROWTH = combine("growth", [PEAKS, RUNS, power_spectrum(RUNS[0])], |all| {
    let rows = all.filter(|one| type_of(one) == "map" && "density" in one.result).map(|one| [one.z, one.result.density]);
    let run = all[3];
    #{
        first: all[0].all[0].result.density, runs: [run.outputs, run.snapshot().redshift, run.snapshot(48.5).redshift],
        bins: all[4].result.bins.len(), growth: C.growth_factor(48),
        table: #{ columns: ["z", "density"], rows: rows },
        plot: #{ title: "Peaks", log: "y", x_label: "z", curves: [#{ name: "all", points: rows, style: "points" }] },
    }
});
campaign("r", [GROWTH])
"#;

fn run(folder: &Path, recipe: &str) -> Output {
    run_with(folder, recipe, &[])
}

fn run_with(folder: &Path, recipe: &str, options: &[&str]) -> Output {
    std::fs::write(folder.join("r.rhai"), recipe).unwrap();
    Command::new(cargo_bin("comove")).current_dir(folder).args(["run", "r.rhai"]).args(options).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn stages(folder: &Path, label: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder.join("r")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(label)).collect()
}

/// A closure says the same whenever it is called: what it and the closures that it uses have captured is copied.
#[test]
fn calls_share_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let counting = "let n = 0;\nlet m = 0;\nlet count = || { n += 1; n };
campaign(\"r\", [measure(\"n\", RUNS[0], #{ at_z: \"all\" }, |s| { m += 1; [m, count.call()] })])";
    let output = run(folder.path(), &format!("{RUNS}{counting}"));
    assert!(output.status.success(), "{}", said(&output));
    let [measured] = stages(folder.path(), "measure-n-").try_into().unwrap();
    let text = std::fs::read_to_string(measured.join("result.json")).unwrap();
    let all: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(all.iter().map(|one| one["result"].clone()).collect::<Vec<_>>(), vec![serde_json::json!([1, 1]); 2]);
}

#[test]
fn several_stages_make_one_table_and_one_plot() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = format!("{RUNS}{COMBINE}");
    let output = run(folder.path(), &recipe);
    assert!(output.status.success(), "{}", said(&output));
    let [combined] = stages(folder.path(), "combine-growth").try_into().unwrap();
    let read = |file: &str| std::fs::read_to_string(combined.join(file)).unwrap();
    let result: serde_json::Value = serde_json::from_str(&read("result.json")).unwrap();
    let result = &result[0]["result"];
    assert_eq!(result["runs"][0], serde_json::json!([48.5, 48.0]));
    let redshift = |n: usize| result["runs"][n].as_f64().unwrap();
    assert!((redshift(1) - 48.0).abs() < 1e-9 && (redshift(2) - 48.5).abs() < 1e-9);
    assert_eq!(result["bins"], 8);
    assert!((result["growth"].as_f64().unwrap() * 49.0 - 1.28).abs() < 0.01, "growth stops with dark energy: {result}");
    let table = read("table.csv");
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "z,density"));
    let density = |line: &str| line.split(',').nth(1).unwrap().parse::<f64>().unwrap();
    assert!(lines[1].starts_with("48") && density(lines[1]) != density(lines[2]), "{table}");
    assert!(result["first"].as_f64().unwrap() < density(lines[1]), "it grows");
    for (end, start) in [("png", &b"\x89PNG"[..]), ("svg", b"<svg"), ("pdf", b"%PDF")] {
        assert!(std::fs::read(combined.join(format!("plot.{end}"))).unwrap().starts_with(start), "{end}");
    }
    let page = std::fs::read_to_string(folder.path().join("r/report.html")).unwrap();
    assert!(page.contains("Combined: growth") && page.contains("Peaks"));
    // a measurement's tables are those of its moments
    let cells = stages(folder.path(), "measure-peak");
    assert_eq!(cells.len(), 2);
    for file in ["cell_z48.csv", "cell_z48.5.csv"] {
        let cell = std::fs::read_to_string(cells[0].join(file)).unwrap();
        assert!(cell.starts_with("level,density [mean]\n0,"), "{cell}");
    }
    // another closure is another combination, and of what is there already
    let output = run(folder.path(), &recipe.replace("one.z,", "one.z + 1,"));
    let said = said(&output);
    assert_eq!((said.matches("done before").count(), stages(folder.path(), "combine-growth").len()), (7, 2), "{said}");
}

/// Every analysis has the same shape: its last result with its moment, and those of all moments.
#[test]
fn every_analysis_has_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let closure = r#"
const SHAPE = combine("shape", [
    halos(RUNS[0], #{ at_z: "all", delta: 1.02, min_cells: 1, profiles: 2 }), power_spectrum(RUNS[0], #{ at_z: "all" }),
    density_pdf(RUNS[0], #{ at_z: "all" }), slice(RUNS[0], #{ at_z: "all" }), projection(RUNS[0], #{ pixels: 16 }),
    refinement_ratio(RUNS), force_test(#{ root: 16, levels: 1, pairs: 2, separations: [0.5, 4] }),
    combine("peak", PEAKS, |peaks| #{ peak: peaks[0].result.density }),
], |all| #{
    z: all.map(|one| if "z" in one { one.z } else { -1 }),
    counts: all.map(|one| one.all.len()),
    halos: [all[0].result.halos.len(), all[0].result.profiles.len()],
    keys: all.map(|one| one.result.keys()),
    slice: [all[3].result.columns.len(), all[3].result.rows.len(), all[3].result.rows[0].len()],
    projection: [all[4].result.rows.len(), all[4].result.rows[0].len()],
});
campaign("r", [SHAPE])
"#;
    let output = run(folder.path(), &format!("{RUNS}{closure}"));
    assert!(output.status.success(), "{}", said(&output));
    let [combined] = stages(folder.path(), "combine-shape").try_into().unwrap();
    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(combined.join("result.json")).unwrap()).unwrap();
    let result = &result[0]["result"];
    assert_eq!(result["z"], serde_json::json!([48.0, 48.0, 48.0, 48.0, 48.0, -1, -1, -1]));
    assert_eq!(result["counts"], serde_json::json!([2, 2, 2, 2, 1, 2, 1, 1]));
    assert_eq!(result["slice"], serde_json::json!([6, 256, 6]), "the cells of a level of 16³");
    assert_eq!(result["projection"], serde_json::json!([16, 17]), "a height and the pixels of its row");
    let found = |n: usize| result["halos"][n].as_u64().unwrap();
    assert!(found(0) > 0 && found(1) == found(0).min(2), "{result}");
    assert!(result["keys"].as_array().unwrap().iter().all(|keys| !keys.as_array().unwrap().is_empty()), "{result}");
}

/// What cannot be drawn is told at the closure.
#[test]
fn wrong_tables_and_plots_are_told_where() {
    let folder = tempfile::tempdir().unwrap();
    let at_the_closure = |result: &str, message: &str| {
        let last = format!("measure(\"m\", RUNS[0], |s| {result})");
        let recipe = format!("{RUNS}const M = {last};\ncampaign(\"r\", [M])\n");
        let output = run_with(folder.path(), &recipe, &["--no-rehearsal"]);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains(&format!("r.rhai:11:33: {message}")), "{said}");
        let status =
            Command::new(cargo_bin("comove")).args(["status", "r"]).current_dir(folder.path()).output().unwrap();
        let status = String::from_utf8_lossy(&status.stdout).into_owned();
        assert!(status.contains("1 of 3 stages failed; correct the cause"), "{status}");
        assert!(status.contains(" | ") && !status.contains("^ ("), "{status}");
    };
    // Rhai does not say where
    at_the_closure("{ let l = [2, 1]; l.map(|x| l[0]) }", "map: the closure uses the value that it is called on");
    let told = |result: &str, message: &str| at_the_closure(result, &format!("measure: {message}"));
    told("#{ plot: #{ curvs: [] } }", "plot: unknown option \"curvs\", did you mean \"curves\"?");
    told("#{ plot: #{ curves: [] } }", "plot.curves: no point to draw");
    told("#{ table: #{ columns: [\"a\"], rows: [[1, 2]] } }", "table.rows[0]: 2 entries in a table of 1 columns");
    told("#{ x: 0.0 / 0.0 }", "the closure returned NaN as x");
}

/// What a recipe knows of its cosmology is what the simulation computes with.
#[test]
fn a_recipe_asks_its_cosmology() {
    type OfScaleFactor = fn(&Cosmology, f64) -> f64;
    const FUNCTIONS: &[(&str, OfScaleFactor)] = &[
        ("comoving_distance_mpc_h", Cosmology::comoving_distance_mpc_h),
        ("transverse_distance_mpc_h", Cosmology::transverse_distance_mpc_h),
        ("angular_diameter_distance_mpc_h", Cosmology::angular_diameter_distance_mpc_h),
        ("luminosity_distance_mpc_h", Cosmology::luminosity_distance_mpc_h),
        ("lookback_time_gyr", Cosmology::lookback_time_gyr),
        ("age_gyr", Cosmology::age_gyr),
        ("growth_factor", |c, a| c.growth(a).0 / c.growth(1.0).0),
        ("growth_rate", |c, a| c.growth(a).1),
        ("sigma8", Cosmology::sigma8_at),
        ("hubble_km_s_mpc", Cosmology::hubble_km_s_mpc),
        ("critical_over_mean", Cosmology::critical_over_mean),
    ];
    let calls = FUNCTIONS.iter().map(|(name, _)| format!("C.{name}(3), C.{name}(0.5)")).collect::<Vec<_>>().join(", ");
    let text = format!("{RUNS}const X = [{calls}];\ncampaign(\"r\", [measure(\"m\", RUNS[0], |s| [X, C])])");
    let last = |text: &str| last_stage("r.rhai", text, &Default::default(), &[]);
    let (_, parameters) = last(&text).unwrap();
    let captured = &parameters["captured"];
    let cosmology: Cosmology = serde_json::from_value(captured[1].clone()).unwrap();
    assert_eq!(cosmology, Cosmology::flat(0.7, 0.3, 0.045, 0.9, 1.0));
    let values = captured[0].as_array().unwrap();
    assert_eq!(values.len(), 2 * FUNCTIONS.len());
    for ((name, function), values) in FUNCTIONS.iter().zip(values.chunks(2)) {
        let expected = [0.25, 1.0 / 1.5].map(|a| function(&cosmology, a));
        assert_eq!(values, expected, "{name}");
    }
    let linear = comove_ic::LinearPower::new(&comove_ic::PowerSource::EisensteinHu, &cosmology).unwrap().at(0.2);
    let growth = cosmology.growth(0.25).0 / cosmology.growth(1.0).0;
    let text = text.replace("const X = [", "const X = [C.linear_power(0.2, 0), C.linear_power(0.2, 3), ");
    let (_, parameters) = last(&text).unwrap();
    for (n, expected) in [linear, growth * growth * linear].into_iter().enumerate() {
        assert_eq!(parameters["captured"][0][n], expected);
    }
    let error = last(&format!("{RUNS}C.linear_power(0, 1)")).unwrap_err().to_string();
    assert!(error.contains("linear_power: k = 0: must be positive, in h/Mpc"), "{error}");
    let error = last(&format!("{RUNS}C.age_gyr(-1)")).unwrap_err().to_string();
    assert!(error.contains("r.rhai:11:3: age_gyr: z = -1: must lie between 0 and 100000"), "{error}");
}

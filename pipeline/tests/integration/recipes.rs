//! Every recipe that users start from, shrunk: it runs, and leaves what it promises.

use assert_cmd::cargo::cargo_bin;
use comove_sim::Snapshot;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recipe, what shrinks it, and files below its campaign folder (stage folders without their digits).
struct Shrunk {
    recipe: &'static str,
    parameters: &'static [&'static str],
    files: &'static [&'static str],
}

const ALL: [Shrunk; 15] = [
    Shrunk {
        recipe: "quickstart.rhai",
        parameters: &["z_end=9", "levels=1"],
        files: &[
            "evolve/output_z9.h5",
            "evolve/steps.jsonl",
            "slice/slice_density_z9.csv",
            "slice/slice_density_z9.png",
            "projection/projection_matter_density_z9.png",
            "halos/halos_z9.csv",
            "power_spectrum/power_spectrum_z9.json",
            "refinement_ratio/refinement_ratio.csv",
            "density_pdf/density_pdf_z9.csv",
            "measure-peak/result.json",
        ],
    },
    Shrunk {
        recipe: "lcdm_100mpc.rhai",
        parameters: &["root=32", "z_end=20"],
        files: &[
            "evolve/output_z20.h5",
            "evolve/audit.json",
            "slice/slice_temperature_z20.png",
            "projection/projection_density_z20.csv",
            "power_spectrum/power_spectrum.png",
            "halos/halos_z20.json",
        ],
    },
    Shrunk {
        recipe: "lcdm_dark_matter.rhai",
        parameters: &["cells=16", "levels=1", "z_end=20"],
        files: &[
            "evolve/output_z20.h5",
            "projection/projection_dark_matter_density_z20.png",
            "power_spectrum/power_spectrum_z20.csv",
        ],
    },
    Shrunk {
        recipe: "lcdm_two_species.rhai",
        parameters: &["root=16", "levels=1", "z_end=20"],
        files: &[
            "evolve/output_z20.h5",
            "projection/projection_dark_matter_density_z20.png",
            "halos/halos_z20.csv",
            "mass_function/mass_function_z20.csv",
            "mass_function/mass_function_z20.png",
            "power_spectrum/power_spectrum_z20.csv",
        ],
    },
    Shrunk {
        recipe: "tutorial.rhai",
        parameters: &["cells=16", "levels=1", "z_end=20"],
        files: &[
            "evolve/output_z20.h5",
            "halos/halos_z20.csv",
            "mass_function/mass_function_z20.csv",
            "power_spectrum/power_spectrum_z20.csv",
            "projection/projection_dark_matter_density_z20.png",
            "refinement_ratio/refinement_ratio.csv",
        ],
    },
    Shrunk {
        recipe: "sweep.rhai",
        parameters: &["z_end=30"],
        files: &[
            "evolve/output_z30.h5",
            "measure-rms-16-seed1/result.json",
            "measure-rms-32-seed2/result.json",
            "combine-growth/rms.csv",
            "combine-growth/growth.png",
        ],
    },
    Shrunk {
        recipe: "zoom.rhai",
        parameters: &["cells=16", "box_mpc_h=10", "levels=1", "depth=1", "reach=2", "padding=1", "z_end=4", "gas=true"],
        files: &[
            "measure-target/result.json",
            "evolve/output_z4.h5",
            "measure-halo/result.json",
            "combine-profiles/halo.csv",
            "combine-profiles/profiles.png",
            "projection/projection_dark_matter_density_z4.png",
            "halos/halos_z4.csv",
        ],
    },
    Shrunk {
        recipe: "accuracy/acoustic_wave.rhai",
        parameters: &["doublings=1"],
        files: &["evolve/output_t600.h5", "compare/compare_t600.json", "compare/compare_t600.png"],
    },
    Shrunk {
        recipe: "accuracy/shock_tube.rhai",
        parameters: &["root=32", "levels=1"],
        files: &[
            "evolve/output_t3.4375.h5",
            "compare/compare_t3.4375.csv",
            "compare/compare_t3.4375.png",
            "refinement_ratio/refinement_ratio.png",
        ],
    },
    Shrunk {
        recipe: "accuracy/point_masses.rhai",
        parameters: &["levels=1", "pairs=8"],
        files: &["force_test/force_test.csv", "force_test/force_test.json", "force_test/force_test.png"],
    },
    Shrunk { recipe: "accuracy/jeans.rhai", parameters: &["levels=1"], files: &["evolve/steps.jsonl"] },
    Shrunk {
        recipe: "accuracy/sedov.rhai",
        parameters: &["root=16", "levels=1"],
        files: &["evolve/steps.jsonl", "refinement_ratio/refinement_ratio.png"],
    },
    Shrunk {
        recipe: "accuracy/spherical_collapse.rhai",
        parameters: &["root=16", "levels=1", "a_end=0.003", "settled=0.0029"],
        files: &["evolve/steps.jsonl", "refinement_ratio/refinement_ratio.png"],
    },
    Shrunk {
        recipe: "accuracy/linear_growth.rhai",
        parameters: &["cells=16"],
        files: &["evolve/output_z49.h5", "power_spectrum/power_spectrum_z98.json"],
    },
    Shrunk {
        recipe: "accuracy/pancake.rhai",
        parameters: &["root=16", "levels=1"],
        files: &["evolve/output_z0.h5", "compare/compare_z2.json", "compare/compare_z2.png"],
    },
];

fn recipes() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../recipes")
}

/// Every file of a campaign folder, by the labels of the stages.
fn files_below(campaign: &Path) -> BTreeSet<String> {
    let entries = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect::<Vec<_>>();
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let index: serde_json::Value =
        serde_json::from_slice(&std::fs::read(campaign.join("index.json")).unwrap()).unwrap();
    // a decision has no folder
    let label = |stage: &serde_json::Value| {
        Some((stage["folder"].as_str()?.to_owned(), stage["label"].as_str().unwrap().to_owned()))
    };
    let labels: Vec<(String, String)> = index["stages"].as_array().unwrap().iter().filter_map(label).collect();
    let stages = entries(campaign).into_iter().filter(|path| path.is_dir());
    let below = |stage: PathBuf| {
        let label = labels.iter().find(|(folder, _)| *folder == name(&stage)).unwrap().1.clone();
        entries(&stage).into_iter().map(|file| format!("{label}/{}", name(&file))).collect::<Vec<_>>()
    };
    stages.flat_map(below).collect()
}

#[test]
fn every_recipe_is_listed() {
    let below = |folder: &str| {
        let entries = std::fs::read_dir(recipes().join(folder)).unwrap().map(|entry| entry.unwrap());
        let names = entries.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name());
        let names = names.map(|name| format!("{folder}{}", name.to_string_lossy()));
        // definitions for editors are no recipe
        names.filter(|name| !name.ends_with(".d.rhai")).collect::<Vec<_>>()
    };
    let there: BTreeSet<String> = ["", "accuracy/"].into_iter().flat_map(below).collect();
    assert_eq!(there, ALL.iter().map(|shrunk| shrunk.recipe.to_owned()).collect());
}

/// The paths of a value's leaves as `columns.tsv` has them: `rows[].levels[].cells`. One that is null ends with `?`.
fn leaves(value: &serde_json::Value, path: &str, found: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => {
            let gap = if path.is_empty() { "" } else { "." };
            map.iter().for_each(|(name, inner)| leaves(inner, &format!("{path}{gap}{name}"), found));
        }
        serde_json::Value::Array(list) if list.iter().any(|entry| entry.is_object()) => {
            list.iter().for_each(|entry| leaves(entry, &format!("{path}[]"), found));
        }
        serde_json::Value::Null => _ = found.insert(format!("{path}?")),
        _ => _ = found.insert(path.to_owned()),
    }
}

/// True if `rows` describe a member, or a map that contains it. Maps may be null.
fn is_described(path: &str, rows: &[&str]) -> bool {
    if let Some(path) = path.strip_suffix('?') {
        return is_described(path, rows) || is_described(&format!("{path}.*"), rows);
    }
    let parts = |path: &str| path.split('.').map(String::from).collect::<Vec<_>>();
    let is_like = |row: &str, path: &[String]| {
        let row = parts(row);
        row.len() == path.len() && row.iter().zip(path).all(|(row, part)| row == "*" || part == "*" || row == part)
    };
    let path = parts(path);
    let is_whole = |row: &str| {
        !rows.iter().any(|other| other.starts_with(&format!("{row}.")) || other.starts_with(&format!("{row}[]")))
    };
    let ends = |part: &[String]| {
        let mut without = part.to_vec();
        let last = without.last_mut().unwrap();
        *last = last.trim_end_matches("[]").to_owned();
        without
    };
    let of_part = |n: usize| rows.iter().any(|row| is_whole(row) && is_like(row, &ends(&path[..n])));
    rows.iter().any(|row| is_like(row, &path)) || (1..=path.len()).any(of_part)
}

#[test]
fn members_within_a_described_one_are_described() {
    let rows = ["halos", "halos[].id", "halos[].spheres.*.mass", "options", "options.bins", "value", "groups"];
    for (path, expected) in [
        ("halos[].id", true),
        ("halos[].spheres.200m.mass", true),
        ("options.bins.per_decade", true),
        ("value.at[].x", true),
        ("halos[].spheres.200m?", true),
        ("value?", true),
        ("halos[].mass?", false),
        ("halos[].mass", false),
        ("halos[].spheres.200m.radius", false),
        ("options.other", false),
        ("other", false),
    ] {
        assert_eq!(is_described(path, &rows), expected, "{path}");
    }
}

/// `columns.tsv` beside a stage's records, and the index, describe all members of the records.
fn every_member_is_described(folder: &Path, file: &str, index: &serde_json::Value) {
    let text = std::fs::read_to_string(folder.join(file)).unwrap();
    let mut found = BTreeSet::new();
    let mut collect = |text: &str| match serde_json::from_str(text).unwrap() {
        serde_json::Value::Array(list) => list.iter().for_each(|one| leaves(one, "", &mut found)),
        value => leaves(&value, "", &mut found),
    };
    if file.ends_with(".jsonl") {
        text.lines().for_each(collect)
    } else {
        collect(&text)
    }
    let (stem, end) = file.rsplit_once('.').unwrap();
    let table = std::fs::read_to_string(folder.join("columns.tsv")).unwrap();
    let is_of_file = |pattern: &str| match pattern.split_once('*') {
        Some((start, rest)) => file.starts_with(start) && rest == format!(".{end}"),
        None => pattern == file,
    };
    let lines = table.lines().filter_map(|line| line.split_once('\t')).filter(|(pattern, _)| is_of_file(pattern));
    let rows: Vec<&str> = lines.map(|(_, rest)| rest.split('\t').next().unwrap()).collect();
    let records = index["records"].as_object().unwrap();
    let (_, indexed) = records.iter().find(|(name, _)| stem == *name || stem.starts_with(&format!("{name}_"))).unwrap();
    assert_eq!(rows.len(), indexed.as_array().unwrap().len(), "{file}: {records:?}");
    for member in &found {
        assert!(is_described(member, &rows), "{member} of {file} in {}: {rows:?}", folder.display());
    }
}

/// The index describes the columns of all tables but those that closures make and the pixels of projections, and the members
/// of all records.
fn every_column_is_described(campaign: &Path, recipe: &str) {
    let index: serde_json::Value =
        serde_json::from_slice(&std::fs::read(campaign.join("index.json")).unwrap()).unwrap();
    for stage in index["stages"].as_array().unwrap() {
        assert_eq!(stage["state"], "done", "{recipe}: {stage}");
        let Some(folder) = stage["folder"].as_str().map(|folder| campaign.join(folder)) else { continue };
        let records = ["data", "step records", "observations", "summary"].map(serde_json::Value::from);
        for file in stage["files"].as_array().unwrap().iter().filter(|file| records.contains(&file["kind"])) {
            every_member_is_described(&folder, file["file"].as_str().unwrap(), &index);
        }
        if ["measure", "combine", "projection"].contains(&stage["kind"].as_str().unwrap()) {
            continue;
        }
        for file in stage["files"].as_array().unwrap().iter().filter(|file| file["kind"] == "table") {
            let path = folder.join(file["file"].as_str().unwrap());
            let text = std::fs::read_to_string(&path).unwrap();
            for column in text.lines().next().unwrap().split(',') {
                let known = index["tables"].as_object().unwrap().values().flat_map(|table| table.as_array().unwrap());
                assert!(known.clone().any(|one| one["name"] == column), "{recipe}: {column} of {}", path.display());
            }
        }
    }
}

#[test]
fn every_recipe_runs_shrunk() {
    for shrunk in &ALL {
        let folder = tempfile::tempdir().unwrap();
        let campaign = folder.path().join("campaign");
        let mut command = Command::new(cargo_bin("comove"));
        command.arg("run").arg(recipes().join(shrunk.recipe)).arg("--dir").arg(&campaign);
        shrunk.parameters.iter().for_each(|parameter| _ = command.args(["-p", parameter]));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", shrunk.recipe);
        assert!(!said.contains("has all of omega_m"), "{}: {said}", shrunk.recipe);
        let runs = shrunk.files.iter().any(|file| file.starts_with("evolve/"));
        assert!(
            said.contains("pictures:") && said.contains("tables:") && said.contains("snapshots:") == runs,
            "{said}"
        );
        let there = files_below(&campaign);
        for file in shrunk.files {
            assert!(there.contains(*file), "{}: {file} is missing among {there:?}", shrunk.recipe);
        }
        every_column_is_described(&campaign, shrunk.recipe);
        let page = std::fs::read_to_string(campaign.join("report.html")).unwrap();
        let always = ["Provenance", "The recipe"].map(|part| (part, true));
        let has_gas = !std::fs::read_to_string(recipes().join(shrunk.recipe)).unwrap().contains("gas: false");
        let of_runs = [("device and its class", runs), ("output_", runs), ("of the cell updates", runs && has_gas)];
        for (part, there) in always.into_iter().chain(of_runs) {
            assert!(!there || page.contains(part), "{}: {part}", shrunk.recipe);
        }
    }
}

/// A region is refined on both sides of a face of the periodic box.
#[test]
fn a_region_reaches_across_the_faces_of_the_box() {
    let folder = tempfile::tempdir().unwrap();
    let recipe = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.8, n_s: 1 });
        const IC = ic_gaussian(C, #{ box_mpc_h: 25, cells: 64, z: 49, seed: 42, dark_matter: true, gas: false });
        const BALL = region(#{ center: [0.2, 12, 12], radius: 6, level: 1 });
        campaign(\"r\", [evolve(IC, #{ z_end: 48, max_level: 1, refine: all([BALL, particles_above(0.01)]) })])";
    std::fs::write(folder.path().join("r.rhai"), recipe).unwrap();
    let output = Command::new(cargo_bin("comove")).current_dir(folder.path()).args(["run", "r.rhai"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let runs = std::fs::read_dir(folder.path().join("r")).unwrap().map(|entry| entry.unwrap().path());
    let tree =
        Snapshot::read_tree(&runs.map(|run| run.join("output_z48.h5")).find(|file| file.exists()).unwrap()).unwrap().1;
    // patches of 3.125 Mpc/h along x; marks reach four cells of 0.39 Mpc/h further
    let refined: BTreeSet<u32> = tree.level(1).iter().map(|key| key.coordinate[0]).collect();
    assert_eq!(refined, BTreeSet::from([0, 1, 2, 5, 6, 7]));
}

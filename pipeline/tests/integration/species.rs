//! Words of all matter and of the gas in closures: of runs of dark matter alone, of gas alone and of both.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::said;
use comove::testing::PARTS;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A stop rule by density, an observer and a measurement; both in closures of the recipe's functions.
const RECIPE: &str = r#"
const GAS = param("gas", false, "with gas");
const DARK_MATTER = param("dark_matter", true, "with dark matter");
const COSMO = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1.0 });
const IC = ic_gaussian(COSMO, #{ box_mpc_h: 25, cells: 16, z: 49, seed: 1, dark_matter: DARK_MATTER, gas: GAS });
const RUN = evolve(IC, #{
    z_end: 2, max_delta_a: 0.05,
    stop_when: |step| step.density_max > 4.0,
    observe: #{ on_step: |step| step },
});
campaign("r", [measure("m", RUN, |s| {
    let d = s.densest();
    let all = s.statistics("matter_density");
    #{
        densest: d.density, there: s.value("matter_density", d.position), level: d.level, totals: s.totals(),
        box: s.box_mpc_h ** 3, region: all.mass, largest: all.max,
        bins: s.histogram("matter_density", #{ bins: 4 }).reduce(|sum, bin| sum + bin.mass, 0.0),
    }
})])
"#;

fn comove(folder: &Path, recipe: &str, arguments: &[&str]) -> Output {
    std::fs::write(folder.join("r.rhai"), recipe).unwrap();
    Command::new(cargo_bin("comove")).current_dir(folder).args(arguments).output().unwrap()
}

/// The folder of the one stage of this kind.
fn stage(folder: &Path, kind: &str) -> PathBuf {
    let mut entries = std::fs::read_dir(folder.join("r")).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(kind);
    entries.find(is_it).unwrap_or_else(|| panic!("no {kind}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Names of members of a step, those of maps among them by their paths.
fn members() -> BTreeSet<String> {
    let steps = PARTS.iter().flat_map(|part| part.types).find(|kind| kind.name == "Step").unwrap();
    let path = |member: &comove::testing::Member| {
        let inner = member.members.iter().map(|inner| format!("{}.{}", member.name, inner.name));
        inner.chain([member.name.to_owned()]).collect::<Vec<_>>()
    };
    steps.members.iter().flat_map(path).collect()
}

/// Dark matter counts in every word of mass and density; the gas's own members are there with gas alone.
#[test]
fn density_and_mass_are_of_all_matter() {
    let mut seen = BTreeSet::new();
    for (gas, dark_matter) in [(false, true), (true, true), (true, false)] {
        let folder = tempfile::tempdir().unwrap();
        let species = [format!("gas={gas}"), format!("dark_matter={dark_matter}")];
        said(&comove(folder.path(), RECIPE, &["run", "r.rhai", "-p", &species[0], "-p", &species[1]]), 0);
        let found: Value =
            serde_json::from_slice(&std::fs::read(stage(folder.path(), "measure-").join("result.json")).unwrap())
                .unwrap();
        let (z, found) = (number(&found[0]["z"]), &found[0]["result"]);
        assert!(z > 2.0, "the stop rule is met before z = 2: {found}");
        let box_mass = number(&found["box"]);
        let is_all = |value: &Value| (number(value) / box_mass - 1.0).abs() < 1e-5;
        assert!(is_all(&found["totals"]["mass"]) && is_all(&found["region"]) && is_all(&found["bins"]), "{found}");
        assert_eq!((&found["densest"], &found["densest"]), (&found["there"], &found["largest"]));
        assert_eq!(
            (found["totals"].get("gas").is_some(), found["totals"].get("dark_matter").is_some()),
            (gas, dark_matter)
        );

        let lines = common::lines(&stage(folder.path(), "evolve-").join("observed.jsonl"));
        let steps: Vec<&Value> = lines.iter().map(|line| &line["value"]).collect();
        let (last, before) = (steps[steps.len() - 1], steps[steps.len() - 2]);
        assert!(number(&last["density_max"]) > 4.0 && number(&before["density_max"]) <= 4.0, "{before} {last}");
        assert!((number(&last["density_max"]) / number(&found["densest"]) - 1.0).abs() < 1e-6, "{last} {found}");
        for step in steps {
            assert!(is_all(&step["sums"]["mass"]), "{step}");
            let [least, most] = ["density_min", "density_max"].map(|name| number(&step[name]));
            assert!(least < 1.0 && most > 1.0, "{step}");
            for name in ["gas", "ledger", "energy_residual", "mass_drift", "cold_fraction", "ladder"] {
                assert_eq!(step.get(name).is_some(), gas, "{name} of {step}");
            }
            if gas && dark_matter {
                assert!((number(&step["gas"]["mass"]) / box_mass / 0.15 - 1.0).abs() < 1e-3, "{step}");
            }
            let kinetic = |of: &str| step.get(of).map_or(0.0, |of| number(&of["kinetic"]));
            assert!((kinetic("sums") / (kinetic("gas") + kinetic("dark_matter")) - 1.0).abs() < 1e-12, "{step}");
            for (name, value) in step.as_object().unwrap() {
                seen.insert(name.clone());
                if ["limit", "raised", "steering"].contains(&name.as_str()) {
                    continue;
                }
                seen.extend(
                    value.as_object().into_iter().flat_map(|inner| inner.keys()).map(|inner| format!("{name}.{inner}")),
                );
            }
        }
    }
    assert_eq!(seen, members(), "the members of steps and their reference");
}

/// A member that no step or snapshot has, one of the gas without gas, and a field of it are found before anything runs.
#[test]
fn members_are_checked_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (rule, measured) = ("step.density_max > 4.0", "level: d.level");
    let refused = |old: &str, new: &str, options: &[&str], messages: &[&str]| {
        let output = comove(folder.path(), &RECIPE.replace(old, new), &[&["check", "r.rhai"][..], options].concat());
        let said = said(&output, 3);
        let line = 1 + RECIPE.lines().position(|line| line.contains(old)).unwrap();
        assert!(said.contains(&format!("r.rhai:{line}:")), "{new}: {said}");
        messages.iter().for_each(|message| assert!(said.contains(message), "{new}: {message} is not in {said}"));
        assert!(!folder.path().join("r").exists());
    };
    let with_gas = ["-p", "gas=true"];
    let gas_alone = ["-p", "gas=true", "-p", "dark_matter=false"];
    for (new, options, messages) in [
        (
            "step.densty_max > 4.0",
            &[][..],
            ["stop_when: a step has no property \"densty_max\"", "did you mean \"density_max\"?"],
        ),
        ("step.sums.mas > 4.0", &[], ["stop_when: step.sums has no property \"mas\"", "did you mean \"mass\"?"]),
        ("step.gas.density_max > 4.0", &[], ["stop_when: \"step.gas\": the run has no gas", "density_max"]),
        ("[1].some(|x| step.ladder.retries > x)", &[], ["stop_when: \"step.ladder\": the run has no gas", "sums"]),
        (
            "step.dark_matter.mass > 4.0",
            &gas_alone,
            ["\"step.dark_matter\": the run has no dark matter", "dark_matter: true"],
        ),
        ("step.redshift > 4.0", &with_gas, ["stop_when: a step has no property \"redshift\"", "did you mean \"z\"?"]),
        // a step is never (): ?. fails as . does
        ("step?.densty_max == ()", &[], ["stop_when: a step has no property", "did you mean \"density_max\"?"]),
    ] {
        refused(rule, new, options, &messages);
    }
    for (new, options, messages) in [
        (
            "level: s.levls",
            &with_gas[..],
            ["measure: a snapshot has no property \"levls\"", "did you mean \"levels\"?"],
        ),
        ("level: s.totals", &with_gas, ["a snapshot has no property \"totals\"", "did you mean \"totals(…)\"?"]),
        (
            "level: s.totals().gas.mass",
            &[],
            ["measure: \"s.totals().gas\": the run has no gas", "totals() are of all matter"],
        ),
        (
            "level: s.field(\"density\").mean()",
            &[],
            ["field: field \"density\" is not in this snapshot", "it holds no gas"],
        ),
        (
            "level: s.value(\"temperture\", d.position)",
            &with_gas,
            ["value: no field \"temperture\"", "did you mean \"temperature\"?"],
        ),
        ("level: s.slice().max()", &[], ["slice: field \"density\" is not in this snapshot", "it holds no gas"]),
        (
            "level: s.projection(#{ field: \"mach\" }).max()",
            &[],
            ["projection: field \"mach\" is not", "it holds no gas"],
        ),
        (
            "level: s.value(\"dark_matter_density\", d.position)",
            &gas_alone,
            ["the run has no dark matter", "dark_matter: true"],
        ),
    ] {
        refused(measured, new, options, &messages);
    }
    let by_function = format!("fn peak(of) {{ of.densty_max }}{}", RECIPE.replace(rule, "peak(step) > 4.0"));
    let said_of_it = said(&comove(folder.path(), &by_function, &["check", "r.rhai"]), 3);
    assert!(said_of_it.contains("r.rhai:1:18: stop_when: a step has no property \"densty_max\""), "{said_of_it}");
}

/// What is not certain is left to the call: a parameter that is assigned to, a map that is added to, another value of the
/// name, and a member that the closure looks for before it reads it.
#[test]
fn members_that_may_exist_pass() {
    let folder = tempfile::tempdir().unwrap();
    for rule in [
        "{ step.peak = step.density_max; step.peak > 4.0 }",
        "{ step = #{ peak: step.density_max }; step.peak > 4.0 }",
        "{ step.set(\"peak\", 5.0); step.peak > 4.0 }",
        "[#{ peak: 1.0 }].some(|step| step.peak > 4.0)",
        "{ let most = 0.0; for step in [#{ peak: 1.0 }] { most = step.peak; } most > 4.0 }",
        "{ let most = 0.0; try { throw #{ peak: 1.0 } } catch (step) { most = step.peak; } most > 4.0 }",
        "\"peak\" in step && step.peak > 4.0",
        "step.gas_dt == ()",
    ] {
        let rule = RECIPE.replace("step.density_max > 4.0", rule);
        said(&comove(folder.path(), &rule, &["check", "r.rhai", "-p", "gas=true"]), 0);
    }
    for (old, new) in [
        ("step.density_max > 4.0", "if \"gas\" in step { step.gas.mass > 4.0 } else { false }"),
        ("step.density_max > 4.0", "step.contains(\"gas\") && step.gas.mass > 4.0"),
        ("level: d.level", "level: if \"gas\" in s.totals() { s.field(\"density\").mean() } else { 0.0 }"),
    ] {
        said(&comove(folder.path(), &RECIPE.replace(old, new), &["check", "r.rhai", "--rehearse"]), 0);
    }
}

/// A snapshot's species decide as those of an initial condition do: members, toys and the program of an expression.
#[test]
fn species_of_snapshots_are_known() {
    let folder = tempfile::tempdir().unwrap();
    for (species, file) in [("gas: false, dark_matter: true", "dark.h5"), ("baryons_only: true", "gas.h5")] {
        let recipe = format!(
            "const C = cosmology(#{{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1.0 }});\n\
             const IC = ic_gaussian(C, #{{ box_mpc_h: 25, cells: 16, z: 49, seed: 1, {species} }});\n\
             campaign(\"r\", [evolve(IC, #{{ z_end: 48 }})])\n"
        );
        said(&comove(folder.path(), &recipe, &["run", "r.rhai"]), 0);
        let mut files = std::fs::read_dir(stage(folder.path(), "evolve-")).unwrap().map(|entry| entry.unwrap().path());
        let is_checkpoint = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with("checkpoint");
        let checkpoint = files.find(is_checkpoint).unwrap();
        std::fs::copy(checkpoint, folder.path().join(file)).unwrap();
        std::fs::remove_dir_all(folder.path().join("r")).unwrap();
    }
    let comove_of = |stage: &str, arguments: &[&str]| {
        comove(
            folder.path(),
            &format!("campaign(\"r\", [{stage}])\n"),
            &[&arguments[..1], &["r.rhai"][..], &arguments[1..]].concat(),
        )
    };
    for (stage, message) in [
        (
            "evolve(from_snapshot(\"dark.h5\"), #{ z_end: 47, stop_when: |s| s.gas.density_max > 4 })",
            "stop_when: \"s.gas\": the run has no gas",
        ),
        (
            "measure(\"m\", from_snapshot(\"dark.h5\"), |s| #{ m: s.totals().gas.mass })",
            "measure: \"s.totals().gas\": the run has no gas",
        ),
        (
            "measure(\"m\", from_snapshot(\"gas.h5\"), |s| #{ m: s.totals().dark_matter.mass })",
            "measure: \"s.totals().dark_matter\": the run has no dark matter",
        ),
    ] {
        let said = said(&comove_of(stage, &["check"]), 3);
        assert!(said.contains(message), "{message} is not in {said}");
    }

    // peaks of gas alone have a temperature, friends of friends have none; of a file that is not there nobody knows
    let measured = |file: &str| {
        let stage = format!("measure(\"t\", from_snapshot(\"{file}\"), |s| #{{ t: s.halos()[0].temperature_k }})");
        comove_of(&stage, &["check", "--rehearse"])
    };
    let of_gas = said(&measured("gas.h5"), 0);
    assert!(of_gas.contains("rehearsed 1 closure in ") && !of_gas.contains("not rehearsed"), "{of_gas}");
    assert!(said(&measured("dark.h5"), 3).contains("no property \"temperature_k\""));
    assert!(said(&measured("none.h5"), 0).contains("not rehearsed: r.rhai:1:"));

    // of gas alone, all matter is the gas
    let state = |density: &str| {
        let stage = format!(
            "evolve(from_snapshot(\"gas.h5\"), #{{ z_end: 47, max_level: 1, refine: refine_where(|c| c.{density} > 8) }})"
        );
        let planned: Value = serde_json::from_slice(&comove_of(&stage, &["plan", "--json"]).stdout).unwrap();
        planned["stages"][1]["state"].as_str().unwrap().to_owned()
    };
    assert!(state("density").contains("evolve-"), "{}", state("density"));
    assert_eq!(state("density"), state("gas_density"));

    // a file that is there has to be readable
    std::fs::write(folder.path().join("dark.h5"), "no HDF5").unwrap();
    let refused = said(&comove_of("slice(from_snapshot(\"dark.h5\"))", &["check"]), 4);
    assert!(refused.contains("r.rhai:1:22: from_snapshot: ") && refused.contains("dark.h5: "), "{refused}");
}

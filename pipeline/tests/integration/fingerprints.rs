//! What changes a stage's fingerprint and what does not.

use comove::testing::last_stage;
use std::collections::BTreeMap;

/// The fingerprint of the last stage of a recipe, reading inputs of a fixed digest.
fn of(text: &str) -> String {
    last_stage("r.rhai", text, &BTreeMap::new(), &["d1"]).unwrap_or_else(|e| panic!("{e}")).0
}

const RUN: &str = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 25, cells: 64, root: 32, z: 49, seed: 1 });
const RUN = evolve(IC, #{ z_end: 1, max_level: 2, refine: density_above(|l| 8 ** (l + 1)), outputs: #{ at_z: [2] } });
campaign(\"x\", [RUN])";

#[test]
fn how_long_a_run_goes_and_what_it_writes_is_outside() {
    for (from, to) in [
        ("z_end: 1", "z_end: 0"),
        ("at_z: [2]", "at_z: [3, 2.5]"),
        ("z_end: 1", "z_end: 1, checkpoints: #{ every_minutes: 3, keep: 5 }"),
        ("campaign(\"x\"", "campaign(\"y\""),
        ("density_above(|l| 8 ** (l + 1))", "density_above([8, 64, 512])"),
    ] {
        assert!(RUN.contains(from), "{from}");
        assert_eq!(of(RUN), of(&RUN.replace(from, to)), "{from} → {to}");
    }
}

#[test]
fn what_decides_results_is_inside() {
    for (from, to) in [
        ("max_level: 2", "max_level: 1"),
        ("8 ** (l + 1)", "9 ** (l + 1)"),
        ("z_end: 1", "z_end: 1, precision: \"double\""),
        ("z_end: 1", "z_end: 1, courant: 0.4"),
        ("root: 32", "root: 64"),
    ] {
        assert!(RUN.contains(from), "{from}");
        assert_ne!(of(RUN), of(&RUN.replace(from, to)), "{from} → {to}");
    }
}

/// An expression counts by what it computes, not by how it is written; a criterion by what the levels make of it.
#[test]
fn criteria_count_by_what_they_ask() {
    let with = |criterion: &str| of(&RUN.replace("density_above(|l| 8 ** (l + 1))", criterion));
    let (dense, inside) = ("refine_where(|c| c.density > 8)", "region(#{ min: [1, 2, 3], max: [4, 5, 6], level: 2 })");
    let fine = "gradient_above(\"density\", [0.1, 0.2])";
    for (criterion, other, same) in [
        (dense, "refine_where(|cell| cell.density > 2.0 * 4.0)", true),
        (dense, "refine_where(|c| { let unused = c.x; let d = c.density; d > 8.0 })", true),
        (dense, "refine_where(|c| c.density >= 8)", false),
        (dense, "refine_where(|c| c.density > 9)", false),
        (inside, "region(#{ min: [1, 2, 3], max: [4, 5, 6], level: 5 })", true),
        (inside, "region(#{ min: [1, 2, 3], max: [4, 5, 6], level: 1 })", false),
        (fine, "gradient_above(\"density\", |l| 0.1 * (l + 1))", true),
        (fine, "gradient_above(\"pressure\", [0.1, 0.2])", false),
        ("lohner_above(\"density\", 0.5)", "lohner_above(\"density\", 0.5, #{ filter: 0.01 })", true),
        ("density_above(8)", "overdensity_above(8)", false),
        (dense, "refine_where(|c| c.matter_density > 8)", true),
        (dense, "refine_where(|c| c.gas_density > 8)", true),
        ("all([density_above(8)])", "all([density_above([8, 8])])", true),
        ("all([density_above(8), density_above(9)])", "any([density_above(8), density_above(9)])", false),
        ("not(density_above(8))", "density_above(8)", false),
    ] {
        assert_eq!(with(criterion) == with(other), same, "{criterion} → {other}");
    }
}

/// Expressions on all matter are those on the gas where there is nothing else, as before there was dark matter.
#[test]
fn all_matter_is_the_gas_where_there_is_no_other() {
    let program = |text: &str| {
        let parameters = last_stage("r.rhai", text, &BTreeMap::new(), &["d1"]).unwrap_or_else(|e| panic!("{e}")).1;
        parameters["run"]["refine"][0]["where"]["program"].clone()
    };
    let gas = RUN.replace("density_above(|l| 8 ** (l + 1))", "refine_where(|c| c.density > 8)");
    assert_eq!(program(&gas), serde_json::json!(["r0 = density", "r1 = constant 8.0", "r0 = less r1 r0"]));
    let both = gas.replace("seed: 1", "seed: 1, dark_matter: true");
    assert_eq!(program(&both), serde_json::json!(["r0 = matter_density", "r1 = constant 8.0", "r0 = less r1 r0"]));
    assert_eq!(program(&both.replace("c.density", "c.gas_density")), program(&gas));
}

#[test]
fn a_start_from_a_formula_is_its_formula() {
    let closure = "const D = 2;\nfn twice(x) { 2 * x }
const IC = ic_function(#{ box: 1, root: 32 }, |x, y, z| #{ density: twice(1 + x) * D, pressure: 1 });
campaign(\"x\", [evolve(IC, #{ t_end: 1 })])";
    let problem = "campaign(\"x\", [evolve(problem(\"acoustic_wave\", #{ root: 32 }), #{ t_end: 9 })])";
    for (text, from, to, same) in [
        (closure, "t_end: 1", "t_end: 2, outputs: #{ at_t: [1] }", true),
        (closure, "pressure: 1 }", "pressure : 1 /* a note */ }", true),
        (closure, "pressure: 1 }", "pressure: 2 }", false),
        (closure, "const D = 2", "const D = 3", false),
        (closure, "{ 2 * x }", "{ 3 * x }", false),
        (closure, "box: 1", "box: 2", false),
        (problem, "t_end: 9", "t_end: 8", true),
        (problem, "root: 32", "root: 32, amplitude: 1e-6", true),
        (problem, "root: 32", "root: 48", false),
        (problem, "t_end: 9", "t_end: 9, courant: 0.4", false),
    ] {
        assert!(text.contains(from), "{from}");
        assert_eq!(of(text) == of(&text.replace(from, to)), same, "{from} → {to}");
    }
}

#[test]
fn a_measurement_is_its_closure_what_it_calls_and_what_it_captures() {
    let measure = RUN.replace(
        "campaign(\"x\", [RUN])",
        "fn twice(x) { 2 * x }\nfn other(x) { 3 * x }\nconst F = 4;
campaign(\"x\", [measure(\"m\", RUN, |s| #{ y: twice(s.a) * F })])",
    );
    for (from, to, same) in [
        ("fn other(x) { 3 * x }", "fn other(x) { 5 * x }", true),
        ("|s| #{ y: twice", "|s|   /* a note */ #{ y : twice", true),
        ("{ 2 * x }", "{ 4 * x }", false),
        ("const F = 4", "const F = 5", false),
        ("s.a", "s.redshift", false),
        // two measurements are two stages, each with a folder and a history of its own
        ("measure(\"m\"", "measure(\"n\"", false),
    ] {
        assert!(measure.contains(from), "{from}");
        assert_eq!(of(&measure) == of(&measure.replace(from, to)), same, "{from} → {to}");
    }
}

/// A closure counts as it is written, wherever that is: in a list, in one of two branches, in another closure, in a
/// map of options that has a name, beside another map with the same key.
#[test]
fn a_closure_counts_wherever_it_is_written() {
    let with = |end: &str| of(&RUN.replace("campaign(\"x\", [RUN])", end));
    let list = "campaign(\"x\", [[|s| s.a, |s| s.redshift].map(|f| measure(\"m\", RUN, f))[0]])";
    let branch = "const MODE = 1;\nconst FAST = MODE == 1;
campaign(\"x\", [measure(\"m\", RUN, if FAST { |s| s.a } else { |s| s.redshift })])";
    let named = "const O = #{ steer: |step| #{ dt_max: 1 } };
campaign(\"x\", [evolve(IC, #{ z_end: 1, max_level: 0 } + O)])";
    let alike = "campaign(\"x\", [evolve(IC, #{ z_end: 1,
observe: #{ on_step: |step| #{ steer: 0 } }, steer: |step| #{ dt_max: 1 } })])";
    let inner = "const N = 2;\nconst F = |x| x * N;\ncampaign(\"x\", [measure(\"m\", RUN, |s| F.call(s.a))])";
    for (text, from, to, same) in [
        (inner, "x * N", "x + N", false),
        (inner, "N = 2", "N = 3", false),
        (inner, "|x| x", "|x|  x", true),
        (list, "[0]", "[1]", false),
        (list, "s.redshift", "s.t", true),
        (branch, "MODE = 1", "MODE = 2", false),
        (branch, "s.redshift", "s.t", true),
        (named, "dt_max: 1", "dt_max: 2", false),
        (alike, "dt_max: 1", "dt_max: 2", false),
        (alike, "steer: 0", "steer: 1", true),
    ] {
        assert!(text.contains(from), "{from}");
        assert_eq!(with(text) == with(&text.replace(from, to)), same, "{from} → {to}");
    }
}

/// A stage that a closure captures counts with everything it starts from.
#[test]
fn a_captured_stage_counts_with_what_it_starts_from() {
    let with = |other: &str| {
        let measure =
            format!("const OTHER = {other};\ncampaign(\"x\", [measure(\"m\", RUN, |s| {{ let other = OTHER; s.a }})])");
        of(&RUN.replace("campaign(\"x\", [RUN])", &measure))
    };
    let run = |seed: u64| {
        with(&format!("evolve(ic_gaussian(C, #{{ box_mpc_h: 25, cells: 64, z: 49, seed: {seed} }}), #{{ z_end: 0 }})"))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    let saved = |file: &str| with(&format!("evolve(from_snapshot(\"{file}\"), #{{ z_end: 0 }})"));
    assert_ne!(saved("a.h5"), saved("b.h5"));
}

//! Recipes that are wrong, and what they are told: place, message, line and caret.

use comove::PipelineError;
use comove::testing::last_stage;
use std::collections::BTreeMap;

/// Three lines before the line under test.
const BEFORE: &str = r#"const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1 });
const RUN = evolve(IC, #{ z_end: 0, outputs: #{ at_z: [2] } });
"#;

fn verdict(text: &str, given: &[(&str, &str)]) -> Result<(), PipelineError> {
    let given: BTreeMap<String, String> = given.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    last_stage("bad.rhai", text, &given, &[]).map(|_| ())
}

/// The line under test with a caret `^` on the next one, and the message.
fn check(line: &str, caret: &str, message: &str) {
    let error = verdict(&format!("{BEFORE}{line}\n"), &[]).expect_err(line);
    let column = caret.find('^').expect("a caret") + 1;
    let expected = format!("bad.rhai:4:{column}: {message}\n    4 | {line}\n      | {caret}");
    assert_eq!(error.to_string(), expected);
    assert_eq!(error.exit_code(), 3);
}

#[test]
fn names_that_no_file_has() {
    let message = r#""a\0b": a file name cannot contain \0; remove it"#;
    check(r#"from_snapshot("a\x00b");"#, "^", &format!("from_snapshot: {message}"));
    check(
        r#"ic_load(C, "a\x00b", #{ box_mpc_h: 25, cells: 32, z: 49, format: "um_ic" });"#,
        "^",
        &format!("ic_load: {message}"),
    );
    check(
        r#"ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, power: #{ camb_power: "a\x00b" } });"#,
        "^",
        &format!("ic_gaussian: {message}"),
    );
}

/// Gas alone has no zoom, and the numbers of a zoom are checked.
#[test]
fn zooms() {
    check(
        r#"ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, zoom: #{ center: [1, 2, 3], extent: [4, 4, 4], levels: 2 } });"#,
        r#"                                                            ^"#,
        "ic_gaussian: zoom: needs dark matter, whose particles have several masses; set dark_matter: true",
    );
    check(
        r#"ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, dark_matter: true, gas: false, zoom: #{ center: [1, 2, 3], extent: [4, 4, 4], levels: 8 } });"#,
        r#"                                                                                                                                          ^"#,
        "ic_gaussian: zoom.levels = 8: must lie between 1 and 7",
    );
    check(
        r#"ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, dark_matter: true, follow: [3, 32768] });"#,
        r#"                                                                               ^"#,
        "ic_gaussian: follow = 32768: no particle of a lattice of [32, 32, 32] has this identity: give those of a run of as many \
         cells without zoom",
    );
    check(
        r#"ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, follow: [3] });"#,
        r#"                                                            ^"#,
        "ic_gaussian: follow = 3: needs particles; set dark_matter: true, or remove follow",
    );
    check(
        r#"ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, dark_matter: true, follow: [] });"#,
        r#"                                                                               ^"#,
        "ic_gaussian: follow: the list is empty, and refinement would follow nothing; give ids, or remove follow",
    );
    check(
        r#"ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, dark_matter: true, gas: false, follow: [9], zoom: #{ center: [20, 20, 20], extent: [4, 4, 4], levels: 1 } });"#,
        r#"                                                                                           ^"#,
        "ic_gaussian: follow = 9: no given place has particles of the finest lattice: enlarge extent of zoom, or give others",
    );
}

/// A universe has one source of noise, and particles have orders of perturbation theory.
#[test]
fn noise_and_orders() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("n.bin");
    std::fs::write(&file, [1; 50]).unwrap();
    let refused = |options: &str, message: &str| {
        let line = format!("ic_gaussian(C, #{{ box_mpc_h: 25, cells: 32, z: 49, {options} }});");
        let said = verdict(&format!("{BEFORE}{line}\n"), &[]).expect_err(&line).to_string();
        assert!(said.contains(message), "{said}");
    };
    refused("dark_matter: true", "ic_gaussian: the option \"seed\" is missing");
    refused("seed: 1, noise: \"n.bin\"", "noise and seed exclude each other; remove one");
    refused("seed: 1, noise_sign: \"music\"", "noise_sign: needs noise; set it, or remove noise_sign");
    refused("seed: 1, lpt_order: 3", "lpt_order: needs dark matter");
    refused("seed: 1, dark_matter: true, lpt_order: 4", "lpt_order = 4: must be 1, 2 or 3");
    let zoom = "zoom: #{ center: [1, 2, 3], extent: [4, 4, 4], levels: 1 }";
    refused(
        &format!("noise: \"n.bin\", gas: false, dark_matter: true, {zoom}"),
        "noise: a zoom needs noise on finer meshes, which a file lacks",
    );
    refused(&format!("noise: {file:?}"), "n.bin: 50 bytes that begin with the 32-bit words [16843009,");
}

/// Rhai finds every order between a number and a text false.
#[test]
fn orders_between_numbers_and_texts() {
    let message = r#"the number 2.5 and the text "200" cannot be compared; write a number without quotes"#;
    check(r#"if 2.5 > "200" { }"#, "       ^", &format!(">: {message}"));
    check(r#"let x = "200" <= 2.5;"#, "              ^", &format!("<=: {message}"));
}

#[test]
fn options() {
    check(
        r#"evolve(IC, #{ z_end: 0, max_levl: 3 });"#,
        r#"                        ^"#,
        r#"evolve: unknown option "max_levl", did you mean "max_level"?"#,
    );
    check(
        r#"[1].map(|n| evolve(IC, #{ z_end: 0, checkpoints: #{ every_minuts: n } }));"#,
        r#"                                                    ^"#,
        r#"evolve: unknown option "every_minuts", did you mean "every_minutes"?"#,
    );
    check(
        r#"ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, species_transfer: #{ camb: "z49.dat" } });"#,
        r#"                                                            ^"#,
        "ic_gaussian: species_transfer: needs gas and dark matter; one species alone has the transfer function of all matter, so remove species_transfer",
    );
    check(
        r#"ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, gas: false });"#,
        r#"                                                            ^"#,
        "ic_gaussian: gas: false without dark matter is an empty universe; set dark_matter: true",
    );
    check(
        r#"let ic = ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, gas: false, dark_matter: true }); slice(evolve(ic, #{ z_end: 0 }), #{ field: "density" });"#,
        r#"                                                                                                                                           ^"#,
        r#"slice: field "density" is not in this snapshot: it holds no gas; use dark_matter_density, matter_density or potential"#,
    );
    check(r#"evolve(IC, #{ max_level: 0 });"#, "^", r#"evolve: the option "z_end" is missing"#);
    check(
        r#"evolve(IC, #{ z_end: "today" });"#,
        r#"              ^"#,
        r#"evolve: z_end: the text "today", expected a number"#,
    );
    check(
        r#"evolve(IC, #{ z_end: 0, max_level: 1.5 });"#,
        r#"                        ^"#,
        "evolve: max_level: the real number 1.5, expected a whole number from 0 on",
    );
    check(
        r#"evolve(IC, #{ z_end: 0, precision: "half" });"#,
        r#"                        ^"#,
        r#"evolve: precision: "half" is not one of "single", "double""#,
    );
    check(
        "evolve(IC, #{ z_end: 0, gamma: 5/3 });",
        "                        ^",
        "evolve: gamma = 1: must lie in (1, 3]; write 5.0/3.0, because 5/3 is the whole number 1",
    );
    check("evolve(IC, #{ z_end: 60 });", "              ^", "evolve: z = 60 is not after the start at z = 49");
    check("halos(RUN, #{ dleta: 200 });", "              ^", r#"halos: unknown option "dleta", did you mean "delta"?"#);
    check(r#"slice(RUN, #{ at_z: 3 });"#, r#"              ^"#, "slice: at_z: 3 is not among the run's outputs (2, 0)");
    check(
        "ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, root: 20, z: 49, seed: 1 });",
        "                                            ^",
        "ic_gaussian: root = [20, 20, 20]: every axis needs a multiple of 16 cells",
    );
    check(
        "ic_gaussian(C, #{ box_mpc_h: 25, cells: [64, 32], z: 49, seed: 1 });",
        "                                 ^",
        "ic_gaussian: cells: 2 entries, expected a whole number of cells, or a list of three along x, y, z",
    );
    check(
        r#"evolve(IC, #{ z_end: 0, boundary: #{ x: "outlfow" } });"#,
        r#"                                     ^"#,
        r#"evolve: boundary.x: "outlfow" is not one of "periodic", "outflow", "reflecting", "fixed""#,
    );
    check(
        r#"evolve(IC, #{ z_end: 0, boundary: #{ x: "outflow" } });"#,
        r#"                        ^"#,
        "evolve: boundary = {x:outflow,y:periodic,z:periodic}: gravity is periodic and needs a box that is periodic \
         along all axes: set boundary: \"periodic\", or gravity_boundary: \"isolated\" (no axis periodic), or gravity: \
         false",
    );
    check(
        "cosmology(#{ h: 70, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });",
        "             ^",
        "cosmology: h = 70: must lie between 0.1 and 2, as H0/(100 km/s/Mpc)",
    );
    check(
        "cosmology(#{ h: 0.7, omega_m: 0.1, omega_lambda: 2.8, omega_b: 0, sigma8: 0.9, n_s: 1 });",
        "                                   ^",
        "cosmology: omega_lambda = 2.8: (H/H0)² is not positive at a = 0.794; reduce omega_lambda",
    );
    check(
        "cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1, m_nu_ev: 3 });",
        "                                                                        ^",
        "cosmology: m_nu_ev = 3: must lie between 0 and 2, as the sum of neutrino masses in eV",
    );
}

/// Starts from a formula, and the two ways to count time.
#[test]
fn starts() {
    check(r#"problem("shok_tube");"#, "^", r#"problem: unknown problem "shok_tube", did you mean "shock_tube"?"#);
    check(
        r#"problem("shock_tube", #{ levls: 2 });"#,
        r#"                         ^"#,
        r#"problem: unknown option "levls", did you mean "levels"?"#,
    );
    check(
        r#"problem("shock_tube", #{ root: 20 });"#,
        r#"                         ^"#,
        "problem: root: [20, 16, 16]: every axis needs a multiple of 16 cells",
    );
    check(
        r#"evolve(problem("uniform_flow"), #{ z_end: 0 });"#,
        r#"                                   ^"#,
        "evolve: z = 0, but the start is in non-comoving coordinates; use t_end and at_t instead of z_end and at_z",
    );
    check(
        "evolve(IC, #{ z_end: 0, outputs: #{ at_t: [1] } });",
        "                        ^",
        "evolve: t = 1, but the start is in comoving coordinates; use z_end and at_z instead of t_end and at_t",
    );
    check(
        "evolve(IC, #{ z_end: 0, outputs: [2, 1] });",
        "                        ^",
        "evolve: outputs: a list, expected a map #{…}",
    );
    check(
        r#"evolve(problem("uniform_flow"), #{ gamma: 1.4 });"#,
        r#"                                   ^"#,
        "evolve: gamma = 1.4: the initial state has gamma = 1.6666666666666667; set gamma there",
    );
    check(
        "ic_function(#{ box: 1, root: 32, z: 9 }, |x, y, z| #{ density: 1, pressure: 1 });",
        "                                 ^",
        "ic_function: z is an option of comoving coordinates; without a cosmology use box and t",
    );
    check(
        "evolve(ic_function(#{ box: 1, root: [32, 16, 16] }, |x, y, z| #{ density: 1, pressure: 1 }), #{});",
        "^",
        r#"evolve: the option "t_end" is missing"#,
    );
    check(
        "compare(RUN);",
        "^",
        r#"compare: the run has no solution to compare with; start it from problem("name", #{ … })"#,
    );
    check(r#"slice(RUN, #{ at_t: 3 });"#, r#"              ^"#, "slice: at_t: 3 is not among the run's outputs (2, 0)");
}

#[test]
fn criteria() {
    check(
        "evolve(IC, #{ z_end: 0, refine: density_above(8) });",
        "                        ^",
        "evolve: refine has no effect without max_level; add max_level: 3",
    );
    let none = "campaign(\"c\", [evolve(IC, #{ z_end: 0, max_level: 0, refine: density_above(8) })])";
    verdict(&format!("{BEFORE}{none}"), &[]).expect("nobody is surprised");
    check(r#"density_above([8, "64"]);"#, "^", "density_above: a threshold is a text, expected a number");
    check("mass_above(0);", "^", "mass_above: a threshold of 0: must be positive");
    check("region_of_particles(0);", "^", "region_of_particles: level is 0; expected a whole number from 1 to 16");
    check("particles_above(true);", "^", "particles_above: a threshold is a truth value, expected a number");
    check("overdensity_above(|level| level - 1);", "^", "overdensity_above: a threshold of -1: must be positive");
    check(
        r#"gradient_above("entropy", 0.1);"#,
        "^",
        r#"gradient_above: "entropy" is not one of "density", "pressure", "velocity""#,
    );
    check(
        r#"lohner_above("density", 0.8, #{ filtre: 0.1 });"#,
        "                                ^",
        r#"lohner_above: unknown option "filtre", did you mean "filter"?"#,
    );
    check("region(#{ center: [1, 2, 3], radius: 2 });", "^", r#"region: the option "level" is missing"#);
    check(
        "region(#{ min: [1, 2], max: [2, 3, 4], level: 1 });",
        "          ^",
        "region: min: 2 entries, expected a list of 3",
    );
    check(
        "evolve(IC, #{ z_end: 0, max_level: 1, refine: region(#{ min: [1, 2, 3], max: [2, 1, 4], level: 1 }) });",
        "                                      ^",
        "evolve: refine = 1: a region's max must exceed its min along every axis",
    );
    check(
        "evolve(IC, #{ z_end: 0, max_level: 1, gravity: false, refine: jeans_cells_below(4) });",
        "                                                      ^",
        "evolve: refine = jeans_cells_below: needs the gravity of the gas; set gravity: true",
    );
}

/// What no program has is named at its token.
#[test]
fn expressions() {
    for (line, caret, message) in [
        (
            "refine_where(|c| c.densty > 8);",
            "                   ^",
            r#"unknown field "densty", did you mean "density"?"#,
        ),
        ("refine_where(|c| sin(c.x) > 0.5);", "                 ^", r#"unknown function "sin", did you mean "min"?"#),
        (
            "refine_where(|c| c.density.floor() > 8);",
            "                           ^",
            r#"unknown function "floor", a criterion has min, max, abs, sqrt, ln, exp, pow, log, to_float"#,
        ),
        (
            r#"refine_where(|c| c.density > "8");"#,
            "                             ^",
            "a text cannot be used in a criterion",
        ),
        ("refine_where(|c| c.x > [1, 2]);", "                       ^", "a list cannot be used in a criterion"),
        (
            "refine_where(|c| c > 8);",
            "                 ^",
            r#""c" is the cell; use one of its fields, as in c.density"#,
        ),
        (
            "refine_where(|c| c.density);",
            "                 ^",
            "the closure returns a real number; end it with a comparison",
        ),
        (
            "refine_where(|c| c.density && c.x > 1);",
            "                           ^",
            r#""&&" cannot take a real number and a truth value"#,
        ),
        (
            "refine_where(|c| { let d = c.density; d += 1; d > 2 });",
            "                                        ^",
            "an assignment cannot be used in a criterion: use let and end with a comparison",
        ),
        (
            "refine_where(|c| { while true { } c.x > 2 });",
            "                   ^",
            "a loop cannot be used in a criterion: use let and end with a comparison",
        ),
        (
            "refine_where(|c| c.level / 0 > 2);",
            "                         ^",
            "a whole number cannot be divided by zero",
        ),
        ("refine_where(|c| min(c.x) > 2);", "                 ^", r#""min" takes 2 numbers, not 1"#),
        (
            "refine_where(|c| c.x > IC);",
            "                       ^",
            r#""IC" is an initial condition; a criterion can use only numbers and truth values"#,
        ),
        (
            "refine_where(|c| if c.x > 1 { c.y > 1 });",
            "                 ^",
            r#""if" needs an "else" here, because it must return a value"#,
        ),
        (
            "refine_where(|c| (if c.x > 1 { c.level } else { c.y }) > 1);",
            "                  ^",
            r#""if" returns a whole number or a real number; make both the same type"#,
        ),
        ("refine_where(|c, d| c.x > 1);", "^", "the expression must be a closure of one cell, as in |c| c.density > 8"),
    ] {
        check(line, caret, &format!("refine_where: {message}"));
    }
}

#[test]
fn names_and_values() {
    check(
        "RUN;",
        "^",
        "the recipe ends with a run, not with a campaign; add the last line campaign(\"bad\", [IC, RUN])",
    );
    check("#{ a: 1 }.b;", "          ^", "no property \"b\"");
    check("evolv(IC, #{});", "^", "unknown function \"evolv\", did you mean \"evolve\"?");
    check("C.omga_m;", "  ^", "a cosmology has no property \"omga_m\", did you mean \"omega_m\"?");
    check("C.age_gry(1);", "  ^", "unknown function \"age_gry\", did you mean \"age_gyr\"?");
    check(
        "C.age_gyr(\"x\");",
        "  ^",
        "age_gyr: cannot take a cosmology and a text; use age_gyr(cosmology: Cosmology, z: float) -> float",
    );
    check("density_pdf(IC);", "^", "density_pdf: cannot take an initial condition; use density_pdf(RUN, #{ … })");
    check("campaign(\"x\", [RUN, 3]);", "^", "campaign: entry 2 of the list is a whole number, not a stage");
    check(
        "measure(\"a b\", RUN, |s| 1);",
        "^",
        "measure: the name \"a b\" becomes a folder name; use only letters, digits, - and _",
    );
    check(
        "campaign(\"x\", [RUN] + halos(RUN));",
        "                    ^",
        "no function \"+\" takes a list and an analysis; write the list [A, B] instead of A + B",
    );
    check("let C = 3;", "    ^", "\"C\" is already defined; choose another name");
}

/// What a closure calls is looked at before it is called, when the run that it measures is done.
#[test]
fn closures_before_they_are_called() {
    for (line, caret, message) in [
        (
            "measure(\"m\", RUN, |s| #{ h: s.histgram(\"density\") });",
            "                              ^",
            "unknown function \"histgram\", did you mean \"histogram\"?",
        ),
        (
            "measure(\"m\", RUN, |s| #{ x: [1.0, 2.0].redce(|sum, x| sum + x, 0.0) });",
            "                                       ^",
            "unknown function \"redce\", did you mean \"reduce\"?",
        ),
        (
            "evolve(IC, #{ z_end: 0, stop_when: |step| sqr(step.z) < 1 });",
            "                                          ^",
            "unknown function \"sqr\", did you mean \"sqrt\"?",
        ),
        ("measure(\"m\", RUN, |s, t| #{ x: 1 });", "^", "measure: the closure has 2 parameters, but is called with 1"),
        ("combine(\"c\", [RUN], || #{ x: 1 });", "^", "combine: the closure has 0 parameters, but is called with 1"),
        (
            "evolve(IC, #{ z_end: 0, stop_when: |a, b| true });",
            "^",
            "evolve: the closure has 2 parameters, but is called with 1",
        ),
        ("[1, 2].sum();", "       ^", "a list has no function \"sum\"; use list.reduce(|sum, x| sum + x, 0.0)"),
        (
            "fn half(x) { x / 2 } half([1], 2);",
            "                     ^",
            "no function \"half\" takes a list and a whole number",
        ),
    ] {
        check(line, caret, message);
    }
    // a function of the recipe, Rhai's own, and a closure that a map holds
    let fine = "fn half(x) { x / 2.0 }
        measure(\"m\", RUN, |s| {
            let tools = #{ twice: |x| 2 * x };
            #{ x: half([1.0].reduce(|sum, x| sum + x, 0.0)), y: tools.twice(3) }
        });
        campaign(\"c\", [RUN])";
    verdict(&format!("{BEFORE}{fine}"), &[]).unwrap();
}

/// What Rhai, and its parser, say in their own words is said in those of recipes.
#[test]
fn words_of_the_language() {
    for (line, caret, message) in [
        ("if 3 { }", "   ^", "expected a truth value, found a number"),
        ("let x = [1, 2;", "             ^", "\",\" is missing to separate the items of this list"),
        ("let m = #{ a: 1, a: 2 };", "                 ^", "the map has the key \"a\" twice; remove one"),
        ("C = 3;", "^", "the constant \"C\" cannot be changed; declare it with let"),
        ("let x = [1, 2]; x[5];", "                  ^", "the list has no entry 5; it has 2, counted from 0"),
        (
            "const L = [1]; L.push(2);",
            "                 ^",
            "\"push\" cannot change a constant; call it on a copy (let copy = …)",
        ),
        ("for x in 3 { }", "         ^", "expected a list, a text or a range, found a number"),
        ("[1, 2][\"a\"];", "       ^", "a list or text needs a number as index, not a text"),
        ("cosmology(#{ h: true });", "             ^", "cosmology: h: the truth value true, expected a number"),
        (
            "problem(\"shock_tube\", #{ left: 3 });",
            "                         ^",
            "problem: left: the whole number 3, expected a map #{…}",
        ),
    ] {
        check(line, caret, message);
    }
}

#[test]
fn nothing_outside_the_recipe() {
    check("timestamp();", "^", "unknown function \"timestamp\"");
    check("eval(\"1\");", "^", "reserved keyword 'eval' is disabled");
    check("loop { }", "     ^", "the recipe exceeds its limit of operations; check it for an endless loop");
}

/// Recipes of which `check` knows that a stage will fail: positions and regions outside the box, starts that cannot be,
/// species, levels and fields that a run has not.
#[test]
fn what_check_knows() {
    const GAS: &str = "const G = RUN;";
    const DARK: &str = "const G = evolve(ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, dark_matter: true, gas: false }), \
                        #{ z_end: 0 });";
    const BOTH: &str = "const G = evolve(ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, dark_matter: true }), \
                        #{ z_end: 0 });";
    const TUBE: &str = "const G = evolve(problem(\"shock_tube\"));";
    let start = |options: &str| format!("ic_gaussian(C, #{{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, {options} }});");
    let gas = |refine: &str| format!("evolve(IC, #{{ z_end: 0, max_level: 2, refine: {refine} }});");
    let dark = |refine: &str| {
        format!(
            "evolve(ic_gaussian(C, #{{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, dark_matter: true, gas: false }}), \
                 #{{ z_end: 0, max_level: 2, refine: {refine} }});"
        )
    };
    let text = String::from;
    let rows: Vec<(&str, String, &str)> = vec![
        // positions
        (
            GAS,
            text("slice(G, #{ center: [30, 2, 2] });"),
            "slice: center = [30.0, 2.0, 2.0]: x must lie in the box, [0, 25]",
        ),
        (GAS, text("slice(G, #{ center: [1, -0.5, 2] });"), "y must lie in the box, [0, 25]"),
        (GAS, text("projection(G, #{ center: [1, 2, 25.5] });"), "z must lie in the box, [0, 25]"),
        (GAS, text("slice(G, #{ width_mpc_h: 26 });"), "width_mpc_h = 26: must be positive and fit into the box, 25"),
        (GAS, text("slice(G, #{ width_mpc_h: 0 });"), "width_mpc_h = 0: must be positive"),
        (
            GAS,
            text("projection(G, #{ depth_mpc_h: 60 });"),
            "depth_mpc_h = 60: must be positive and fit into the box, 25",
        ),
        (GAS, text("slice(G, #{ width_mpc_h: 0.0/0.0 });"), "width_mpc_h: NaN cannot be an option's value"),
        (TUBE, text("slice(G, #{ center: [3000, 1, 1] });"), "x must lie in the box, [0, 2048]"),
        // regions
        (
            "",
            gas("region(#{ center: [1, 60, 1], radius: 2, level: 1 })"),
            "refine = region(#{ center: [1.0, 60.0, 1.0], radius: 2, level: 1 }): lies outside the box by its radius or \
             more: its center along y should be in [-25, 50] (the box and its periodic images); take y % 25",
        ),
        (
            "",
            gas("region(#{ center: [1, 1, 1], radius: 0, level: 1 })"),
            "refine = 0: a region's radius must be positive",
        ),
        (
            "",
            gas("region(#{ min: [50, 0, 0], max: [51, 2, 2], level: 1 })"),
            "refine = region(#{ min: [50.0, 0.0, 0.0], max: [51.0, 2.0, 2.0], level: 1 }): lies outside the box: along x it \
             must overlap [-25, 50]",
        ),
        (
            "",
            gas("not(region(#{ min: [0, 0, -27], max: [1, 1, -25], level: 1 }))"),
            "lies outside the box: along z it must overlap [-25, 50] (the box and its periodic images)",
        ),
        // criteria and species
        ("", gas("particles_above(8)"), "refine = particles_above: needs dark matter, and the run has none"),
        (
            "",
            gas("all([density_above(8), refine_where(|c| c.dark_matter_density > 2)])"),
            "refine = refine_where(|c| c.dark_matter_density > 2): needs dark matter",
        ),
        (
            "",
            dark("any([density_above(8), refine_where(|c| c.gas_density > 2)])"),
            "refine = refine_where(|c| c.gas_density > 2): needs gas, and the run has none",
        ),
        ("", dark("not(jeans_cells_below(4))"), "refine = jeans_cells_below: needs gas, and the run has none"),
        ("", gas("all([])"), "all: the list is empty"),
        ("", gas("any([density_above(8), 3])"), "any: entry 2 of the list is a whole number, not a criterion"),
        ("", text("not(true);"), "not: the argument is a truth value, not a criterion"),
        (
            "",
            text("evolve(IC, #{ z_end: 0, max_level: 1, refine: density_above(8), max_cells: 1000 });"),
            "max_cells = 1000: must be at least 32768, the cells of the root level",
        ),
        // starts
        ("", start("temperature_k: 0"), "temperature_k = 0: must be positive, in K"),
        ("", start("temperature_k: -3"), "temperature_k = -3: must be positive, in K"),
        ("", start("mean_molecular_weight: 0"), "mean_molecular_weight = 0: must lie between 0.4 and 10"),
        (
            "",
            text("ic_gaussian(C, #{ box_mpc_h: -25, cells: 32, z: 49, seed: 1 });"),
            "box_mpc_h = -25: must be positive",
        ),
        ("", text("ic_gaussian(C, #{ box_mpc_h: 25, cells: 32, z: 0, seed: 1 });"), "z = 0: must be positive"),
        (
            "",
            text(
                "ic_load(C, \"mesh.h5\", #{ box_mpc_h: 25, cells: 32, z: 49, format: \"comove_ic\", temperature_k: 0 });",
            ),
            "temperature_k = 0: must be positive, in K",
        ),
        (
            "",
            text(
                "ic_function(#{ box: 1, root: 16, mean_molecular_weight: -1 }, |x, y, z| #{ density: 1, pressure: 1 });",
            ),
            "mean_molecular_weight = -1: must lie between 0.4 and 10",
        ),
        ("", text("problem(\"pancake\", #{ temperature_k: 0 });"), "problem: temperature_k: 0 must be positive"),
        ("", text("problem(\"uniform_flow\", #{ density: -1 });"), "problem: density: -1 must be positive"),
        // analyses
        (
            GAS,
            text("power_spectrum(G, #{ species: \"dark_matter\" });"),
            "power_spectrum: species = dark matter: the snapshot has none",
        ),
        (GAS, text("power_spectrum(G, #{ species: \"cross\" });"), "species = dark matter: the snapshot has none"),
        (DARK, text("power_spectrum(G, #{ species: \"gas\" });"), "species = gas: the snapshot has none"),
        (
            GAS,
            text("power_spectrum(G, #{ subtract_shot_noise: true });"),
            "power_spectrum: subtract_shot_noise = true: gas has no shot noise, and there are no particles; leave the option out",
        ),
        (
            GAS,
            text("power_spectrum(G, #{ bins: #{ per_decade: 0 } });"),
            "bins = 0: must lie between 1 and 200 per factor of ten",
        ),
        (
            GAS,
            text("power_spectrum(G, #{ level: 3 });"),
            "level = 3: must be at most the run's max_level = 0, the level of its finest gas cells",
        ),
        (
            GAS,
            text("density_pdf(G, #{ bins_per_decade: 0 });"),
            "density_pdf: bins_per_decade = 0: must lie between 1 and 200",
        ),
        (GAS, text("slice(G, #{ field: \"dark_matter_density\" });"), "the run has no dark matter"),
        (BOTH, text("slice(G, #{ field: \"potentail\" });"), "unknown field \"potentail\""),
        (TUBE, text("slice(G, #{ field: \"potential\" });"), "the run has no potential; set gravity: true"),
        (TUBE, text("halos(G, #{ reference: \"critical\" });"), "needs comoving coordinates"),
        (TUBE, text("mass_function(halos(G));"), "the run has non-comoving coordinates"),
        (
            GAS,
            text("halos(G, #{ profile: #{ r_max_mpc_h: 13 } });"),
            "r_max_mpc_h = 13: must be at most half the box, 12.5",
        ),
        (
            GAS,
            text("halos(G, #{ profile: #{ r_min_mpc_h: 2, r_max_mpc_h: 1 } });"),
            "r_max_mpc_h = 1: must exceed r_min_mpc_h = 2",
        ),
        (
            GAS,
            text("halos(G, #{ profile: #{ bins_per_decade: 0 } });"),
            "bins_per_decade = 0: must lie between 1 and 100",
        ),
        (GAS, text("slice(G, #{ at_z: 1 });"), "at_z: 1 is not among the run's outputs (2, 0)"),
        ("", text("refinement_ratio([]);"), "refinement_ratio: the list is empty"),
        (
            "",
            text(
                "campaign(\"c\", [1, 2].map(|n| evolve(IC, #{ z_end: 3, max_level: n, refine: density_above(8), name: \"a\" })))",
            ),
            "two runs are named \"a\"; give each a name of its own",
        ),
        ("", text("force_test(#{ pairs: 0 });"), "force_test: pairs = 0: must be at least 1"),
    ];
    for (before, line, message) in rows {
        let error = verdict(&format!("{BEFORE}{before}\n{line}\n"), &[]).expect_err(&line);
        assert!(error.to_string().contains(message), "{line}: {error}");
        assert_eq!(error.exit_code(), 3, "{line}");
    }
    // the nearest that is right
    let right = format!(
        "{BEFORE}{BOTH}
        const REFINE = all([
            any([region(#{{ min: [-2, 24, 0], max: [2, 26, 25], level: 1 }}), region(#{{ center: [25, 0, 1], radius: 40, level: 1 }})]),
            not(refine_where(|c| c.dark_matter_density > c.gas_density || c.density > c.overdensity)),
        ]);
        const FINE = evolve(ic_gaussian(C, #{{ box_mpc_h: 25, cells: 32, z: 49, seed: 1, dark_matter: true }}),
                            #{{ z_end: 0, max_level: 1, refine: REFINE, max_cells: 32768 }});
        campaign(\"c\", [slice(G, #{{ center: [25, 25, 0], width_mpc_h: 25 }}), FINE, power_spectrum(FINE, #{{ level: 1 }}),
                        power_spectrum(G, #{{ species: \"dark_matter\", level: 2 }}), slice(G, #{{ field: \"potential\" }})])"
    );
    verdict(&right, &[]).unwrap();
}

/// What no snapshot is needed for is refused before there is one.
#[test]
fn options_of_analyses() {
    for (line, caret, message) in [
        ("halos(RUN, #{ delta: -1 });", "              ^", "halos: delta = -1: must exceed 1"),
        (
            "slice(RUN, #{ width_mpc_h: -3 });",
            "              ^",
            "slice: width_mpc_h = -3: must be positive and fit into the box",
        ),
        (
            "projection(RUN, #{ pixels: 1 });",
            "                   ^",
            "projection: pixels = 1: must lie between 16 and 8192 along each side",
        ),
        (
            "halos(RUN, #{ finder: \"fof\" });",
            "              ^",
            "halos: finder = \"fof\": friends of friends need dark matter, and the run has none; set dark_matter: \
                                    true in ic_gaussian, or use finder: \"peaks\" for density peaks of the gas",
        ),
        (
            "mass_function(RUN);",
            "^",
            "mass_function: finder = \"fof\": friends of friends need dark matter, and the run has none; set \
                                            dark_matter: true in ic_gaussian, or use finder: \"peaks\" for density \
                                            peaks of the gas in \
             halos(RUN, #{ … }), which mass_function takes too",
        ),
        (
            "halos(RUN, #{ finder: \"fof\", delta: 200 });",
            "                             ^",
            "halos: unknown option \"delta\", known are linking_length, min_particles, finder, profiles, profile, at_z, at_t, name",
        ),
        (
            "mass_function(halos(RUN), #{ definition: \"fof\" });",
            "                             ^",
            "mass_function: definition = \"fof\": needs friends-of-friends halos, and these are density peaks; set \
                                                finder: \"fof\" in halos",
        ),
        ("mass_function(slice(RUN));", "^", "mass_function: needs halos(RUN, #{ … }) or a run, not slice"),
        (
            "mass_function(halos(RUN), #{ bins_per_decade: 0 });",
            "                             ^",
            "mass_function: bins_per_decade = 0: must lie between 1 and 50",
        ),
    ] {
        check(line, caret, message);
    }
}

#[test]
fn parameters() {
    let recipe = format!("{BEFORE}const N = param(\"cells\", 32, \"cells per axis\");\ncampaign(\"x\", [RUN])");
    assert!(verdict(&recipe, &[("cells", "64")]).is_ok());
    let error = verdict(&recipe, &[("cels", "64")]).unwrap_err();
    assert_eq!(error.to_string(), "-p cels: unknown parameter; did you mean \"cells\"? the recipe declares: cells");
    assert_eq!(error.exit_code(), 2);
    let error = verdict(&recipe, &[("cells", "many")]).unwrap_err().to_string();
    assert!(
        error.starts_with("bad.rhai:4:11: param: -p cells=many: cells is a whole number (32 by default)"),
        "{error}"
    );
}

//! Recipes with pieces dropped, swapped, doubled, taken from others, numbers that are too large and brackets that do not
//! close: each is refused or planned, in its time, and nothing is written outside its campaign folder.
//! `COMOVE_FUZZ=10000 cargo test --release --locked -p comove --test integration fuzz_recipes -- --nocapture` tries ten
//! thousand; by default it is a few hundred. Of ten thousand 1669 are planned and 688 run; that takes a quarter of an hour on
//! two busy cores.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::fuzz::{CUT_SHORT, Dice, Ended, in_parallel, limited, mutated, print, run, tokens, wanted};
use comove::testing::{Callers, PARTS};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// A recipe's evaluation ends after 20 s, whatever it does.
const PLANNED: Duration = Duration::from_secs(60);
/// A campaign that is told to leave some seconds before [`WALLTIME`].
const RUN: Duration = Duration::from_secs(60);
const WALLTIME: &str = "8s";
/// One in which a stage did not hear that.
const LONG_RUN: Duration = Duration::from_secs(180);
const LONG_WALLTIME: &str = "100s";
/// GiB that a campaign may ask for and is run nonetheless.
const MODEST: f64 = 0.2;

/// For texts that take it as given.
const COSMOLOGY: &str = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\n";
const INITIAL: &str = "const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 5, baryons_only: true });\n";

/// Campaigns of a second or less that use whatever a closure may call: what is changed of them is run.
const SMALL: [&str; 8] = [
    r#"const RUN = evolve(IC, #{
    z_end: 47, max_level: 1, refine: density_above(1.3), regrid_every: 2,
    outputs: #{ at_z: [48] }, checkpoints: #{ every_minutes: 0, keep: 2 },
});
const PEAK = measure("peak", RUN, #{ at_z: "all" }, |s| #{
    place: s.densest().position, mean: s.field("density", 0).mean(), at: s.value("density", [1, 2, 3]),
    box: s.box_mpc_h, levels: s.levels, z: s.redshift, a: s.a, step: s.step,
});
const MORE = PEAK.then(|peak| [slice(RUN, #{ center: peak.place, axis: "x", pixels: 16 })]);
campaign("small", [MORE, slice(RUN, #{ center: PEAK.place, pixels: 16 }), projection(RUN, #{ pixels: 16 }), density_pdf(RUN),
    refinement_ratio(RUN), power_spectrum(RUN, #{ at_z: "all", bins: #{ per_decade: 8 } }),
    halos(RUN, #{ delta: 1.2, min_cells: 2 })], #{ attempts: 2 })
"#,
    r#"const RUN = evolve(IC, #{ z_end: 48, time_steps: "individual", max_level: 1,
    refine: [density_above([1.3]), gradient_above("pressure", 0.9), lohner_above("density", 0.9, #{ filter: 0.02 }),
        region(#{ center: [5, 5, 5], radius: 1, level: 1 }), overdensity_above(9), jeans_cells_below(0.1)] });
const M = measure("m", RUN, |s| {
    let ball = #{ center: s.densest().position, radius: 5 };
    let plane = s.slice(#{ center: [10, 10, 10], pixels: 16 });
    let halos = s.halos(#{ delta: 1.2, min_cells: 2 });
    let shells = if halos.len() > 0 { s.profile(halos[0], #{ bins_per_decade: 4 }) } else { [] };
    #{
        all: s.statistics("density"), ball: s.statistics("density", ball), totals: s.totals(), shells: shells,
        bins: s.histogram("density", #{ bins: 5 } + ball), shape: plane.shape, most: plane.max(), least: plane.min(),
        corner: plane.at(0, 0, 0), column: s.projection(#{ pixels: 16 }).sum(), grid: s.field("temperature", 0).variance(),
        table: #{ name: "halos", columns: ["mass", "radius"], rows: halos.map(|h| [h.mass_msun_h, h.radius_mpc_h]) },
        plot: #{ title: "Spectrum", log: "xy", x_label: "k",
            curves: [#{ name: "P", points: s.power_spectrum().bins.map(|b| [b.k_h_mpc, b.power_mpc3_h3]) }] },
    }
});
campaign("small", [M])
"#,
    r#"const SEEDS = [1, 2];
const RUNS = SEEDS.map(|seed| evolve(ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: seed, dark_matter: true, lpt_order: 3, follow: [0, 17, 300] }),
    #{ z_end: 48, max_level: 1, refine: any([mass_above(30), all([particles_above(30), region_of_particles(1), not(mass_above(40))])]) }));
fn spread(s) {
    let some = s.particles(#{ most: 9 });
    s.statistics("density").variance + some.len() + s.lagrangian_region(some, #{ margin_mpc_h: 1 }).extent[0]
}
const ALL = combine("all", RUNS.map(|run| measure("spread", run, |s| spread(s))) + [RUNS[0]], |results| {
    let run = results.pop();
    let rows = results.map(|one| [one.z, one.result, C.growth_factor(one.z), C.age_gyr(one.z)]);
    #{
        table: #{ name: "spread", columns: ["z", "variance", "growth", "age"], rows: rows },
        outputs: run.outputs, last: run.snapshot().a, at: run.snapshot(48).t, first: run.output(0).a,
        times: run.map(|s| s.a),
    }
});
campaign("small", [ALL, mass_function(RUNS[0], #{ definition: "vir" })])
"#,
    r#"const N = param("n", 16, "cells");
const IC2 = ic_function(#{ box: 2, root: [2 * N, 16, 16], gamma: 1.4 }, |x, y, z| {
    let r2 = (x - 0.7) ** 2.0 + (y - 0.5) ** 2.0 + (z - 0.5) ** 2.0;
    #{ density: 1 + 4 * exp(-r2 / 0.01), velocity: [1, 0, 0], pressure: 1 }
});
const RUN = evolve(IC2, #{ t_end: 0.02, max_level: 1, boundary: #{ x: "outflow" }, gravity: false, precision: "double",
    refine: refine_where(|c| c.density > 2 && c.pressure < 3) });
const WAVE = evolve(problem("acoustic_wave", #{ root: 16, amplitude: 1e-3 }), #{ t_end: 10 });
campaign("small", [compare(WAVE), slice(RUN, #{ axis: "x" }), measure("box", RUN, |s| [s.box, s.t])])
"#,
    r#"let z = 2;
let all = [C.h, C.omega_m, C.omega_cb, C.m_nu_ev, C.omega_b, C.omega_lambda, C.sigma8, C.n_s, C.comoving_distance_mpc_h(z),
    C.transverse_distance_mpc_h(z), C.angular_diameter_distance_mpc_h(z), C.luminosity_distance_mpc_h(z),
    C.lookback_time_gyr(z), C.growth_rate(z), C.linear_power(0.1, z), C.sigma8(z), C.hubble_km_s_mpc(z), C.critical_over_mean(z)];
print(`${all}`);
campaign("small", [force_test(#{ root: 16, pairs: 2, levels: 1, bins: 1, separations: [0.5, 6], seed: all.len() })])
"#,
    r#"const LOADED = ic_load(C, "mesh.h5", #{ box_mpc_h: 20, cells: 16, z: 49, format: "comove_ic" });
const ON = evolve(from_snapshot("snapshot.h5"), #{ z_end: 46.9, branch: true, max_level: 0 });
campaign("small", [ic_report(LOADED), evolve(LOADED, #{ z_end: 48 }), ON, density_pdf(from_snapshot("snapshot.h5"))])
"#,
    r#"const SEDOV = evolve(problem("sedov", #{ root: 16, levels: 1, precision: "single", gamma: 1.4, energy: 800000, background: 0.00001, end: 1 }));
const JEANS = evolve(problem("jeans", #{ root: 16, levels: 1, amplitude: 1e-6, newton: 0.001, box_length: 128, growth: 1.1 }));
const TUBE = evolve(problem("shock_tube", #{ root: 16, levels: 1, left: #{ density: 1, pressure: 1 }, right: #{ density: 0.125, pressure: 0.1 },
    interface: 0.5, end: 2 }), #{ time_steps: "uniform" });
const FLOW = evolve(problem("converging_flow", #{ root: 16, levels: 0, mach: 10, focus: [0.47, 0.52, 0.55] }), #{ t_end: 1e-4 });
campaign("small", [compare(SEDOV), compare(JEANS), compare(TUBE), refinement_ratio([SEDOV, TUBE]), FLOW, evolve(problem("uniform_flow", #{ root: 16 }), #{ t_end: 0.01 })])
"#,
    r#"const PANCAKE = evolve(problem("pancake", #{ root: [32, 16, 16], levels: 1, box_mpc_h: 64, h: 0.5, wave_numbers: [1, 0, 0], z_start: 100,
    z_caustic: 1, temperature_k: 100, refine_above: 2 }), #{ z_end: 80, outputs: #{ at_z: [90] } });
const SPHERE = evolve(problem("spherical_collapse", #{ root: 16, levels: 1, box_length: 2048, radius: 160, overdensity: 0.01,
    a_start: 1e-5, a_end: 1.2e-5, isolated: true }));
campaign("small", [compare(PANCAKE, #{ at_z: "all" }), compare(SPHERE), slice(PANCAKE, #{ field: "temperature", axis: "y" })])
"#,
];

/// Texts between `r#"` and `"#` of the tests' own sources that have a campaign, or what belongs before one.
fn texts_of_tests() -> Vec<String> {
    let sources = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration")).unwrap();
    let mut texts = Vec::new();
    for path in sources.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "rs")) {
        let source = fs::read_to_string(path).unwrap();
        for text in source.split("r#\"").skip(1).filter_map(|rest| rest.split("\"#").next()) {
            if text.contains('\n') && text.contains("campaign(") {
                texts.push(text.replace("#{{", "#{").replace("{{", "{").replace("}}", "}"));
            }
        }
    }
    texts
}

/// Every recipe below `recipes/`.
fn recipes(folder: &Path) -> Vec<String> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let of = |path: PathBuf| {
        let name = path.to_string_lossy();
        match path.is_dir() {
            true => recipes(&path),
            false if name.ends_with(".rhai") && !name.ends_with(".d.rhai") => vec![fs::read_to_string(&path).unwrap()],
            false => Vec::new(),
        }
    };
    entries.into_iter().flat_map(of).collect()
}

/// A folder in a folder in which nothing may change but the campaign.
struct Place(tempfile::TempDir);

impl Place {
    /// With the files that recipes name.
    fn new(files: &[PathBuf]) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.inner()).unwrap();
        fs::write(place.inner().join("r.rhai"), "").unwrap();
        for file in files {
            std::os::unix::fs::symlink(file, place.inner().join(file.file_name().unwrap())).unwrap();
        }
        place
    }

    fn inner(&self) -> PathBuf {
        self.0.path().join("inner")
    }

    /// What `comove` makes of a recipe.
    fn comove(&self, command: &str, recipe: &str, arguments: &[&str], limit: Duration) -> (Ended, String) {
        fs::write(self.inner().join("r.rhai"), recipe).unwrap();
        let mut process = limited(&cargo_bin("comove"));
        run(process.current_dir(self.inner()).args([command, "r.rhai", "--dir", "c"]).args(arguments), limit)
    }

    /// Everything outside the campaign folder.
    fn around(&self) -> Vec<String> {
        let entries = [self.0.path().to_path_buf(), self.inner()].map(|folder| fs::read_dir(folder).unwrap());
        let names = entries.into_iter().flatten().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "c").collect();
        names.sort();
        names
    }
}

/// The mesh and the snapshot that recipes name, made by the first of [`SMALL`].
fn files(folder: &Path) -> Vec<PathBuf> {
    let stages =
        fs::read_dir(folder.join("c")).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let made = stages.flat_map(|stage| ["initial_condition.h5", "output_z47.h5"].map(|file| stage.join(file)));
    let mut made: Vec<PathBuf> = made.filter(|path| path.exists()).collect();
    made.sort_by_key(|path| path.file_name().unwrap().to_owned());
    let files = ["mesh.h5", "snapshot.h5"].map(|name| folder.join(name));
    made.iter().zip(&files).for_each(|(made, file)| fs::rename(made, file).unwrap());
    files.into()
}

/// A message without the names and numbers of one recipe.
fn class(ended: Ended, said: &str) -> String {
    let Ended::With(code) = ended else { return format!("{ended:?}") };
    let mut lines = said.lines().filter(|line| !line.starts_with("   ") && !line.is_empty());
    let line = said.lines().rfind(|line| line.contains("r.rhai:")).or_else(|| lines.next_back()).unwrap_or_default();
    let message = line.split_once("r.rhai:").map_or(line, |(_, rest)| rest.splitn(3, ':').nth(2).unwrap_or(rest));
    let plain = message.split(['"', '(', ';', ',']).next().unwrap_or_default();
    let words: Vec<&str> =
        plain.split_whitespace().filter(|word| !word.contains(|c: char| c.is_ascii_digit())).take(4).collect();
    if code == 0 { "0".into() } else { format!("{code} {}", words.join(" ")) }
}

/// The GiB that a plan speaks of, the largest number.
fn needs(plan: &str) -> f64 {
    let words: Vec<&str> = plan.split_whitespace().collect();
    let numbers = words.windows(2).filter(|pair| pair[1] == "GiB").filter_map(|pair| pair[0].parse::<f64>().ok());
    numbers.fold(0.0, f64::max)
}

/// What of the recipes' surface stands in a text.
fn reached(recipe: &str) -> BTreeSet<&'static str> {
    let tokens = tokens(recipe);
    let words: BTreeSet<&str> = tokens.iter().map(String::as_str).collect();
    names().filter(|name| words.contains(name)).collect()
}

/// Functions, methods and properties that recipes have.
fn names() -> impl Iterator<Item = &'static str> {
    let parts = || PARTS.iter().filter(|part| part.callers != Callers::Scripts);
    let of_types = parts().flat_map(|part| part.types).flat_map(|kind| {
        kind.methods.iter().map(|method| method.name).chain(kind.properties.iter().map(|(name, ..)| *name))
    });
    parts().flat_map(|part| part.functions).map(|function| function.name).chain(of_types)
}

#[derive(Default)]
struct Outcomes {
    planned: BTreeMap<String, u64>,
    run: BTreeMap<String, u64>,
    reached: BTreeSet<&'static str>,
    bugs: Vec<String>,
}

#[test]
fn damaged_recipes_are_refused_or_done() {
    let small: Vec<String> = SMALL.iter().map(|recipe| format!("{COSMOLOGY}{INITIAL}{recipe}")).collect();
    let mut corpus = recipes(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../recipes"));
    let texts = texts_of_tests();
    corpus.extend(texts.iter().map(|text| {
        let given = [("C", COSMOLOGY), ("IC", INITIAL)];
        let missing = given.iter().filter(|(name, _)| !text.contains(&format!("const {name} =")));
        missing.map(|(_, line)| *line).chain([text.as_str()]).collect::<String>()
    }));
    let place = Place::new(&[]);
    let mut given = Vec::new();
    let outcomes = Mutex::new(Outcomes::default());
    for recipe in &small {
        let (ended, said) = place.comove("run", recipe, &[], RUN);
        assert_eq!(ended, Ended::With(0), "{said}\n{recipe}");
        if given.is_empty() {
            given = files(&place.inner());
        }
        fs::remove_dir_all(place.inner().join("c")).unwrap();
        outcomes.lock().unwrap().reached.extend(reached(recipe));
    }
    // some texts of tests are wrong on purpose, or want a file
    corpus.retain(|recipe| place.comove("plan", recipe, &[], PLANNED).0 == Ended::With(0));
    assert!(corpus.len() >= 20, "{} recipes to begin with", corpus.len());
    let all: Vec<Vec<String>> = small.iter().chain(&corpus).map(|recipe| tokens(recipe)).collect();
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzz_recipes");
    let count = wanted();
    in_parallel(count, |n| {
        let mut dice = Dice(n);
        // of every five two may be run
        let text = if n % 5 < 2 { &all[dice.below(SMALL.len())] } else { dice.pick(&all) };
        let other: &Vec<String> = dice.pick(&all);
        let recipe = mutated(text, other, &mut dice);
        let place = Place::new(&given);
        let look = |command: &str, arguments: &[&str], limit: Duration, fine: &[i32]| {
            let before = place.around();
            let (ended, said) = place.comove(command, &recipe, arguments, limit);
            let mut wrong = Vec::new();
            if !matches!(ended, Ended::With(code) if fine.contains(&code)) || said.contains("panicked at") {
                wrong.push(format!("{ended:?} {said}"));
            }
            let (after, begun) = (place.around(), place.inner().join("c").exists());
            if after != before || (begun && command == "plan") {
                wrong.push(format!("has written {after:?}"));
            }
            let mut outcomes = outcomes.lock().unwrap();
            if ended == Ended::With(0) {
                outcomes.reached.extend(reached(&recipe));
            }
            let counts = if command == "plan" { &mut outcomes.planned } else { &mut outcomes.run };
            *counts.entry(class(ended, &said)).or_default() += 1;
            if !wrong.is_empty() {
                fs::create_dir_all(&kept).unwrap();
                fs::write(kept.join(format!("{n}.rhai")), &recipe).unwrap();
                outcomes.bugs.push(format!("{n}: {command}: {}", wrong.join("; ")));
            }
            (ended, said)
        };
        let (ended, plan) = look("plan", &[], PLANNED, &[0, 2, 3, 4, 6, 8]);
        if n % 5 < 2 && ended == Ended::With(0) && needs(&plan) < MODEST {
            let run = |walltime, limit| {
                let arguments = ["--keep-going", "--threads", "1", "--walltime", walltime];
                look("run", &arguments, limit, &[0, 2, 3, 4, 6, 7, 8, 9, 75]).1
            };
            // a run may have a million steps to take, and hears that it is to stop; what does not hear it has another chance
            if run(WALLTIME, RUN).contains(CUT_SHORT) && run(LONG_WALLTIME, LONG_RUN).contains(CUT_SHORT) {
                outcomes.lock().unwrap().bugs.push(format!("{n}: a stage hangs\n{recipe}"));
            }
        }
    });
    let Outcomes { planned, run, reached, bugs } = outcomes.into_inner().unwrap();
    print("plans", &planned);
    print("campaigns", &run);
    let all: BTreeSet<&str> = names().collect();
    let missing: Vec<&&str> = all.difference(&reached).collect();
    println!("{} of {} functions, methods and properties reached; not {missing:?}", reached.len(), all.len());
    assert!(bugs.is_empty(), "{} bugs; the recipes are in {}:\n{}", bugs.len(), kept.display(), bugs.join("\n"));
    assert!(missing.is_empty(), "{missing:?}");
    assert!(planned.len() > 20 && planned["0"] > count / 20 && planned["0"] < count / 2, "too much of one kind");
}

//! `comove script`: what a script sees of a campaign, what it writes and what it leaves alone.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, text};
use comove::testing::lock;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// What `measure` calls in the recipe and `map` in a script.
const CLOSURE: &str = r#"|s| [
    s.densest().density, s.densest().position[0], s.totals().mass, sqrt(s.field("overdensity").variance()),
    s.field("overdensity", 1).max(), s.value("density", [25, 25, 25]), s.statistics("temperature").mean,
    s.histogram("overdensity", #{ bins: 4 })[1].mass, s.slice().mean(), s.projection(#{ pixels: 16 }).max(),
    s.power_spectrum().bins[0].power_mpc3_h3, s.halos(#{ delta: 1.02, min_cells: 1 }).len(),
]"#;

/// Two runs of a few steps, the first one measured.
fn recipe(second: &str) -> String {
    format!(
        r#"
const N = param("n", 3, "a number");
const C = cosmology(#{{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 }});
const FIRST = evolve(ic_gaussian(C, #{{ box_mpc_h: 50, cells: 16, z: 49, seed: 1 }}), #{{
    z_end: 48, outputs: #{{ at_z: [48.5] }}, name: "first", observe: #{{ on_step: |step| step.z, on_output: |s| s.step }},
}});
const SECOND = evolve(ic_gaussian(C, #{{ box_mpc_h: 50, cells: 16, z: 49, seed: 2 }}), #{{
    z_end: 47, outputs: #{{ at_z: [48] }}, name: "second", {second}
}});
const FOUND = measure("found", FIRST, #{{ at_z: "all" }}, {CLOSURE});
campaign("r", [FOUND, power_spectrum(SECOND, #{{ name: "spectrum" }})])
"#
    )
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// One with the campaign in it.
    fn with_campaign() -> Self {
        let place = Self::new();
        said(&place.run(&recipe(""), &[]), 0);
        place
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn comove(&self) -> Command {
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path());
        command
    }

    fn run(&self, recipe: &str, arguments: &[&str]) -> Output {
        std::fs::write(self.path("r.rhai"), recipe).unwrap();
        self.comove().args(["run", "r.rhai"]).args(arguments).output().unwrap()
    }

    /// The command that evaluates a script `post.rhai` of the campaign.
    fn script(&self, script: &str) -> Command {
        std::fs::write(self.path("post.rhai"), script).unwrap();
        let mut command = self.comove();
        command.args(["script", "post.rhai", "--campaign", "r"]);
        command
    }

    /// All that a script printed that is to leave with this exit code.
    fn says(&self, script: &str, code: i32) -> String {
        said(&self.script(script).output().unwrap(), code)
    }

    /// The folder of a stage.
    fn stage(&self, label: &str) -> PathBuf {
        let entries = std::fs::read_dir(self.path("r")).unwrap().map(|entry| entry.unwrap().path());
        let [found] = entries
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(label))
            .collect::<Vec<_>>()
            .try_into()
            .unwrap();
        found
    }

    /// The folder of the run with this name, as a script has it.
    fn folder_of(&self, run: &str) -> String {
        self.says(&format!("print(CAMPAIGN.run(\"{run}\").folder);"), 0).trim().to_owned()
    }

    /// Every file, with its content and the time of its last change.
    fn files(&self) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.0.path().to_path_buf()];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let changed = path.metadata().unwrap().modified().unwrap();
                    files.insert(path.clone(), (changed, std::fs::read(path).unwrap()));
                }
            }
        }
        files
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The rows of a CSV file.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
}

fn numbers(row: &[String]) -> Vec<f64> {
    row.iter().map(|entry| entry.parse().unwrap()).collect()
}

/// A script measures what `measure` measures, and finds its result; and a campaign in its folder is as it was.
#[test]
fn a_script_sees_what_the_campaign_has() {
    let place = Place::with_campaign();
    let script = format!(
        r#"
const FACTOR = param("factor", 1, "a factor");
fn run_of(name) {{ CAMPAIGN.run(name) }}
let run = run_of("first");
let outputs = run.outputs;
let values = run.map({CLOSURE});
let rows = [];
for n in 0..outputs.len() {{ rows.push([outputs[n]] + values[n]); }}
table("values", #{{ columns: ["z"] + values[0].map(|x| "value"), rows: rows }});
plot("values", #{{ curves: [#{{ points: rows.map(|row| [row[0], row[1] * FACTOR]) }}] }});
print(CAMPAIGN.result("found").all.map(|one| one.result) == values);
print(`${{run.output(0).step}} ${{run.output(-1).step == run.snapshot().step}} ${{run.snapshot(48.5).levels}}`);
print(`${{CAMPAIGN.name}} ${{CAMPAIGN.folder}} ${{CAMPAIGN.parameters}} ${{FACTOR}}`);
print(CAMPAIGN.runs.map(|run| [run.name, run.is_done, run.outputs]));
print(CAMPAIGN.analyses);
print(CAMPAIGN.result("spectrum").result.bins.len());
let observed = run.observed;
print(observed.filter(|line| line.hook == "on_step").map(|line| line.value) == run.steps("z"));
print(observed.filter(|line| line.hook == "on_output").map(|line| line.z));
print(run.steps.len() == run.steps("timing.hydro").len() && run.steps[0].step == 1);
print(run.parameters.run.courant);
"#
    );
    let before = place.files();
    let output = place.script(&script).args(["-p", "factor=2"]).output().unwrap();
    said(&output, 0);
    let said: Vec<String> = String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect();
    let expected = [
        "r/scripts/post/values.csv",
        "r/scripts/post/values.png",
        "true",
        "1 true 1",
        "r r #{\"n\": 3} 2",
        "[[\"first\", true, [48.5, 48.0]], [\"second\", true, [48.0, 47.0]]]",
        "[\"Measured: found, first\", \"spectrum\"]",
        "8",
        "true",
        "[48.5, 48.0]",
        "true",
    ];
    assert_eq!(said[..expected.len()], expected, "{said:#?}");
    let made = rows(&place.path("r/scripts/post/values.csv"));
    let result = json(&place.stage("measure-found").join("result.json"));
    for (n, row) in made.iter().enumerate() {
        let measured = result[n]["result"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap());
        assert_eq!(numbers(row), [result[n]["z"].as_f64().unwrap()].into_iter().chain(measured).collect::<Vec<_>>());
    }
    assert_eq!((made.len(), made[0].len()), (2, 13));
    for (end, start) in [("png", &b"\x89PNG"[..]), ("svg", b"<svg"), ("pdf", b"%PDF")] {
        let file = place.path(&format!("r/scripts/post/values.{end}"));
        assert!(std::fs::read(file).unwrap().starts_with(start), "{end}");
    }
    // nothing else was touched, the script's own file aside
    let mut after = place.files();
    after.remove(&place.path("post.rhai"));
    let (new, old): (BTreeMap<_, _>, BTreeMap<_, _>) =
        after.into_iter().partition(|(path, _)| path.starts_with(place.path("r/scripts")));
    assert!(old == before, "{:?}", old.keys());
    assert_eq!(new.len(), 4, "{:?}", new.keys());
    // nor does the campaign mind what lies there now
    let status = common::said(&place.comove().args(["clean", "r"]).output().unwrap(), 0);
    assert!(status.contains("no files to delete"), "{status}");
    let elsewhere = place.script(&script).args(["--output", "out"]).output().unwrap();
    assert!(common::said(&elsewhere, 0).contains("out/values.png") && place.path("out/values.csv").exists());
}

/// Each is told where it is, and what would be right.
#[test]
fn what_is_wrong_is_told_where() {
    let place = Place::with_campaign();
    let told = |script: &str, column: usize, message: &str| {
        let said = place.says(&format!("// a comment\n{script}"), 3);
        let caret = format!("\n      | {}^", " ".repeat(column - 1));
        assert!(
            said.contains(&format!("post.rhai:2:{column}: {message}")) && said.contains(&caret),
            "{script}\n{said}"
        );
    };
    told("CAMPAIGN.run(\"frist\")", 10, "run: no run is called \"frist\", did you mean \"first\"?");
    told("CAMPAIGN.run(\"evolve\")", 10, "run: \"evolve\" names 2 of them: \"first\", \"second\"");
    told("CAMPAIGN.run(\"found\")", 10, "run: \"found\" is not a run; use CAMPAIGN.result(\"found\")");
    told("CAMPAIGN.result(\"second\")", 10, "result: \"second\" is a run; use CAMPAIGN.run(\"second\")");
    told(
        "CAMPAIGN.result(\"fuond\")",
        10,
        "result: no measurement or analysis is called \"fuond\", did you mean \"found\"?",
    );
    told("CAMPAIGN.runs[0].snapshot(3)", 18, "snapshot: no output at 3; available: z = 48.5, 48");
    told("CAMPAIGN.runs[0].output(2)", 18, "output: no output 2; outputs are numbered from 0 to 1");
    told(
        "CAMPAIGN.runs[0].steps(\"timing.hidro\")",
        18,
        "steps: no record of a step has \"timing.hidro\", did you mean \"timing.hydro\"?",
    );
    told("CAMPAIGN.runs[0].stesp", 18, "a run has no property \"stesp\", did you mean \"steps\"?");
    told("print(campaign.name)", 7, "unknown name \"campaign\", did you mean \"CAMPAIGN\"?");
    told("print(RUN)", 7, "unknown name \"RUN\", a script reads its campaign by CAMPAIGN");
    let stages = "a script cannot make stages; write it in a recipe (comove run)";
    told("evolve(1, #{ z_end: 0 })", 1, &format!("evolve: {stages}"));
    told("campaign(\"x\", [])", 1, &format!("campaign: {stages}"));
    told("measure(\"x\", CAMPAIGN.runs[0], |s| 1)", 1, &format!("measure: {stages}"));
    told("halos(CAMPAIGN.runs[0])", 1, &format!("halos: {stages}, or use CAMPAIGN.run(\"NAME\").snapshot().halos(…)"));
    told("CAMPAIGN.runs[0].snapshot().halos(1)", 29, "halos: cannot take a snapshot and a whole number");
    told("tabel(\"a\", #{})", 1, "unknown function \"tabel\", did you mean \"table\"?");
    told("table(\"a\", #{ columns: [\"z\"], row: [] })", 31, "table: unknown option \"row\", did you mean \"rows\"?");
    told("table(\"a\", #{ columns: [\"z\"], rows: [[1, 2]] })", 1, "table: rows[0]: 2 entries in a table of 1 columns");
    told("table(\"../a\", #{ columns: [\"z\"], rows: [] })", 1, "table: name: \"../a\" becomes a file name");
    told("plot(\"a\", #{ name: \"b\", curves: [] })", 14, "plot: the first argument must be the name");
    told("plot(\"a\", #{ curves: [] })", 1, "plot: curves: no point to draw");
    told(
        "let l = CAMPAIGN.runs[0]; l.outputs.map(|z| l.snapshot(z))",
        1,
        "map: the closure uses the value that it is called on",
    );
    told("CAMPAIGN = 1", 1, "");
    assert!(!place.path("r/scripts").exists());
    // a parameter that is meant for what is written is declared before it is
    let script = "table(\"a\", #{ columns: [\"z\"], rows: [] });";
    let output = place.script(script).args(["-p", "bins=2"]).output().unwrap();
    let wrong = said(&output, 3);
    assert!(wrong.contains("post.rhai:1:1: table: -p bins: unknown parameter"), "{wrong}");
    said(&place.script("print(1)").args(["-p", "bins=2"]).output().unwrap(), 2);
    let twice = place.says(&script.repeat(2), 3);
    assert!(twice.contains("post.rhai:1:43: table: this script has already written a.csv"), "{twice}");
    let missing = place.comove().args(["script", "none.rhai", "--campaign", "r"]).output().unwrap();
    assert!(said(&missing, 2).contains("none.rhai: no such script"));
    let nowhere = place.comove().args(["script", "post.rhai", "--campaign", "none"]).output().unwrap();
    assert!(said(&nowhere, 4).contains("not a campaign folder"));
    // and the other way round
    let recipe = "const T = table(\"a\", #{ columns: [], rows: [] });\ncampaign(\"r\", [])";
    let said = said(&place.run(recipe, &[]), 3);
    assert!(said.contains("r.rhai:1:11: table: available only in scripts (comove script)"), "{said}");
}

/// HDF5 does not see a file that is not the one that the ledger knows.
#[test]
fn damaged_files_are_refused() {
    let place = Place::with_campaign();
    let output = place.path(&place.folder_of("first")).join("output_z48.5.h5");
    let result = place.stage("measure-found").join("result.json");
    for (file, script) in [
        (&output, "CAMPAIGN.run(\"first\").snapshot(48.5).levels"),
        (&output, "CAMPAIGN.run(\"first\").map(|s| s.levels)"),
        (&result, "CAMPAIGN.result(\"found\")"),
    ] {
        let sound = std::fs::read(file).unwrap();
        let mut damaged = sound.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        std::fs::write(file, damaged).unwrap();
        let said = place.says(&format!("let x = {script};"), 4);
        let name = file.file_name().unwrap().to_string_lossy();
        assert!(
            said.contains("post.rhai:1:") && said.contains(&format!("{name}: the file was damaged or changed")),
            "{said}"
        );
        std::fs::write(file, sound).unwrap();
        place.says(&format!("let x = {script};"), 0);
    }
}

/// What there is of a campaign can be looked at while somebody works on it, and what its recipe does not have any more.
#[test]
fn an_unfinished_campaign_is_looked_at() {
    let place = Place::new();
    let stops = "stop_when: |step| { if step.z < 47.9 { throw \"enough\" } false },";
    let failed = text(&place.run(&recipe(stops), &["--only", "4,5"]));
    assert!(failed.contains("enough"), "{failed}");
    let _lock = lock(&place.path("r")).unwrap();
    let said = place.says(
        "for run in CAMPAIGN.runs { print(`${run.name} ${run.is_done} ${run.outputs} ${run.folder.len() > 2}`); }",
        0,
    );
    assert!(said.contains("first false [] false\nsecond false [48.0] true\n"), "{said}");
    let said = place.says("print(CAMPAIGN.run(\"second\").map(|s| s.step)); print(CAMPAIGN.run(\"first\").steps);", 0);
    assert_eq!(said, "[2]\n[]\n");
    let said = place.says("CAMPAIGN.run(\"first\").snapshot()", 3);
    assert!(said.contains("post.rhai:1:23: snapshot: the run has no output yet"), "{said}");
    let said = place.says("CAMPAIGN.result(\"found\")", 3);
    assert!(said.contains("result: \"Measured: found, first\" is not done"), "{said}");
    // a run that the recipe has no more goes by its folder
    let folder = place.folder_of("second");
    let (_, folder) = folder.split_once('/').unwrap();
    drop(_lock);
    let other = recipe("").replace("seed: 2", "seed: 3");
    common::said(&place.run(&other, &["--only", "3"]), 0);
    let said =
        place.says(&format!("let run = CAMPAIGN.run(\"{folder}\"); print(`${{run.name}} ${{run.outputs}}`);"), 0);
    assert_eq!(said, format!("{folder} [48.0]\n"));
    let said = place.says("print(CAMPAIGN.run(\"second\").outputs);", 0);
    assert_eq!(said, "[]\n");
    // and so does a measurement whose closure is another one now
    common::said(&place.run(&other.replace("s.densest().density,", "1,"), &["--only", "4"]), 0);
    let found = place.stage("measure-found");
    let folder = found.file_name().unwrap().to_string_lossy();
    let said = place.says("CAMPAIGN.result(\"found\")", 3);
    assert!(said.contains(&format!("is not done; use {folder}, which another recipe or version made")), "{said}");
    let said = place.says(&format!("print(CAMPAIGN.result(\"{folder}\").all.len());"), 0);
    assert_eq!(said, "2\n");
}

/// A script has no limit of time; Ctrl-C ends it where it is.
#[test]
fn a_signal_ends_a_script() {
    let place = Place::with_campaign();
    let script = place.script("print(\"begun\"); loop {}");
    // a shell has its background jobs ignore SIGINT, and so do their children
    let mut child = Command::new("env");
    child.arg("--default-signal=INT").arg(script.get_program()).args(script.get_args()).current_dir(place.0.path());
    let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    assert!(child.try_wait().unwrap().is_none());
    let killed = Instant::now();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(2));
    assert!(killed.elapsed() < Duration::from_secs(5));
}

/// The script that users start from gives, of the outputs, what the campaign that it is made for has measured itself.
#[test]
fn the_example_measures_what_its_campaign_did() {
    let place = Place::new();
    let recipes = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recipes");
    let sweep = recipes.join("sweep.rhai");
    let parameters = ["-p", "z_end=20", "--dir", "sweep", "--only", "growth"];
    said(&place.comove().arg("run").arg(sweep).args(parameters).output().unwrap(), 0);
    let script = recipes.join("scripts/growth.rhai");
    let said = said(&place.comove().arg("script").arg(script).args(["--campaign", "sweep"]).output().unwrap(), 0);
    assert!(said.contains("campaign \"sweep\"") && said.contains("s of hydrodynamics\n"), "{said}");
    assert!(place.path("sweep/scripts/growth/growth.png").exists());
    let entries = std::fs::read_dir(place.path("sweep")).unwrap().map(|entry| entry.unwrap().path());
    let combined = entries.filter(|path| path.to_string_lossy().contains("combine-growth")).collect::<Vec<_>>();
    // cells, seed, z, rms; and the run's name, z, rms
    let expected: Vec<Vec<f64>> = rows(&combined[0].join("rms.csv")).iter().map(|row| numbers(&row[2..])).collect();
    let made = rows(&place.path("sweep/scripts/growth/growth.csv"));
    let made: Vec<Vec<f64>> = made.iter().map(|row| numbers(&row[row.len() - 2..])).collect();
    assert_eq!(made.len(), 8, "two outputs of four runs");
    assert_eq!(made, expected);
}

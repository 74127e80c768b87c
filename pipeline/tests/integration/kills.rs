//! `kill -9` inside every phase of a campaign's work and at any moment: the same command goes on, to the same results, and
//! loses no more than what came after the last checkpoint. By default it is sixteen kills;
//! `COMOVE_KILLS=200 cargo test --release --locked -p comove --test integration kills -- --nocapture` kills two hundred
//! times. The same where the disk is full.

use assert_cmd::cargo::cargo_bin;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// In the order in which a process writes them down.
const PHASES: [&str; 7] = ["snapshot", "rename", "ledger", "regrid", "hook", "initial", "analysis"];
/// Those that come once in a campaign, first and last.
const INITIAL: usize = 5;
const ANALYSIS: usize = 6;
/// The one that not every campaign has.
const HOOK: usize = 4;
/// Milliseconds for which a phase is held, so that it is met.
const DELAY: u64 = 25;

/// Campaigns of a few seconds: runs that are refined and step by step checkpointed, what they show, and what is made of that;
/// two runs with dark matter at once, with observers and stop rules; one that is observed and steered, with checkpoints every few
/// steps; and runs that results decide on.
const RECIPES: [&str; 4] = [
    r#"
const IC = ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 5 });
const RUN = evolve(IC, #{
    z_end: 30, max_level: 1, refine: density_above(1.2), regrid_every: 2,
    outputs: #{ at_z: [40, 35] }, checkpoints: #{ every_minutes: 0, keep: 3 },
});
const PEAK = measure("peak", RUN, |s| #{ place: s.densest().position, mean: s.field("density", 0).mean() });
const SLICE = slice(RUN, #{ center: PEAK.place, pixels: 32 });
campaign("kills", [SLICE, refinement_ratio(RUN), power_spectrum(RUN, #{ at_z: "all" })])
"#,
    r#"
const ICS = [1, 2].map(|seed| ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: seed, dark_matter: true }));
const RUNS = [1, 2].map(|seed| evolve(ICS[seed - 1], #{
    name: `seed ${seed}`, z_end: 30, stop_when: |step| step.z < 34 + seed,
    max_level: 1, refine: density_above(1.2), regrid_every: 3, time_steps: "individual",
    observe: #{ every_steps: seed, on_step: |step| #{ steps: step.level_steps, energy: step.sums.energy } },
    outputs: #{ at_z: [42] }, checkpoints: #{ every_minutes: 0, keep: 2 },
}));
const ALL = combine("peaks", RUNS.map(|run| measure("peak", run, |s| #{ peak: s.densest().density })), |results| #{
    table: #{ name: "peaks", columns: ["peak"], rows: results.map(|one| [one.result.peak]) },
});
campaign("kills", [ALL] + RUNS.map(|run| density_pdf(run)))
"#,
    r#"
const RUN = evolve(ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 7 }), #{
    name: "steered", z_end: 20, max_level: 1, refine: density_above(1.2), regrid_every: 2,
    stop_when: |step| step.z < 31 && step.density_max > 0,
    steer: |step| if step.step % 7 < 3 { #{ dt_max: 0.8 * step.dt, max_level: 0, threshold_factor: 1.1 } },
    observe: #{ on_step: |step| step, on_output: |s| #{ at: s.step, peak: s.densest(), all: s.totals() } },
    outputs: #{ at_z: [40] }, checkpoints: #{ every_steps: 3 },
});
const ALL = measure("all", RUN, #{ at_z: "all" }, |s| #{ z: s.redshift, peak: s.densest().density });
campaign("kills", [ALL, density_pdf(RUN, #{ name: "the densities" })])
"#,
    r#"
const RUN = evolve(ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: 8 }), #{ z_end: 44, name: "coarse" });
const PEAK = measure("peak", RUN, |s| #{ place: s.densest().position, width: 6.0, seeds: [8, 9] });
const FINE = then(PEAK, #{ name: "finer" }, |peak| { let seeds = peak.seeds; seeds.map(|seed| {
    let run = evolve(ic_gaussian(C, #{ box_mpc_h: 20, cells: 16, z: 49, seed: seed }), #{
        z_end: 41, max_level: 1, refine: region(#{ center: peak.place, radius: 3, level: 1 }), regrid_every: 1,
        observe: #{ on_step: |step| #{ finest: step.groups.len() - 1, seed: seed } },
        checkpoints: #{ every_minutes: 0 },
    });
    let levels = measure("levels", run, |s| #{ widths: [4, 8], peak: s.densest().density });
    [run, then(levels, |found| found.widths.map(|width|
        slice(run, #{ center: peak.place, width_mpc_h: width, pixels: 16 })))]
}) });
campaign("kills", [FINE, slice(RUN, #{ center: PEAK.place, width_mpc_h: PEAK.width, pixels: 16 })])
"#,
];
/// How many files of each have to be the same.
const FILES: [usize; 4] = [13, 17, 10, 22];

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// A run that is to go on.
#[derive(Default)]
struct OpenRun {
    folder: String,
    /// Its newest checkpoint.
    checkpoint: Option<String>,
    /// The last step whose records are on disk for sure.
    synced: u64,
}

/// A folder with a recipe, and its campaign in `kills`.
struct Place(tempfile::TempDir);

impl Place {
    fn new(recipe: &str) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let cosmology = "const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });\n";
        std::fs::write(place.file("kills.rhai"), format!("{cosmology}{recipe}")).unwrap();
        place
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn ledger(&self) -> PathBuf {
        self.file("kills/ledger.jsonl")
    }

    /// The process that does the campaign, or what is left of it; with a phase it is held there.
    fn start(&self, held: Option<&str>) -> Child {
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path()).args(["run", "kills.rhai", "--threads", "2", "--jobs", "2"]);
        if let Some(phase) = held {
            command.env("COMOVE_PHASES", self.file("phases"));
            command.env("COMOVE_PHASE_DELAY", format!("{phase}:{DELAY}"));
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Does all that is left, and returns what was said.
    fn finish(&self) -> String {
        let output = self.start(None).wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(output.status.success(), "{said}");
        said
    }

    /// How many threads are in each phase.
    fn inside(&self) -> [u8; PHASES.len()] {
        let bytes = std::fs::read(self.file("phases")).unwrap_or_default();
        bytes.try_into().unwrap_or_default()
    }

    /// Events of the ledger, without a torn last line.
    fn events(&self) -> Vec<Value> {
        let ledger = std::fs::read_to_string(self.ledger()).unwrap_or_default();
        ledger.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The runs that have begun and not ended.
    fn open_runs(&self) -> Vec<OpenRun> {
        let mut runs: BTreeMap<String, OpenRun> = BTreeMap::new();
        for event in self.events() {
            let stage = event["fingerprint"].as_str().unwrap_or_default().to_owned();
            match event["event"].as_str().unwrap() {
                "stage_started" if event["kind"] == "evolve" => {
                    let folder = event["folder"].as_str().unwrap().to_owned();
                    runs.entry(stage).or_insert(OpenRun { folder, ..OpenRun::default() });
                }
                "snapshot_written" => {
                    let (run, snapshot) = (runs.get_mut(&stage).expect("it has begun"), &event["snapshot"]);
                    run.synced = run.synced.max(snapshot["step"].as_u64().unwrap());
                    if snapshot["role"] == "checkpoint" {
                        run.checkpoint = Some(snapshot["file"].as_str().unwrap().to_owned());
                    }
                }
                "stage_finished" => _ = runs.remove(&stage),
                _ => {}
            }
        }
        runs.into_values().collect()
    }

    /// What the stage in this folder was called when it began last.
    fn name_of(&self, folder: &str) -> String {
        let begun = self.events().into_iter().rfind(|event| event["folder"] == folder).expect("it has begun");
        begun["name"].as_str().unwrap().to_owned()
    }

    /// All that must not depend on kills: digests of what snapshots show, hashes of every step, what was observed, where stop
    /// rules were met, results, tables and pictures.
    fn results(&self) -> BTreeMap<String, Vec<u8>> {
        let mut results = BTreeMap::new();
        let mut folders = BTreeMap::new();
        for event in self.events() {
            let stage = event["fingerprint"].as_str().unwrap_or_default().to_owned();
            if event["event"] == "stage_started" {
                folders.insert(stage, event["folder"].as_str().unwrap().to_owned());
            } else if event["event"] == "snapshot_written" && event["snapshot"]["role"] == "output" {
                let name = format!("{}/{}", folders[&stage], event["snapshot"]["file"]);
                results.insert(name, event["snapshot"]["content"].as_str().unwrap().as_bytes().to_vec());
            } else if event["event"] == "stop_rule_met" {
                let steps: &mut Vec<u8> = results.entry(format!("{}/stop rule", folders[&stage])).or_default();
                steps.extend(format!("ends the run at step {}\n", event["step"]).into_bytes());
            }
        }
        for folder in folders.values() {
            let Ok(files) = std::fs::read_dir(self.file("kills").join(folder)) else { continue };
            for file in files.map(|entry| entry.unwrap().path()) {
                let name = file.file_name().unwrap().to_string_lossy().into_owned();
                let content = || std::fs::read(&file).unwrap();
                let content = match file.extension().unwrap().to_str().unwrap() {
                    "csv" | "png" => content(),
                    "json" if name == "result.json" => content(),
                    "jsonl" if name == "observed.jsonl" => content(),
                    "jsonl" => hashes(&content()),
                    _ => continue,
                };
                results.insert(format!("{folder}/{name}"), content);
            }
        }
        results
    }
}

/// Number and hash of every step; a kill may leave the last line torn.
fn hashes(steps: &[u8]) -> Vec<u8> {
    let steps = String::from_utf8_lossy(steps);
    let steps = steps.lines().filter_map(|line| serde_json::from_str(line).ok());
    let of_step = |step: Value| format!("{} {}\n", step["step"], step["state_hash"]);
    steps.map(of_step).collect::<String>().into_bytes()
}

/// The first lines that are not the same.
fn difference(expected: &[u8], found: &[u8]) -> String {
    let [expected, found] = [expected, found].map(String::from_utf8_lossy);
    let lines = expected.lines().zip(found.lines()).find(|(one, other)| one != other);
    let counts = [&expected, &found].map(|text| text.lines().count());
    format!("{lines:?} of {counts:?} lines")
}

/// Waits until a thread has come to `phase` for the `times`th time, then a part of the time for which it is held, and kills.
/// Whether the process was there; if not it has ended before.
fn kill_inside(place: &Place, child: &mut Child, phase: usize, times: u64, dice: &mut Dice) -> bool {
    let (started, mut met, mut was_there) = (Instant::now(), 0, false);
    loop {
        assert!(started.elapsed() < Duration::from_secs(300), "the campaign hangs");
        let is_there = place.inside()[phase] > 0;
        met += u64::from(is_there && !was_there);
        was_there = is_there;
        if met >= times {
            std::thread::sleep(Duration::from_millis(dice.below(DELAY - 5)));
            child.kill().unwrap();
        }
        match child.try_wait().unwrap() {
            Some(_) if met < times => return false,
            _ if met >= times => {
                child.wait().unwrap();
                return true;
            }
            _ => std::thread::sleep(Duration::from_micros(500)),
        }
    }
}

/// Kills a process that still runs after this time; whether it did.
fn kill_after(time: Duration, child: &mut Child) -> bool {
    std::thread::sleep(time);
    let runs = child.try_wait().unwrap().is_none();
    child.kill().unwrap();
    child.wait().unwrap();
    runs
}

/// What else may have happened to the folder until somebody looks: half a line at the ledger's end, a clock that was wrong, a
/// checkpoint that is not what it was, half a record as a crash of the machine leaves it. What it did, and the run whose
/// checkpoint it was.
fn spoil(place: &Place, dice: &mut Dice) -> (&'static str, Option<OpenRun>) {
    let Ok(ledger) = std::fs::read_to_string(place.ledger()) else { return ("nothing yet", None) };
    let what = match dice.below(7) {
        0 => {
            let line = ledger.lines().last().unwrap_or_default();
            let mut file = std::fs::OpenOptions::new().append(true).open(place.ledger()).unwrap();
            file.write_all(&line.as_bytes()[..line.len() / 2]).unwrap();
            "torn line"
        }
        1 => {
            let year = ["0.0", "4102444800.0"][dice.below(2) as usize];
            let dated = |line: &str| match line.split_once("\"unix_time_s\":") {
                Some((before, after)) if line.ends_with('}') => {
                    let after = after.split_once(',').unwrap().1;
                    format!("{before}\"unix_time_s\":{year},{after}\n")
                }
                _ => line.to_owned(),
            };
            std::fs::write(place.ledger(), ledger.lines().map(dated).collect::<String>()).unwrap();
            "clock"
        }
        2 => {
            let Some(run) = place.open_runs().into_iter().rfind(|run| run.checkpoint.is_some()) else {
                return ("no checkpoint yet", None);
            };
            let file = place.file("kills").join(&run.folder).join(run.checkpoint.as_ref().unwrap());
            let mut bytes = std::fs::read(&file).unwrap();
            let at = dice.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << dice.below(8);
            std::fs::write(&file, bytes).unwrap();
            return ("flipped bit", Some(run));
        }
        3 => {
            let torn = place.open_runs().iter().filter(|run| tear_records(place, run)).count();
            if torn > 0 { "torn record" } else { "no record to tear" }
        }
        _ => "nothing",
    };
    (what, None)
}

/// Cuts the last lines of what a run has recorded and observed in two, if no snapshot has followed; whether there were any.
fn tear_records(place: &Place, run: &OpenRun) -> bool {
    let tear = |file: &str| {
        let path = place.file("kills").join(&run.folder).join(file);
        let Ok(text) = std::fs::read_to_string(&path) else { return false };
        let Some(last) = text.lines().last() else { return false };
        let step = serde_json::from_str::<Value>(last).ok().and_then(|record| record["step"].as_u64());
        let may_be_torn = step.is_some_and(|step| step > run.synced);
        if may_be_torn {
            std::fs::write(&path, &text[..text.trim_end().len() - last.len() / 2]).unwrap();
        }
        may_be_torn
    };
    ["steps.jsonl", "observed.jsonl"].map(tear).contains(&true)
}

/// Files of a campaign that nobody has finished.
fn leftovers(folder: &Path) -> Vec<PathBuf> {
    let entries =
        |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect::<Vec<_>>();
    let folders = entries(folder).into_iter().filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| entries(&folder));
    files.filter(|path| path.file_name().unwrap().to_string_lossy().contains(".tmp-")).collect()
}

/// Runs the campaign in a file system of its own, of 100 kB at first and 150 kB more after every try that ends for want of
/// room, and leaves what it has made in `kept`. Says size and exit code of every try.
const GROWING_DISK: &str = r#"
mkdir kills && mount -t tmpfs -o size=100k tmpfs kills || exit 99
size=100
until [ $size -gt 20000 ]; do
    mount -o remount,size=${size}k kills || exit 99
    "$COMOVE" run kills.rhai --threads 2 --jobs 2 >said 2>&1
    code=$?
    echo "$size $code $(tail -n 1 said)"
    [ $code -eq 6 ] || break
    size=$((size + 150))
done
cp -a kills kept
umount kills
"#;

/// The campaign fills the disk again and again, wherever it is then; the same command goes on when there is more room.
#[test]
fn a_full_disk_loses_nothing() {
    // the others too where many kills are asked for
    let recipes = if std::env::var_os("COMOVE_KILLS").is_some() { &RECIPES[..] } else { &RECIPES[1..2] };
    for recipe in recipes {
        let place = Place::new(recipe);
        let shell = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            command.args(arguments).args(["-c", GROWING_DISK]).current_dir(place.0.path());
            command.env("COMOVE", cargo_bin("comove")).output().ok()
        };
        // as root in a name space of mounts, else in one where this user is root
        let ways = [("unshare", &["-m", "sh"][..]), ("unshare", &["-Urm", "sh"])];
        let mut tried = ways.into_iter().filter_map(|(program, arguments)| {
            let _ = std::fs::remove_dir(place.file("kills"));
            shell(program, arguments)
        });
        let Some(output) = tried.find(|output| output.status.success()) else {
            println!("skipped: this system lets nobody mount a tmpfs, neither with unshare -m nor -Urm");
            return;
        };
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let codes: Vec<&str> = said.lines().map(|line| line.split(' ').nth(1).unwrap()).collect();
        let (last, before) = codes.split_last().unwrap();
        assert!(*last == "0" && before.len() >= 5 && before.iter().all(|code| *code == "6"), "{said}");
        std::fs::remove_dir(place.file("kills")).unwrap();
        std::fs::rename(place.file("kept"), place.file("kills")).unwrap();
        let reference = Place::new(recipe);
        reference.finish();
        let (found, expected) = (place.results(), reference.results());
        assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{said}");
        for (name, content) in &expected {
            assert!(found[name] == *content, "{name} differs after a full disk: {said}");
        }
        println!("done at the {}th try, after {} on a full disk", codes.len(), before.len());
    }
}

#[test]
fn kills_lose_nothing_wherever_they_fall() {
    let wanted: u64 = std::env::var("COMOVE_KILLS").map_or(16, |text| text.parse().expect("COMOVE_KILLS: a number"));
    let references = RECIPES.map(|recipe| {
        let (place, started) = (Place::new(recipe), Instant::now());
        place.finish();
        (place.results(), started.elapsed())
    });
    for ((reference, _), files) in references.iter().zip(FILES) {
        assert!(reference.len() >= files, "{} files: {:?}", reference.len(), reference.keys());
    }
    let (mut dice, mut killed, mut met, mut spoilt) =
        (Dice(0x2545_F491_4F6C_DD1D), 0, [0; PHASES.len()], BTreeMap::new());
    let (mut campaigns, mut anywhere) = (0, 0);
    while killed < wanted {
        let which = campaigns % RECIPES.len();
        campaigns += 1;
        let place = Place::new(RECIPES[which]);
        let mut flipped = BTreeSet::new();
        let (reference, whole) = &references[which];
        // an initial condition is made once, and analyses come last; between them what was met least, and any moment
        let mut between: Vec<usize> =
            (0..INITIAL).filter(|&n| n != HOOK || RECIPES[which].contains("|step|")).collect();
        between.sort_by_key(|&phase: &usize| met[phase]);
        for phase in [Some(INITIAL), None, Some(between[0]), Some(between[1]), Some(ANALYSIS)] {
            let _ = std::fs::remove_file(place.file("phases"));
            let mut child = place.start(phase.map(|phase| PHASES[phase]));
            let times = if phase < Some(INITIAL) { 1 + dice.below(6) } else { 1 };
            let is_killed = match phase {
                Some(phase) => kill_inside(&place, &mut child, phase, times, &mut dice),
                None => kill_after(Duration::from_millis(dice.below(whole.as_millis() as u64)), &mut child),
            };
            if !is_killed {
                break;
            }
            killed += 1;
            anywhere += u32::from(phase.is_none());
            for (count, threads) in met.iter_mut().zip(place.inside()) {
                *count += u32::from(threads > 0);
            }
            let (what, damaged) = spoil(&place, &mut dice);
            flipped.extend(damaged.map(|run| (run.folder, run.checkpoint)));
            *spoilt.entry(what).or_insert(0) += 1;
        }
        let (open, before) = (place.open_runs(), place.results());
        let said = place.finish();
        for OpenRun { folder, checkpoint, .. } in open {
            let Some(file) = &checkpoint else { continue };
            let from = format!("{}: continuing from {file}", place.name_of(&folder));
            // a run whose outputs are all there has nothing to continue
            let mut outputs = reference.keys().filter(|name| name.starts_with(&folder) && name.contains("output_"));
            let is_there = outputs.all(|name| before.contains_key(name));
            let is_spoilt = flipped.contains(&(folder, checkpoint.clone()));
            assert!(said.contains(&from) || is_there || is_spoilt, "not {from}:\n{said}");
        }
        let results = place.results();
        let names = |results: &BTreeMap<String, Vec<u8>>| results.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&results), names(reference), "{said}");
        for (name, content) in reference {
            assert!(results[name] == *content, "{name} differs after kills: {}", difference(content, &results[name]));
        }
        assert_eq!(leftovers(&place.file("kills")), Vec::<PathBuf>::new());
    }
    let counts: Vec<String> = PHASES.iter().zip(met).map(|(phase, count)| format!("{phase} {count}")).collect();
    let inside = counts.join(", ");
    println!("{killed} kills in {campaigns} campaigns; inside {inside}; at any moment {anywhere}; besides: {spoilt:?}");
    let least = wanted / 20;
    assert!(met.iter().all(|&count| u64::from(count) >= least), "not every phase was met {least} times: {counts:?}");
}

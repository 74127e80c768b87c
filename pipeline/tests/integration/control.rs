//! What a running campaign can be asked for: signals, files in its folder, a wall-clock limit.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, until};
use comove_sim::Snapshot;
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A run that takes long enough to be asked for something.
const RECIPE: &str = r#"
const Z_END = param("z_end", 0.0, "redshift at which the run ends");
const C = cosmology(#{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 });
const IC = ic_gaussian(C, #{ box_mpc_h: 50, cells: 32, z: 49, seed: 7 });
campaign("asked", [evolve(IC, #{ z_end: Z_END, max_level: 1, refine: density_above(1.4) })])
"#;

/// A stage that computes for minutes and cannot be stopped.
const SLOW: &str = r#"campaign("asked", [force_test(#{ levels: 2, pairs: 1, poisson_cycles: 100000000 })])"#;

/// A folder with a recipe, and its campaign in `asked`.
struct Place(tempfile::TempDir);

impl Place {
    fn new(recipe: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("asked.rhai"), recipe).unwrap();
        Self(folder)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("asked").join(file)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path()).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn ends(&self, arguments: &[&str], code: i32) -> String {
        said(&self.command(arguments).output().unwrap(), code)
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        common::events(&self.path(""), kind)
    }

    /// The step of the newest checkpoint in the ledger.
    fn checkpoint(&self) -> u64 {
        let snapshots = self.events("snapshot_written");
        let steps = snapshots.iter().filter(|s| s["snapshot"]["role"] == "checkpoint");
        steps.filter_map(|s| s["snapshot"]["step"].as_u64()).max().unwrap_or(0)
    }

    fn run_folder(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.path("")).ok()?.map(|entry| entry.unwrap().path());
        entries.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("evolve-"))
    }

    /// Steps that the run has recorded.
    fn steps(&self) -> u64 {
        self.run_folder().map_or(0, |run| common::records(&run).len() as u64)
    }

    fn last_checkpoint(&self) -> Snapshot {
        let name = format!("checkpoint_{:06}.h5", self.checkpoint());
        Snapshot::read(&self.run_folder().unwrap().join(name)).unwrap()
    }
}

/// `dump` leaves a checkpoint, `pause` one and halts the run, SIGUSR1 one and ends it; none of them changes a bit.
#[test]
fn a_run_answers_requests() {
    let place = Place::new(RECIPE);
    let z_end = ["run", "asked.rhai", "-p", "z_end=20"];
    let mut run = place.command(&z_end).spawn().unwrap();
    until("it steps", &mut run, || place.steps() > 1);
    std::fs::write(place.path("dump"), "").unwrap();
    until("the dump is done", &mut run, || !place.path("dump").exists());
    let dumped = place.checkpoint();
    assert!(dumped > 1);

    std::fs::write(place.path("pause"), "").unwrap();
    let log = || std::fs::read_to_string(place.path("log.txt")).unwrap();
    until("it pauses", &mut run, || log().contains("paused until"));
    let paused = place.steps();
    assert!(paused >= dumped && place.checkpoint() == paused);
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(place.steps(), paused);
    std::fs::remove_file(place.path("pause")).unwrap();
    until("it goes on", &mut run, || place.steps() > paused);

    assert!(Command::new("kill").args(["-USR1", &run.id().to_string()]).status().unwrap().success());
    let text = said(&run.wait_with_output().unwrap(), 75);
    assert!(text.contains("stopped by SIGUSR1; `comove resume asked` continues"), "{text}");
    assert_eq!(place.checkpoint(), place.steps());
    assert_eq!(place.events("campaign_interrupted")[0]["by"], "SIGUSR1");

    // requests from before: a pause still holds, the others are forgotten
    for request in ["stop", "dump", "pause"] {
        std::fs::write(place.path(request), "").unwrap();
    }
    let mut resumed = place.command(&["resume", "asked"]).spawn().unwrap();
    until("it pauses", &mut resumed, || log().matches("paused until").count() == 2);
    std::fs::remove_file(place.path("pause")).unwrap();
    said(&resumed.wait_with_output().unwrap(), 0);

    let reference = Place::new(RECIPE);
    reference.ends(&z_end, 0);
    let (here, there) = (place.last_checkpoint(), reference.last_checkpoint());
    assert_eq!((here.header.step, &here.header.restart), (there.header.step, &there.header.restart));
    assert!(here.state.fluid == there.state.fluid && here.state.potential == there.state.potential);
}

/// Whatever signal ends a process by default, and can be caught, leaves a checkpoint of the last step.
#[test]
fn every_signal_leaves_a_checkpoint() {
    let place = Place::new(RECIPE);
    let send = |signal: &str, run: &std::process::Child| {
        assert!(Command::new("kill").args([signal, &run.id().to_string()]).status().unwrap().success(), "{signal}");
    };
    let mut signals = vec!["HUP", "INT", "QUIT", "ALRM", "TERM", "USR2", "XCPU"];
    if cfg!(target_os = "linux") {
        signals.push("PWR");
    }
    let mut command = &["run", "asked.rhai"][..];
    for signal in signals {
        let before = place.steps();
        let mut run = place.command(command).spawn().unwrap();
        until("it steps", &mut run, || place.steps() > before);
        send(&format!("-{signal}"), &run);
        let text = said(&run.wait_with_output().unwrap(), 75);
        assert!(text.contains(&format!("stopped by SIG{signal}; `comove resume asked` continues")), "{text}");
        assert_eq!(place.checkpoint(), place.steps(), "{signal}");
        command = &["resume", "asked"];
    }
    if Command::new("script").arg("--version").output().is_err() {
        println!("skipped: this system has no `script`, which makes a terminal");
        return;
    }
    // under nohup a run survives its terminal
    let before = place.steps();
    let line = format!("nohup '{}' resume asked", cargo_bin("comove").display());
    let mut terminal = Command::new("script");
    let terminal = terminal.args(["-qefc", &line, "/dev/null"]).current_dir(place.0.path()).stdin(Stdio::null());
    let mut terminal = terminal.stdout(Stdio::null()).spawn().unwrap();
    until("it steps", &mut terminal, || place.steps() > before);
    let lock = std::fs::read_to_string(place.path("lock")).unwrap();
    let process = lock.split(' ').nth(1).unwrap();
    let send = |signal: &str| assert!(Command::new("kill").args([signal, process]).status().unwrap().success());
    send("-HUP");
    let then = place.steps();
    until("it goes on", &mut terminal, || place.steps() > then + 2);
    send("-USR1");
    assert_eq!(terminal.wait().unwrap().code(), Some(75));
}

/// A run stops in time by itself, with everything saved, and goes on in the next process.
#[test]
fn a_run_stops_before_its_wall_time_is_over() {
    let place = Place::new(RECIPE);
    let mut before = 0;
    for command in [&["run", "asked.rhai", "--walltime", "10s"][..], &["resume", "asked", "--walltime", "10s"]] {
        let started = Instant::now();
        let text = place.ends(command, 75);
        assert!(started.elapsed() < Duration::from_secs(10));
        assert!(text.contains("stopped by the wall time of 10s; `comove resume asked` continues"), "{text}");
        assert!(place.steps() > before && place.checkpoint() == place.steps(), "nothing is computed twice");
        before = place.steps();
    }
    assert_eq!(place.events("run_continued").len(), 1);
    assert!(place.ends(&["run", "asked.rhai", "--walltime", "1x"], 2).contains("11h50m"));
}

/// The end of the Slurm job that it is part of limits a run, unless the command line says otherwise.
#[test]
fn a_run_stops_before_its_slurm_job_ends() {
    let place = Place::new(RECIPE);
    let within = |seconds: u64, arguments: &[&str], code: i32| {
        let end = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + seconds;
        let mut command = place.command(arguments);
        said(&command.env("SLURM_JOB_END_TIME", end.to_string()).output().unwrap(), code)
    };
    let started = Instant::now();
    let text = within(10, &["run", "asked.rhai"], 75);
    assert!(started.elapsed() < Duration::from_secs(10));
    for part in ["s, the end of the Slurm job (SLURM_JOB_END_TIME)", "stopped by the end of the Slurm job"] {
        assert!(text.contains(part), "not {part:?}: {text}");
    }
    assert!(place.steps() > 0 && place.checkpoint() == place.steps());
    // three seconds are too few to begin anything
    let short = ["run", "asked.rhai", "-p", "z_end=47"];
    let text = within(3, &short, 9);
    assert!(
        text.contains("stopped by the end of the Slurm job (SLURM_JOB_END_TIME) before anything was saved"),
        "{text}"
    );
    let text = within(3, &[&short[..], &["--walltime", "none"]].concat(), 0);
    assert!(!text.contains("Slurm"), "{text}");
    let text = within(3, &[&short[..], &["--walltime", "1h"]].concat(), 0);
    assert!(text.contains(", within 1h\n"), "{text}");
}

/// A stage that saves nothing is cut short, by a signal as by the wall time: that would be the same the next time.
#[test]
fn a_stage_with_nothing_to_save_is_cut_short() {
    let place = Place::new(SLOW);
    let started = Instant::now();
    let text = place.ends(&["run", "asked.rhai", "--walltime", "10s"], 9);
    assert!((6.0..10.0).contains(&started.elapsed().as_secs_f64()), "{:?}", started.elapsed());
    for part in
        ["stopped at once", "stopped by the wall time of 10s before anything was saved (force_test-", "--walltime or"]
    {
        assert!(text.contains(part), "not {part:?}: {text}");
    }
    assert!(place.ends(&["status", "asked"], 0).contains("stopped by the wall time of 10s"));
    let page = || std::fs::read_to_string(place.path("report.html")).unwrap();
    assert!(page().contains("Stopped by the wall time of 10s") && page().contains("<span>resume</span>"), "{}", page());

    let mut slow = place.command(&["resume", "asked"]).spawn().unwrap();
    until("it computes", &mut slow, || place.events("stage_started").len() == 2);
    // it is asked before its pair, and not again
    std::thread::sleep(Duration::from_secs(1));
    assert!(Command::new("kill").args(["-TERM", &slow.id().to_string()]).status().unwrap().success());
    let started = Instant::now();
    let text = said(&slow.wait_with_output().unwrap(), 75);
    assert!((4.0..10.0).contains(&started.elapsed().as_secs_f64()), "{:?}", started.elapsed());
    assert!(text.contains("stopped by SIGTERM; `comove resume asked` continues"), "{text}");
    assert!(page().contains("Stopped by SIGTERM"), "{}", page());
}

/// A limit within which no step can be saved, here as a closure takes the time, is named with what a step takes.
#[test]
fn a_limit_too_short_for_a_step_is_no_reason_to_go_on() {
    let hook =
        "refine: density_above(1.4), stop_when: |step| { let n = 0; loop { n += 1; if n < 0 { return true; } } }";
    let place = Place::new(&RECIPE.replace("refine: density_above(1.4)", hook));
    place.ends(&["run", "asked.rhai", "--only", "ic_gaussian"], 0);
    let text = place.ends(&["run", "asked.rhai", "--walltime", "8s"], 9);
    let run = place.run_folder().unwrap().file_name().unwrap().to_string_lossy().into_owned();
    let step = format!("before anything was saved (the last step of {run} took ");
    assert!(text.contains(&step) && text.contains("raise the limit with --walltime or sbatch --time"), "{text}");
    assert_eq!((place.steps(), place.checkpoint()), (1, 0));
}

/// A test of very many pairs hears a request between two of them.
#[test]
fn pairs_are_not_all_waited_for() {
    let place = Place::new(r#"campaign("asked", [force_test(#{ levels: 1, pairs: 100000 })])"#);
    let mut run = place.command(&["run", "asked.rhai"]).spawn().unwrap();
    until("it computes", &mut run, || place.events("stage_started").len() == 1);
    assert!(Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success());
    let text = said(&run.wait_with_output().unwrap(), 75);
    assert!(text.contains("stopped by SIGINT; `comove resume asked`") && !text.contains("stopped at once"), "{text}");
}

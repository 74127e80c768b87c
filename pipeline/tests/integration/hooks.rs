//! Closures that a run asks after its steps: stop rules, observers, and what steers it.

use crate::common;

use assert_cmd::cargo::cargo_bin;
use common::{said, text, until};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A run of 16³ cells, some ninety steps to z = 20, with these hooks; HOOKS stands on line 4.
fn recipe(hooks: &str) -> String {
    format!(
        "const C = cosmology(#{{ h: 0.7, omega_m: 0.3, omega_b: 0.045, sigma8: 0.9, n_s: 1 }});\n\
         const IC = ic_gaussian(C, #{{ box_mpc_h: 20, cells: 16, z: 49, seed: 7 }});\n\
         const RUN = evolve(IC, #{{ z_end: 20, max_level: 1, refine: density_above(1.3), outputs: #{{ at_z: [40, 30] }},\n\
         {hooks}\n\
         checkpoints: #{{ every_minutes: 0, keep: 2 }} }});\n\
         campaign(\"r\", [measure(\"all\", RUN, #{{ at_z: \"all\" }}, |s| #{{ z: s.redshift, peak: s.densest().density }})])\n"
    )
}

/// All hooks at once: the run ends before z = 20.
const ALL: &str = "stop_when: |step| step.z < 25, hook_time_limit_s: 20, \
    steer: |step| if step.step % 10 < 4 { #{ dt_max: 0.7 * step.dt, max_level: 0 } }, \
    observe: #{ every_steps: 3, on_step: |step| #{ peak: step.density_max, levels: step.groups }, \
                on_output: |s| #{ mean: s.field(\"density\", 0).mean() } },";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self, hooks: &str, verb: &str) -> Command {
        std::fs::write(self.0.path().join("r.rhai"), recipe(hooks)).unwrap();
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(self.0.path()).args([verb, "r.rhai"]);
        command
    }

    fn run(&self, hooks: &str) -> Output {
        self.command(hooks, "run").output().unwrap()
    }

    /// Runs hooks whose failure a rehearsal would find before.
    fn run_unrehearsed(&self, hooks: &str) -> Output {
        self.command(hooks, "run").arg("--no-rehearsal").output().unwrap()
    }

    /// The folders of stages whose names start so.
    fn stages(&self, start: &str) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.0.path().join("r")).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with(start)).collect()
    }

    fn evolve(&self) -> PathBuf {
        let [run] = self.stages("evolve-").try_into().expect("one run");
        run
    }

    /// A file of the run.
    fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.evolve().join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
    }

    /// The lines of a file of the run.
    fn lines(&self, file: &str) -> Vec<Value> {
        common::lines(&self.evolve().join(file))
    }

    /// Number, steering and bits of every step.
    fn steps(&self) -> Vec<[Value; 3]> {
        let steps = self.lines("steps.jsonl").into_iter();
        steps.map(|mut step| ["step", "steering", "state_hash"].map(|name| step[name].take())).collect()
    }

    fn events(&self, kind: &str) -> Vec<Value> {
        common::events(&self.0.path().join("r"), kind)
    }

    /// What was measured last.
    fn measured(&self) -> Value {
        let begun = self.events("stage_started");
        let last = begun.iter().rfind(|event| event["kind"] == "measure").unwrap();
        let file = self.0.path().join("r").join(last["folder"].as_str().unwrap()).join("result.json");
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()
    }
}

/// `kill -9` at several moments: the same steps, bit for bit, the same lines of the observers, the same end.
#[test]
fn a_run_with_hooks_goes_on_after_a_kill_as_if_nothing_had_been() {
    let whole = Place::new();
    said(&whole.run(ALL), 0);
    let killed = Place::new();
    for snapshots in [9, 40, 70] {
        let mut child = killed.command(ALL, "run").stderr(std::process::Stdio::null()).spawn().unwrap();
        until("it has written that many", &mut child, || killed.events("snapshot_written").len() >= snapshots);
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let said = said(&killed.run(ALL), 0);
    assert!(said.contains("continuing from checkpoint_"), "{said}");
    assert_eq!(whole.steps(), killed.steps());
    assert_eq!(whole.read("observed.jsonl"), killed.read("observed.jsonl"));
    assert_eq!(whole.measured(), killed.measured());
    let steered: Vec<bool> = whole.steps().iter().map(|[_, steering, _]| steering.is_object()).collect();
    assert!(steered.contains(&true) && steered.contains(&false));
    let limits = whole.lines("steps.jsonl").iter().filter(|step| step["limit"]["by"] == "steered").count();
    assert!(limits > 10, "{limits}");
    let last = whole.steps().len() as u64;
    let [met] = whole.events("stop_rule_met").try_into().expect("it is met once");
    assert_eq!(
        (met["step"].as_u64(), met["rule"].as_str().map(|r| r.contains("step . z < 25"))),
        (Some(last), Some(true))
    );
    let observed = whole.lines("observed.jsonl");
    let of = |hook: &str| observed.iter().filter(|line| line["hook"] == hook).cloned().collect::<Vec<_>>();
    let numbers: Vec<u64> = of("on_step").iter().map(|line| line["step"].as_u64().unwrap()).collect();
    assert!(numbers.iter().copied().eq((1..=last / 3).map(|n| 3 * n)), "{numbers:?}");
    assert_eq!(of("on_output").len(), 3);
    assert!((of("on_output")[0]["value"]["mean"].as_f64().unwrap() - 1.0).abs() < 1e-4);
}

/// Rules and observers are outside the fingerprint: another one goes on, or back, and leaves what a run has that had it from
/// the start.
#[test]
fn a_stop_rule_may_be_changed() {
    let rule = |z: u32| format!("stop_when: |step| step.z < {z},");
    let fresh = |hooks: &str| {
        let place = Place::new();
        said(&place.run(hooks), 0);
        (place.measured(), place.steps().len())
    };
    let place = Place::new();
    said(&place.run(&rule(35)), 0);
    assert_eq!((place.measured(), place.steps().len()), fresh(&rule(35)));
    let moments = place.measured().as_array().unwrap().len();
    assert_eq!(moments, 2, "z = 40 and where it stopped");
    for verb in ["plan", "explain"] {
        let mut command = place.command(&rule(35), verb);
        let told = said(&if verb == "plan" { &mut command } else { command.arg("evolve") }.output().unwrap(), 0);
        assert!(
            told.contains(if verb == "plan" { "done, ended by its stop rule after step" } else { "done; all" }),
            "{told}"
        );
    }
    for options in [&["status", "r"][..], &["status", "r", "--watch"]] {
        let status = Command::new(cargo_bin("comove")).current_dir(place.0.path()).args(options).output().unwrap();
        assert!(said(&status, 0).contains("done, ended by its stop rule after step"), "{options:?}");
    }
    let page = std::fs::read_to_string(place.0.path().join("r/report.html")).unwrap();
    for text in ["Its stop rule ended it after step", "<td>done, ended by its stop rule after step"] {
        assert!(page.contains(text), "{text} in {page}");
    }
    assert_eq!(said(&place.run(&rule(35)), 0).matches("done before").count(), 3);
    // later, and on
    said(&place.run(&rule(28)), 0);
    assert_eq!((place.measured(), place.steps().len()), fresh(&rule(28)));
    // earlier: found in the records of the steps that were taken
    let back = said(&place.run(&rule(42)), 0);
    assert!(back.contains("the stop rule ends the run at step"), "{back}");
    assert_eq!(place.measured(), fresh(&rule(42)).0);
    // none at all, and one that is never met
    said(&place.run(""), 0);
    assert_eq!((place.measured(), place.steps().len()), fresh(""));
    let steps = place.steps();
    let plan = said(&place.command(&rule(3), "plan").output().unwrap(), 0);
    assert!(plan.contains("done except for the evaluation of its stop rule"), "{plan}");
    said(&place.run(&rule(3)), 0);
    assert_eq!((place.measured(), place.steps()), (fresh("").0, steps));
    assert_eq!(place.events("stop_rule_passed").len(), 1);
    // the first one again: nothing is left to do
    assert_eq!(said(&place.run(&rule(35)), 0).matches("done before").count(), 3);
    assert_eq!(place.stages("evolve-").len(), 1);
}

/// An analysis of an output that the run does not come to any more is shown with the reason, and so are the others.
#[test]
fn an_output_beyond_the_stop_rule_is_lacking() {
    let place = Place::new();
    said(&place.run("stop_when: |step| step.z < 35,"), 0);
    let beyond = "stop_when: |step| step.z < 35 }); const EARLY = measure(\"early\", RUN, #{ at_z: 40 }, |s| s.redshift); \
                  const LATE = measure(\"late\", RUN, #{ at_z: 30 }, |s| s.redshift); #{";
    let text = recipe(beyond).replace("#{\ncheckpoints: #{ every_minutes: 0, keep: 2 } });", "#{};");
    let text = text.replace("campaign(\"r\", [", "campaign(\"r\", [EARLY, LATE, ");
    std::fs::write(place.0.path().join("r.rhai"), text).unwrap();
    let comove = |verb: &str| {
        let mut command = Command::new(cargo_bin("comove"));
        command.current_dir(place.0.path()).args([verb, "r.rhai"]).output().unwrap()
    };
    let plan = said(&comove("plan"), 0);
    let late = "cannot be done: r/evolve-";
    let reason = "no output at z = 30; available: ";
    for part in
        [late, reason, "; stage 2 was ended by its stop rule after step", "Measured: early: ", "Measured: all: "]
    {
        assert!(plan.contains(part), "not {part:?}: {plan}");
    }
    assert!(said(&comove("run"), 4).contains("no output at z = 30"));
}

/// Where a record is damaged nobody knows what a rule would have said; without a rule the run is what it was.
#[test]
fn a_stop_rule_is_not_passed_over_damaged_records() {
    let place = Place::new();
    said(&place.run(""), 0);
    let records = place.read("steps.jsonl");
    let lost: String =
        records.lines().filter(|line| !line.contains("\"step\":20,")).map(|line| format!("{line}\n")).collect();
    for damaged in [lost, records.replace("\"step\":20,", "\"step\":?0,")] {
        assert_ne!(records, damaged);
        std::fs::write(place.evolve().join("steps.jsonl"), damaged).unwrap();
        let refused = said(&place.run("stop_when: |step| step.step == 30,"), 4);
        assert!(refused.contains("steps.jsonl: the record of step 20 is missing or damaged"), "{refused}");
    }
    // met before it
    said(&place.run("stop_when: |step| step.step == 15,"), 0);
    said(&place.run("stop_when: |step| step.step == 30,"), 4);
    said(&place.command("stop_when: |step| step.step == 30,", "run").args(["--force", "evolve"]).output().unwrap(), 0);
    assert_eq!(place.steps().len(), 30);
}

/// The report shows what was observed up to the run's end, wherever it has been before.
#[test]
fn what_was_observed_beyond_the_end_is_not_shown() {
    let observed = "observe: #{ every_steps: 4, on_step: |step| step.step },";
    let shown = |place: &Place| {
        let section: Value = serde_json::from_str(&place.read("section.json")).unwrap();
        let tables = section["tables"].as_array().unwrap().iter();
        tables.filter(|t| t["caption"].as_str().unwrap().starts_with("Observed")).cloned().collect::<Vec<_>>()
    };
    let (place, fresh) = (Place::new(), Place::new());
    said(&place.run(observed), 0);
    let all = shown(&place);
    let hooks = format!("stop_when: |step| step.step == 22, {observed}");
    said(&place.run(&hooks), 0);
    said(&fresh.run(&hooks), 0);
    assert_eq!(shown(&place), shown(&fresh));
    assert_ne!(shown(&place), all);
    assert_eq!(shown(&place)[0]["rows"].as_array().unwrap().len(), 5);
}

#[test]
fn what_steers_is_part_of_the_fingerprint() {
    let place = Place::new();
    said(&place.run("stop_when: |step| step.step == 2, steer: |step| #{ dt_max: 0.9 * step.dt },"), 0);
    said(&place.run("stop_when: |step| step.step == 2, steer: |step| #{ dt_max: 0.8 * step.dt },"), 0);
    said(&place.run("stop_when: |step| step.step == 3, steer: |step| #{ dt_max: 0.8 * step.dt }, observe: #{},"), 0);
    assert_eq!(place.stages("evolve-").len(), 2);
}

/// Observers that fail are warnings, at their place; the run has the same bits.
#[test]
fn an_observer_may_fail() {
    let rule = "stop_when: |step| step.step == 12,";
    let free = Place::new();
    said(&free.run(rule), 0);
    for (observer, message) in [
        ("on_step: |step| if step.step > 5 { throw \"five\" } else { step.step }", "five"),
        ("on_step: |step| [step.step][1]", "the list has no entry 1; it has 1"),
        ("on_output: |s| { loop {} }", "the computation exceeds its limit of 0.5 s"),
    ] {
        let place = Place::new();
        let hooks = format!("{rule} hook_time_limit_s: 0.5, observe: #{{ {observer} }},");
        let said = said(&place.run_unrehearsed(&hooks), 0);
        assert!(said.contains(message) && said.contains("r.rhai:4:"), "{said}");
        assert_eq!(said.matches("is not observed").count(), 1, "{said}");
        assert_eq!(place.steps(), free.steps());
        let noted = place.lines("observed.jsonl").len();
        assert_eq!(noted, if message == "five" { 5 } else { 0 });
    }
}

/// Stop rules and steering that fail end the run; its checkpoints are good, and it goes on when they are right.
#[test]
fn a_rule_or_steering_that_fails_ends_the_run() {
    for (hooks, message) in [
        ("stop_when: |step| if step.step < 6 { false } else { loop {} },", "raise hook_time_limit_s"),
        ("stop_when: |step| if step.step < 6 { false } else { throw \"six\" },", "six"),
        (
            "stop_when: |step| if step.step < 6 { false } else { \"no\" },",
            "stop_when: the closure returned \"no\", expected true or false",
        ),
        ("steer: |step| if step.step == 6 { loop {} },", "raise hook_time_limit_s"),
        (
            "steer: |step| if step.step == 6 { #{ max_level: 2 } },",
            "steer: max_level = 2: must be at most the run's max_level = 1",
        ),
        ("steer: |step| if step.step == 6 { #{ dt_mx: 1.0 } },", "unknown option \"dt_mx\", did you mean \"dt_max\"?"),
    ] {
        let place = Place::new();
        let hooks = format!("{hooks} hook_time_limit_s: 0.5,");
        let said = said(&place.run_unrehearsed(&hooks), 3);
        assert!(said.contains(message) && said.contains("r.rhai:4:"), "{said}");
        let last = place.events("snapshot_written").pop().unwrap()["snapshot"]["step"].as_u64();
        assert_eq!(last, Some(if hooks.starts_with("stop") { 6 } else { 5 }), "{said}");
        assert!(said.contains("last checkpoint: checkpoint_00000"), "{said}");
    }
    let place = Place::new();
    let rule = "stop_when: |step| if step.step < 6 { false } else { throw \"six\" },";
    said(&place.run(rule), 3);
    let on = said(&place.run("stop_when: |step| step.step == 5 || step.step == 8,"), 0);
    assert!(
        on.contains("the stop rule ends the run at step 5") && on.contains("continuing from checkpoint_000005"),
        "{on}"
    );
}

#[test]
fn hooks_that_are_none_are_told_where() {
    for (hooks, message) in [
        ("stop_when: 3,", "evolve: stop_when: a whole number is not a closure"),
        ("observe: #{ every_step: 3 },", "unknown option \"every_step\", did you mean \"every_steps\"?"),
        ("observe: #{ every_steps: 0 },", "observe.every_steps"),
        ("observe: #{ on_step: |step| step.temperatur },", "on_step: a step has no property \"temperatur\""),
        ("observe: #{ on_step: \"x\" },", "evolve: on_step: a text is not a closure"),
        ("stop_wen: |s| true,", "stop_wen: a closure cannot be an option's value"),
        ("hook_time_limit_s: 0,", "hook_time_limit_s = 0: must be positive"),
    ] {
        let place = Place::new();
        let output = place.command(hooks, "check").output().unwrap();
        assert!(said(&output, 3).contains(message) && text(&output).contains("r.rhai:4:"), "{}", text(&output));
    }
}

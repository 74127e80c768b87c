//! What a program said and has written down, and waiting for what it does.
#![allow(dead_code)]

pub(crate) mod fuzz;

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Output};
use std::time::{Duration, Instant};

/// All that it said.
pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), output.stderr.as_slice()].concat()).into_owned()
}

/// The same of one that is to have left with this exit code.
pub(crate) fn said(output: &Output, code: i32) -> String {
    let text = text(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    text
}

/// The whole lines of a file of one JSON object a line; none if it is not there.
pub(crate) fn lines(file: &Path) -> Vec<Value> {
    comove::testing::read_jsonl(file).unwrap()
}

/// The events of this kind in the ledger of a campaign folder.
pub(crate) fn events(campaign: &Path, kind: &str) -> Vec<Value> {
    lines(&campaign.join("ledger.jsonl")).into_iter().filter(|event| event["event"] == kind).collect()
}

/// The records of the steps of the run in this folder.
pub(crate) fn records(run: &Path) -> Vec<Value> {
    lines(&run.join("steps.jsonl"))
}

/// The same of all runs of a campaign folder, which need not be there.
pub(crate) fn records_of_all(campaign: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(campaign).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.is_dir()).flat_map(|run| records(&run)).collect()
}

/// Waits for a process that runs on to come to something.
pub(crate) fn until(what: &str, child: &mut Child, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(120), "it takes too long until {what}");
        assert!(child.try_wait().unwrap().is_none(), "it ended before {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

//! What a program said, and waiting for what it does.
#![allow(dead_code)]

pub(crate) mod fuzz;

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

/// Waits for a process that runs on to come to something.
pub(crate) fn until(what: &str, child: &mut Child, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(120), "it takes too long until {what}");
        assert!(child.try_wait().unwrap().is_none(), "it ended before {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

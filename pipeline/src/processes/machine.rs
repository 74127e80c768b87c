//! The machine that a process runs on, what the system says of the process, and what the program was built with.

use comove_kernels::isa;
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use signal_hook::consts::SIGHUP;
use std::fs::{File, read_to_string};
use std::io::{IsTerminal, stderr, stdin, stdout};

/// What results may depend on besides program and device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Host {
    pub processor: String,
    /// Threads that it runs at once, as far as this process may use them.
    pub threads: usize,
    /// Its memory in bytes, if the system says.
    pub memory: Option<f64>,
    /// The instruction set that kernels on the CPU take.
    pub instructions: String,
    pub system: String,
    pub hdf5: String,
    /// The compiler's version, and what it compiled for.
    pub compiler: String,
}

impl Host {
    pub(crate) fn this() -> Self {
        let known = |path: &str| read_to_string(path).unwrap_or_default();
        let processor = field(&known("/proc/cpuinfo"), "model name").unwrap_or("unknown").to_owned();
        let kibibytes =
            field(&known("/proc/meminfo"), "MemTotal").and_then(|size| size.split(' ').next()?.parse().ok());
        Self {
            processor,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: kibibytes.map(|kibibytes: f64| 1024.0 * kibibytes),
            instructions: isa::name().into(),
            system: format!("{} {}", std::env::consts::OS, known("/proc/sys/kernel/osrelease").trim()),
            hdf5: comove_sim::snapshot::hdf5_version(),
            compiler: env!("COMOVE_COMPILER").into(),
        }
    }
}

/// What the system says of this process under a name; `None` where it has no `/proc`.
pub(crate) fn process_status(name: &str) -> Option<String> {
    field(&read_to_string("/proc/self/status").ok()?, name).map(str::to_owned)
}

/// Whether this process was started to survive its terminal, as by `nohup`.
pub(crate) fn survives_its_terminal() -> bool {
    let has_hangup = |signals: &str| {
        let mask = process_status(signals).and_then(|mask| u64::from_str_radix(&mask, 16).ok());
        mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1)
    };
    // UCX, a library of MPI, replaces what nohup has set before `main`: nohup's streams tell then
    let is_detached = || !(stdin().is_terminal() || stdout().is_terminal() || stderr().is_terminal());
    has_hangup("SigIgn") || has_hangup("SigCgt") && is_detached() && File::open("/dev/tty").is_ok()
}

/// Bytes that a file of this process may have (`ulimit -f`), if there is a limit.
pub(crate) fn file_size_limit() -> Option<u64> {
    getrlimit(Resource::Fsize).current
}

/// The first value of that name in a list `name : value` of the system.
fn field<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    let values = list.lines().filter_map(|line| line.split_once(':'));
    values.into_iter().find(|(known, _)| known.trim() == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_is_read() {
        let list = "processor\t: 0\nmodel name\t: A: b\nprocessor\t: 1\nmodel name\t: C\n";
        assert_eq!((field(list, "model name"), field(list, "flags")), (Some("A: b"), None));
        let host = Host::this();
        assert!(host.compiler.starts_with("rustc 1.") && host.compiler.contains(std::env::consts::ARCH), "{host:?}");
        if cfg!(target_os = "linux") {
            assert!(host.memory.is_some_and(|bytes| bytes > 1e8) && host.processor != "unknown", "{host:?}");
        }
    }
}

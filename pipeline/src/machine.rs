//! The machine that a process runs on and what the program was built with, for the provenance of results.

use comove_kernels::isa;
use serde::{Deserialize, Serialize};
use std::fs::read_to_string;

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

//! Where a GPU spends its time: every kernel waited for and timed, so that a run is slower but its parts add up.

use crate::device::kernel_times::KernelTime;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// Launches, blocks and milliseconds of each kernel, told at the end.
pub(super) struct Profile {
    kernels: Mutex<BTreeMap<String, KernelTime>>,
    /// A file for programs to read; without one, a table on the terminal.
    file: Option<PathBuf>,
}

impl Profile {
    /// What `COMOVE_CUDA_PROFILE` asks for: a file if it is a name that ends in `.json`, a table if it is anything else.
    pub(super) fn wanted() -> Option<Self> {
        let file = PathBuf::from(std::env::var_os("COMOVE_CUDA_PROFILE")?);
        let is_file = file.extension().is_some_and(|extension| extension == "json");
        Some(Self { kernels: Mutex::default(), file: is_file.then_some(file) })
    }

    pub(super) fn add(&self, kernel: &str, blocks: usize, milliseconds: f64) {
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        *kernels.entry(kernel.into()).or_default() += KernelTime { launches: 1, blocks: blocks as u64, milliseconds };
    }

    pub(super) fn kernels(&self) -> BTreeMap<String, KernelTime> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let kernels = self.kernels();
        let Some(file) = &self.file else {
            eprint!("{}", table(&kernels));
            return;
        };
        if let Err(error) = std::fs::write(file, json(&kernels)) {
            eprintln!("COMOVE_CUDA_PROFILE: {}: {error}", file.display());
        }
    }
}

fn table(kernels: &BTreeMap<String, KernelTime>) -> String {
    let mut sorted: Vec<_> = kernels.iter().collect();
    sorted.sort_by(|a, b| b.1.milliseconds.total_cmp(&a.1.milliseconds));
    let total: f64 = kernels.values().map(|time| time.milliseconds).sum();
    let [kernel, launches, blocks, ms, percent] = ["kernel", "launches", "blocks", "ms", "%"];
    let mut text =
        format!("{kernel:<32} {launches:>9} {blocks:>12} {ms:>10} {percent:>7}  {:.2} s in all\n", 1e-3 * total);
    for (kernel, KernelTime { launches, blocks, milliseconds }) in sorted {
        let percent = 100.0 * milliseconds / total;
        text += &format!("{kernel:<32} {launches:>9} {blocks:>12} {milliseconds:>10.1} {percent:>7.2}\n");
    }
    text
}

/// An object with one member a kernel. Names of kernels need no escapes.
fn json(kernels: &BTreeMap<String, KernelTime>) -> String {
    let member = |(kernel, time): (&String, &KernelTime)| {
        let KernelTime { launches, blocks, milliseconds } = time;
        format!("\"{kernel}\": {{\"launches\": {launches}, \"blocks\": {blocks}, \"milliseconds\": {milliseconds}}}")
    };
    format!("{{\n{}\n}}\n", kernels.iter().map(member).collect::<Vec<_>>().join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_tell_every_kernel() {
        let time = |milliseconds| KernelTime { launches: 2, blocks: 300, milliseconds };
        let kernels = BTreeMap::from([("kick".into(), time(0.5)), ("sweep".into(), time(1.5))]);
        let lines: Vec<String> = table(&kernels).lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines, ["kernellaunchesblocksms%0.00sinall", "sweep23001.575.00", "kick23000.525.00"]);
        let expected = "{\n\"kick\": {\"launches\": 2, \"blocks\": 300, \"milliseconds\": 0.5},\n\
                        \"sweep\": {\"launches\": 2, \"blocks\": 300, \"milliseconds\": 1.5}\n}\n";
        assert_eq!(json(&kernels), expected);
    }
}

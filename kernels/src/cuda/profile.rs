//! Where a GPU spends its time: every kernel waited for and timed, so that a run is slower but its parts add up.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Launches, blocks and milliseconds of each kernel.
#[derive(Default)]
pub(super) struct Profile(Mutex<BTreeMap<String, [f64; 3]>>);

impl Profile {
    pub(super) fn add(&self, kernel: &str, blocks: usize, milliseconds: f64) {
        let mut kernels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sums = kernels.entry(kernel.into()).or_default();
        for (sum, value) in sums.iter_mut().zip([1.0, blocks as f64, milliseconds]) {
            *sum += value;
        }
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        let kernels = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sorted: Vec<_> = kernels.iter().collect();
        sorted.sort_by(|a, b| b.1[2].total_cmp(&a.1[2]));
        let total: f64 = sorted.iter().map(|(_, [_, _, ms])| ms).sum();
        eprintln!(
            "{:<32} {:>9} {:>12} {:>10} {:>7}  {:.2} s in all",
            "kernel",
            "launches",
            "blocks",
            "ms",
            "%",
            1e-3 * total
        );
        for (kernel, [launches, blocks, ms]) in sorted {
            eprintln!("{kernel:<32} {launches:>9} {blocks:>12} {ms:>10.1} {:>7.2}", 100.0 * ms / total);
        }
    }
}

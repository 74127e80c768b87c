//! `comove doctor`: what there is to compute with.

use super::print;
use crate::error::PipelineError;
use comove_kernels::gpus::{Gpu, Gpus, gpus};
use comove_kernels::memory::{self, GIB};
use comove_kernels::{Device, isa};

/// Prints a line for each device and library: what it is, what it lacks, what would help.
pub(super) fn doctor() -> Result<(), PipelineError> {
    let found = gpus();
    let mut lines = vec![("comove", env!("CARGO_PKG_VERSION").into()), ("CPU", cpu())];
    lines.extend(gpu_lines(&found, free_memory));
    lines.push(("HDF5", format!("{}, built in", comove_sim::snapshot::hdf5_version())));
    lines.push(("MPI", "not included: a run has one process, on one machine".into()));
    lines.iter().try_for_each(|(what, text)| print(&format!("{what:<7} {text}")))
}

fn cpu() -> String {
    let cores = std::thread::available_parallelism().map_or("unknown number of".into(), |n| n.to_string());
    let free = memory::available().map_or("unknown memory".into(), |bytes| format!("{:.1} GiB of memory", bytes / GIB));
    let slow = match isa::name() {
        "baseline" if cfg!(target_arch = "x86_64") => " (half the speed of avx2, which this processor lacks)",
        _ => "",
    };
    format!("{cores} cores, instructions {}{slow}, {free} free", isa::name())
}

/// Bytes that a GPU has free for a run, or why it cannot be opened.
fn free_memory(gpu: &Gpu) -> Result<f64, String> {
    let device = Device::cuda(gpu.ordinal, 1).map_err(|e| e.to_string())?;
    device.free_bytes().map(|bytes| bytes as f64).ok_or_else(|| "its free memory is unknown".into())
}

/// Of the GPUs and what belongs to them; `free` tells the bytes that are free on one, or why it cannot be opened.
fn gpu_lines(found: &Result<Gpus, String>, free: impl Fn(&Gpu) -> Result<f64, String>) -> Vec<(&'static str, String)> {
    let found = match found {
        Ok(found) => found,
        Err(reason) => return vec![("GPU", format!("none: {reason}; {}", remedy(reason)))],
    };
    let [major, minor] = found.cuda_version;
    let mut lines = vec![("driver", format!("NVIDIA's, CUDA {major}.{minor}"))];
    lines.extend(found.gpus.iter().map(|gpu| {
        let [major, minor] = gpu.capability;
        let memory = gpu.memory as f64 / GIB;
        let state = match free(gpu) {
            Ok(free) => format!("ready, {:.1} GiB free", free / GIB),
            Err(reason) => format!(
                "cannot be used: {reason}; its kernels need compute capability 8.0 and a driver for the CUDA that \
                 built them: update the driver, or compute with --device cpu"
            ),
        };
        let name = &gpu.name;
        ("GPU", format!("cuda:{}, {name}, {memory:.1} GiB, compute capability {major}.{minor}: {state}", gpu.ordinal))
    }));
    if found.gpus.is_empty() {
        lines.push(("GPU", "none; compute with --device cpu".into()));
    }
    lines.push(match &found.cufft {
        Some(version) => ("cuFFT", version.clone()),
        None => (
            "cuFFT",
            "not found: the root mesh is transformed on the host; install libcufft.so.12 or .11 where the loader or \
             CUDA_HOME finds it"
                .into(),
        ),
    });
    lines
}

fn remedy(reason: &str) -> &'static str {
    if reason.contains("built without CUDA") {
        "build it with --features cuda (after scripts/setup --cuda), or compute with --device cpu"
    } else {
        "install NVIDIA's driver, or compute with --device cpu"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines with nothing, with a GPU that works beside one that is too old, and with cuFFT missing.
    #[test]
    fn every_finding_has_a_remedy() {
        let none = gpu_lines(&Err("this program was built without CUDA".into()), |_| Ok(GIB));
        assert_eq!(none.len(), 1);
        assert!(none[0].1.contains("--features cuda"), "{none:?}");
        let none = gpu_lines(&Err("no NVIDIA driver or GPU was found on this machine".into()), |_| Ok(GIB));
        assert!(none[0].1.contains("install NVIDIA's driver"), "{none:?}");

        let gpu = |ordinal, capability| Gpu { ordinal, name: "H200".into(), memory: 3 << 29, capability };
        let mut found = Gpus { cuda_version: [13, 0], gpus: vec![gpu(0, [9, 0]), gpu(1, [7, 5])], cufft: None };
        let too_old = |gpu: &Gpu| if gpu.capability[0] < 8 { Err("no kernel image".into()) } else { Ok(GIB) };
        let lines = gpu_lines(&Ok(found.clone()), too_old);
        assert_eq!(lines.iter().map(|(what, _)| *what).collect::<Vec<_>>(), ["driver", "GPU", "GPU", "cuFFT"]);
        assert_eq!(lines[1].1, "cuda:0, H200, 1.5 GiB, compute capability 9.0: ready, 1.0 GiB free");
        assert!(lines[2].1.contains("cannot be used: no kernel image; its kernels need"), "{lines:?}");
        assert!(lines[3].1.contains("libcufft.so.12"), "{lines:?}");
        (found.cufft, found.gpus) = (Some("12.0.0".into()), Vec::new());
        let lines = gpu_lines(&Ok(found), too_old);
        assert_eq!(lines[1].1, "none; compute with --device cpu");
        assert_eq!(lines[2], ("cuFFT", "12.0.0".into()));
    }
}

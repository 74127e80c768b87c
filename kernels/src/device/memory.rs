//! The memory that this process may still take, on the host and on a device.
//!
//! A run predicts what it will take before it takes it (`comove_sim::memory`) and compares that with
//! [`Device::free_bytes`] and [`Device::memory_limit`]. What operations allocate for themselves while they run is no part
//! of such a prediction: it is [`Device::working_bytes`], which is kept ready beside it.

use crate::device::Device;
use crate::device::error::KernelError;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// A gibibyte in bytes.
pub const GIB: f64 = 1_073_741_824.0;

impl Device {
    /// The same device with a limit on the memory that a run may take, in bytes: advisory, not enforced.
    #[must_use]
    pub fn limited_to(mut self, bytes: u64) -> Self {
        match &mut self {
            Self::Cpu(cpu) => cpu.memory_limit = Some(bytes),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => cuda.memory_limit = Some(bytes),
        }
        self
    }

    /// The limit on the memory that a run may take, in bytes, if there is one.
    pub fn memory_limit(&self) -> Option<u64> {
        match self {
            Self::Cpu(cpu) => cpu.memory_limit,
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => cuda.memory_limit,
        }
    }

    /// Bytes of the device that this process may still take: on a GPU what is free and what freed arrays have left to the
    /// process, on the CPU what [`available`] says (`None` where the system does not).
    pub fn free_bytes(&self) -> Option<u64> {
        match self {
            Self::Cpu(_) => available().map(|bytes| bytes as u64),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => Some(cuda.memory()[0] + cuda.unused_bytes()),
        }
    }

    /// Bytes that operations on so many groups take for themselves while they run, at the most: reports and lists of
    /// groups, and on a GPU the ghost zones of the blocks that are swept at once.
    pub fn working_bytes(&self, groups: usize) -> usize {
        const A_GROUP: usize = 2 << 10;
        match self {
            Self::Cpu(_) => groups * A_GROUP,
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => (cuda.multiprocessors() as usize * (1 << 20)).max(64 << 20) + groups * A_GROUP,
        }
    }

    /// Reserves so many bytes for the next arrays, whatever other processes do, and frees what this process holds unused
    /// beyond that. Does nothing on the CPU.
    ///
    /// # Errors
    /// [`KernelError::OutOfMemory`].
    #[cfg_attr(not(feature = "cuda"), allow(unused_variables, clippy::unnecessary_wraps))]
    pub fn keep_ready(&self, bytes: usize) -> Result<(), KernelError> {
        match self {
            Self::Cpu(_) => Ok(()),
            #[cfg(feature = "cuda")]
            Self::Cuda(cuda) => cuda.keep_ready(bytes),
        }
    }
}

/// From now on lists that are freed stay with this process for the next ones, up to 32 MiB each and 256 MiB together.
///
/// A regrid frees and makes tens of MB of them. The C library would give most back to the system every time, and the first
/// touch of each page of the next ones takes as long as filling it. Nothing to do with a C library other than GNU's.
pub fn keep_freed() {
    #[cfg(target_env = "gnu")]
    {
        const MIB: i32 = 1 << 20;
        // SAFETY: these two options may be set at any time, from one thread or several.
        let set = unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, 32 * MIB) & libc::mallopt(libc::M_TRIM_THRESHOLD, 256 * MIB)
        };
        debug_assert_eq!(set, 1, "values within bounds");
    }
}

/// Bytes that are free for this process: what the system says, or the control groups that it runs in (a container, a
/// batch job) where they leave less. `None` where the system does not say.
pub fn available() -> Option<f64> {
    let system = of_system(&read_to_string("/proc/meminfo").ok()?)?;
    let group = read_to_string("/proc/self/cgroup").unwrap_or_default();
    Some(of_groups(Path::new("/sys/fs/cgroup"), &group).fold(system, f64::min))
}

/// `MemAvailable` of /proc/meminfo, which is in KiB.
fn of_system(meminfo: &str) -> Option<f64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()? * 1024.0)
}

/// What each limited group from the process's own up to the root leaves; cached files count as free.
fn of_groups(root: &Path, membership: &str) -> impl Iterator<Item = f64> {
    let own = membership.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let folders: Vec<PathBuf> =
        root.join(own).ancestors().take_while(|f| f.starts_with(root)).map(Into::into).collect();
    folders.into_iter().filter_map(|folder| {
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let limit = number(&read_to_string(folder.join("memory.max")).ok()?)?;
        let used = number(&read_to_string(folder.join("memory.current")).ok()?)?;
        let stat = read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let cached = stat.lines().find_map(|line| number(line.strip_prefix("inactive_file ")?)).unwrap_or(0.0);
        Some((limit - used + cached).max(0.0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Buffer;

    #[test]
    fn the_system_and_its_groups_are_read() {
        assert_eq!(of_system("MemTotal: 9 kB\nMemAvailable:     2048 kB\n"), Some(2_097_152.0));
        assert_eq!(of_system("MemTotal: 9 kB\n"), None);
        let folder = tempfile::tempdir().unwrap();
        let job = folder.path().join("slurm/job");
        std::fs::create_dir_all(&job).unwrap();
        let write = |at: &Path, file: &str, text: &str| std::fs::write(at.join(file), text).unwrap();
        write(&job, "memory.max", "max\n");
        write(&job, "memory.current", "10\n");
        let slurm = folder.path().join("slurm");
        write(&slurm, "memory.max", "1000\n");
        write(&slurm, "memory.current", "700\n");
        write(&slurm, "memory.stat", "anon 500\ninactive_file 200\n");
        let left: Vec<f64> = of_groups(folder.path(), "0::/slurm/job\n").collect();
        assert_eq!(left, [500.0]);
        assert_eq!(of_groups(folder.path(), "").count(), 0);
    }

    #[test]
    fn a_limit_belongs_to_a_device() {
        let device = Device::cpu(1).unwrap();
        assert_eq!(device.memory_limit(), None);
        let limited = device.clone().limited_to(5);
        assert_eq!((limited.memory_limit(), device.memory_limit()), (Some(5), None));
        assert!(limited.free_bytes().is_none_or(|bytes| bytes > 0) && limited.keep_ready(1 << 60).is_ok());
        assert!(device.working_bytes(10) > device.working_bytes(1));
    }

    /// What an array takes is no longer free and comes back with it; more than there is, is refused. Arrays of tests at
    /// the same time are small.
    #[test]
    fn gpu_memory_is_counted() {
        crate::testing::with_gpu(|gpu| {
            const BYTES: usize = 512 << 20;
            let free = || gpu.free_bytes().expect("a GPU says");
            gpu.keep_ready(BYTES).expect("room");
            let before = free();
            let array = Buffer::<u8>::zeros(gpu, BYTES).expect("room");
            let with = free();
            drop(array);
            assert!(before - with >= BYTES as u64 / 2 && free() - with >= BYTES as u64 / 2);
            let too_much = 2 * before as usize;
            assert!(matches!(Buffer::<u8>::zeros(gpu, too_much), Err(KernelError::OutOfMemory { .. })));
            assert!(gpu.keep_ready(too_much).is_err() && gpu.keep_ready(0).is_ok());
        });
    }
}

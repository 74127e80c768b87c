//! The memory that this process may still take.

use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// A gibibyte in bytes.
pub const GIB: f64 = 1_073_741_824.0;

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
}

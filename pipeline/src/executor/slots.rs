//! Where stages compute at the same time: devices in shares for runs, and room for the stages beside them.
//!
//! Every device has as many shares as runs may compute on it at once. A run takes one, or as many as hold what its arrays
//! take at the least; it may then take no more of the device's memory than its shares, so that runs which do not fit
//! together wait for each other. A run alone on its device has no such limit. Threads of the processor belong to all its
//! runs: parallel loops of one take what others leave idle.

use crate::error::PipelineError;
use crate::stage::Stage;
use comove_kernels::Device;

/// Stages at once that make sense anywhere: each has a thread, and each share of a GPU a stream.
const MOST_JOBS: usize = 1024;

/// The devices, and how much may happen at once.
#[derive(Debug)]
pub(crate) struct Slots {
    devices: Vec<Shared>,
    /// Stages at once, as `--jobs` says.
    jobs: Option<usize>,
    /// What all devices have in common can be asked of this one.
    any: Device,
}

#[derive(Debug)]
struct Shared {
    /// A handle for each share: on a GPU each has a stream of its own.
    free: Vec<Device>,
    shares: usize,
    /// Bytes of its memory that all runs together may take, if that was said.
    limit: Option<u64>,
    /// Bytes of a share, where there are several.
    share: Option<u64>,
}

/// Shares of a device that a run has taken.
pub(crate) struct Place {
    device: usize,
    handles: Vec<Device>,
    /// Whether these are all.
    pub whole: bool,
    limit: Option<u64>,
}

impl Place {
    /// The device, with the memory of the shares as its limit.
    pub(crate) fn device(&self) -> Device {
        let device = self.handles[0].clone();
        match self.limit {
            Some(bytes) => device.limited_to(bytes),
            None => device,
        }
    }
}

impl Slots {
    /// The devices of these names with `threads` threads of the processor (0: one per core); at most `jobs` stages at once,
    /// else a run on each device and another stage beside each. `limit`: bytes of each device's memory for its runs.
    ///
    /// # Errors
    /// [`PipelineError::Device`]; [`PipelineError::Usage`] for devices whose bits differ, or one that is named twice, as
    /// `cuda` and `cuda:0` do.
    pub(crate) fn new(
        names: &[String],
        threads: usize,
        jobs: Option<usize>,
        limit: Option<u64>,
    ) -> Result<Self, PipelineError> {
        let jobs = jobs.map(|jobs| jobs.min(MOST_JOBS));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { cores } else { threads };
        let count = names.len().min(jobs.unwrap_or(usize::MAX));
        let mut devices = Vec::new();
        for (n, name) in names.iter().take(count).enumerate() {
            let shares = jobs.map_or(1, |jobs| jobs / count + usize::from(n < jobs % count));
            let shared = Shared::new(name, (threads / count).max(1), shares, limit)?;
            let is_same = |other: &Shared| other.free[0].is_same(&shared.free[0]);
            if let Some(other) = devices.iter().position(is_same) {
                let both = format!("--device: {} and {name} are the same device", names[other]);
                return Err(PipelineError::Usage(format!("{both}; use --jobs for several runs on one device")));
            }
            devices.push(shared);
        }
        let any = devices[0].free[0].clone();
        if let Some(other) = devices.iter().map(|shared| shared.free[0].class()).find(|class| *class != any.class()) {
            let reason = "results of a run would depend on the device that it gets; use devices of one kind";
            let message = format!("--device: these differ in their bits ({}; {other}), and {reason}", any.class());
            return Err(PipelineError::Usage(message));
        }
        Ok(Self { devices, jobs, any })
    }

    /// What the log and the ledger say of the devices.
    pub(crate) fn describe(&self) -> String {
        let name = |shared: &Shared| match (shared.free[0].name(), shared.shares) {
            (name, 1) => name,
            (name, shares) => format!("{name}, shared by {shares} runs"),
        };
        self.devices.iter().map(name).collect::<Vec<_>>().join(" and ")
    }

    /// One of them, for what does not depend on which.
    pub(crate) fn any(&self) -> &Device {
        &self.any
    }

    /// Whether one more stage may begin, a run or another one, beside so many.
    pub(crate) fn allow(&self, is_run: bool, runs: usize, others: usize) -> bool {
        match self.jobs {
            Some(jobs) => runs + others < jobs,
            None => is_run || others < self.devices.len(),
        }
    }

    /// Takes what a run needs on the device with the most free shares, all shares of a device if `whole`; `None` where that
    /// is not free.
    pub(crate) fn take(&mut self, run: &dyn Stage, whole: bool) -> Option<Place> {
        let (n, shared) = self.devices.iter_mut().enumerate().rev().max_by_key(|(_, shared)| shared.free.len())?;
        let needed = run.memory(shared.free.first()?, None).device;
        let count = match shared.share {
            Some(bytes) if !whole => ((needed / bytes.max(1) as f64).ceil() as usize).clamp(1, shared.shares),
            _ => shared.shares,
        };
        let handles = shared.free.split_off(shared.free.len().checked_sub(count)?);
        let whole = count == shared.shares;
        let limit = if whole { shared.limit } else { shared.share.map(|bytes| bytes * count as u64) };
        Some(Place { device: n, handles, whole, limit })
    }

    /// Gives back what a run had.
    pub(crate) fn give_back(&mut self, place: Place) {
        self.devices[place.device].free.extend(place.handles);
    }
}

impl Shared {
    fn new(name: &str, threads: usize, shares: usize, limit: Option<u64>) -> Result<Self, PipelineError> {
        let first = Device::from_name(name, threads)?;
        let share = limit.or_else(|| first.free_bytes()).map(|bytes| bytes / shares as u64).filter(|_| shares > 1);
        let free = match first {
            // one pool of threads for all its runs
            Device::Cpu(_) => vec![first; shares],
            #[cfg(feature = "cuda")]
            Device::Cuda(_) => {
                let handle = |_| Device::from_name(name, (threads / shares).max(1));
                (0..shares).map(handle).collect::<Result<_, _>>()?
            }
        };
        Ok(Self { free, shares, limit, share })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::PipelineError;
    use crate::stage::{Memory, SavedState, Work};
    use serde_json::Value;

    /// A run whose arrays take so many bytes.
    #[derive(Debug)]
    struct Run(f64);

    impl Stage for Run {
        fn kind(&self) -> &'static str {
            "run"
        }
        fn describe(&self) -> String {
            String::new()
        }
        fn parameters(&self) -> Value {
            Value::Null
        }
        fn memory(&self, _: &Device, _: Option<&SavedState>) -> Memory {
            Memory { host: 0.0, device: self.0 }
        }
        fn execute(&self, _: &mut Work<'_>) -> Result<Vec<String>, PipelineError> {
            unreachable!("nothing is run here")
        }
    }

    fn cpu(jobs: Option<usize>) -> Slots {
        Slots::new(&["cpu".into()], 2, jobs, Some(900)).unwrap()
    }

    #[test]
    fn runs_share_a_device_and_its_memory() {
        let mut slots = cpu(Some(3));
        let limit = |place: &Place| place.device().memory_limit();
        let (small, large) = (Run(100.0), Run(301.0));
        let first = slots.take(&small, false).unwrap();
        assert_eq!((limit(&first), first.whole, first.device().threads()), (Some(300), false, 2));
        let second = slots.take(&large, false).unwrap();
        assert_eq!((limit(&second), second.whole), (Some(600), false));
        assert!(slots.take(&small, false).is_none(), "all shares are taken");
        slots.give_back(first);
        assert!(slots.take(&large, false).is_none() && slots.take(&small, true).is_none());
        slots.give_back(second);
        let alone = slots.take(&Run(1e9), false).unwrap();
        assert_eq!((limit(&alone), alone.whole), (Some(900), true), "what needs more than there is gets all there is");
    }

    #[test]
    fn jobs_count_all_stages_devices_only_runs() {
        let (one, three) = (cpu(None), cpu(Some(3)));
        let allowed = |slots: &Slots| [slots.allow(true, 0, 1), slots.allow(false, 1, 0), slots.allow(false, 1, 1)];
        assert_eq!((allowed(&one), allowed(&three)), ([true, true, false], [true, true, true]));
        assert!(!three.allow(true, 1, 2));
    }

    #[test]
    fn devices_are_named_once() {
        // without a GPU, auto is the processor
        for names in [["cpu", "cpu"], ["auto", "auto"]] {
            let error = Slots::new(&names.map(String::from), 1, None, None).unwrap_err();
            let said = format!("{} and {} are the same device", names[0], names[1]);
            assert!(error.exit_code() == 2 && error.to_string().contains(&said), "{error}");
        }
    }
}

//! The first rank sends commands, the others follow: what is called of its simulation is called of theirs.

use crate::error::{ErrorKind, SimError};
use crate::io::snapshot::Snapshot;
use crate::mesh::Octree;
use crate::mesh::host_state::HostState;
use crate::parallel::load_balancer::LoadBalancer;
use crate::parallel::{CommandLock, Communicator, Ranks, node};
use crate::run::command::{PANICKED, broadcast};
use crate::run::simulation::{Command, Simulation};
use comove_kernels::{Device, KernelError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The ranks of a program as one of them sees them: the first decides, the others follow.
#[derive(Clone)]
pub struct RankGroup {
    communicator: Arc<Communicator>,
    command_lock: CommandLock,
}

impl RankGroup {
    /// Of the ranks of a communicator.
    pub fn of(communicator: Communicator) -> Self {
        Self { communicator: Arc::new(communicator), command_lock: CommandLock::default() }
    }

    /// A rank without others.
    pub fn alone() -> Self {
        Self::of(Communicator::alone())
    }

    /// Between them.
    pub fn communicator(&self) -> &Communicator {
        &self.communicator
    }

    /// For a simulation that all ranks share and the first one leads.
    pub fn ranks(&self) -> Ranks {
        let leads = (self.communicator.size() > 1).then(|| Arc::clone(&self.command_lock));
        Ranks {
            communicator: Arc::clone(&self.communicator),
            scattered: None,
            load_balancer: LoadBalancer::default(),
            leads,
        }
    }

    /// Does work that all ranks share and that is no simulation; it may be collective. The others are told what it is, for
    /// the function that they gave to [`RankGroup::follow`]. One thread of the first rank at a time: what others ask of a
    /// simulation meanwhile waits.
    ///
    /// * `task`: says to the others what is done. One with a NaN cannot be told: its work is the first rank's alone, as if it
    ///   had no others, which finds out what is wrong.
    pub fn run_collective<T, R>(&self, task: &T, work: impl FnOnce(&Communicator) -> R) -> R
    where
        T: Serialize + DeserializeOwned,
    {
        if self.communicator.size() == 1 {
            return work(&self.communicator);
        }
        let task = serde_json::to_value(task).expect("numbers and names");
        if T::deserialize(&task).is_err() {
            return work(&Communicator::alone());
        }
        let _abort = AbortOnPanic(&self.communicator);
        let _held = broadcast(&self.communicator, &self.command_lock, &Command::Task(task));
        work(&self.communicator)
    }

    /// Has every rank make its device ready; this is the first one's, or why it has none. How many ranks share one GPU at
    /// the most: they take turns on it.
    ///
    /// # Errors
    /// [`SimError::OnRank`] where a rank has none, or one that computes other bits.
    pub fn prepare(&self, own: Result<&Device, String>) -> Result<usize, SimError> {
        if self.communicator.size() == 1 {
            return Ok(1);
        }
        let _held = broadcast(&self.communicator, &self.command_lock, &Command::Prepare);
        compare(&self.communicator, own.map(Hardware::of))
    }

    /// Follows the commands of the first rank, until it shuts the group down.
    ///
    /// * `device`: makes this rank's device
    /// * `work`: does this rank's part of what [`RankGroup::run_collective`] was given; the groups that it gives are kept for the next
    ///   start of a simulation, of which the first rank has no more than its own part either
    pub fn follow(
        &self,
        device: impl Fn() -> Result<Device, KernelError>,
        work: impl Fn(Value, &Communicator) -> Option<HostState>,
    ) {
        let mut simulation: Option<Simulation> = None;
        let mut made: Option<Snapshot> = None;
        let mut kept: Option<HostState> = None;
        let mut ready = None;
        loop {
            let command =
                serde_json::from_slice(&self.communicator.next_order()).expect("a command of the same program");
            match command {
                Command::Prepare => {
                    let own = device();
                    let hardware = own.as_ref().map(Hardware::of).map_err(ToString::to_string);
                    let all_alike = compare(&self.communicator, hardware).is_ok();
                    ready = own.ok().filter(|_| all_alike);
                }
                Command::Start { header, root, periodic, whole, parameters } => {
                    let none = || HostState::zeros(Octree::share(root, periodic, Vec::new()));
                    let state = kept.take().filter(|_| !whole).unwrap_or_else(none);
                    let snapshot = Snapshot { header: *header, state };
                    let device = ready.clone().expect("a device made ready");
                    let ranks = Ranks { leads: None, ..self.ranks() };
                    simulation = self.reported(Simulation::start_on(device, ranks, &snapshot, *parameters));
                }
                Command::Call(call) => {
                    let simulation = simulation.as_mut().expect("a simulation that was started");
                    if let Some(snapshot) = self.reported(simulation.dispatch(call)).flatten() {
                        made = Some(snapshot);
                    }
                }
                Command::Write => {
                    let simulation = simulation.as_ref().expect("a simulation that was started");
                    let snapshot = made.take().expect("a snapshot that was made");
                    // the first rank alone knows the path
                    self.reported(simulation.write(&snapshot, Path::new("")));
                }
                Command::Task(task) => kept = work(task, &self.communicator).or(kept),
                Command::End => (simulation, made) = (None, None),
                Command::Shutdown => break,
            }
        }
    }

    /// The result of a command. All ranks fail together and the first one reports that; an error of this rank alone, which
    /// only a bug can cause, goes to the log.
    fn reported<R>(&self, result: Result<R, SimError>) -> Option<R> {
        if let Err(error) = &result
            && !matches!(error, SimError::OnRank { .. })
        {
            tracing::debug!("rank {}: {error}", self.communicator.rank());
        }
        result.ok()
    }

    /// There is nothing more to do.
    pub fn shutdown(&self) {
        if self.communicator.size() > 1 {
            let _held = broadcast(&self.communicator, &self.command_lock, &Command::Shutdown);
        }
    }

    /// What ends all ranks at once with an exit code, from any thread; nothing for a rank without others. Whoever has it
    /// does not keep MPI from ending in good order with the crew.
    pub fn aborter(&self) -> impl Fn(u8) + Send + 'static {
        let communicator = Arc::downgrade(&self.communicator);
        move |code| {
            if let Some(ranks) = communicator.upgrade().filter(|ranks| ranks.size() > 1) {
                ranks.abort(i32::from(code));
            }
        }
    }
}

/// Ends all ranks where this one panics: the others are in the middle of what it does not go on with.
struct AbortOnPanic<'c>(&'c Communicator);

impl Drop for AbortOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort(PANICKED);
        }
    }
}

/// What a rank computes with.
#[derive(Debug, Serialize, Deserialize)]
struct Hardware {
    class: String,
    /// Node, and address on its bus.
    gpu: Option<(String, String)>,
}

impl Hardware {
    fn of(device: &Device) -> Self {
        Self { class: device.class(), gpu: device.bus().map(|bus| (node(), bus)) }
    }
}

/// Looks at whether all ranks have devices of one class, and at how many have one GPU at the most: collective.
fn compare(communicator: &Communicator, own: Result<Hardware, String>) -> Result<usize, SimError> {
    let all: Vec<Result<Hardware, String>> = communicator.gather_all_of(&own);
    let mut first = None;
    for (rank, said) in all.iter().enumerate() {
        let message = match said {
            Err(message) => message.clone(),
            Ok(Hardware { class, .. }) if class != *first.get_or_insert(class) => {
                format!(
                    "its device is {class}, the first rank's is another, and their results differ; use devices \
                         of one kind"
                )
            }
            Ok(_) => continue,
        };
        return Err(SimError::OnRank { rank, kind: ErrorKind::Device, message });
    }
    Ok(sharers(all.iter().flatten()))
}

/// How many ranks have one GPU at the most.
fn sharers<'a>(all: impl Iterator<Item = &'a Hardware>) -> usize {
    let mut ranks = HashMap::new();
    all.filter_map(|hardware| hardware.gpu.as_ref()).for_each(|gpu| *ranks.entry(gpu).or_insert(0) += 1);
    ranks.into_values().max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_shared_by_ranks_of_one_node() {
        let gpu = |node: &str, bus: &str| Hardware { class: "a GPU".into(), gpu: Some((node.into(), bus.into())) };
        let cpu = || Hardware { class: "a CPU".into(), gpu: None };
        assert_eq!(sharers([gpu("a", "1"), gpu("b", "1"), gpu("a", "2")].iter()), 1);
        assert_eq!(sharers([gpu("a", "1"), gpu("b", "1"), gpu("a", "1")].iter()), 2);
        assert_eq!(sharers([cpu(), cpu()].iter()), 1);
    }
}

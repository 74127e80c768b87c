//! One rank decides, the others follow: what is asked of its simulation is asked of theirs.

use super::pace::Pace;
use super::{Communicator, Ranks, node};
use crate::error::{ErrorKind, SimError};
use crate::host_state::HostState;
use crate::octree::Octree;
use crate::parameters::RunParameters;
use crate::simulation::Simulation;
use crate::snapshot::{Snapshot, SnapshotHeader};
use crate::steering::Steering;
use comove_kernels::{Device, KernelError};
use parking_lot::{Mutex, MutexGuard};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// What a program exits with that panics.
pub(crate) const PANICKED: i32 = 101;

/// What the first rank tells the others to do with it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make the device ready.
    Prepare,
    /// [`Simulation::start`], from groups that the first rank has as a whole, or else from those that each rank has kept of
    /// a task.
    Start {
        header: Box<SnapshotHeader>,
        root: [u32; 3],
        periodic: [bool; 3],
        whole: bool,
        parameters: Box<RunParameters>,
    },
    /// [`Simulation::next_stop`].
    Next,
    /// [`Simulation::step`].
    Step,
    /// [`Simulation::steer`].
    Steer(Steering),
    /// [`Simulation::output_at`], by the bits of the time.
    Output(u64),
    /// [`Simulation::checkpoint`].
    Checkpoint,
    /// [`Simulation::write`] of the last output or checkpoint.
    Write,
    /// [`Simulation::group_hashes`].
    GroupHashes,
    /// [`Simulation::state_hash`].
    StateHash,
    /// The simulation is dropped.
    End,
    /// Work that is no simulation: [`Crew::together`].
    Task(Value),
    /// There is nothing more to do.
    Leave,
}

/// The ranks of a program as one of them sees them: the first decides, the others follow.
#[derive(Clone)]
pub struct Crew {
    communicator: Arc<Communicator>,
    turn: Turn,
}

/// Whose turn it is, among the threads of the first rank, to say what all ranks do next, until they have done it.
pub(crate) type Turn = Arc<Mutex<()>>;

impl Crew {
    /// Of the ranks of a communicator.
    pub fn of(communicator: Communicator) -> Self {
        Self { communicator: Arc::new(communicator), turn: Turn::default() }
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
        let leads = (self.communicator.size() > 1).then(|| Arc::clone(&self.turn));
        Ranks { communicator: Arc::clone(&self.communicator), scattered: None, pace: Pace::default(), leads }
    }

    /// Does work that all ranks share and that is no simulation; it may be collective. The others are told what it is, for
    /// the function that they gave to [`Crew::follow`]. One thread of the first rank at a time: what others ask of a
    /// simulation meanwhile waits.
    ///
    /// * `task`: says to the others what is done. One with a NaN cannot be told: its work is the first rank's alone, as if it
    ///   had no others, which finds out what is wrong.
    pub fn together<T, R>(&self, task: &T, work: impl FnOnce(&Communicator) -> R) -> R
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
        let _turn = tell(&self.communicator, &self.turn, &Order::Task(task));
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
        let _turn = tell(&self.communicator, &self.turn, &Order::Prepare);
        compare(&self.communicator, own.map(Hardware::of))
    }

    /// Does what the first rank says, until it says that there is nothing more to do.
    ///
    /// * `device`: makes this rank's device
    /// * `work`: does this rank's part of what [`Crew::together`] was given; the groups that it gives are kept for the next
    ///   start of a simulation, of which the first rank has no more than its own part either
    pub fn follow(
        &self,
        device: impl Fn() -> Result<Device, KernelError>,
        work: impl Fn(Value, &Communicator) -> Option<HostState>,
    ) {
        let mut simulation = None;
        let mut made = None;
        let mut kept: Option<HostState> = None;
        let mut ready = None;
        loop {
            let order = serde_json::from_slice(&self.communicator.next_order()).expect("an order of the same program");
            // what goes wrong goes wrong on the first rank too, which says so
            match order {
                Order::Prepare => {
                    let own = device();
                    let hardware = own.as_ref().map(Hardware::of).map_err(ToString::to_string);
                    let all_alike = compare(&self.communicator, hardware).is_ok();
                    ready = own.ok().filter(|_| all_alike);
                }
                Order::Start { header, root, periodic, whole, parameters } => {
                    let none = || HostState::zeros(Octree::share(root, periodic, Vec::new()));
                    let state = kept.take().filter(|_| !whole).unwrap_or_else(none);
                    let snapshot = Snapshot { header: *header, state };
                    let device = ready.clone().expect("a device made ready");
                    let ranks = Ranks { leads: None, ..self.ranks() };
                    simulation = Simulation::start_on(device, ranks, &snapshot, *parameters).ok();
                }
                Order::Task(task) => kept = work(task, &self.communicator).or(kept),
                Order::End => (simulation, made) = (None, None),
                Order::Leave => break,
                order => obey(simulation.as_mut().expect("a simulation that was started"), order, &mut made),
            }
        }
    }

    /// There is nothing more to do.
    pub fn dismiss(&self) {
        if self.communicator.size() > 1 {
            let _turn = tell(&self.communicator, &self.turn, &Order::Leave);
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

/// Tells the other ranks what is done next, once what another thread has told them is done; it is to be done while the
/// guard is held.
pub(crate) fn tell<'t>(communicator: &Communicator, turn: &'t Turn, order: &Order) -> MutexGuard<'t, ()> {
    let held = turn.lock();
    communicator.order(&serde_json::to_vec(order).expect("numbers and names"));
    held
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

/// Does what is asked of a simulation.
///
/// * `made`: the own groups of its last output or checkpoint, until it is written
fn obey(simulation: &mut Simulation, order: Order, made: &mut Option<Snapshot>) {
    match order {
        Order::Next => _ = simulation.next_stop(),
        Order::Step => _ = simulation.step(),
        Order::Steer(steering) => _ = simulation.steer(steering),
        Order::Output(bits) => *made = simulation.output_at(f64::from_bits(bits)).ok(),
        Order::Checkpoint => *made = simulation.checkpoint().ok(),
        Order::Write => {
            let snapshot = made.take().expect("a snapshot that was made");
            // the path is the first rank's matter
            _ = simulation.write(&snapshot, Path::new(""));
        }
        Order::GroupHashes => _ = simulation.group_hashes(),
        Order::StateHash => _ = simulation.state_hash(),
        Order::Prepare | Order::Start { .. } | Order::Task(_) | Order::End | Order::Leave => {
            unreachable!("{order:?} is no request")
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
                format!("its device is {class}, the first rank's is another: what a run computes would depend on them")
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

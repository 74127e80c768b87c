//! One rank decides, the others follow: what is asked of its simulation is asked of theirs.

use super::{Communicator, Ranks};
use crate::error::SimError;
use crate::host_state::HostState;
use crate::octree::Octree;
use crate::parameters::RunParameters;
use crate::simulation::Simulation;
use crate::snapshot::{Snapshot, SnapshotHeader};
use crate::steering::Steering;
use comove_kernels::{Device, KernelError};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// What the first rank tells the others to do with it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Make the device ready.
    Prepare,
    /// [`Simulation::start`].
    Start { header: Box<SnapshotHeader>, root: [u32; 3], periodic: [bool; 3], parameters: Box<RunParameters> },
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
    /// There is nothing more to do.
    Leave,
}

/// The ranks of a program as one of them sees them: the first decides, the others follow.
#[derive(Clone)]
pub struct Crew(Arc<Communicator>);

impl Crew {
    /// Of the ranks of a communicator.
    pub fn of(communicator: Communicator) -> Self {
        Self(Arc::new(communicator))
    }

    /// A rank without others.
    pub fn alone() -> Self {
        Self::of(Communicator::alone())
    }

    /// Between them.
    pub fn communicator(&self) -> &Communicator {
        &self.0
    }

    /// For a simulation that all ranks share and the first one leads.
    pub fn ranks(&self) -> Ranks {
        Ranks { communicator: Arc::clone(&self.0), scattered: None, leads: self.0.size() > 1 }
    }

    /// Has every rank make its device ready; this is the first one's, or why it has none.
    ///
    /// # Errors
    /// [`SimError::OnRank`] where a rank has none, or one that computes other bits.
    pub fn prepare(&self, own: Result<Device, String>) -> Result<(), SimError> {
        if self.0.size() == 1 {
            return Ok(());
        }
        self.tell(&Order::Prepare);
        compare(&self.0, own.map(|device| device.class()))
    }

    /// Does what the first rank says, until it says that there is nothing more to do.
    ///
    /// * `device`: makes this rank's device
    pub fn follow(&self, device: impl Fn() -> Result<Device, KernelError>) {
        let mut simulation = None;
        let mut made = None;
        let mut ready = None;
        loop {
            let order = serde_json::from_slice(&self.0.next_order()).expect("an order of the same program");
            // what goes wrong goes wrong on the first rank too, which says so
            match order {
                Order::Prepare => {
                    let own = device();
                    let class = own.as_ref().map(Device::class).map_err(ToString::to_string);
                    let all_alike = compare(&self.0, class).is_ok();
                    ready = own.ok().filter(|_| all_alike);
                }
                Order::Start { header, root, periodic, parameters } => {
                    let state = HostState::zeros(Octree::share(root, periodic, Vec::new()));
                    let snapshot = Snapshot { header: *header, state };
                    let device = ready.clone().expect("a device made ready");
                    let ranks = Ranks { leads: false, ..self.ranks() };
                    simulation = Simulation::start_on(device, ranks, &snapshot, *parameters).ok();
                }
                Order::End => (simulation, made) = (None, None),
                Order::Leave => break,
                order => obey(simulation.as_mut().expect("a simulation that was started"), order, &mut made),
            }
        }
    }

    /// There is nothing more to do.
    pub fn dismiss(&self) {
        if self.0.size() > 1 {
            self.tell(&Order::Leave);
        }
    }

    /// What ends all ranks at once with an exit code, from any thread; nothing for a rank without others. Whoever has it
    /// does not keep MPI from ending in good order with the crew.
    pub fn aborter(&self) -> impl Fn(u8) + Send + 'static {
        let communicator = Arc::downgrade(&self.0);
        move |code| {
            if let Some(ranks) = communicator.upgrade().filter(|ranks| ranks.size() > 1) {
                ranks.abort(i32::from(code));
            }
        }
    }

    fn tell(&self, order: &Order) {
        tell(&self.0, order);
    }
}

/// Tells the other ranks what is done next.
pub(crate) fn tell(communicator: &Communicator, order: &Order) {
    communicator.order(&serde_json::to_vec(order).expect("numbers and names"));
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
        Order::Prepare | Order::Start { .. } | Order::End | Order::Leave => unreachable!("{order:?} is no request"),
    }
}

/// Whether all ranks have devices of one class: collective.
fn compare(communicator: &Communicator, own: Result<String, String>) -> Result<(), SimError> {
    let all = communicator.gather_all_of(&own);
    for (rank, said) in all.iter().enumerate() {
        let message = match said {
            Err(message) => message.clone(),
            Ok(class) if Ok(class) != all[0].as_ref() => {
                format!("its device is {class}, the first rank's is another: what a run computes would depend on them")
            }
            Ok(_) => continue,
        };
        return Err(SimError::OnRank { rank, lacks_room: false, message });
    }
    Ok(())
}

//! Ranks that compute one run together, and the messages between them.
//!
//! | module | what it holds |
//! |---|---|
//! | `communicator` | messages and reductions, by threads of a process or MPI |
//! | `collective_result` | an error of one rank becomes that of all |
//! | `hilbert`, `owners`, `load_balancer` | who owns a group: pieces of a curve through each level, cut by measured cost |
//! | `remote_groups`, `share` | what a rank knows of others' groups; its share of the octree, with ghosts |
//! | `link_lists`, `links`, `ghost_exchange` | who sends what to whom, derived on both sides; the messages |
//! | `deposits` | mass that particles leave in other ranks' groups |
//! | `coarse_links` | all groups of a level, for the coarse correction of its potential |
//! | `exchange` | all of that for one rank of a run |
//! | `keys` | lists of keys to other ranks |
//! | `exact_sum` | sums whose bits do not depend on the order of their terms |
//! | `root` | the root's Poisson solve by all ranks |
//!
//! Every rank does the same operations on the same levels in the same order, each for the groups that it owns, and reads
//! ghosts that are exact copies. What decides how a run goes on is reduced first, in an order that does not matter. So the
//! bits do not depend on who owns what.

#[cfg(test)]
mod checks;
pub(crate) mod coarse_links;
pub(crate) mod collective_result;
pub(crate) mod communicator;
pub(crate) mod deposits;
pub(crate) mod exact_sum;
pub(crate) mod exchange;
pub(crate) mod ghost_exchange;
pub(crate) mod hilbert;
pub(crate) mod keys;
pub(crate) mod link_lists;
pub(crate) mod links;
pub(crate) mod load_balancer;
#[cfg(feature = "mpi")]
mod mpi;
pub(crate) mod owners;
pub(crate) mod remote_groups;
pub(crate) mod root;
pub(crate) mod share;
mod threads;

pub use collective_result::{CollectiveError, collective_result};
pub use communicator::{Communicator, FIRST};
pub use exchange::Exchange;
pub use ghost_exchange::GhostExchange;
pub use links::LevelLinks;
pub use load_balancer::LoadBalancer;
#[cfg(feature = "mpi")]
pub use mpi::World;
pub use owners::Owners;
use parking_lot::Mutex;
pub use remote_groups::{RemoteGroup, RemoteGroups};
pub use share::Share;
use std::sync::Arc;
pub use threads::ThreadRank;

/// Held by the thread of the first rank that has sent the others a command, until it is done.
pub(crate) type CommandLock = Arc<Mutex<()>>;

/// The ranks that share a run, as one of them sees it.
pub struct Ranks {
    /// Between them.
    pub communicator: Arc<Communicator>,
    /// Owners at random, by this number: for tests.
    pub scattered: Option<u64>,
    /// How fast they are, as far as that is known to begin with; all ranks say the same.
    pub load_balancer: LoadBalancer,
    /// Of a rank that sends the others commands, instead of their calling the same methods of themselves.
    pub(crate) leads: Option<CommandLock>,
}

impl Ranks {
    /// One that has no others.
    pub fn alone() -> Self {
        Self::of(Communicator::alone())
    }

    /// That share the octree along Hilbert's curve and all call the same methods.
    pub fn of(communicator: Communicator) -> Self {
        Self {
            communicator: Arc::new(communicator),
            scattered: None,
            load_balancer: LoadBalancer::default(),
            leads: None,
        }
    }

    /// That share it at random, by a number: for tests.
    #[must_use]
    pub fn scattered(self, seed: u64) -> Self {
        Self { scattered: Some(seed), ..self }
    }

    /// That are as fast as this says until they have measured it: for tests.
    #[must_use]
    pub fn with_load_balancer(self, load_balancer: LoadBalancer) -> Self {
        Self { load_balancer, ..self }
    }
}

/// The machine that this process runs on, as it was last booted: its name alone may be that of others, and of the system that
/// it shares with others it has a name of its own as a container.
pub fn node() -> String {
    let of_kernel = |file: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap_or_default();
    [of_kernel("hostname"), of_kernel("random/boot_id")].map(|text| text.trim().to_owned()).join(" ")
}

/// What each of so many ranks, threads of this process, comes to, in their order: for tests.
///
/// # Panics
/// If one of them does.
pub fn on_ranks<R: Send>(ranks: usize, work: impl Fn(Communicator) -> R + Sync) -> Vec<R> {
    let work = &work;
    std::thread::scope(|scope| {
        let start = |communicator| scope.spawn(move || work(communicator));
        let threads: Vec<_> = Communicator::threads(ranks).into_iter().map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank")).collect()
    })
}

//! Ranks that compute one run together, and the messages between them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`communicator`] | what ranks say to each other, whatever carries it: threads of a process, or MPI |
//! | [`crew`] | the first rank decides, the others follow |
//! | [`hilbert`], [`owners`] | who owns a group: pieces of a curve through each level |
//! | [`pace`] | how fast ranks are, as measured: how many groups each is to have |
//! | [`known`], [`share`] | what a rank knows of others' groups; its share of the octree, with ghosts |
//! | [`reads`], [`links`] | what a group reads of others; who sends what to whom, derived on both sides |
//! | [`exchange`] | ghosts refreshed, slots sent, and the room for that |
//! | [`wanted`], `adopt` | the tree that flags ask for, and the way to it: balanced, groups moved |
//! | [`root`] | the root's Poisson solve by all ranks |
//! | [`blocks`] | a whole tree's groups, block by block between the first rank and their owners: files |
//! | [`scatter`] | what a run starts from dealt out |
//! | [`agree`] | what goes wrong on one rank goes wrong on all |
//!
//! Every rank does the same operations on the same levels in the same order, each for the groups that it owns, and reads
//! ghosts that are exact copies. What decides how a run goes on is reduced first, in an order that does not matter. So the
//! bits do not depend on who owns what.

mod adopt;
pub mod agree;
pub mod blocks;
#[cfg(test)]
mod checks;
pub mod communicator;
pub mod crew;
pub mod exchange;
pub mod hilbert;
pub mod known;
pub mod links;
#[cfg(feature = "mpi")]
mod mpi;
pub mod owners;
pub mod pace;
pub mod reads;
pub mod root;
pub mod scatter;
pub mod share;
mod threads;
pub mod wanted;

pub use communicator::Communicator;
pub use crew::Crew;
#[cfg(feature = "mpi")]
pub use mpi::World;
use pace::Pace;
use std::sync::Arc;
pub use threads::ThreadRank;

/// The ranks that share a run, as one of them sees it.
pub struct Ranks {
    /// Between them.
    pub communicator: Arc<Communicator>,
    /// Owners at random, by this number: for tests.
    pub scattered: Option<u64>,
    /// How fast they are, as far as that is known to begin with; all ranks say the same.
    pub pace: Pace,
    /// Of a rank that tells the others what to do ([`Crew::follow`]), instead of their doing the same of themselves.
    pub(crate) leads: Option<crew::Turn>,
}

impl Ranks {
    /// One that has no others.
    pub fn alone() -> Self {
        Self::of(Communicator::alone())
    }

    /// That share the octree along Hilbert's curve and all call the same methods.
    pub fn of(communicator: Communicator) -> Self {
        Self { communicator: Arc::new(communicator), scattered: None, pace: Pace::default(), leads: None }
    }

    /// That share it at random, by a number: for tests.
    #[must_use]
    pub fn scattered(self, seed: u64) -> Self {
        Self { scattered: Some(seed), ..self }
    }

    /// That are as fast as this says until they have measured it: for tests.
    #[must_use]
    pub fn at_pace(self, pace: Pace) -> Self {
        Self { pace, ..self }
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

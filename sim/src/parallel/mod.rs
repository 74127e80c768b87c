//! Ranks that compute one run together, and the messages between them.

mod adopt;
pub mod agree;
#[cfg(test)]
mod checks;
pub mod communicator;
pub mod exchange;
pub mod hilbert;
pub mod known;
pub mod links;
#[cfg(feature = "mpi")]
mod mpi;
pub mod owners;
pub mod reads;
pub mod root;
pub mod scatter;
pub mod share;
pub mod tables;
mod threads;
pub mod wanted;

pub use communicator::Communicator;
#[cfg(feature = "mpi")]
pub use mpi::World;
pub use threads::ThreadRank;

/// The ranks that share a run, as one of them sees it.
pub struct Ranks {
    /// Between them.
    pub communicator: Communicator,
    /// Owners at random, by this number: for tests.
    pub scattered: Option<u64>,
}

impl Ranks {
    /// One that has no others.
    pub fn alone() -> Self {
        Self::of(Communicator::alone())
    }

    /// That share the octree along Hilbert's curve.
    pub fn of(communicator: Communicator) -> Self {
        Self { communicator, scattered: None }
    }
}

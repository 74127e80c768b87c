//! Ranks that compute one run together, and the messages between them.

#[cfg(test)]
mod checks;
mod communicator;
#[cfg(feature = "mpi")]
mod mpi;
mod threads;

pub use communicator::Communicator;
#[cfg(feature = "mpi")]
pub use mpi::World;
pub use threads::ThreadRank;

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

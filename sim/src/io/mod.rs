//! Files: snapshots, and what makes them complete or absent, written and read by all ranks.

pub(crate) mod blocks;
pub mod complete_file;
pub mod filters;
pub mod shared_file;
pub mod snapshot;

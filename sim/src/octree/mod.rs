//! The octree: one sorted list of keys per level, no pointers.

pub mod key;
pub mod neighbours;
pub mod tree;

pub use key::Key;
pub use tree::Octree;

//! The octree: one sorted list of keys per level, no pointers.

pub mod key;
pub mod nesting;
pub mod tree;

pub use key::Key;
pub use nesting::nest;
pub use tree::Octree;

//! The octree: one sorted list of keys per level, no pointers.

pub mod flux_planes;
pub mod key;
pub mod neighbours;
pub mod nesting;
pub mod sites;
pub mod tree;

pub use key::Key;
pub use nesting::{clip, nest, nest_above};
pub use tree::{CLOSED, Octree, PERIODIC};

//! The octree: one sorted list of keys per level, no pointers; and the tables that kernels read of it.

pub mod device_mesh;
pub mod earlier_groups;
pub mod flux_planes;
pub mod host_state;
pub mod key;
pub mod neighbours;
pub mod nesting;
pub mod sites;
pub mod stencil;
pub mod tree;

pub use device_mesh::Mesh;
pub use host_state::HostState;
pub use key::{CellPlace, Key};
pub use nesting::{clip, nest, nest_above};
pub use tree::{CLOSED, Octree, PERIODIC};

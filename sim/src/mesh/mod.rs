//! The octree: one sorted list of keys per level, no pointers; and the tables that kernels read of it.

pub(crate) mod device_mesh;
pub(crate) mod earlier_groups;
pub(crate) mod flux_planes;
pub(crate) mod host_state;
pub(crate) mod key;
pub(crate) mod morton_map;
pub(crate) mod neighbours;
pub(crate) mod nesting;
pub(crate) mod sites;
pub(crate) mod stencil;
pub(crate) mod tree;

pub use device_mesh::Mesh;
pub use earlier_groups::{EarlierGroups, read_slots};
pub use flux_planes::FluxTables;
pub use host_state::HostState;
pub use key::{CellPlace, Key};
pub use neighbours::{build_tables, rebuilt_tables, root_slots};
pub use nesting::{clip, nest, nest_above};
pub use sites::{LevelGroups, Site, Sites};
pub(crate) use tree::OCTANT_OF_ROW;
pub use tree::{CLOSED, LeafPatch, Octree, PERIODIC};

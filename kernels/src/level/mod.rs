//! A level of groups: which slots are neighbours, a group with its ghost zones, the group at a place, the boundary of the
//! domain, and what a sweep reports of a group.

#[cfg(feature = "cuda")]
pub(crate) mod cuda;
pub mod face_boundary;
pub mod ghosts;
pub(crate) mod group_locator;
pub mod level_topology;
pub(crate) mod report;
pub mod troubled_cells;

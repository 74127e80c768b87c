//! Initial conditions through the whole of the octree, and problems against their solutions.

mod common;
mod converging;
mod converging_flow;
mod doctor;
mod particle_forces;
mod problems;
mod ranks;
mod way_of_the_data;

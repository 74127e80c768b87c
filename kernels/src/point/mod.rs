//! Pointwise physics, by value: no loops over cells, no indices.

pub mod dual_energy;
pub mod elementary;
pub mod eos;
pub mod hancock;
pub mod hll;
pub mod hllc;
pub mod particle;
pub mod passive_scalar;
pub mod power;
pub mod ppm;
pub mod primitive;
pub mod relaxation;
pub mod relaxing_tvd;
pub mod slopes;
pub mod source;
pub mod symmetric_sum;

//! The operations, one folder each: `mod.rs` checks shapes and dispatches, `cpu.rs` computes, `cuda.rs` launches the `.cu`
//! beside it.

pub mod coarse_correction;
pub mod density_range;
pub mod face_relaxation;
pub mod flag;
pub mod gravity_kick;
pub mod group_poisson;
pub mod hydro_sweep;
pub mod mass_sheet;
pub mod particles;
pub mod poisson_source;
pub mod potential_energy;
pub mod potential_ghosts;
pub mod prolong;
pub mod reflux;
pub mod restrict;
pub mod root_poisson;
pub mod scalars;
pub mod slots;
pub mod source;
pub mod state_hash;
mod synchronised_row;
pub mod timestep;
pub mod totals;

//! From a snapshot to tables, pictures and a report.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cells`], [`sphere`], [`cell_fields`] | the leaf cells, those around a point, and what can be said of one |
//! | [`covering_grid`] | a field on a uniform grid of one level |
//! | [`refinement_ratio`], [`density_pdf`] | volume and cells by level, volume and mass by density |
//! | [`halo_finder`], [`halo_profile`] | spherical-overdensity halos and their radial profiles |
//! | [`power_spectrum`] | P(k) of the density |
//! | [`table`] | [`Record`]: every result as CSV and JSON |
//!
//! Input is a [`comove_sim::Snapshot`], never a run. Results are plain values with units in their names; their bits
//! depend on the snapshot and the options, never on the number of threads. Nothing here prints or reads a recipe.
//! In plain coordinates, where code units have no fixed size, the names' units stand for code units.

pub mod cell_fields;
pub mod cells;
pub mod covering_grid;
pub mod density_pdf;
pub mod error;
#[cfg(test)]
mod fixture;
mod fourier;
pub mod halo_finder;
pub mod halo_profile;
pub mod power_spectrum;
pub mod refinement_ratio;
pub mod sphere;
pub mod table;

pub use error::AnalysisError;
pub use table::Record;

//! From a snapshot to tables, pictures and a report.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cells`], [`sphere`], [`cell_fields`] | the leaf cells, those around a point, and what can be said of one |
//! | [`part`] | a snapshot as one of several ranks has it |
//! | [`covering_grid`] | a field on a uniform grid of one level |
//! | [`region`] | statistics and histograms of a field over a part of the box |
//! | [`refinement_ratio`], [`density_pdf`] | volume and cells by level, volume and mass by density |
//! | [`field_difference`] | two snapshots cell by cell |
//! | [`comparison`] | a snapshot against the solution of its problem |
//! | [`halos`] | halos of either finder: catalogues, spherical masses, profiles, mass functions |
//! | [`particles`], [`lagrangian`] | the dark-matter particles of a part of the box; the region that they come from |
//! | [`matter`] | gas and dark matter as one fluid |
//! | [`power_spectrum`] | P(k) of the density |
//! | [`map`] | slices and projections, with the patches |
//! | [`figure`] | figures of results: SVG, PNG, PDF |
//! | [`report`] | a campaign as one HTML page |
//! | [`table`], [`columns`] | [`Record`]: every result as CSV and JSON; units and descriptions of columns |
//!
//! Input is a [`comove_sim::Snapshot`], never a run, or a [`part::Part`] of one on each of several ranks: functions that
//! end in `_by` take those, are collective, and have their result on the first rank. Results are plain values with units in
//! their names; their bits depend on the snapshot and the options, never on the number of threads or ranks. Nothing here
//! prints or reads a recipe.
//!
//! In non-comoving coordinates, where code units have no fixed size, the names' units stand for code units.

pub mod cell_fields;
pub mod cells;
pub mod columns;
pub mod comparison;
pub mod covering_grid;
pub mod density_pdf;
pub mod error;
pub mod field_difference;
pub mod figure;
#[cfg(test)]
mod fixture;
mod fourier;
pub mod halos;
pub mod lagrangian;
pub mod map;
pub mod matter;
mod messages;
pub mod part;
mod particle_grid;
pub mod particles;
pub mod placement;
pub mod power_spectrum;
#[cfg(test)]
mod ranks;
pub mod refinement_ratio;
pub mod region;
pub mod report;
pub mod sphere;
mod spheres;
pub mod table;

pub use error::AnalysisError;
pub use figure::Figure;
pub use part::Part;
pub use report::Report;
pub use table::{Record, Table};

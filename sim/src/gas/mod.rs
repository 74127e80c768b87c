//! The gas of a run: its fields, and past states of levels for finer ones to interpolate between.

pub mod fields;
pub mod level_history;

//! The equation of one level.

use crate::gravity::hierarchy::Hierarchy;
use comove_kernels::{Device, PoissonSource, TimedPotential};

/// ∇²field = source on one level.
pub(super) struct LevelProblem<'a, T> {
    pub(super) device: &'a Device,
    pub(super) hierarchy: &'a Hierarchy<'a>,
    pub(super) level: usize,
    /// The coarser level's potential where the field holds another.
    pub(super) coarse: Option<&'a TimedPotential<'a, T>>,
    pub(super) source: PoissonSource<'a, T>,
}

//! Sources of the gas's internal energy: what happens in a cell by itself. A step applies each to a level, from [`Source::of`] on; its
//! energy has a row in the ledger, and what it changes most limits the next Δt.

pub mod heating;

use crate::clock::Clock;
use crate::parameters::RunParameters;
use comove_kernels::source::{SourceReport, apply_source};
use comove_kernels::{Buffer, Deferred, Device, Eos, LevelTopology, Real};
use heating::Heating;
use serde::{Deserialize, Serialize};

/// The part of a cell's internal energy that a source may change in a step of its level.
const LARGEST_CHANGE: f64 = 0.3;

/// A source of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Source {
    /// Compton cooling and a constant heating rate.
    Heating(Heating),
}

/// When a source acts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    /// Of the run.
    pub(crate) clock: &'a Clock,
    /// Scale factor in the middle.
    pub(crate) a: f64,
    /// Δt, code time.
    pub(crate) dt: f64,
}

impl Source {
    /// The sources of a run, in the order in which they act.
    pub(crate) fn of(parameters: &RunParameters) -> impl Iterator<Item = Self> + use<> {
        parameters.heating.map(Self::Heating).into_iter()
    }

    /// Its option in a recipe, and its row in the ledger.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Heating(_) => "heating",
        }
    }

    /// Acts on the gas of a level.
    pub(crate) fn apply<T: Real>(
        self,
        device: &Device,
        tables: &LevelTopology,
        fluid: &mut Buffer<T>,
        eos: &Eos<T>,
        span: Span<'_>,
    ) -> Deferred<SourceReport> {
        match self {
            Self::Heating(heating) => apply_source(device, tables, fluid, &heating.over(span), eos),
        }
    }
}

/// What limits the step after one in which sources have acted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SourceLimit {
    /// Δt of the root step, code time.
    pub(crate) time: f64,
    /// The source.
    pub(crate) source: String,
    /// Level of the cell.
    pub(crate) level: u8,
    /// The cell on the level's lattice.
    pub(crate) cell: [usize; 3],
}

/// The Δt in which a source changes no cell by more than it may.
///
/// * `part`: that it has changed in `dt`
pub(crate) fn time_limit(dt: f64, part: f64) -> f64 {
    LARGEST_CHANGE * dt / part
}

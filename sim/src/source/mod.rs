//! Pointwise sources of internal energy, one file each. Every step applies them level by level; their energy is in the ledger, and
//! the largest relative change limits the next Δt.

pub mod heating;

use crate::clock::Clock;
use comove_kernels::source::{SourceReport, apply_source};
use comove_kernels::{Buffer, Deferred, Device, Eos, LevelTopology, Real};
use heating::Heating;
use serde::{Deserialize, Serialize};

/// The relative change of a cell's internal energy that a step of its level aims at.
const LARGEST_CHANGE: f64 = 0.3;

/// A source of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Compton cooling and a constant heating rate.
    Heating(Heating),
}

/// Clock, midpoint and length of a source's action.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    /// The clock of the run.
    pub(crate) clock: &'a Clock,
    /// Scale factor in the middle.
    pub(crate) a: f64,
    /// Δt, code time.
    pub(crate) dt: f64,
}

impl Source {
    /// The option in a recipe, and the key in the ledger.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Heating(_) => "heating",
        }
    }

    /// Applies the source to the gas of a level.
    pub(crate) fn apply<T: Real>(
        self,
        device: &Device,
        tables: &LevelTopology,
        fluid: &mut Buffer<T>,
        eos: &Eos<T>,
        Span { clock, a, dt }: Span<'_>,
    ) -> Deferred<SourceReport> {
        match self {
            Self::Heating(heating) => apply_source(device, tables, fluid, &heating.over(clock, a, dt), eos),
        }
    }
}

/// The limit of the next Δt from a step's sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SourceLimit {
    /// Δt of the root step, code time.
    pub(crate) time: f64,
    /// The source. The limit holds as long as the run has it.
    pub(crate) source: Source,
    /// Level of the cell.
    pub(crate) level: u8,
    /// The cell on the level's lattice.
    pub(crate) cell: [usize; 3],
}

/// Δt for a relative change of [`LARGEST_CHANGE`].
///
/// * `relative_change`: over `dt`
pub(crate) fn time_limit(dt: f64, relative_change: f64) -> f64 {
    LARGEST_CHANGE * dt / relative_change
}

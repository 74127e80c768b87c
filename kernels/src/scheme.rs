//! The hydrodynamic schemes that a sweep knows.

use serde::{Deserialize, Serialize};

/// How a sweep takes the gas from one time to the next along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// Parabolic reconstruction (PPM), Hancock's predictor and HLLC fluxes: [`mod@crate::point::ppm`],
    /// [`mod@crate::point::hancock`], [`mod@crate::point::hllc`].
    #[default]
    Ppm,
    /// The same with piecewise linear reconstruction.
    Plm,
    /// Relaxing TVD with the van Leer limiter, second order (paper, section 2.2): [`mod@crate::point::relaxing_tvd`].
    RelaxingTvd,
    /// First order, with HLL fluxes: [`mod@crate::point::hll`]. For tests.
    Hll,
}

impl Scheme {
    /// The scheme of records that name none: once there was no other.
    pub const fn unnamed() -> Self {
        Self::RelaxingTvd
    }

    /// Whether records leave it out.
    pub fn is_unnamed(&self) -> bool {
        *self == Self::unnamed()
    }

    /// The Courant number of runs that name none.
    pub const fn courant(self) -> f64 {
        match self {
            Self::RelaxingTvd => 0.5,
            Self::Ppm | Self::Plm | Self::Hll => 0.8,
        }
    }

    /// Ghost zones that a sweep reads on each side.
    pub const fn ghost_zones(self) -> usize {
        match self {
            Self::Ppm | Self::RelaxingTvd => 3,
            Self::Plm => 2,
            Self::Hll => 1,
        }
    }

    /// Largest Courant number of a sweep at which it was found stable (docs/notes/hydrodynamics.md, *Accuracy*).
    pub const fn max_courant(self) -> f64 {
        match self {
            Self::RelaxingTvd => 0.8,
            Self::Ppm | Self::Plm | Self::Hll => 1.0,
        }
    }
}

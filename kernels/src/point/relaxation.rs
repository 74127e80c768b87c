//! Internal energy that relaxes to an equilibrium: Compton cooling and a constant heating rate (docs/equations.md, *Heating*).

use crate::point::source::PointSource;
use crate::real::Real;

/// Relaxation towards one specific energy over a time: u' = u − `loss` u + `gain`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Relaxation<T> {
    /// The part of the specific internal energy that is lost, 0 to 1.
    pub loss: T,
    /// Specific internal energy that comes in, code units.
    pub gain: T,
}

impl<T: Real> PointSource<T> for Relaxation<T> {
    const KERNEL: &'static str = "source_relaxation";

    #[inline(always)]
    fn change(&self, density: T, internal: T) -> T {
        self.gain * density - self.loss * internal
    }
}

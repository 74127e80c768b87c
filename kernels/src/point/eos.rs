//! The ideal gas.

use crate::real::Real;

/// Ideal gas, with the parameters that decide between energy and entropy scalar ([`crate::point::dual_energy`]).
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Eos<T> {
    /// Ratio of specific heats γ.
    pub gamma: T,
    /// Below this ratio of internal to total energy the entropy scalar decides ([`mod@crate::point::dual_energy`]); never with
    /// [`Eos::SCALAR_OFF`].
    pub eta: T,
    /// Smallest density that is not a floor event.
    pub density_floor: T,
    /// Smallest pressure that is not a floor event.
    pub pressure_floor: T,
    /// Square of the velocity at which the expansion of the universe moves adjacent cells apart; 0 without expansion.
    pub expansion_squared: T,
}

impl<T: Real> Eos<T> {
    /// The η of a run whose pressure comes from the energy alone: no cell's internal energy lies below it.
    pub const SCALAR_OFF: f64 = -1e30;

    /// γ with the standard switch η = 10⁻² and floors far below anything a resolved flow reaches.
    pub fn new(gamma: f64) -> Self {
        Self {
            gamma: T::from_f64(gamma),
            eta: T::from_f64(1e-2),
            density_floor: T::from_f64(1e-6),
            pressure_floor: T::from_f64(1e-20),
            expansion_squared: T::zero(),
        }
    }

    /// S = P/ρ^(γ−1).
    #[inline(always)]
    pub fn entropy(&self, density: T, pressure: T) -> T {
        pressure / density.power(self.gamma - T::one())
    }

    /// P = S ρ^(γ−1).
    #[inline(always)]
    pub fn entropy_pressure(&self, density: T, entropy: T) -> T {
        entropy * density.power(self.gamma - T::one())
    }
}

//! The gas at a point of secondary infall.

/// The gas at a point of the solution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Infall {
    /// D = ρ/ρ_b.
    pub(super) density: f64,
    /// V = v t/r_ta, proper and including the expansion.
    pub(super) velocity: f64,
    /// Π = P t²/(ρ_b r_ta²).
    pub(super) pressure: f64,
    /// M, in (4π/3) ρ_b r_ta³.
    pub(super) mass: f64,
}

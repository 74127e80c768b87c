//! Primitive values of a cell, pointwise: density, velocity along the sweep, the two across it, pressure, and the specific
//! entropy scalar K = S/ρ = P/ρ^γ, which the gas carries along.

use crate::point::dual_energy::Cell;
use crate::point::eos::Eos;
use crate::point::relaxing_tvd::thermodynamics;
use crate::real::Real;

/// ρ, v, v₂, v₃, P, K.
pub type Primitive<T> = [T; 6];

/// The primitive values of a cell, density and pressure at least their floors; the pressure comes from the entropy scalar of
/// cold gas ([`crate::point::dual_energy::is_cold`], with this shock indicator).
#[inline(always)]
pub fn primitive<T: Real>(u: &Cell<T>, shock_indicator: T, eos: &Eos<T>) -> Primitive<T> {
    let (inverse, pressure) = thermodynamics(u, u[1] * u[1] + (u[2] * u[2] + u[3] * u[3]), shock_indicator, eos);
    let density = if u[0] > eos.density_floor { u[0] } else { eos.density_floor };
    [density, u[1] * inverse, u[2] * inverse, u[3] * inverse, pressure, u[5] * inverse]
}

/// A(w) x of the quasi-linear Euler equations ∂w/∂t + A(w) ∂w/∂x = 0 (Toro 2009, section 3.1).
#[inline(always)]
pub fn quasi_linear<T: Real>(w: &Primitive<T>, inverse_density: T, eos: &Eos<T>, x: &Primitive<T>) -> Primitive<T> {
    let v = w[1];
    [
        v * x[0] + w[0] * x[1],
        v * x[1] + x[4] * inverse_density,
        v * x[2],
        v * x[3],
        v * x[4] + (eos.gamma * w[4]) * x[1],
        v * x[5],
    ]
}

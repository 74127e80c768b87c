//! The flux of Harten, Lax and van Leer (1983) between two states, pointwise, with the wave speeds of Davis (1988): the
//! fastest of v ± c on either side. A cell comes with the momentum along the sweep first. Terms are paired so that a
//! mirrored flow gives mirrored bits.

use crate::point::dual_energy::Cell;
use crate::point::eos::Eos;
use crate::point::primitive::Primitive;
use crate::point::relaxing_tvd::thermodynamics;
use crate::real::Real;

/// A cell as its faces see it.
#[derive(Clone, Copy, Debug)]
pub struct CellFlux<T> {
    /// F(u).
    pub flux: Cell<T>,
    /// Velocity along the sweep.
    pub velocity: T,
    /// Sound speed.
    pub sound_speed: T,
}

/// The physical flux of a cell, and its velocities. The entropy scalar is advected: its flux is S v.
///
/// `shock_indicator`: see [`crate::point::dual_energy::shock_indicator`].
#[inline(always)]
pub fn cell_flux<T: Real>(u: &Cell<T>, shock_indicator: T, eos: &Eos<T>) -> CellFlux<T> {
    let (inverse, pressure) = thermodynamics(u, u[1] * u[1] + (u[2] * u[2] + u[3] * u[3]), shock_indicator, eos);
    let velocity = u[1] * inverse;
    let flux = [
        u[1],
        u[1] * velocity + pressure,
        u[2] * velocity,
        u[3] * velocity,
        (u[4] + pressure) * velocity,
        u[5] * velocity,
    ];
    CellFlux { flux, velocity, sound_speed: (eos.gamma * pressure * inverse).sqrt() }
}

/// How fast waves run to the right and to the left of a face, neither less than 0.
///
/// `left`, `right`: velocity and sound speed of the cells
#[inline(always)]
pub fn wave_speeds<T: Real>(left: [T; 2], right: [T; 2]) -> [T; 2] {
    let larger = |a: T, b: T| if a > b { a } else { b };
    let rightward = larger(left[0] + left[1], right[0] + right[1]);
    let leftward = larger(left[1] - left[0], right[1] - right[0]);
    [larger(rightward, T::zero()), larger(leftward, T::zero())]
}

/// Twice the flux of one conserved value through a face with these wave speeds.
#[inline(always)]
pub fn hll_flux<T: Real>(value: [T; 2], flux: [T; 2], [rightward, leftward]: [T; 2]) -> T {
    let upwind = rightward * flux[0] + leftward * flux[1];
    let twice = T::from_f64(2.0);
    twice * (upwind + rightward * leftward * (value[0] - value[1])) / (rightward + leftward)
}

/// Twice the flux between the states on either side of a face, given by primitive values.
#[inline(always)]
pub fn face_flux<T: Real>(left: &Primitive<T>, right: &Primitive<T>, eos: &Eos<T>) -> Cell<T> {
    let (u, a) = state_flux(left, eos);
    let (v, b) = state_flux(right, eos);
    between(&u, &v, &a, &b)
}

/// The conserved values of a state, and what [`cell_flux`] says of it.
#[inline(always)]
fn state_flux<T: Real>(w: &Primitive<T>, eos: &Eos<T>) -> (Cell<T>, CellFlux<T>) {
    let [density, velocity, across, third, pressure, entropy] = *w;
    let momentum = density * velocity;
    let squared = velocity * velocity + (across * across + third * third);
    let energy = T::from_f64(0.5) * density * squared + pressure / (eos.gamma - T::one());
    let u = [density, momentum, density * across, density * third, energy, density * entropy];
    let flux = [
        momentum,
        momentum * velocity + pressure,
        momentum * across,
        momentum * third,
        (energy + pressure) * velocity,
        momentum * entropy,
    ];
    (u, CellFlux { flux, velocity, sound_speed: (eos.gamma * pressure / density).sqrt() })
}

#[inline(always)]
fn between<T: Real>(u: &Cell<T>, v: &Cell<T>, a: &CellFlux<T>, b: &CellFlux<T>) -> Cell<T> {
    let speeds = wave_speeds([a.velocity, a.sound_speed], [b.velocity, b.sound_speed]);
    let mut flux = [T::zero(); 6];
    for f in 0..6 {
        flux[f] = hll_flux([u[f], v[f]], [a.flux[f], b.flux[f]], speeds);
    }
    flux
}

/// Twice the first-order flux through the face between two cells.
#[inline(always)]
pub fn first_order_flux<T: Real>(left: &Cell<T>, right: &Cell<T>, shock_indicators: [T; 2], eos: &Eos<T>) -> Cell<T> {
    let (a, b) = (cell_flux(left, shock_indicators[0], eos), cell_flux(right, shock_indicators[1], eos));
    between(left, right, &a, &b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_states_have_the_physical_flux_and_fast_ones_the_upwind_one() {
        let eos = Eos::<f64>::new(1.4);
        let at = |u: &Cell<f64>| cell_flux(u, 0.0, &eos);
        let through = |l: &Cell<f64>, r: &Cell<f64>| {
            let [a, b] = [at(l), at(r)];
            let speeds = wave_speeds([a.velocity, a.sound_speed], [b.velocity, b.sound_speed]);
            std::array::from_fn::<f64, 6, _>(|f| 0.5 * hll_flux([l[f], r[f]], [a.flux[f], b.flux[f]], speeds))
        };
        let close = |a: &[f64; 6], b: &[f64; 6]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-13 * (1.0 + b.abs()));
        let u = [2.0, 1.0, -0.5, 0.25, 10.0, 3.0];
        assert!(close(&through(&u, &u), &at(&u).flux));
        // Mach 4 and 5 to the right: only the left cell counts
        let (fast, faster) = ([1.0, 4.0, 0.0, 0.0, 9.8, 1.0], [1.0, 5.0, 0.0, 0.0, 14.3, 1.0]);
        assert!(close(&through(&fast, &faster), &at(&fast).flux));
        // mirrored states: mirrored bits
        let mirror = |u: &Cell<f64>| [u[0], -u[1], u[2], u[3], u[4], u[5]];
        let v = [0.5, -0.25, 0.125, 0.5, 2.0, 1.0];
        let (one, other) = (through(&u, &v), through(&mirror(&v), &mirror(&u)));
        assert_eq!([-one[0], one[1], -one[2], -one[3], -one[4], -one[5]], other);
    }
}

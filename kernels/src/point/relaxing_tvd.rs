//! The one-dimensional relaxing TVD scheme, pointwise (paper, section 2.2).
//!
//! A cell comes with the momentum along the sweep first and the two transverse ones after it. All fluxes here are
//! *twice* the paper's, which drops its factors ½ (powers of two change no bits); who stores a flux halves it. The
//! two halves enter every sum pairwise, so that a mirrored flow gives mirrored bits.

use crate::point::dual_energy::{Cell, is_cold};
use crate::point::eos::Eos;
use crate::point::symmetric_sum;
use crate::real::Real;

/// Twice the right- and left-moving fluxes F^R and F^L of a cell.
#[derive(Clone, Copy, Debug)]
pub struct SplitFlux<T> {
    /// 2F^R = c u + F(u).
    pub right: Cell<T>,
    /// 2F^L = c u − F(u).
    pub left: Cell<T>,
}

/// 1/ρ and the pressure of a cell, density and pressure at least their floors. The pressure comes from the entropy
/// scalar of cold gas ([`is_cold`], with this shock indicator). So the sound speed of a finite cell is a number.
#[inline(always)]
pub(super) fn thermodynamics<T: Real>(u: &Cell<T>, momentum_squared: T, shock_indicator: T, eos: &Eos<T>) -> (T, T) {
    let density = if u[0] > eos.density_floor { u[0] } else { eos.density_floor };
    let inverse = T::one() / density;
    let internal = u[4] - T::from_f64(0.5) * momentum_squared * inverse;
    let cold = is_cold(internal, u[4], shock_indicator, eos);
    let pressure = if cold { eos.entropy_pressure(density, u[5]) } else { (eos.gamma - T::one()) * internal };
    (inverse, if pressure > eos.pressure_floor { pressure } else { eos.pressure_floor })
}

/// max(|v_x|, |v_y|, |v_z|) + c_s: the fastest freezing speed that the three directions of a sweep will use in this
/// cell.
#[inline(always)]
pub fn signal_speed<T: Real>(u: &Cell<T>, eos: &Eos<T>) -> T {
    let squared = symmetric_sum::of_three(u[1] * u[1], u[2] * u[2], u[3] * u[3]);
    let (inverse, pressure) = thermodynamics(u, squared, T::zero(), eos);
    let larger = |a: T, b: T| if a > b { a } else { b };
    larger(u[1].abs(), larger(u[2].abs(), u[3].abs())) * inverse + (eos.gamma * pressure * inverse).sqrt()
}

/// F^R and F^L with the freezing speed c = |v| + c_s. The entropy scalar is advected: its flux is S v.
///
/// `shock_indicator`: see [`crate::point::dual_energy::shock_indicator`].
#[inline(always)]
pub fn split_flux<T: Real>(u: &Cell<T>, shock_indicator: T, eos: &Eos<T>) -> SplitFlux<T> {
    let (inverse, pressure) = thermodynamics(u, u[1] * u[1] + (u[2] * u[2] + u[3] * u[3]), shock_indicator, eos);
    let v = u[1] * inverse;
    let c = v.abs() + (eos.gamma * pressure * inverse).sqrt();
    let flux = [u[1], u[1] * v + pressure, u[2] * v, u[3] * v, (u[4] + pressure) * v, u[5] * v];
    let mut split = SplitFlux { right: [T::zero(); 6], left: [T::zero(); 6] };
    for f in 0..6 {
        let frozen = c * u[f];
        split.right[f] = frozen + flux[f];
        split.left[f] = frozen - flux[f];
    }
    split
}

/// Twice the first-order flux between two neighbours: what the left one sends right less what the right one sends left.
#[inline(always)]
pub fn upwind_flux<T: Real>(right_moving_of_left_cell: T, left_moving_of_right_cell: T) -> T {
    right_moving_of_left_cell - left_moving_of_right_cell
}

/// Van Leer's harmonic mean of two half differences, given the whole differences: 2(a/2)(b/2)/(a/2 + b/2) = ab/(a+b)
/// where both have one sign, else zero (paper, section 2.2).
#[inline(always)]
pub fn van_leer<T: Real>(a: T, b: T) -> T {
    let product = a * b;
    if product > T::zero() { product / (a + b) } else { T::zero() }
}

/// Twice the second-order flux through the face between cells 0 and 1, from the right-moving fluxes of cells −1, 0, 1
/// and the left-moving fluxes of cells 0, 1, 2.
#[inline(always)]
pub fn limited_flux<T: Real>(right: [T; 3], left: [T; 3]) -> T {
    let rightward = right[1] + van_leer(right[1] - right[0], right[2] - right[1]);
    let leftward = left[1] - van_leer(left[1] - left[0], left[2] - left[1]);
    rightward - leftward
}

/// A conserved value after `step` times the difference of twice the fluxes through its two faces.
#[inline(always)]
pub fn updated<T: Real>(value: T, step: T, flux_low: T, flux_high: T) -> T {
    value - step * (flux_high - flux_low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_add_up_to_the_physical_flux() {
        let eos = Eos::<f64>::new(1.4);
        let u = [2.0, 1.0, -0.5, 0.25, 10.0, 3.0];
        let split = split_flux(&u, 0.0, &eos);
        let pressure = 0.4 * (10.0 - 0.5 * (1.0 + 0.25 + 0.0625) / 2.0);
        let exact = [1.0, 0.5 + pressure, -0.25, 0.125, (10.0 + pressure) * 0.5, 1.5];
        let speed = 0.5 + (1.4 * pressure / 2.0f64).sqrt();
        for f in 0..6 {
            assert!((0.5 * (split.right[f] - split.left[f]) - exact[f]).abs() < 1e-14);
            assert!((0.5 * (split.right[f] + split.left[f]) - speed * u[f]).abs() < 1e-13);
        }
    }

    #[test]
    fn cold_gas_takes_its_pressure_from_the_entropy_scalar() {
        let eos = Eos::<f64>::new(5.0 / 3.0);
        let split = split_flux(&[2.0, 20.0, 0.0, 0.0, 100.0, 1e-3], 0.0, &eos);
        let pressure = 0.5 * (split.right[1] - split.left[1]) - 200.0;
        assert!((pressure - 1e-3 * 2f64.powf(2.0 / 3.0)).abs() < 1e-12);
        let empty = split_flux(&[0.0, 1e-9, 0.0, 0.0, 0.0, 0.0], 0.0, &eos);
        assert!(empty.right.iter().chain(&empty.left).all(|x| x.is_finite()));
    }

    #[test]
    fn limiter_is_harmonic_and_zero_at_extrema() {
        assert_eq!(van_leer(2.0, 6.0), 1.5);
        assert_eq!(van_leer(-2.0, -6.0), -1.5);
        assert_eq!(van_leer(2.0, -6.0), 0.0);
        assert_eq!(van_leer(0.0, 0.0), 0.0);
    }
}

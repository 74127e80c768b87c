//! A passive scalar, pointwise: a density ρX that moves with the mass of the gas.
//!
//! Its flux is the mass flux times the mass fraction X of what crosses the face. X comes from the upwind side with a
//! limited slope, so a uniform X stays uniform and no new extrema arise as long as no more leaves a cell in a pass than
//! it holds. Interpolation between levels is that of X too, with the coarse value of ρX as mean.

use crate::point::relaxing_tvd::van_leer;
use crate::point::slopes::{interpolation_slope, minmod};
use crate::point::symmetric_sum;
use crate::real::Real;

/// X of a cell; none where there is no mass.
#[inline(always)]
pub fn mass_fraction<T: Real>(scalar: T, density: T) -> T {
    if density > T::zero() { scalar / density } else { T::zero() }
}

/// X of the mass that crosses the face between two cells in a pass: that of the upwind cell, halfway between its centre
/// and the face but for what has left by then (van Leer 1977).
///
/// * `twice_mass_flux`, `step`: what changes a density in the pass, as in [`crate::point::relaxing_tvd::updated`]
/// * `density`: of the two cells before the pass
/// * `fraction`: of the two cells and one more on either side
#[inline(always)]
pub fn carried_fraction<T: Real>(twice_mass_flux: T, step: T, density: [T; 2], fraction: [T; 4]) -> T {
    let rightward = twice_mass_flux > T::zero();
    let [far, upwind, downwind] = match rightward {
        true => [fraction[0], fraction[1], fraction[2]],
        false => [fraction[3], fraction[2], fraction[1]],
    };
    let held = if rightward { density[0] } else { density[1] };
    let stays = T::one() - twice_mass_flux.abs() * step / held;
    let stays = if held > T::zero() && stays > T::zero() { stays } else { T::zero() };
    upwind + stays * van_leer(upwind - far, downwind - upwind)
}

/// A coarse cell for interpolation: density and mass fraction with limited slopes, quartered.
#[derive(Clone, Copy, Debug)]
pub struct FractionSlopes<T> {
    density: T,
    fraction: T,
    density_slopes: [T; 3],
    fraction_slopes: [T; 3],
}

impl<T: Real> FractionSlopes<T> {
    /// Of a cell and the cells below and above it along each axis, each density and mass fraction.
    #[inline(always)]
    pub fn new(centre: [T; 2], low: [[T; 2]; 3], high: [[T; 2]; 3]) -> Self {
        let quarter = T::from_f64(0.25);
        let differences = |f: usize, a: usize| (centre[f] - low[a][f], high[a][f] - centre[f]);
        let density_slopes: [T; 3] = std::array::from_fn(|a| {
            let (before, after) = differences(0, a);
            quarter * interpolation_slope(before, after)
        });
        let fraction_slopes: [T; 3] = std::array::from_fn(|a| {
            let (before, after) = differences(1, a);
            quarter * minmod(before, after)
        });
        let product = |a: usize| density_slopes[a] * fraction_slopes[a];
        // where both rise there is more of the scalar than at the centre
        let excess = symmetric_sum::of_three(product(0), product(1), product(2));
        let [density, fraction] = centre;
        Self { density, fraction: fraction - mass_fraction(excess, density), density_slopes, fraction_slopes }
    }

    /// Density and mass fraction of fine cell `n`, at (n & 1, n >> 1 & 1, n >> 2) of the eight.
    #[inline(always)]
    pub fn fine(&self, n: usize) -> [T; 2] {
        let rise = |slopes: &[T; 3]| {
            let sign = |axis: usize| if n >> axis & 1 == 1 { slopes[axis] } else { -slopes[axis] };
            symmetric_sum::of_three(sign(0), sign(1), sign(2))
        };
        [self.density + rise(&self.density_slopes), self.fraction + rise(&self.fraction_slopes)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Noise;

    /// A face carries the upwind fraction moved to the middle of what crosses it, the same to both sides.
    #[test]
    fn faces_carry_the_upwind_fraction() {
        let fraction: [f64; 4] = [0.1, 0.2, 0.3, 0.4];
        // a quarter of the cell leaves: the middle of that is 3/8 of a cell from its centre
        assert!((carried_fraction(0.5, 0.5, [1.0, 9.0], fraction) - 0.2375).abs() < 1e-15);
        assert!((carried_fraction(-0.5, 0.5, [9.0, 1.0], fraction) - 0.2625).abs() < 1e-15);
        assert_eq!(carried_fraction(0.5, 0.5, [1.0, 1.0], [0.3, 0.2, 0.3, 0.4]), 0.2, "at an extremum");
        assert_eq!(carried_fraction(4.0, 0.5, [1.0, 1.0], fraction), 0.2, "more leaves than there is");
        assert_eq!(carried_fraction(1.0, 0.5, [-1.0, 1.0], [0.0, 0.0, 0.3, 0.4]), 0.0, "no mass");
    }

    /// The mean of the fine cells is the coarse cell, fractions stay between those around, and a fraction of 1 gives the
    /// density's bits.
    #[test]
    fn interpolation_conserves_and_makes_no_extrema() {
        let mut noise = Noise::new(3);
        for _ in 0..2000 {
            let mut cell = || [10f64.powf(2.0 * noise.next()), 0.5 + 0.5 * noise.next()];
            let (centre, low, high) = (cell(), [cell(), cell(), cell()], [cell(), cell(), cell()]);
            let slopes = FractionSlopes::new(centre, low, high);
            let fine: [[f64; 2]; 8] = std::array::from_fn(|n| slopes.fine(n));
            let mean = fine.iter().map(|[density, fraction]| density * fraction).sum::<f64>() / 8.0;
            assert!((mean / (centre[0] * centre[1]) - 1.0).abs() < 1e-13);
            let around = low.iter().chain(&high).chain([&centre]).map(|cell| cell[1]);
            let [least, most] = [around.clone().fold(1.0, f64::min), around.fold(0.0, f64::max)];
            let slack = 1e-15;
            assert!(fine.iter().all(|cell| cell[1] >= least - slack && cell[1] <= most + slack), "{fine:?}");
            let one = |cell: [f64; 2]| [cell[0], 1.0];
            let slopes = FractionSlopes::new(one(centre), low.map(one), high.map(one));
            assert!((0..8).all(|n| slopes.fine(n) == [fine[n][0], 1.0]));
        }
    }
}

//! Piecewise linear and parabolic reconstruction in a cell, one value at a time (Colella & Woodward 1984, JCP 54, 174).
//!
//! A cell's profile is given by how far its mean `w` is above its value at the low face, and how far its value at the high
//! face is above the mean: `below` and `above`. They are equal in a linear profile. A parabola is w_low + x (Δ + w₆ (1 − x))
//! with Δ = above + below and w₆ = 3 (below − above).

use crate::real::Real;

/// Fourth-order value at the face between two cells with limited slopes (equation 1.6).
#[inline(always)]
pub fn face_value<T: Real>(values: [T; 2], slopes: [T; 2]) -> T {
    T::from_f64(0.5) * (values[0] + values[1]) - T::from_f64(1.0 / 6.0) * (slopes[1] - slopes[0])
}

/// `below` and `above` of a parabola without extrema inside the cell (equation 1.10).
#[inline(always)]
pub fn monotonised<T: Real>(below: T, above: T) -> [T; 2] {
    let two = T::from_f64(2.0);
    let at_most = |a: T, b: T| {
        let most = two * b.abs();
        let size = a.abs();
        let size = if size < most { size } else { most };
        if a < T::zero() { -size } else { size }
    };
    let extremum = (below > T::zero()) != (above > T::zero());
    if extremum { [T::zero(); 2] } else { [at_most(below, above), at_most(above, below)] }
}

/// By how much the profiles of a cell at a shock are flattened: 0 in smooth flow, 1 where the shock is only a cell or two
/// wide (equations A.1 and A.2, without the neighbours' own).
///
/// * `velocities`: of the cells before and after; `pressures`: of the five cells around
#[inline(always)]
pub fn flattening<T: Real>(velocities: [T; 2], pressures: [T; 5]) -> T {
    let near = pressures[3] - pressures[1];
    let far = pressures[4] - pressures[0];
    let lower = if pressures[1] < pressures[3] { pressures[1] } else { pressures[3] };
    let shock = (velocities[0] > velocities[1]) & (near.abs() > T::from_f64(1.0 / 3.0) * lower);
    // (near/far − 0.75) / 0.1, between 0 and 1
    let (near, far) = if far < T::zero() { (-near, -far) } else { (near, far) };
    let steepness = T::from_f64(10.0) * (near - T::from_f64(0.75) * far);
    let steepness = if steepness < far { steepness } else { far };
    if shock & (steepness > T::zero()) { steepness / far } else { T::zero() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::slopes::central_slope;

    /// Means of x³ over unit cells around 0: the face values are those of the cubic, away from extrema.
    #[test]
    fn faces_of_a_cubic_are_exact() {
        let mean = |i: f64| ((i + 0.5).powi(4) - (i - 0.5).powi(4)) / 4.0;
        let cells = [2.0, 3.0, 4.0, 5.0].map(mean);
        let slope = |i: usize| central_slope(cells[i] - cells[i - 1], cells[i + 1] - cells[i], 2.0);
        let face = face_value([cells[1], cells[2]], [slope(1), slope(2)]);
        assert!((face - 3.5f64.powi(3)).abs() < 1e-12, "{face}");
    }

    #[test]
    fn parabolas_are_monotonic() {
        assert_eq!(monotonised(1.0, 1.5), [1.0, 1.5]);
        assert_eq!(monotonised(1.0, 5.0), [1.0, 2.0]);
        assert_eq!(monotonised(-5.0, -1.0), [-2.0, -1.0]);
        assert_eq!(monotonised(1.0, -1.0), [0.0, 0.0]);
    }

    #[test]
    fn only_narrow_shocks_are_flattened() {
        // a jump within one cell, then one over five cells
        assert_eq!(flattening([1.0, 0.0], [10.0, 10.0, 5.0, 1.0, 1.0]), 1.0);
        assert_eq!(flattening([1.0, 0.0], [10.0, 8.0, 6.0, 4.0, 2.0]), 0.0);
        // an expansion, and a contact
        assert_eq!(flattening([0.0, 1.0], [10.0, 10.0, 5.0, 1.0, 1.0]), 0.0);
        assert_eq!(flattening([1.0, 0.0], [1.0; 5]), 0.0);
    }
}

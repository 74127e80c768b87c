//! Limited slopes of a value in a cell, from its differences to the cells before and after. All are zero at an extremum.

use crate::real::Real;

/// The smaller of the two differences (paper, section 2.1).
#[inline(always)]
pub fn minmod<T: Real>(before: T, after: T) -> T {
    let smaller = if before.abs() < after.abs() { before } else { after };
    if before * after > T::zero() { smaller } else { T::zero() }
}

/// The mean of the two, but at most `steepest` times the smaller (van Leer 1977).
#[inline(always)]
pub fn central_slope<T: Real>(before: T, after: T, steepest: T) -> T {
    let (size_before, size_after) = (before.abs(), after.abs());
    let most = steepest * if size_before < size_after { size_before } else { size_after };
    let mean = T::from_f64(0.5) * (before + after);
    let size = mean.abs();
    let limited = if size < most { size } else { most };
    let signed = if mean < T::zero() { -limited } else { limited };
    let extremum = (before > T::zero()) != (after > T::zero());
    if extremum { T::zero() } else { signed }
}

/// The slope with which eight fine cells are interpolated in a coarse one. Along an axis central differences give the
/// fine cells that a parabola has; three slopes of at most five quarters of the smaller difference leave a positive value positive.
#[inline(always)]
pub fn interpolation_slope<T: Real>(before: T, after: T) -> T {
    central_slope(before, after, T::from_f64(1.25))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_limited() {
        assert_eq!([minmod(1.0, 2.0), minmod(-3.0, -2.0), minmod(1.0, -2.0)], [1.0, -2.0, 0.0]);
        assert_eq!([central_slope(1.0, 2.0, 2.0), central_slope(-1.0, -8.0, 2.0)], [1.5, -2.0]);
        assert_eq!([central_slope(1.0, -2.0, 2.0), central_slope(0.0, 3.0, 2.0)], [0.0, 0.0]);
        assert_eq!([interpolation_slope(1.0, 1.25), interpolation_slope(8.0, 4.0)], [1.125, 5.0]);
    }
}

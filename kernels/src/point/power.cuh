// x^y for positive normal x: the twin of power.rs, operation by operation.
#pragma once
#include "device/cuda/arithmetic.cuh"

/// (1 - r)^(-1/3) to third order in r.
template <typename A, typename T> INLINE T inverse_cube_root_correction(T r) {
    const T third = A::multiply_add(r, T(14.0 / 81.0), T(2.0 / 9.0));
    return A::multiply_add(r, A::multiply_add(r, third, T(1.0 / 3.0)), T(1.0));
}

/// x^(2/3).
template <typename A> INLINE float two_thirds(float x) {
    const uint32_t third = ((bits_of(x) >> 12) * 5461u) >> 2;
    const float guess = of_bits(0x54a21d2au - third);
    float r = A::multiply_add(-(guess * guess), guess * x, 1.0f);
    const float root = guess * inverse_cube_root_correction<A>(r);
    const float product = root * x;
    r = A::multiply_add(-(root * root), product, 1.0f);
    return A::multiply_add(product, r * float(1.0 / 3.0), product);
}
template <typename A> INLINE double two_thirds(double x) {
    const uint64_t third = (bits_of(x) >> 32) * uint64_t(0x55555555u);
    const double guess = of_bits(uint64_t(0x553ef0ff289dd796ull) - third);
    double r = A::multiply_add(-(guess * guess), guess * x, 1.0);
    double root = guess * inverse_cube_root_correction<A>(r);
    r = A::multiply_add(-(root * root), root * x, 1.0);
    root = root * inverse_cube_root_correction<A>(r);
    const double product = root * x;
    r = A::multiply_add(-(root * root), product, 1.0);
    return A::multiply_add(product, r * (1.0 / 3.0), product);
}

/// The numbers that differ between the precisions: bits of the mantissa, the exponent's bias, trailing bits of y that
/// its leading half drops, orders of the artanh and exp series.
template <typename T> struct PowerNumbers;
template <> struct PowerNumbers<float> {
    using Bits = uint32_t;
    static constexpr int mantissa = 23, split = 12, atanh_order = 5, exp_order = 8;
    static constexpr Bits bias = 127;
};
template <> struct PowerNumbers<double> {
    using Bits = uint64_t;
    static constexpr int mantissa = 52, split = 27, atanh_order = 11, exp_order = 14;
    static constexpr Bits bias = 1023;
};

/// x^y by 2^(y log2 x).
template <typename T> INLINE T general_power(T x, T y) {
    using N = PowerNumbers<T>;
    using Bits = typename N::Bits;
    constexpr Bits one = N::bias << N::mantissa;
    constexpr Bits units = (N::bias + N::mantissa) << N::mantissa;
    const Bits bits = bits_of(x);
    T m = of_bits(Bits((bits & ((Bits(1) << N::mantissa) - 1)) | one));
    T e = of_bits(Bits(units | (bits >> N::mantissa))) - of_bits(Bits(units | N::bias));
    const bool high = m > T(1.41421356237309504880);
    m = high ? T(0.5) * m : m;
    e = high ? e + T(1.0) : e;

    const T s = (m - T(1.0)) / (m + T(1.0));
    const T s2 = s * s;
    T series = T(0.0);
#pragma unroll
    for (int term = N::atanh_order; term > 0; term--) series = (series + T(1.0) / T(2 * term + 1)) * s2;
    const T log2_m = (s + s * series) * T(2.0 * 1.44269504088896340736);

    const T y_high = of_bits(Bits(bits_of(y) >> N::split << N::split));
    const T whole = y_high * e;
    const T rest = (y - y_high) * e + y * log2_m;
    const T round = T(1.5) * T(uint64_t(1) << N::mantissa);
    const T shifted = (whole + rest) + round;
    const T n = shifted - round;
    const T f = ((whole - n) + rest) * T(0.693147180559945309417);
    T power = T(1.0);
#pragma unroll
    for (int order = N::exp_order; order > 0; order--) power = T(1.0) + power * (f * (T(1.0) / T(order)));
    return of_bits(Bits(bits_of(power) + (bits_of(shifted) << N::mantissa)));
}

/// x^y; a general exponent is computed in one way.
template <typename A = Exact> INLINE float power(float x, float y) {
    return y == 5.0f / 3.0f - 1.0f ? two_thirds<A>(x) : general_power(x, y);
}
template <typename A = Exact> INLINE double power(double x, double y) {
    return y == 5.0 / 3.0 - 1.0 ? two_thirds<A>(x) : general_power(x, y);
}

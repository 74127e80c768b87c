// Sine transforms of one line: the twin of sine.rs.
#pragma once
#include "device/cuda/arithmetic.cuh"
#include "layout.cuh"
#include "device/cuda/real.cuh"

/// Entry (k, n) of the matrix at (k + 1)(n + 1) modulo their number.
template <typename T> struct Sines {
    T values[2 * (GROUP + 1)];

    INLINE T operator()(int k, int n) const { return values[(k + 1) * (n + 1) % (2 * (GROUP + 1))]; }
};

/// The transform of a line, its even-numbered coefficients from the sums of mirrored values, the odd ones from their
/// differences.
template <typename A, typename T> INLINE void transform(const Sines<T> &sines, const T (&line)[GROUP], T (&out)[GROUP]) {
    constexpr int HALF = GROUP / 2;
    T sums[HALF], differences[HALF];
#pragma unroll
    for (int n = 0; n < HALF; n++) {
        sums[n] = line[n] + line[GROUP - 1 - n];
        differences[n] = line[n] - line[GROUP - 1 - n];
    }
#pragma unroll
    for (int k = 0; k < GROUP; k += 2) {
        T even = sines(k, 0) * sums[0], odd = sines(k + 1, 0) * differences[0];
#pragma unroll
        for (int n = 1; n < HALF; n++) {
            even = A::multiply_add(sines(k, n), sums[n], even);
            odd = A::multiply_add(sines(k + 1, n), differences[n], odd);
        }
        out[k] = even;
        out[k + 1] = odd;
    }
}

/// matrix * line, as the processor computes it along x.
template <typename T> INLINE void apply(const Sines<T> &sines, const T (&line)[GROUP], T (&out)[GROUP]) {
#pragma unroll
    for (int k = 0; k < GROUP; k++) {
        T sum = sines(k, 0) * line[0];
#pragma unroll
        for (int n = 1; n < GROUP; n++) sum += sines(k, n) * line[n];
        out[k] = sum;
    }
}

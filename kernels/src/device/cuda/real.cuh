// The two precisions. Everything that runs per cell is `INLINE`, and compiles for the host too, where it is tested
// against its Rust twin. No fused multiply-add unless written out: the bits are then those of the Rust twins, and do not
// depend on which kernel a function is compiled into.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define INLINE __host__ __device__ __forceinline__
#else
#define INLINE inline
#endif

/// The bits of a number, and the number of bits.
INLINE uint32_t bits_of(float x) {
#ifdef __CUDA_ARCH__
    return __float_as_uint(x);
#else
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}
INLINE uint64_t bits_of(double x) {
#ifdef __CUDA_ARCH__
    return uint64_t(__double_as_longlong(x));
#else
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
#endif
}
INLINE float of_bits(uint32_t bits) {
#ifdef __CUDA_ARCH__
    return __uint_as_float(bits);
#else
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}
INLINE double of_bits(uint64_t bits) {
#ifdef __CUDA_ARCH__
    return __longlong_as_double((long long)bits);
#else
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
#endif
}

INLINE float absolute(float x) { return fabsf(x); }
INLINE double absolute(double x) { return fabs(x); }
INLINE float square_root(float x) { return sqrtf(x); }
INLINE double square_root(double x) { return sqrt(x); }

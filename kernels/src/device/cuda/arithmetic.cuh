// How a sweep and a group solve compute: as their Rust twins do, or as the GPU does it fastest. Both give mirrored bits for
// mirrored input, and the same bits in whatever kernel they are compiled into.
#pragma once
#include "device/cuda/real.cuh"

/// IEEE operations one by one: the bits of the CPU.
struct Exact {
    template <typename T> static INLINE T divide(T a, T b) { return a / b; }
    template <typename T> static INLINE T root(T x) { return square_root(x); }
    /// a b + c.
    template <typename T> static INLINE T multiply_add(T a, T b, T c) { return a * b + c; }
};

/// Fused multiply-add; in single precision quotients and roots within two units in the last place.
struct Fast {
    static INLINE float divide(float a, float b) {
#ifdef __CUDA_ARCH__
        return __fdividef(a, b);
#else
        return a / b;
#endif
    }
    static INLINE double divide(double a, double b) { return a / b; }
    static INLINE float root(float x) {
#ifdef __CUDA_ARCH__
        float y;
        asm("sqrt.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
#else
        return sqrtf(x);
#endif
    }
    static INLINE double root(double x) { return sqrt(x); }
    static INLINE float multiply_add(float a, float b, float c) { return fmaf(a, b, c); }
    static INLINE double multiply_add(double a, double b, double c) { return fma(a, b, c); }
};

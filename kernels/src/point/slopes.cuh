// Limited slopes: the twin of slopes.rs.
#pragma once
#include "device/cuda/real.cuh"

template <typename T> INLINE T minmod(T before, T after) {
    const T smaller = absolute(before) < absolute(after) ? before : after;
    return before * after > T(0.0) ? smaller : T(0.0);
}

/// The mean of two differences, but at most `steepest` times the smaller.
template <typename T> INLINE T central_slope(T before, T after, T steepest) {
    const T size_before = absolute(before), size_after = absolute(after);
    const T most = steepest * (size_before < size_after ? size_before : size_after);
    const T mean = T(0.5) * (before + after), size = absolute(mean);
    const T limited = size < most ? size : most;
    const T with_sign = mean < T(0.0) ? -limited : limited;
    return (before > T(0.0)) != (after > T(0.0)) ? T(0.0) : with_sign;
}

/// The slope with which fine cells are interpolated in a coarse one.
template <typename T> INLINE T interpolation_slope(T before, T after) { return central_slope(before, after, T(1.25)); }

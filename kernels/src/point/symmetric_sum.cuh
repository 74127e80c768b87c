// Sums whose bits do not depend on the order of the terms: the twin of symmetric_sum.rs.
#pragma once
#include "device/cuda/real.cuh"

template <typename T> INLINE T median(T a, T b, T c) {
    const T low = a < b ? a : b, high = a < b ? b : a;
    const T capped = c < high ? c : high;
    return low > capped ? low : capped;
}
template <typename T> INLINE T sum_of_three(T a, T b, T c) { return median((a + b) + c, (b + c) + a, (c + a) + b); }
template <typename T> INLINE T sum_of_four(T a, T b, T c, T d) {
    return median((a + b) + (c + d), (a + c) + (b + d), (a + d) + (b + c));
}
/// Of the eight cells of a cube, cell (x, y, z) at x + 2y + 4z.
template <typename T> INLINE T sum_of_cube(const T (&cells)[8]) {
    return sum_of_four(cells[0] + cells[7], cells[1] + cells[6], cells[2] + cells[5], cells[3] + cells[4]);
}

// Values at the faces of a cell half a step later, from its profile: the twin of hancock.rs.
#pragma once
#include "point/primitive.cuh"

/// Turns the profile of a cell, `below` and `above`, into the values at its low and high face, averaged over a step.
template <typename A, typename T>
INLINE void face_values(const T (&w)[6], T (&below)[6], T (&above)[6], T dt_over_dx, const Eos<T> &eos) {
    const T inverse = A::divide(T(1.0), w[0]), stiffness = eos.gamma * w[4];
    T curvature[6], curved[6], to_low[6], to_high[6], change[6];
#pragma unroll
    for (int f = 0; f < 6; f++) curvature[f] = dt_over_dx * (below[f] - above[f]);
    quasi_linear<A>(w, inverse, stiffness, curvature, curved);
#pragma unroll
    for (int f = 0; f < 6; f++) {
        to_low[f] = A::multiply_add(T(2.0), below[f], -above[f]) + curved[f];
        to_high[f] = A::multiply_add(T(2.0), above[f], -below[f]) + curved[f];
    }
    quasi_linear<A>(w, inverse, stiffness, to_low, change);
#pragma unroll
    for (int f = 0; f < 6; f++) below[f] = A::multiply_add(-dt_over_dx, change[f], w[f] - below[f]);
    quasi_linear<A>(w, inverse, stiffness, to_high, change);
#pragma unroll
    for (int f = 0; f < 6; f++) above[f] = A::multiply_add(-dt_over_dx, change[f], w[f] + above[f]);
    const bool positive = below[0] > T(0.0) && above[0] > T(0.0) && below[4] > T(0.0) && above[4] > T(0.0);
#pragma unroll
    for (int f = 0; f < 6; f++) {
        below[f] = positive ? below[f] : w[f];
        above[f] = positive ? above[f] : w[f];
    }
}

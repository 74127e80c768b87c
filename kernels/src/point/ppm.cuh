// Piecewise linear and parabolic reconstruction in a cell, one value at a time: the twin of ppm.rs.
#pragma once
#include "point/dual_energy.cuh"
#include "point/slopes.cuh"

/// Fourth-order value at the face between two cells with limited slopes.
template <typename A, typename T> INLINE T face_value(T value_0, T value_1, T slope_0, T slope_1) {
    return A::multiply_add(T(-1.0 / 6.0), slope_1 - slope_0, T(0.5) * (value_0 + value_1));
}

/// `below` and `above` of a parabola without extrema inside the cell.
template <typename T> INLINE void monotonise(T &below, T &above) {
    const auto at_most = [](T a, T b) {
        const T size = smaller(absolute(a), T(2.0) * absolute(b));
        return a < T(0.0) ? -size : size;
    };
    const bool extremum = (below > T(0.0)) != (above > T(0.0));
    const T low = at_most(below, above), high = at_most(above, below);
    below = extremum ? T(0.0) : low;
    above = extremum ? T(0.0) : high;
}

/// By how much the profiles of a cell at a shock are flattened: velocities of the cells before and after, pressures of the
/// five cells around.
template <typename A, typename T> INLINE T flattening(T velocity_1, T velocity_3, T p0, T p1, T p3, T p4) {
    T near = p3 - p1, far = p4 - p0;
    const bool shock = velocity_1 > velocity_3 && absolute(near) > T(1.0 / 3.0) * smaller(p1, p3);
    const bool falls = far < T(0.0);
    near = falls ? -near : near;
    far = falls ? -far : far;
    const T steepness = smaller(T(10.0) * A::multiply_add(T(-0.75), far, near), far);
    return shock && steepness > T(0.0) ? A::divide(steepness, far) : T(0.0);
}

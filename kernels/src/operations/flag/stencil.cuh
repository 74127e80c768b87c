// Gradient and Loehner's estimator: the twin of stencil.rs, on a group with two ghost cells.
#pragma once
#include "level/ghosts/ghosts.cuh"
#include "point/dual_energy.cuh"

/// Ghost cells that Loehner's estimator reads on each side.
constexpr int STENCIL_GHOSTS = 2;
constexpr int STENCIL_BLOCK = GROUP + 2 * STENCIL_GHOSTS;
constexpr int STENCIL_CELLS = STENCIL_BLOCK * STENCIL_BLOCK * STENCIL_BLOCK;

/// What a stencil looks at; the velocity along an axis follows VELOCITY.
enum Look : int { LOOK_DENSITY = 0, LOOK_PRESSURE = 1, LOOK_SPEEDS = 2, LOOK_VELOCITY = 3 };

template <typename T> INLINE T looked_at(int look, const T (&u)[FIELDS], const Eos<T> &eos) {
    switch (look) {
    case LOOK_DENSITY: return u[DENSITY];
    case LOOK_PRESSURE: return pressure(u, eos);
    case LOOK_SPEEDS: {
        const T speed = square_root(u[1] * u[1] + u[2] * u[2] + u[3] * u[3]) / u[0];
        return speed + square_root(eos.gamma * pressure(u, eos) / u[0]);
    }
    case LOOK_VELOCITY: return u[1] / u[0];
    case LOOK_VELOCITY + 1: return u[2] / u[0];
    default: return u[3] / u[0];
    }
}

/// Offset of the group's cell (i, j, k) in its block.
INLINE int stencil_cell(int i, int j, int k) {
    return ((k + STENCIL_GHOSTS) * STENCIL_BLOCK + j + STENCIL_GHOSTS) * STENCIL_BLOCK + i + STENCIL_GHOSTS;
}

/// From a cell to its neighbour along an axis.
INLINE int stencil_stride(int axis) { return axis == 0 ? 1 : axis == 1 ? STENCIL_BLOCK : STENCIL_BLOCK * STENCIL_BLOCK; }

template <typename T> INLINE bool steep(const T *value, const T *scale, int at, T threshold) {
    T change = T(0);
#pragma unroll
    for (int axis = 0; axis < 3; axis++) {
        const T here = absolute(value[at + stencil_stride(axis)] - value[at - stencil_stride(axis)]);
        change = here > change ? here : change;
    }
    return T(0.5) * change >= threshold * scale[at];
}

template <typename T> INLINE bool rough(const T *value, const T *scale, int at, T threshold, T filter) {
    const T unit = T(1) / scale[at];
    T second = T(0), first = T(0);
#pragma unroll
    for (int axis_p = 0; axis_p < 3; axis_p++) {
#pragma unroll
        for (int axis_q = 0; axis_q < 3; axis_q++) {
            const int p = stencil_stride(axis_p), q = stencil_stride(axis_q);
            const int pp = at + q + p, pm = at + q - p, mp = at - q + p, mm = at - q - p;
            const T above = value[pp] - value[pm], below = value[mp] - value[mm];
            const T around = (scale[pp] + scale[pm]) + (scale[mp] + scale[mm]);
            const T curvature = (above - below) * unit;
            const T slope = (absolute(above) + absolute(below) + filter * around) * unit;
            second += curvature * curvature;
            first += slope * slope;
        }
    }
    return second > threshold * threshold * first;
}

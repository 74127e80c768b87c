// The one-dimensional relaxing TVD scheme, pointwise: the twin of relaxing_tvd.rs. All fluxes are twice the paper's.
#pragma once
#include "point/dual_energy.cuh"

/// 1/rho and the pressure of a cell, density and pressure at least their floors.
template <typename A, typename T>
INLINE void thermodynamics(const T (&u)[6], T momentum_squared, T shock_indicator, const Eos<T> &eos, T &inverse, T &pressure) {
    const T density = u[0] > eos.density_floor ? u[0] : eos.density_floor;
    inverse = A::divide(T(1.0), density);
    const T internal = A::multiply_add(T(-0.5) * momentum_squared, inverse, u[4]);
    const bool cold = is_cold(internal, u[4], shock_indicator, eos);
    pressure = cold ? eos.template entropy_pressure<A>(density, u[5]) : (eos.gamma - T(1.0)) * internal;
    pressure = pressure > eos.pressure_floor ? pressure : eos.pressure_floor;
}

/// max(|v_x|, |v_y|, |v_z|) + c_s.
template <typename T> INLINE T signal_speed(const T (&u)[6], const Eos<T> &eos) {
    T inverse, pressure;
    thermodynamics<Exact>(u, momentum_squared(u), T(0.0), eos, inverse, pressure);
    const T x = absolute(u[1]), y = absolute(u[2]), z = absolute(u[3]);
    const T yz = y > z ? y : z;
    return (x > yz ? x : yz) * inverse + square_root(eos.gamma * pressure * inverse);
}

/// Twice F^R and F^L of a cell, the momentum along the sweep first; 1/rho and pressure that they were computed with.
template <typename A, typename T>
INLINE void split_flux(const T (&u)[6], T shock_indicator, const Eos<T> &eos, T (&right)[6], T (&left)[6], T &inverse,
                       T &pressure) {
    thermodynamics<A>(u, A::multiply_add(u[1], u[1], u[2] * u[2] + u[3] * u[3]), shock_indicator, eos, inverse, pressure);
    const T v = u[1] * inverse;
    const T c = absolute(v) + A::root(eos.gamma * pressure * inverse);
    const T flux[6] = {u[1], A::multiply_add(u[1], v, pressure), u[2] * v, u[3] * v, (u[4] + pressure) * v, u[5] * v};
#pragma unroll
    for (int f = 0; f < 6; f++) {
        right[f] = A::multiply_add(c, u[f], flux[f]);
        left[f] = A::multiply_add(c, u[f], -flux[f]);
    }
}

template <typename T> INLINE T upwind_flux(T right_moving_of_left_cell, T left_moving_of_right_cell) {
    return right_moving_of_left_cell - left_moving_of_right_cell;
}

template <typename A, typename T> INLINE T van_leer(T a, T b) {
    const T product = a * b;
    const T mean = A::divide(product, a + b);
    return product > T(0.0) ? mean : T(0.0);
}

/// The two parts of twice the second-order flux through the face between cells 0 and 1, the flux being the one less the
/// other: from the right-moving flux of cell 0, its change from cell -1 and that to cell 1; and from the left-moving flux
/// of cell 1, its change from cell 0 and that to cell 2.
template <typename A, typename T> INLINE T rightward(T right_0, T from_before, T to_next) {
    return right_0 + van_leer<A>(from_before, to_next);
}
template <typename A, typename T> INLINE T leftward(T left_1, T from_before, T to_next) {
    return left_1 - van_leer<A>(from_before, to_next);
}

template <typename A, typename T> INLINE T updated(T value, T step, T flux_low, T flux_high) {
    return A::multiply_add(-step, flux_high - flux_low, value);
}

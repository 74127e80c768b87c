// The flux of Harten, Lax and van Leer between two states: the twin of hll.rs.
#pragma once
#include "point/relaxing_tvd.cuh"

/// A cell as its faces see it: its values, physical flux, velocity along the sweep and sound speed.
template <typename T> struct CellFlux {
    T u[6], flux[6], velocity, sound_speed;
};

template <typename A, typename T> INLINE void cell_flux(T shock_indicator, const Eos<T> &eos, CellFlux<T> &cell) {
    const T(&u)[6] = cell.u;
    T inverse, pressure;
    thermodynamics<A>(u, A::multiply_add(u[1], u[1], u[2] * u[2] + u[3] * u[3]), shock_indicator, eos, inverse, pressure);
    const T v = u[1] * inverse;
    cell.velocity = v;
    cell.sound_speed = A::root(eos.gamma * pressure * inverse);
    const T flux[6] = {u[1], A::multiply_add(u[1], v, pressure), u[2] * v, u[3] * v, (u[4] + pressure) * v, u[5] * v};
#pragma unroll
    for (int f = 0; f < 6; f++) cell.flux[f] = flux[f];
}

/// The same of a state given by primitive values.
template <typename A, typename T> INLINE void state_flux(const T (&w)[6], const Eos<T> &eos, CellFlux<T> &cell) {
    const T momentum = w[0] * w[1], pressure = w[4];
    const T squared = A::multiply_add(w[1], w[1], w[2] * w[2] + w[3] * w[3]);
    const T energy = A::multiply_add(T(0.5) * w[0], squared, A::divide(pressure, eos.gamma - T(1.0)));
    cell.velocity = w[1];
    cell.sound_speed = A::root(A::divide(eos.gamma * pressure, w[0]));
    const T u[6] = {w[0], momentum, w[0] * w[2], w[0] * w[3], energy, w[0] * w[5]};
    const T flux[6] = {momentum,        A::multiply_add(momentum, w[1], pressure), momentum * w[2],
                       momentum * w[3], (energy + pressure) * w[1],                momentum * w[5]};
#pragma unroll
    for (int f = 0; f < 6; f++) cell.u[f] = u[f], cell.flux[f] = flux[f];
}

/// Twice the flux through the face between two cells.
template <typename A, typename T> INLINE void hll_flux(const CellFlux<T> &left, const CellFlux<T> &right, T (&flux)[6]) {
    const auto larger = [](T a, T b) { return a > b ? a : b; };
    const T rightward =
        larger(larger(left.velocity + left.sound_speed, right.velocity + right.sound_speed), T(0.0));
    const T leftward = larger(larger(left.sound_speed - left.velocity, right.sound_speed - right.velocity), T(0.0));
#pragma unroll
    for (int f = 0; f < 6; f++) {
        const T upwind = A::multiply_add(rightward, left.flux[f], leftward * right.flux[f]);
        const T sum = A::multiply_add(rightward * leftward, left.u[f] - right.u[f], upwind);
        flux[f] = A::divide(T(2.0) * sum, rightward + leftward);
    }
}

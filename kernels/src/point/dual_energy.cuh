// Energy and entropy scalar kept in agreement: the twin of dual_energy.rs.
#pragma once
#include "point/eos.cuh"
#include "point/symmetric_sum.cuh"

/// Half rho v^2 times two over the density.
template <typename T> INLINE T momentum_squared(const T (&u)[6]) {
    return sum_of_three(u[1] * u[1], u[2] * u[2], u[3] * u[3]);
}

template <typename T> INLINE T pressure(const T (&u)[6], const Eos<T> &eos) {
    const T internal = u[4] - T(0.5) * momentum_squared(u) / u[0];
    const T cold = eos.entropy_pressure(u[0], u[5]);
    return internal < eos.eta * absolute(u[4]) ? cold : (eos.gamma - T(1.0)) * internal;
}

/// What synchronise did to a cell.
struct Synchronised {
    bool floored;
    bool cold;
    bool negative;
};

/// Makes energy and entropy scalar of a cell agree, in place.
template <typename T> INLINE Synchronised synchronise(T (&u)[6], const Eos<T> &eos) {
    const T gamma_1 = eos.gamma - T(1.0);
    const bool thin = u[0] < eos.density_floor;
    const T density = thin ? eos.density_floor : u[0];
    const T kinetic = T(0.5) * momentum_squared(u) / density;
    const T internal = u[4] - kinetic;
    const bool cold = internal < eos.eta * absolute(u[4]);
    const T density_power = power(density, gamma_1);
    const T own = cold ? u[5] * density_power : gamma_1 * internal;
    const bool low = own < eos.pressure_floor;
    const T pressure = low ? eos.pressure_floor : own;
    u[0] = density;
    u[4] = cold || low ? kinetic + pressure / gamma_1 : u[4];
    u[5] = cold && !low ? u[5] : pressure / density_power;
    return {thin || low, cold, internal <= T(0.0)};
}

/// Whether all values are finite and density and energy positive.
template <typename T> INLINE bool is_valid(const T (&u)[6]) {
    const T sum = u[0] + u[1] + u[2] + u[3] + u[4] + u[5];
    return sum * T(0.0) == T(0.0) && u[0] > T(0.0) && u[4] > T(0.0);
}

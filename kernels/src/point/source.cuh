// A source of internal energy: the twin of source.rs.
#pragma once
#include "point/dual_energy.cuh"

/// Applies a source to a cell. The relative change, of the larger internal energy before and after.
template <typename T, typename S> INLINE T act(T (&u)[6], const S &source, const Eos<T> &eos) {
    const T gamma_1 = eos.gamma - T(1.0);
    const T density_power = power<Exact>(u[0], gamma_1);
    const T by_energy = u[4] - kinetic(u);
    const T by_entropy = u[5] * density_power / gamma_1;
    const T energy_change = source.change(u[0], by_energy);
    const T entropy_change = source.change(u[0], by_entropy);
    const bool cold = is_cold(by_energy, u[4], T(0.0), eos);
    u[4] = u[4] + energy_change;
    u[5] = u[5] + gamma_1 * entropy_change / density_power;
    const T internal = cold ? by_entropy : by_energy, change = cold ? entropy_change : energy_change;
    const T largest = change > T(0.0) ? internal + change : internal;
    return absolute(change) / largest;
}

// Energy and entropy scalar kept in agreement: the twin of dual_energy.rs.
#pragma once
#include <limits>

#include "point/eos.cuh"
#include "point/symmetric_sum.cuh"

/// Half rho v^2 times two over the density.
template <typename T> INLINE T momentum_squared(const T (&u)[6]) {
    return sum_of_three(u[1] * u[1], u[2] * u[2], u[3] * u[3]);
}

/// Half rho v^2.
template <typename T> INLINE T kinetic(const T (&u)[6]) { return T(0.5) * momentum_squared(u) / u[0]; }

template <typename T> INLINE T larger(T a, T b) { return a > b ? a : b; }
template <typename T> INLINE T smaller(T a, T b) { return a < b ? a : b; }

/// The indicator of a cell at a shock, and before the first pass.
template <typename T> struct ShockIndicator {
    static constexpr T SHOCK = T(-1.0);
    static constexpr T UNSEEN = std::numeric_limits<T>::infinity();
};

/// The shock indicator of a cell after a pass: see dual_energy.rs.
template <typename T>
INLINE T shock_indicator(T so_far, T energy_0, T energy_1, T energy_2, T pressure_0, T pressure_1, T pressure_2, const Eos<T> &eos) {
    constexpr T BESIDE = T(10.0), SHOCK_JUMP = T(3.0);
    const T highest = larger(pressure_1, larger(pressure_0, pressure_2));
    const T lowest = smaller(pressure_1, smaller(pressure_0, pressure_2));
    const T energy = larger(energy_1, larger(energy_0, energy_2));
    const bool warm = highest >= (eos.gamma - T(1.0)) * eos.eta * energy;
    so_far = so_far == ShockIndicator<T>::UNSEEN ? T(0.0) : so_far;
    const bool shock = so_far < T(0.0) || (highest > SHOCK_JUMP * lowest && warm);
    return shock ? ShockIndicator<T>::SHOCK : larger(so_far, BESIDE * energy);
}

/// Whether the entropy scalar decides in a cell with this internal energy.
template <typename T> INLINE bool is_cold(T internal, T energy, T shock_indicator, const Eos<T> &eos) {
    const T own = absolute(energy);
    return internal < eos.eta * larger(own, shock_indicator);
}

template <typename T> INLINE T pressure(const T (&u)[6], const Eos<T> &eos) {
    const T internal = u[4] - kinetic(u);
    const T cold = eos.entropy_pressure(u[0], u[5]);
    return is_cold(internal, u[4], T(0.0), eos) ? cold : (eos.gamma - T(1.0)) * internal;
}

/// What synchronise did to a cell.
struct Synchronised {
    bool floored;
    bool cold;
    bool negative;
};

/// Makes energy and entropy scalar of a cell agree, in place, as the shock indicator decides.
template <typename T> INLINE Synchronised synchronise(T (&u)[6], T shock_indicator, const Eos<T> &eos) {
    const T gamma_1 = eos.gamma - T(1.0);
    const bool thin = u[0] < eos.density_floor;
    const T density = thin ? eos.density_floor : u[0];
    const T kinetic = T(0.5) * momentum_squared(u) / density;
    const T internal = u[4] - kinetic;
    const bool cold = is_cold(internal, u[4], shock_indicator, eos);
    const T density_power = power(density, gamma_1);
    const T own = cold ? u[5] * density_power : gamma_1 * internal;
    const bool low = own < eos.pressure_floor;
    const T pressure = low ? eos.pressure_floor : own;
    const bool unseen = shock_indicator == ShockIndicator<T>::UNSEEN;
    const bool waits = (shock_indicator < T(0.0) || unseen) && u[4] > T(0.5) * kinetic;
    const bool keeps_energy = !cold || waits;
    const bool keeps_entropy = cold || unseen;
    u[0] = density;
    u[4] = keeps_energy && !low ? u[4] : kinetic + pressure / gamma_1;
    u[5] = keeps_entropy && !low ? u[5] : pressure / density_power;
    return {thin || low, cold && !unseen, internal <= T(0.0)};
}

/// Whether a cell that a sweep has left without entropy keeps its adiabat.
template <typename T> INLINE bool keeps_adiabat(const T (&u)[6]) { return u[5] <= T(0.0) && u[4] > kinetic(u); }

/// The entropy scalar of a cell that keeps its adiabat while its density changes.
template <typename T> INLINE T on_adiabat(T entropy_before, T density_before, T density) {
    return entropy_before * (density / density_before);
}

/// Whether all values are finite and density and energy positive.
template <typename T> INLINE bool is_valid(const T (&u)[6]) {
    const T sum = u[0] + u[1] + u[2] + u[3] + u[4] + u[5];
    return sum * T(0.0) == T(0.0) && u[0] > T(0.0) && u[4] > T(0.0);
}

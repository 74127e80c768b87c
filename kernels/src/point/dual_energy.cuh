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

/// The least indicator of a cell at a shock, negated, and the one before the first pass.
template <typename T> struct ShockIndicator {
    static constexpr T LEAST = T(1e-30);
    static constexpr T UNSEEN = std::numeric_limits<T>::infinity();
};

/// Whether three pressures in a row are a shock's.
template <typename T> INLINE bool is_jump(T pressure_0, T pressure_1, T pressure_2, T warm) {
    constexpr T SHOCK_JUMP = T(3.0);
    const T highest = larger(pressure_1, larger(pressure_0, pressure_2));
    const T lowest = smaller(pressure_1, smaller(pressure_0, pressure_2));
    return highest > SHOCK_JUMP * lowest && highest >= warm;
}

/// Whether velocities fall in a front, by their falls from cell to cell: see dual_energy.rs.
template <typename T> INLINE bool is_front(T a, T b, T c, T d, T density, T pressure) {
    constexpr T FRONT = T(2.0), RIPPLE = T(0.1);
    const T fall = larger(b, c), ripple = -RIPPLE * fall;
    const bool falls = smaller(smaller(a, b), smaller(c, d)) >= ripple;
    const bool front = (b >= c && b > FRONT * absolute(a)) || (c >= b && c > FRONT * absolute(d));
    return fall > T(0.0) && falls && front && density * (fall * fall) > pressure;
}

/// The shock indicator of a cell after a pass, by one neighbour on either side: see dual_energy.rs.
template <typename T>
INLINE T shock_indicator(T so_far, T density, T change_0, T change_1, T change_2, T pressure_0, T pressure_1, T pressure_2,
                         const Eos<T> &eos) {
    const T squared = change_0 * change_0 + (change_1 * change_1 + change_2 * change_2);
    const T motion = T(0.125) * density * (squared + eos.expansion_squared);
    so_far = so_far == ShockIndicator<T>::UNSEEN ? T(0.0) : so_far;
    const T warm = T(0.1) * ((eos.gamma - T(1.0)) * motion);
    const bool shock = so_far < T(0.0) || is_jump(pressure_0, pressure_1, pressure_2, warm);
    const T most = larger(absolute(so_far), motion);
    return shock ? -larger(most, ShockIndicator<T>::LEAST) : most;
}

/// The shock indicator of a cell at a front of the velocity.
template <typename T> INLINE T at_front(T shock_indicator) {
    return -larger(T(0.25) * absolute(shock_indicator), ShockIndicator<T>::LEAST);
}

/// Whether the entropy scalar decides in a cell with this internal energy.
template <typename T> INLINE bool is_cold(T internal, T energy, T shock_indicator, const Eos<T> &eos) {
    return eos.eta > T(0.0) && internal < larger(eos.eta * absolute(energy), absolute(shock_indicator));
}

/// The total energy of a cell whose pressure is that of its entropy scalar.
template <typename T> INLINE T energy_by_entropy(const T (&u)[6], const Eos<T> &eos) {
    return kinetic(u) + eos.entropy_pressure(u[0], u[5]) / (eos.gamma - T(1.0));
}

/// A shock indicator from the mean of eight fine cells and of their kinetic energies: see dual_energy.rs.
template <typename T> INLINE T motion_within(T moving, const T (&mean)[6]) {
    const T motion = moving - kinetic(mean);
    return motion > T(0.0) ? T(2.0) * motion : T(0.0);
}

/// The energy of a coarse cell, the mean of its eight fine cells: see dual_energy.rs.
template <typename T> INLINE T energy_of_mean(T moving, const T (&mean)[6], const Eos<T> &eos) {
    const T internal = mean[4] - kinetic(mean);
    const bool cold = is_cold(internal, T(0.0), motion_within(moving, mean), eos);
    return cold ? energy_by_entropy(mean, eos) : mean[4];
}

/// By what the entropy scalars of the eight new cells in a coarse cell are multiplied: see dual_energy.rs.
template <typename T> INLINE T heat_factor(const T (&coarse)[6], const T (&fine)[8][6], const Eos<T> &eos) {
    T values[8];
#pragma unroll
    for (int n = 0; n < 8; n++) values[n] = kinetic(fine[n]);
    const T moving = T(0.125) * sum_of_cube(values);
#pragma unroll
    for (int n = 0; n < 8; n++) values[n] = eos.entropy_pressure(fine[n][0], fine[n][5]);
    const T pressures = T(0.125) * sum_of_cube(values);
    const T gamma_1 = eos.gamma - T(1.0);
    const T by_scalar = eos.entropy_pressure(coarse[0], coarse[5]) / gamma_1;
    const bool cold = is_cold(by_scalar, coarse[4], motion_within(moving, coarse), eos);
    const T left = gamma_1 * (coarse[4] - moving);
    return !cold && left > T(0.5) * pressures ? left / pressures : T(1.0);
}

template <typename T> INLINE T pressure(const T (&u)[6], const Eos<T> &eos) {
    const T by_energy = (eos.gamma - T(1.0)) * (u[4] - kinetic(u));
    return eos.eta > T(0.0) ? eos.entropy_pressure(u[0], u[5]) : by_energy;
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

// A passive scalar, pointwise: the twin of passive_scalar.rs.
#pragma once
#include "point/slopes.cuh"
#include "point/relaxing_tvd.cuh"
#include "point/symmetric_sum.cuh"

/// X of a cell; none where there is no mass.
template <typename T> INLINE T mass_fraction(T scalar, T density) {
    return density > T(0.0) ? scalar / density : T(0.0);
}

/// X of the mass that crosses the face between cells 1 and 2 of four in a pass.
template <typename T>
INLINE T carried_fraction(T twice_mass_flux, T step, T density_1, T density_2, T x0, T x1, T x2, T x3) {
    const bool rightward = twice_mass_flux > T(0.0);
    const T far = rightward ? x0 : x3, upwind = rightward ? x1 : x2, downwind = rightward ? x2 : x1;
    const T held = rightward ? density_1 : density_2;
    T stays = T(1.0) - absolute(twice_mass_flux) * step / held;
    stays = held > T(0.0) && stays > T(0.0) ? stays : T(0.0);
    return upwind + stays * van_leer<Exact>(upwind - far, downwind - upwind);
}

/// Density and mass fraction of a cell.
template <typename T> struct Fraction {
    T density, fraction;
};

/// A coarse cell for interpolation: density and mass fraction with limited slopes, quartered.
template <typename T> struct FractionSlopes {
    T density, fraction, density_slopes[3], fraction_slopes[3];

    INLINE FractionSlopes(const Fraction<T> &centre, const Fraction<T> (&low)[3], const Fraction<T> (&high)[3]) {
#pragma unroll
        for (int a = 0; a < 3; a++) {
            density_slopes[a] = T(0.25) * interpolation_slope(centre.density - low[a].density, high[a].density - centre.density);
            fraction_slopes[a] = T(0.25) * minmod(centre.fraction - low[a].fraction, high[a].fraction - centre.fraction);
        }
        const auto product = [&](int a) { return density_slopes[a] * fraction_slopes[a]; };
        const T excess = sum_of_three(product(0), product(1), product(2));
        density = centre.density;
        fraction = centre.fraction - mass_fraction(excess, density);
    }

    /// Fine cell n, at (n & 1, n >> 1 & 1, n >> 2) of the eight.
    INLINE Fraction<T> fine(int n) const {
        const auto rise = [&](const T(&slopes)[3]) {
            const auto sign = [&](int axis) { return n >> axis & 1 ? slopes[axis] : -slopes[axis]; };
            return sum_of_three(sign(0), sign(1), sign(2));
        };
        return {density + rise(density_slopes), fraction + rise(fraction_slopes)};
    }
};
